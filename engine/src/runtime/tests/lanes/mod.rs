//! Stages that are divided over several workers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::operator::Division;
use crate::query::{CopyPayloads, Share};

/// A copy of a source: takes pieces of `piece` numbers from a counter that all copies share, and
/// sends a piece in batches.
#[derive(Clone)]
struct Pieces {
    next: Arc<AtomicU64>,
    end: u64,
    piece: u64,
    batch: u64,
    open: std::ops::Range<u64>,
    /// A piece, and a gate that the piece waits for.
    gate: Option<(u64, Arc<AtomicBool>)>,
    /// The piece in hand.
    taken: u64,
}

impl Pieces {
    fn to(end: u64, piece: u64, batch: u64) -> Self {
        Self { next: Arc::default(), end, piece, batch, open: 0..0, gate: None, taken: 0 }
    }

    fn spec(self) -> impl OperatorSpec {
        let bind = move || {
            let make = move || Ok(self.clone());
            Fragment::divided_source(Load::Heavy, usize::MAX, make, schema()).unwrap()
        };
        Spec { inputs: 0..=0, bind }
    }
}

impl Source for Pieces {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        if self.open.is_empty() {
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            let begin = piece.saturating_mul(self.piece).min(self.end);
            self.open = begin..begin.saturating_add(self.piece).min(self.end);
            if self.open.is_empty() {
                return Ok(SourceFlow::Finished);
            }
            out.begin_piece(piece);
            self.taken = piece;
        }
        if self
            .gate
            .as_ref()
            .is_some_and(|(piece, gate)| *piece == self.taken && !gate.load(Ordering::Relaxed))
        {
            return Ok(SourceFlow::Idle(Duration::from_millis(1)));
        }
        let until = self.open.end.min(self.open.start + self.batch);
        out.send(batch(self.open.start..until));
        self.open.start = until;
        Ok(SourceFlow::HaveOutput)
    }
}

/// Lets numbers pass that `0` does not divide; sends the others to the output `1`. One batch a
/// call, so that a batch leads to several calls.
#[derive(Clone)]
struct Sift {
    by: u64,
    load: Load,
    kept: Vec<u64>,
}

impl Sift {
    fn by(by: u64, load: Load) -> Self {
        Self { by, load, kept: Vec::new() }
    }

    fn spec(self) -> impl OperatorSpec {
        let bind = move || {
            let load = self.load;
            let make = move || Ok(self.clone());
            Fragment::anywhere(load, make, vec![schema(), schema()]).unwrap()
        };
        Spec { inputs: 1..=1, bind }
    }
}

impl Operator for Sift {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let (passed, sifted): (Vec<u64>, Vec<u64>) =
            values(&input.into_records()).into_iter().partition(|n| n % self.by != 0);
        out.send_to(1, batch(sifted));
        self.kept = passed;
        self.kept.reverse();
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let rest = self.kept.split_off(self.kept.len().saturating_sub(7));
        out.send(batch(rest.into_iter().rev()));
        Ok(if self.kept.is_empty() { Flow::NeedInput } else { Flow::HaveOutput })
    }
}

/// Sums numbers; each copy has a sum of its own, and the last part adds the sums.
#[derive(Clone, Default)]
struct PartialSum {
    sum: u64,
    numbers: u64,
}

struct Merge(u64);

impl PartialSum {
    fn spec() -> impl OperatorSpec {
        let bind = || {
            let part = |name, body| Part { name, load: Load::Heavy, body };
            let worker = Body::Operator(Box::new(Self::default()));
            let merge = Body::Operator(Box::new(Merge(0)));
            let parts = vec![part("sum".into(), worker), part("merge".into(), merge)];
            let make = || Ok(Body::Operator(Box::new(Self::default())));
            Fragment::new(parts, vec![schema()]).divided(Division::Partial, 0, usize::MAX, make)
        };
        Spec { inputs: 1..=1, bind }
    }
}

impl Operator for PartialSum {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        let numbers = values(&input.into_records());
        self.sum += numbers.iter().sum::<u64>();
        self.numbers += numbers.len() as u64;
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        out.send_chunk(Chunk::new(self.sum, 1, 8));
        Ok(Flow::NeedInput)
    }

    fn queries(&self) -> &'static [&'static str] {
        &["sum"]
    }

    fn query(&self, _: &Request, _: Option<QueryPayload>) -> Result<Response, QueryError> {
        let combine = |copies: &[&Self]| {
            Ok(batch([copies.iter().map(|c| c.sum).sum(), copies.iter().map(|c| c.numbers).sum()]))
        };
        Ok(Response::Share(Share::new(self.clone(), combine)))
    }
}

impl Operator for Merge {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        self.0 += input.into_value::<u64>();
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        out.send(batch([self.0]));
        Ok(Flow::NeedInput)
    }
}

/// READ in front of copies: sends numbers on and knows their sum.
struct ReadSum(u64);

/// A copy that adds up, and gives its sum away to the last part with every third message.
#[derive(Clone, Default)]
struct MovingSum {
    sum: u64,
    messages: u64,
}

/// The last part: the sums that copies have given away.
struct Moved(u64);

fn moving_sum() -> impl OperatorSpec {
    let bind = || {
        let part = |name: &'static str, load, body: Box<dyn Operator>| Part {
            name: name.into(),
            load,
            body: Body::Operator(body),
        };
        let parts = vec![
            part("read", Load::Light, Box::new(ReadSum(0))),
            part("sum", Load::Heavy, Box::<MovingSum>::default()),
            part("merge", Load::Light, Box::new(Moved(0))),
        ];
        let make = || Ok(Body::Operator(Box::new(MovingSum::default())));
        Fragment::new(parts, vec![schema()]).divided(Division::Partial, 1, usize::MAX, make)
    };
    Spec { inputs: 1..=1, bind }
}

impl Operator for ReadSum {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let numbers = values(&input.into_records());
        self.0 += numbers.iter().sum::<u64>();
        let items = numbers.len();
        out.send_chunk(Chunk::new(numbers, items, 8 * items));
        Ok(Flow::NeedInput)
    }

    fn queries(&self) -> &'static [&'static str] {
        &["sum"]
    }

    fn query(&self, _: &Request, _: Option<QueryPayload>) -> Result<Response, QueryError> {
        Ok(Response::Forward(Box::new(self.0)))
    }
}

impl Operator for MovingSum {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.sum += input.into_value::<Vec<u64>>().iter().sum::<u64>();
        self.messages += 1;
        if self.messages.is_multiple_of(3) {
            return self.finish(out);
        }
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        out.send_chunk(Chunk::new(std::mem::take(&mut self.sum), 1, 8));
        Ok(Flow::NeedInput)
    }

    fn query(&self, request: &Request, _: Option<QueryPayload>) -> Result<Response, QueryError> {
        match request.name() {
            "sum" => Ok(Response::Forward(Box::new(self.sum))),
            _ => Err(QueryError::unsupported(request, &["sum"])),
        }
    }
}

impl Operator for Moved {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        self.0 += input.into_value::<u64>();
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        out.send(batch([self.0]));
        Ok(Flow::NeedInput)
    }

    fn query(&self, _: &Request, payload: Option<QueryPayload>) -> Result<Response, QueryError> {
        let CopyPayloads { first, copies } = *payload.unwrap().downcast().unwrap();
        let sum_of = |payload: QueryPayload| *payload.downcast::<u64>().unwrap();
        let kept: u64 = copies.into_iter().map(sum_of).sum();
        Ok(Response::Answer(batch([sum_of(first), kept + self.0])))
    }
}

#[test]
fn a_query_through_a_part_in_front_of_copies_sees_one_cut() {
    for workers in [1, 2, 3, 8] {
        for (queue, placement) in
            [(1, Placement::Auto), (8, Placement::Auto), (1, Placement::Fused)]
        {
            watched(move || {
                let mut graph = Graph::new();
                let numbers = graph.add("in", source(Numbers::endless()));
                let sum = graph.add_after(numbers, "sum", moving_sum());
                graph.workers(sum, workers).placement(placement);
                let (sink, rows) = kept();
                graph.add_after(sum, "sums", sink);
                let limits = QueueLimits { batches: queue, ..QueueLimits::default() };
                let options = RunOptions::new().queue(limits);
                let running = graph.build().unwrap().start(options).unwrap();
                let answers: Vec<Vec<u64>> = thread::scope(|scope| {
                    let ask = || {
                        let (queries, request) = (running.queries(), Request::new("sum"));
                        (0..50).map(|_| values(&queries.query("sum", &request).unwrap())).collect()
                    };
                    // Several callers, some of whom ask what the copies refuse.
                    let refused = || {
                        let (queries, request) = (running.queries(), Request::new("other"));
                        for _ in 0..50 {
                            let error = queries.query("sum", &request).unwrap_err();
                            assert!(matches!(error, QueryError::Unsupported { .. }), "{error}");
                        }
                        Vec::new()
                    };
                    let callers = [scope.spawn(ask), scope.spawn(ask), scope.spawn(refused)];
                    callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
                });
                assert_eq!(answers.len(), 100);
                for answer in answers {
                    assert_eq!(answer[0], answer[1], "of {workers} workers");
                }
                running.handle().stop();
                let metrics = running.join().unwrap();
                let count = metrics.stage("in").unwrap().items_out();
                assert_eq!(*lock(&rows), [count * (count - 1) / 2]);
            });
        }
    }
}

#[test]
fn queries_at_the_end_of_a_run_do_not_hold_it() {
    for run in 0..300 {
        watched(move || {
            let mut graph = Graph::new();
            let numbers = graph.add("in", source(Numbers::to(100 * (run % 40))));
            let sum = graph.add_after(numbers, "sum", moving_sum());
            graph.workers(sum, 3);
            let (sink, rows) = kept();
            graph.add_after(sum, "sums", sink);
            let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
            let queries = running.queries().clone();
            let end = thread::scope(|scope| {
                let asker = scope.spawn(|| {
                    loop {
                        match queries.query("sum", &Request::new("sum")) {
                            Ok(answer) => assert_eq!(values(&answer)[0], values(&answer)[1]),
                            Err(QueryError::Finished { .. }) => return,
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
                let end = running.join().unwrap().stage("in").unwrap().items_out();
                asker.join().unwrap();
                end
            });
            assert_eq!(*lock(&rows), [end * end.saturating_sub(1) / 2]);
        });
    }
}

/// A sink that keeps all numbers in the order in which they came.
fn kept() -> (impl OperatorSpec, Arc<Mutex<Vec<u64>>>) {
    let rows = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&rows);
    let sink = sink(Each(move |records: RecordBatch, _: &mut Output| {
        lock(&into).extend(values(&records));
        Ok(())
    }));
    (sink, rows)
}

/// The numbers below `end`, in order, that no number of `by` divides; and for each number of `by`,
/// the numbers that it divides first.
fn sifted(end: u64, by: &[u64]) -> (Vec<u64>, Vec<Vec<u64>>) {
    let mut sifted = vec![Vec::new(); by.len()];
    let passed = (0..end).filter(|n| {
        let first = by.iter().position(|by| n % by == 0);
        first.map(|first| sifted[first].push(*n)).is_none()
    });
    (passed.collect(), sifted)
}

#[derive(Debug, Clone)]
struct Case {
    end: u64,
    piece: u64,
    batch: u64,
    workers: usize,
    /// Whether the source is divided, or deals to the workers.
    is_divided: bool,
    by: Vec<u64>,
    queue: usize,
    fused: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let workers = prop::sample::select(vec![1_usize, 2, 3, 5, 8, 31]);
    let sizes = (0_u64..2000, 1_u64..90, 1_u64..40, 1_usize..4);
    (sizes, workers, any::<bool>(), prop::collection::vec(2_u64..9, 1..4), any::<bool>()).prop_map(
        |((end, piece, batch, queue), workers, is_divided, by, fused)| Case {
            end,
            piece,
            batch,
            workers,
            is_divided,
            by,
            queue,
            fused,
        },
    )
}

fn run(case: &Case) -> (Vec<u64>, Vec<Vec<u64>>, u64) {
    let mut graph = Graph::new();
    let mut last = if case.is_divided {
        graph.add("in", Pieces::to(case.end, case.piece, case.batch).spec())
    } else {
        let numbers = Numbers { next: 0, end: Some(case.end), batch: case.batch };
        graph.add("in", source(numbers))
    };
    graph.workers(last, case.workers);
    let mut rejected = Vec::new();
    for (index, &by) in case.by.iter().enumerate() {
        let load = if index % 2 == 0 { Load::Heavy } else { Load::Light };
        last = graph.add_after(last, format!("sift {index}"), Sift::by(by, load).spec());
        graph.workers(last, case.workers);
        let (sink, rows) = kept();
        graph.add_after(last.port(1), format!("rejected {index}"), sink);
        rejected.push(rows);
    }
    let (sink, rows) = kept();
    graph.add_after(last, "rows", sink);
    let sum = graph.add_after(last, "sum", PartialSum::spec());
    graph.workers(sum, case.workers);
    let (sink, sums) = kept();
    graph.add_after(sum, "sums", sink);
    if case.fused {
        graph.placement(Placement::Fused);
    }
    let limits = QueueLimits { batches: case.queue, ..QueueLimits::default() };
    let topology = graph.build().unwrap();
    for stage in topology.stages() {
        let divided = stage.division != Division::OnePlace;
        assert!(divided || stage.workers() == 1, "{}", stage.id);
    }
    topology.run(RunOptions::new().queue(limits)).unwrap();
    let rows_of = |rows: Arc<Mutex<Vec<u64>>>| std::mem::take(&mut *lock(&rows));
    let sums = rows_of(sums);
    assert_eq!(sums.len(), 1);
    (rows_of(rows), rejected.into_iter().map(rows_of).collect(), sums[0])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 96 }))]
    #[test]
    fn rows_of_workers_come_in_the_order_of_one(case in cases()) {
        let (passed, sifted) = sifted(case.end, &case.by);
        let given = case.clone();
        let (rows, rejected, sum) = watched(move || run(&given));
        prop_assert_eq!(&rows, &passed);
        prop_assert_eq!(rejected, sifted);
        prop_assert_eq!(sum, passed.iter().sum::<u64>());
    }
}

#[test]
fn a_query_adds_the_shares_of_all_workers() {
    watched(|| {
        let mut graph = Graph::new();
        let numbers = graph.add("in", Pieces::to(u64::MAX, 100, 100).spec());
        let sum = graph.add_after(numbers, "sum", PartialSum::spec());
        graph.workers(sum, 3);
        let (sink, _) = kept();
        graph.add_after(sum, "sums", sink);
        let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
        let queries = running.queries().clone();
        let watch = queries.watch("sum", Request::new("sum")).unwrap();
        let (mut before, mut watched) = (0, 0);
        for _ in 0..20 {
            let answer = values(&queries.query("sum", &Request::new("sum")).unwrap());
            let [sum, numbers] = answer[..] else { panic!("two numbers") };
            // Whole pieces have been counted, each once.
            assert!(numbers % 100 == 0 && numbers >= before, "{numbers} after {before}");
            assert!(
                sum >= numbers * numbers.saturating_sub(1) / 2,
                "the least that they add up to"
            );
            before = numbers;
            if let Some(latest) = watch.latest() {
                let [_, numbers] = values(latest.answer().unwrap())[..] else { panic!() };
                assert!(numbers >= watched, "{numbers} after {watched}");
                watched = numbers;
            }
        }
        running.handle().stop();
        running.join().unwrap();
    });
}

#[test]
fn a_worker_that_has_ended_answers_while_another_works() {
    watched(|| {
        // Four numbers in two pieces; the worker with the second piece waits for the gate.
        let gate = Arc::new(AtomicBool::new(false));
        let pieces = Pieces { gate: Some((1, Arc::clone(&gate))), ..Pieces::to(4, 2, 2) };
        let mut graph = Graph::new();
        let numbers = graph.add("in", pieces.spec());
        let sum = graph.add_after(numbers, "sum", PartialSum::spec());
        graph.workers(sum, 2);
        let (sink, rows) = kept();
        graph.add_after(sum, "sums", sink);
        let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
        let handle = running.handle();
        let has_ended = || {
            let metrics = handle.metrics();
            metrics.stage("sum").unwrap().parts.iter().any(|part| part.is_finished)
        };
        while !has_ended() {
            thread::yield_now();
        }
        let ask = || running.queries().query("sum", &Request::new("sum")).unwrap();
        for _ in 0..3 {
            assert_eq!(values(&ask()), [1, 2]);
        }
        let watch = running.queries().watch("sum", Request::new("sum")).unwrap();
        let latest = loop {
            match watch.latest() {
                Some(latest) => break latest,
                None => thread::yield_now(),
            }
        };
        assert_eq!(values(latest.answer().unwrap()), [1, 2]);
        gate.store(true, Ordering::Relaxed);
        let metrics = running.join().unwrap();
        assert_eq!(*lock(&rows), [6]);
        let stage = metrics.stage("sum").unwrap();
        assert_eq!((stage.items_in(), stage.items_out(), stage.workers()), (4, 1, 2));
        assert_eq!(metrics.stage("in").unwrap().items_out(), 4);
    });
}

#[test]
fn a_stopped_run_sends_the_pieces_that_were_taken() {
    for divided in [true, false] {
        watched(move || {
            let mut graph = Graph::new();
            let numbers = if divided {
                graph.add("in", Pieces::to(u64::MAX, 50, 7).spec())
            } else {
                graph.add("in", source(Numbers::endless()))
            };
            let sift = graph.add_after(numbers, "sift", Sift::by(3, Load::Heavy).spec());
            graph.workers(sift, 3);
            let (sink, rows) = kept();
            graph.add_after(sift, "rows", sink);
            let (sink, others) = kept();
            graph.add_after(sift.port(1), "others", sink);
            let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
            while lock(&rows).len() < 500 {
                thread::yield_now();
            }
            running.handle().stop();
            running.join().unwrap();
            let rows = lock(&rows);
            assert!(rows.is_sorted() && rows.iter().all(|n| n % 3 != 0));
            assert!(lock(&others).is_sorted());
        });
    }
}

#[test]
fn a_worker_that_fails_ends_the_run() {
    watched(|| {
        let mut graph = Graph::new();
        let numbers = graph.add("in", Pieces::to(u64::MAX, 50, 7).spec());
        let bind = || {
            let make = || {
                Ok(Each(|records: RecordBatch, _: &mut Output| {
                    match values(&records).iter().any(|&n| n > 5000) {
                        true => Err("too large".into()),
                        false => Ok(()),
                    }
                }))
            };
            Fragment::anywhere(Load::Heavy, make, Vec::new()).unwrap()
        };
        let stage = graph.add_after(numbers, "check", Spec { inputs: 1..=1, bind });
        graph.workers(stage, 4);
        let error = graph.build().unwrap().run(RunOptions::new()).unwrap_err();
        assert!(matches!(error.cause, RunErrorCause::Failed(_)), "{error}");
        assert!(error.stage.starts_with("check/"), "{}", error.stage);
    });
}

#[test]
fn fewer_workers_run_if_there_is_no_memory_for_more() {
    let spec = |copies_max: usize| {
        let bind = move || {
            let mut left = copies_max;
            let make = move || {
                left = left.checked_sub(1).ok_or_else(|| {
                    crate::error::BindErrorKind::Other("no memory".into()).at("memory")
                })?;
                Ok(Sift::by(3, Load::Heavy))
            };
            Fragment::anywhere(Load::Heavy, make, vec![schema(), schema()]).unwrap()
        };
        Spec { inputs: 1..=1, bind }
    };
    let build = |copies_max, workers: Option<usize>| {
        let mut graph = Graph::new();
        let numbers = graph.add("in", source(Numbers::to(1)));
        let sift = graph.add_after(numbers, "sift", spec(copies_max));
        match workers {
            Some(workers) => graph.workers(sift, workers),
            None => graph.cores(sift, vec![available_cores()[0]; 5]),
        };
        for port in 0..2 {
            let (sink, _) = kept();
            graph.add_after(sift.port(port), format!("rows {port}"), sink);
        }
        graph.build().map(|topology| topology.stages()[1].workers())
    };
    assert_eq!(build(3, None).unwrap(), 3);
    assert_eq!(build(5, Some(5)).unwrap(), 5);
    let error = build(3, Some(5)).unwrap_err().to_string();
    assert!(error.contains("no memory"), "{error}");
}

#[test]
fn stages_are_divided_where_that_pays() {
    let divided = |load: Load, workers: Option<usize>| {
        let mut graph = Graph::new();
        let numbers = graph.add("in", source(Numbers::to(1)));
        let sift = graph.add_after(numbers, "sift", Sift::by(3, load).spec());
        if let Some(workers) = workers {
            graph.workers(sift, workers);
        }
        for port in 0..2 {
            let (sink, _) = kept();
            graph.add_after(sift.port(port), format!("rows {port}"), sink);
        }
        graph.build().unwrap().stages()[1].workers()
    };
    assert_eq!(divided(Load::Light, None), 1, "light work is not worth a thread");
    assert_eq!(divided(Load::Light, Some(3)), 3);
    assert_eq!(divided(Load::Heavy, Some(1)), 1);
    assert_eq!(divided(Load::Heavy, None), crate::placement::parallelism());
}

#[test]
fn a_stage_on_one_core_leaves_the_stages_before_it_divided() {
    let mut graph = Graph::new();
    let numbers = graph.add("in", Pieces::to(10, 10, 10).spec());
    let sum = graph.add_after(numbers, "sum", PartialSum::spec());
    graph.workers(numbers, 3).cores(sum, [available_cores()[0]]);
    let (sink, rows) = kept();
    graph.add_after(sum, "sums", sink);
    let topology = graph.build().unwrap();
    assert_eq!([0, 1].map(|stage| topology.stages()[stage].workers()), [3, 1]);
    topology.run(RunOptions::new()).unwrap();
    assert_eq!(*lock(&rows), [45]);
}

#[test]
fn stages_behind_a_source_of_few_pieces_have_few_workers() {
    let workers = |most: usize, asked: Option<usize>| {
        let mut graph = Graph::new();
        let bind = move || {
            let make = || Ok(Pieces::to(10, 10, 10));
            let source = Fragment::divided_source(Load::Light, most, make, schema()).unwrap();
            source.with_input_bytes((most == 1).then_some(80))
        };
        let numbers = graph.add("in", Spec { inputs: 0..=0, bind });
        let sum = graph.add_after(numbers, "sum", PartialSum::spec());
        if let Some(asked) = asked {
            graph.workers(sum, asked);
        }
        let (sink, _) = kept();
        graph.add_after(sum, "sums", sink);
        let topology = graph.build().unwrap();
        [0, 1].map(|stage| topology.stages()[stage].workers())
    };
    assert_eq!(workers(1, None), [1, 1]);
    assert_eq!(workers(1, Some(3)), [1, 3], "a program that asks for workers gets them");
    assert_eq!(workers(2, Some(3)), [2, 2], "a third copy would have no piece");
    let all = crate::placement::parallelism();
    assert_eq!(workers(usize::MAX, None), [all, all]);
}
