//! Prefix lengths, required overlaps and posting lists, as AllPairs, PPJoin, GroupJoin, the cost
//! model and streams use them.

use trommel_kernels::overlap::Start;
use trommel_kernels::postings::POSITION_MAX;

use crate::set_similarity_join::similarity::Bounds;
use crate::shared::sets::{SETS_AHEAD, SetCollection, Side, SizeRun};

/// Partner sizes of the probes of one size, up to that size.
///
/// A size is named by its rank among the sizes that occur.
#[derive(Debug, Default)]
pub(crate) struct SizeRange {
    /// Rank of the size of the probes.
    pub(crate) rank: usize,
    /// Size of the probes.
    pub(crate) size: u32,
    /// Rank of the smallest partner size.
    pub(crate) rank_min: usize,
    /// Number of the first set of the smallest partner size.
    pub(crate) set_min: u32,
    /// Prefix length to look a probe up.
    pub(crate) probe_prefix: usize,
    /// Prefix length to index a probe.
    pub(crate) index_prefix: usize,
    /// Required overlap, by rank of the partner's size. Entries below `rank_min` are unspecified.
    pub(crate) required: Vec<u32>,
}

impl SizeRange {
    /// Moves on to probes whose size has `rank`; ranks must not descend.
    pub(crate) fn move_to(&mut self, rank: usize, sizes: &[SizeRun], bounds: Bounds) {
        let size = sizes[rank].size;
        let size_min = bounds.size_min(size);
        while self.rank_min < rank && sizes[self.rank_min].size < size_min {
            self.rank_min += 1;
        }
        self.rank = rank;
        self.size = size;
        self.set_min = sizes[self.rank_min].begin;
        self.probe_prefix = bounds.probe_prefix(size) as usize;
        self.index_prefix = bounds.index_prefix(size) as usize;
        self.required.resize(rank + 1, 0);
        for (required, run) in self.required.iter_mut().zip(sizes).skip(self.rank_min) {
            *required = bounds.required(size, run.size);
        }
    }
}

/// A posting list: its range among all postings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PostingRange {
    /// First posting whose set is large enough for the next probes.
    pub(crate) begin: u32,
    /// End of the postings.
    pub(crate) end: u32,
}

/// Bytes of the lists of an index: one per token and side.
pub(crate) fn lists_bytes(collection: &SetCollection) -> usize {
    collection.sides() * collection.distinct() as usize * size_of::<PostingRange>()
}

/// Index of the posting list of `token` on `side`.
#[inline]
pub(crate) fn list_of(collection: &SetCollection, side: Side, token: u32) -> usize {
    side.index() * collection.distinct() as usize + token as usize
}

/// Empty posting lists per token and side, each with room for the postings of `sets`, and the
/// number of postings in all. Each item of `sets` is a set and the prefix length by which the set
/// is indexed.
pub(crate) fn empty_lists(
    collection: &SetCollection,
    sets: impl Iterator<Item = (u32, usize)>,
) -> (Vec<PostingRange>, usize) {
    let mut lists =
        vec![PostingRange::default(); collection.sides() * collection.distinct() as usize];
    for (set, prefix) in sets {
        collection.prefetch(set + SETS_AHEAD);
        let side = collection.side(set);
        for &token in &collection.set(set)[..prefix] {
            lists[list_of(collection, side, token)].end += 1;
        }
    }
    let mut begin = 0;
    for list in &mut lists {
        let room = list.end;
        (list.begin, list.end) = (begin, begin);
        begin += room;
    }
    (lists, begin as usize)
}

/// Start of the verification of a pair whose first common token is at positions `probe` and
/// `candidate`: after that token. If `candidate` is [`POSITION_MAX`], the start is the beginning of
/// both sets, because that value also stands for all larger positions.
pub(crate) fn start_after_match(probe: u32, candidate: u32) -> Start {
    if candidate == POSITION_MAX {
        return Start::default();
    }
    Start { probe: probe + 1, candidate: candidate + 1, overlap: 1 }
}
