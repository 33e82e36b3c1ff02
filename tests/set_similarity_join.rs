//! `set_similarity_join` in pipelines: one and two inputs, pairs and counts, every algorithm,
//! similarity and placement, against an oracle in whole numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use proptest::prelude::*;
use trommel::channel::QueueLimits;
use trommel::placement::available_cores;
use trommel::{
    Collect, Graph, JoinAlgorithm, JoinOutput, Metrics, Read, ReadFormat, RunOptions,
    SetSimilarityJoin, Similarity, Threshold,
};

use crate::support::oracle::{Likeness, similar_pairs};
use crate::support::watched;

const SIMILARITIES: [(Similarity, Likeness); 4] = [
    (Similarity::Jaccard, Likeness::Jaccard),
    (Similarity::Cosine, Likeness::Cosine),
    (Similarity::Dice, Likeness::Dice),
    (Similarity::Overlap, Likeness::Overlap),
];

/// Sets in the order of their lines, tokens in any.
type Lines = Vec<Vec<u32>>;

fn write(path: &Path, lines: &Lines) {
    let text: String = lines
        .iter()
        .map(|line| line.iter().rev().map(|t| format!("{t} ")).collect::<String>() + "\n")
        .collect();
    fs::write(path, text).unwrap();
}

fn sets(lines: &Lines) -> Vec<BTreeSet<u32>> {
    lines.iter().map(|line| line.iter().copied().collect()).collect()
}

/// Runs the operator on files of these lines.
fn run(inputs: &[&Lines], spec: SetSimilarityJoin, cores: &[usize]) -> (Vec<RecordBatch>, Metrics) {
    let folder = tempfile::tempdir().unwrap();
    let mut graph = Graph::new();
    let mut stages = Vec::new();
    for (number, lines) in inputs.iter().enumerate() {
        let path = folder.path().join(number.to_string());
        write(&path, lines);
        let read = Read::new([path.to_str().unwrap()], ReadFormat::Sets).batch(7);
        stages.push(graph.add(format!("sets{number}"), read));
    }
    let join = graph.add("join", spec);
    for stage in stages {
        graph.connect(stage, join);
    }
    graph.cores(join, cores);
    let (sink, rows) = Collect::new();
    graph.add_after(join, "rows", sink);
    let queue = QueueLimits { batches: 1, bytes: 1 };
    let metrics =
        watched(move || graph.build().unwrap().run(RunOptions::new().queue(queue))).unwrap();
    (rows.take(), metrics)
}

/// The pairs and their overlaps; checks the similarities.
fn pairs(rows: &[RecordBatch], sizes: [&Lines; 2], likeness: Likeness) -> Vec<(u32, u32, u32)> {
    let mut pairs = Vec::new();
    for batch in rows {
        let column = |index: usize| batch.column(index).as_primitive::<UInt32Type>().values();
        let similarities = batch.column(3).as_primitive::<Float64Type>().values();
        for (row, similarity) in similarities.iter().enumerate() {
            let (left, right, overlap) = (column(0)[row], column(1)[row], column(2)[row]);
            let size = |lines: &Lines, id: u32| sets(lines)[id as usize].len();
            let (a, b) = (size(sizes[0], left), size(sizes[1], right));
            let expected = likeness.value(overlap as usize, a, b);
            assert!((similarity - expected).abs() < 1e-12, "{similarity}, not {expected}");
            pairs.push((left, right, overlap));
        }
    }
    pairs.sort_unstable();
    pairs
}

fn lines() -> impl Strategy<Value = Lines> {
    prop::collection::vec(prop::collection::vec(0..30_u32, 0..12), 0..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn pairs_and_counts_are_those_of_the_oracle(
        left in lines(),
        right in lines(),
        is_two: bool,
        percent in 1..=100_u32,
        chunk_bytes in prop_oneof![Just(1), Just(100), Just(1 << 16)],
    ) {
        let inputs = if is_two { vec![&left, &right] } else { vec![&left] };
        let other = if is_two { &right } else { &left };
        for (similarity, likeness) in SIMILARITIES {
            let threshold = match likeness {
                Likeness::Overlap => [1 + percent / 20, 1],
                _ => [percent, 100],
            };
            let expected =
                similar_pairs(likeness, threshold, &sets(&left), is_two.then(|| sets(&right)));
            let [numerator, denominator] = threshold;
            let cores = available_cores();
            for algorithm in JoinAlgorithm::ALL {
                let spec = SetSimilarityJoin::new(Threshold::new(numerator, denominator).unwrap())
                    .similarity(similarity)
                    .algorithm(algorithm)
                    .chunk_bytes(chunk_bytes);
                let (rows, _) = run(&inputs, spec.clone(), &cores[..1]);
                prop_assert_eq!(&pairs(&rows, [&left, other], likeness), &expected);
                let cores = [cores[0], cores[cores.len() - 1], cores[0]];
                let (rows, metrics) = run(&inputs, spec.output(JoinOutput::Count), &cores);
                let count = rows[0].column(0).as_primitive::<UInt64Type>().value(0);
                prop_assert_eq!(count, expected.len() as u64);
                check_counters(&metrics, count, left.len() + if is_two { right.len() } else { 0 });
            }
        }
    }
}

fn check_counters(metrics: &Metrics, results: u64, sets: usize) {
    let stage = metrics.stage("join").unwrap();
    let counters: BTreeMap<&str, u64> =
        stage.parts.iter().flat_map(|part| part.counters.iter().copied()).collect();
    assert_eq!(counters["results"], results);
    assert_eq!(counters["sets"], sets as u64);
    assert!(counters["pairs_of_copies"] <= results, "equal sets are similar");
    assert!(counters["verified"] >= results && counters["postings"] >= counters["pre_candidates"]);
    assert!(counters["chunks"] > 0 || results == 0);
}

#[test]
fn mistakes_are_named() {
    let build = |spec: SetSimilarityJoin| {
        let mut graph = Graph::new();
        let sets = graph.add("sets", Read::new(["README.md"], ReadFormat::Sets));
        let join = graph.add_after(sets, "join", spec);
        let (sink, _) = Collect::new();
        graph.add_after(join, "rows", sink);
        graph.build().unwrap_err().to_string()
    };
    let above_one = SetSimilarityJoin::new(Threshold::new(5, 4).unwrap());
    assert!(build(above_one).contains("invalid threshold 5/4: this similarity is at most 1"));
    let no_number = SetSimilarityJoin::new(Threshold::new(5, 4).unwrap());
    assert!(build(no_number.similarity(Similarity::Overlap)).contains("a whole number"));
}

#[test]
fn a_join_that_needs_more_memory_than_it_may_use_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sets");
    write(&path, &(0..1000).map(|line| vec![line, 5000, 5001]).collect());
    let mut graph = Graph::new();
    let sets = graph.add("sets", Read::new([path.to_str().unwrap()], ReadFormat::Sets));
    let spec = SetSimilarityJoin::new(Threshold::new(4, 5).unwrap()).memory_max(10_000);
    let join = graph.add_after(sets, "join", spec);
    let (sink, _rows) = Collect::new();
    graph.add_after(join, "rows", sink);
    let error =
        watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap_err().to_string();
    assert!(error.contains("stage `join/prepare`") && error.contains("`memory_max`"), "{error}");
}
