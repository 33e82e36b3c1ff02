//! Sinks that need no more, failures that lose no rows, and stages that claim the same thing.

use super::*;
use crate::error::GraphErrorKind;
use crate::operator::{Access, Claim};

/// Takes some batches, and needs no later batch.
struct Sated {
    left: usize,
}

impl Operator for Sated {
    fn process(&mut self, _: usize, _: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        self.left = self.left.saturating_sub(1);
        Ok(Flow::NeedInput)
    }

    fn needs_input(&self) -> bool {
        self.left > 0
    }
}

#[test]
fn a_run_drains_when_no_sink_needs_input() {
    for needless in [0, 1, 2] {
        let graph = || {
            let mut graph = Graph::new();
            let numbers = graph.add("numbers", source(Numbers::endless()));
            for left in [3, 5] {
                graph.add_after(numbers, format!("sated {left}"), sink(Sated { left }));
            }
            for index in 0..needless {
                graph.add_after(numbers, format!("needless {index}"), sink(Sated { left: 0 }));
            }
            graph
        };
        let stages: Vec<StageId> = Vec::new();
        for graph in placements(&stages, graph) {
            let metrics = watched(move || run(graph, QueueLimits::default())).unwrap();
            assert!(metrics.stage("sated 5").unwrap().items_in() >= 500);
        }
    }
}

#[test]
fn a_sink_that_needs_input_keeps_the_run_going() {
    let (all, values) = collect();
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(Numbers::to(100_000)));
    graph.add_after(numbers, "sated", sink(Sated { left: 1 }));
    graph.add_after(numbers, "all", all);
    watched(move || run(graph, QueueLimits::default())).unwrap();
    assert_eq!(lock(&values).len(), 100_000);
}

/// Passes all rows on, and fails late at the end.
struct FailsLate;

impl Operator for FailsLate {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        out.send(input.into_records());
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        out.send(batch([7]));
        out.fail_late("not saved".into());
        out.fail_late("nor this".into());
        Ok(Flow::NeedInput)
    }
}

#[test]
fn a_late_failure_loses_no_row_and_fails_the_run() {
    let (all, values) = collect();
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(Numbers::to(10_000)));
    let late = graph.add_after(numbers, "late", operator(FailsLate));
    graph.add_after(late, "all", all);
    let error = watched(move || run(graph, QueueLimits::default())).unwrap_err();
    assert_eq!(
        (error.stage.as_str(), error.to_string()),
        ("late", "stage `late` (test): not saved".to_owned())
    );
    assert!(matches!(error.cause, RunErrorCause::Late(_)));
    assert_eq!(lock(&values).len(), 10_001);
}

#[test]
fn a_failure_that_ends_the_run_is_told_before_a_late_one() {
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(Numbers::to(10_000)));
    let late = graph.add_after(numbers, "late", operator(FailsLate));
    let fails = |records: RecordBatch, _: &mut Output| {
        if values(&records) == [7] { Err("full".into()) } else { Ok(()) }
    };
    graph.add_after(late, "fails", sink(Each(fails)));
    let error = watched(move || run(graph, QueueLimits::default())).unwrap_err();
    assert_eq!(error.to_string(), "stage `fails` (test): full");
}

/// Commits a result, and sends nothing.
struct Commits(Arc<Mutex<Vec<u64>>>);

impl Operator for Commits {
    fn process(&mut self, _: usize, _: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        for value in [1, 2, 3] {
            let place = Arc::clone(&self.0);
            out.commit_at_end(move || {
                lock(&place).push(value);
                if value == 2 { Err("the second".into()) } else { Ok(()) }
            });
        }
        Ok(Flow::NeedInput)
    }
}

#[test]
fn results_are_committed_when_the_whole_run_has_ended_well() {
    let make = || {
        let place = Arc::new(Mutex::new(Vec::new()));
        let mut graph = Graph::new();
        let short = graph.add("short", source(Numbers::to(1)));
        graph.add_after(short, "commits", sink(Commits(Arc::clone(&place))));
        (graph, place)
    };
    // The commits fail, each by itself.
    let (graph, place) = make();
    let error = watched(move || run(graph, SMALL)).unwrap_err();
    assert_eq!(error.to_string(), "stage `commits` (test): the second");
    assert_eq!(*lock(&place), [1, 2, 3]);
    // Another stage fails long after this one has ended.
    let (mut graph, place) = make();
    let long = graph.add("long", source(Numbers::to(100_000)));
    let fails = |records: RecordBatch, _: &mut Output| {
        if values(&records)[0] > 90_000 { Err("full".into()) } else { Ok(()) }
    };
    graph.add_after(long, "fails", sink(Each(fails)));
    let error = watched(move || run(graph, SMALL)).unwrap_err();
    assert_eq!(error.to_string(), "stage `fails` (test): full");
    assert!(lock(&place).is_empty());
    assert_eq!(Arc::strong_count(&place), 1, "they are dropped");
}

#[test]
fn a_run_that_is_aborted_after_a_stage_has_ended_commits_nothing_and_says_so() {
    watched(|| {
        let place = Arc::new(Mutex::new(Vec::new()));
        let mut graph = Graph::new();
        let short = graph.add("short", source(Numbers::to(1)));
        let commits = graph.add_after(short, "commits", sink(Commits(Arc::clone(&place))));
        graph.cores(commits, [available_cores()[0]]);
        let sleeper = graph.add("sleeper", source(Sleeper));
        graph.add_after(sleeper, "end", collect().0);
        let mut running = start(graph, SMALL);
        while !running.metrics().stage("commits").unwrap().parts[0].is_finished {
            assert!(!running.wait(Duration::from_millis(1)));
        }
        running.abort();
        let error = running.join().unwrap_err();
        assert!(matches!(error.cause, RunErrorCause::Aborted), "{error}");
        assert!(lock(&place).is_empty());
    });
}

#[test]
fn no_two_stages_claim_the_same_thing() {
    let claiming = |key: &'static [u8]| {
        let bind = move || {
            let claim = Claim::new(key.to_vec(), "the thing", "path");
            Fragment::operator(Load::Light, Sated { left: 1 }, Vec::new()).claiming([claim])
        };
        Spec { inputs: 1..=1, bind }
    };
    let built = |keys: [&'static [u8]; 3]| {
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::to(10)));
        for (index, key) in keys.into_iter().enumerate() {
            graph.add_after(numbers, format!("sink {index}"), claiming(key));
        }
        graph.build()
    };
    let topology = built([b"a", b"b", b"c"]).unwrap();
    assert_eq!(topology.stages()[1].claims[0].name, "the thing");
    let errors = built([b"a", b"b", b"a"]).unwrap_err();
    let said =
        "stage `sink 2`: the thing is also written by `path` of stage `sink 0`; name another one";
    assert_eq!(errors.to_string(), said);
    assert!(matches!(errors.0[0].kind, GraphErrorKind::Claimed(_)));
}

#[test]
fn an_input_is_no_output_and_a_pipe_has_one_reader() {
    let claiming = |access: Access| {
        let bind = move || {
            let claim = Claim::new(b"inode 42".to_vec(), "the file", "paths").with(access);
            Fragment::operator(Load::Light, Sated { left: 1 }, Vec::new()).claiming([claim])
        };
        Spec { inputs: 1..=1, bind }
    };
    let built = |first: Access, second: Access| {
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::to(10)));
        graph.add_after(numbers, "first", claiming(first));
        graph.add_after(numbers, "second", claiming(second));
        graph.build()
    };
    for (first, second, said) in [
        (
            Access::Reads,
            Access::Writes,
            "the file is an input, of `paths` of stage `first`, which would be overwritten; \
             name another one",
        ),
        (
            Access::Writes,
            Access::Consumes,
            "the file is an output, of `paths` of stage `first`; \
             an input cannot be an output of its run",
        ),
        (
            Access::Consumes,
            Access::Consumes,
            "the file is also read by `paths` of stage `first`, and it can be read only once; \
             read it in one stage, whose rows several stages can take",
        ),
    ] {
        let errors = built(first, second).unwrap_err();
        assert_eq!(errors.to_string(), format!("stage `second`: {said}"));
    }
    for (first, second) in [(Access::Reads, Access::Reads), (Access::Consumes, Access::Reads)] {
        let mut topology = built(first, second).unwrap();
        let ours = Claim::new(b"inode 42".to_vec(), "the file", "--report");
        assert!(topology.claim(&ours).is_err());
        topology.claim(&ours.with(Access::Reads)).unwrap();
    }
}
