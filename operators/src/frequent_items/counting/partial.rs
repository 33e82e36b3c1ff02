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
//! counters, each of its bounds is off by at most N_i / k. The bounds of an item in the whole stream
//! are the sums of its bounds at the workers, so they are off by at most the sum of N_i / k, which
//! is N / k: the bound of one summary over the whole stream. Rows are made of the k items with the
//! largest sums.
//!
//! Without READ, a worker gets whatever batches its thread has; so the counts differ from run to
//! run, within their bounds. READ gives batches to the workers in turn: the share of a worker
//! depends only on the positions of the batches, and counts are repeatable. When rows are due, READ
//! sends a mark to each worker after the same batch, and each worker answers with its bounds. So
//! rows are those of a batch boundary.
//!
//! A query asks all workers, and the thread that asked adds the bounds: a worker only copies its
//! counters.
//!
//! Source: merging as in Cafaro, Pulimeno, Tempesta, *A parallel space saving algorithm for
//! frequent items and the Hurwitz zeta distribution*, Information Sciences 329 (2016). The
//! alternative is the pipeline of filter and counter
//! ([`parallel_filter`](crate::frequent_items::published::parallel_filter)), whose cores share one
//! summary.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use arrow_schema::{DataType, SchemaRef};
use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{
    Counters, Ending, Flow, NamedInputs, Operator, OperatorError, Output,
};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response, Share};

use super::memory::StateMemory;
use crate::frequent_items::input::columns::{Input, Observations, WeightsFull};
use crate::frequent_items::rows::batches::{Outbox, Saving};
use crate::frequent_items::rows::emission::Emission;
use crate::frequent_items::rows::questions::{
    Question, Report, STATE_QUERIES, check_counters, is_snapshot, snapshot_row,
};
use crate::frequent_items::rows::ranked::ranked_schema;
use crate::shared::items::Column;
use crate::shared::state::{SnapshotFile, Stamp};
use crate::summary::{Bounds, Counted, Stored, sum_bounds};

/// A message of READ to a worker.
enum Work {
    Batch(Observations),
    /// The rows of an emission are due.
    Emit,
}

/// A message of a worker to MERGE.
enum Message<K, S> {
    /// The bounds of the worker for the next emission of this worker.
    Bounds(usize, Bounds<K>),
    /// The summary of the worker; its stream has ended.
    End(usize, Arc<S>),
}

/// READ: gives batches to the workers in turn, and tells them when rows are due.
pub(crate) struct Read {
    input: Input,
    emission: Emission,
    workers: usize,
}

impl Read {
    pub(crate) fn new(input: Input, emission: Emission) -> Self {
        Self { input, emission, workers: 1 }
    }

    fn emit(&self, out: &mut Output) {
        for worker in 0..self.workers {
            out.send_chunk_to_copy(worker, Chunk::new(Work::Emit, 0, 0));
        }
    }
}

impl Operator for Read {
    fn is_beside(&mut self, copies: usize) {
        self.workers = copies;
    }

    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let observations = self.input.read(&input.into_records(), out)?;
        let (items, bytes) = (observations.items.len(), observations.bytes());
        out.send_chunk(Chunk::new(Work::Batch(observations), items, bytes));
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
        input: Input,
        saving: &Saving,
    ) -> Self {
        Self {
            number,
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

    fn item_type(&self) -> DataType {
        self.input.item_type().clone()
    }

    /// The share of this worker in its state.
    fn share_of_state(&self, request: &Request) -> Share {
        let (request, label) = (request.clone(), Arc::clone(&self.label));
        // The summary is copied here, since the worker goes on.
        Share::new(S::clone(&self.summary), move |copies: &[&S]| {
            let mut merged = S::clone(copies[0]);
            for copy in &copies[1..] {
                merged.merge(copy).expect("workers have like summaries");
            }
            let state = || {
                let mut state = merged.snapshot();
                Stamp { label: label.to_string(), ..Stamp::default() }.put_on(&mut state);
                state
            };
            snapshot_row(&request, merged.iter(), state)
        })
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
                Work::Emit => {
                    let bounds = self.bounds();
                    let bytes = bounds.state_bytes();
                    let message = Message::<K, S>::Bounds(self.number, bounds);
                    out.send_chunk(Chunk::new(message, 0, bytes));
                    return Ok(Flow::NeedInput);
                }
            },
        };
        let summary = Arc::get_mut(&mut self.summary).expect("shared after the end only");
        summary.observe(K::lend(observations.items.as_ref()), observations.weights.as_deref());
        self.memory.counted(&observations.items, || summary.state_bytes())?;
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let bytes = self.summary.state_bytes();
        let end = Message::<K, S>::End(self.number, Arc::clone(&self.summary));
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
        // A share is a copy of all counters.
        check_counters(request, self.summary.iter())?;
        if is_snapshot(request) {
            return Ok(Response::Share(self.share_of_state(request)));
        }
        let question = Question::<K>::read(request, STATE_QUERIES, &self.item_type())?;
        let (request, schema) = (request.clone(), SchemaRef::clone(&self.schema));
        let combine = move |copies: &[&Bounds<K>]| {
            let bounds = sum_bounds(copies.iter().copied().cloned());
            let monitored = bounds.monitored().iter().map(Counted::as_ref);
            let unmonitored = || bounds.unmonitored();
            question.answer(&request, &schema, monitored, bounds.observed(), unmonitored)?.compute()
        };
        Ok(Response::Share(Share::new(self.bounds(), combine)))
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
    waiting: Vec<VecDeque<Bounds<K>>>,
    /// The summaries of the workers that have ended.
    ended: Vec<Option<Arc<S>>>,
    report: Report,
    outbox: Outbox<K>,
    /// Most rows of an emission: the number of items that a summary monitors.
    rows_max: usize,
}

impl<K: Column, S: Stored<K>> Merge<K, S> {
    /// MERGE of workers whose summaries monitor at most `rows_max` items each.
    pub(crate) fn new(item: &DataType, report: Report, saving: Saving, rows_max: usize) -> Self {
        let outbox = Outbox::new(ranked_schema(item), saving);
        Self { waiting: Vec::new(), ended: Vec::new(), report, outbox, rows_max }
    }

    /// The bounds of all workers for the next emission, if all have answered.
    fn next_emission(&mut self) -> Option<Vec<Bounds<K>>> {
        if self.waiting.iter().any(VecDeque::is_empty) {
            return None;
        }
        self.waiting.iter_mut().map(VecDeque::pop_front).collect()
    }

    fn selected(&self, bounds: Vec<Bounds<K>>) -> Result<Vec<Counted<K>>, OperatorError> {
        let mut observed = 0_u64;
        for bounds in &bounds {
            observed = observed.checked_add(bounds.observed()).ok_or(WeightsFull)?;
        }
        let mut sum = sum_bounds(bounds);
        sum.keep(self.rows_max);
        let monitored = sum.monitored().iter().map(Counted::as_ref);
        Ok(self.report.select(monitored, observed))
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
            Message::Bounds(worker, bounds) => self.waiting[worker].push_back(bounds),
            Message::End(worker, summary) => self.ended[worker] = Some(summary),
        }
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        if !self.outbox.has_rows()
            && let Some(bounds) = self.next_emission()
        {
            let selected = self.selected(bounds)?;
            self.outbox.put(selected);
        }
        let Self { outbox, ended, .. } = self;
        Ok(outbox.advance(out, || Self::merged(ended).map(|merged| merged.snapshot())))
    }

    fn port_ended(&mut self, _port: usize, ending: Ending) {
        self.outbox.input_ended(ending);
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.outbox.check()?;
        let bounds = self.ended.iter().flatten().map(|summary| Bounds::of(&**summary));
        let selected = self.selected(bounds.collect())?;
        self.outbox.put_last(selected);
        self.resume(out)
    }
}
