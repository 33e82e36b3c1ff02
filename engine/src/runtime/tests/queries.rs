//! Queries: their answers, refusals and costs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::*;
use crate::channel::oneshot::RecvError;
use crate::runtime::queries::control::MAILBOX_QUERIES_MAX;

#[test]
fn queries_that_cannot_be_answered_say_why() {
    watched(|| {
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::endless()));
        graph.add_after(numbers, "sums", two_parts());
        let running = start(graph, QueueLimits::default());
        let ask = |stage, name| running.query(stage, &Request::new(name)).unwrap_err().to_string();
        assert_eq!(ask("sum", "sums"), "there is no stage `sum`; the stages are numbers, sums");
        assert_eq!(ask("sums", "top"), "the operator has no query `top`; it answers sums");
        assert_eq!(ask("numbers", "top"), "the operator has no query `top`; it answers none");
        let queries = running.queries();
        running.stop();
        running.join().unwrap();
        let error = queries.query("sums", &Request::new("sums")).unwrap_err();
        assert_eq!(error.to_string(), "stage `sums` has finished; its results are at its outputs");
    });
}

#[test]
fn a_query_to_a_stage_that_hangs_gives_up_in_time() {
    watched(|| {
        let (spec, permits, _kept) = gated();
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::to(1)));
        graph.add_after(numbers, "end", spec);
        let mut running = start(graph, QueueLimits::default());
        assert!(!running.wait(Duration::from_millis(20)), "the sink is inside a call");
        let (queries, limit) = (running.queries(), Duration::from_millis(1));
        let late = queries.query_within("end", &Request::new("x"), limit).unwrap_err();
        assert_eq!(
            late.to_string(),
            "stage `end` did not answer within 1ms: it is still busy with one batch"
        );
        drop(permits);
        running.join().unwrap();
    });
}

#[test]
fn a_full_mailbox_refuses_queries_instead_of_growing() {
    watched(|| {
        let (spec, permits, _kept) = gated();
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::to(1)));
        graph.add_after(numbers, "end", spec);
        let mut running = start(graph, QueueLimits::default());
        assert!(!running.wait(Duration::from_millis(20)), "the sink is inside a call");
        let watch = || running.watch("end", Request::new("x"));
        let watches: Vec<_> = (0..MAILBOX_QUERIES_MAX).map(|_| watch().unwrap()).collect();
        let refused = watch().unwrap_err().to_string();
        assert!(refused.starts_with("stage `end` already has 1024 queries waiting"), "{refused}");
        drop(watches);
        watch().expect("unread watches make room");
        drop(permits);
        running.join().unwrap();
    });
}

#[test]
fn queries_that_wait_for_a_batch_boundary_are_limited_and_make_room_when_their_callers_leave() {
    watched(|| {
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::to(1)));
        graph.add_after(numbers, "end", sink(NeverReady));
        let running = start(graph, SMALL);
        while running.metrics().stage("end").unwrap().items_in() == 0 {
            thread::yield_now();
        }
        let queries = running.queries();
        let address = &queries.copies("end").unwrap()[0];
        let ask = || address.ask(Request::new("x"));
        // The mailbox and the queue of the stage have a limit each.
        let waiting: Vec<_> = (0..3 * MAILBOX_QUERIES_MAX).map(|_| ask()).collect();
        let refused = loop {
            match ask().recv(Duration::from_millis(1), false) {
                Err(_) => {}
                Ok(answer) => break answer.err().expect("the sink never comes to a boundary"),
            }
        };
        assert!(matches!(refused, QueryError::Busy { limit: MAILBOX_QUERIES_MAX, .. }));
        drop(waiting);
        let late = queries.query_within("end", &Request::new("x"), Duration::from_millis(5));
        assert!(matches!(late.unwrap_err(), QueryError::TimedOut { .. }), "there is room again");
        running.abort();
        running.join().expect_err("the sink waits for ever");
    });
}

/// Works for a while on each batch, and longer on each query.
struct Slow {
    answers: Arc<AtomicU64>,
}

const WORK: Duration = Duration::from_micros(50);
const ANSWER: Duration = Duration::from_micros(500);

fn work_for(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

impl Operator for Slow {
    fn process(&mut self, _: usize, _: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        work_for(WORK);
        Ok(Flow::NeedInput)
    }

    fn query(&self, request: &Request, _: Option<QueryPayload>) -> Result<Response, QueryError> {
        assert_ne!(request.name(), "fatal", "no answer to that");
        work_for(ANSWER);
        self.answers.fetch_add(1, Ordering::Relaxed);
        Ok(Response::Answer(batch([1])))
    }
}

/// `numbers` and `slow` on one thread, and the number of answers given.
fn slow(numbers: Numbers) -> (Graph, StageId, Arc<AtomicU64>) {
    let answers = Arc::new(AtomicU64::new(0));
    let mut graph = Graph::new();
    graph.placement(Placement::Fused);
    let numbers = graph.add("numbers", source(numbers));
    graph.add_after(numbers, "slow", sink(Slow { answers: Arc::clone(&answers) }));
    (graph, numbers, answers)
}

/// As [`slow`], on the thread of a sink that is inside its first call until the permits are
/// dropped.
fn slow_beside_a_gate(numbers: Numbers) -> (Running, Sender<()>, Arc<AtomicU64>) {
    let (mut graph, numbers, answers) = slow(numbers);
    let (spec, permits, _) = gated();
    graph.add_after(numbers, "end", spec);
    let mut running = start(graph, QueueLimits::default());
    assert!(!running.wait(Duration::from_millis(20)), "the sink is inside a call");
    (running, permits, answers)
}

#[test]
fn callers_that_ask_again_at_once_get_a_fifth_of_a_busy_thread() {
    watched(|| {
        let (graph, _, answers) = slow(Numbers::endless());
        let running = start(graph, QueueLimits::default());
        let (ends, begin) = (AtomicBool::new(false), Instant::now());
        let busy = thread::scope(|scope| {
            for _ in 0..8 {
                let (queries, ends) = (running.queries(), &ends);
                let ask = move || {
                    let request = Request::new("x");
                    while !ends.load(Ordering::Relaxed) && queries.query("slow", &request).is_ok() {
                    }
                };
                thread::Builder::new().spawn_scoped(scope, ask).unwrap();
            }
            while begin.elapsed() < Duration::from_millis(500) {
                thread::park_timeout(Duration::from_millis(10));
            }
            let busy = running.metrics().stages.iter().map(|stage| stage.busy()).sum::<Duration>();
            ends.store(true, Ordering::Relaxed);
            busy
        });
        let answering = ANSWER * u32::try_from(answers.load(Ordering::Relaxed)).unwrap();
        assert!(answering > busy / 20, "they are answered: {answering:?} beside {busy:?} of work");
        assert!(answering < busy / 3, "{answering:?} for answers beside {busy:?} of work");
        running.abort();
        running.join().expect_err("it was aborted");
    });
}

#[test]
fn a_query_whose_caller_has_left_is_not_computed() {
    watched(|| {
        let (running, permits, answers) = slow_beside_a_gate(Numbers::endless());
        let queries = running.queries();
        for _ in 0..100 {
            let limit = Duration::from_micros(10);
            let late = queries.query_within("slow", &Request::new("x"), limit).unwrap_err();
            assert!(matches!(late, QueryError::TimedOut { .. }), "{late}");
        }
        drop(permits);
        queries.query("slow", &Request::new("x")).unwrap();
        assert_eq!(answers.load(Ordering::Relaxed), 1, "only the last one was wanted");
        running.stop();
        running.join().unwrap();
    });
}

#[test]
fn callers_that_wait_do_not_hold_up_the_end() {
    watched(|| {
        let (running, permits, answers) = slow_beside_a_gate(Numbers::to(1));
        let queries = running.queries();
        let address = &queries.copies("slow").unwrap()[0];
        let waiting: Vec<_> = (0..1_000).map(|_| address.ask(Request::new("x"))).collect();
        drop(permits);
        running.join().unwrap();
        let answered = answers.load(Ordering::Relaxed);
        assert!((1..600).contains(&answered), "{answered} answers take some ms each");
        let taken = waiting.iter().map(|caller| caller.recv(Duration::ZERO, false));
        let refused = taken.filter(|answer| matches!(answer, Err(RecvError::Closed)));
        assert_eq!(answered + refused.count() as u64, 1_000);
    });
}

#[test]
fn a_standing_query_at_a_stage_that_has_ended_is_answered_once() {
    watched(|| {
        let mut graph = Graph::new();
        graph.placement(Placement::Fused);
        let numbers = graph.add("numbers", source(Numbers::to(1_000)));
        graph.add_after(numbers, "sums", two_parts());
        let sleeper = graph.add("sleeper", source(Sleeper));
        graph.add_after(sleeper, "end", collect().0);
        let running = start(graph, QueueLimits::default());
        while !running.metrics().stage("sums").unwrap().parts[1].is_finished {
            thread::yield_now();
        }
        let watch = running.watch("sums", Request::new("sums")).unwrap();
        let total: u64 = (0..1_000).sum();
        let answer = loop {
            if let Some(latest) = watch.latest() {
                break values(latest.answer().unwrap());
            }
            thread::yield_now();
        };
        assert_eq!(answer, [total, total]);
        running.stop();
        running.join().unwrap();
    });
}

#[test]
fn a_panic_in_a_query_names_the_stage_that_was_asked() {
    watched(|| {
        let (graph, ..) = slow(Numbers::endless());
        let running = start(graph, QueueLimits::default());
        running.query("slow", &Request::new("fatal")).unwrap_err();
        let error = running.join().expect_err("the query panics");
        assert_eq!(error.stage, "slow");
        assert!(error.to_string().contains("no answer to that"), "{error}");
    });
}
