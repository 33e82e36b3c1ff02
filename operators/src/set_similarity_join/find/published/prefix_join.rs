//! AllPairs, and PPJoin with and without the bitmap filter: each set is looked up in an index of
//! the prefixes of all sets before it, and then added to the index.
//!
//! ```text
//! probe  | 3 9 | 12 40 ..      lists of 3 and 9 ──► size filter ──► PPJoin: positional filter
//!        prefix                ──► candidates
//! ```
//!
//! Sources: Bayardo, Ma, Srikant, *Scaling Up All Pairs Similarity Search*, WWW 2007, §3 (prefixes,
//! sizes); Xiao, Wang, Lin, Yu, *Efficient Similarity Joins for Near Duplicate Detection*, WWW
//! 2008, §4 (positions); in the form of Mann, Augsten, Bouros, PVLDB 9(9), 2016, §2: matches in the
//! prefixes are counted, and verification begins after the prefix that ends first (§3). The bitmap
//! filter comes from Sandes, Teodoro, Melo, *Bitmap Filter: Speeding up Exact Set Similarity Joins
//! with Bitwise Operations*, Information Systems 88, 2020, with parities (Bitmap-Xor), in the
//! generation of candidates.
//!
//! Departures from the papers: all posting lists are in one array, and a first pass counts their
//! lengths. Signatures have the same length as the signatures of `auto`.

use std::sync::Arc;

use trommel_kernels::{Isa, Routine, run_compiled_for};

use super::prefix_index::{Entry, PrefixIndex, Verification};
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::find::filters::Filters;
use crate::set_similarity_join::find::{Find, JoinCounters};
use crate::set_similarity_join::parameters::error::JoinError;
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::budget::Budget;
use crate::shared::sets::SetCollection;

/// The finder of the published joins of single sets.
pub(crate) struct PrefixJoin<F> {
    isa: Isa,
    index: PrefixIndex<F>,
    sets: u32,
    /// Next probe.
    next: u32,
    /// Number of candidates of the last probe that are in a chunk.
    emitted: usize,
}

impl<F: Filters> PrefixJoin<F> {
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        isa: Isa,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let sets = u32::try_from(collection.len()).expect("sets have 32-bit numbers");
        let index = PrefixIndex::new(collection, bounds, isa, 0..sets, budget)?;
        Ok(Self { isa, index, sets, next: 0, emitted: 0 })
    }
}

/// Fills a chunk.
struct Fill<'a, F> {
    join: &'a mut PrefixJoin<F>,
    chunk: &'a mut CandidateChunk,
    counters: &'a mut JoinCounters,
}

impl<F: Filters> Routine for Fill<'_, F> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let PrefixJoin { index, sets, next, emitted, .. } = self.join;
        loop {
            while let Some(&candidate) = index.found.get(*emitted) {
                if self.chunk.is_full() {
                    return true;
                }
                *emitted += 1;
                let (probe, set) = (*next - 1, candidate.entry);
                let Verification { required, start } = index.take(candidate, probe, set);
                self.chunk.push(probe, set, required, start);
            }
            if next == sets {
                return false;
            }
            index.join(Entry { number: *next, set: *next }, self.counters);
            self.counters.candidates += index.found.len() as u64;
            *next += 1;
            *emitted = 0;
        }
    }
}

impl<F: Filters> Find for PrefixJoin<F> {
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool {
        run_compiled_for(self.isa, Fill { join: self, chunk, counters })
    }
}
