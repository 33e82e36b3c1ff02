//! Operators with parts side by side.

use std::collections::VecDeque;
use std::time::Instant;

use super::*;
use crate::batch::{Batch, Origin};

/// Chunks that are in use at most.
const CHUNKS: usize = 5;

/// Sends each batch to one of several workers in turn, and waits when all chunks are in use.
struct Deal {
    workers: usize,
    sent: u64,
    in_use: usize,
    batch: Option<Vec<u64>>,
}

impl Deal {
    fn send(&mut self, out: &mut Output) -> Flow {
        if self.in_use == CHUNKS {
            return Flow::AwaitReply;
        }
        if let Some(batch) = self.batch.take() {
            let items = batch.len();
            let worker = usize::try_from(self.sent).unwrap() % self.workers;
            out.send_chunk_to(worker, Chunk::new((self.sent, batch), items, 8 * items));
            self.sent += 1;
            self.in_use += 1;
        }
        Flow::NeedInput
    }
}

impl Operator for Deal {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        if self.sent == 0 {
            // Longer than work in the background waits.
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(1) {}
        }
        self.batch = Some(values(&input.into_records()));
        Ok(self.send(out))
    }

    fn takes_replies(&self) -> bool {
        true
    }

    fn reply(&mut self, _: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        self.in_use -= 1;
        Ok(self.send(out))
    }

    fn query(&self, _: &Request, _: Option<QueryPayload>) -> Result<Response, QueryError> {
        Ok(Response::Answer(batch([self.sent])))
    }
}

/// Doubles numbers in the background.
#[derive(Default)]
struct Double {
    waiting: VecDeque<(u64, Vec<u64>)>,
    /// Number of chunks that waited at the first background call.
    waiting_first: Option<usize>,
    waiting_max: usize,
}

impl Double {
    fn flow(&self) -> Flow {
        if self.waiting.is_empty() { Flow::NeedInput } else { Flow::Background }
    }
}

impl Operator for Double {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        self.waiting.push_back(*input.into_chunk().into_box());
        self.waiting_max = self.waiting_max.max(self.waiting.len());
        Ok(Flow::Background)
    }

    fn wake(&mut self, _: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        self.waiting_first.get_or_insert(self.waiting.len());
        let (number, batch) = self.waiting.pop_front().expect("there is work");
        let batch: Vec<u64> = batch.iter().map(|n| 2 * n).collect();
        let items = batch.len();
        out.send_chunk(Chunk::new((number, batch), items, 8 * items));
        Ok(self.flow())
    }

    fn finish(&mut self, _: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.flow())
    }

    fn counters(&self) -> crate::operator::Counters {
        let first = self.waiting_first.unwrap_or(0);
        vec![("waiting_first", first as u64), ("waiting_max", self.waiting_max as u64)]
    }
}

/// Passes the numbers on, and gives the chunk back.
struct Join;

impl Operator for Join {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let (_, numbers) = *input.into_chunk().into_box::<(u64, Vec<u64>)>();
        out.send(batch(numbers));
        out.send_reply(Chunk::new((), 0, 0));
        Ok(Flow::NeedInput)
    }
}

fn side_by_side(workers: usize) -> impl OperatorSpec {
    let part = |name: String, load, operator| Part {
        name: name.into(),
        load,
        body: Body::Operator(operator),
    };
    let bind = move || {
        let deal = Deal { workers, sent: 0, in_use: 0, batch: None };
        let mut parts = vec![part("deal".into(), Load::Light, Box::new(deal))];
        parts.extend((0..workers).map(|worker| {
            part(format!("double {worker}"), Load::Heavy, Box::new(Double::default()) as Box<_>)
        }));
        parts.push(part("join".into(), Load::Light, Box::new(Join)));
        Fragment::with_workers(parts, vec![schema()])
    };
    Spec { inputs: 1..=1, bind }
}

/// The kept numbers of a run.
type Kept = Arc<Mutex<Vec<u64>>>;

/// The operator with its parts on one thread, on several, and on one, two and many named cores.
fn spread(numbers: impl Fn() -> Numbers, workers: usize) -> Vec<(Graph, Kept)> {
    let cores = available_cores();
    let named = [None, None, Some(1), Some(2), Some(workers + 2)];
    let graph = |(position, named): (usize, Option<usize>)| {
        let mut graph = Graph::new();
        let source = graph.add("numbers", source(numbers()));
        let stage = graph.add_after(source, "deal", side_by_side(workers));
        let (sink, kept) = collect();
        graph.add_after(stage, "end", sink);
        if position == 0 {
            graph.placement(Placement::Fused);
        }
        if let Some(count) = named {
            graph.cores(stage, cores.iter().copied().cycle().take(count).collect::<Vec<_>>());
        }
        (graph, kept)
    };
    named.into_iter().enumerate().map(graph).collect()
}

#[test]
fn chunks_of_all_workers_reach_the_last_part_and_come_back() {
    for workers in [1, 2, 3, 7] {
        for (graph, kept) in spread(|| Numbers::to(3_050), workers) {
            let metrics = run(graph, SMALL).unwrap();
            let mut found = lock(&kept).clone();
            found.sort_unstable();
            assert!(found.into_iter().eq((0..3_050).map(|n| 2 * n)), "{workers} workers");
            let parts = &metrics.stage("deal").unwrap().parts;
            assert_eq!(parts.len(), workers + 2);
            let chunks = 31_usize;
            for (worker, part) in parts[1..=workers].iter().enumerate() {
                let dealt = (chunks - worker).div_ceil(workers);
                assert_eq!(part.batches_in, dealt as u64, "worker {worker} of {workers}");
            }
        }
    }
}

#[test]
fn work_in_the_background_comes_after_all_other_work_of_its_thread() {
    let waiting = || {
        let (graph, _) = spread(|| Numbers::to(3_000), 1).swap_remove(0);
        let metrics = run(graph, SMALL).unwrap();
        metrics.stage("deal").unwrap().parts[1].counters.clone()
    };
    assert_eq!(waiting()[1], ("waiting_max", CHUNKS as u64), "all chunks are dealt");
    // A first chunk that takes long to make does not bring the background call before the second
    // chunk. The call may come early only if the thread was held up just then.
    let is_dealt_first = |_| waiting()[0] == ("waiting_first", CHUNKS as u64);
    assert!((0..10).any(is_dealt_first), "first all chunks are dealt");
}

/// Has work in the background from the first batch on, until it is done.
struct Patient(bool);

impl Operator for Patient {
    fn process(&mut self, _: usize, _: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        Ok(if self.0 { Flow::NeedInput } else { Flow::Background })
    }

    fn wake(&mut self, _: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        self.0 = true;
        out.send(batch([1]));
        Ok(Flow::NeedInput)
    }
}

#[test]
fn work_in_the_background_is_done_though_a_thread_never_idles() {
    watched(|| {
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::endless()));
        let patient = graph.add_after(numbers, "patient", operator(Patient(false)));
        let (sink, kept) = collect();
        graph.add_after(patient, "end", sink);
        graph.placement(Placement::Fused);
        let running = start(graph, QueueLimits::default());
        while lock(&kept).is_empty() {
            thread::yield_now();
        }
        running.stop();
        running.join().unwrap();
    });
}

#[test]
fn the_first_part_is_asked_and_a_stop_lets_all_work_end() {
    for (graph, kept) in spread(Numbers::endless, 3) {
        watched(move || {
            let running = start(graph, QueueLimits::default());
            while values(&running.query("deal", &Request::new("sent")).unwrap()) < vec![20] {}
            running.stop();
            let metrics = running.join().unwrap();
            let sent = metrics.stage("numbers").unwrap().items_out();
            assert_eq!(lock(&kept).len() as u64, sent);
        });
    }
}

#[test]
fn a_worker_that_fails_ends_the_run() {
    struct Broken;
    impl Operator for Broken {
        fn process(&mut self, _: usize, _: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
            Err("no".into())
        }
    }
    let part = |name: &'static str, operator| Part {
        name: name.into(),
        load: Load::Heavy,
        body: Body::Operator(operator),
    };
    let bind = move || {
        let deal = Deal { workers: 2, sent: 0, in_use: 0, batch: None };
        let parts = vec![
            part("deal", Box::new(deal)),
            part("double", Box::<Double>::default()),
            part("broken", Box::new(Broken)),
            part("join", Box::new(Join)),
        ];
        Fragment::with_workers(parts, vec![schema()])
    };
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(Numbers::endless()));
    let stage = graph.add_after(numbers, "deal", Spec { inputs: 1..=1, bind });
    graph.add_after(stage, "end", collect().0);
    let error = run(graph, SMALL).unwrap_err();
    assert_eq!(error.stage, "deal/broken");
}

/// Sends the first number of each batch to output 1, and deals the other numbers.
struct Select(Deal);

impl Operator for Select {
    fn process(
        &mut self,
        port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = input.into_records();
        out.send_to(1, records.slice(0, 1));
        let origin = Origin { sequence: 0, entered: Instant::now() };
        let records = records.slice(1, records.num_rows() - 1);
        self.0.process(port, Payload::Batch(Batch { records, origin }), out)
    }

    fn takes_replies(&self) -> bool {
        true
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        self.0.reply(reply, out)
    }
}

#[test]
fn rows_leave_the_first_part_beside_its_chunks() {
    for (workers, placement) in
        [1, 3].into_iter().flat_map(|n| [(n, Placement::Auto), (n, Placement::Fused)])
    {
        let part =
            |load, operator| Part { name: "part".into(), load, body: Body::Operator(operator) };
        let bind = move || {
            let deal = Deal { workers, sent: 0, in_use: 0, batch: None };
            let mut parts = vec![part(Load::Light, Box::new(Select(deal)) as Box<dyn Operator>)];
            let doubles = (0..workers).map(|_| part(Load::Heavy, Box::<Double>::default()));
            parts.extend(doubles);
            parts.push(part(Load::Light, Box::new(Join)));
            Fragment::with_workers(parts, vec![schema()]).with_early_outputs([schema()])
        };
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Numbers::to(3_000)));
        let stage = graph.add_after(numbers, "select", Spec { inputs: 1..=1, bind });
        let ((doubled, kept), (first, selected)) = (collect(), collect());
        graph.add_after(stage, "doubled", doubled);
        graph.add_after(stage.port(1), "first", first);
        graph.placement(placement);
        run(graph, SMALL).unwrap();
        let mut found = lock(&kept).clone();
        found.sort_unstable();
        let is_first = |n: &u64| n.is_multiple_of(100);
        let others = (0..3_000).filter(|n| !is_first(n)).map(|n| 2 * n);
        assert!(found.into_iter().eq(others), "{workers} workers");
        assert!(lock(&selected).iter().copied().eq((0..3_000).filter(is_first)));
    }
}
