//! The operator with its state in one place: SpaceSaving, the filter in front of it, or the sieve;
//! plain, or with counts that fade.

use std::marker::PhantomData;
use std::time::Instant;

use arrow_schema::DataType;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{
    Counters, Ending, Flow, NamedInputs, NoState, Operator, OperatorError, Output,
};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};

use super::memory::StateMemory;
use crate::frequent_items::input::columns::{Input, Observations, WeightsFull};
use crate::frequent_items::rows::batches::{Outbox, Saving};
use crate::frequent_items::rows::emission::Emission;
use crate::frequent_items::rows::questions::{
    QUERIES, Question, STATE_QUERIES, is_snapshot, snapshot_row,
};
use crate::frequent_items::rows::ranked::ranked_schema;
use crate::shared::items::{Column, StoredItem};
use crate::shared::state::free_bytes_max;
use crate::summary::{Counted, Counts, Decayed, Stored, Summary};

/// Counts with the queries and the state that the operator offers.
pub(crate) trait Tally<K: Column>: Counts<K> {
    /// The queries that are answered.
    const QUERIES: &'static [&'static str] = QUERIES;

    /// The state as bytes, if the state has a format.
    fn snapshot(&self) -> Option<Vec<u8>> {
        None
    }

    /// Replaces the state by `state`.
    fn restore(&mut self, _state: &[u8]) -> Result<(), OperatorError> {
        Err(Box::new(NoState))
    }

    /// Adds `state`.
    fn merge(&mut self, _state: &[u8]) -> Result<(), OperatorError> {
        Err(Box::new(NoState))
    }
}

impl<K: Column, S: Summary<K>> Tally<K> for Decayed<S> {}

impl<K: Column, S: Stored<K>> Tally<K> for S {
    const QUERIES: &'static [&'static str] = STATE_QUERIES;

    fn snapshot(&self) -> Option<Vec<u8>> {
        Some(Stored::snapshot(self))
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), OperatorError> {
        *self = restore_like(self, state)?;
        Ok(())
    }

    fn merge(&mut self, state: &[u8]) -> Result<(), OperatorError> {
        let other = restore_like(self, state)?;
        if self.observed().checked_add(other.observed()).is_none() {
            return Err(Box::new(WeightsFull));
        }
        Ok(Summary::merge(self, &other)?)
    }
}

/// The summary of a written state, which has to be like `configured`.
pub(crate) fn restore_like<K: StoredItem, S: Stored<K>>(
    configured: &S,
    state: &[u8],
) -> Result<S, OperatorError> {
    // A summary like the configured summary takes at most these bytes, without the strings.
    let state_bytes_max = free_bytes_max(state).saturating_add(configured.state_bytes_max());
    let restored = configured.restored(state, state_bytes_max)?;
    configured.check_like(&restored)?;
    Ok(restored)
}

/// A tally, and its rows on their way out.
pub(crate) struct Counter<K, T> {
    tally: T,
    emission: Emission,
    outbox: Outbox<K>,
    memory: StateMemory,
    _item: PhantomData<K>,
}

impl<K: Column, T: Tally<K>> Counter<K, T> {
    pub(crate) fn new(
        tally: T,
        item: &DataType,
        emission: Emission,
        saving: Saving,
        memory: StateMemory,
    ) -> Self {
        let outbox = Outbox::new(ranked_schema(item), saving);
        Self { tally, emission, outbox, memory, _item: PhantomData }
    }

    fn selected(&self) -> Vec<Counted<K>> {
        self.emission.report.select(self.tally.iter(), self.tally.observed())
    }

    /// Counts a batch.
    pub(crate) fn count(
        &mut self,
        Observations { items, weights }: &Observations,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.outbox.check()?;
        self.tally.observe(K::lend(items.as_ref()), weights.as_deref());
        self.memory.counted(items, || self.tally.state_bytes())?;
        if !self.emission.is_due(items.len()) {
            return Ok(Flow::NeedInput);
        }
        self.outbox.put(self.selected());
        Ok(self.advance(out))
    }

    /// The time at which rows are due without another item.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.emission.wake_at()
    }

    /// Sends the rows that are due at `now`.
    pub(crate) fn wake(&mut self, now: Instant, out: &mut Output) -> Flow {
        if self.emission.has_passed(now) {
            self.outbox.put(self.selected());
        }
        self.advance(out)
    }

    /// Sends the rows that are due.
    pub(crate) fn advance(&mut self, out: &mut Output) -> Flow {
        self.outbox.advance(out, || self.tally.snapshot())
    }

    /// Notes how the input ended.
    pub(crate) fn input_ended(&mut self, ending: Ending) {
        self.outbox.input_ended(ending);
    }

    /// Sends the rows of the whole stream.
    pub(crate) fn finish(&mut self, out: &mut Output) -> Flow {
        self.outbox.put_last(self.selected());
        self.advance(out)
    }

    pub(crate) fn answer(&self, request: &Request) -> Result<Response, QueryError> {
        let (monitored, observed) = (self.tally.iter(), self.tally.observed());
        if is_snapshot(request) && T::QUERIES.contains(&request.name()) {
            let state = || {
                let state = self.tally.snapshot();
                self.outbox.labelled(state.expect("a summary that is asked for its state"))
            };
            return Ok(Response::Answer(snapshot_row(request, monitored, state)?));
        }
        let question = Question::<K>::read(request, T::QUERIES, &self.outbox.item_type())?;
        let unmonitored = || self.tally.count_min();
        let schema = self.outbox.schema();
        question.answer(request, schema, monitored, observed, unmonitored)
    }

    pub(crate) fn counters(&self) -> Counters {
        vec![("observed", self.tally.observed()), ("state_bytes", self.tally.state_bytes() as u64)]
    }
}

/// Counts the items of a column.
pub(crate) struct Counting<K, T> {
    input: Input,
    counter: Counter<K, T>,
}

impl<K: Column, T: Tally<K>> Counting<K, T> {
    pub(crate) fn new(input: Input, counter: Counter<K, T>) -> Self {
        Self { input, counter }
    }
}

impl<K: Column, T: Tally<K>> Operator for Counting<K, T> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let entered = input.origin().map_or_else(Instant::now, |origin| origin.entered);
        let observations = self.input.read(&input.into_records(), out)?;
        self.counter.tally.enter(entered);
        self.counter.count(&observations, out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.counter.advance(out))
    }

    fn wake_at(&self) -> Option<Instant> {
        self.counter.wake_at()
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.counter.wake(now, out))
    }

    fn port_ended(&mut self, _port: usize, ending: Ending) {
        self.counter.input_ended(ending);
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.counter.finish(out))
    }

    fn snapshot(&self) -> Option<Vec<u8>> {
        self.counter.tally.snapshot()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), OperatorError> {
        self.counter.tally.restore(state)
    }

    fn merge(&mut self, state: &[u8]) -> Result<(), OperatorError> {
        self.counter.tally.merge(state)
    }

    /// Rows that wait to leave change no count.
    fn can_answer(&self) -> bool {
        true
    }

    fn queries(&self) -> &'static [&'static str] {
        T::QUERIES
    }

    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        self.counter.answer(request)
    }

    fn named_inputs(&self) -> NamedInputs {
        self.input.named()
    }

    fn counters(&self) -> Counters {
        let mut counters = self.input.counters();
        counters.extend(self.counter.counters());
        counters
    }
}
