//! PREPARE: finders of candidate pairs, one per algorithm.
//!
//! | file | contents |
//! |---|---|
//! | `auto_join` | `auto`: by postings, by tiles or as PPJoin |
//! | `posting_index` | an index by postings |
//! | `slice` | a slice of the index and its search, on the kernels of `postings` |
//! | `posting_join` | slices one after the other |
//! | `searching` | searches of slices side by side |
//! | `tile_join` | all pairs in tiles, on the kernels of `signatures` |
//! | `filters` | the filters of published joins, as constants of one loop |
//! | `published` | AllPairs, PPJoin and GroupJoin |

pub(crate) mod auto_join;
pub(crate) mod filters;
pub(crate) mod posting_index;
pub(crate) mod posting_join;
pub(crate) mod published;
pub(crate) mod searching;
pub(crate) mod slice;
pub(crate) mod tile_join;

use super::candidates::chunk::CandidateChunk;

/// Counts of the steps of a join; each step keeps a part of the step before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JoinCounters {
    /// Postings that were read; for tiles, pairs that were tested.
    pub postings: u64,
    /// Postings that passed the filters of a posting: size, and with `auto` position and signature.
    /// A pair can have several such postings.
    pub pre_candidates: u64,
    /// Pairs of sets, or of groups of sets, that passed all filters.
    pub candidates: u64,
    /// Pairs of sets that were verified.
    pub verified: u64,
    /// Similar pairs.
    pub results: u64,
}

impl JoinCounters {
    /// Adds the counts of a part of the join.
    pub(crate) fn add(&mut self, part: Self) {
        let Self { postings, pre_candidates, candidates, verified, results } = self;
        *postings += part.postings;
        *pre_candidates += part.pre_candidates;
        *candidates += part.candidates;
        *verified += part.verified;
        *results += part.results;
    }
}

/// Finds the candidate pairs of a collection, chunk by chunk.
pub(crate) trait Find: Send {
    /// Adds candidate pairs to `chunk` until the chunk is full or no pair is left; false if no pair
    /// is left. Each pair is added once.
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool;
}

/// Finds nothing. Used when all pairs are in tiles.
pub(crate) struct EmptyFinder;

impl Find for EmptyFinder {
    fn fill(&mut self, _: &mut CandidateChunk, _: &mut JoinCounters) -> bool {
        false
    }
}
