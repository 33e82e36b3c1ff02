//! An operator of one's own on a device: right on the CPU and on the stand-in driver, from Rust and
//! from JSON.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod operator;

use std::process::Command;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use trommel_engine::graph::Graph;
use trommel_engine::query::Request;
use trommel_engine::registry::{Configured, Registry};
use trommel_engine::runtime::RunOptions;
use trommel_operators::wave::Device;
use trommel_operators::{Collect, Discard, Memory};
use trommel_shim::{Form, StandIn};

use self::operator::ChunkSums;

/// The device of a child process, which finds the stand-in driver.
const DEVICE: &str = "CHUNK_SUM_DEVICE";

impl Configured for ChunkSums {
    const NAME: &'static str = "chunk_sum";
    const SUMMARY: &'static str = "add up every few numbers";
}

fn numbers(count: u32) -> Vec<u32> {
    (0..count).map(|number| number.wrapping_mul(0x9E37_79B1)).collect()
}

fn batch(numbers: &[u32]) -> RecordBatch {
    let column: ArrayRef = Arc::new(UInt32Array::from(numbers.to_vec()));
    RecordBatch::try_from_iter_with_nullable([("item", column, false)]).unwrap()
}

/// Sums of `count` numbers that come in batches of `batch_len`, and the chunks that a device
/// answered.
fn sums(count: u32, batch_len: usize, len: u32, device: Device) -> (Vec<u64>, u64) {
    let numbers = numbers(count);
    let batches: Vec<RecordBatch> = numbers.chunks(batch_len).map(batch).collect();
    let mut graph = Graph::new();
    let source = graph.add("numbers", Memory::new(batch(&[]).schema(), batches));
    let sums = graph.add_after(source, "sums", ChunkSums { len, device });
    let (sink, rows) = Collect::new();
    graph.add_after(sums, "rows", sink);
    let metrics = graph.build().unwrap().run(RunOptions::new()).unwrap();
    let counters = &metrics.stage("sums").unwrap().parts[1].counters;
    let on_device = counters.iter().find(|counter| counter.0 == "waves_on_device").unwrap().1;
    let values = |rows: &RecordBatch| rows.column(0).as_primitive::<UInt64Type>().values().to_vec();
    (rows.batches().iter().flat_map(values).collect(), on_device)
}

fn by_hand(count: u32, len: u32) -> Vec<u64> {
    let groups = numbers(count);
    let sum = |group: &[u32]| group.iter().fold(0, |sum, &number| sum + u64::from(number));
    groups.chunks(len as usize).map(sum).collect()
}

const CASES: [(u32, usize, u32); 6] =
    [(0, 1, 1), (1, 1, 9), (9, 4, 3), (10_000, 333, 7), (600_000, 65_536, 1000), (32, 32, 32)];

#[test]
fn sums_are_those_of_adding_by_hand() {
    for (count, batch_len, len) in CASES {
        let (found, on_device) = sums(count, batch_len, len, Device::Cpu);
        assert_eq!((found, on_device), (by_hand(count, len), 0), "{count} {batch_len} {len}");
    }
}

#[test]
fn child() {
    let Ok(device) = std::env::var(DEVICE) else { return };
    for (count, batch_len, len) in CASES {
        let (found, on_device) = sums(count, batch_len, len, device.parse().unwrap());
        assert_eq!(found, by_hand(count, len), "{device} {count} {batch_len} {len}");
        assert_eq!(on_device > 0, device == "cuda" && count > 0, "{device} {count}");
    }
    println!("OUTCOME fine");
}

#[test]
fn sums_are_the_same_on_a_device() {
    let stand_in = StandIn::new(Form::Plain);
    // `auto` opens no device for so little work.
    for device in ["cuda", "auto"] {
        let mut child: Command = stand_in.command(std::env::current_exe().unwrap());
        child.args(["child", "--exact", "--nocapture"]).env(DEVICE, device);
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("OUTCOME fine"), "{device}: {said} {errors}");
    }
}

#[test]
fn it_runs_from_json_like_the_operators_of_the_crate() {
    let mut registry = Registry::new();
    trommel_operators::register_all(&mut registry);
    registry.register::<ChunkSums>();
    let json = r#"{ "stages": [
        { "id": "items", "operator": "generate", "with": { "kind": "zipf", "items": 1000 } },
        { "id": "sums", "operator": "chunk_sum", "inputs": ["items"], "with": { "len": 10 } },
        { "id": "end", "operator": "discard", "inputs": ["sums"] } ] }"#;
    let pipeline = trommel_engine::config::load(json, "pipeline.json", &registry, &[]).unwrap();
    let metrics = pipeline.topology.run(RunOptions::new()).unwrap();
    assert_eq!(metrics.stage("end").unwrap().items_in(), 100);
    let wrong = json.replace("\"len\": 10", "\"len\": 0");
    let error = trommel_engine::config::load(&wrong, "pipeline.json", &registry, &[]).unwrap_err();
    assert!(error.to_string().contains("1 to 65536"), "{error}");
}

#[test]
fn a_query_is_answered_while_numbers_come() {
    let batches = || (0..).map(|turn: u32| batch(&numbers(1000 + turn % 2)));
    let mut graph = Graph::new();
    let source = graph.add("numbers", Memory::new(batch(&[]).schema(), batches()));
    let sums = graph.add_after(source, "sums", ChunkSums { len: 10, device: Device::Cpu });
    graph.add_after(sums, "end", Discard::new());
    let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
    let request = Request::new("sum");
    let ask = || {
        let rows = running.query("sums", &request).unwrap();
        rows.column(0).as_primitive::<UInt64Type>().value(0)
    };
    let (mut last, mut steps) = (0, 0);
    while steps < 5 {
        let total = ask();
        assert!(total >= last, "{total} after {last}");
        steps += u32::from(total > last);
        last = total;
    }
    running.stop();
    running.join().unwrap();
}
