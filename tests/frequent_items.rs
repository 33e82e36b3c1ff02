//! `frequent_items` in pipelines: its bounds after every batch, for every algorithm, key type and
//! placement.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray,
    UInt32Array, UInt64Array,
};
use proptest::prelude::*;
use trommel::channel::QueueLimits;
use trommel::error::GraphErrors;
use trommel::placement::{available_cores, parallelism};
use trommel::{
    Algorithm, Collect, Discard, Feed, FrequentItems, Generate, Graph, Memory, Parallel,
    RunOptions, Share, Topology, expressions,
};

use crate::support::oracle::ExactCounts;
use crate::support::streams::{Kind, kinds, stream};
use crate::support::watched;

#[derive(Debug, Clone, Copy)]
enum Keys {
    U32,
    U64,
    Text,
}

impl Keys {
    /// Column of items that stand one to one for these numbers.
    fn column(self, numbers: &[u64]) -> ArrayRef {
        match self {
            Self::U32 => {
                let items =
                    numbers.iter().map(|&n| u32::try_from(n).unwrap().wrapping_mul(0x9E37_79B1));
                Arc::new(UInt32Array::from_iter_values(items))
            }
            Self::U64 => {
                let items = numbers.iter().map(|&n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                Arc::new(UInt64Array::from_iter_values(items))
            }
            Self::Text => {
                let items = numbers
                    .iter()
                    .map(|n| "x".repeat(usize::try_from(n % 20).unwrap()) + &n.to_string());
                Arc::new(StringArray::from_iter_values(items))
            }
        }
    }

    /// Items of a column as text, for comparison with the oracle.
    fn read(self, column: &ArrayRef) -> Vec<String> {
        match self {
            Self::U32 => {
                column.as_primitive::<UInt32Type>().values().iter().map(u32::to_string).collect()
            }
            Self::U64 => {
                column.as_primitive::<UInt64Type>().values().iter().map(u64::to_string).collect()
            }
            Self::Text => column.as_string::<i32>().iter().map(|s| s.unwrap().to_owned()).collect(),
        }
    }
}

#[derive(Debug, Clone)]
struct Case {
    keys: Keys,
    numbers: Vec<u64>,
    /// Weight of each item, or none.
    weights: Option<Vec<u64>>,
    batch: usize,
    counters: usize,
    bins: usize,
}

impl Case {
    fn batches(&self) -> Vec<RecordBatch> {
        let ranges = (0..self.numbers.len()).step_by(self.batch);
        ranges
            .map(|start| {
                let range = start..self.numbers.len().min(start + self.batch);
                let mut columns = vec![("item", self.keys.column(&self.numbers[range.clone()]))];
                if let Some(weights) = &self.weights {
                    let weights: ArrayRef = Arc::new(UInt64Array::from(weights[range].to_vec()));
                    columns.push(("weight", weights));
                }
                RecordBatch::try_from_iter_with_nullable(
                    columns.into_iter().map(|(name, column)| (name, column, false)),
                )
                .unwrap()
            })
            .collect()
    }

    /// Emissions of the operator when it emits all rows after every batch.
    fn run(&self, algorithm: Algorithm, cores: &[usize], queue: QueueLimits) -> Vec<RecordBatch> {
        let batches = self.batches();
        let mut spec = FrequentItems::new()
            .counters(self.counters)
            .filter_bins(self.bins)
            .algorithm(algorithm)
            .seed(self.numbers.len() as u64)
            .every(1);
        if self.weights.is_some() {
            spec = spec.weight("weight");
        }
        let mut graph = Graph::new();
        let items = graph.add("items", Memory::new(batches[0].schema(), batches));
        let top = graph.add_after(items, "top", spec);
        graph.cores(top, cores);
        let (sink, rows) = Collect::new();
        graph.add_after(top, "rows", sink);
        watched(move || graph.build().unwrap().run(RunOptions::new().queue(queue))).unwrap();
        rows.take()
    }

    /// Checks the rows after each batch and at the end against exact counts so far. There are no
    /// rows while no item has any weight.
    fn check(&self, emissions: &[RecordBatch]) {
        let mut exact = ExactCounts::new();
        let mut emissions = emissions.iter();
        let batches = self.batches();
        for batch in batches.iter().map(Some).chain([None]) {
            if let Some(batch) = batch {
                let weights = batch.column_by_name("weight");
                let weights = weights.map(|w| w.as_primitive::<UInt64Type>().values().clone());
                for (row, item) in self.keys.read(batch.column(0)).iter().enumerate() {
                    exact.add(item, weights.as_ref().map_or(1, |weights| weights[row]));
                }
            }
            if exact.total() > 0 {
                let emission = emissions.next().expect("rows after each batch, and at the end");
                self.check_emission(emission, &exact);
            }
        }
        assert!(emissions.next().is_none(), "no more rows than that");
    }

    fn check_emission(&self, emission: &RecordBatch, exact: &ExactCounts<String>) {
        let items = self.keys.read(emission.column(1));
        let ranks = emission.column(0).as_primitive::<UInt32Type>().values();
        let counts = emission.column(2).as_primitive::<UInt64Type>().values();
        let errors = emission.column(3).as_primitive::<UInt64Type>().values();
        let bound = exact.total() / self.counters as u64;
        assert!(ranks.iter().copied().eq(1..=u32::try_from(items.len()).unwrap()));
        assert!(counts.is_sorted_by(|a, b| a >= b), "most frequent first");
        for ((item, &count), &error) in items.iter().zip(counts).zip(errors) {
            let truth = exact.count(item);
            assert!(
                count - error <= truth && truth <= count,
                "{item}: {truth} in {count} - {error}"
            );
            assert!(error <= bound, "{item}: error {error} above N/k = {bound}");
        }
        for (item, count) in exact.iter().filter(|&(_, count)| count > bound) {
            assert!(items.contains(item), "{item} occurs {count} times, more than N/k = {bound}");
        }
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes =
        (1_usize..=64, 1_usize..40, 1_usize..300, 0_u64..1_500, any::<u64>(), any::<bool>());
    let keys = prop_oneof![Just(Keys::U32), Just(Keys::U64), Just(Keys::Text)];
    (sizes, keys).prop_flat_map(|((bins, back, batch, len, seed, is_weighted), keys)| {
        let counters = bins + back;
        kinds(counters as u64).prop_map(move |kind| {
            let numbers = stream(kind, len.max(1), seed);
            let weights = stream(Kind::Skewed(1.0), numbers.len() as u64, seed ^ 1);
            let weights = is_weighted.then_some(weights);
            Case { keys, numbers, weights, batch, counters, bins }
        })
    })
}

/// One and two cores; only one if the machine has one.
fn core_choices() -> [Vec<usize>; 2] {
    let cores = available_cores();
    [vec![cores[0]], vec![cores[0], cores[cores.len() - 1]]]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn bounds_hold_after_every_batch(case in cases()) {
        let queue = QueueLimits { batches: 2, bytes: 1000 };
        let [one, two] = core_choices();
        let alone = case.run(Algorithm::SpaceSaving, &one, queue);
        case.check(&alone);
        let sieve = case.run(Algorithm::Sieve, &one, queue);
        case.check(&sieve);
        let filter = case.run(Algorithm::Filter, &one, queue);
        case.check(&filter);
        let three = [two[0], two[1], two[1]];
        for cores in [one, two.clone()] {
            let parallel = case.run(Algorithm::ParallelFilter, &cores, queue);
            prop_assert_eq!(&parallel, &filter, "the parts do what the whole does");
        }
        for algorithm in [Algorithm::SpaceSaving, Algorithm::Sieve, Algorithm::Filter] {
            for cores in [&two[..], &three] {
                case.check(&case.run(algorithm, cores, queue));
            }
        }
    }
}

#[test]
fn counts_of_workers_are_a_function_of_the_stream_and_the_seed() {
    let [_, two] = core_choices();
    let numbers = stream(Kind::Skewed(1.0), 5_000, 11);
    let case = Case { keys: Keys::U64, numbers, weights: None, batch: 70, counters: 40, bins: 8 };
    let run = || case.run(Algorithm::Sieve, &two, QueueLimits { batches: 1, bytes: 1 });
    let first = run();
    for _ in 0..5 {
        assert_eq!(run(), first);
    }
}

/// Topology of a pipeline with such an operator, or the error of building it.
fn topology(
    algorithm: Algorithm,
    parallel: Parallel,
    cores: &[usize],
) -> Result<Topology, GraphErrors> {
    let mut graph = Graph::new();
    let items = graph.add("items", Generate::zipf(10, 1.0).items(10));
    let spec = FrequentItems::new().algorithm(algorithm).parallel(parallel);
    let top = graph.add_after(items, "top", spec);
    graph.cores(top, cores);
    graph.add_after(top, "end", Discard::new());
    graph.build()
}

#[test]
fn ways_to_be_parallel_that_contradict_each_other_are_refused() {
    for (algorithm, parallel, said) in [
        (Algorithm::ParallelFilter, Parallel::Off, "`filter` is the same in one"),
        (Algorithm::ParallelFilter, Parallel::Partition, "set `algorithm` to another one"),
        (Algorithm::Sieve, Parallel::Pipeline, "set `algorithm` to \"filter\""),
    ] {
        let error = topology(algorithm, parallel, &[]).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn the_memory_of_the_sieve_is_bounded() {
    let bytes = |spec: FrequentItems| {
        let mut graph = Graph::new();
        let items = graph.add("items", Generate::zipf(10_000, 1.0).items(100_000));
        let top = graph.add_after(items, "top", spec.counters(30));
        graph.add_after(top, "end", Discard::new());
        let metrics = graph.build()?.run(RunOptions::new()).unwrap();
        let counters = &metrics.stage("top").unwrap().parts[0].counters;
        let found = counters.iter().find(|(name, _)| *name == "state_bytes");
        Ok::<u64, GraphErrors>(found.unwrap().1)
    };
    assert!(bytes(FrequentItems::new().state_bytes_max(12_000)).unwrap() <= 12_000);
    let error = bytes(FrequentItems::new().state_bytes_max(100)).unwrap_err().to_string();
    assert!(error.contains("30 counters do not fit into 100 bytes"), "{error}");
    let other = FrequentItems::new().algorithm(Algorithm::Filter).state_bytes_max(8_000);
    let error = bytes(other).unwrap_err().to_string();
    assert!(error.contains("for the algorithm `sieve` only"), "{error}");
}

#[test]
fn cores_that_are_named_are_used() {
    let core = available_cores()[0];
    let parts = |algorithm, parallel, cores: &[usize]| {
        topology(algorithm, parallel, cores).unwrap().parts().len() - 2
    };
    let (auto, off) = (Parallel::Auto, Parallel::Off);
    // A summary for each worker, and the part that merges them.
    let workers = parallelism();
    assert_eq!(parts(Algorithm::Auto, auto, &[]), if workers > 1 { workers + 1 } else { 1 });
    assert_eq!(parts(Algorithm::Auto, auto, &[core]), 1);
    assert_eq!(parts(Algorithm::Auto, auto, &[core; 3]), 3 + 1);
    assert_eq!(parts(Algorithm::ParallelFilter, auto, &[]), 2);
    assert_eq!(parts(Algorithm::Auto, Parallel::Pipeline, &[core; 2]), 2);
    assert_eq!(parts(Algorithm::Auto, Parallel::Partition, &[]), workers + 1);
    assert_eq!(parts(Algorithm::Auto, off, &[]), 1);
    assert_eq!(parts(Algorithm::Filter, off, &[core]), 1);
}

#[test]
fn every_number_of_bins_and_every_skew_keeps_the_bounds() {
    for bins in 1..=64 {
        for (skew, seed) in (0_u32..=5).zip(1..) {
            let numbers = stream(Kind::Skewed(f64::from(skew)), 700, seed);
            let case = Case {
                keys: Keys::U32,
                numbers,
                weights: None,
                batch: 97,
                counters: bins + 1 + bins / 2,
                bins,
            };
            let [_, two] = core_choices();
            let filter = case.run(Algorithm::Filter, &two[..1], QueueLimits::default());
            case.check(&filter);
            let parallel = case.run(Algorithm::ParallelFilter, &two, QueueLimits::default());
            assert_eq!(parallel, filter, "{bins} bins, skew {skew}");
        }
    }
}

#[test]
fn counts_are_exact_when_the_counters_suffice() {
    let numbers = stream(Kind::Uniform, 5_000, 3);
    let case =
        Case { keys: Keys::Text, numbers, weights: None, batch: 1_000, counters: 500, bins: 16 };
    for algorithm in [Algorithm::Auto, Algorithm::SpaceSaving, Algorithm::ParallelFilter] {
        let emissions = case.run(algorithm, &[], QueueLimits::default());
        case.check(&emissions);
        let last = emissions.last().unwrap();
        assert!(
            last.column(3).as_primitive::<UInt64Type>().values().iter().all(|&error| error == 0)
        );
    }
}

#[test]
fn items_without_weight_leave_no_trace() {
    let (numbers, weights) = (vec![1, 2, 3, 1, 4, 4], Some(vec![0, 0, 0, 5, 0, 1]));
    let case = Case { keys: Keys::U32, numbers, weights, batch: 2, counters: 2, bins: 1 };
    for algorithm in
        [Algorithm::SpaceSaving, Algorithm::Sieve, Algorithm::Filter, Algorithm::ParallelFilter]
    {
        let emissions = case.run(algorithm, &[], QueueLimits::default());
        case.check(&emissions);
        assert_eq!(emissions.len(), 3, "after the second batch, the third, and at the end");
    }
}

#[test]
fn n_and_threshold_choose_what_is_emitted() {
    let numbers: Vec<u64> = (0..10).flat_map(|item| vec![item; 1 << item]).collect();
    let column = Keys::U32.column(&numbers);
    let batch = RecordBatch::try_from_iter([("key", column)]).unwrap();
    let emitted = |spec: FrequentItems| {
        let mut graph = Graph::new();
        let items = graph.add("items", Memory::new(batch.schema(), vec![batch.clone()]));
        let top = graph.add_after(items, "top", spec.item("key"));
        let (sink, rows) = Collect::new();
        graph.add_after(top, "rows", sink);
        watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap();
        rows.rows()
    };
    assert_eq!(emitted(FrequentItems::new()), 10);
    assert_eq!(emitted(FrequentItems::new().n(3)), 3);
    // 512, 256 and 128 of 1023.
    let eighth = Share::new(1, 8).unwrap();
    assert_eq!(emitted(FrequentItems::new().threshold(eighth)), 3);
    assert_eq!(emitted(FrequentItems::new().threshold(eighth).n(2)), 2);
}

#[test]
fn rows_without_an_item_or_a_weight_are_counted_apart() {
    let items: ArrayRef = Arc::new(UInt32Array::from(vec![Some(1), None, Some(1), Some(2)]));
    let weights: ArrayRef = Arc::new(UInt64Array::from(vec![Some(5), Some(5), None, Some(4)]));
    let batch = RecordBatch::try_from_iter([("item", items), ("weight", weights)]).unwrap();
    let mut graph = Graph::new();
    let source = graph.add("items", Memory::new(batch.schema(), vec![batch]));
    let top = graph.add_after(source, "top", FrequentItems::new().weight("weight"));
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    let metrics = watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap();
    assert_eq!(metrics.stage("top").unwrap().counter("nulls"), 2);
    let rows = rows.take();
    assert_eq!(rows[0].column(1).as_primitive::<UInt32Type>().values(), &[1, 2]);
    assert_eq!(rows[0].column(2).as_primitive::<UInt64Type>().values(), &[5, 4]);
}

#[test]
fn wrong_columns_and_sizes_are_refused_with_the_parameter() {
    let batch = RecordBatch::try_from_iter([("line", Keys::Text.column(&[1]))]).unwrap();
    let error = |spec: FrequentItems| {
        let mut graph = Graph::new();
        let items = graph.add("items", Memory::new(batch.schema(), vec![batch.clone()]));
        let top = graph.add_after(items, "top", spec);
        graph.add_after(top, "end", Discard::new());
        graph.build().unwrap_err().to_string()
    };
    let missing = error(FrequentItems::new());
    assert!(missing.contains("no column `item`; it has `line` (Utf8)"), "{missing}");
    let weight = error(FrequentItems::new().item("line").weight("line"));
    assert!(weight.contains("column `line` is Utf8; expected a whole number"), "{weight}");
    let bins = error(
        FrequentItems::new().item("line").counters(8).filter_bins(8).algorithm(Algorithm::Filter),
    );
    assert!(bins.contains("leave none after 8 filter bins"), "{bins}");
    let none = error(FrequentItems::new().item("line").counters(0));
    assert!(none.contains("0 is not allowed here"), "{none}");
}

/// Rows of `item`, counted as values of any type, as text.
fn counts_as_text(table: &RecordBatch, item: &str) -> Vec<(String, u64)> {
    let mut graph = Graph::new();
    let rows = graph.add("rows", Memory::new(table.schema(), vec![table.clone()]));
    let top = graph.add_after(rows, "top", FrequentItems::new().item(item));
    let (sink, collected) = Collect::new();
    graph.add_after(top, "end", sink);
    graph.build().unwrap().run(RunOptions::new()).unwrap();
    let mut counts = Vec::new();
    for batch in collected.take() {
        let expression = expressions::Expression::new("cast(item as text)", &batch.schema());
        let texts = expression.unwrap().evaluate(&batch).unwrap();
        let numbers = batch.column_by_name("count").unwrap().as_primitive::<UInt64Type>().clone();
        let texts = texts.as_string::<i32>();
        counts.extend(texts.iter().zip(numbers.values()).map(|(t, n)| (t.unwrap().to_owned(), *n)));
    }
    counts.sort();
    counts
}

#[test]
fn items_of_other_types_and_expressions_are_counted() {
    let host = StringArray::from(vec![Some("A"), Some("a"), None, Some("B"), Some("a")]);
    let number = Int64Array::from(vec![-1, i64::MIN, -1, 7, 7]);
    let truth = BooleanArray::from(vec![Some(true), None, Some(true), Some(false), Some(true)]);
    let day = Date32Array::from(vec![-1, 0, 0, 1, 0]);
    let share = Float64Array::from(vec![0.0, -0.0, 1.5, 1.5, 1.5]);
    let table = RecordBatch::try_from_iter_with_nullable([
        ("host", Arc::new(host) as ArrayRef, true),
        ("number", Arc::new(number), true),
        ("truth", Arc::new(truth), true),
        ("day", Arc::new(day), true),
        ("share", Arc::new(share), true),
    ])
    .unwrap();
    let check = |item: &str, expected: &[(&str, u64)]| {
        let expected: Vec<_> = expected.iter().map(|(t, n)| ((*t).to_owned(), *n)).collect();
        assert_eq!(counts_as_text(&table, item), expected, "{item}");
    };
    check("number", &[("-1", 2), ("-9223372036854775808", 1), ("7", 2)]);
    check("truth", &[("false", 1), ("true", 3)]);
    check("day", &[("1969-12-31", 1), ("1970-01-01", 3), ("1970-01-02", 1)]);
    check("share", &[("0.0", 2), ("1.5", 3)]);
    check("lower(host)", &[("a", 3), ("b", 1)]);
    check("number % 2 = 0", &[("false", 4), ("true", 1)]);
}

#[test]
fn weights_may_be_an_expression() {
    let number = Int64Array::from(vec![3, 4, 5]);
    let item = UInt32Array::from(vec![1, 1, 2]);
    let table = RecordBatch::try_from_iter([
        ("item", Arc::new(item) as ArrayRef),
        ("bytes", Arc::new(number)),
    ])
    .unwrap();
    let run = |weight: &str| {
        let mut graph = Graph::new();
        let rows = graph.add("rows", Memory::new(table.schema(), vec![table.clone()]));
        let top = graph.add_after(rows, "top", FrequentItems::new().weight(weight));
        let (sink, collected) = Collect::new();
        graph.add_after(top, "end", sink);
        let ran = graph.build().unwrap().run(RunOptions::new());
        ran.map(|_| {
            let rows = collected.take();
            rows[0].column_by_name("count").unwrap().as_primitive::<UInt64Type>().values().to_vec()
        })
    };
    assert_eq!(run("bytes").unwrap(), [7, 5]);
    assert_eq!(run("bytes * 2").unwrap(), [14, 10]);
    let error = run("bytes - 4").unwrap_err().to_string();
    assert!(error.contains("the weight -1 is no whole number from 0"), "{error}");
}

/// The stream goes on, but nothing more comes.
#[test]
fn rows_come_after_a_time_without_the_end_of_the_stream() {
    let cores = available_cores();
    let two = [cores[0], cores[cores.len() - 1]];
    for (algorithm, cores) in [
        (Algorithm::SpaceSaving, &[][..]),
        (Algorithm::Sieve, &[]),
        (Algorithm::SpaceSaving, &two),
        (Algorithm::ParallelFilter, &two),
    ] {
        let items: ArrayRef = Arc::new(UInt32Array::from(vec![7, 8, 7]));
        let batch = RecordBatch::try_from_iter([("item", items)]).unwrap();
        let (feed, feeder) = Feed::new(batch.schema(), 4).unwrap();
        let mut graph = Graph::new();
        let items = graph.add("items", feed);
        let spec = FrequentItems::new().algorithm(algorithm).every_seconds(0.1);
        let top = graph.add_after(items, "top", spec);
        graph.cores(top, cores);
        let (sink, rows) = Collect::new();
        graph.add_after(top, "rows", sink);
        let mut running = graph.build().unwrap().start(RunOptions::new()).unwrap();
        for sent in 1..=2 {
            feeder.send(batch.clone(), Duration::MAX).unwrap();
            let limit = Instant::now() + Duration::from_secs(60);
            while rows.rows() < 2 * sent {
                assert!(Instant::now() < limit, "{algorithm:?}: {} rows", rows.rows());
                assert!(!running.wait(Duration::from_millis(5)), "the feeder is there");
            }
        }
        // No more rows come where no items do.
        assert!(!running.wait(Duration::from_millis(300)), "the feeder is there");
        assert_eq!(rows.rows(), 4, "{algorithm:?}");
        drop(feeder);
        running.join().unwrap();
        let counts = |batch: &RecordBatch| {
            batch.column_by_name("count").unwrap().as_primitive::<UInt64Type>().values().to_vec()
        };
        let counts: Vec<_> = rows.take().iter().map(counts).collect();
        assert_eq!(counts, [[2, 1], [4, 2], [4, 2]], "{algorithm:?}");
    }
}
