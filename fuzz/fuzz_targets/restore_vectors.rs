//! Restores the window of a streaming `epsilon_join` from arbitrary bytes, after a valid header
//! with checksum and as snapshots with some bytes changed. An accepted state must join on without
//! a panic, and be written again as it was read.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run restore_vectors`
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use libfuzzer_sys::fuzz_target;
use trommel_engine::graph::Graph;
use trommel_engine::runtime::RunOptions;
use trommel_operators::epsilon_join::{EpsilonAlgorithm, VectorWindow};
use trommel_operators::{Collect, EpsilonJoin, Memory};

const HEADER_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 4;

/// A folder of this process.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("trommel-fuzz-vectors-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("there is room for temporary files");
    folder
});

/// Vectors of two coordinates.
fn batch(numbers: &[u8]) -> RecordBatch {
    let mut vectors = FixedSizeListBuilder::new(Float32Builder::new(), 2);
    for vector in numbers.chunks_exact(2) {
        vectors.values().append_slice(&[vector[0].into(), vector[1].into()]);
        vectors.append(true);
    }
    let ids = UInt32Array::from_iter_values((0..).take(numbers.len() / 2));
    let columns: [(&str, ArrayRef); 2] =
        [("id", Arc::new(ids)), ("vector", Arc::new(vectors.finish()))];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// Runs the operator; false if it refuses the state.
fn run(numbers: &[u8], spec: EpsilonJoin) -> bool {
    let batch = batch(numbers);
    let batches = if batch.num_rows() > 0 { vec![batch.clone()] } else { Vec::new() };
    let mut graph = Graph::new();
    let source = graph.add("vectors", Memory::new(batch.schema(), batches));
    let near = graph.add_after(source, "near", spec);
    let (sink, _rows) = Collect::new();
    graph.add_after(near, "rows", sink);
    let Ok(pipeline) = graph.build() else { return false };
    pipeline.run(RunOptions::new()).is_ok()
}

fn spec(kind: u8) -> EpsilonJoin {
    let spec = EpsilonJoin::new(3.0).memory_max(1 << 20);
    let spec = if kind & 4 == 0 { spec } else { spec.algorithm(EpsilonAlgorithm::Directory) };
    match kind % 3 {
        0 => spec.window(VectorWindow::vectors(9)),
        1 => spec.window(VectorWindow::vectors(1 << 50)),
        _ => spec.window(VectorWindow::seconds(1e6)),
    }
}

/// Writes the header, length and checksum of a valid state.
fn seal(bytes: &mut [u8]) {
    let end = bytes.len() - CHECKSUM_BYTES;
    bytes[..8].copy_from_slice(b"trommel\x1a");
    bytes[8..16].copy_from_slice(&[2, 0, 6, 1, 0, 0, 0, 0]);
    bytes[16..24].copy_from_slice(&((end - HEADER_BYTES) as u64).to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
}

/// The state of a stream of one part of `data`, changed by the rest.
fn changed(state: &Path, data: &[u8], kind: u8) -> Vec<u8> {
    let (&split, data) = data.split_first().unwrap_or((&0, &[]));
    let (numbers, changes) = data.split_at(data.len() * usize::from(split) / 256);
    assert!(run(numbers, spec(kind).snapshot(state)));
    let mut bytes = fs::read(state).expect("it was written");
    for change in changes.chunks_exact(3) {
        let offset = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[offset] = change[2];
    }
    bytes
}

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, mode], data)) = data.split_first_chunk() else { return };
    let (state, again) = (FOLDER.join("state"), FOLDER.join("again"));
    let mut bytes = match mode % 2 {
        0 => [&[0; HEADER_BYTES], data, &[0; CHECKSUM_BYTES]].concat(),
        _ => changed(&state, data, kind),
    };
    seal(&mut bytes);
    fs::write(&state, &bytes).expect("there is room");
    let _ = fs::remove_file(&again);
    if run(&[], spec(kind).restore(&state).snapshot(&again)) {
        assert!(fs::read(&again).expect("it was written") == bytes, "there are two states");
        let _ = run(&data[..data.len().min(60)], spec(kind).restore(&state));
    }
});
