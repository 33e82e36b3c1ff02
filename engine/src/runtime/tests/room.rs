//! Sinks whose reader has stopped: they hold up nothing but their own rows.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::runtime::RunPhase;

/// Writes the lowest byte of each number into a non-blocking pipe.
struct IntoPipe {
    pipe: PipeWriter,
    left: Vec<u8>,
}

impl IntoPipe {
    fn new() -> (Self, PipeReader) {
        let (reader, pipe) = pipe().unwrap();
        rustix::io::ioctl_fionbio(&pipe, true).unwrap();
        (Self { pipe, left: Vec::new() }, reader)
    }
}

impl Operator for IntoPipe {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.left = values(&input.into_records()).iter().map(|n| n.to_le_bytes()[0]).collect();
        self.resume(out)
    }

    fn resume(&mut self, _: &mut Output) -> Result<Flow, OperatorError> {
        while !self.left.is_empty() {
            match self.pipe.write(&self.left) {
                Ok(written) => drop(self.left.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Flow::AwaitWritable);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Flow::NeedInput)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.pipe.as_fd())
    }
}

/// Sends each batch on in two calls, and answers how many rows came, also between the two.
struct Halves {
    rows: Arc<AtomicU64>,
    second: Option<RecordBatch>,
}

impl Operator for Halves {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = input.into_records();
        let half = records.num_rows() / 2;
        self.rows.fetch_add(records.num_rows() as u64, Ordering::Relaxed);
        out.send(records.slice(0, half));
        self.second = Some(records.slice(half, records.num_rows() - half));
        Ok(Flow::HaveOutput)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.second.take().into_iter().for_each(|records| out.send(records));
        Ok(Flow::NeedInput)
    }

    fn can_answer(&self) -> bool {
        true
    }

    fn query(&self, _: &Request, _: Option<QueryPayload>) -> Result<Response, QueryError> {
        Ok(Response::Answer(batch([self.rows.load(Ordering::Relaxed)])))
    }
}

fn pipeline(numbers: Numbers, placement: Placement) -> (Graph, PipeReader, Arc<AtomicU64>) {
    let (into_pipe, reader) = IntoPipe::new();
    let rows = Arc::default();
    let mut graph = Graph::new();
    graph.placement(placement);
    let numbers = graph.add("numbers", source(numbers));
    let halves = Halves { rows: Arc::clone(&rows), second: None };
    let halves = graph.add_after(numbers, "halves", operator(halves));
    graph.add_after(halves, "pipe", sink(into_pipe));
    (graph, reader, rows)
}

/// Waits until the pipe and all queues are full, so that the rows come to a stand.
fn wait_until_full(running: &Running, rows: &AtomicU64) {
    loop {
        let before = rows.load(Ordering::Relaxed);
        thread::park_timeout(Duration::from_millis(50));
        let blocked = running.metrics().stage("pipe").unwrap().parts[0].blocked;
        if before > 0 && rows.load(Ordering::Relaxed) == before && blocked > Duration::ZERO {
            return;
        }
    }
}

#[test]
fn all_rows_arrive_in_order_however_slowly_they_are_read() {
    for placement in [Placement::Fused, Placement::Auto] {
        watched(move || {
            let (graph, mut reader, _) = pipeline(Numbers::to(200_000), placement);
            let running = start(graph, SMALL);
            let mut read: Vec<u8> = Vec::new();
            let mut bytes = [0; 999];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                read.extend(&bytes[..count]);
                thread::yield_now();
            }
            running.join().unwrap();
            assert!(read.into_iter().eq((0..200_000_u64).map(|n| n.to_le_bytes()[0])));
        });
    }
}

#[test]
fn queries_are_answered_while_the_reader_of_a_sink_has_stopped_also_in_a_drain() {
    for placement in [Placement::Fused, Placement::Auto] {
        watched(move || {
            let (graph, mut reader, rows) = pipeline(Numbers::endless(), placement);
            let running = start(graph, SMALL);
            wait_until_full(&running, &rows);
            let ask = || {
                let limit = Duration::from_secs(10);
                let request = Request::new("rows");
                running.queries().query_within("halves", &request, limit).unwrap()
            };
            assert_eq!(values(&ask()), [rows.load(Ordering::Relaxed)]);
            running.stop();
            assert_eq!(values(&ask()), [rows.load(Ordering::Relaxed)], "while it drains");
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            let metrics = running.join().unwrap();
            assert_eq!(metrics.stage("numbers").unwrap().items_out(), read.len() as u64);
        });
    }
}

#[test]
fn a_drain_whose_sink_is_not_read_ends_at_its_limit() {
    for placement in [Placement::Fused, Placement::Auto] {
        watched(move || {
            let (graph, _reader, rows) = pipeline(Numbers::endless(), placement);
            let running = start(graph, SMALL);
            wait_until_full(&running, &rows);
            running.stop_within(Duration::from_millis(20));
            let error = running.join().unwrap_err();
            assert!(matches!(error.cause, RunErrorCause::Aborted), "{error}");
        });
    }
}

/// A closure of a program may wait for anything; its thread cannot look at the clock.
#[test]
fn a_drain_whose_sink_does_not_return_ends_at_its_limit() {
    watched(|| {
        let (spec, permits, _kept) = gated();
        let mut graph = Graph::new();
        graph.placement(Placement::Fused);
        let numbers = graph.add("numbers", source(Numbers::endless()));
        graph.add_after(numbers, "end", spec);
        let mut running = start(graph, SMALL);
        assert!(!running.wait(Duration::from_millis(20)), "the sink is inside a call");
        running.stop_within(Duration::from_millis(20));
        assert!(!running.wait(Duration::from_millis(200)));
        assert_eq!(running.handle().phase(), RunPhase::Aborted);
        drop(permits);
        running.join().unwrap_err();
    });
}
