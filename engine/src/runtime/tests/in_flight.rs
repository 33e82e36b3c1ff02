//! Operators with work in flight: prepare, device, collect, and buffers that come back.

use std::collections::VecDeque;
use std::time::Instant;

use super::*;
use crate::batch::Origin;

/// Time that a chunk is in flight.
const FLIGHT: Duration = Duration::from_micros(700);
/// Number of buffers.
const BUFFERS: usize = 3;

type Buffer = Box<Vec<u64>>;

fn chunk(buffer: Buffer) -> Chunk {
    let items = buffer.len();
    Chunk::from_box(buffer, items, 8 * items)
}

/// Sums up the numbers, and waits for a buffer when all are in flight.
struct Prepare {
    sum: u64,
    free: Vec<Buffer>,
    batch: Vec<u64>,
}

impl Prepare {
    fn send(&mut self, out: &mut Output) -> Flow {
        let Some(mut buffer) = self.free.pop() else { return Flow::AwaitReply };
        buffer.clear();
        buffer.append(&mut self.batch);
        self.sum += buffer.iter().sum::<u64>();
        out.send_chunk(chunk(buffer));
        Flow::NeedInput
    }
}

impl Operator for Prepare {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.batch = values(&input.into_records());
        Ok(self.send(out))
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        self.free.push(reply.into_box());
        Ok(self.send(out))
    }

    fn query(&self, _: &Request, _: Option<QueryPayload>) -> Result<Response, QueryError> {
        Ok(Response::Forward(Box::new(vec![self.sum])))
    }
}

/// Keeps every chunk for a while.
struct Device {
    flying: VecDeque<(Buffer, Option<Origin>, Instant)>,
    flying_max: usize,
    sum: u64,
}

impl Device {
    fn flow(&self) -> Flow {
        if self.flying.is_empty() { Flow::NeedInput } else { Flow::InFlight }
    }
}

impl Operator for Device {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        let origin = input.origin();
        let buffer: Buffer = input.into_chunk().into_box();
        self.flying.push_back((buffer, origin, Instant::now() + FLIGHT));
        self.flying_max = self.flying_max.max(self.flying.len());
        Ok(Flow::InFlight)
    }

    fn takes_replies(&self) -> bool {
        true
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        out.send_reply(reply);
        Ok(self.flow())
    }

    fn finish(&mut self, _: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.flow())
    }

    fn wake_at(&self) -> Option<Instant> {
        self.flying.front().map(|(.., lands)| *lands)
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        let (buffer, origin, lands) = self.flying.pop_front().expect("something is in flight");
        assert!(lands <= now, "{:?} too early", lands - now);
        self.sum += buffer.iter().sum::<u64>();
        out.send_chunk(chunk(buffer).with_origin(origin));
        Ok(self.flow())
    }

    fn query(&self, _: &Request, payload: Option<QueryPayload>) -> Result<Response, QueryError> {
        let mut sums: Box<Vec<u64>> = payload.expect("from before").downcast().expect("sums");
        sums.push(self.sum);
        Ok(Response::Forward(sums))
    }

    fn counters(&self) -> crate::operator::Counters {
        vec![("flying_max", self.flying_max as u64)]
    }
}

/// Passes the numbers on and gives the buffer back.
struct Collector(u64);

impl Operator for Collector {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let buffer: Buffer = input.into_chunk().into_box();
        self.0 += buffer.iter().sum::<u64>();
        out.send(batch(buffer.iter().copied()));
        out.send_reply(chunk(buffer));
        Ok(Flow::NeedInput)
    }

    fn query(&self, _: &Request, payload: Option<QueryPayload>) -> Result<Response, QueryError> {
        let mut sums: Box<Vec<u64>> = payload.expect("from before").downcast().expect("sums");
        sums.push(self.0);
        Ok(Response::Answer(batch(*sums)))
    }
}

fn three_parts() -> impl OperatorSpec {
    let part = |name: &'static str, operator| Part {
        name: name.into(),
        load: Load::Heavy,
        body: Body::Operator(operator),
    };
    let free = (0..BUFFERS).map(|_| Buffer::default()).collect();
    let bind = move || {
        let parts = vec![
            part("prepare", Box::new(Prepare { sum: 0, free, batch: Vec::new() })),
            part("device", Box::new(Device { flying: VecDeque::new(), flying_max: 0, sum: 0 })),
            part("collect", Box::new(Collector(0))),
        ];
        Fragment::new(parts, vec![schema()])
    };
    Spec { inputs: 1..=1, bind }
}

fn waves(numbers: Numbers, end: impl OperatorSpec + 'static) -> (Graph, [StageId; 3]) {
    let mut graph = Graph::new();
    let numbers = graph.add("numbers", source(numbers));
    let waves = graph.add_after(numbers, "waves", three_parts());
    let end = graph.add_after(waves, "end", end);
    (graph, [numbers, waves, end])
}

/// On one thread, by load, and with a core for each part while there are cores.
fn wave_placements(make: impl Fn() -> (Graph, [StageId; 3])) -> Vec<Graph> {
    let stages = make().1;
    let mut graphs = placements(&stages, || make().0);
    let (mut graph, [_, waves, _]) = make();
    graph.cores(waves, available_cores().iter().copied().take(3).collect::<Vec<_>>());
    graphs.push(graph);
    graphs
}

#[test]
fn what_is_in_flight_lands_in_order_and_buffers_come_back_under_every_placement() {
    let kept = Mutex::new(Vec::new());
    let graphs = wave_placements(|| {
        let (spec, place) = collect();
        lock(&kept).push(place);
        waves(Numbers::to(3_050), spec)
    });
    let kept: Vec<_> =
        kept.into_inner().unwrap().into_iter().filter(|k| Arc::strong_count(k) > 1).collect();
    assert_eq!(graphs.len(), kept.len());
    for (graph, kept) in graphs.into_iter().zip(kept) {
        let metrics = run(graph, SMALL).unwrap();
        assert!(lock(&kept).iter().copied().eq(0..3_050));
        let stage = metrics.stage("waves").unwrap();
        assert_eq!(stage.parts[1].counters, [("flying_max", BUFFERS as u64)]);
        assert!(stage.latency().quantile(0.0) >= FLIGHT, "latency counts from the source");
    }
}

#[test]
fn queries_wait_for_what_is_in_flight_before_them_and_for_no_more() {
    for graph in wave_placements(|| waves(Numbers::endless(), collect().0)) {
        watched(move || {
            let running = start(graph, QueueLimits::default());
            let queries = running.queries();
            let (mut last, mut asked) = (0, 0);
            // Until the stream has gone on: the first queries may come earlier.
            while asked < 20 || last == 0 {
                let sums = values(&queries.query("waves", &Request::new("sums")).unwrap());
                assert_eq!(sums, [sums[0]; 3], "exact at a batch boundary");
                assert!(sums[0] >= last);
                last = sums[0];
                asked += 1;
            }
            running.stop();
            running.join().unwrap();
        });
    }
}

#[test]
fn a_run_that_is_stopped_lands_what_is_in_flight_and_one_that_is_aborted_does_not_wait() {
    for graph in wave_placements(|| waves(Numbers::endless(), collect().0)) {
        watched(move || {
            let mut running = start(graph, SMALL);
            assert!(!running.wait(Duration::from_millis(20)));
            running.stop();
            let metrics = running.join().unwrap();
            let sent = metrics.stage("numbers").unwrap().items_out();
            assert_eq!(metrics.stage("end").unwrap().items_in(), sent);
        });
    }
    watched(|| {
        let mut running = start(waves(Numbers::endless(), collect().0).0, SMALL);
        assert!(!running.wait(Duration::from_millis(20)));
        running.abort();
        let error = running.join().expect_err("it is aborted");
        assert!(matches!(error.cause, RunErrorCause::Aborted), "{error}");
    });
}

#[test]
fn a_thread_with_work_in_flight_sleeps_until_it_lands() {
    let (graph, _) = waves(Numbers { next: 0, end: Some(100), batch: 1 }, collect().0);
    let metrics = run(graph, QueueLimits::default()).unwrap();
    let device = &metrics.stage("waves").unwrap().parts[1];
    let flights = FLIGHT * (100 / u32::try_from(BUFFERS).unwrap());
    assert!(metrics.wall >= flights, "{:?}", metrics.wall);
    assert!(device.busy < metrics.wall / 2, "busy {:?} of {:?}", device.busy, metrics.wall);
}

/// As [`Prepare`], but takes buffers back at any time, so that the part seldom waits for a buffer.
struct Eager(Prepare);

impl Operator for Eager {
    fn process(
        &mut self,
        port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.0.process(port, input, out)
    }

    fn takes_replies(&self) -> bool {
        true
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        self.0.free.push(reply.into_box());
        Ok(if self.0.batch.is_empty() { Flow::NeedInput } else { self.0.send(out) })
    }

    fn query(
        &self,
        request: &Request,
        payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        self.0.query(request, payload)
    }
}

/// Numbers with pauses, so that the parts after it are at a boundary or have free buffers.
struct Paced(u64);

impl Source for Paced {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.0 += 1;
        out.send(batch([self.0]));
        Ok(SourceFlow::Idle(Duration::from_micros(120)))
    }
}

#[test]
fn a_query_is_answered_at_its_position_though_later_chunks_arrive_while_work_is_in_flight() {
    let stages = waves(Numbers::endless(), collect().0).1;
    let make = || {
        let part = |name: &'static str, operator| Part {
            name: name.into(),
            load: Load::Heavy,
            body: Body::Operator(operator),
        };
        let free = (0..15).map(|_| Buffer::default()).collect();
        let prepare = Eager(Prepare { sum: 0, free, batch: Vec::new() });
        let bind = move || {
            let parts = vec![
                part("prepare", Box::new(prepare)),
                part("device", Box::new(Device { flying: VecDeque::new(), flying_max: 0, sum: 0 })),
                part("collect", Box::new(Collector(0))),
            ];
            Fragment::new(parts, vec![schema()])
        };
        let mut graph = Graph::new();
        let numbers = graph.add("numbers", source(Paced(0)));
        let waves = graph.add_after(numbers, "waves", Spec { inputs: 1..=1, bind });
        graph.add_after(waves, "end", collect().0);
        graph
    };
    let mut graphs = placements(&stages, make);
    let cores = available_cores();
    if cores.len() > 1 {
        let mut graph = make();
        graph.cores(stages[1], [cores[0], cores[1], cores[1]]);
        graphs.push(graph);
    }
    for graph in graphs {
        watched(move || {
            let running = start(graph, QueueLimits::default());
            for _ in 0..300 {
                let sums = values(&running.query("waves", &Request::new("sums")).unwrap());
                assert_eq!(sums, [sums[0]; 3], "exact at a batch boundary");
                thread::park_timeout(Duration::from_micros(333));
            }
            running.stop();
            running.join().unwrap();
        });
    }
}
