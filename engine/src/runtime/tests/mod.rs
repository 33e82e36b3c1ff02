//! Whole runs of small pipelines: their rows, their answers, and their ends. A watchdog turns a
//! hang into a failure.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use crossbeam_channel::{Receiver, Sender, bounded};

mod ending;
mod in_flight;
mod lanes;
mod outputs;
mod queries;
mod room;
mod turns;
mod waiting;
mod waking;
mod workers;

use super::{RunOptions, Running};
use crate::batch::{Chunk, Payload};
use crate::channel::QueueLimits;
use crate::error::{BindError, RunErrorCause};
use crate::graph::{Graph, StageId};
use crate::metrics::Metrics;
use crate::operator::{
    BindContext, Body, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output, Part,
    Source, SourceFlow,
};
use crate::placement::{Placement, available_cores};
use crate::query::{QueryError, QueryPayload, Request, Response};
use crate::sync::lock;

/// Far longer than any of these runs takes, far shorter than a person would wait.
const WATCHDOG: Duration = Duration::from_secs(30);

/// Runs `test` and fails if `test` does not return.
fn watched<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = bounded(1);
    let thread = thread::Builder::new().spawn(move || drop(done.send(test()))).unwrap();
    match result.recv_timeout(WATCHDOG) {
        Ok(value) => value,
        Err(crossbeam_channel::RecvTimeoutError::Timeout) => panic!("the test hangs"),
        Err(crossbeam_channel::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("it panicked"))
        }
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::UInt64, false)]))
}

fn batch(values: impl IntoIterator<Item = u64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(UInt64Array::from_iter_values(values));
    RecordBatch::try_new(schema(), vec![column]).unwrap()
}

fn values(records: &RecordBatch) -> Vec<u64> {
    records.column(0).as_primitive::<UInt64Type>().values().to_vec()
}

/// Any operator, from a closure that binds it.
struct Spec<F> {
    inputs: RangeInclusive<usize>,
    bind: F,
}

impl<F: FnOnce() -> Fragment + Send> OperatorSpec for Spec<F> {
    fn operator(&self) -> &'static str {
        "test"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        self.inputs.clone()
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok((self.bind)())
    }
}

fn source(source: impl Source + 'static) -> impl OperatorSpec {
    Spec { inputs: 0..=0, bind: move || Fragment::source(Load::Heavy, source, schema()) }
}

fn operator(operator: impl Operator + 'static) -> impl OperatorSpec {
    let bind = move || Fragment::operator(Load::Heavy, operator, vec![schema()]);
    Spec { inputs: 1..=1, bind }
}

fn sink(operator: impl Operator + 'static) -> impl OperatorSpec {
    Spec { inputs: 1..=1, bind: move || Fragment::operator(Load::Heavy, operator, Vec::new()) }
}

/// 0, 1, 2, … up to `end` (or without end), `batch` a time.
struct Numbers {
    next: u64,
    end: Option<u64>,
    batch: u64,
}

impl Numbers {
    fn to(end: u64) -> Self {
        Self { next: 0, end: Some(end), batch: 100 }
    }

    fn endless() -> Self {
        Self { next: 0, end: None, batch: 100 }
    }
}

impl Source for Numbers {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        let until = self.end.unwrap_or(u64::MAX).min(self.next + self.batch);
        out.send(batch(self.next..until));
        self.next = until;
        Ok(if self.end == Some(until) { SourceFlow::Finished } else { SourceFlow::HaveOutput })
    }
}

/// Calls a closure for every batch.
struct Each<F>(F);

impl<F: FnMut(RecordBatch, &mut Output) -> Result<(), OperatorError> + Send> Operator for Each<F> {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        (self.0)(input.into_records(), out)?;
        Ok(Flow::NeedInput)
    }
}

fn pass() -> impl OperatorSpec {
    operator(Each(|records, out: &mut Output| {
        out.send(records);
        Ok(())
    }))
}

/// A sink that keeps all numbers, and the vector of these numbers.
fn collect() -> (impl OperatorSpec, Arc<Mutex<Vec<u64>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let place = Arc::clone(&kept);
    let keep = move |records: RecordBatch, _: &mut Output| {
        lock(&place).extend(values(&records));
        Ok(())
    };
    (sink(Each(keep)), kept)
}

/// A sink that waits for a permit before each batch, and the sender of permits.
fn gated() -> (impl OperatorSpec, Sender<()>, Arc<Mutex<Vec<u64>>>) {
    let (permits, gate): (_, Receiver<()>) = bounded(1024);
    let kept = Arc::new(Mutex::new(Vec::new()));
    let place = Arc::clone(&kept);
    let keep = move |records: RecordBatch, _: &mut Output| {
        gate.recv().ok();
        lock(&place).extend(values(&records));
        Ok(())
    };
    (sink(Each(keep)), permits, kept)
}

fn run(graph: Graph, queue: QueueLimits) -> Result<Metrics, crate::error::RunError> {
    watched(move || graph.build().unwrap().run(RunOptions::new().queue(queue)))
}

fn start(graph: Graph, queue: QueueLimits) -> Running {
    graph.build().unwrap().start(RunOptions::new().queue(queue)).unwrap()
}

const SMALL: QueueLimits = QueueLimits { batches: 1, bytes: 1 };

/// Every placement that this machine allows: fused, by load, and each stage pinned by name in both
/// directions.
fn placements(stages: &[StageId], graph: impl Fn() -> Graph) -> Vec<Graph> {
    let cores = available_cores();
    let mut graphs = vec![graph(), graph()];
    graphs[0].placement(Placement::Fused);
    for reverse in [false, true] {
        let mut named = graph();
        for (index, &stage) in stages.iter().enumerate() {
            let index = if reverse { stages.len() - index } else { index };
            named.cores(stage, [cores[index % cores.len()]]);
        }
        graphs.push(named);
    }
    graphs
}

#[test]
fn every_item_arrives_once_and_in_order_under_every_placement_and_queue_limit() {
    for queue in [SMALL, QueueLimits { batches: 3, bytes: 2_000 }, QueueLimits::default()] {
        let make = || {
            let (kept_spec, kept) = collect();
            let mut graph = Graph::new();
            let numbers = graph.add("numbers", source(Numbers::to(20_050)));
            let first = graph.add_after(numbers, "first", pass());
            let second = graph.add_after(first, "second", pass());
            let end = graph.add_after(second, "end", kept_spec);
            (graph, vec![numbers, first, second, end], kept)
        };
        let stages = make().1;
        let kept = Mutex::new(Vec::new());
        let graphs = placements(&stages, || {
            let (graph, _, place) = make();
            lock(&kept).push(place);
            graph
        });
        for (graph, kept) in graphs.into_iter().zip(kept.into_inner().unwrap()) {
            let metrics = run(graph, queue).unwrap();
            assert!(lock(&kept).iter().copied().eq(0..20_050));
            let end = metrics.stage("end").unwrap();
            assert_eq!((end.items_in(), end.items_out()), (20_050, 0));
            assert_eq!(end.parts[0].batches_in, 201);
            assert!(end.parts[0].is_finished);
            let numbers = metrics.stage("numbers").unwrap();
            assert_eq!((numbers.items_in(), numbers.items_out()), (0, 20_050));
            let latency = end.latency();
            assert!(latency.quantile(0.5) > Duration::ZERO && latency.max() <= metrics.wall);
            assert!(latency.max() >= latency.quantile(0.5));
            for edge in &metrics.edges {
                assert!(edge.depth_max <= queue.batches as u64, "{edge:?}");
                assert_eq!(edge.depth, 0);
            }
        }
    }
}

#[test]
fn an_output_feeds_all_its_readers_and_streams_unite_in_one_port() {
    let (united, kept) = collect();
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(Numbers::to(1_000)));
    let left = graph.add_after(numbers, "left", pass());
    let right = graph.add_after(numbers, "right", pass());
    let merged = graph.add_after(left, "merged", pass());
    graph.connect(right, merged);
    graph.add_after(merged, "end", united);
    run(graph, SMALL).unwrap();
    let mut kept = lock(&kept).clone();
    kept.sort_unstable();
    assert!(kept.into_iter().eq((0..1_000).flat_map(|n| [n, n])));
}

#[test]
fn a_failing_stage_ends_the_run_and_is_the_cause() {
    for failing in 0..3 {
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::endless()));
        let mut last = numbers;
        for stage in 0..3 {
            let mut batches = 0;
            let step = move |records, out: &mut Output| {
                batches += 1;
                if stage == failing && batches == 5 {
                    return Err("out of paper".into());
                }
                out.send(records);
                Ok(())
            };
            last = graph.add_after(last, format!("stage{stage}"), operator(Each(step)));
        }
        graph.add_after(last, "end", collect().0);
        let error = run(graph, SMALL).expect_err("a stage fails");
        assert_eq!(error.to_string(), format!("stage `stage{failing}` (test): out of paper"));
    }
}

#[test]
fn a_panic_ends_the_run_and_names_its_stage() {
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(Numbers::endless()));
    let bad = graph.add_after(
        numbers,
        "bad",
        operator(Each(|records: RecordBatch, _: &mut _| {
            assert!(values(&records)[0] < 500, "five hundred is too much");
            Ok(())
        })),
    );
    graph.add_after(bad, "end", collect().0);
    let error = run(graph, QueueLimits::default()).expect_err("a stage panics");
    assert_eq!(error.to_string(), "stage `bad` (test): panicked: five hundred is too much");
}

#[test]
fn an_operator_that_sends_other_columns_than_it_declared_is_the_cause() {
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(Numbers::to(1)));
    let other = |_, out: &mut Output| {
        let column: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..3));
        out.send(RecordBatch::try_from_iter([("m", column)]).unwrap());
        Ok(())
    };
    let wrong = graph.add_after(numbers, "wrong", operator(Each(other)));
    graph.add_after(wrong, "end", collect().0);
    let error = run(graph, QueueLimits::default()).expect_err("other columns");
    let said = "stage `wrong` (test): it sent the columns (m UInt64) at output 0; \
                it declared (n UInt64) when it was bound";
    assert_eq!(error.to_string(), said);
}

#[test]
fn a_graph_has_a_stage_and_each_stage_an_id_that_can_be_shown() {
    let empty = Graph::new().build().unwrap_err().to_string();
    assert_eq!(empty, "a pipeline has at least one stage");
    for id in ["", "a\0b", "\n"] {
        let mut graph = Graph::new();
        let numbers = graph.add(id, source(Numbers::to(1)));
        graph.add_after(numbers, "end", collect().0);
        let refused = graph.build().unwrap_err().to_string();
        assert!(refused.contains("is no id"), "{refused}");
    }
}

#[test]
fn a_source_that_fails_in_the_middle_is_the_cause_though_its_readers_see_a_closed_queue() {
    struct Breaks(u64);
    impl Source for Breaks {
        fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
            self.0 += 1;
            out.send(batch(0..10));
            if self.0 == 3 { Err("disk on fire".into()) } else { Ok(SourceFlow::HaveOutput) }
        }
    }
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(Breaks(0)));
    graph.add_after(numbers, "end", collect().0);
    let error = run(graph, QueueLimits::default()).expect_err("the source fails");
    assert_eq!(error.to_string(), "stage `numbers` (test): disk on fire");
}

#[test]
fn a_blocked_sink_stops_the_source_and_queues_keep_their_limit() {
    watched(|| {
        let (spec, permits, kept) = gated();
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::endless()));
        let end = graph.add_after(numbers, "end", spec);
        graph.cores(end, [available_cores()[available_cores().len() - 1]]);
        let mut running = start(graph, QueueLimits { batches: 4, bytes: u64::MAX });
        assert!(!running.wait(Duration::from_secs(1)), "the sink blocks for a second");
        assert!(!running.wait(Duration::from_secs(1)));
        let waiting = running.metrics();
        for edge in &waiting.edges {
            assert!(edge.blocked > Duration::from_millis(500), "told while it lasts: {edge:?}");
        }
        let produced = waiting.stage("numbers").unwrap().items_out();
        assert!(produced <= 100 * 6, "one in hand, four queued, one kept: {produced}");
        assert!(waiting.edges.iter().all(|e| e.depth_max <= 4));
        running.stop();
        drop(permits);
        let metrics = running.join().unwrap();
        let produced = metrics.stage("numbers").unwrap().items_out();
        assert!(lock(&kept).iter().copied().eq(0..produced), "nothing is lost");
    });
}

#[test]
fn the_byte_limit_lets_single_large_batches_pass_one_by_one() {
    let (spec, kept) = collect();
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(Numbers::to(5_000)));
    let end = graph.add_after(numbers, "end", spec);
    graph.cores(end, [available_cores()[available_cores().len() - 1]]);
    let metrics = run(graph, QueueLimits { batches: 100, bytes: 10 }).unwrap();
    assert_eq!(lock(&kept).len(), 5_000);
    assert!(metrics.edges.iter().all(|edge| edge.depth_max <= 1));
}

#[test]
fn queues_share_the_memory_that_is_left_to_the_pipeline() {
    let cores = available_cores();
    let bytes = |records: usize| batch(0..records as u64).get_array_memory_size() as u64;
    watched(move || {
        let (spec, permits, _kept) = gated();
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::endless()));
        let end = graph.add_after(numbers, "end", spec);
        graph.cores(numbers, [cores[0]]).cores(end, [cores[cores.len() - 1]]);
        // Room for five batches in the one queue, if the machine has cores for two threads.
        graph.memory_max(usize::try_from(4 * (5 * bytes(100) + 1)).unwrap());
        let topology = graph.build().unwrap();
        let memory = topology.memory().clone();
        let options = RunOptions::new().queue(QueueLimits { batches: 100, bytes: u64::MAX });
        let mut running = topology.start(options).unwrap();
        assert!(!running.wait(Duration::from_millis(100)), "the sink is blocked");
        for edge in &running.metrics().edges {
            // The sink has taken one; the source is woken when half of the queue is free.
            assert!((4..=5).contains(&edge.depth), "{edge:?}");
            assert_eq!((edge.depth_max, edge.bytes), (5, edge.depth * bytes(100)), "{edge:?}");
            assert_eq!(memory.reserved() as u64, 5 * bytes(100) + 1);
        }
        running.stop();
        drop(permits);
        running.join().unwrap();
        assert_eq!(memory.reserved(), 0);
    });
}

#[test]
fn stop_drains_what_is_in_flight() {
    watched(|| {
        let (spec, kept) = collect();
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::endless()));
        let middle = graph.add_after(numbers, "middle", pass());
        graph.add_after(middle, "end", spec);
        let running = start(graph, SMALL);
        while lock(&kept).len() < 1_000 {
            thread::yield_now();
        }
        running.stop();
        let metrics = running.join().unwrap();
        let produced = metrics.stage("numbers").unwrap().items_out();
        assert!(lock(&kept).iter().copied().eq(0..produced));
    });
}

#[test]
fn an_abort_or_the_deadline_ends_a_drain_that_hangs() {
    for by_deadline in [true, false] {
        watched(move || {
            let mut graph = Graph::new();
            let numbers = graph.add("numbers", source(Numbers::to(1)));
            graph.add_after(numbers, "end", sink(NeverReady));
            let mut running = start(graph, SMALL);
            while running.metrics().stage("end").unwrap().items_in() == 0 {
                thread::yield_now();
            }
            if by_deadline {
                running.stop_within(Duration::from_millis(20));
            } else {
                running.stop();
                running.stop();
                assert!(!running.wait(Duration::from_millis(20)), "stopping again changes nothing");
                running.abort();
            }
            let error = running.join().expect_err("the run was aborted");
            assert_eq!(
                error.to_string(),
                "stage `end` (test): aborted before the stage had finished"
            );
        });
    }
}

/// Waits for a reply that is never sent, without occupying its thread.
struct NeverReady;

impl Operator for NeverReady {
    fn process(&mut self, _: usize, _: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        Ok(Flow::AwaitReply)
    }
}

#[test]
fn an_operator_that_does_not_return_is_named_and_left_behind() {
    watched(|| {
        let (spec, permits, _kept) = gated();
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::to(1)));
        graph.add_after(numbers, "end", spec);
        let mut running = start(graph, SMALL);
        assert!(!running.wait(Duration::from_millis(50)));
        running.abort();
        let error = running.join().expect_err("the sink hangs");
        assert_eq!(error.stage, "end");
        assert!(matches!(error.cause, RunErrorCause::Unresponsive(_)), "{error}");
        drop(permits);
    });
}

#[test]
fn a_run_that_is_dropped_ends_its_threads() {
    watched(|| {
        let (spec, kept) = collect();
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::endless()));
        graph.add_after(numbers, "end", spec);
        drop(start(graph, SMALL));
        while Arc::strong_count(&kept) > 1 {
            thread::yield_now();
        }
    });
}

/// Sums up numbers in two parts: the front sums, sends chunks, and asks the back for its sum
/// after every third one; the back sums too. At every query, both must have the same sum.
struct Front {
    sum: u64,
    batches: u64,
}

struct Back {
    sum: u64,
    answers: u64,
}

/// A message from the front to the back.
enum ToBack {
    Add(u64),
    AddAndTell(u64),
}

impl Operator for Front {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let sum: u64 = values(&input.into_records()).iter().sum();
        self.sum += sum;
        self.batches += 1;
        let asks = self.batches.is_multiple_of(3);
        let message = if asks { ToBack::AddAndTell(sum) } else { ToBack::Add(sum) };
        out.send_chunk(Chunk::new(message, 1, 8));
        Ok(if asks { Flow::AwaitReply } else { Flow::NeedInput })
    }

    fn reply(&mut self, reply: Chunk, _: &mut Output) -> Result<Flow, OperatorError> {
        let seen: u64 = reply.into_value();
        if seen == self.sum { Ok(Flow::NeedInput) } else { Err(format!("{seen}").into()) }
    }

    fn query(&self, request: &Request, _: Option<QueryPayload>) -> Result<Response, QueryError> {
        match request.name() {
            "sums" => Ok(Response::Forward(Box::new(self.sum))),
            _ => Err(QueryError::unsupported(request, &["sums"])),
        }
    }
}

impl Operator for Back {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        match input.into_value() {
            ToBack::Add(sum) => self.sum += sum,
            ToBack::AddAndTell(sum) => {
                self.sum += sum;
                self.answers += 1;
                out.send_reply(Chunk::new(self.sum, 1, 8));
            }
        }
        Ok(Flow::NeedInput)
    }

    fn query(&self, _: &Request, payload: Option<QueryPayload>) -> Result<Response, QueryError> {
        let front: Box<u64> = payload.expect("the front sends it").downcast().expect("a sum");
        Ok(Response::Answer(batch([*front, self.sum])))
    }

    fn counters(&self) -> crate::operator::Counters {
        vec![("answers", self.answers)]
    }
}

fn two_parts() -> impl OperatorSpec {
    let part = |name: &'static str, operator| Part {
        name: name.into(),
        load: Load::Heavy,
        body: Body::Operator(operator),
    };
    let bind = move || {
        let front = part("front", Box::new(Front { sum: 0, batches: 0 }));
        let back = part("back", Box::new(Back { sum: 0, answers: 0 }));
        Fragment::new(vec![front, back], Vec::new())
    };
    Spec { inputs: 1..=1, bind }
}

/// The two-part operator on one thread and, if there are cores, on two.
fn two_part_graphs(make: impl Fn() -> Numbers) -> Vec<Graph> {
    let cores = available_cores();
    [vec![cores[0]], vec![cores[0], cores[cores.len() - 1]], Vec::new()]
        .into_iter()
        .map(|cores| {
            let mut graph = Graph::new();
            let numbers = graph.add("numbers", source(make()));
            let sums = graph.add_after(numbers, "sums", two_parts());
            graph.cores(sums, cores);
            graph
        })
        .collect()
}

#[test]
fn a_query_sees_all_parts_of_an_operator_at_the_same_batch_boundary() {
    for graph in two_part_graphs(Numbers::endless) {
        watched(move || {
            let running = start(graph, QueueLimits { batches: 4, bytes: u64::MAX });
            let mut last = 0;
            for _ in 0..300 {
                let sums = values(&running.query("sums", &Request::new("sums")).unwrap());
                assert_eq!(sums[0], sums[1]);
                assert!(sums[0] >= last, "answers go forward");
                last = sums[0];
            }
            running.stop();
            let metrics = running.join().unwrap();
            let parts = &metrics.stage("sums").unwrap().parts;
            assert_eq!(parts[0].batches_in, parts[1].batches_in);
            assert_eq!(parts[1].counters, [("answers", parts[0].batches_in / 3)]);
        });
    }
}

#[test]
fn a_standing_query_is_renewed_when_it_is_read_and_once_at_the_end() {
    for graph in two_part_graphs(|| Numbers::to(100_000)) {
        watched(move || {
            let mut running = start(graph, QueueLimits::default());
            let watch = running.watch("sums", Request::new("sums")).unwrap();
            while !running.wait(Duration::ZERO) {
                if let Some(latest) = watch.latest() {
                    let sums = values(latest.answer().unwrap());
                    assert_eq!(sums[0], sums[1]);
                }
            }
            // A run that ends before the watch has reached it gives no answer.
            if let Some(last) = watch.latest() {
                let total = (0..100_000).sum::<u64>();
                assert_eq!(values(last.answer().unwrap()), [total, total]);
                assert!(last.age() < WATCHDOG);
            }
        });
    }
}

/// A source that never has data.
struct Sleeper;

impl Source for Sleeper {
    fn next(&mut self, _: &mut Output) -> Result<SourceFlow, OperatorError> {
        Ok(SourceFlow::Idle(Duration::MAX))
    }
}

#[test]
fn an_idle_stage_answers_and_an_idle_source_stops() {
    watched(|| {
        let mut graph = Graph::new();
        let sleeper = graph.add("sleeper", source(Sleeper));
        graph.add_after(sleeper, "sums", two_parts());
        let mut running = start(graph, QueueLimits::default());
        assert!(!running.wait(Duration::from_millis(20)), "everybody is parked by now");
        for _ in 0..10 {
            let answer = running.query("sums", &Request::new("sums")).unwrap();
            assert_eq!(values(&answer), [0, 0]);
        }
        running.stop();
        running.join().unwrap();
    });
}

#[test]
fn an_idle_source_is_called_again_when_its_time_has_come() {
    struct Pulse(u64);
    impl Source for Pulse {
        fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
            self.0 += 1;
            out.send(batch([self.0]));
            Ok(match self.0 {
                5 => SourceFlow::Finished,
                _ => SourceFlow::Idle(Duration::from_millis(2)),
            })
        }
    }
    let (spec, kept) = collect();
    let mut graph = Graph::new();
    let pulse = graph.add("pulse", source(Pulse(0)));
    graph.add_after(pulse, "end", spec);
    let metrics = run(graph, QueueLimits::default()).unwrap();
    assert_eq!(*lock(&kept), [1, 2, 3, 4, 5]);
    assert!(metrics.wall >= Duration::from_millis(8));
}

#[test]
fn pinned_threads_run_on_the_cores_of_the_plan() {
    let cores = available_cores();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(Numbers::to(10_000)));
    let mut last = numbers;
    for (index, &core) in cores.iter().take(2).enumerate() {
        let place = Arc::clone(&seen);
        let look = move |records, out: &mut Output| {
            lock(&place).push((index, rustix::thread::sched_getcpu()));
            out.send(records);
            Ok(())
        };
        last = graph.add_after(last, format!("look{index}"), operator(Each(look)));
        graph.cores(last, [core]);
    }
    let end = graph.add_after(last, "end", collect().0);
    graph.cores(end, [cores[0]]).cores(numbers, [cores[0]]);
    let topology = graph.build().unwrap();
    assert!(topology.plan().has_core_per_group);
    watched(move || topology.run(RunOptions::new())).unwrap();
    for &(index, core) in lock(&seen).iter() {
        assert_eq!(core, cores[index]);
    }
}
