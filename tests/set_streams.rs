//! `set_similarity_join` over streams in pipelines: windows, duplicates, carried columns and slow
//! sinks; compared with a comparison of each set to all before it.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_schema::SchemaRef;
use crossbeam_channel::bounded;
use trommel::channel::QueueLimits;
use trommel::error::BindError;
use trommel::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};
use trommel::placement::available_cores;
use trommel::{
    Collect, ForEach, Generate, Graph, JoinAlgorithm, JoinOutput, JoinWindow, Memory, Metrics,
    RunOptions, SetSimilarityJoin, Similarity, Threshold,
};

use crate::support::oracle::{Likeness, similar_pairs};
use crate::support::watched;

type Sets = Vec<BTreeSet<u32>>;

fn join(numerator: u32, denominator: u32) -> SetSimilarityJoin {
    SetSimilarityJoin::new(Threshold::new(numerator, denominator).unwrap())
}

/// Sets of `generate`.
fn generated(sets: u64) -> (Sets, Vec<RecordBatch>) {
    let mut graph = Graph::new();
    let spec = Generate::sets(400, 0.7).sizes(1..=12).duplicates(0.4).items(sets).batch(97);
    let source = graph.add("sets", spec);
    let (sink, rows) = Collect::new();
    graph.add_after(source, "rows", sink);
    graph.build().unwrap().run(RunOptions::new()).unwrap();
    let batches = rows.take();
    let lists = batches.iter().flat_map(|batch| batch["set"].as_list::<i32>().iter().flatten());
    let set = |list: ArrayRef| list.as_primitive::<UInt32Type>().values().iter().copied().collect();
    (lists.map(set).collect(), batches)
}

/// Names every row by its id.
fn named(batches: &[RecordBatch]) -> Vec<RecordBatch> {
    let name = |batch: &RecordBatch| {
        let ids = batch["id"].as_primitive::<UInt32Type>().values();
        let names = StringArray::from_iter_values(ids.iter().map(|id| format!("n{id}")));
        let columns: [(_, ArrayRef); 3] = [
            ("id", Arc::clone(&batch["id"])),
            ("name", Arc::new(names)),
            ("set", Arc::clone(&batch["set"])),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    batches.iter().map(name).collect()
}

fn run(
    inputs: &[&[RecordBatch]],
    spec: SetSimilarityJoin,
    cores: &[usize],
) -> (Vec<RecordBatch>, Metrics) {
    let mut graph = Graph::new();
    let stage = |(number, batches): (usize, &&[RecordBatch])| {
        (format!("sets{number}"), Memory::new(batches[0].schema(), batches.to_vec()))
    };
    let inputs: Vec<_> = inputs.iter().enumerate().map(stage).collect();
    let inputs: Vec<_> = inputs.into_iter().map(|(name, memory)| graph.add(name, memory)).collect();
    let join = graph.add("join", spec);
    for input in inputs {
        graph.connect(input, join);
    }
    graph.cores(join, cores);
    let (sink, rows) = Collect::new();
    graph.add_after(join, "rows", sink);
    let queue = QueueLimits { batches: 1, bytes: 1 };
    let metrics =
        watched(move || graph.build().unwrap().run(RunOptions::new().queue(queue))).unwrap();
    (rows.take(), metrics)
}

/// Pairs, with the columns `name` of both sets if they were carried.
fn pairs(rows: &[RecordBatch]) -> Vec<(u32, u32, u32)> {
    let mut pairs = Vec::new();
    for batch in rows {
        let numbers = |name| batch[name].as_primitive::<UInt32Type>().values();
        for row in 0..batch.num_rows() {
            let [left, right] = ["left", "right"].map(|name| numbers(name)[row]);
            for (side, id) in [("left_name", left), ("right_name", right)] {
                if let Some(names) = batch.column_by_name(side) {
                    assert_eq!(names.as_string::<i32>().value(row), format!("n{id}"));
                }
            }
            pairs.push((left, right, numbers("overlap")[row]));
        }
    }
    pairs.sort_unstable();
    pairs
}

fn counter(metrics: &Metrics, name: &str) -> u64 {
    let parts = &metrics.stage("join").unwrap().parts;
    let mut counters = parts.iter().flat_map(|part| part.counters.iter().copied());
    counters.find(|counter| counter.0 == name).unwrap().1
}

#[test]
fn windows_are_joined_on_one_core_and_several() {
    let (sets, batches) = generated(1500);
    let batches = named(&batches);
    let all = similar_pairs(Likeness::Jaccard, [3, 5], &sets, None);
    let cores = available_cores();
    let several = [cores[0], cores[cores.len() - 1], cores[0]];
    for window in [1, 100, 1000, 1_000_000] {
        let in_window = |pair: &&(u32, u32, u32)| u64::from(pair.1 - pair.0) < window;
        let expected: Vec<_> = all.iter().filter(in_window).copied().collect();
        assert!(window == 1 || expected.len() > 10);
        for cores in [&cores[..1], &several] {
            for chunk_bytes in [1, 1 << 18] {
                let spec = join(3, 5).window(JoinWindow::sets(window)).chunk_bytes(chunk_bytes);
                let (rows, metrics) = run(&[&batches], spec.clone().carry(["name"]), cores);
                assert_eq!(pairs(&rows), expected);
                assert_eq!(counter(&metrics, "sets"), 1500);
                assert_eq!(counter(&metrics, "results"), expected.len() as u64);
                let (rows, _) = run(&[&batches], spec.output(JoinOutput::Count), cores);
                let count = rows[0]["count"].as_primitive::<UInt64Type>().value(0);
                assert_eq!(count, expected.len() as u64);
            }
        }
    }
}

#[test]
fn duplicates_are_dropped_with_all_their_columns() {
    let (sets, batches) = generated(1500);
    let batches = named(&batches);
    for (window, length) in [(None, u32::MAX), (Some(JoinWindow::sets(200)), 200)] {
        let mut spec = join(3, 5).deduplicate();
        if let Some(window) = window {
            spec = spec.window(window);
        }
        let dropped: BTreeSet<u32> = similar_pairs(Likeness::Jaccard, [3, 5], &sets, None)
            .into_iter()
            .filter(|pair| pair.1 - pair.0 < length)
            .map(|pair| pair.1)
            .collect();
        let (rows, metrics) = run(&[&batches], spec, &available_cores()[..1]);
        assert_eq!(rows[0].schema(), batches[0].schema());
        let ids: Vec<u32> = rows
            .iter()
            .flat_map(|batch| batch["id"].as_primitive::<UInt32Type>().values().to_vec())
            .collect();
        assert!(ids.is_sorted(), "in the order of the input");
        let expected: Vec<u32> = (0..1500).filter(|id| !dropped.contains(id)).collect();
        assert_eq!(ids, expected);
        assert_eq!(counter(&metrics, "duplicates"), dropped.len() as u64);
        let passed = rows.iter().map(|batch| batch["name"].as_string::<i32>().value(0).to_owned());
        assert!(
            passed.eq(rows.iter().map(|batch| {
                format!("n{}", batch["id"].as_primitive::<UInt32Type>().value(0))
            }))
        );
    }
}

#[test]
fn columns_go_along_with_collected_sets_too() {
    let (sets, batches) = generated(700);
    let batches = named(&batches);
    let (left, right) = batches.split_at(3);
    let (left_sets, right_sets) = sets.split_at(3 * 97);
    let spec = || join(3, 5).carry(["name"]);
    let cores = available_cores();
    let (rows, _) = run(&[&batches], spec(), &cores[..1]);
    assert_eq!(pairs(&rows), similar_pairs(Likeness::Jaccard, [3, 5], &sets, None));
    let names = |batch: &RecordBatch| {
        batch.schema().fields().iter().skip(4).map(|field| field.name().clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&rows[0]), ["left_name", "right_name"]);

    let (rows, _) = run(&[left, right], spec(), &cores[..1]);
    let expected = similar_pairs(Likeness::Jaccard, [3, 5], left_sets, Some(right_sets.to_vec()));
    let behind = |(left, right, overlap)| (left, right + 3 * 97, overlap);
    assert_eq!(pairs(&rows), expected.into_iter().map(behind).collect::<Vec<_>>());

    // Small sets are similar to none.
    let of_size = |set: &BTreeSet<u32>| if set.len() < 5 { BTreeSet::new() } else { set.clone() };
    let large: Sets = sets.iter().map(of_size).collect();
    let expected = similar_pairs(Likeness::Jaccard, [3, 5], &large, None);
    assert!(!expected.is_empty());
    let (rows, _) = run(&[&batches], spec().size_min(5), &cores[..1]);
    assert_eq!(pairs(&rows), expected);
    let endless = JoinWindow::sets(u64::MAX);
    let (rows, _) = run(&[&batches], spec().size_min(5).window(endless), &cores[..1]);
    assert_eq!(pairs(&rows), expected);
}

#[test]
fn three_times_the_tokens_are_enough_memory() {
    let mut graph = Graph::new();
    let spec = Generate::sets(100_000, 0.8).sizes(4..=24).items(100_000);
    let sets = graph.add("sets", spec);
    let (sink, rows) = Collect::new();
    graph.add_after(sets, "rows", sink);
    graph.build().unwrap().run(RunOptions::new()).unwrap();
    let batches = rows.take();
    let tokens: usize =
        batches.iter().map(|batch| batch["set"].as_list::<i32>().values().len()).sum();
    let spec = join(4, 5).output(JoinOutput::Count).memory_max(3 * 4 * tokens);
    let (rows, _) = run(&[&batches], spec, &available_cores()[..1]);
    assert!(rows[0]["count"].as_primitive::<UInt64Type>().value(0) > 1000);
}

/// Sends the same sets repeatedly and counts the repetitions.
struct Again {
    records: RecordBatch,
    sent: Arc<AtomicU64>,
}

impl Source for Again {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        out.send(self.records.clone());
        Ok(SourceFlow::HaveOutput)
    }
}

impl OperatorSpec for Again {
    fn operator(&self) -> &'static str {
        "again"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let schema = self.records.schema();
        Ok(Fragment::source(Load::Light, *self, schema))
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "nothing tells that nothing happens any more")]
fn a_sink_that_stands_still_stops_the_source() {
    let ids: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..50));
    let mut sets = ListBuilder::new(UInt32Builder::new());
    (0..50).for_each(|_| sets.append_value([Some(1), Some(2), Some(3)]));
    let columns: [(_, ArrayRef); 2] = [("id", ids), ("set", Arc::new(sets.finish()))];
    let records = RecordBatch::try_from_iter(columns).unwrap();
    let sent = Arc::new(AtomicU64::new(0));
    let (permit, permits) = bounded::<()>(1000);
    let mut graph = Graph::new();
    let again = graph.add("again", Again { records, sent: Arc::clone(&sent) });
    let spec = join(4, 5).window(JoinWindow::sets(500)).chunk_bytes(1000);
    let similar = graph.add_after(again, "join", spec);
    let sink = ForEach::new(move |_| Ok(permits.recv()?));
    let slow = graph.add_after(similar, "slow", sink);
    let cores = available_cores();
    graph.cores(slow, &cores[cores.len() - 1..]);
    watched(move || {
        let queue = QueueLimits { batches: 2, bytes: 1 << 16 };
        let running = graph.build().unwrap().start(RunOptions::new().queue(queue)).unwrap();
        // The join continues as long as rows are taken: a batch has at least 1,225 pairs, a chunk
        // 50.
        (0..200).for_each(|_| permit.send(()).unwrap());
        let mut last = 0;
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let now = sent.load(Ordering::Relaxed);
            if now == last && now > 0 {
                break;
            }
            last = now;
        }
        assert!(last < 40, "{last} batches were sent");
        drop(permit);
        running.stop();
        assert!(running.join().is_err(), "the sink has failed");
    });
}

#[test]
fn what_a_stream_cannot_do_is_said() {
    let (_, batches) = generated(10);
    let refused = |spec: SetSimilarityJoin, inputs: usize| {
        let mut graph = Graph::new();
        let join = graph.add("join", spec);
        for number in 0..inputs {
            let memory = Memory::new(batches[0].schema(), batches.clone());
            let input = graph.add(format!("sets{number}"), memory);
            graph.connect(input, join);
        }
        let (sink, _) = Collect::new();
        graph.add_after(join, "rows", sink);
        graph.build().unwrap_err().to_string()
    };
    for (spec, inputs, said) in [
        (join(4, 5).window(JoinWindow::sets(10)), 2, "has one input"),
        (join(4, 5).deduplicate(), 2, "has one input"),
        (join(4, 5).window(JoinWindow::sets(0)), 1, "0 is not allowed here; expected 1 to"),
        (join(4, 5).deduplicate().output(JoinOutput::Count), 1, "deduplication has no `output`"),
        (join(4, 5).deduplicate().algorithm(JoinAlgorithm::PpJoin), 1, "has only one algorithm"),
        (join(4, 5).deduplicate().carry(["id"]), 1, "rows keep all their columns"),
        (join(4, 5).output(JoinOutput::Count).carry(["id"]), 1, "has no other columns"),
        (join(4, 5).carry(["id", "id"]), 1, "name each column once"),
        (join(4, 5).carry(["nothing"]), 1, "nothing"),
        (join(4, 5).size_min(0), 1, "0 is not allowed here; expected 1 to"),
        (join(5, 2).similarity(Similarity::Overlap).deduplicate(), 1, "a whole number"),
    ] {
        let error = refused(spec, inputs);
        assert!(error.contains(said), "{error}");
    }
}
