//! Several summaries over alternating batches, each on a core of its own.
//!
//! ```text
//! batch ──► shard 1 of 3 ── two of three batches ──► shard 2 of 3 ── every other ──► shard 3 of 3 ──► rows
//!           summary                                  summary                         summary
//! ```
//!
//! Every shard keeps its share of the batches that reach the shard, and sends all other batches on
//! without a change. At the end the summaries travel the same way and are merged
//! ([`merge`](crate::summary::Summary::merge)), so that the result has the bounds of one summary
//! over the whole stream. A query collects the bounds of each shard, exactly as of the batch
//! boundary at which the query was asked, and the thread that asked adds the bounds: a shard only
//! copies its counters.
//!
//! Source: merging as in Cafaro, Pulimeno, Tempesta, *A parallel space saving algorithm for
//! frequent items and the Hurwitz zeta distribution*, Information Sciences 329 (2016). The
//! alternative is the pipeline of filter and counter
//! ([`parallel_filter`](crate::frequent_items::published::parallel_filter)), whose cores share one
//! summary.
//!
//! The shard of a batch depends only on the position of the batch in the stream, not on the speed
//! of the cores: results are repeatable.

use std::time::Instant;

use arrow_schema::SchemaRef;
use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{
    Counters, Ending, Flow, NamedInputs, Operator, OperatorError, Output,
};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};

use super::memory::{StateFull, StateMemory};
use crate::frequent_items::input::columns::{Input, Observations};
use crate::frequent_items::rows::batches::{Outbox, Saving};
use crate::frequent_items::rows::emission::Emission;
use crate::frequent_items::rows::questions::{QUERIES, Question};
use crate::frequent_items::rows::ranked::ranked_schema;
use crate::shared::items::Column;
use crate::summary::{Bounds, Counted, Stored, Summary};

/// A message of a shard to the next shard.
enum Message<K, S> {
    /// A batch that the shard did not keep.
    Batch(Observations),
    /// The rows of an emission are due; these are the bounds of the shards so far.
    Emit(Vec<Bounds<K>>),
    /// The stream has ended; this is the summary of the shards so far.
    End(S),
}

/// A part with one of several summaries.
pub(crate) struct Shard<K, S> {
    /// The summary; `None` after the summary has been sent on, at the end.
    summary: Option<S>,
    input: Input,
    emission: Emission,
    /// Rows on their way out. Only the last shard sends rows and has the file.
    outbox: Outbox<K>,
    memory: StateMemory,
    is_first: bool,
    /// Number of shards after this shard.
    later: usize,
    /// Number of batches sent on since the last kept batch.
    passed: usize,
    /// Bytes of the summary after the summary has been sent on.
    state_bytes: usize,
}

/// A shard for each summary, in the order of the summaries.
pub(crate) fn shards<K: Column, S: Stored<K>>(
    summaries: Vec<(S, StateMemory)>,
    input: &Input,
    emission: Emission,
    mut saving: Saving,
) -> impl Iterator<Item = Shard<K, S>> {
    let (len, input) = (summaries.len(), input.clone());
    summaries.into_iter().enumerate().map(move |(position, (summary, memory))| {
        let is_last = position + 1 == len;
        let saving = if is_last { std::mem::take(&mut saving) } else { Saving::default() };
        Shard {
            summary: Some(summary),
            input: input.clone(),
            emission,
            outbox: Outbox::new(ranked_schema(input.item_type()), saving),
            memory,
            is_first: position == 0,
            later: len - 1 - position,
            passed: 0,
            state_bytes: 0,
        }
    })
}

impl<K: Column, S: Summary<K>> Shard<K, S> {
    /// Keeps the batch, or sends the batch on.
    fn share(&mut self, observations: Observations, out: &mut Output) -> Result<(), StateFull> {
        // A shard keeps one of `later + 1` batches, so that all shards get the same share.
        if self.passed < self.later {
            self.passed += 1;
            self.send(Message::Batch(observations), out);
            return Ok(());
        }
        self.passed = 0;
        let Observations { items, weights } = observations;
        let summary = self.summary.as_mut().expect("the summary leaves when the stream has ended");
        summary.observe(K::lend(items.as_ref()), weights.as_deref());
        self.memory.counted(&items, || summary.state_bytes())
    }

    fn send(&self, message: Message<K, S>, out: &mut Output) {
        let (items, bytes) = match &message {
            Message::Batch(observations) => (observations.items.len(), observations.bytes()),
            Message::Emit(shards) => {
                let monitored: usize = shards.iter().map(|b| b.monitored().len()).sum();
                (0, monitored * size_of::<Counted<K>>())
            }
            Message::End(summary) => (0, summary.state_bytes()),
        };
        out.send_chunk(Chunk::new(message, items, bytes));
    }

    fn summary_mut(&mut self) -> &mut S {
        self.summary.as_mut().expect("the summary leaves when the stream has ended")
    }

    /// Adds the bounds of this shard; adds nothing if the summary has been sent on.
    fn tell(&self, mut shards: Vec<Bounds<K>>) -> Vec<Bounds<K>> {
        shards.extend(self.summary.as_ref().map(Bounds::of));
        shards
    }

    /// Sends the bounds for an emission on; the last shard emits the rows.
    fn emit(&mut self, before: Vec<Bounds<K>>, out: &mut Output) {
        let shards = self.tell(before);
        if self.later > 0 {
            return self.send(Message::Emit(shards), out);
        }
        let selected = self.selected(shards);
        self.outbox.put(selected);
    }

    fn selected(&self, shards: Vec<Bounds<K>>) -> Vec<Counted<K>> {
        let bounds = sum(&shards);
        let monitored = bounds.monitored().iter().map(Counted::as_ref);
        self.emission.report.select(monitored, bounds.observed())
    }
}

/// The bounds of all streams together.
fn sum<K: Column>(shards: &[Bounds<K>]) -> Bounds<K> {
    let mut sum = Bounds::default();
    shards.iter().for_each(|bounds| sum.add(bounds));
    sum
}

impl<K: Column, S: Stored<K>> Operator for Shard<K, S> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.outbox.check()?;
        if self.is_first {
            let observations = self.input.read(&input.into_records(), out)?;
            let items = observations.items.len();
            self.share(observations, out)?;
            if self.emission.is_due(items) {
                self.emit(Vec::new(), out);
            }
            return self.resume(out);
        }
        match input.into_value::<Message<K, S>>() {
            Message::Batch(observations) => self.share(observations, out)?,
            Message::Emit(shards) => self.emit(shards, out),
            Message::End(summary) => self.summary_mut().merge(&summary)?,
        }
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.outbox.advance(out, || self.summary.as_ref().map(Stored::snapshot)))
    }

    fn wake_at(&self) -> Option<Instant> {
        self.emission.wake_at()
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        if self.emission.has_passed(now) {
            self.emit(Vec::new(), out);
        }
        self.resume(out)
    }

    fn port_ended(&mut self, _port: usize, ending: Ending) {
        self.outbox.input_ended(ending);
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        if self.later == 0 {
            let selected = self.selected(self.tell(Vec::new()));
            self.outbox.put_last(selected);
            return self.resume(out);
        }
        let summary = self.summary.take().expect("finished once");
        self.state_bytes = summary.state_bytes();
        self.send(Message::End(summary), out);
        Ok(Flow::NeedInput)
    }

    /// Rows that wait to leave change no count.
    fn can_answer(&self) -> bool {
        true
    }

    fn queries(&self) -> &'static [&'static str] {
        QUERIES
    }

    fn query(
        &self,
        request: &Request,
        payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let question = Question::<K>::read(request, QUERIES, self.input.item_type())?;
        let before = payload.map_or_else(Vec::new, |payload| {
            *payload.downcast::<Vec<Bounds<K>>>().expect("shards count the same items")
        });
        let shards = self.tell(before);
        if self.later > 0 {
            return Ok(Response::Forward(Box::new(shards)));
        }
        let (request, schema) = (request.clone(), SchemaRef::clone(self.outbox.schema()));
        Ok(Response::Compute(Box::new(move || {
            let bounds = sum(&shards);
            let monitored = bounds.monitored().iter().map(Counted::as_ref);
            let unmonitored = || bounds.unmonitored();
            question.answer(&request, &schema, monitored, bounds.observed(), unmonitored)?.compute()
        })))
    }

    fn named_inputs(&self) -> NamedInputs {
        self.input.named()
    }

    fn counters(&self) -> Counters {
        let mut counters = if self.is_first { self.input.counters() } else { Counters::new() };
        let state_bytes = self.summary.as_ref().map_or(self.state_bytes, S::state_bytes);
        counters.push(("state_bytes", state_bytes as u64));
        if let Some(merged) = self.summary.as_ref().filter(|_| self.later == 0) {
            counters.push(("observed", merged.observed()));
        }
        counters
    }
}
