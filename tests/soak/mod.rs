//! Conservation: random pipelines against a model that counts every item.
//!
//! Each pipeline is made from a seed: sources that pause, wait for pipes or read ahead; operators
//! that split, hold, delay, send chunks and replies, have work in flight, are slow, fail or panic;
//! outputs with several readers, inputs that unite; sinks in memory, in files and on a full disk;
//! any placement and queue. It is left alone, asked, stopped once or twice, aborted or dropped.
//! Whatever happens, no run hangs, and no sink sees an item twice or one that nobody sent; a run
//! that says it went well delivered every item that its sources had taken.
//!
//! `TROMMEL_SOAK_GRAPHS` is the number of pipelines, `TROMMEL_SOAK_SEED` the seed of the first. A
//! failure names its seed.

mod operators;
mod plan;
mod sources;
mod verdict;

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use plan::Plan;

/// Pipelines of a run of the tests.
const GRAPHS: u64 = 200;
/// Far more than any of these pipelines takes.
const WATCHDOG: Duration = Duration::from_secs(60);
/// The most memory that the process may ever have: what waits in a pipeline is bounded.
const MEMORY_BYTES_MAX: u64 = 1 << 30;

#[test]
fn random_pipelines_neither_hang_nor_lose_nor_double_an_item() {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
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

/// The most memory that this process has had; `None` where the operating system does not tell.
fn most_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}
