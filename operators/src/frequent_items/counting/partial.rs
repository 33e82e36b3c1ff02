//! A summary for each worker, and the sum of their bounds.
//!
//! ```text
//!  batches ──┬► COUNT 1 ─┐ summaries                   rows at the end
//!            ├► COUNT 2 ─┼──────────► MERGE ──► rows
//!            └► COUNT 3 ─┘
//!
//!                          ┌► COUNT 1 ─┐ bounds        rows before the end, too; or repeatable
//!  batches ──► READ ── turn┼► COUNT 2 ─┼──────► MERGE ──► rows
//!                          └► COUNT 3 ─┘
//! ```
//!
//! Each worker counts the batches that it gets. With N_i the weight that worker i observed and k
//! counters, each of its bounds is off by at most N_i / k. The bounds of an item in the whole
//! stream are the sums of its bounds at the workers, so they are off by at most the sum of N_i / k,
//! which is N / k: the bound of one summary over the whole stream. Rows are made of the k items
//! with the largest sums.
//!
//! Without READ, a worker gets whatever batches its thread has; so the counts differ from run to
//! run, within their bounds. READ gives batches to the workers in turn: the share of a worker
//! depends only on the positions of the batches, and counts are repeatable. When rows are due, READ
//! sends a mark to each worker after the same batch, and each worker answers with its bounds. So
//! rows are those of a batch boundary.
//!
//! If counts fade, READ gives each item the weight by which earlier items fade
//! ([forward decay](crate::summary::Fading)), and the bounds of all workers are divided by the
//! weight of the newest item.
//!
//! A query asks all workers, and the thread that asked adds the bounds: a worker only copies its
//! counters. With READ, the query passes READ and the workers at one position of the stream.
//!
//! Source: merging as in Cafaro, Pulimeno, Tempesta, *A parallel space saving algorithm for
//! frequent items and the Hurwitz zeta distribution*, Information Sciences 329 (2016). The
//! alternative is the pipeline of filter and counter
//! ([`parallel_filter`](crate::frequent_items::published::parallel_filter)), whose cores share one
//! summary.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{
    Counters, Ending, Flow, NamedInputs, Operator, OperatorError, Output,
};
use trommel_engine::query::{CopyPayloads, QueryError, QueryPayload, Request, Response, Share};

use super::memory::StateMemory;
use crate::frequent_items::input::columns::{Input, Observations, WeightsFull};
use crate::frequent_items::rows::batches::{Outbox, Saving};
use crate::frequent_items::rows::emission::Emission;
use crate::frequent_items::rows::questions::{
    QUERIES, Question, Report, STATE_QUERIES, check, check_counters, is_snapshot, snapshot_row,
};
use crate::frequent_items::rows::ranked::ranked_schema;
use crate::shared::items::Column;
use crate::shared::state::{SnapshotFile, Stamp};
use crate::summary::{Bounds, Counted, Fading, Stored, faded, largest_sums, sum_bounds};

/// A message of READ to a worker.
enum Work {
    Batch(Observations),
    /// The rows of an emission are due. The number is the weight of the newest item, 1 unless
    /// counts fade.
    Emit(u64),
    /// Counts that fade are divided by 2 to the power of this number.
    ScaleDown(u32),
}

/// A message of a worker to MERGE.
enum Message<K, S> {
    /// The bounds of the worker for the next emission of this worker, and the weight of the newest
    /// item of the stream.
    Bounds(usize, Bounds<K>, u64),
    /// The summary of the worker, and its bounds, unless they have been sent; its stream has ended.
    End(usize, Arc<S>, Option<Bounds<K>>),
}

/// READ: gives batches to the workers in turn, and tells them when rows are due.
pub(crate) struct Read<K> {
    input: Input,
    emission: Emission,
    /// The weights of items, if counts fade.
    fading: Option<Fading>,
    workers: usize,
    _item: PhantomData<fn() -> K>,
}

impl<K: Column> Read<K> {
    pub(crate) fn new(input: Input, emission: Emission, fading: Option<Fading>) -> Self {
        Self { input, emission, fading, workers: 1, _item: PhantomData }
    }

    fn tell(&self, work: impl Fn() -> Work, out: &mut Output) {
        for worker in 0..self.workers {
            out.send_chunk_to_copy(worker, Chunk::new(work(), 0, 0));
        }
    }

    fn emit(&self, out: &mut Output) {
        let weight = self.weight();
        self.tell(|| Work::Emit(weight), out);
    }

    /// The weight of the newest item.
    fn weight(&self) -> u64 {
        self.fading.as_ref().map_or(1, Fading::weight)
    }

    fn send(observations: Observations, out: &mut Output) {
        let (items, bytes) = (observations.items.len(), observations.bytes());
        out.send_chunk(Chunk::new(Work::Batch(observations), items, bytes));
    }

    /// Sends the items with the weights that make earlier items fade.
    fn send_fading(&mut self, observations: &Observations, entered: Instant, out: &mut Output) {
        let Some(mut fading) = self.fading.take() else { return };
        fading.enter(entered);
        let mut done = 0;
        while done < observations.items.len() {
            if let Some(bits) = fading.rebase() {
                self.tell(|| Work::ScaleDown(bits), out);
            }
            let mut weights = Vec::new();
            fading.fill(&mut weights, observations.items.len() - done);
            let part = observations.part(done..done + weights.len());
            if let Some(own) = &part.weights {
                Fading::multiply(&mut weights, own);
            }
            done += weights.len();
            Self::send(Observations { weights: Some(weights.into()), ..part }, out);
        }
        self.fading = Some(fading);
    }
}

impl<K: Column> Operator for Read<K> {
    fn is_beside(&mut self, copies: usize) {
        self.workers = copies;
    }

    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let entered = input.origin().map_or_else(Instant::now, |origin| origin.entered);
        let observations = self.input.read(&input.into_records(), out)?;
        let items = observations.items.len();
        if self.fading.is_some() {
            self.send_fading(&observations, entered, out);
        } else {
            Self::send(observations, out);
        }
        if self.emission.is_due(items) {
            self.emit(out);
        }
        Ok(Flow::NeedInput)
    }

    fn wake_at(&self) -> Option<Instant> {
        self.emission.wake_at()
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        if self.emission.has_passed(now) {
            self.emit(out);
        }
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        // The last rows of counts that fade need the weight of the newest item.
        if self.fading.is_some() {
            self.emit(out);
        }
        Ok(Flow::NeedInput)
    }

    fn queries(&self) -> &'static [&'static str] {
        if self.fading.is_some() { QUERIES } else { STATE_QUERIES }
    }

    /// Checks the request; MERGE answers with the shares of the workers.
    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        match self.fading {
            Some(_) => drop(Question::<K>::read(request, QUERIES, self.input.item_type())?),
            None => check::<K>(request, self.input.item_type())?,
        }
        Ok(Response::Forward(Box::new(self.weight())))
    }

    fn named_inputs(&self) -> NamedInputs {
        self.input.named()
    }

    fn counters(&self) -> Counters {
        self.input.counters()
    }
}

/// A worker with a summary of its own.
pub(crate) struct Worker<K, S> {
    /// Number of the worker, from 0.
    number: usize,
    /// The summary, which MERGE shares after the end.
    summary: Arc<S>,
    /// The input of a worker without READ.
    input: Input,
    is_behind_read: bool,
    /// Whether counts fade, so that READ asks for the last bounds, too.
    fades: bool,
    memory: StateMemory,
    schema: SchemaRef,
    /// The name of the counted things, for the state that a query asks for.
    label: Arc<str>,
    /// The file for the state, which the first batch makes sure of.
    file: Option<SnapshotFile>,
    _item: PhantomData<K>,
}

impl<K: Column, S: Stored<K>> Worker<K, S> {
    pub(crate) fn new(
        number: usize,
        (summary, memory): (S, StateMemory),
        (input, is_behind_read, fades): (Input, bool, bool),
        saving: &Saving,
    ) -> Self {
        Self {
            number,
            is_behind_read,
            fades,
            summary: Arc::new(summary),
            memory,
            schema: ranked_schema(input.item_type()),
            label: saving.label.as_str().into(),
            file: saving.file.clone(),
            input,
            _item: PhantomData,
        }
    }

    fn bounds(&self) -> Bounds<K> {
        Bounds::of(&*self.summary)
    }

    fn summary_mut(&mut self) -> &mut S {
        Arc::get_mut(&mut self.summary).expect("shared after the end only")
    }

    fn item_type(&self) -> DataType {
        self.input.item_type().clone()
    }

    /// The share of this worker in the answer to a request.
    fn share(&self, request: &Request) -> Result<WorkerShare<K, S>, QueryError> {
        // A share is a copy of all counters.
        check_counters(request, self.summary.iter())?;
        Ok(match is_snapshot(request) {
            true => WorkerShare::State(S::clone(&self.summary)),
            false => WorkerShare::Bounds(self.bounds()),
        })
    }
}

/// The share of a worker in an answer.
enum WorkerShare<K, S> {
    Bounds(Bounds<K>),
    /// The summary, for the query of the state.
    State(S),
}

/// Makes answers of the shares of all workers.
#[derive(Clone)]
struct Answering {
    request: Request,
    item: DataType,
    schema: SchemaRef,
    /// The name of the counted things, which the state has.
    label: Arc<str>,
    /// The weight of the newest item, 1 unless counts fade.
    weight: u64,
}

impl Answering {
    /// Checks the request.
    fn check<K: Column>(&self) -> Result<(), QueryError> {
        check::<K>(&self.request, &self.item)
    }

    fn answer<'a, K: Column, S: Stored<K>>(
        &self,
        shares: impl Iterator<Item = &'a WorkerShare<K, S>>,
    ) -> Result<RecordBatch, QueryError> {
        let (mut bounds, mut states) = (Vec::new(), Vec::new());
        for share in shares {
            match share {
                WorkerShare::Bounds(of_worker) => bounds.push(of_worker.clone()),
                WorkerShare::State(summary) => states.push(summary),
            }
        }
        if let Some((first, others)) = states.split_first() {
            return self.state_of::<K, S>(first, others);
        }
        let question = Question::<K>::read(&self.request, STATE_QUERIES, &self.item)?;
        let (bounds, weight) = (sum_bounds(bounds), self.weight);
        let monitored = bounds.monitored().iter().map(|counted| faded(counted.as_ref(), weight));
        let unmonitored = || bounds.unmonitored().div_ceil(weight);
        let (request, observed) = (&self.request, bounds.observed().div_ceil(weight));
        question.answer(request, &self.schema, monitored, observed, unmonitored)?.compute()
    }

    /// The row with the state of all workers.
    fn state_of<K: Column, S: Stored<K>>(
        &self,
        first: &S,
        others: &[&S],
    ) -> Result<RecordBatch, QueryError> {
        let mut merged = first.clone();
        for other in others {
            merged.merge(other).expect("workers have like summaries");
        }
        let state = || {
            let mut state = merged.snapshot();
            Stamp { label: self.label.to_string(), ..Stamp::default() }.put_on(&mut state);
            state
        };
        snapshot_row(&self.request, merged.iter(), state)
    }
}

impl<K: Column, S: Stored<K>> Operator for Worker<K, S> {
    fn is_copied(&mut self) {
        self.input.is_of_a_copy();
    }

    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        if let Some(file) = self.file.take() {
            file.probe()?;
        }
        let observations = match input {
            Payload::Batch(batch) => self.input.read(&batch.records, out)?,
            chunk @ Payload::Chunk(_) => match chunk.into_value() {
                Work::Batch(observations) => observations,
                Work::ScaleDown(bits) => {
                    self.summary_mut().scale_down(bits);
                    return Ok(Flow::NeedInput);
                }
                Work::Emit(weight) => {
                    let bounds = self.bounds();
                    let bytes = bounds.state_bytes();
                    let message = Message::<K, S>::Bounds(self.number, bounds, weight);
                    out.send_chunk(Chunk::new(message, 0, bytes));
                    return Ok(Flow::NeedInput);
                }
            },
        };
        let (items, weights) = (&observations.items, observations.weights.as_deref());
        self.summary_mut().observe(K::lend(items.as_ref()), weights);
        self.memory.counted(items, || self.summary.state_bytes())?;
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let bytes = self.summary.state_bytes();
        // Each worker sorts its own bounds.
        let bounds = (!self.fades).then(|| self.bounds());
        let end = Message::<K, S>::End(self.number, Arc::clone(&self.summary), bounds);
        out.send_chunk(Chunk::new(end, 0, bytes));
        Ok(Flow::NeedInput)
    }

    fn queries(&self) -> &'static [&'static str] {
        STATE_QUERIES
    }

    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        if self.is_behind_read {
            return Ok(Response::Forward(Box::new(self.share(request)?)));
        }
        let answering = Answering {
            request: request.clone(),
            item: self.item_type(),
            schema: SchemaRef::clone(&self.schema),
            label: Arc::clone(&self.label),
            weight: 1,
        };
        answering.check::<K>()?;
        let combine = move |copies: &[&WorkerShare<K, S>]| answering.answer(copies.iter().copied());
        Ok(Response::Share(Share::new(self.share(request)?, combine)))
    }

    fn named_inputs(&self) -> NamedInputs {
        self.input.named()
    }

    fn counters(&self) -> Counters {
        let mut counters = self.input.counters();
        counters.push(("observed", self.summary.observed()));
        counters.push(("state_bytes", self.summary.state_bytes() as u64));
        counters
    }
}

/// MERGE: adds the bounds of all workers when rows are due.
pub(crate) struct Merge<K, S> {
    /// The bounds of each worker for emissions that other workers have not answered yet.
    waiting: Vec<VecDeque<(Bounds<K>, u64)>>,
    /// Whether counts fade, so that READ asks for the last rows, too.
    fades: bool,
    /// The summaries of the workers that have ended, and their bounds.
    ended: Vec<Option<Arc<S>>>,
    last: Vec<Bounds<K>>,
    report: Report,
    outbox: Outbox<K>,
    /// Most rows of an emission: the number of items that a summary monitors.
    rows_max: usize,
}

impl<K: Column, S: Stored<K>> Merge<K, S> {
    /// MERGE of workers whose summaries monitor at most `rows_max` items each.
    pub(crate) fn new(
        item: &DataType,
        (report, fades): (Report, bool),
        saving: Saving,
        rows_max: usize,
    ) -> Self {
        let outbox = Outbox::new(ranked_schema(item), saving);
        let (waiting, ended, last) = (Vec::new(), Vec::new(), Vec::new());
        Self { waiting, fades, ended, last, report, outbox, rows_max }
    }

    /// The bounds of all workers for the next emission, if all have answered.
    fn next_emission(&mut self) -> Option<(Vec<Bounds<K>>, u64)> {
        if self.waiting.iter().any(VecDeque::is_empty) {
            return None;
        }
        let mut weight = 1;
        let next =
            self.waiting.iter_mut().filter_map(VecDeque::pop_front).map(|(bounds, of_all)| {
                weight = of_all;
                bounds
            });
        Some((next.collect(), weight))
    }

    fn selected(
        &self,
        bounds: Vec<Bounds<K>>,
        weight: u64,
    ) -> Result<Vec<Counted<K>>, OperatorError> {
        let mut observed = Some(0_u64);
        for bounds in &bounds {
            observed = observed.and_then(|sum| sum.checked_add(bounds.observed()));
        }
        // Weights of counts that fade saturate.
        let observed = observed.or(self.fades.then_some(u64::MAX)).ok_or(WeightsFull)?;
        // Counts that fade can become equal by rounding, and their ranks then depend on all of
        // them.
        let n = self.report.n.min(self.rows_max);
        let largest = if self.fades { None } else { largest_sums(&bounds, n) };
        let mut sum = largest.unwrap_or_else(|| sum_bounds(bounds));
        sum.keep(self.rows_max);
        let monitored = sum.monitored().iter().map(|counted| faded(counted.as_ref(), weight));
        Ok(self.report.select(monitored, observed.div_ceil(weight)))
    }

    /// The summary of all workers.
    fn merged(ended: &[Option<Arc<S>>]) -> Option<S> {
        let mut summaries = ended.iter().flatten();
        let mut merged = S::clone(summaries.next()?);
        for summary in summaries {
            merged.merge(summary).expect("workers have like summaries");
        }
        Some(merged)
    }
}

impl<K: Column, S: Stored<K>> Operator for Merge<K, S> {
    fn is_beside(&mut self, copies: usize) {
        self.waiting.resize_with(copies, VecDeque::new);
        self.ended.resize(copies, None);
    }

    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        match input.into_value::<Message<K, S>>() {
            Message::Bounds(worker, bounds, weight) => {
                self.waiting[worker].push_back((bounds, weight));
            }
            Message::End(worker, summary, bounds) => {
                self.ended[worker] = Some(summary);
                self.last.extend(bounds);
            }
        }
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        if !self.outbox.has_rows()
            && let Some((bounds, weight)) = self.next_emission()
        {
            let selected = self.selected(bounds, weight)?;
            self.outbox.put(selected);
        }
        let Self { outbox, ended, .. } = self;
        Ok(outbox.advance(out, || Self::merged(ended).map(|merged| merged.snapshot())))
    }

    fn query(
        &self,
        request: &Request,
        payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let payload = payload.expect("the workers send their shares");
        let payload = payload.downcast::<CopyPayloads>().expect("MERGE is behind copies");
        let share_of = |copy: QueryPayload| {
            *copy.downcast::<WorkerShare<K, S>>().expect("the share of a worker")
        };
        let shares: Vec<_> = payload.copies.into_iter().map(share_of).collect();
        let weight = *payload.first.downcast::<u64>().expect("READ sends a weight");
        let answering = Answering {
            request: request.clone(),
            item: self.outbox.item_type(),
            schema: SchemaRef::clone(self.outbox.schema()),
            label: self.outbox.label().into(),
            weight,
        };
        Ok(Response::Compute(Box::new(move || answering.answer(shares.iter()))))
    }

    /// Rows that wait to leave change no count.
    fn can_answer(&self) -> bool {
        true
    }

    fn port_ended(&mut self, _port: usize, ending: Ending) {
        self.outbox.input_ended(ending);
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        if self.fades {
            return self.resume(out);
        }
        self.outbox.check()?;
        let last = mem::take(&mut self.last);
        let selected = self.selected(last, 1)?;
        self.outbox.put_last(selected);
        self.resume(out)
    }
}
