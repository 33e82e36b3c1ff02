//! Operators that pass every item, each in its own way, or fail.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::SchemaRef;
use trommel::batch::{Chunk, Origin, Payload};
use trommel::error::BindError;
use trommel::operator::{
    BindContext, Body, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output, Part,
};
use trommel::query::{QueryError, QueryPayload, Request, Response};

use super::plan::StepKind;
use super::sources::{batch, schema};

/// Buffers of an operator with work in flight.
const BUFFERS: usize = 3;
/// Time that a chunk is in flight.
const FLIGHT: Duration = Duration::from_micros(200);

pub(super) fn items(records: &RecordBatch) -> &[u64] {
    records.column(0).as_primitive::<UInt64Type>().values()
}

fn spin_for(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Operator of a step.
pub(super) struct Step(pub(super) StepKind);

impl OperatorSpec for Step {
    fn operator(&self) -> &'static str {
        "step"
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let kept = VecDeque::new();
        let parts: Vec<(&'static str, Box<dyn Operator>)> = match self.0 {
            StepKind::Pass => return anywhere(Pass { work: Duration::ZERO, seen: 0 }),
            StepKind::Slow(work) => return anywhere(Pass { work, seen: 0 }),
            StepKind::Split(rows) => return anywhere(Split { rows, kept, holds: false }),
            StepKind::Fail(left) => return anywhere(Break { left, panics: false }),
            StepKind::Panic(left) => return anywhere(Break { left, panics: true }),
            StepKind::Hold => vec![("", Box::new(Split { rows: 64, kept, holds: true }))],
            StepKind::Delay(delay) => vec![("", Box::new(Delay { delay, kept: VecDeque::new() }))],
            StepKind::TwoParts => {
                vec![("front", Box::new(Front::default())), ("back", Box::new(Back { sum: 0 }))]
            }
            StepKind::Waves => vec![
                ("prepare", Box::new(Prepare::new())),
                ("device", Box::new(Device { flying: VecDeque::new(), sum: 0 })),
                ("collect", Box::new(Collector { sum: 0 })),
            ],
        };
        let part = |(name, operator): (&'static str, _)| Part {
            name: name.into(),
            load: Load::Heavy,
            body: Body::Operator(operator),
        };
        Ok(Fragment::new(parts.into_iter().map(part).collect(), vec![schema()]))
    }
}

/// An operator that any worker can run.
fn anywhere(operator: impl Operator + Clone + 'static) -> Result<Fragment, BindError> {
    Fragment::anywhere(Load::Heavy, move || Ok(operator.clone()), vec![schema()])
}

#[derive(Clone)]
struct Pass {
    work: Duration,
    seen: u64,
}

impl Operator for Pass {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        spin_for(self.work);
        self.seen += input.items() as u64;
        out.send(input.into_records());
        Ok(Flow::NeedInput)
    }

    fn query(&self, _: &Request, _: Option<QueryPayload>) -> Result<Response, QueryError> {
        Ok(Response::Answer(batch([self.seen, self.seen])))
    }
}

/// Sends `rows` rows per call, from the beginning or from the end of the stream on.
#[derive(Clone)]
struct Split {
    rows: usize,
    kept: VecDeque<RecordBatch>,
    holds: bool,
}

impl Operator for Split {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.kept.push_back(input.into_records());
        if self.holds { Ok(Flow::NeedInput) } else { self.resume(out) }
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        if let Some(records) = self.kept.pop_front() {
            let rows = self.rows.min(records.num_rows());
            out.send(records.slice(0, rows));
            if rows < records.num_rows() {
                self.kept.push_front(records.slice(rows, records.num_rows() - rows));
            }
        }
        Ok(if self.kept.is_empty() { Flow::NeedInput } else { Flow::HaveOutput })
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.resume(out)
    }
}

struct Delay {
    delay: Duration,
    kept: VecDeque<(Instant, RecordBatch)>,
}

impl Operator for Delay {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        self.kept.push_back((Instant::now() + self.delay, input.into_records()));
        Ok(Flow::NeedInput)
    }

    fn wake_at(&self) -> Option<Instant> {
        self.kept.front().map(|kept| kept.0)
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        while let Some((_, records)) = self.kept.pop_front_if(|kept| kept.0 <= now) {
            out.send(records);
        }
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.kept.drain(..).for_each(|(_, records)| out.send(records));
        Ok(Flow::NeedInput)
    }
}

#[derive(Clone)]
struct Break {
    left: usize,
    panics: bool,
}

impl Operator for Break {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None if self.panics => std::panic::resume_unwind(Box::new("planned")),
            None => return Err("planned".into()),
        }
        out.send(input.into_records());
        Ok(Flow::NeedInput)
    }
}

/// Answers a query with the sums of all parts, which must be those of one position in the stream.
fn sums(payload: Option<QueryPayload>, sum: u64) -> Vec<u64> {
    let mut sums = payload.map_or_else(Vec::new, |payload| *payload.downcast().expect("sums"));
    sums.push(sum);
    sums
}

#[derive(Default)]
struct Front {
    sum: u64,
    batches: u64,
}

impl Operator for Front {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = input.into_records();
        self.sum += records.num_rows() as u64;
        self.batches += 1;
        let asks = self.batches.is_multiple_of(3);
        out.send_chunk(Chunk::new((records, asks), 1, 8));
        Ok(if asks { Flow::AwaitReply } else { Flow::NeedInput })
    }

    fn reply(&mut self, reply: Chunk, _: &mut Output) -> Result<Flow, OperatorError> {
        let seen: u64 = reply.into_value();
        if seen == self.sum { Ok(Flow::NeedInput) } else { Err(format!("{seen} seen").into()) }
    }

    fn query(&self, _: &Request, payload: Option<QueryPayload>) -> Result<Response, QueryError> {
        Ok(Response::Forward(Box::new(sums(payload, self.sum))))
    }
}

struct Back {
    sum: u64,
}

impl Operator for Back {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let (records, asks): (RecordBatch, bool) = input.into_value();
        self.sum += records.num_rows() as u64;
        out.send(records);
        if asks {
            out.send_reply(Chunk::new(self.sum, 1, 8));
        }
        Ok(Flow::NeedInput)
    }

    fn query(&self, _: &Request, payload: Option<QueryPayload>) -> Result<Response, QueryError> {
        Ok(Response::Answer(batch(sums(payload, self.sum))))
    }
}

type Buffer = Box<Vec<u64>>;

fn chunk(buffer: Buffer) -> Chunk {
    let items = buffer.len();
    Chunk::from_box(buffer, items, 8 * items)
}

struct Prepare {
    sum: u64,
    free: Vec<Buffer>,
    waiting: Vec<u64>,
}

impl Prepare {
    fn new() -> Self {
        let free = (0..BUFFERS).map(|_| Buffer::default()).collect();
        Self { sum: 0, free, waiting: Vec::new() }
    }

    fn send(&mut self, out: &mut Output) -> Flow {
        if self.waiting.is_empty() {
            return Flow::NeedInput;
        }
        let Some(mut buffer) = self.free.pop() else { return Flow::AwaitReply };
        buffer.clear();
        buffer.append(&mut self.waiting);
        self.sum += buffer.len() as u64;
        out.send_chunk(chunk(buffer));
        Flow::NeedInput
    }
}

impl Operator for Prepare {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.waiting.extend(items(&input.into_records()));
        Ok(self.send(out))
    }

    fn takes_replies(&self) -> bool {
        true
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        self.free.push(reply.into_box());
        Ok(self.send(out))
    }

    fn query(&self, _: &Request, payload: Option<QueryPayload>) -> Result<Response, QueryError> {
        Ok(Response::Forward(Box::new(sums(payload, self.sum))))
    }
}

struct Device {
    flying: VecDeque<(Buffer, Option<Origin>, Instant)>,
    sum: u64,
}

impl Device {
    fn flow(&self) -> Flow {
        if self.flying.is_empty() { Flow::NeedInput } else { Flow::InFlight }
    }
}

impl Operator for Device {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        let origin = input.origin();
        let buffer: Buffer = input.into_chunk().into_box();
        self.flying.push_back((buffer, origin, Instant::now() + FLIGHT));
        Ok(Flow::InFlight)
    }

    fn takes_replies(&self) -> bool {
        true
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        out.send_reply(reply);
        Ok(self.flow())
    }

    fn finish(&mut self, _: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.flow())
    }

    fn wake_at(&self) -> Option<Instant> {
        self.flying.front().map(|flying| flying.2)
    }

    fn wake(&mut self, _: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        let (buffer, origin, _) = self.flying.pop_front().expect("it named a time");
        self.sum += buffer.len() as u64;
        out.send_chunk(chunk(buffer).with_origin(origin));
        Ok(self.flow())
    }

    fn query(&self, _: &Request, payload: Option<QueryPayload>) -> Result<Response, QueryError> {
        Ok(Response::Forward(Box::new(sums(payload, self.sum))))
    }
}

struct Collector {
    sum: u64,
}

impl Operator for Collector {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let buffer: Buffer = input.into_chunk().into_box();
        self.sum += buffer.len() as u64;
        out.send(batch(buffer.iter().copied()));
        out.send_reply(chunk(buffer));
        Ok(Flow::NeedInput)
    }

    fn query(&self, _: &Request, payload: Option<QueryPayload>) -> Result<Response, QueryError> {
        Ok(Response::Answer(batch(sums(payload, self.sum))))
    }
}

/// Sink that keeps all items and works for a while on each batch.
pub(super) struct Keep {
    pub(super) work: Duration,
    pub(super) kept: Arc<Mutex<Vec<u64>>>,
}

impl Operator for Keep {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        spin_for(self.work);
        self.kept.lock().unwrap().extend(items(&input.into_records()));
        Ok(Flow::NeedInput)
    }
}

impl OperatorSpec for Keep {
    fn operator(&self) -> &'static str {
        "keep"
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::operator(Load::Heavy, *self, Vec::new()))
    }
}
