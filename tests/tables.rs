//! Tables of which a pipeline needs a part.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use trommel::graph::StageId;
use trommel::{
    Collect, Filter, FrequentItems, Graph, Metrics, OnError, Read, ReadFormat, RunOptions, Select,
    SetSimilarityJoin, Write, WriteFormat,
};

/// A stage, given its input.
type Then = fn(&mut Graph, StageId) -> StageId;

/// The columns that are read from `path` when these stages follow, or the mistake.
fn columns(path: &Path, format: ReadFormat, readers: &[Then]) -> Result<Vec<String>, String> {
    let mut graph = Graph::new();
    let read = graph.add("read", Read::new([path], format));
    for (number, reader) in readers.iter().enumerate() {
        let last = reader(&mut graph, read);
        graph.add_after(last, format!("sink{number}"), Collect::new().0);
    }
    let topology = graph.build().map_err(|error| error.to_string())?;
    let fields = topology.stages()[0].outputs[0].fields().clone();
    Ok(fields.iter().map(|field| field.name().clone()).collect())
}

fn all_but(graph: &mut Graph, input: StageId) -> StageId {
    graph.add_after(input, "select", Select::new(["* except (host)", "upper(host) as n"]))
}

fn joined(graph: &mut Graph, input: StageId, carry: &str) -> StageId {
    let join = SetSimilarityJoin::new("0.5".parse().unwrap()).set("words(path)");
    graph.add_after(input, "join", join.carry([carry]))
}

fn top(graph: &mut Graph, input: StageId) -> StageId {
    graph.add_after(input, "top", FrequentItems::new().item("lower(host)"))
}

#[test]
fn only_columns_that_are_used_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let jsonl = folder.path().join("a.jsonl");
    std::fs::write(&jsonl, "{\"host\":\"a\",\"status\":1,\"path\":\"p\",\"lower\":2}\n").unwrap();
    let csv = folder.path().join("a.csv");
    std::fs::write(&csv, "host,status,path,lower\na,1,p,2\n").unwrap();
    for (path, format) in [(&jsonl, ReadFormat::Jsonl), (&csv, ReadFormat::Csv)] {
        let columns = |readers: &[Then]| columns(path, format, readers).unwrap();
        // A word before a parenthesis may be a column, too.
        assert_eq!(columns(&[top]), ["host", "lower"]);
        assert_eq!(columns(&[|_, read| read]), ["host", "status", "path", "lower"]);
        assert_eq!(
            columns(&[|graph, read| {
                let rows = graph.add_after(read, "rows", Filter::new("status >= 500"));
                top(graph, rows)
            }]),
            ["host", "status", "lower"]
        );
        let selected: Then = |graph, read| {
            let rows = graph.add_after(read, "select", Select::new(["status + 1 as path"]));
            graph.add_after(rows, "rows", Filter::new("path > 1"))
        };
        assert_eq!(columns(&[selected]), ["status"]);
        assert_eq!(columns(&[selected, top]), ["host", "status", "lower"]);
        assert_eq!(columns(&[all_but]), ["host", "status", "path", "lower"]);
        assert_eq!(
            columns(&[|graph, read| {
                let rows = all_but(graph, read);
                graph.add_after(rows, "top", FrequentItems::new().item("n"))
            }]),
            ["host"]
        );
        // A rejected row is shown whole.
        assert_eq!(
            columns(&[|graph, read| {
                let on_error = OnError::Reject;
                let rows = Filter::new("status >= 500").on_error(on_error);
                let rows = graph.add_after(read, "rows", rows);
                graph.add_after(rows.port(1), "rejected", Collect::new().0);
                top(graph, rows)
            }]),
            ["host", "status", "path", "lower"]
        );
        assert_eq!(columns(&[|graph, read| joined(graph, read, "status")]), ["status", "path"]);
        let all = columns(&[|graph, read| joined(graph, read, "*")]);
        assert_eq!(all, ["host", "status", "path", "lower"]);
        // No column is needed, and rows are.
        assert_eq!(
            columns(&[|graph, read| graph.add_after(read, "one", Select::new(["1 as one"]))]),
            ["host"]
        );
    }
}

#[test]
fn a_missing_column_is_told_with_all_that_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "host,status,path\na,1,p\n").unwrap();
    let readers: [(Then, &str); 2] = [
        (|graph, read| graph.add_after(read, "rows", Filter::new("statsu > 1")), "`status`?"),
        (|graph, read| graph.add_after(read, "top", FrequentItems::new().item("hots")), "`host`"),
    ];
    for (reader, told) in readers {
        let error = columns(&path, ReadFormat::Csv, &[reader]).unwrap_err();
        assert!(error.contains(told), "{error}");
        assert!(error.contains("`path`") || error.contains("did you mean"), "{error}");
    }
}

/// Values of the column `n`.
fn numbers(batches: &[RecordBatch]) -> Vec<i64> {
    let column = |batch: &RecordBatch| {
        batch.column_by_name("n").unwrap().as_primitive::<Int64Type>().values().to_vec()
    };
    batches.iter().flat_map(column).collect()
}

fn run(graph: Graph) -> Metrics {
    graph.build().unwrap().run(RunOptions::new()).unwrap()
}

#[test]
fn row_groups_that_a_filter_cannot_pass_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let (jsonl, parquet) = (folder.path().join("a.jsonl"), folder.path().join("a.parquet"));
    let row = |n: i64| format!("{{\"n\":{n},\"t\":\"{}{n:05}\"}}\n", "x".repeat(50));
    std::fs::write(&jsonl, (0..10_000).map(row).collect::<String>()).unwrap();
    let mut graph = Graph::new();
    let read = graph.add("read", Read::new([&jsonl], ReadFormat::Jsonl).batch(500));
    let write =
        Write::new(parquet.to_str().unwrap(), WriteFormat::Parquet).row_group_bytes(64 << 10);
    graph.add_after(read, "write", write);
    run(graph);
    for (condition, expected) in [
        ("n >= 9990", 9_990..10_000),
        ("n between 20 and 29 and t < 'y'", 20..30),
        ("n > 100000", 0..0),
    ] {
        let mut graph = Graph::new();
        let read = graph.add("read", Read::new([&parquet], ReadFormat::Parquet));
        let rows = graph.add_after(read, "rows", Filter::new(condition));
        let (sink, rows_found) = Collect::new();
        graph.add_after(rows, "sink", sink);
        let metrics = run(graph);
        assert_eq!(numbers(&rows_found.take()), expected.collect::<Vec<_>>());
        let read = metrics.stage("rows").unwrap().items_in();
        assert!(read <= 2_000, "{condition}: {read} rows were read");
    }
}
