//! AllPairs and PPJoin: each set is looked up in an index of the prefixes of all sets before it,
//! and then added to it.
//!
//! ```text
//! probe  | 3 9 | 12 40 ..      lists of 3 and 9 ──► size filter ──► PPJoin: positional filter
//!        prefix                ──► candidates
//! ```
//!
//! Sources: Bayardo, Ma, Srikant, *Scaling Up All Pairs Similarity Search*, WWW 2007, §3
//! (prefixes, sizes); Xiao, Wang, Lin, Yu, *Efficient Similarity Joins for Near Duplicate
//! Detection*, WWW 2008, §4 (positions); in the form of Mann, Augsten, Bouros, PVLDB 9(9), 2016,
//! §2: matches in the prefixes are counted, and verification begins after the prefix that ends
//! first (§3).
//!
//! Departure: all posting lists lie in one array; a first pass counts their lengths.

use std::sync::Arc;

use super::prefix_index::{Entry, PrefixIndex, Verification};
use super::{Find, JoinCounters};
use crate::budget::Budget;
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::error::JoinError;
use crate::set_similarity_join::similarity::Bounds;
use crate::sets::SetCollection;

/// The finder of AllPairs, or with `POSITIONAL` of PPJoin.
pub(crate) struct PrefixJoin<const POSITIONAL: bool> {
    index: PrefixIndex<POSITIONAL>,
    sets: u32,
    /// Next probe.
    next: u32,
    /// Number of candidates of the last probe that are in a chunk.
    emitted: usize,
}

impl<const POSITIONAL: bool> PrefixJoin<POSITIONAL> {
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let sets = u32::try_from(collection.len()).expect("sets have 32-bit numbers");
        let index = PrefixIndex::new(collection, bounds, 0..sets, budget)?;
        Ok(Self { index, sets, next: 0, emitted: 0 })
    }
}

impl<const POSITIONAL: bool> Find for PrefixJoin<POSITIONAL> {
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool {
        loop {
            while let Some(&candidate) = self.index.found.get(self.emitted) {
                if chunk.is_full() {
                    return true;
                }
                self.emitted += 1;
                let (probe, set) = (self.next - 1, candidate.entry);
                let Verification { required, start } = self.index.take(candidate, probe, set);
                chunk.push(probe, set, required, start);
            }
            if self.next == self.sets {
                return false;
            }
            self.index.join(Entry { number: self.next, set: self.next }, counters);
            counters.candidates += self.index.found.len() as u64;
            self.next += 1;
            self.emitted = 0;
        }
    }
}
