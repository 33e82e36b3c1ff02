//! PREPARE of the join of a collection: collects all sets, then finds their candidates.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ListArray, RecordBatch};
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, NamedInputs, OperatorError};

use super::answer::chunk::JoinChunk;
use super::answer::work::{JoinWork, Search};
use super::find::JoinCounters;
use super::join::{JoinQuestion, SetJoin};
use super::parameters::options::JoinAlgorithm;
use super::plan::opening::Opening;
use super::plan::tiling::Tiling;
use super::plan::verification;
use super::postings::lists::Planned;
use super::postings::planning::Planning;
use crate::shared::columns::pairs::warn_of_copies;
use crate::shared::rejected::BadRows;
use crate::shared::sets::{
    Carrier, Gathering, RowCounts, SetBatch, SetCollection, SetCollector, SetSource, Shares, Side,
    Sorting, TokenNumbers,
};
use crate::wave::{Estimate, Filled, Producer};

/// Number of pairs of copies per set from which on copies are joined once.
const COPY_PAIRS_MIN: u64 = 16;

/// Names of memory in errors: of carried columns, and of the numbers of items.
const COLUMNS: &str = "the columns";
const ITEMS: &str = "the items of the sets";

/// Progress of the join.
enum CollectionPhase {
    /// Before the inputs have ended.
    Collecting(SetCollector),
    /// Before the inputs have ended, in tasks.
    Gathering(Box<Gathering>),
    /// After the inputs have ended, in tasks.
    Sorting(Box<Sorting>),
    Planning(Arc<SetCollection>, Box<Planning>),
    Joining(Box<SetJoin>),
}

/// Collects the sets of one or two inputs, then makes chunks of their candidates.
pub(super) struct CollectionProducer {
    /// `None` only during the change from a phase to the next phase.
    phase: Option<CollectionPhase>,
    sources: Vec<SetSource>,
    bad: BadRows,
    /// Numbers of the items of all sources, and the bytes taken for these numbers.
    tokens: TokenNumbers,
    token_bytes: usize,
    /// Carried columns, if there are any.
    carrier: Option<Carrier>,
    question: JoinQuestion,
    size_min: usize,
    tiling: Tiling,
    opening: Opening,
    /// Whether copies may be joined once: pairs are only counted, on the CPU.
    may_merge_copies: bool,
    /// Whether each pair is a row.
    is_each_pair: bool,
    /// Number of pairs of equal sets, once all sets have arrived.
    pairs_of_copies: u64,
    /// Number of pairs of copies that no chunk has counted yet.
    copied_pairs: u64,
    has_ended: bool,
    /// The error of work that has returned.
    failed: Option<OperatorError>,
    /// Whether a chunk of tiles has returned.
    has_answered_tiles: bool,
    /// Whether tiles were planned for a device that is lost, and have been dropped.
    is_planned_anew: bool,
    rows: RowCounts,
    /// Number of chunks of tasks, which hold neither pairs nor tiles of `fill`.
    tasks: u64,
    times: StepTimes,
}

/// Time of each step of a join, for the report.
#[derive(Debug)]
struct StepTimes {
    /// The end of the previous step.
    since: Instant,
    /// Steps that have ended.
    steps: Counters,
}

impl StepTimes {
    fn new() -> Self {
        Self { since: Instant::now(), steps: Counters::new() }
    }

    /// Notes the end of a step.
    fn ended(&mut self, step: &'static str) {
        let now = Instant::now();
        let time = now.duration_since(mem::replace(&mut self.since, now));
        self.steps.push((step, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
    }
}

impl CollectionProducer {
    /// A producer that adds all sets of at least `size_min` tokens to `collector`, and then joins
    /// the sets.
    pub(super) fn new(
        collector: SetCollector,
        sources: Vec<SetSource>,
        bad: BadRows,
        question: JoinQuestion,
        size_min: usize,
        (tiling, opening): (Tiling, Opening),
    ) -> Self {
        let shares = question.shares();
        let phase = if shares.cores > 1 {
            CollectionPhase::Gathering(Box::new(Gathering::new(collector, size_min, shares)))
        } else {
            CollectionPhase::Collecting(collector)
        };
        let carrier = SetSource::carrier(&sources);
        let tokens = TokenNumbers::new(sources[0].set().item_type());
        let begun = Self::in_phase(phase, question);
        Self { carrier, sources, bad, tokens, size_min, tiling, opening, ..begun }
    }

    /// Joins copies once if there are many copies; for an output that is the number of pairs.
    pub(super) fn merging_copies(mut self) -> Self {
        self.may_merge_copies = true;
        self
    }

    /// Warns of the number of pairs of copies if there are many, because each pair is a row.
    pub(super) fn telling_copies(mut self) -> Self {
        self.is_each_pair = true;
        self
    }

    fn in_phase(phase: CollectionPhase, question: JoinQuestion) -> Self {
        Self {
            phase: Some(phase),
            sources: Vec::new(),
            bad: BadRows::new(None, 0),
            tokens: TokenNumbers::Own,
            token_bytes: 0,
            carrier: None,
            question,
            size_min: 1,
            tiling: Tiling::never(),
            opening: Opening::default(),
            may_merge_copies: false,
            is_each_pair: false,
            pairs_of_copies: 0,
            copied_pairs: 0,
            has_ended: false,
            failed: None,
            has_answered_tiles: false,
            is_planned_anew: false,
            rows: RowCounts::default(),
            tasks: 0,
            times: StepTimes::new(),
        }
    }

    /// A producer whose inputs have ended.
    #[cfg(test)]
    pub(super) fn of_join(join: SetJoin, question: JoinQuestion) -> Self {
        Self::in_phase(CollectionPhase::Joining(Box::new(join)), question)
    }

    /// Adds the sets of a batch from input `port`.
    fn collect(&mut self, port: usize, records: &RecordBatch) -> Result<(), OperatorError> {
        let side = if port == 0 { Side::Left } else { Side::Right };
        let (ids, sets) = self.sources[port].read(port, records, &mut self.bad)?;
        let sets = self.number(sets)?;
        let mut first_row = None;
        if let Some(mut carrier) = self.carrier.take() {
            let bytes = carrier.add(side, self.sources[port].carried().of(records, &ids)?);
            // The sets get row numbers in place of ids, and null rows count, too; the ids replace
            // the row numbers at the end.
            first_row = Some(carrier.number_rows(side, ids.numbers.values())?);
            self.carrier = Some(carrier);
            self.collector().reserve(COLUMNS, bytes)?;
        }
        let sets = SetBatch::new(ids.numbers, sets);
        match &mut self.phase {
            Some(CollectionPhase::Gathering(gathering)) => gathering.take(side, sets, first_row)?,
            _ => {
                let (sets, size_min) = (sets.ascending(), self.size_min);
                let counts = self.collector().push_rows(side, &sets, first_row, size_min)?;
                self.rows.add(counts);
            }
        }
        Ok(())
    }

    /// Replaces the items of sets by their numbers.
    fn number(&mut self, sets: ListArray) -> Result<ListArray, OperatorError> {
        let mut budget = self.collector().budget().clone();
        budget.give_back(self.token_bytes);
        let sets = self.tokens.number(sets, budget)?;
        let bytes = self.tokens.bytes();
        let more = bytes - self.token_bytes;
        self.collector().reserve(ITEMS, more)?;
        self.token_bytes = bytes;
        Ok(sets)
    }

    /// The collector of the sets.
    fn collector(&mut self) -> &mut SetCollector {
        match &mut self.phase {
            Some(CollectionPhase::Collecting(collector)) => collector,
            Some(CollectionPhase::Gathering(gathering)) => gathering.collector_mut(),
            _ => unreachable!("no input follows the end of the inputs"),
        }
    }

    /// The next task of collecting, sorting or planning. Moves on from collecting to sorting when
    /// all tasks of collecting are done.
    fn task(&mut self) -> Result<Option<JoinWork>, OperatorError> {
        let tokens = match &self.phase {
            Some(CollectionPhase::Collecting(collector)) => collector.tokens(),
            Some(CollectionPhase::Gathering(gathering)) => gathering.collector().tokens(),
            _ => 0,
        };
        if let Some(session) = self.opening.due(tokens) {
            return Ok(Some(JoinWork::Open(session)));
        }
        loop {
            match &mut self.phase {
                Some(CollectionPhase::Gathering(gathering)) => {
                    // A small task takes less time here than on the way to a kernel and back.
                    while gathering.is_small()
                        && let Some(mut task) = gathering.task(self.has_ended)
                    {
                        task.run();
                        gathering.landed(task);
                    }
                    if let Some(task) = gathering.task(self.has_ended) {
                        return Ok(Some(JoinWork::Gather(task)));
                    }
                    if !self.has_ended || gathering.is_under_way() {
                        return Ok(None);
                    }
                    self.sort()?;
                }
                Some(CollectionPhase::Sorting(sorting)) => {
                    return Ok(sorting.task().map(JoinWork::Sort));
                }
                Some(CollectionPhase::Planning(_, planning)) => {
                    return Ok(planning.task().map(JoinWork::Plan));
                }
                Some(CollectionPhase::Collecting(_) | CollectionPhase::Joining(_)) | None => {
                    return Ok(None);
                }
            }
        }
    }

    /// Begins to sort the sets, or sorts the sets here if there are few.
    fn sort(&mut self) -> Result<(), OperatorError> {
        self.times.ended("collecting_ns");
        // No further item arrives, and pairs do not name the items.
        self.tokens = TokenNumbers::Own;
        let token_bytes = mem::take(&mut self.token_bytes);
        self.collector().give_back(token_bytes);
        let sorting = match self.phase.take() {
            Some(CollectionPhase::Collecting(collector)) => collector.sort(Shares::ONE)?,
            Some(CollectionPhase::Gathering(gathering)) => {
                self.rows = gathering.counts();
                gathering.sort()?
            }
            _ => unreachable!("the inputs end once"),
        };
        if sorting.is_small() {
            return self.plan(sorting.run()?);
        }
        self.phase = Some(CollectionPhase::Sorting(Box::new(sorting)));
        Ok(())
    }

    /// Begins to plan the join of `collection`, or begins the join if a plan does not pay.
    fn plan(&mut self, mut collection: SetCollection) -> Result<(), OperatorError> {
        if let Some(carrier) = self.carrier.take() {
            let (ids, columns) = carrier.finish(self.question.tuning.carried_batch_bytes)?;
            collection.carry(&ids, columns);
        }
        self.pairs_of_copies = self.question.pairs_of_copies(&collection)?;
        if self.is_each_pair {
            warn_of_copies(self.pairs_of_copies, "sets");
        }
        if self.may_merge_copies && collection.merge_copies(COPY_PAIRS_MIN) {
            // With two sides, the join itself finds the pairs of copies.
            let is_known = !collection.is_two_sided();
            self.copied_pairs = if is_known { self.pairs_of_copies } else { 0 };
            // Tiles are for devices, and a device does not know the number of copies.
            self.tiling = Tiling::never();
        }
        let collection = Arc::new(collection);
        self.times.ended("sorting_ns");
        match self.question.planning(&collection) {
            Some(planning) => {
                self.phase = Some(CollectionPhase::Planning(collection, Box::new(planning)))
            }
            None => self.join(&collection, Planned::default())?,
        }
        Ok(())
    }

    /// Begins to join `collection`.
    fn join(
        &mut self,
        collection: &Arc<SetCollection>,
        planned: Planned,
    ) -> Result<(), OperatorError> {
        self.times.ended("planning_ns");
        let join = SetJoin::in_waves(collection, self.question, &self.tiling, planned)?;
        self.phase = Some(CollectionPhase::Joining(Box::new(join)));
        self.times.ended("indexing_ns");
        Ok(())
    }

    /// Takes back work that a kernel has done completely or in part.
    fn work_landed(&mut self, chunk: &mut JoinChunk) -> Result<(), OperatorError> {
        if let (Some(CollectionPhase::Joining(join)), Some(JoinWork::Search(search))) =
            (&mut self.phase, chunk.work_mut())
        {
            join.search_returned(&mut search.task);
        }
        match (chunk.take_done_work(), &mut self.phase) {
            (Some(JoinWork::Gather(task)), Some(CollectionPhase::Gathering(gathering))) => {
                gathering.landed(task);
            }
            (Some(JoinWork::Sort(task)), Some(CollectionPhase::Sorting(sorting))) => {
                if let Some(collection) = sorting.landed(task)? {
                    self.plan(collection)?;
                }
            }
            (Some(JoinWork::Plan(task)), Some(CollectionPhase::Planning(collection, planning))) => {
                if let Some(planned) = planning.landed(task) {
                    let collection = Arc::clone(collection);
                    self.join(&collection, planned)?;
                }
            }
            (Some(JoinWork::Search(search)), Some(CollectionPhase::Joining(join))) => {
                join.search_landed(search.task);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Producer for CollectionProducer {
    type Chunk = JoinChunk;

    fn take(&mut self, port: usize, batch: Payload) -> Result<(), OperatorError> {
        self.collect(port, &batch.into_records())
    }

    fn take_rejected(&mut self) -> Option<RecordBatch> {
        self.bad.take_rejected()
    }

    fn finish(&mut self) -> Result<(), OperatorError> {
        self.has_ended = true;
        self.times.ended("reading_ns");
        match self.phase {
            Some(CollectionPhase::Collecting(_)) => self.sort(),
            _ => Ok(()),
        }
    }

    fn expected(&self) -> Option<Estimate> {
        let Some(CollectionPhase::Joining(join)) = &self.phase else { return None };
        let tiler = join.tiler()?;
        let (pairs, words) = (tiler.pairs(), tiler.sets().words());
        let data = Estimate {
            device_ns: verification::of_tiles_on_device(pairs, words),
            ..verification::of_data(join.sets())
        };
        Some(match self.question.algorithm {
            // The plan of `auto` has tiles only if a device pays.
            JoinAlgorithm::Auto => Estimate { cpu_ns: f64::INFINITY, ..data },
            _ => {
                let cpu_ns = verification::of_tiles(pairs, words, self.question.isa);
                Estimate { cpu_ns, ..data }
            }
        })
    }

    fn fill(&mut self, chunk: &mut JoinChunk) -> Result<Filled, OperatorError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if let Some(work) = self.task()? {
            self.tasks += 1;
            chunk.hold_work(work);
            return Ok(Filled::Chunk);
        }
        let join = match &mut self.phase {
            Some(CollectionPhase::Joining(join)) => join,
            Some(CollectionPhase::Sorting(_) | CollectionPhase::Planning(..)) => {
                return Ok(Filled::Waiting);
            }
            Some(CollectionPhase::Gathering(_)) if self.has_ended => return Ok(Filled::Waiting),
            _ => return Ok(Filled::Nothing),
        };
        if self.copied_pairs > 0 {
            self.tasks += 1;
            chunk.hold_work(JoinWork::Copies(mem::take(&mut self.copied_pairs)));
            return Ok(Filled::Chunk);
        }
        if let Some(sets) = join.next_tiles(chunk.tiles_mut()) {
            chunk.hold_tiles(sets);
            return Ok(Filled::Chunk);
        }
        if let Some(task) = join.next_search() {
            self.tasks += 1;
            let is_for_device = self.question.verifies_on_device;
            let search = Search::new(task, join.sets().clone(), is_for_device);
            chunk.hold_work(JoinWork::Search(Box::new(search)));
            return Ok(Filled::Chunk);
        }
        if join.next_chunk(chunk.pairs_mut()) {
            chunk.hold_pairs(join.sets().clone());
            return Ok(Filled::Chunk);
        }
        Ok(if join.is_searching() { Filled::Waiting } else { Filled::Nothing })
    }

    fn landed(&mut self, chunk: &mut JoinChunk) {
        if chunk.work_mut().is_some() {
            let landed = self.work_landed(chunk);
            self.failed = self.failed.take().or(landed.err());
            return;
        }
        let Some(CollectionPhase::Joining(join)) = &mut self.phase else { return };
        join.count_survivors(chunk.survivors());
        if chunk.has_tiles() {
            // Chunks land in the order in which they were sent. If the first chunk of tiles is
            // given back, the device has answered no chunk of tiles, and each later chunk of tiles
            // is given back, too.
            self.is_planned_anew |=
                chunk.is_given_back() && !self.has_answered_tiles && join.plan_for_cpu();
            if self.is_planned_anew {
                chunk.drop_tiles();
            }
            self.has_answered_tiles = true;
        }
    }

    fn end(&mut self) -> Result<(), OperatorError> {
        self.times.ended("joining_ns");
        Ok(())
    }

    fn counters(&self) -> Counters {
        let join = match &self.phase {
            Some(CollectionPhase::Joining(join)) => join.counters(),
            _ => JoinCounters::default(),
        };
        let RowCounts { sets, empty_sets, nulls } = match &self.phase {
            Some(CollectionPhase::Gathering(gathering)) => gathering.counts(),
            _ => self.rows,
        };
        let mut counters = vec![
            ("sets", sets),
            ("empty_sets", empty_sets),
            ("nulls", nulls),
            ("pairs_of_copies", self.pairs_of_copies),
            ("tasks", self.tasks),
            ("postings", join.postings),
            ("pre_candidates", join.pre_candidates),
            ("candidates", join.candidates),
        ];
        counters.extend(self.bad.counters());
        counters.extend(&self.times.steps);
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.bad.named()
    }
}
