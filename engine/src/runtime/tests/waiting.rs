//! Sources that wait for descriptors, and the items that a source has taken when the run stops.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::runtime::RunPhase;

/// Numbers of one byte from a pipe. Reads ahead, and sends one number a call.
struct Bytes {
    pipe: PipeReader,
    taken: Vec<u8>,
    calls: Arc<AtomicU64>,
}

impl Bytes {
    fn new() -> (Self, PipeWriter, Arc<AtomicU64>) {
        let (pipe, writer) = pipe().unwrap();
        let calls = Arc::new(AtomicU64::new(0));
        rustix::io::ioctl_fionbio(&pipe, true).unwrap();
        (Self { pipe, taken: Vec::new(), calls: Arc::clone(&calls) }, writer, calls)
    }

    fn send_one(&mut self, out: &mut Output) {
        out.send(batch([u64::from(self.taken.remove(0))]));
    }
}

impl Source for Bytes {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.taken.is_empty() {
            let mut bytes = [0; 100];
            match self.pipe.read(&mut bytes) {
                Ok(0) => return Ok(SourceFlow::Finished),
                Ok(read) => self.taken.extend(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(SourceFlow::AwaitReadable(Duration::MAX));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.send_one(out);
        Ok(SourceFlow::HaveOutput)
    }

    fn stop(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        if self.taken.is_empty() {
            return Ok(SourceFlow::Finished);
        }
        self.send_one(out);
        Ok(SourceFlow::HaveOutput)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.pipe.as_fd())
    }
}

fn wait_for(kept: &Mutex<Vec<u64>>, len: usize) {
    while lock(kept).len() < len {
        thread::yield_now();
    }
}

#[test]
fn a_source_is_called_when_its_pipe_has_data_and_when_it_is_closed() {
    for placement in [Placement::Fused, Placement::Auto] {
        watched(move || {
            let (bytes, mut writer, calls) = Bytes::new();
            let (spec, kept) = collect();
            let mut graph = Graph::new();
            graph.placement(placement);
            let bytes = graph.add("bytes", source(bytes));
            graph.add_after(bytes, "end", spec);
            let mut running = start(graph, QueueLimits::default());
            for byte in 0..50 {
                writer.write_all(&[byte]).unwrap();
                wait_for(&kept, usize::from(byte) + 1);
            }
            let before = calls.load(Ordering::Relaxed);
            assert!(!running.wait(Duration::from_millis(50)));
            let while_idle = calls.load(Ordering::Relaxed) - before;
            assert!(while_idle <= 1, "{while_idle} calls without data");
            drop(writer);
            running.join().unwrap();
            assert!(lock(&kept).iter().copied().eq(0..50));
        });
    }
}

#[test]
fn idle_pipes_cost_an_active_source_nothing() {
    watched(|| {
        let (spec, kept) = collect();
        let mut graph = Graph::new();
        graph.placement(Placement::Fused);
        let end = graph.add("end", spec);
        let (mut writers, mut calls) = (Vec::new(), Vec::new());
        for index in 0..64 {
            let (bytes, writer, counted) = Bytes::new();
            let bytes = graph.add(format!("idle{index}"), source(bytes));
            graph.connect(bytes, end);
            writers.push(writer);
            calls.push(counted);
        }
        let numbers = graph.add("numbers", source(Numbers::to(100_000)));
        graph.connect(numbers, end);
        let running = start(graph, QueueLimits::default());
        wait_for(&kept, 100_000);
        let calls: u64 = calls.iter().map(|calls| calls.load(Ordering::Relaxed)).sum();
        assert!(calls <= 64, "{calls} calls of idle sources");
        // A source that was idle has data now.
        writers[33].write_all(&[7]).unwrap();
        wait_for(&kept, 100_001);
        running.stop();
        running.join().unwrap();
    });
}

#[test]
fn the_end_of_a_run_and_a_descriptor_are_waited_for_together() {
    watched(|| {
        let (bytes, writer, _) = Bytes::new();
        let mut graph = Graph::new();
        let bytes = graph.add("bytes", source(bytes));
        graph.add_after(bytes, "end", collect().0);
        let mut running = start(graph, SMALL);
        let (read, mut write) = pipe().unwrap();
        let long = Duration::from_secs(60);
        assert!(!running.wait_beside(read.as_fd(), Duration::from_millis(20)));
        write.write_all(&[1]).unwrap();
        assert!(!running.wait_beside(read.as_fd(), long), "it is readable");
        assert_eq!(running.handle().phase(), RunPhase::Running);
        let (read, _write) = pipe().unwrap();
        drop(writer);
        assert!(running.wait_beside(read.as_fd(), long), "the input has ended");
        assert!(running.wait_beside(read.as_fd(), long) && running.wait(Duration::ZERO));
        running.join().unwrap();
    });
}

#[test]
fn a_stopped_source_sends_what_it_has_taken_and_takes_no_more() {
    for placement in [Placement::Fused, Placement::Auto] {
        watched(move || {
            let (bytes, mut writer, _) = Bytes::new();
            let (spec, permits, kept) = gated();
            let mut graph = Graph::new();
            graph.placement(placement);
            let bytes = graph.add("bytes", source(bytes));
            graph.add_after(bytes, "end", spec);
            let running = start(graph, SMALL);
            writer.write_all(&[9; 250]).unwrap();
            while rustix::io::ioctl_fionread(&writer).unwrap() > 150 {
                thread::yield_now();
            }
            running.stop();
            running.stop();
            drop(permits);
            let metrics = running.join().unwrap();
            let left = rustix::io::ioctl_fionread(&writer).unwrap();
            let taken = 250 - left;
            assert_eq!(lock(&kept).len() as u64, taken);
            assert_eq!(metrics.stage("bytes").unwrap().items_out(), taken);
        });
    }
}

/// Waits for a descriptor that never blocks, and then ends.
struct Unwatchable {
    file: std::fs::File,
    calls: u32,
}

impl Source for Unwatchable {
    fn next(&mut self, _: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.calls += 1;
        Ok(match self.calls {
            3 => SourceFlow::Finished,
            _ => SourceFlow::AwaitReadable(Duration::MAX),
        })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

#[test]
fn a_descriptor_that_cannot_be_waited_for_is_ready() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let mut graph = Graph::new();
    let numbers = graph.add("file", source(Unwatchable { file, calls: 0 }));
    graph.add_after(numbers, "end", collect().0);
    run(graph, QueueLimits::default()).unwrap();
}

/// Counts numbers in counters of its own.
struct Counting(u64);

impl Operator for Counting {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        self.0 += input.items() as u64;
        if self.0 == 1_000 { Err("one thousand is too much".into()) } else { Ok(Flow::NeedInput) }
    }

    fn counters(&self) -> crate::operator::Counters {
        vec![("counted", self.0)]
    }
}

#[test]
fn counters_are_shown_while_a_stage_works_and_after_a_failure() {
    watched(|| {
        let (bytes, mut writer, _) = Bytes::new();
        let mut graph = Graph::new();
        let bytes = graph.add("bytes", source(bytes));
        graph.add_after(bytes, "end", sink(Counting(0)));
        let running = start(graph, QueueLimits::default());
        let handle = running.handle();
        let counted = move || {
            let metrics = handle.metrics();
            let counters = &metrics.stage("end").unwrap().parts[0].counters;
            counters.first().map_or(0, |counter| counter.1)
        };
        writer.write_all(&[1; 10]).unwrap();
        while counted() < 10 {
            thread::yield_now();
        }
        for _ in 0..10 {
            writer.write_all(&[1; 100]).unwrap();
        }
        running.join().expect_err("it counts too much");
        assert_eq!(counted(), 1_000);
    });
}
