//! What AllPairs, PPJoin, GroupJoin, buckets and streams share: prefixes, required overlaps, and
//! lists of postings.

use trommel_kernels::overlap::Start;
use trommel_kernels::postings::POSITION_MAX;

use crate::set_similarity_join::similarity::Bounds;
use crate::sets::{SetCollection, Side, SizeRun};

/// The sizes that the sets of one size can be similar to, if these are not larger.
///
/// Sizes are named by their rank among the sizes that occur.
#[derive(Debug, Default)]
pub(crate) struct SizeRange {
    /// The rank of the probes' size.
    pub(crate) rank: usize,
    /// Their size.
    pub(crate) size: u32,
    /// The least rank.
    pub(crate) rank_min: usize,
    /// The number of the first set in the range.
    pub(crate) set_min: u32,
    /// Tokens of a probe that are looked up.
    pub(crate) probe_prefix: usize,
    /// Tokens of a probe that it is found by.
    pub(crate) index_prefix: usize,
    /// The overlap that a pair requires, by the rank of the smaller set; those below `rank_min` are
    /// of no meaning.
    pub(crate) required: Vec<u32>,
}

impl SizeRange {
    /// Moves on to the sizes of this rank; ranks must not descend.
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

/// Where the postings of a token are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PostingRange {
    /// The first one; those before it belong to sets that are too small for all probes to come.
    pub(crate) begin: u32,
    /// Behind the last one.
    pub(crate) end: u32,
}

/// Bytes of the lists of an index: one for each token and side.
pub(crate) fn lists_bytes(collection: &SetCollection) -> usize {
    collection.sides() * collection.distinct() as usize * size_of::<PostingRange>()
}

/// The list of a token of that side.
#[inline]
pub(crate) fn list_of(collection: &SetCollection, side: Side, token: u32) -> usize {
    side.index() * collection.distinct() as usize + token as usize
}

/// An empty list for each token and side, with room for the postings of all given sets in the order
/// of the lists; and the room in all.
///
/// `sets` are the numbers of sets, each with the length of the prefix by which it is found.
pub(crate) fn empty_lists(
    collection: &SetCollection,
    sets: impl Iterator<Item = (u32, usize)>,
) -> (Vec<PostingRange>, usize) {
    let mut lists =
        vec![PostingRange::default(); collection.sides() * collection.distinct() as usize];
    for (set, prefix) in sets {
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

/// The sets of all sizes, each with the length of the prefix by which it is found.
pub(crate) fn index_prefixes(
    collection: &SetCollection,
    bounds: Bounds,
) -> impl Iterator<Item = (u32, usize)> {
    collection.sizes().iter().flat_map(move |run| {
        let prefix = bounds.index_prefix(run.size) as usize;
        (run.begin..run.end).map(move |set| (set, prefix))
    })
}

/// Where the verification of a pair begins whose first common token is at these positions: behind
/// it, or at the beginning, if the position in the candidate is not known.
pub(crate) fn start_after_match(probe: u32, candidate: u32) -> Start {
    if candidate == POSITION_MAX {
        return Start::default();
    }
    Start { probe: probe + 1, candidate: candidate + 1, overlap: 1 }
}
