//! An index by postings, whose lists are built one slice after the other.

use std::ops::Range;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::overlap::ChunkStore;
use trommel_kernels::postings::{
    Hits, Limits, PairLimit, Posting, Progress, RANKS_MAX, Row, SIDE_BIT,
};

use crate::set_similarity_join::parameters::error::JoinError;
use crate::set_similarity_join::parameters::tuning::Tuning;
use crate::set_similarity_join::postings::lists::{
    INDEX, ListLengths, Planned, PostingCounts, SEARCHES_PER_CORE, Slices, Visits, narrow,
};
use crate::set_similarity_join::postings::signatures::SetSignatures;
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::budget::Budget;
use crate::shared::sets::{SetCollection, SizeRun, TOKENS_MAX};

// Sets of more than `RANKS_MAX` different sizes would have more than `TOKENS_MAX` tokens.
const _: () = assert!(RANKS_MAX * (RANKS_MAX - 1) / 2 >= TOKENS_MAX);

// The number of a set leaves a bit for its side.
const _: () = assert!(TOKENS_MAX <= SIDE_BIT as usize);

/// Number of hits after which a call of the kernel stops at the next probe.
pub(super) const HITS_PER_CALL: usize = 1 << 11;

/// The bounds of all pairs of sizes. `not_probed` says by rank whether sets of this size are not
/// probes; missing ranks are probes.
///
/// # Cost
/// At most one limit per token of the sets, and one per position of a prefix: the sizes are
/// different, so their sum is at most the number of tokens.
fn limits(
    collection: &SetCollection,
    bounds: Bounds,
    not_probed: &[bool],
    budget: &mut Budget,
) -> Result<Limits, JoinError> {
    let sizes = collection.sizes();
    let (mut rows, mut rank_min, mut pairs, mut positions) = (Vec::new(), 0, 0, 0);
    for (rank, run) in sizes.iter().enumerate() {
        let size_min = bounds.size_min(run.size);
        while rank_min < rank && sizes[rank_min].size < size_min {
            rank_min += 1;
        }
        rows.push(Row {
            size: run.size,
            is_probe: not_probed.get(rank) != Some(&true),
            rank_min: narrow(rank_min),
            index_prefix: bounds.index_prefix(run.size),
            pairs: narrow(pairs),
            positions: narrow(positions),
        });
        pairs += rank - rank_min + 1;
        positions += bounds.probe_prefix(run.size) as usize;
    }
    let bytes = rows.len() * size_of::<Row>()
        + pairs * size_of::<PairLimit>()
        + positions * size_of::<u32>();
    budget.take(INDEX, bytes)?;
    let (mut limits, mut rank_max) = (Vec::with_capacity(pairs), Vec::with_capacity(positions));
    for (rank, (row, run)) in rows.iter().zip(sizes).enumerate() {
        let rank_min = row.rank_min as usize;
        limits.extend(pair_limits(run.size, &sizes[rank_min..=rank], bounds));
        let of_row: &[PairLimit] = &limits[row.pairs as usize..];
        let mut greatest = rank;
        // At later positions, fewer tokens are left, so the largest partner shrinks along the
        // prefix.
        for left in (0..=run.size).rev().take(bounds.probe_prefix(run.size) as usize) {
            while greatest > rank_min && of_row[greatest - rank_min].required > left {
                greatest -= 1;
            }
            rank_max.push(narrow(greatest));
        }
    }
    Ok(Limits::new(rows, limits, rank_max))
}

/// Limits of a set of `size` tokens for each of the sizes `others`, which are at most `size`.
fn pair_limits(size: u32, others: &[SizeRun], bounds: Bounds) -> impl Iterator<Item = PairLimit> {
    others.iter().scan(0, move |distance_max, other| {
        let required = bounds.required(size, other.size);
        // The kernel needs bounds that do not descend, and rounding can lower the bound by 1 for
        // the next size. Raising the bound weakens no filter: the number of differing bits has the
        // parity of the sum of the sizes, and the exact bound has the same parity.
        let distance = u64::from(size) + u64::from(other.size);
        let distance = distance.saturating_sub(2 * u64::from(required));
        *distance_max = distance.max(*distance_max);
        let position_max = other.size.saturating_sub(required);
        Some(PairLimit { required, position_max, distance_max: *distance_max })
    })
}

/// Bytes of a slice of `postings_max` postings in `lists_max` lists of up to `len_max` postings,
/// with runs of `run_pairs` pairs.
fn slice_bytes(postings_max: usize, lists_max: usize, len_max: usize, run_pairs: u64) -> usize {
    // A posting of the longest list has the most pairs.
    let (postings, pairs) = (postings_max as u64, (postings_max * len_max) as u64 / 2);
    let runs_max = 1 + PostingCounts { postings, pairs }.weight() / run_pairs.max(1);
    let runs_max = usize::try_from(runs_max).unwrap_or(usize::MAX).min(postings_max);
    // A vector that grows can be twice as long as needed.
    postings_max * size_of::<Posting>() + (lists_max + 2 * runs_max) * size_of::<u32>()
}

/// Bytes of a search of lists of up to `len_max` postings, by signatures of `words` words.
fn search_bytes(len_max: usize, words: usize, collection: &SetCollection) -> usize {
    let matches = HITS_PER_CALL + len_max;
    Progress::bytes(len_max, words, collection.is_two_sided())
        + Hits::bytes(matches)
        + ChunkStore::bytes(matches)
}

/// Options of a [`PostingIndex`].
pub(crate) struct PostingOptions<'a> {
    pub(crate) isa: Isa,
    /// By rank, or empty: whether the sets of this size are probes elsewhere. Such sets are still
    /// found as candidates.
    pub(crate) not_probed: &'a [bool],
    pub(crate) tuning: Tuning,
    /// Number of cores that search slices side by side.
    pub(crate) cores: usize,
}

/// Data that all slices of a join share: bounds, signatures, and the lengths of the lists.
///
/// The posting lists of all tokens that can be common to a pair are built slice by slice of the
/// tokens, each slice in a [`Slice`](super::slice::Slice). All slices that are searched at once
/// take at most 3/4 of the memory of the sets' tokens, unless the minimum of a slice or a single
/// list needs more.
pub(crate) struct PostingIndex {
    pub(super) collection: Arc<SetCollection>,
    pub(super) bounds: Bounds,
    pub(super) isa: Isa,
    pub(super) limits: Limits,
    pub(super) lists: ListLengths,
    pub(super) signatures: SetSignatures,
    /// Work that a search takes at once, in pairs of postings.
    pub(super) run_pairs: u64,
    /// Lists of each slice.
    pub(super) slices: Vec<Range<usize>>,
    /// The sets of each slice; `None` if each slice goes through all sets.
    pub(super) visits: Option<Visits>,
    /// Maximum number of postings of a slice, and length of the longest list.
    pub(super) postings_max: usize,
    pub(super) len_max: usize,
    /// Number of searches that can be under way at once; the budget has their memory.
    searches: usize,
}

impl PostingIndex {
    /// An index of `collection` with lists of the lengths `lists`, and with signatures if
    /// signatures pay.
    ///
    /// # Errors
    /// If the index does not fit the memory.
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        PostingOptions { isa, not_probed, tuning, cores }: PostingOptions<'_>,
        lists: ListLengths,
        planned: &mut Planned,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let words = lists.counts.words(collection, bounds);
        let limits = limits(collection, bounds, not_probed, budget)?;
        let signatures = match planned.signatures.take().filter(|made| made.words == words) {
            Some(made) => {
                budget.take(INDEX, SetSignatures::bytes(collection, words))?;
                made
            }
            None => SetSignatures::new(collection, words, isa, budget)?,
        };
        let Slices { slices, postings_max, len_max } =
            lists.slices(collection, tuning.slice_postings_min, cores);
        let visits = planned.visits.take().filter(|visits| visits.slices == slices);
        let visits = visits.filter(|visits| budget.take(INDEX, visits.bytes()).is_ok());
        let searches = if cores == 1 { 1 } else { SEARCHES_PER_CORE * cores };
        let lists_max = slices.iter().map(Range::len).max().unwrap_or(0);
        let of_slice = slice_bytes(postings_max, lists_max, len_max, tuning.run_pairs);
        let of_search = search_bytes(len_max, words, collection);
        budget.take(INDEX, of_slice + of_search)?;
        let mut fitting = 1;
        while fitting < searches {
            let slice = if fitting < slices.len() { of_slice } else { 0 };
            if budget.take(INDEX, slice + of_search).is_err() {
                break;
            }
            fitting += 1;
        }
        Ok(Self {
            collection: Arc::clone(collection),
            bounds,
            isa,
            limits,
            lists,
            signatures,
            run_pairs: tuning.run_pairs,
            slices,
            visits,
            postings_max,
            len_max,
            searches: fitting,
        })
    }

    /// Number of slices.
    pub(crate) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// Token of a list.
    pub(super) fn token(&self, list: usize) -> u32 {
        self.lists.token_min + narrow(list)
    }

    /// Work of a slice, in pairs of postings.
    pub(crate) fn weight_of(&self, slice: usize) -> u64 {
        PostingCounts::of(&self.lists.lens[self.slices[slice].clone()]).weight()
    }

    /// Whether several cores can share the search of the index.
    pub(crate) fn is_divisible(&self) -> bool {
        self.searches > 1 && (self.slices() > 1 || self.lists.counts.weight() > self.run_pairs)
    }

    /// Number of searches that can be under way at once.
    pub(crate) fn searches(&self) -> usize {
        self.searches
    }
}
