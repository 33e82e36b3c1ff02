//! A join as a library: candidates chunk by chunk, and what becomes of them.

use std::sync::Arc;

use trommel_kernels::Isa;

use super::candidates::chunk::CandidateChunk;
use super::candidates::joined_sets::JoinedSets;
use super::candidates::pairs::{SimilarPair, matches};
use super::candidates::tiles::{TileList, TiledSets, Tiler};
use super::cost::tiling::{TiledRanks, Tiling};
use super::error::JoinError;
use super::find::group_join::GroupJoin;
use super::find::posting_join::PostingJoin;
use super::find::prefix_join::PrefixJoin;
use super::find::tile_join::TileJoin;
use super::find::{EmptyFinder, Find, JoinCounters};
use super::options::JoinAlgorithm;
use super::similarity::{Bounds, Similarity, Threshold};
use crate::sets::SetCollection;

/// What is similar, and how it is found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinQuestion {
    pub(crate) similarity: Similarity,
    pub(crate) threshold: Threshold,
    pub(crate) algorithm: JoinAlgorithm,
    pub(crate) isa: Isa,
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
                Box::new(PostingJoin::new(collection, bounds, isa, &[], budget)?)
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
        let sets = JoinedSets::Collection(Arc::clone(collection));
        let (tiler, counters) = (None, JoinCounters::default());
        Ok(Self { sets, isa, similarity, finder, is_exhausted: false, tiler, counters })
    }

    /// As [`Self::new`], but what is compared by signatures of all pairs is handed over as tiles,
    /// by [`Self::next_tiles`]: with `gpu_signatures` everything, with `auto` the probes of those
    /// sizes for which that pays on the device.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub(super) fn in_waves(
        collection: &Arc<SetCollection>,
        JoinQuestion { similarity, threshold, algorithm, isa }: JoinQuestion,
        tiling: &Tiling,
    ) -> Result<Self, JoinError> {
        let bounds = Bounds::new(similarity, threshold)?;
        let tiled = match algorithm {
            JoinAlgorithm::GpuSignatures => Some(TiledRanks::all(collection)),
            JoinAlgorithm::Auto => tiling.choose(collection, bounds),
            _ => None,
        };
        match tiled {
            Some(tiled) => Self::with_tiles(collection, similarity, bounds, isa, tiled),
            None => Self::new(collection, similarity, threshold, algorithm, isa),
        }
    }

    /// A join that hands some probes over as tiles, and finds the candidates of the others.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub(super) fn with_tiles(
        collection: &Arc<SetCollection>,
        similarity: Similarity,
        bounds: Bounds,
        isa: Isa,
        TiledRanks { ranks, has_others }: TiledRanks,
    ) -> Result<Self, JoinError> {
        let sets = JoinedSets::Collection(Arc::clone(collection));
        let budget = &mut collection.budget();
        let tiled = Arc::new(TiledSets::new(collection, budget)?);
        let tiler = Tiler::new(&tiled, bounds, ranks.clone());
        let finder: Box<dyn Find> = if has_others {
            Box::new(PostingJoin::new(collection, bounds, isa, &ranks, budget)?)
        } else {
            Box::new(EmptyFinder)
        };
        let (tiler, counters) = (Some(tiler), JoinCounters::default());
        Ok(Self { sets, isa, similarity, finder, is_exhausted: false, tiler, counters })
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
    pub(super) fn count_survivors(&mut self, pairs: u64) {
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
            for found in matches(&self.sets, &chunk, &overlaps) {
                take(found.pair(self.similarity));
                self.counters.results += 1;
            }
        }
        self.counters
    }
}
