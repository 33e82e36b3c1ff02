//! Restores the state of `frequent_pairs` from arbitrary bytes, after a valid header with checksum
//! and as snapshots with some bytes changed. An accepted state must count on without a panic, and
//! be written again as it was read.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run restore_pairs`
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arrow_array::builder::{ListBuilder, StringBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use libfuzzer_sys::fuzz_target;
use trommel_engine::graph::Graph;
use trommel_engine::runtime::RunOptions;
use trommel_operators::frequent_pairs::{PairWindow, Support};
use trommel_operators::{Collect, FrequentPairs, Memory};

const HEADER_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 4;

/// A folder of this process.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("trommel-fuzz-pairs-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("there is room for temporary files");
    folder
});

/// Transactions of the items `numbers`, up to five each.
fn batch(numbers: &[u8], are_texts: bool) -> RecordBatch {
    let sets: ArrayRef = if are_texts {
        let mut sets = ListBuilder::new(StringBuilder::new());
        let texts = |held: &[u8]| held.iter().map(|n| Some(n.to_string())).collect::<Vec<_>>();
        numbers.chunks(5).for_each(|held| sets.append_value(texts(held)));
        Arc::new(sets.finish())
    } else {
        let mut sets = ListBuilder::new(UInt32Builder::new());
        let items = |held: &[u8]| held.iter().map(|&n| Some(n.into())).collect::<Vec<_>>();
        numbers.chunks(5).for_each(|held| sets.append_value(items(held)));
        Arc::new(sets.finish())
    };
    RecordBatch::try_from_iter([("set", sets)]).expect("one column")
}

/// Runs the operator; false if it refuses the state.
fn run(numbers: &[u8], are_texts: bool, spec: FrequentPairs) -> bool {
    let batch = batch(numbers, are_texts);
    let mut graph = Graph::new();
    let source = graph.add("baskets", Memory::new(batch.schema(), vec![batch]));
    let pairs = graph.add_after(source, "pairs", spec);
    let (sink, _rows) = Collect::new();
    graph.add_after(pairs, "rows", sink);
    let Ok(pipeline) = graph.build() else { return false };
    pipeline.run(RunOptions::new()).is_ok()
}

fn spec(kind: u8) -> FrequentPairs {
    let spec = FrequentPairs::new(Support::Count(2)).memory_max(1 << 20);
    match kind % 3 {
        0 => spec,
        1 => spec.window(PairWindow::transactions(6).slide(2.0)).itemset(3),
        _ => spec.window(PairWindow::seconds(1e6).slide(1e5)),
    }
}

/// Writes the header, length and checksum of a valid state.
fn seal(bytes: &mut [u8], are_texts: bool) {
    let end = bytes.len() - CHECKSUM_BYTES;
    bytes[..8].copy_from_slice(b"trommel\x1a");
    bytes[8..16].copy_from_slice(&[2, 0, 4, if are_texts { 3 } else { 1 }, 0, 0, 0, 0]);
    bytes[16..24].copy_from_slice(&((end - HEADER_BYTES) as u64).to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
}

/// The state of a stream of one part of `data`, changed by the rest.
fn changed(state: &Path, data: &[u8], kind: u8, are_texts: bool) -> Vec<u8> {
    let (&split, data) = data.split_first().unwrap_or((&0, &[]));
    let (numbers, changes) = data.split_at(data.len() * usize::from(split) / 256);
    assert!(run(numbers, are_texts, spec(kind).snapshot(state)));
    let mut bytes = fs::read(state).expect("it was written");
    for change in changes.chunks_exact(3) {
        let offset = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[offset] = change[2];
    }
    bytes
}

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, mode], data)) = data.split_first_chunk() else { return };
    let are_texts = mode % 2 == 1;
    let (state, again) = (FOLDER.join("state"), FOLDER.join("again"));
    let mut bytes = match mode / 2 % 2 {
        0 => [&[0; HEADER_BYTES], data, &[0; CHECKSUM_BYTES]].concat(),
        _ => changed(&state, data, kind, are_texts),
    };
    seal(&mut bytes, are_texts);
    fs::write(&state, &bytes).expect("there is room");
    let _ = fs::remove_file(&again);
    if run(&[], are_texts, spec(kind).restore(&state).snapshot(&again)) {
        assert!(fs::read(&again).expect("it was written") == bytes, "there are two states");
        let _ = run(&data[..data.len().min(60)], are_texts, spec(kind).restore(&state));
    }
});
