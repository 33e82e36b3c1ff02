//! The algorithm `auto` on a CPU: by postings, by tiles or as PPJoin, whichever costs least.

use std::sync::Arc;

use trommel_kernels::Isa;

use super::Find;
use super::filters::{Filters, Positions, PositionsAndSignatures};
use super::posting_index::{PostingIndex, PostingOptions};
use super::posting_join::PostingJoin;
use super::published::prefix_index::index_bytes;
use super::published::prefix_join::PrefixJoin;
use super::tile_join::TileJoin;
use crate::set_similarity_join::parameters::error::JoinError;
use crate::set_similarity_join::parameters::tuning::Tuning;
use crate::set_similarity_join::plan::tiling::TiledRanks;
use crate::set_similarity_join::plan::way::{self, CountedLists, Way};
use crate::set_similarity_join::postings::lists::{ListLengths, Planned, PostingCounts};
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::budget::Budget;
use crate::shared::sets::SetCollection;

/// Options of [`auto_join`].
pub(crate) struct AutoOptions<'a> {
    pub(crate) isa: Isa,
    pub(crate) tuning: Tuning,
    /// By rank: whether the sets of this size are probes; `None` if all sets are probes.
    pub(crate) only: Option<&'a [bool]>,
    /// Number of cores that search slices of an index side by side.
    pub(crate) cores: usize,
}

/// The way of `auto`.
pub(crate) enum AutoJoin {
    /// By postings, slice by slice.
    Postings(Box<PostingIndex>),
    Other(Box<dyn Find>),
}

impl AutoJoin {
    /// A finder that does all work on one core.
    pub(crate) fn into_finder(self) -> Box<dyn Find> {
        match self {
            Self::Postings(index) => Box::new(PostingJoin::new(*index)),
            Self::Other(finder) => finder,
        }
    }
}

/// Makes the finder of `auto`, with the data that is `planned` already: counts postings, and
/// chooses the way that costs least.
///
/// # Errors
/// If the index does not fit the memory.
pub(crate) fn auto_join(
    collection: &Arc<SetCollection>,
    bounds: Bounds,
    AutoOptions { isa, tuning, only, cores }: AutoOptions<'_>,
    planned: &mut Planned,
    budget: &mut Budget,
) -> Result<AutoJoin, JoinError> {
    let counts = match planned.lists() {
        Some(lists) => lists.counts,
        None => PostingCounts::estimate(collection, bounds, budget)?,
    };
    // Cores share the search only if there is enough work.
    let searches = (counts.weight() / tuning.run_pairs.max(1)).clamp(1, cores.max(1) as u64);
    let index_bytes = index_bytes(collection, counts.postings);
    let lists = CountedLists { counts, index_bytes, searches };
    match way::choose(collection, bounds, lists, isa) {
        Way::Tiles => {
            let ranks = only.map_or_else(|| TiledRanks::all(collection).ranks, <[bool]>::to_vec);
            // Without room for the signatures of tiles, postings are used.
            if let Ok(tiles) = TileJoin::new(collection, bounds, ranks, isa, budget) {
                return Ok(AutoJoin::Other(Box::new(tiles)));
            }
        }
        Way::Prefixes if only.is_none() => {
            if let Some(join) = prefix_join::<Positions>(collection, bounds, isa, budget) {
                return Ok(join);
            }
        }
        Way::SignedPrefixes if only.is_none() => {
            if let Some(join) =
                prefix_join::<PositionsAndSignatures>(collection, bounds, isa, budget)
            {
                return Ok(join);
            }
        }
        Way::Prefixes | Way::SignedPrefixes | Way::Postings => {}
    }
    let not_probed: Vec<bool> = only.into_iter().flatten().map(|is_probed| !is_probed).collect();
    let options = PostingOptions { isa, not_probed: &not_probed, tuning, cores };
    let lists = ListLengths::planned(planned, collection, bounds, budget)?;
    let index = PostingIndex::new(collection, bounds, options, lists, planned, budget)?;
    Ok(AutoJoin::Postings(Box::new(index)))
}

/// PPJoin; `None` if its index does not fit the memory.
fn prefix_join<F: Filters>(
    collection: &Arc<SetCollection>,
    bounds: Bounds,
    isa: Isa,
    budget: &Budget,
) -> Option<AutoJoin> {
    let join = PrefixJoin::<F>::new(collection, bounds, isa, &mut budget.clone()).ok()?;
    Some(AutoJoin::Other(Box::new(join)))
}
