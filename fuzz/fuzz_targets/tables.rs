//! Reads arbitrary bytes, and changed files, as Parquet and Arrow within little memory.
//!
//! `cargo xtask fuzz tables`
#![no_main]

mod support;

use std::fs;
use std::sync::LazyLock;

use arrow_array::{RecordBatch, StringArray, UInt64Array};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use support::{Scratch, drain_in};
use trommel::graph::Graph;
use trommel::memory::MemoryBudget;
use trommel::operator::BindContext;
use trommel::{Memory, OnError, Read, ReadFormat, RunOptions, Write, WriteFormat};

/// Memory of the pipeline: a file that promises more is an error.
const MEMORY_BYTES: usize = 16 << 20;

#[derive(Debug, Arbitrary)]
struct Input {
    is_arrow: bool,
    bytes: Bytes,
}

#[derive(Debug, Arbitrary)]
enum Bytes {
    Any(Vec<u8>),
    /// A file with other bytes at some places.
    Changed(Vec<(u16, u8)>),
}

/// A file of each format.
static FILES: LazyLock<[Vec<u8>; 2]> =
    LazyLock::new(|| [WriteFormat::Parquet, WriteFormat::Arrow].map(written));

fn written(format: WriteFormat) -> Vec<u8> {
    let texts = StringArray::from_iter((0..50).map(|n| (n % 3 > 0).then(|| format!("text {n}"))));
    let numbers = UInt64Array::from_iter(0..50);
    let rows = RecordBatch::try_from_iter_with_nullable([
        ("text", std::sync::Arc::new(texts) as _, true),
        ("number", std::sync::Arc::new(numbers) as _, true),
    ])
    .expect("columns of one length");
    let path =
        std::env::temp_dir().join(format!("trommel-fuzz-table-{}-{format:?}", std::process::id()));
    let mut graph = Graph::new();
    let memory = graph.add("rows", Memory::new(rows.schema(), vec![rows]));
    graph.add_after(memory, "write", Write::new(path.to_str().expect("text"), format));
    graph.build().expect("a graph").run(RunOptions::new()).expect("a file");
    let bytes = fs::read(&path).expect("a file");
    fs::remove_file(&path).expect("a file");
    bytes
}

fuzz_target!(|input: Input| {
    let bytes = match input.bytes {
        Bytes::Any(bytes) => bytes,
        Bytes::Changed(changes) => {
            let mut bytes = FILES[usize::from(input.is_arrow)].clone();
            for (at, byte) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] = byte;
            }
            bytes
        }
    };
    let scratch = Scratch::new("tables", &[&bytes], "bin");
    let format = if input.is_arrow { ReadFormat::Arrow } else { ReadFormat::Parquet };
    let budget = MemoryBudget::new(MEMORY_BYTES);
    for on_error in [OnError::Fail, OnError::Skip] {
        let read = Read::new(scratch.paths(), format).on_error(on_error);
        drop(drain_in(read, BindContext::new(0).memory(budget.clone())));
    }
    assert_eq!(budget.reserved(), 0);
});
