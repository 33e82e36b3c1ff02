//! PREPARE: finders of candidates, one for each algorithm.
//!
//! | file | contents |
//! |---|---|
//! | `prefix` | prefixes, ranges of sizes and lists of postings |
//! | `prefix_join` | AllPairs, PPJoin |
//! | `group_join` | GroupJoin |
//! | `posting_join` | `auto`, on the kernels of `postings` |
//! | `tile_join` | all pairs in tiles, on the kernels of `signatures` |

pub(crate) mod group_join;
pub(crate) mod posting_join;
pub(crate) mod prefix;
pub(crate) mod prefix_join;
pub(crate) mod tile_join;

use super::candidates::chunk::CandidateChunk;

/// What the steps of a join have seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JoinCounters {
    /// Postings that were looked at; of tiles, pairs.
    pub postings: u64,
    /// Those that passed the tests of a posting: of size, and with `auto` of position and
    /// signature. A pair can be among them several times.
    pub pre_candidates: u64,
    /// Pairs, of sets or of groups of sets, that passed all filters.
    pub candidates: u64,
    /// Pairs of sets whose overlap was found.
    pub verified: u64,
    /// Pairs that are similar.
    pub results: u64,
}

/// Finds candidates, some at a time.
pub(crate) trait Find: Send {
    /// Adds candidates to the chunk, until it is full or there are no more; true while there may be
    /// more. A pair is handed over once.
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool;
}

/// Finds no candidates, where all pairs are in tiles.
pub(crate) struct EmptyFinder;

impl Find for EmptyFinder {
    fn fill(&mut self, _: &mut CandidateChunk, _: &mut JoinCounters) -> bool {
        false
    }
}
