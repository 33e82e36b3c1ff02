//! An index that grows: the producer and its kernels by hand, chunk by chunk.

use std::collections::VecDeque;
use std::time::Instant;

use trommel_engine::batch::{Batch, Origin, Payload};
use trommel_engine::operator::{Ending, Output};
use trommel_kernels::Isa;

use super::*;
use crate::conjunctive_query::answer::chunk::{QueryChunk, QueryWork};
use crate::conjunctive_query::answer::kernel::QueryKernel;
use crate::conjunctive_query::data::stored::Destinations;
use crate::conjunctive_query::device::flights::QueryFlights;
use crate::conjunctive_query::plan::buckets::BucketRules;
use crate::conjunctive_query::prepare::{Columns, QueryProducer, Rules};
use crate::conjunctive_query::rows::collect::{AnswerConsumer, AnswerRows};
use crate::shared::budget::Allowance;
use crate::shared::names::ItemNames;
use crate::shared::rejected::BadRows;
use crate::shared::sets::SetInput;
use crate::wave::{Consumer, Device, DeviceSession, Filled, Kernel, Producer, Taken, WaveChunk};

/// No test takes an hour, so queries become due only when a test says so.
const DEADLINE: Duration = Duration::from_secs(3600);

/// The parts of the operator, and the chunks between them.
pub(super) struct Parts {
    producer: QueryProducer,
    kernel: QueryKernel,
    session: DeviceSession,
    device: Option<QueryFlights>,
    consumer: AnswerConsumer,
    pub(super) flying: Vec<QueryChunk>,
    pub(super) rows: Vec<RecordBatch>,
    merges: usize,
    /// Number of batches that the device has answered, and the largest number of segments of a
    /// batch.
    pub(super) on_device: (usize, usize),
    begin: Instant,
}

impl Parts {
    fn new(over: AnswerOver, batch_queries: usize, kernels: usize) -> Self {
        let spec = spec().over(over).batch_queries(batch_queries).device(Device::Cpu);
        Self::of(&spec, kernels)
    }

    /// The parts of an operator of numbers, with its device.
    pub(super) fn of(spec: &ConjunctiveQuery, kernels: usize) -> Self {
        let (isa, tuning) = (Isa::selected().unwrap(), spec.tuning);
        let ConjunctiveQuery { over, output, batch_queries, .. } = *spec;
        let rules = Rules {
            over,
            buckets: BucketRules {
                queries: batch_queries,
                deadline: DEADLINE,
                answer_documents: tuning.answer_documents,
            },
            kernels,
            memory: Allowance::new(1 << 24),
            is_reused: false,
            isa,
            tuning,
        };
        let schema = batch(&[], 0, false).schema();
        let queries = SetInput::bind(&[schema], "set").unwrap().remove(0);
        let documents = Some((queries.clone(), None));
        let bad = BadRows::new(None, 2);
        let columns = Columns { documents, queries, carry: Vec::new(), bad };
        let names = ItemNames::new(&DataType::UInt32).unwrap();
        let session = DeviceSession::new(spec.device);
        let (choice, open) = spec.choice(&session, kernels);
        let mut kernel = QueryKernel::new(isa, output, open);
        let rows = AnswerRows::new(output, &arrow_schema::Schema::empty(), false, false);
        Self {
            producer: QueryProducer::new(rules, columns, names, choice, Destinations::default()),
            device: kernel.open(&session, None).ok(),
            kernel,
            session,
            consumer: AnswerConsumer::new(rows, tuning),
            flying: Vec::new(),
            rows: Vec::new(),
            merges: 0,
            on_device: (0, 0),
            begin: Instant::now(),
        }
    }

    pub(super) fn take(&mut self, port: usize, sets: &[Terms]) {
        let records = batch(sets, 0, false);
        let origin = Origin { sequence: 0, entered: self.begin };
        self.producer.take(port, Payload::Batch(Batch { records, origin })).unwrap();
        self.fill();
    }

    fn fill(&mut self) {
        loop {
            let mut chunk = QueryChunk::default();
            if self.producer.fill(&mut chunk).unwrap() != Filled::Chunk {
                return;
            }
            self.flying.push(chunk);
        }
    }

    fn wake(&mut self, now: Instant) {
        self.producer.wake(now).unwrap();
        self.fill();
    }

    /// Lets a chunk land.
    pub(super) fn land(&mut self, place: usize) {
        let mut chunk = self.flying.swap_remove(place);
        self.merges += usize::from(matches!(chunk.work, QueryWork::Merge(_)));
        if chunk.is_for_device {
            self.fly(vec![chunk]);
        } else {
            self.kernel.run(&mut chunk);
            if matches!(chunk.work, QueryWork::Open(_)) {
                self.device = self.kernel.open(&self.session, None).ok();
            }
            self.landed(chunk);
        }
    }

    /// Lets all chunks for the device land; as many chunks are in flight as the device has room
    /// for.
    pub(super) fn land_all_on_device(&mut self) {
        let flying = std::mem::take(&mut self.flying);
        let (on_device, others) = flying.into_iter().partition(|chunk| chunk.is_for_device);
        self.flying = others;
        self.fly(on_device);
    }

    fn device(&mut self) -> &mut QueryFlights {
        self.device.as_mut().expect("a chunk is for the device")
    }

    fn fly(&mut self, chunks: Vec<QueryChunk>) {
        let mut flying = VecDeque::new();
        for chunk in chunks {
            while !self.device().has_room(&chunk) {
                self.arrive(&mut flying);
            }
            self.device().submit(&chunk).unwrap();
            flying.push_back(chunk);
        }
        while !flying.is_empty() {
            self.arrive(&mut flying);
        }
    }

    /// Waits for the first chunk in flight.
    fn arrive(&mut self, flying: &mut VecDeque<QueryChunk>) {
        let mut chunk = flying.pop_front().expect("there is room if nothing flies");
        while !self.device().is_done().unwrap() {}
        self.device().collect(&mut chunk).unwrap();
        let QueryWork::Answer(index) = &chunk.work else { unreachable!("it was for the device") };
        self.on_device = (self.on_device.0 + 1, self.on_device.1.max(index.len()));
        self.landed(chunk);
    }

    fn landed(&mut self, mut chunk: QueryChunk) {
        let mut out = Output::new();
        if chunk.has_rows() {
            while self.consumer.take(&chunk, &mut out).unwrap() == Taken::Some {}
        }
        self.rows.extend(out.drain_sent().map(|(_, sent)| sent.into_records()));
        chunk.release();
        self.producer.landed(&mut chunk);
        if chunk.retain_unfinished() {
            self.flying.push(chunk);
        }
        self.fill();
    }

    pub(super) fn end(&mut self) {
        self.producer.port_ended(0, Ending::Whole);
        self.producer.finish().unwrap();
        self.fill();
        while !self.flying.is_empty() {
            self.land(self.flying.len() / 2);
        }
    }
}

#[test]
fn a_query_is_answered_over_the_documents_before_it() {
    let (documents, queries) = (corpus(300), questions(60));
    for (step, lag, batch_queries) in [(1, 0, 1), (3, 2, 4), (10, 3, 1000), (64, 1, 2)] {
        let mut parts = Parts::new(AnswerOver::Arrived, batch_queries, 2);
        let (mut asked, mut expected) = (0, Answers::new());
        for (turn, part) in documents.chunks(step).enumerate() {
            parts.take(0, part);
            let end = (asked + turn % 3).min(queries.len());
            let until = (turn * step + part.len()).min(documents.len());
            expected.extend(by_hand(&documents[..until], &queries[asked..end]));
            parts.take(1, &queries[asked..end]);
            asked = end;
            // Segments, merges and answers land late and out of order.
            while parts.flying.len() > lag {
                parts.land(turn % parts.flying.len());
            }
        }
        parts.end();
        assert_eq!(documents_of(&parts.rows, asked), expected, "{step} {lag} {batch_queries}");
        assert!(parts.merges > 0);
    }
}

#[test]
fn segments_are_few_at_any_time() {
    let mut parts = Parts::new(AnswerOver::Arrived, 10, 1);
    for document in corpus(500) {
        parts.take(0, &[document]);
        parts.take(1, &[Some(vec![1])]);
        while !parts.flying.is_empty() {
            parts.land(0);
        }
        let counters = parts.producer.counters();
        let segments = counters.iter().find(|(name, _)| *name == "segments").unwrap().1;
        assert!(segments <= 12, "{segments} segments");
    }
}

#[test]
fn queries_wait_for_the_end_of_the_documents() {
    let (documents, queries) = (corpus(50), questions(10));
    let mut parts = Parts::new(AnswerOver::All, 4, 1);
    parts.take(1, &queries);
    parts.take(0, &documents);
    while !parts.flying.is_empty() {
        parts.land(0);
    }
    assert!(parts.rows.is_empty());
    parts.producer.port_ended(0, Ending::Whole);
    assert!(parts.producer.wake_at().is_some_and(|at| at <= Instant::now()), "it has work");
    parts.wake(Instant::now());
    while !parts.flying.is_empty() {
        parts.land(0);
        parts.wake(Instant::now());
    }
    assert_eq!(documents_of(&parts.rows, queries.len()), by_hand(&documents, &queries));
}

/// A term of two documents.
const RARE: u32 = 1_000_000;

/// Parts with an index of some documents.
fn ready(batch_queries: usize) -> Parts {
    let mut parts = Parts::new(AnswerOver::All, batch_queries, 1);
    parts.take(0, &corpus(30));
    parts.producer.port_ended(0, Ending::Whole);
    parts.wake(Instant::now());
    while !parts.flying.is_empty() {
        parts.land(0);
    }
    parts
}

#[test]
fn a_query_alone_is_sent_at_once() {
    let mut parts = ready(1000);
    parts.take(1, &[Some(vec![RARE])]);
    assert!(parts.flying.is_empty(), "more input may wait");
    let at = parts.producer.wake_at().unwrap();
    assert!(at <= Instant::now());
    parts.wake(at);
    assert_eq!(parts.flying.len(), 1);
    parts.land(0);
    let begin = parts.begin;
    let counters = parts.consumer.counters();
    let latency = counters.iter().find(|(name, _)| *name == "answer_p50_ns").unwrap().1;
    let most = u64::try_from(begin.elapsed().as_nanos()).unwrap();
    assert!((100..=most + most / 50).contains(&latency), "{latency} of {most} ns");
}

#[test]
fn a_bucket_is_sent_when_it_is_full_or_due() {
    let mut parts = ready(3);
    let alike = || Some(vec![RARE]);
    parts.take(1, &[alike(), alike(), alike(), alike()]);
    assert_eq!(parts.flying.len(), 1, "three queries are a batch");
    let (due, deadline) = (parts.producer.wake_at().unwrap(), parts.begin + DEADLINE);
    assert!(due <= deadline && due + Duration::from_millis(1) > deadline, "the kernel is busy");
    parts.wake(due.checked_sub(Duration::from_micros(1)).unwrap());
    assert_eq!(parts.flying.len(), 1, "it is not due");
    parts.wake(due);
    assert_eq!(parts.flying.len(), 2);
}

#[test]
fn no_input_is_taken_while_queries_wait_for_segments() {
    let mut parts = Parts::new(AnswerOver::Arrived, 4, 1);
    let mut is_waiting = false;
    for _ in 0..3 {
        parts.take(0, &corpus(2));
        parts.take(1, &[Some(vec![1])]);
        is_waiting = parts.producer.fill(&mut QueryChunk::default()).unwrap() == Filled::Waiting;
    }
    assert!(is_waiting);
    while !parts.flying.is_empty() {
        parts.land(0);
    }
    assert_eq!(parts.producer.fill(&mut QueryChunk::default()).unwrap(), Filled::Nothing);
}
