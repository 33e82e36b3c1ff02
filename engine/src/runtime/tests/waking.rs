//! Operators that name the time of a call.

use std::time::Instant;

use super::*;

/// Sends one number, and then pauses for an hour.
struct Once(bool);

impl Source for Once {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        if !std::mem::replace(&mut self.0, true) {
            out.send(batch([7]));
        }
        Ok(SourceFlow::Idle(Duration::from_secs(3600)))
    }
}

/// Keeps the last number, and sends it three times, some milliseconds apart.
struct Echo {
    number: u64,
    next: Option<Instant>,
    left: u32,
}

const PAUSE: Duration = Duration::from_millis(3);

impl Operator for Echo {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        self.number = values(&input.into_records())[0];
        self.next = Some(Instant::now() + PAUSE);
        Ok(Flow::NeedInput)
    }

    fn wake_at(&self) -> Option<Instant> {
        self.next
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        let due = self.next.expect("it is called when it wants to be");
        assert!(due <= now, "{:?} too early", due - now);
        out.send(batch([self.number]));
        self.left -= 1;
        self.next = (self.left > 0).then_some(due + PAUSE);
        Ok(Flow::NeedInput)
    }
}

#[test]
fn an_idle_operator_is_called_at_its_time_under_every_placement() {
    let make = |arrived: &Sender<u64>| {
        let arrived = arrived.clone();
        let mut graph = Graph::new();
        let once = graph.add("once", source(Once(false)));
        let echo = graph.add_after(once, "echo", operator(Echo { number: 0, next: None, left: 3 }));
        let keep = move |records: RecordBatch, _: &mut Output| {
            values(&records).into_iter().for_each(|value| arrived.send(value).unwrap());
            Ok(())
        };
        let end = graph.add_after(echo, "end", sink(Each(keep)));
        (graph, [once, echo, end])
    };
    let (sender, receiver) = bounded(64);
    let (_, stages) = make(&sender);
    for graph in placements(&stages, || make(&sender).0) {
        let begin = Instant::now();
        let running = start(graph, QueueLimits::default());
        for _ in 0..3 {
            assert_eq!(receiver.recv_timeout(WATCHDOG), Ok(7));
        }
        assert!(begin.elapsed() >= 3 * PAUSE);
        running.stop();
        watched(|| running.join()).unwrap();
        assert!(receiver.is_empty(), "it is not called when it does not want to be");
    }
}

#[test]
fn an_operator_that_waits_for_a_time_ends_with_its_input() {
    struct Sleepy;
    impl Operator for Sleepy {
        fn process(&mut self, _: usize, _: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
            Ok(Flow::NeedInput)
        }

        fn wake_at(&self) -> Option<Instant> {
            Some(Instant::now() + Duration::from_secs(3600))
        }
    }
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(Numbers::to(1_000)));
    graph.add_after(numbers, "end", sink(Sleepy));
    run(graph, QueueLimits::default()).unwrap();
}

#[test]
fn an_operator_without_state_says_so() {
    let mut echo = Echo { number: 0, next: None, left: 0 };
    assert_eq!(echo.snapshot(), None);
    let message = "the operator keeps no state that could be restored or merged";
    assert_eq!(echo.restore(&[]).unwrap_err().to_string(), message);
    assert_eq!(echo.merge(&[]).unwrap_err().to_string(), message);
}
