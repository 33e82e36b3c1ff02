//! Conservation: random pipelines against a model that counts every item.
//!
//! Each pipeline is made from a seed: sources that pause, wait for pipes or read ahead; operators
//! that split, hold, delay, send chunks and replies, have work in flight, are slow, fail or
//! panic; stages that are divided over up to 31 workers; outputs with several readers, inputs that
//! unite; sinks in memory, in files and on a full disk; any placement and queue. It runs
//! undisturbed, or is queried, stopped once or twice, aborted or dropped. In no case may a run
//! hang, or a sink see an item twice or one that was never sent; a successful run delivers every
//! item that its sources have taken, and a sink behind a chain of stages gets the items in their
//! order.
//!
//! `TROMMEL_SOAK_GRAPHS` is the number of pipelines, `TROMMEL_SOAK_SEED` the seed of the first. A
//! failure names its seed. `TROMMEL_SOAK_ITEMS` is the number of items that a slow sink gets.

mod operators;
mod plan;
mod sources;
mod verdict;

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;
use trommel::batch::Payload;
use trommel::error::BindError;
use trommel::operator::{
    BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};
use trommel::{Discard, Generate, Graph, RunOptions};

use plan::Plan;

/// Number of pipelines per run of the tests.
const GRAPHS: u64 = 200;
/// Items for a slow sink per run of the tests.
const ITEMS: u64 = 200_000;
/// Time limit, far above the time of any of these pipelines.
const WATCHDOG: Duration = Duration::from_secs(60);
/// Maximum memory of the process: the memory of waiting batches is bounded.
const MEMORY_BYTES_MAX: u64 = 1 << 30;

#[test]
fn random_pipelines_neither_hang_nor_lose_nor_double_an_item() {
    let first = number("TROMMEL_SOAK_SEED").unwrap_or(1);
    let graphs = number("TROMMEL_SOAK_GRAPHS").unwrap_or(GRAPHS);
    let mut endings = verdict::Endings::default();
    for seed in first..first + graphs {
        endings.add(watched(seed));
    }
    println!("{graphs} pipelines from seed {first}: {endings}");
    if let Some(bytes) = most_memory() {
        assert!(bytes < MEMORY_BYTES_MAX, "the process had {bytes} bytes");
    }
}

/// Reads a number from the environment.
fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().expect(name))
}

/// Runs the pipeline of this seed, and names the seed if it fails or hangs.
fn watched(seed: u64) -> verdict::Ending {
    let (done, ended) = channel();
    let run = move || drop(done.send(catch_unwind(AssertUnwindSafe(|| Plan::new(seed).check()))));
    thread::Builder::new().spawn(run).unwrap();
    match ended.recv_timeout(WATCHDOG) {
        Ok(Ok(ending)) => ending,
        Ok(Err(_)) => panic!("pipeline of seed {seed} failed: {:#?}", Plan::new(seed)),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            panic!("pipeline of seed {seed} hangs: {:#?}", Plan::new(seed))
        }
    }
}

/// Peak memory of this process; `None` where the operating system does not report it.
fn most_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Factor by which the sink is slower than the source.
const SLOWER: u32 = 100;
/// Memory that a run may add: the queues, and the output of one call of each part.
const ADDED_BYTES_MAX: u64 = 96 << 20;

/// Sink that takes a hundred times as long for a batch as the source took to make it.
struct SlowSink {
    taken: Arc<AtomicU64>,
    /// Time of the source per item.
    source_ns: f64,
}

impl Operator for SlowSink {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        let items = input.items();
        let until = Instant::now()
            + Duration::from_secs_f64(items as f64 * self.source_ns * 1e-9 * f64::from(SLOWER));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.taken.fetch_add(items as u64, Ordering::Relaxed);
        Ok(Flow::NeedInput)
    }
}

impl OperatorSpec for SlowSink {
    fn operator(&self) -> &'static str {
        "slow"
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        Ok(Fragment::operator(Load::Heavy, *self, Vec::new()))
    }
}

#[test]
fn a_sink_a_hundred_times_slower_gets_every_item_in_bounded_memory() {
    let items = number("TROMMEL_SOAK_ITEMS").unwrap_or(ITEMS);
    let source = || Generate::zipf(1_000_000, 0.5).items(items);
    let mut alone = Graph::new();
    let generated = alone.add("items", source());
    alone.add_after(generated, "end", Discard::new());
    let wall = alone.build().unwrap().run(RunOptions::new()).unwrap().wall;
    let source_ns = wall.as_secs_f64() * 1e9 / items as f64;

    let before = most_memory();
    let taken = Arc::new(AtomicU64::new(0));
    let mut graph = Graph::new();
    let generated = graph.add("items", source());
    graph.add_after(generated, "slow", SlowSink { taken: Arc::clone(&taken), source_ns });
    let metrics = graph.build().unwrap().run(RunOptions::new()).unwrap();
    assert_eq!(taken.load(Ordering::Relaxed), items);
    assert!(metrics.wall > wall * SLOWER / 2, "the sink is slow: {:?}", metrics.wall);
    // The kernel counts the memory of threads in steps, so its peak can fall by some pages.
    let added = most_memory().zip(before).map(|(after, before)| after.saturating_sub(before));
    println!("{items} items in {:?}, alone {wall:?}; {added:?} bytes more", metrics.wall);
    assert!(added.is_none_or(|added| added < ADDED_BYTES_MAX), "{added:?} bytes more");
}
