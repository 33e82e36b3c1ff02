//! The join of a collection as a library: candidates chunk by chunk, and their verification.

use std::sync::Arc;

use trommel_kernels::Isa;

use super::candidates::chunk::CandidateChunk;
use super::candidates::joined_sets::JoinedSets;
use super::candidates::pairs::{SimilarPair, matches};
use super::candidates::tiles::{TileList, TiledSets, Tiler};
use super::find::auto_join::{AutoJoin, AutoOptions, auto_join};
use super::find::filters::{Positions, PositionsAndSignatures, SizesOnly};
use super::find::posting_index::{PostingIndex, PostingOptions};
use super::find::published::group_join::GroupJoin;
use super::find::published::prefix_join::PrefixJoin;
use super::find::searching::{SearchTask, Searching};
use super::find::tile_join::TileJoin;
use super::find::{EmptyFinder, Find, JoinCounters};
use super::parameters::error::JoinError;
use super::parameters::options::JoinAlgorithm;
use super::parameters::tuning::Tuning;
use super::plan::tiling::{TiledRanks, Tiling};
use super::postings::lists::{LISTING_CORES, ListLengths, Planned};
use super::postings::planning::{Planning, Slicing};
use super::similarity::{Bounds, Similarity, Threshold};
use crate::shared::sets::{SetCollection, Shares};

/// The question of a join, and the means to answer the question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinQuestion {
    pub(crate) similarity: Similarity,
    pub(crate) threshold: Threshold,
    pub(crate) algorithm: JoinAlgorithm,
    pub(crate) isa: Isa,
    /// Number of cores that share the work on the sets, in tasks.
    pub(crate) cores: usize,
    /// Number of cores that search the index, in tasks.
    pub(crate) search_cores: usize,
    /// Whether a device verifies the candidates of these tasks; otherwise the tasks verify them.
    pub(crate) verifies_on_device: bool,
    pub(crate) tuning: Tuning,
}

impl JoinQuestion {
    /// Tasks that prepare the index of a join of `collection`, if such tasks pay.
    pub(super) fn planning(self, collection: &Arc<SetCollection>) -> Option<Planning> {
        let bounds = Bounds::new(self.similarity, self.threshold).ok()?;
        let is_by_postings = self.algorithm == JoinAlgorithm::Auto;
        let (cores, slice_min) = (self.search_cores, self.tuning.slice_postings_min);
        let slicing = (cores >= LISTING_CORES).then_some(Slicing { cores, slice_min });
        let plan = || Planning::new(collection, bounds, self.isa, self.shares(), slicing);
        is_by_postings.then(plan)?
    }

    /// Number of pairs of equal sets that are results.
    pub(super) fn pairs_of_copies(self, collection: &SetCollection) -> Result<u64, JoinError> {
        let bounds = Bounds::new(self.similarity, self.threshold)?;
        Ok(collection.pairs_of_copies(|size| bounds.required(size, size) <= size))
    }

    /// The cores that share the work on the sets.
    pub(super) fn shares(self) -> Shares {
        Shares { cores: self.cores, tokens_min: self.tuning.part_tokens_min }
    }
}

/// The sizes whose probes are joined by tiles on a device, by rank.
struct PlannedTiles {
    question: JoinQuestion,
    ranks: Vec<bool>,
}

/// A join of a collection of sets to itself, or of its two sides.
///
/// # Cost
/// One thread does all work: building the index, finding candidates and verifying candidates.
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
    /// Slices of the index that several cores search.
    searching: Option<Searching>,
    /// Source of the tiles, if some probes are joined by tiles.
    tiler: Option<Tiler>,
    /// The sizes whose probes `auto` has planned as tiles for a device.
    planned_for_device: Option<PlannedTiles>,
    /// Finds the remaining pairs when `finder` is exhausted.
    rest: Option<Box<dyn Find>>,
    counters: JoinCounters,
}

impl std::fmt::Debug for SetJoin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetJoin").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl SetJoin {
    /// Bytes of a chunk that is verified on the core that made the chunk, so that the chunk stays
    /// in the second-level cache.
    pub const CHUNK_BYTES: usize = 1 << 16;

    /// A join of `collection`; builds the index of `algorithm`. [`Self::next_chunk`] finds the
    /// candidates.
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
        let tuning = Tuning::default();
        let question = JoinQuestion {
            similarity,
            threshold,
            algorithm,
            isa,
            cores: 1,
            search_cores: 1,
            verifies_on_device: false,
            tuning,
        };
        Self::of(collection, question)
    }

    /// As [`Self::new`], with data of the index that is `planned` already.
    fn with_plan(
        collection: &Arc<SetCollection>,
        planned: &mut Planned,
        JoinQuestion {
            similarity,
            threshold,
            algorithm,
            isa,
            search_cores: cores,
            tuning,
            ..
        }: JoinQuestion,
    ) -> Result<Self, JoinError> {
        assert!(isa.is_available(), "this machine lacks the instruction-set level {isa}");
        let bounds = Bounds::new(similarity, threshold)?;
        let budget = &mut collection.budget();
        let mut searching = None;
        let finder: Box<dyn Find> = match algorithm {
            JoinAlgorithm::Auto => {
                let options = AutoOptions { isa, tuning, only: None, cores };
                let found = auto_join(collection, bounds, options, planned, budget)?;
                on_cores(found, cores, &mut searching)
            }
            JoinAlgorithm::AllPairs => {
                Box::new(PrefixJoin::<SizesOnly>::new(collection, bounds, isa, budget)?)
            }
            JoinAlgorithm::PpJoin => {
                Box::new(PrefixJoin::<Positions>::new(collection, bounds, isa, budget)?)
            }
            JoinAlgorithm::PpJoinBitmap => Box::new(PrefixJoin::<PositionsAndSignatures>::new(
                collection, bounds, isa, budget,
            )?),
            JoinAlgorithm::GroupJoin => Box::new(GroupJoin::new(collection, bounds, isa, budget)?),
            JoinAlgorithm::GpuSignatures => {
                let ranks = TiledRanks::all(collection).ranks;
                Box::new(TileJoin::new(collection, bounds, ranks, isa, budget)?)
            }
        };
        let sets = JoinedSets::Collection(Arc::clone(collection));
        Ok(Self {
            sets,
            isa,
            similarity,
            finder,
            searching,
            tiler: None,
            planned_for_device: None,
            rest: None,
            counters: JoinCounters::default(),
        })
    }

    /// As [`Self::new`].
    pub(super) fn of(
        collection: &Arc<SetCollection>,
        question: JoinQuestion,
    ) -> Result<Self, JoinError> {
        Self::with_plan(collection, &mut Planned::default(), question)
    }

    /// As [`Self::new`], but [`Self::next_tiles`] gives the probes that are compared with all
    /// partners by signatures as tiles: with `gpu_signatures` all probes, with `auto` the probes of
    /// the sizes for which `tiling` finds that tiles on a device pay.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub(super) fn in_waves(
        collection: &Arc<SetCollection>,
        question: JoinQuestion,
        tiling: &Tiling,
        mut planned: Planned,
    ) -> Result<Self, JoinError> {
        let bounds = Bounds::new(question.similarity, question.threshold)?;
        let tiled = match question.algorithm {
            JoinAlgorithm::GpuSignatures => Some(TiledRanks::all(collection)),
            JoinAlgorithm::Auto => {
                tiling.choose(collection, bounds, question.search_cores, planned.lists())
            }
            _ => None,
        };
        match tiled {
            Some(tiled) => Self::with_tiles(collection, question, tiled, planned),
            None => Self::with_plan(collection, &mut planned, question),
        }
    }

    /// A join that compares the probes of the sizes `tiled` in tiles, and looks up all other probes
    /// in an index.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub(super) fn with_tiles(
        collection: &Arc<SetCollection>,
        question: JoinQuestion,
        TiledRanks { ranks, has_others }: TiledRanks,
        mut planned: Planned,
    ) -> Result<Self, JoinError> {
        let JoinQuestion { similarity, threshold, algorithm, isa, tuning, .. } = question;
        let cores = question.search_cores;
        let bounds = Bounds::new(similarity, threshold)?;
        let sets = JoinedSets::Collection(Arc::clone(collection));
        let budget = &mut collection.budget();
        let tiled = Arc::new(TiledSets::new(collection, budget)?);
        let tiler = Tiler::new(&tiled, bounds, ranks.clone());
        let mut searching = None;
        let finder: Box<dyn Find> = if has_others {
            let options = PostingOptions { isa, not_probed: &ranks, tuning, cores };
            let planned = &mut planned;
            let lists = ListLengths::planned(planned, collection, bounds, budget)?;
            let index = PostingIndex::new(collection, bounds, options, lists, planned, budget)?;
            on_cores(AutoJoin::Postings(Box::new(index)), cores, &mut searching)
        } else {
            Box::new(EmptyFinder)
        };
        let is_planned = algorithm == JoinAlgorithm::Auto;
        let planned_for_device = is_planned.then_some(PlannedTiles { question, ranks });
        Ok(Self {
            sets,
            isa,
            similarity,
            finder,
            searching,
            tiler: Some(tiler),
            planned_for_device,
            rest: None,
            counters: JoinCounters::default(),
        })
    }

    /// Replaces all tiles, none of which has been answered, by a finder for the CPU. False if the
    /// tiles stay: the question asks for tiles, or the index does not fit the memory.
    pub(super) fn plan_for_cpu(&mut self) -> bool {
        let (Some(planned), JoinedSets::Collection(sets)) = (&self.planned_for_device, &self.sets)
        else {
            return false;
        };
        let PlannedTiles { question: JoinQuestion { similarity, threshold, .. }, .. } = *planned;
        let JoinQuestion { isa, tuning, .. } = planned.question;
        let only = Some(&planned.ranks[..]);
        let options = AutoOptions { isa, tuning, only, cores: 1 };
        let found = Bounds::new(similarity, threshold).and_then(|bounds| {
            let planned = &mut Planned::default();
            auto_join(sets, bounds, options, planned, &mut sets.budget())
        });
        let Ok(found) = found else { return false };
        self.tiler = None;
        self.rest = Some(found.into_finder());
        true
    }

    /// Replaces the content of `list` by the next tiles, and returns their sets; `None` if there
    /// are no more tiles.
    pub(super) fn next_tiles(&mut self, list: &mut TileList) -> Option<Arc<TiledSets>> {
        list.clear();
        let tiler = self.tiler.as_mut()?;
        tiler.fill(list);
        self.counters.postings += list.pairs();
        (!list.tiles.is_empty()).then(|| Arc::clone(tiler.sets()))
    }

    /// The next part of the index to be searched; none while all searches are under way, or if no
    /// part is left.
    pub(super) fn next_search(&mut self) -> Option<SearchTask> {
        self.searching.as_mut()?.task()
    }

    /// Counts the work of a search since its last return. From now on, other searches can share its
    /// slice.
    pub(super) fn search_returned(&mut self, task: &mut SearchTask) {
        self.counters.add(task.take_counters());
        if let Some(searching) = &mut self.searching {
            searching.returned(task);
        }
    }

    /// Takes back a search that has no more candidates.
    pub(super) fn search_landed(&mut self, task: SearchTask) {
        if let Some(searching) = &mut self.searching {
            searching.landed(task);
        }
    }

    /// Whether a part of the index is being searched.
    pub(super) fn is_searching(&self) -> bool {
        self.searching.as_ref().is_some_and(Searching::is_under_way)
    }

    /// Counts `pairs` pairs of tiles that passed the test by signatures.
    pub(super) fn count_survivors(&mut self, pairs: u64) {
        self.counters.pre_candidates += pairs;
        self.counters.candidates += pairs;
    }

    /// The source of the tiles; `None` for a join without tiles.
    pub(super) fn tiler(&self) -> Option<&Tiler> {
        self.tiler.as_ref()
    }

    /// Replaces the content of `chunk` by the next candidates; false if there are no more.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    ///
    /// use trommel_operators::Isa;
    /// use trommel_operators::set_similarity_join::{
    ///     CandidateChunk, JoinAlgorithm, SetCollector, SetJoin, Side, Similarity,
    /// };
    ///
    /// let mut sets = SetCollector::new(1 << 20);
    /// sets.push(Side::Left, 0, &[1, 2, 3])?;
    /// sets.push(Side::Left, 1, &[1, 2, 3])?;
    /// sets.push(Side::Left, 2, &[1, 2, 9])?;
    /// let (sets, isa) = (Arc::new(sets.finish()?), Isa::selected()?);
    /// let one = "1".parse()?;
    /// let mut join = SetJoin::new(&sets, Similarity::Jaccard, one, JoinAlgorithm::PpJoin, isa)?;
    ///
    /// let mut chunk = CandidateChunk::with_bytes(SetJoin::CHUNK_BYTES);
    /// let mut similar = 0;
    /// while join.next_chunk(&mut chunk) {
    ///     similar += chunk.count(isa, join.sets());
    /// }
    /// assert_eq!(similar, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next_chunk(&mut self, chunk: &mut CandidateChunk) -> bool {
        chunk.clear();
        while !self.finder.fill(chunk, &mut self.counters)
            && let Some(rest) = self.rest.take()
        {
            self.finder = rest;
        }
        self.counters.verified += chunk.len() as u64;
        !chunk.is_empty()
    }

    /// Counts so far. `results` is left to the caller, who verifies the chunks.
    #[must_use]
    pub fn counters(&self) -> JoinCounters {
        self.counters
    }

    /// The sets to which the numbers in the chunks refer.
    #[must_use]
    pub fn sets(&self) -> &JoinedSets {
        &self.sets
    }

    /// Joins to the end and counts the similar pairs.
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
    /// // Two sides: pairs within one side do not count.
    /// let mut sets = SetCollector::new(1 << 20).two_sided();
    /// sets.push(Side::Left, 0, &[1, 2, 3])?;
    /// sets.push(Side::Left, 1, &[1, 2, 3])?;
    /// sets.push(Side::Right, 0, &[2, 3, 4])?;
    /// let sets = Arc::new(sets.finish()?);
    /// let (half, isa) = ("1/2".parse()?, Isa::selected()?);
    /// let join = SetJoin::new(&sets, Similarity::Jaccard, half, JoinAlgorithm::AllPairs, isa)?;
    /// assert_eq!(join.count().results, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count(mut self) -> JoinCounters {
        let mut chunk = CandidateChunk::with_bytes(Self::CHUNK_BYTES);
        while self.next_chunk(&mut chunk) {
            self.counters.results += chunk.count(self.isa, &self.sets);
        }
        self.counters
    }

    /// Joins to the end and calls `take` with each similar pair, in no particular order.
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

/// A finder for one core. For several cores, the result is empty and `searching` gets the slices.
fn on_cores(found: AutoJoin, cores: usize, searching: &mut Option<Searching>) -> Box<dyn Find> {
    match found {
        AutoJoin::Postings(index) if cores > 1 && index.is_divisible() => {
            *searching = Some(Searching::new(*index));
            Box::new(EmptyFinder)
        }
        found => found.into_finder(),
    }
}
