//! Whole runs with several workers.

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use trommel_engine::graph::Graph;
use trommel_engine::operator::OperatorSpec as _;
use trommel_engine::runtime::RunOptions;

use super::*;
use crate::sink::Collect;
use crate::source::read::{Read, ReadFormat};

/// The rows of a run with this number of workers, and the number of copies.
fn run(read: Read, workers: usize) -> (Vec<RecordBatch>, usize) {
    let mut graph = Graph::new();
    let read = graph.add("read", read);
    graph.workers(read, workers);
    let (sink, rows) = Collect::new();
    graph.add_after(read, "rows", sink);
    let metrics = graph.build().unwrap().run(RunOptions::new()).unwrap();
    (rows.batches(), metrics.stage("read").unwrap().workers())
}

#[test]
fn workers_read_a_large_file_in_its_order() {
    let lines: Vec<_> = (0..700_000_u32).map(|line| format!("{}\n", line / 3)).collect();
    let folder = Folder::new(&[lines.concat().into_bytes(), b"1 2\n".to_vec()]);
    assert!(folder.files().bytes.unwrap() > super::super::BYTES_MIN);
    for workers in [1, 2, 3] {
        let read = Read::new(&folder.paths, ReadFormat::Lines).columns(["line_number"]);
        let (batches, count) = run(read, workers);
        assert_eq!(count, workers);
        let found = batches.iter().flat_map(|rows| {
            let lines = rows.column(0).as_string::<i32>().iter().flatten();
            let numbers = rows.column(1).as_primitive::<UInt64Type>().values();
            lines.zip(numbers).map(|(line, &number)| (line.to_owned(), number)).collect::<Vec<_>>()
        });
        let expected =
            lines.iter().zip(1..).map(|(line, number)| (line.trim_end().to_owned(), number));
        assert!(found.eq(expected.chain([("1 2".to_owned(), 1)])));

        let (batches, _) = run(Read::new(&folder.paths, ReadFormat::Sets), workers);
        let ids = batches
            .iter()
            .flat_map(|rows| rows.column(0).as_primitive::<UInt32Type>().values().to_vec());
        assert!(ids.eq(0..700_001));
    }
}

#[test]
fn workers_read_integers_in_their_order() {
    let bytes: Vec<_> = (0..2_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let folder = Folder::new(&[bytes]);
    for workers in [1, 3] {
        let (batches, count) = run(Read::new(&folder.paths, ReadFormat::U32le), workers);
        assert_eq!(count, workers);
        let items = batches
            .iter()
            .flat_map(|rows| rows.column(0).as_primitive::<UInt32Type>().values().to_vec());
        assert!(items.eq(0..2_000_000));
    }
}

/// A large file that cannot be cut has one reader, which feeds workers.
#[test]
fn a_file_that_cannot_be_cut_feeds_workers() {
    let parts = |content: Vec<u8>| {
        let folder = Folder::new(&[content]);
        let read = Box::new(Read::new(&folder.paths, ReadFormat::Sets));
        read.bind(&[], BindContext::new(0).threads(4)).unwrap().parts.len()
    };
    let plain = b"1 2\n".repeat(2 << 20);
    let gzip = [&b"\x1f\x8b\x08"[..], &plain].concat();
    assert_eq!((parts(plain), parts(gzip)), (1, 7));
}
