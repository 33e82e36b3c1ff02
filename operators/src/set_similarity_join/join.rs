//! A join as a library: candidates chunk by chunk, and what becomes of them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_kernels::Isa;
use trommel_kernels::cuda::Device;

use super::bounds::{Bounds, Similarity};
use super::buckets::{Tiled, Tiling};
use super::carried::Carried;
use super::chunk::{CandidateChunk, JoinedSets};
use super::collection::SetCollection;
use super::collector::{JoinError, Side};
use super::group_join::GroupJoin;
use super::prefix_join::PrefixJoin;
use super::signature_join::SignatureJoin;
use super::threshold::Threshold;
use super::tile_join::{TileJoin, TileList, TiledSets, Tiler};

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
    /// Signatures of all pairs whose sizes fit, and no index: made for a GPU, where it runs as a
    /// whole; for low thresholds and short sets.
    GpuSignatures,
}

impl JoinAlgorithm {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Auto, Self::AllPairs, Self::PpJoin, Self::GroupJoin, Self::GpuSignatures];

    /// The name in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::AllPairs => "all_pairs",
            Self::PpJoin => "pp_join",
            Self::GroupJoin => "group_join",
            Self::GpuSignatures => "gpu_signatures",
        }
    }
}

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

/// Finds candidates, some at a time.
pub(super) trait Find: Send {
    /// Adds candidates to the chunk, until it is full or there are no more; true while there may be
    /// more. A pair is handed over once.
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool;
}

/// Finds no candidates, where all pairs are in tiles.
struct Nothing;

impl Find for Nothing {
    fn fill(&mut self, _: &mut CandidateChunk, _: &mut JoinCounters) -> bool {
        false
    }
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
    sets: JoinedSets,
    isa: Isa,
    similarity: Similarity,
    finder: Box<dyn Find>,
    is_exhausted: bool,
    /// What is handed over as tiles instead of candidates.
    tiler: Option<Tiler>,
    #[expect(dead_code, reason = "what is open here is not opened anew where tiles are answered")]
    device: Option<Device>,
    counters: JoinCounters,
}

impl std::fmt::Debug for SetJoin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetJoin").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl SetJoin {
    /// Bytes of a chunk that is verified where it was made: it stays in the second-level cache.
    pub const CHUNK_BYTES: usize = 1 << 16;

    /// Counts or makes what candidates are found by; candidates are found by
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
        let budget = &mut collection.budget();
        let finder: Box<dyn Find> = match algorithm {
            JoinAlgorithm::Auto => {
                Box::new(SignatureJoin::new(collection, bounds, isa, &[], budget)?)
            }
            JoinAlgorithm::AllPairs => {
                Box::new(PrefixJoin::<false>::new(collection, bounds, budget)?)
            }
            JoinAlgorithm::PpJoin => Box::new(PrefixJoin::<true>::new(collection, bounds, budget)?),
            JoinAlgorithm::GroupJoin => Box::new(GroupJoin::new(collection, bounds, budget)?),
            JoinAlgorithm::GpuSignatures => {
                Box::new(TileJoin::new(collection, bounds, isa, budget)?)
            }
        };
        let sets = JoinedSets::of_one(collection);
        let (tiler, device, counters) = (None, None, JoinCounters::default());
        Ok(Self { sets, isa, similarity, finder, is_exhausted: false, tiler, device, counters })
    }

    /// As [`Self::new`], but what is compared by signatures of all pairs is handed over as tiles,
    /// by [`Self::next_tiles`]: with `gpu_signatures` everything, with `auto` the probes of those
    /// sizes for which that pays on the device.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub(super) fn in_waves(
        collection: &Arc<SetCollection>,
        (similarity, threshold, algorithm): (Similarity, Threshold, JoinAlgorithm),
        isa: Isa,
        tiling: Tiling,
    ) -> Result<Self, JoinError> {
        let bounds = Bounds::new(similarity, threshold)?;
        let tiled = match algorithm {
            JoinAlgorithm::GpuSignatures => Some(Tiled::all(collection)),
            JoinAlgorithm::Auto => tiling.choose(collection, bounds),
            _ => None,
        };
        match tiled {
            Some(tiled) => Self::divided(collection, similarity, bounds, isa, tiled),
            None => Self::new(collection, similarity, threshold, algorithm, isa),
        }
    }

    /// A join that hands some probes over as tiles, and finds the candidates of the others.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub(super) fn divided(
        collection: &Arc<SetCollection>,
        similarity: Similarity,
        bounds: Bounds,
        isa: Isa,
        Tiled { ranks, has_others, device }: Tiled,
    ) -> Result<Self, JoinError> {
        let sets = JoinedSets::of_one(collection);
        let budget = &mut collection.budget();
        let tiled = Arc::new(TiledSets::new(collection, budget)?);
        let tiler = Tiler::new(&tiled, bounds, ranks.clone());
        let finder: Box<dyn Find> = if has_others {
            Box::new(SignatureJoin::new(collection, bounds, isa, &ranks, budget)?)
        } else {
            Box::new(Nothing)
        };
        let (tiler, counters) = (Some(tiler), JoinCounters::default());
        Ok(Self { sets, isa, similarity, finder, is_exhausted: false, tiler, device, counters })
    }

    /// Puts the next tiles in the list, in place of those that it holds; their sets, unless there
    /// are no more.
    pub(super) fn next_tiles(&mut self, list: &mut TileList) -> Option<Arc<TiledSets>> {
        list.clear();
        let tiler = self.tiler.as_mut()?;
        tiler.fill(list);
        self.counters.postings += list.pairs();
        (!list.tiles.is_empty()).then(|| Arc::clone(tiler.sets()))
    }

    /// So many pairs of tiles have passed the test by signatures.
    pub(super) fn survived(&mut self, pairs: u64) {
        self.counters.pre_candidates += pairs;
        self.counters.candidates += pairs;
    }

    /// What answers its tiles; `None` for a join that has none.
    pub(super) fn tiler(&self) -> Option<&Tiler> {
        self.tiler.as_ref()
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

    /// The sets that its chunks name.
    #[must_use]
    pub fn sets(&self) -> &JoinedSets {
        &self.sets
    }

    /// Counts the similar pairs.
    #[must_use]
    pub fn count(mut self) -> JoinCounters {
        let mut chunk = CandidateChunk::with_bytes(Self::CHUNK_BYTES);
        while self.next_chunk(&mut chunk) {
            self.counters.results += chunk.count(self.isa, &self.sets);
        }
        self.counters
    }

    /// Calls `take` with each similar pair, in no particular order.
    pub fn for_each(mut self, mut take: impl FnMut(SimilarPair)) -> JoinCounters {
        let mut chunk = CandidateChunk::with_bytes(Self::CHUNK_BYTES);
        while self.next_chunk(&mut chunk) {
            let overlaps = chunk.verify(self.isa, &self.sets);
            for pair in similar_pairs(&self.sets, self.similarity, &chunk, &overlaps) {
                take(pair);
                self.counters.results += 1;
            }
        }
        self.counters
    }
}

impl SimilarPair {
    pub(super) fn new(
        similarity: Similarity,
        (left, right, overlap): (Partner<'_>, Partner<'_>, u32),
    ) -> Self {
        let similarity = similarity.of(overlap, left.size(), right.size());
        Self { left: left.id(), right: right.id(), overlap, similarity }
    }
}

/// A set of a pair.
#[derive(Debug, Clone, Copy)]
pub(super) struct Partner<'a> {
    sets: &'a SetCollection,
    set: u32,
}

impl<'a> Partner<'a> {
    fn id(self) -> u32 {
        self.sets.id(self.set)
    }

    fn size(self) -> u32 {
        self.sets.size(self.set)
    }

    pub(super) fn side(self) -> Side {
        self.sets.side(self.set)
    }

    /// Where its [columns](Self::carried) are.
    pub(super) fn place(self) -> u32 {
        self.sets.places()[self.set as usize]
    }

    /// The columns of its collection.
    pub(super) fn carried(self) -> Option<&'a Carried> {
        self.sets.carried()
    }
}

/// A pair, given as probe, candidate and overlap: the left set, the right one, and their overlap.
pub(super) fn partners(
    JoinedSets { probes, candidates }: &JoinedSets,
    (probe, candidate, overlap): (u32, u32, u32),
) -> (Partner<'_>, Partner<'_>, u32) {
    let is_left = match probes.side(probe) {
        Side::Left => probes.is_two_sided() || probes.is_left(probe, candidate),
        Side::Right => false,
    };
    let probe = Partner { sets: probes, set: probe };
    let candidate = Partner { sets: candidates, set: candidate };
    let (left, right) = if is_left { (probe, candidate) } else { (candidate, probe) };
    (left, right, overlap)
}

/// The pairs of a chunk that are similar, with the ids of their sets.
pub(super) fn similar_pairs<'a>(
    sets: &'a JoinedSets,
    similarity: Similarity,
    chunk: &'a CandidateChunk,
    overlaps: &'a [u32],
) -> impl Iterator<Item = SimilarPair> + 'a {
    chunk.similar(overlaps).map(move |pair| SimilarPair::new(similarity, partners(sets, pair)))
}
