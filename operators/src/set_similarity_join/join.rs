//! A join as a library: candidates chunk by chunk, and what becomes of them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_kernels::Isa;

use super::bounds::{Bounds, Similarity};
use super::chunk::CandidateChunk;
use super::collection::SetCollection;
use super::collector::{JoinError, Side};
use super::group_join::GroupJoin;
use super::prefix_join::PrefixJoin;
use super::signature_join::SignatureJoin;
use super::threshold::Threshold;

/// How candidates are found. All give the same results; they differ in speed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JoinAlgorithm {
    /// Prefixes, sizes, positions and signatures, sixteen postings at a time: the fastest.
    #[default]
    Auto,
    /// Prefixes and sizes.
    AllPairs,
    /// Prefixes, sizes and positions.
    PpJoin,
    /// The same over groups of sets with equal prefixes.
    GroupJoin,
}

impl JoinAlgorithm {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::AllPairs, Self::PpJoin, Self::GroupJoin];

    /// The name in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::AllPairs => "all_pairs",
            Self::PpJoin => "pp_join",
            Self::GroupJoin => "group_join",
        }
    }
}

/// What the steps of a join have seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JoinCounters {
    /// Postings that were looked at.
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

/// Two similar sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimilarPair {
    /// The id of the left set; in a self-join, the smaller id.
    pub left: u32,
    /// The id of the other one.
    pub right: u32,
    /// How many tokens both have.
    pub overlap: u32,
    /// How similar they are.
    pub similarity: f64,
}

/// Finds candidates, probe by probe.
pub(super) trait Find: Send {
    /// Adds candidates to the chunk, until it is full or there are no more; true while there may be
    /// more. A pair is handed over once.
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool;
}

/// A join of a collection of sets, to itself or of its two sides.
///
/// # Cost
/// Everything at once for one thread: building the index, finding candidates, verifying them.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use trommel_operators::Isa;
/// use trommel_operators::set_similarity_join::{
///     JoinAlgorithm, SetCollector, SetJoin, Side, Similarity,
/// };
///
/// let mut sets = SetCollector::new(1 << 20);
/// sets.push(Side::Left, 0, &[1, 2, 3, 4])?;
/// sets.push(Side::Left, 1, &[2, 3, 4])?;
/// sets.push(Side::Left, 2, &[7])?;
/// let sets = Arc::new(sets.finish()?);
/// let threshold = "3/4".parse()?;
/// let isa = Isa::selected()?;
/// let join = SetJoin::new(&sets, Similarity::Jaccard, threshold, JoinAlgorithm::Auto, isa)?;
/// let mut pairs = Vec::new();
/// join.for_each(|pair| pairs.push((pair.left, pair.right, pair.overlap)));
/// assert_eq!(pairs, [(0, 1, 3)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SetJoin {
    collection: Arc<SetCollection>,
    isa: Isa,
    similarity: Similarity,
    finder: Box<dyn Find>,
    is_exhausted: bool,
    counters: JoinCounters,
}

impl std::fmt::Debug for SetJoin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetJoin").field("counters", &self.counters).finish_non_exhaustive()
    }
}

/// Bytes of a chunk that is verified where it was made: it stays in the second-level cache.
const CHUNK_BYTES: usize = 1 << 16;

impl SetJoin {
    /// Counts the postings of all lists and allocates them; candidates are found by
    /// [`Self::next_chunk`].
    ///
    /// # Errors
    /// If no pair can reach the threshold, or the index does not fit the memory.
    ///
    /// # Panics
    /// If this machine lacks `isa`.
    pub fn new(
        collection: &Arc<SetCollection>,
        similarity: Similarity,
        threshold: Threshold,
        algorithm: JoinAlgorithm,
        isa: Isa,
    ) -> Result<Self, JoinError> {
        assert!(isa.is_available(), "this machine lacks the instruction-set level {isa}");
        let bounds = Bounds::new(similarity, threshold)?;
        let finder: Box<dyn Find> = match algorithm {
            JoinAlgorithm::Auto => Box::new(SignatureJoin::new(collection, bounds, isa)?),
            JoinAlgorithm::AllPairs => Box::new(PrefixJoin::<false>::new(collection, bounds)?),
            JoinAlgorithm::PpJoin => Box::new(PrefixJoin::<true>::new(collection, bounds)?),
            JoinAlgorithm::GroupJoin => Box::new(GroupJoin::new(collection, bounds)?),
        };
        let collection = Arc::clone(collection);
        let counters = JoinCounters::default();
        Ok(Self { collection, isa, similarity, finder, is_exhausted: false, counters })
    }

    /// Puts the next candidates in the chunk, in place of what it holds; false when there are no
    /// more.
    pub fn next_chunk(&mut self, chunk: &mut CandidateChunk) -> bool {
        chunk.clear();
        if !self.is_exhausted {
            self.is_exhausted = !self.finder.fill(chunk, &mut self.counters);
        }
        self.counters.verified += chunk.len() as u64;
        !chunk.is_empty()
    }

    /// What was found so far; results are counted by whoever verifies the chunks.
    #[must_use]
    pub fn counters(&self) -> JoinCounters {
        self.counters
    }

    /// The sets that are joined.
    #[must_use]
    pub fn collection(&self) -> &Arc<SetCollection> {
        &self.collection
    }

    /// Counts the similar pairs.
    #[must_use]
    pub fn count(mut self) -> JoinCounters {
        let mut chunk = CandidateChunk::with_bytes(CHUNK_BYTES);
        while self.next_chunk(&mut chunk) {
            self.counters.results += chunk.count(self.isa, &self.collection);
        }
        self.counters
    }

    /// Calls `take` with each similar pair, in no particular order.
    pub fn for_each(mut self, mut take: impl FnMut(SimilarPair)) -> JoinCounters {
        let mut chunk = CandidateChunk::with_bytes(CHUNK_BYTES);
        while self.next_chunk(&mut chunk) {
            let overlaps = chunk.verify(self.isa, &self.collection);
            for pair in similar_pairs(&self.collection, self.similarity, &chunk, &overlaps) {
                take(pair);
                self.counters.results += 1;
            }
        }
        self.counters
    }
}

/// The pairs of a chunk that are similar, with the ids of their sets.
pub(super) fn similar_pairs(
    collection: &SetCollection,
    similarity: Similarity,
    chunk: &CandidateChunk,
    overlaps: &[u32],
) -> impl Iterator<Item = SimilarPair> {
    chunk.similar(overlaps).map(move |(probe, candidate, overlap)| {
        let (probe_id, candidate_id) = (collection.id(probe), collection.id(candidate));
        let (left, right) = match collection.side(probe) {
            Side::Left if collection.is_two_sided() => (probe_id, candidate_id),
            Side::Left => (probe_id.min(candidate_id), probe_id.max(candidate_id)),
            Side::Right => (candidate_id, probe_id),
        };
        let (probe_size, candidate_size) = (collection.size(probe), collection.size(candidate));
        let similarity = similarity.of(overlap, probe_size, candidate_size);
        SimilarPair { left, right, overlap, similarity }
    })
}
