//! State of `frequent_items` in files and answers: a pipeline that continues where another one
//! ended gives the rows of one that saw both streams.

use std::fs;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, Date32Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use trommel::frequent_items::{Filter, Sieve, SpaceSaving};
use trommel::placement::available_cores;
use trommel::{
    Algorithm, Collect, Discard, FrequentItems, Graph, Isa, Memory, MissingState, Read, ReadFormat,
    ReadFrom, Request, RunOptions, Tokenize,
};

use crate::support::streams::{Kind, stream};
use crate::support::watched;

const ALGORITHMS: [Algorithm; 4] =
    [Algorithm::SpaceSaving, Algorithm::Sieve, Algorithm::Filter, Algorithm::ParallelFilter];

fn columns(numbers: &[u64]) -> [ArrayRef; 3] {
    [
        Arc::new(UInt32Array::from_iter_values(numbers.iter().map(|&n| u32::try_from(n).unwrap()))),
        Arc::new(UInt64Array::from(numbers.to_vec())),
        Arc::new(StringArray::from_iter_values(numbers.iter().map(u64::to_string))),
    ]
}

fn batches(numbers: &[u64], kind: usize) -> Vec<RecordBatch> {
    let batch = |numbers: &[u64]| {
        let column = columns(numbers).into_iter().nth(kind).unwrap();
        RecordBatch::try_from_iter([("item", column)]).unwrap()
    };
    numbers.chunks(100).map(batch).collect()
}

fn spec(algorithm: Algorithm) -> FrequentItems {
    FrequentItems::new().counters(30).filter_bins(4).algorithm(algorithm).seed(5)
}

/// Rows of a pipeline over these batches.
fn run(spec: FrequentItems, batches: Vec<RecordBatch>, cores: usize) -> Vec<RecordBatch> {
    let mut graph = Graph::new();
    let items = graph.add("items", Memory::new(batches[0].schema(), batches));
    let top = graph.add_after(items, "top", spec);
    if cores > 0 {
        graph.cores(top, available_cores().iter().copied().take(cores).collect::<Vec<_>>());
    }
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap();
    rows.take()
}

#[test]
fn a_pipeline_goes_on_where_another_one_ended() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = stream(Kind::Skewed(0.7), 3_000, 5);
    for kind in 0..3 {
        for algorithm in ALGORITHMS {
            let file = folder.path().join("state");
            let cores = if algorithm == Algorithm::ParallelFilter { 2 } else { 0 };
            let whole = run(spec(algorithm), batches(&numbers, kind), cores);
            let first = batches(&numbers[..1_700], kind);
            run(spec(algorithm).snapshot(&file), first, cores);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
            for _ in 0..2 {
                let second = batches(&numbers[1_700..], kind);
                let resumed = run(spec(algorithm).restore(&file), second, cores);
                assert_eq!(resumed, whole, "{algorithm:?}, columns {kind}");
            }
            // Replaces the file that was read.
            let second = batches(&numbers[1_700..2_000], kind);
            run(spec(algorithm).restore(&file).snapshot(&file), second, cores);
            let third = batches(&numbers[2_000..], kind);
            assert_eq!(run(spec(algorithm).restore(&file), third, cores), whole);
        }
    }
}

#[test]
fn both_forms_of_the_filter_read_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let numbers = stream(Kind::Skewed(0.5), 2_000, 9);
    run(spec(Algorithm::ParallelFilter).snapshot(&file), batches(&numbers, 0), 0);
    let alone = Filter::<u32>::restore(Isa::Scalar, &fs::read(&file).unwrap()).unwrap();
    let parallel = run(spec(Algorithm::ParallelFilter).restore(&file), batches(&[1], 0), 0);
    let filter = run(spec(Algorithm::Filter).restore(&file), batches(&[1], 0), 0);
    assert_eq!(parallel, filter);
    assert_eq!(alone.observed(), 2_000);
}

#[test]
fn a_running_stage_gives_its_state_away() {
    for algorithm in ALGORITHMS {
        watched(move || {
            let batch = batches(&[7, 7, 1], 0).remove(0);
            let schema = batch.schema();
            let endless = Memory::new(schema, std::iter::repeat_with(move || batch.clone()));
            let mut graph = Graph::new();
            let items = graph.add("items", endless);
            let top = graph.add_after(items, "top", spec(algorithm));
            graph.add_after(top, "end", Discard::new());
            let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
            let (mut seven, mut one) = (0, 0);
            while seven == 0 {
                let rows = running.query("top", &Request::new("snapshot")).unwrap();
                let state = rows.column_by_name("snapshot").unwrap().as_binary::<i32>().value(0);
                let isa = Isa::selected().unwrap();
                let count = |item: u32| match algorithm {
                    Algorithm::SpaceSaving => {
                        SpaceSaving::<u32>::restore(state).unwrap().estimate(item).map(|c| c.count)
                    }
                    Algorithm::Sieve => {
                        Sieve::<u32>::restore(isa, state).unwrap().estimate(item).map(|c| c.count)
                    }
                    _ => {
                        Filter::<u32>::restore(isa, state).unwrap().estimate(item).map(|c| c.count)
                    }
                };
                (seven, one) = (count(7).unwrap_or(0), count(1).unwrap_or(0));
            }
            assert_eq!(seven, 2 * one, "whole batches");
            running.stop();
            running.join().unwrap();
        });
    }
}

/// A state that a running stage gives away says what was counted, as that in a file does.
#[test]
fn a_state_of_a_running_stage_is_taken_by_stages_of_the_same_items() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![7, 7, 1]));
    let batch = RecordBatch::try_from_iter([("item", dates)]).unwrap();
    for algorithm in ALGORITHMS {
        let (endless, schema) = (batch.clone(), batch.schema());
        let endless = Memory::new(schema, std::iter::repeat_with(move || endless.clone()));
        let mut graph = Graph::new();
        let items = graph.add("items", endless);
        let top = graph.add_after(items, "top", spec(algorithm).label("days"));
        graph.add_after(top, "end", Discard::new());
        let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
        let rows = running.query("top", &Request::new("snapshot")).unwrap();
        running.stop();
        watched(move || running.join()).unwrap();
        let state = rows.column_by_name("snapshot").unwrap().as_binary::<i32>().value(0);
        fs::write(&file, state).unwrap();
        let restored = spec(algorithm).restore(&file);
        assert!(!run(restored.clone(), vec![batch.clone()], 0).is_empty());
        assert!(!run(restored.clone().label("days"), vec![batch.clone()], 0).is_empty());
        let other = refused(restored.clone(), &[1], 0);
        assert!(
            other.contains("the state has the counts of days (items of type Date32)"),
            "{other}"
        );
        let hours = refused_for(restored.label("hours"), vec![batch.clone()]);
        assert!(hours.contains("the state has the counts of days"), "{hours}");
    }
}

fn refused(spec: FrequentItems, numbers: &[u64], kind: usize) -> String {
    refused_for(spec, batches(numbers, kind))
}

fn refused_for(spec: FrequentItems, batches: Vec<RecordBatch>) -> String {
    let mut graph = Graph::new();
    let items = graph.add("items", Memory::new(batches[0].schema(), batches));
    let top = graph.add_after(items, "top", spec);
    graph.add_after(top, "end", Discard::new());
    graph.build().unwrap_err().to_string()
}

#[test]
fn a_file_that_does_not_fit_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    run(spec(Algorithm::Sieve).snapshot(&file), batches(&[1, 2], 0), 0);
    let restore = |algorithm: Algorithm| spec(algorithm).restore(&file);
    let kind = refused(restore(Algorithm::SpaceSaving), &[1], 0);
    assert!(kind.contains("is of Sieve (number 3); expected SpaceSaving"), "{kind}");
    let items = refused(restore(Algorithm::Sieve), &[1], 2);
    assert!(items.contains("items of u32 (number 1); expected text"), "{items}");
    let counters = refused(restore(Algorithm::Sieve).counters(31), &[1], 0);
    assert!(
        counters.contains("31 counters and one with 30: the numbers must be equal"),
        "{counters}"
    );
    let mut bytes = fs::read(&file).unwrap();
    bytes.truncate(100);
    fs::write(&file, bytes).unwrap();
    let cut = refused(restore(Algorithm::Sieve), &[1], 0);
    assert!(cut.contains("by its header; it has 100"), "{cut}");
    let missing = refused(spec(Algorithm::Sieve).restore(folder.path().join("none")), &[1], 0);
    assert!(missing.contains("No such file"), "{missing}");
    assert!(refused(spec(Algorithm::Sieve).snapshot(folder.path()), &[1], 0).contains("folder"));
}

#[test]
fn a_state_that_cannot_be_written_fails_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let batches = batches(&[1, 1, 2], 0);
    let mut graph = Graph::new();
    let items = graph.add("items", Memory::new(batches[0].schema(), batches));
    let top = graph.add_after(items, "top", spec(Algorithm::Auto).snapshot(inner.join("state")));
    graph.add_after(top, "end", Discard::new());
    let topology = graph.build().unwrap();
    fs::remove_dir(&inner).unwrap();
    let error = watched(move || topology.run(RunOptions::new())).unwrap_err();
    assert_eq!(error.stage, "top");
    assert!(error.to_string().contains("the state was not saved: cannot write "), "{error}");
}

/// Rows of a window have the documented columns.
#[test]
fn windows_have_their_columns_in_pipelines() {
    let numbers: Vec<u64> = (0..10).map(|i| i % 3).collect();
    let rows = run(FrequentItems::new().window(trommel::Window::items(4)), batches(&numbers, 1), 0);
    let names: Vec<_> = rows[0].schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["window_start", "window_end", "complete", "rank", "item", "count", "error"]);
    let column = |rows: &RecordBatch, index: usize| {
        rows.column(index).as_primitive::<UInt64Type>().values().to_vec()
    };
    let windows: Vec<_> = rows.iter().map(|rows| (column(rows, 1)[0], column(rows, 5))).collect();
    assert_eq!(windows, [(4, vec![2, 1, 1]), (8, vec![2, 1, 1]), (10, vec![1, 1])]);
}

#[test]
fn a_state_of_followed_files_is_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let (log, state) = (folder.path().join("log"), folder.path().join("state"));
    fs::write(&log, "a\n").unwrap();
    let build = |read: Read, top: FrequentItems| {
        let mut graph = Graph::new();
        let lines = graph.add("lines", read);
        let words = graph.add_after(lines, "words", Tokenize::words());
        let top = graph.add_after(words, "top", top);
        graph.add_after(top, "rows", Discard::new());
        graph.build().map(|_| ()).map_err(|errors| errors.to_string())
    };
    let read = || Read::new([&log], ReadFormat::Lines);
    let top = || FrequentItems::new();
    let both = || top().restore(&state).missing(MissingState::Begin).snapshot(&state);
    let error = build(read().follow(), both()).unwrap_err();
    assert!(error.contains("top") && error.contains("from their beginning"), "{error}");
    build(read(), both()).unwrap();
    build(read().follow().from(ReadFrom::End), both()).unwrap();
    build(read().follow(), top().snapshot(&state)).unwrap();
    build(read().follow(), top().restore(&state).missing(MissingState::Begin)).unwrap();
}
