//! Algorithm Parallel Filter: the filter's two halves as two parts, which may run on two cores.
//!
//! ```text
//! batch ──► FilterPart (X) ── missed items, and X ──► CounterPart (Y) ──► rows
//!              ▲              when exchanges are due       │
//!              └───────────────── X, consistent again ─────┘
//! ```
//!
//! Source: Roy, Teubner, Alonso, *Efficient Frequent Item Counting in Multi-Core Hardware*, KDD
//! 2012, §4.1 (Figures 9 and 10) and §5 (queries). Missed items are sent without waiting. Only an
//! exchange is a round trip; meanwhile the filter stays in the middle of a batch. Messages keep
//! their order, so Y counts the same items as after the sequential filter, and the results do not
//! depend on the cores.
//!
//! Departures from the paper: a message has the missed items of a batch, not one item. The paper
//! sends bXmin and receives bYmax once for every exchange; in this operator, all of X travels to
//! the counter, the counter does all exchanges that are due, and X travels back. So a repair of up
//! to |X| exchanges is one round trip. X has some hundred bytes, and sending these bytes costs less
//! than a message.

use std::time::Instant;

use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{
    Counters, Ending, Flow, NamedInputs, Operator, OperatorError, Output,
};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};

use crate::frequent_items::counting::memory::StateMemory;
use crate::frequent_items::input::columns::{Input, Observations};
use crate::frequent_items::rows::batches::{Outbox, Saving};
use crate::frequent_items::rows::emission::Emission;
use crate::frequent_items::rows::questions::{
    Question, Report, STATE_QUERIES, check, is_snapshot, snapshot_row,
};
use crate::frequent_items::rows::ranked::ranked_schema;
use crate::shared::items::{Column, Item};
use crate::summary::{Counted, Filter, FilterFront, SpaceSaving, exchange_while_due};

/// A message of the filter to the counter: missed items, and the next step.
struct ToCounter<K: Item> {
    observations: Observations,
    /// Positions of the missed items.
    missed: Vec<u32>,
    then: Then<K>,
}

impl<K: Column> ToCounter<K> {
    /// A message without items.
    fn nothing(then: Then<K>) -> Self {
        let observations = Observations { items: K::collect(std::iter::empty()), weights: None };
        Self { observations, missed: Vec::new(), then }
    }
}

enum Then<K: Item> {
    /// No further step.
    Continue,
    /// The counter does the exchanges that are due, and returns X.
    Exchange(FilterFront<K>),
    /// The rows of an emission are due; the message has X.
    Emit(FilterFront<K>),
    /// The last rows are due, and no message follows; the message has X.
    Finish(FilterFront<K>, Ending),
}

/// A batch that the filter has not finished.
struct FilteredBatch {
    observations: Observations,
    position: usize,
}

/// X: absorbs the most frequent items, and sends all other items on.
pub(crate) struct FilterPart<K: Column> {
    /// X; `None` while the counter has X, in the middle of a batch.
    front: Option<FilterFront<K>>,
    input: Input,
    emission: Emission,
    work: Option<FilteredBatch>,
    ending: Ending,
    /// Room for the missed positions of one batch.
    missed: Vec<u32>,
    /// Number of items that X had seen and bytes of X, when X was last sent to the counter.
    observed: u64,
    state_bytes: usize,
    round_trips: u64,
    forwarded: u64,
}

/// Y: counts the items that the filter sends, and answers for X and Y.
pub(crate) struct CounterPart<K: Column> {
    back: SpaceSaving<K>,
    report: Report,
    outbox: Outbox<K>,
    memory: StateMemory,
    /// X, when the stream has ended.
    front: Option<FilterFront<K>>,
}

/// The two halves of `filter` as parts.
pub(crate) fn parts<K: Column>(
    filter: Filter<K>,
    input: Input,
    emission: Emission,
    saving: Saving,
    memory: StateMemory,
) -> (FilterPart<K>, CounterPart<K>) {
    let (front, back) = filter.into_halves();
    let outbox = Outbox::new(ranked_schema(input.item_type()), saving);
    let part = FilterPart {
        front: Some(front),
        input,
        emission,
        work: None,
        ending: Ending::default(),
        missed: Vec::new(),
        observed: 0,
        state_bytes: 0,
        round_trips: 0,
        forwarded: 0,
    };
    (part, CounterPart { back, report: emission.report, outbox, memory, front: None })
}

impl<K: Column> FilterPart<K> {
    /// X. The filter has X at every batch boundary.
    fn front(&self) -> &FilterFront<K> {
        self.front.as_ref().expect("X is away in the middle of a batch only")
    }

    /// Continues the present batch until the batch is used up or the counter has to answer.
    fn advance(&mut self, out: &mut Output) -> Flow {
        let (work, front) = (self.work.take(), self.front.take());
        let work = work.expect("a batch came in, or X came back in the middle of one");
        let mut front = front.expect("X is here when a batch comes in or X comes back");
        let FilteredBatch { observations, mut position } = work;
        let items = K::lend(observations.items.as_ref());
        let len = observations.items.len();
        if self.missed.len() < len {
            self.missed.resize(len, 0);
        }
        let mut missed = 0;
        while position < len && !front.exchange_due() {
            let room = &mut self.missed[missed..];
            let done = match &observations.weights {
                None => front.absorb(items, position, room),
                Some(weights) => front.absorb_weighted(items, weights, position, room),
            };
            position += done.consumed;
            missed += done.missed;
        }
        self.forwarded += missed as u64;
        let missed = self.missed[..missed].to_vec();
        // An exchange is due: X travels to the counter, and the batch waits for the return of X.
        if position < len {
            self.round_trips += 1;
            (self.observed, self.state_bytes) = (front.observed(), front.state_bytes());
            let then = Then::Exchange(front);
            send(ToCounter { observations: observations.clone(), missed, then }, out);
            self.work = Some(FilteredBatch { observations, position });
            return Flow::AwaitReply;
        }
        self.front = Some(front);
        let then = if self.emission.is_due(len) {
            Then::Emit(self.front().clone())
        } else {
            Then::Continue
        };
        if !missed.is_empty() || !matches!(then, Then::Continue) {
            send(ToCounter { observations, missed, then }, out);
        }
        Flow::NeedInput
    }
}

fn send<K: Column>(message: ToCounter<K>, out: &mut Output) {
    let bytes = message.observations.bytes() + size_of_val(&message.missed[..]);
    let items = message.missed.len();
    out.send_chunk(Chunk::new(message, items, bytes));
}

impl<K: Column> Operator for FilterPart<K> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let observations = self.input.read(&input.into_records(), out)?;
        self.work = Some(FilteredBatch { observations, position: 0 });
        Ok(self.advance(out))
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        self.front = Some(reply.into_value::<FilterFront<K>>());
        Ok(self.advance(out))
    }

    fn wake_at(&self) -> Option<Instant> {
        self.emission.wake_at()
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        if self.emission.has_passed(now) {
            send(ToCounter::nothing(Then::Emit(self.front().clone())), out);
        }
        Ok(Flow::NeedInput)
    }

    fn port_ended(&mut self, _port: usize, ending: Ending) {
        self.ending = ending;
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        send(ToCounter::nothing(Then::Finish(self.front().clone(), self.ending)), out);
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
        check::<K>(request, self.input.item_type())?;
        Ok(Response::Forward(Box::new(self.front().clone())))
    }

    fn named_inputs(&self) -> NamedInputs {
        self.input.named()
    }

    fn counters(&self) -> Counters {
        let mut counters = self.input.counters();
        // The counters are read at any time, also while the counter has X.
        let (observed, state_bytes) = match &self.front {
            Some(front) => (front.observed(), front.state_bytes()),
            None => (self.observed, self.state_bytes),
        };
        counters.push(("observed", observed));
        counters.push(("forwarded", self.forwarded));
        counters.push(("round_trips", self.round_trips));
        counters.push(("state_bytes", state_bytes as u64));
        counters
    }
}

impl<K: Column> CounterPart<K> {
    fn selected(&self, front: &FilterFront<K>) -> Vec<Counted<K>> {
        let monitored = front.iter().chain(self.back.iter());
        self.report.select(monitored, front.observed())
    }
}

impl<K: Column> Operator for CounterPart<K> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.outbox.check()?;
        let ToCounter { observations, missed, then } = input.into_value::<ToCounter<K>>();
        let items = K::lend(observations.items.as_ref());
        match &observations.weights {
            None => self.back.observe_at(items, &missed),
            Some(weights) => self.back.observe_weighted_at(items, weights, &missed),
        }
        self.memory.counted(&observations.items, || self.back.state_bytes())?;
        match then {
            Then::Continue => return Ok(Flow::NeedInput),
            Then::Exchange(mut front) => {
                exchange_while_due(&mut front, &mut self.back);
                let (bins, bytes) = (front.bins(), front.state_bytes());
                out.send_reply(Chunk::new(front, bins, bytes));
                return Ok(Flow::NeedInput);
            }
            Then::Emit(front) => self.outbox.put(self.selected(&front)),
            Then::Finish(front, ending) => {
                self.outbox.input_ended(ending);
                self.outbox.put_last(self.selected(&front));
                self.front = Some(front);
            }
        }
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let state = || {
            let front = self.front.take()?;
            Some(Filter::from_halves(front, self.back.clone()).snapshot())
        };
        Ok(self.outbox.advance(out, state))
    }

    /// Rows that wait to leave change no count.
    fn can_answer(&self) -> bool {
        true
    }

    fn query(
        &self,
        request: &Request,
        payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let payload = payload.expect("the filter sends what it knows along");
        let front = payload.downcast::<FilterFront<K>>().expect("the filter counts the same items");
        let monitored = front.iter().chain(self.back.iter());
        if is_snapshot(request) {
            let state = || {
                let filter = Filter::from_halves((*front).clone(), self.back.clone());
                self.outbox.labelled(filter.snapshot())
            };
            return Ok(Response::Answer(snapshot_row(request, monitored, state)?));
        }
        let question = Question::read(request, STATE_QUERIES, &self.outbox.item_type())?;
        let unmonitored = || front.count_min().min(self.back.count_min());
        let schema = self.outbox.schema();
        question.answer(request, schema, monitored, front.observed(), unmonitored)
    }

    fn counters(&self) -> Counters {
        vec![("state_bytes", self.back.state_bytes() as u64)]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
    use arrow_schema::DataType;
    use trommel_engine::batch::{Batch, Origin};
    use trommel_engine::memory::MemoryBudget;
    use trommel_kernels::Isa;

    use super::*;
    use crate::shared::share::Share;

    #[test]
    fn numbers_are_told_while_the_counter_has_the_filter() {
        let filter = Filter::<u32>::new(Isa::Scalar, 4, 2).unwrap();
        let report = Report { n: usize::MAX, share: Share::default() };
        let memory = StateMemory::new(&MemoryBudget::of_process(), 0).unwrap();
        let (input, emission) =
            (Input::of_column(DataType::UInt32), Emission::new(report, None, None));
        let (mut part, _) = parts(filter, input, emission, Saving::default(), memory);
        // At first, all counters get items; then a counter of Y overtakes the filter.
        let items = (0..6).chain(std::iter::repeat_n(5, 50)).chain(0..6);
        let column: ArrayRef = Arc::new(UInt32Array::from_iter_values(items));
        let records = RecordBatch::try_from_iter([("item", column)]).unwrap();
        let origin = Origin { sequence: 0, entered: Instant::now() };
        let batch = Payload::Batch(Batch { records, origin });
        let flow = part.process(0, batch, &mut Output::new()).unwrap();
        assert_eq!(flow, Flow::AwaitReply);
        let counters = part.counters();
        let counter = |name| counters.iter().find(|counter| counter.0 == name).unwrap().1;
        assert!(counter("observed") > 0 && counter("state_bytes") > 0, "{counters:?}");
    }
}
