//! Queries to `frequent_items` while it runs: exact at a batch boundary, for every placement.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use trommel::placement::available_cores;
use trommel::{Algorithm, Discard, FrequentItems, Graph, Memory, QueryError, Request, RunOptions};

use crate::support::watched;

const BATCH: u64 = 100;

/// Endless stream whose batches hold item 7 `BATCH - 2` times and items 1 and 2 once each.
fn stream() -> Memory {
    let items = (0..BATCH).map(|position| match position {
        0 => 1,
        1 => 2,
        _ => 7,
    });
    let column: ArrayRef = Arc::new(UInt32Array::from_iter_values(items));
    let batch = RecordBatch::try_from_iter([("item", column)]).unwrap();
    Memory::new(batch.schema(), std::iter::repeat_with(move || batch.clone()))
}

fn column(rows: &RecordBatch, name: &str) -> Vec<u64> {
    rows.column_by_name(name).unwrap().as_primitive::<UInt64Type>().values().to_vec()
}

fn graphs() -> Vec<Graph> {
    let cores = available_cores();
    let choices = [vec![], vec![cores[0]], vec![cores[0], cores[cores.len() - 1]]];
    let algorithms =
        [Algorithm::SpaceSaving, Algorithm::Sieve, Algorithm::Filter, Algorithm::ParallelFilter];
    let mut graphs = Vec::new();
    for algorithm in algorithms {
        for cores in &choices {
            let mut graph = Graph::new();
            let items = graph.add("items", stream());
            let spec = FrequentItems::new().counters(10).filter_bins(2).algorithm(algorithm);
            let top = graph.add_after(items, "top", spec);
            graph.cores(top, cores.clone());
            graph.add_after(top, "end", Discard::new());
            graphs.push(graph);
        }
    }
    graphs
}

#[test]
fn a_fresh_answer_is_the_state_at_a_batch_boundary() {
    for graph in graphs() {
        watched(move || {
            let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
            let mut batches_before = 0;
            for _ in 0..50 {
                let rows = running.query("top", &Request::new("top").with("n", 3)).unwrap();
                let counts = column(&rows, "count");
                if counts.is_empty() {
                    continue;
                }
                let batches = counts[0] / (BATCH - 2);
                assert_eq!(counts, [batches * (BATCH - 2), batches, batches], "whole batches");
                let items = rows.column_by_name("item").unwrap().as_primitive::<UInt32Type>();
                assert_eq!(items.values(), &[7, 1, 2]);
                assert!(batches >= batches_before);
                batches_before = batches;

                let half =
                    running.query("top", &Request::new("at_least").with("share", 0.5)).unwrap();
                assert_eq!(column(&half, "count").len(), 1);
                let one = running.query("top", &Request::new("estimate").with("item", 2)).unwrap();
                assert!(column(&one, "count")[0] >= batches);
                let none = running.query("top", &Request::new("estimate").with("item", 9)).unwrap();
                assert_eq!((column(&none, "count"), column(&none, "error")), (vec![0], vec![0]));
            }
            running.stop();
            running.join().unwrap();
        });
    }
}

#[test]
fn wrong_questions_get_an_answer_that_helps() {
    watched(|| {
        let graph = graphs().pop().unwrap();
        let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
        let ask = |request: Request| running.query("top", &request).unwrap_err();
        let unknown = ask(Request::new("median"));
        assert_eq!(
            unknown.to_string(),
            "the operator has no query `median`; it answers top, at_least, estimate, snapshot"
        );
        assert!(matches!(ask(Request::new("top").with("m", 1)), QueryError::Parameters { .. }));
        assert!(matches!(ask(Request::new("at_least")), QueryError::Parameters { .. }));
        let text = ask(Request::new("estimate").with("item", "seven")).to_string();
        assert!(text.contains("\"seven\" is not of type UInt32"), "{text}");
        running.stop();
        running.join().unwrap();
    });
}
