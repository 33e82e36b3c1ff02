//! Pipelines from files to results, as an embedding program builds them.

use std::collections::HashMap;
use std::fs;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use trommel::{
    Collect, Discard, FrequentItems, Generate, Graph, Read, ReadFormat, RunOptions, Tokenize,
    Write, WriteFormat,
};

use crate::support::watched;

const TEXT: &str =
    "The river runs, the gravel runs through it.\nTHE heavy pieces stay\n\nriver of gravel\n";

#[test]
fn words_of_a_file_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.txt");
    fs::write(&path, TEXT).unwrap();
    let mut graph = Graph::new();
    let lines = graph.add("lines", Read::new([path.to_str().unwrap()], ReadFormat::Lines));
    let words = graph.add_after(lines, "words", Tokenize::words());
    let top = graph.add_after(words, "top", FrequentItems::new());
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap();

    let mut expected: HashMap<String, u64> = HashMap::new();
    for word in TEXT.to_lowercase().split(|c: char| !c.is_alphabetic()).filter(|w| !w.is_empty()) {
        *expected.entry(word.to_owned()).or_default() += 1;
    }
    let mut expected: Vec<(String, u64)> = expected.into_iter().collect();
    expected.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let rows = rows.take();
    let items = rows[0].column_by_name("item").unwrap().as_string::<i32>();
    let counts = rows[0].column_by_name("count").unwrap().as_primitive::<UInt64Type>();
    let counted: Vec<(String, u64)> = items
        .iter()
        .map(|item| item.unwrap().to_owned())
        .zip(counts.values().iter().copied())
        .collect();
    assert_eq!(counted, expected);
}

#[test]
fn items_of_a_file_become_rows_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("items.u32"), folder.path().join("top.jsonl"));
    let items: Vec<u8> =
        [5_u32, 9, 5, 5, 9, 1].iter().flat_map(|item| item.to_le_bytes()).collect();
    fs::write(&from, items).unwrap();
    let mut graph = Graph::new();
    let source = graph.add("items", Read::new([from.to_str().unwrap()], ReadFormat::U32le));
    let top = graph.add_after(source, "top", FrequentItems::new().n(2));
    graph.add_after(top, "out", Write::new(to.to_str().unwrap(), WriteFormat::Jsonl));
    watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap();
    assert_eq!(
        fs::read_to_string(to).unwrap(),
        "{\"rank\":1,\"item\":5,\"count\":3,\"error\":0}\n{\"rank\":2,\"item\":9,\"count\":2,\"error\":0}\n"
    );
}

#[test]
fn an_empty_file_gives_no_rows_and_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    fs::write(&path, "").unwrap();
    let mut graph = Graph::new();
    let lines = graph.add("lines", Read::new([path.to_str().unwrap()], ReadFormat::Lines));
    let top = graph.add_after(lines, "top", FrequentItems::new().item("line"));
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap();
    assert_eq!(rows.rows(), 0);
}

#[test]
fn a_failing_source_is_named_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sets.txt");
    fs::write(&path, "1 2 3\n4 -1\n").unwrap();
    let mut graph = Graph::new();
    let sets = graph.add("sets", Read::new([path.to_str().unwrap()], ReadFormat::Sets));
    graph.add_after(sets, "end", Discard::new());
    let error =
        watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap_err().to_string();
    assert!(error.contains("stage `sets` (read)") && error.contains("sets.txt:2"), "{error}");
}

#[test]
fn a_paced_source_keeps_its_rate() {
    let mut graph = Graph::new();
    let items = graph.add("items", Generate::zipf(100, 1.0).items(2_000).rate(20_000.0));
    graph.add_after(items, "end", Discard::new());
    let metrics = watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap();
    let seconds = metrics.wall.as_secs_f64();
    assert!(seconds > 0.09, "2,000 items at 20,000 a second took {seconds} s");
}
