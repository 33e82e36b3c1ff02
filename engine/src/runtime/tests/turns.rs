//! Turns: no part of a thread starves, and the waiting messages are bounded.

use super::*;

/// A sink that keeps, of each batch, the first number.
fn first_numbers() -> (impl OperatorSpec, Arc<Mutex<Vec<u64>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let place = Arc::clone(&kept);
    let keep = move |records: RecordBatch, _: &mut Output| {
        lock(&place).push(values(&records)[0]);
        Ok(())
    };
    (sink(Each(keep)), kept)
}

/// Endless batches of one number, which is always the same.
struct Constant(u64);

impl Source for Constant {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        out.send(batch([self.0]));
        Ok(SourceFlow::HaveOutput)
    }
}

#[test]
fn sources_on_one_thread_are_called_in_turn() {
    const SOURCES: u64 = 5;
    watched(|| {
        let (spec, kept) = first_numbers();
        let mut graph = Graph::new();
        graph.placement(Placement::Fused);
        let end = graph.add("end", spec);
        for number in 0..SOURCES {
            let constant = graph.add(format!("constant{number}"), source(Constant(number)));
            // Chains of different lengths before the common sink.
            let mut last = constant;
            for step in 0..number {
                last = graph.add_after(last, format!("pass{number}.{step}"), pass());
            }
            graph.connect(last, end);
        }
        let running = start(graph, QueueLimits::default());
        while lock(&kept).len() < 10_000 {
            thread::yield_now();
        }
        running.stop();
        running.join().unwrap();
        let kept = lock(&kept);
        for number in 0..SOURCES {
            let calls = kept.iter().filter(|&&kept| kept == number).count() as u64;
            let least = kept.len() as u64 / (2 * SOURCES);
            assert!(calls >= least, "source {number}: {calls} of {} calls", kept.len());
        }
    });
}

#[test]
fn a_source_that_ends_is_read_though_another_one_never_pauses() {
    for is_first in [true, false] {
        watched(move || {
            let (spec, kept) = collect();
            let mut graph = Graph::new();
            graph.placement(Placement::Fused);
            let end = graph.add("end", spec);
            let endless = || source(Constant(7));
            let ends = || source(Numbers { next: 1_000, end: Some(2_000), batch: 10 });
            let (first, second) = if is_first {
                (graph.add("file", ends()), graph.add("live", endless()))
            } else {
                (graph.add("live", endless()), graph.add("file", ends()))
            };
            graph.connect(first, end).connect(second, end);
            let running = start(graph, QueueLimits::default());
            while !running.metrics().stage("file").unwrap().parts[0].is_finished {
                thread::yield_now();
            }
            running.stop();
            running.join().unwrap();
            let kept = lock(&kept);
            let last = kept.iter().rposition(|&value| value == 1_999).unwrap();
            assert!(last < 1_000 + 3 * 100, "100 turns each, and not {last} numbers before");
        });
    }
}

#[test]
fn parts_with_inputs_from_other_threads_are_served_in_turn() {
    let cores = available_cores();
    if cores.len() < 2 {
        return;
    }
    watched(|| {
        let (left_spec, left) = first_numbers();
        let (right_spec, right) = first_numbers();
        let mut graph = Graph::new();
        let sources = [0, 1].map(|n| graph.add(format!("constant{n}"), source(Constant(n))));
        let left_end = graph.add_after(sources[0], "left", left_spec);
        let right_end = graph.add_after(sources[1], "right", right_spec);
        for stage in sources {
            graph.cores(stage, [cores[0]]);
        }
        graph.cores(left_end, [cores[1]]).cores(right_end, [cores[1]]);
        let running = start(graph, QueueLimits::default());
        let counts = || [lock(&left).len(), lock(&right).len()];
        while counts().iter().sum::<usize>() < 10_000 {
            thread::yield_now();
        }
        running.stop();
        running.join().unwrap();
        let counts = counts();
        assert!(counts.iter().all(|&count| count >= 2_500), "{counts:?}");
    });
}

/// Sends each number of a batch by itself, one a call.
#[derive(Default)]
struct OneByOne(std::collections::VecDeque<u64>);

impl Operator for OneByOne {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        assert!(self.0.is_empty(), "a batch comes when the last one is done");
        self.0.extend(values(&input.into_records()));
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        out.send(batch(self.0.pop_front()));
        Ok(if self.0.is_empty() { Flow::NeedInput } else { Flow::HaveOutput })
    }
}

#[test]
fn an_operator_with_a_long_answer_lets_others_have_their_turns() {
    watched(|| {
        let (long, long_kept) = first_numbers();
        let (short, short_kept) = first_numbers();
        let mut graph = Graph::new();
        graph.placement(Placement::Fused);
        let numbers = Numbers { next: 0, end: Some(20_000), batch: 10_000 };
        let numbers = graph.add("numbers", source(numbers));
        let steps = graph.add_after(numbers, "steps", operator(OneByOne::default()));
        graph.add_after(steps, "long", long);
        let other = graph.add("other", source(Constant(1)));
        graph.add_after(other, "short", short);
        let running = start(graph, QueueLimits::default());
        while lock(&long_kept).len() < 5_000 {
            thread::yield_now();
        }
        assert!(lock(&short_kept).len() >= 1_000, "it does not wait for the long answer");
        running.stop();
        running.join().unwrap();
        assert!(lock(&long_kept).iter().copied().eq(0..20_000));
    });
}
