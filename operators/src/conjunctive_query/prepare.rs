//! PREPARE: collects documents in blocks, and queries in buckets.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Ending, NamedInputs, OperatorError};
use trommel_engine::query::{QueryError, Request, Response};
use trommel_kernels::Isa;

use super::answer::chunk::{QueryChunk, QueryWork};
use super::data::growth::GrowingIndex;
use super::data::index::{DOCUMENTS_MAX, Index};
use super::data::segments::IndexSegment;
use super::data::sets::{DocumentError, Sets, names_of};
use super::data::stored::Destinations;
use super::device::choice::BatchChoice;
use super::parameters::options::AnswerOver;
use super::parameters::tuning::Tuning;
use super::plan::buckets::{BucketRules, Buckets};
use super::plan::limits::IN_FLIGHT;
use super::plan::queries::Origin;
use super::plan::waiting::{Arrived, WaitingQueries};
use super::rows::question;
use crate::expressions::ColumnInput;
use crate::shared::budget::{Allowance, Budget, BudgetFull};
use crate::shared::names::ItemNames;
use crate::shared::names::block::SharedNames;
use crate::shared::rejected::BadRows;
use crate::shared::sets::{SetInput, hide};
use crate::wave::{Filled, Producer};

/// The columns of the inputs.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    /// The sets and the names of documents, if there is an input of documents.
    pub(super) documents: Option<(SetInput, Option<ColumnInput>)>,
    /// The sets of queries.
    pub(super) queries: SetInput,
    /// Carried columns of queries.
    pub(super) carry: Vec<usize>,
    pub(super) bad: BadRows,
}

/// Rules of the operator.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) over: AnswerOver,
    pub(super) buckets: BucketRules,
    pub(super) kernels: usize,
    pub(super) memory: Allowance,
    /// Whether documents of the input are dropped, because the index of a file is used in place of
    /// these documents.
    pub(super) is_reused: bool,
    pub(super) isa: Isa,
    pub(super) tuning: Tuning,
}

/// Makes chunks of documents and queries.
pub(super) struct QueryProducer {
    rules: Rules,
    columns: Columns,
    names: SharedNames,
    index: GrowingIndex,
    waiting: WaitingQueries,
    buckets: Buckets,
    device: BatchChoice,
    destinations: Destinations,
    /// The error of a block that has returned.
    failed: Option<BudgetFull>,
    /// Number of chunks in the wave.
    in_flight: usize,
    /// Whether the last batch of queries went to the device.
    is_on_device: bool,
    /// The time of the last call with a time or with input.
    now: Instant,
    /// Whether no input waits: queries are sent to kernels that have nothing to do, because no
    /// further query is about to arrive.
    is_woken: bool,
    has_finished: bool,
    counters: QueryCounters,
}

#[derive(Debug, Default)]
struct QueryCounters {
    queries: u64,
    batches: u64,
    query_batches: u64,
    terms: u64,
}

impl QueryProducer {
    pub(super) fn new(
        rules: Rules,
        columns: Columns,
        names: ItemNames,
        device: BatchChoice,
        destinations: Destinations,
    ) -> Self {
        let mut index = GrowingIndex::new(rules.tuning, rules.kernels);
        if columns.documents.is_none() || rules.is_reused {
            index.end();
        }
        Self {
            buckets: Buckets::new(rules.buckets),
            rules,
            columns,
            names: SharedNames::new(names),
            index,
            waiting: WaitingQueries::default(),
            device,
            destinations,
            failed: None,
            in_flight: 0,
            is_on_device: false,
            now: Instant::now(),
            is_woken: false,
            has_finished: false,
            counters: QueryCounters::default(),
        }
    }

    /// Begins with the terms `names` and the lists of `segment`.
    pub(super) fn begin_with(
        &mut self,
        names: ItemNames,
        segment: IndexSegment,
    ) -> Result<(), BudgetFull> {
        self.names = SharedNames::new(names);
        self.index.begin_with(segment);
        self.budget_with_terms()?;
        Ok(())
    }

    fn take_documents(&mut self, records: &RecordBatch) -> Result<(), OperatorError> {
        let Columns { documents, bad, .. } = &mut self.columns;
        let Some((set, name)) = documents else { unreachable!("there is no input of documents") };
        if self.rules.is_reused {
            return Ok(());
        }
        let first = self.index.documents();
        let count = u32::try_from(records.num_rows()).ok();
        let end = count.and_then(|count| first.checked_add(count));
        if end.is_none_or(|end| end > DOCUMENTS_MAX) {
            return Err(DocumentError::TooMany.into());
        }
        let mut faults = bad.faults();
        let sets = set.of(records, &mut faults)?;
        let names = name.as_ref().map(|name| names_of(records, name, first, &mut faults));
        let names = names.transpose()?;
        bad.settle(0, records, &faults)?;
        let sets = Sets::new(&hide(sets, &faults));
        let budget = self.budget()?;
        let terms = self.names.of_batch(Arc::clone(&sets.values), self.rules.kernels, budget)?;
        let mut budget = self.budget()?;
        budget.take("the terms", self.names.bytes())?;
        budget.take("the documents", self.index.bytes_while_pushed(sets.values.len()))?;
        self.counters.terms += sets.values.len() as u64;
        // The index has the terms before `taken`.
        let (mut begin, mut taken) = (0, 0);
        for row in 0..sets.len() {
            let place = sets.place(row);
            if sets.is_null(row) {
                self.index.extend(&terms, taken..place.start);
                taken = place.end;
            }
            self.index.push(sets.range(row).len());
            if self.index.is_full() || row + 1 == sets.len() {
                self.index.extend(&terms, taken..place.end);
                taken = place.end;
                let names = names.as_ref().map(|names| names.slice(begin, row + 1 - begin));
                names.into_iter().for_each(|names| self.index.push_names(names));
                begin = row + 1;
                if self.index.is_full() {
                    self.index.close();
                }
            }
        }
        self.names.end_batch(terms, self.rules.tuning.block_terms);
        Ok(())
    }

    fn take_queries(
        &mut self,
        records: &RecordBatch,
        entered: Instant,
    ) -> Result<(), OperatorError> {
        let first = self.counters.queries;
        let Columns { queries, documents, bad, .. } = &mut self.columns;
        let input = usize::from(documents.is_some());
        let sets = Sets::new(&queries.usable(input, records, bad)?);
        let has_null_queries = !bad.have_nulls();
        let carried = records.project(&self.columns.carry)?;
        let number = self.counters.query_batches;
        self.counters.query_batches += 1;
        self.counters.queries += records.num_rows() as u64;
        let documents = match self.rules.over {
            AnswerOver::All => None,
            AnswerOver::Arrived => {
                // The block is closed here, so that an index with exactly the documents before
                // these queries exists later.
                self.index.close();
                Some(self.index.documents())
            }
        };
        let index = self.index_of(documents);
        let origin = Origin { number, first, entered, carried };
        let bytes = records.get_array_memory_size();
        self.waiting.push(Arrived { origin, sets, has_null_queries, bytes, documents, index });
        Ok(())
    }

    /// The index of exactly these documents, if that index exists now.
    fn index_of(&self, documents: Option<u32>) -> Option<Arc<Index>> {
        let index = self.index.index();
        let is_there = match documents {
            Some(documents) => index.documents() == documents,
            None => self.index.is_whole(),
        };
        is_there.then(|| Arc::clone(index))
    }

    /// The budget that is left after all data except the terms.
    fn budget(&self) -> Result<Budget, BudgetFull> {
        let mut budget = self.rules.memory.budget();
        budget.take("the index", self.index.index_bytes())?;
        budget.take("the documents", self.index.block_bytes())?;
        budget.take("the queries", self.waiting.bytes() + self.buckets.bytes())?;
        Ok(budget)
    }

    /// The budget that is left after all data, including documents and waiting queries.
    fn budget_with_terms(&self) -> Result<Budget, BudgetFull> {
        let mut budget = self.budget()?;
        budget.take("the terms", self.names.bytes())?;
        Ok(budget)
    }

    /// Notes that the documents have ended; later calls change nothing.
    fn end_documents(&mut self) {
        self.index.end();
        self.settle();
    }

    /// When the index is whole: writes the files of the index, and lets the queries over all
    /// documents begin.
    fn settle(&mut self) {
        if self.index.is_whole() {
            self.destinations.write(self.names.names(), self.index.index());
            self.waiting.attach_whole(self.index.index());
        }
    }

    /// The next work, if there is work to be sent now.
    fn next_work(&mut self, chunk: &mut QueryChunk, budget: &Budget) -> Option<QueryWork> {
        let look_up_bytes = self.index.next_look_up_bytes();
        let has_room = budget.clone().take("the documents", look_up_bytes).is_ok();
        // Segments come before answers, because queries may wait for segments.
        if let Some(work) = self.index.next_work(&mut self.names, has_room) {
            return Some(work);
        }
        if let Some(index) = self.device.next_opening() {
            return Some(QueryWork::Open(index));
        }
        self.waiting.fill(&mut self.buckets, self.names.names());
        // Queries over another index wait for the queries in the buckets.
        let is_blocked = self.waiting.is_ready();
        let all = self.has_finished || is_blocked || self.is_woken && self.is_idle();
        if self.buckets.take(self.now, all, &mut chunk.queries) {
            self.counters.batches += 1;
            if self.is_on_device {
                self.buckets.top_up(&mut chunk.queries);
            }
            let index = self.buckets.index();
            self.is_on_device = self.device.takes(index, &chunk.queries);
            chunk.is_for_device = self.is_on_device;
            return Some(QueryWork::Answer(Arc::clone(index)));
        }
        None
    }

    /// Whether a kernel has nothing to do, or a device if a device has answered the last batch.
    fn is_idle(&self) -> bool {
        let on_devices = IN_FLIGHT * self.device.devices();
        self.in_flight < if self.is_on_device { on_devices } else { self.rules.kernels }
    }
}

impl Producer for QueryProducer {
    type Chunk = QueryChunk;

    fn take(&mut self, port: usize, batch: Payload) -> Result<(), OperatorError> {
        self.destinations.probe()?;
        self.now = Instant::now();
        let entered = batch.origin().map_or(self.now, |origin| origin.entered);
        let records = batch.into_records();
        match self.columns.documents {
            Some(_) if port == 0 => self.take_documents(&records)?,
            _ => self.take_queries(&records, entered)?,
        }
        self.budget_with_terms()?;
        Ok(())
    }

    fn take_rejected(&mut self) -> Option<RecordBatch> {
        self.columns.bad.take_rejected()
    }

    fn port_ended(&mut self, port: usize, ending: Ending) {
        if port == 0 && self.columns.documents.is_some() {
            self.destinations.input_ended(ending);
            self.end_documents();
        }
    }

    fn finish(&mut self) -> Result<(), OperatorError> {
        self.has_finished = true;
        self.end_documents();
        Ok(())
    }

    fn wake_at(&self) -> Option<Instant> {
        // This time has passed, so the call comes as soon as no input waits.
        if self.index.has_work(&self.names) || self.waiting.is_ready() {
            return Some(self.now);
        }
        if !self.buckets.is_empty() && self.is_idle() {
            return Some(self.now);
        }
        self.buckets.next_due()
    }

    fn wake(&mut self, now: Instant) -> Result<(), OperatorError> {
        self.now = now;
        self.is_woken = true;
        Ok(())
    }

    fn fill(&mut self, chunk: &mut QueryChunk) -> Result<Filled, OperatorError> {
        if let Some(full) = self.failed.take() {
            return Err(full.into());
        }
        let mut budget = self.budget_with_terms()?;
        // The merged segment needs room next to its parts, which stay until the merge has landed.
        budget.reserve("the merge of the index", self.index.next_merge_bytes())?;
        if let Some(work) = self.next_work(chunk, &budget) {
            chunk.work = work;
            self.in_flight += 1;
            return Ok(Filled::Chunk);
        }
        // More input may follow the next batch, so it is not known any more whether input waits.
        self.is_woken = false;
        let waits = self.waiting.len() >= self.rules.tuning.waiting_batches;
        let waits_for_segments = self.rules.over == AnswerOver::Arrived && waits;
        Ok(match waits_for_segments && self.index.is_waiting() {
            true => Filled::Waiting,
            false => Filled::Nothing,
        })
    }

    fn end(&mut self) -> Result<(), OperatorError> {
        self.destinations.result()
    }

    fn landed(&mut self, chunk: &mut QueryChunk) {
        // An unfinished chunk is sent again, with its index.
        if chunk.is_unfinished() {
            return;
        }
        self.in_flight -= 1;
        match std::mem::take(&mut chunk.work) {
            QueryWork::LookUp(block, _) => {
                let looked_up = self
                    .budget()
                    .and_then(|budget| self.index.looked_up(block, &mut self.names, &budget));
                self.failed = self.failed.take().or(looked_up.err());
            }
            QueryWork::Built(segment, block) => {
                let waiting = &mut self.waiting;
                let is_waited_for = self.rules.over == AnswerOver::Arrived;
                self.index.built(segment, block, |index| {
                    if is_waited_for {
                        waiting.attach(index);
                    }
                });
            }
            QueryWork::Merge(task) => self.index.merged(task),
            QueryWork::Open(_) => return self.device.opened(),
            QueryWork::Nothing | QueryWork::Build(_) | QueryWork::Answer(_) => return,
        }
        self.settle();
    }

    /// An answer is possible at any time: the index always has the documents whose segments have
    /// been built.
    fn can_answer(&self) -> bool {
        true
    }

    fn queries(&self) -> &'static [&'static str] {
        question::QUERIES
    }

    fn query(&self, request: &Request) -> Result<Response, QueryError> {
        question::answer(request, self.names.names(), self.index.index(), self.rules.isa)
    }

    fn counters(&self) -> Counters {
        let index = self.index.index();
        let postings = index.segments().map(|segment| segment.lists.postings()).sum();
        let mut counters = vec![
            ("documents", self.index.documents().into()),
            ("terms", self.counters.terms),
            ("queries", self.counters.queries),
            ("batches", self.counters.batches),
            ("segments", index.len() as u64),
            ("merges", self.index.merges()),
            ("postings", postings),
            ("index_bytes", index.bytes() as u64),
        ];
        counters.extend(self.columns.bad.counters());
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.columns.bad.named()
    }
}
