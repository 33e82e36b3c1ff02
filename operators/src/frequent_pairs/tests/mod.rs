//! The operator in pipelines against nested loops over each transaction.

mod states;
mod triples;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMillisecondType, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, ListArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field};
use proptest::prelude::*;
use trommel_engine::graph::Graph;
use trommel_engine::metrics::Metrics;
use trommel_engine::placement::available_cores;
use trommel_engine::runtime::RunOptions;

use super::parameters::tuning::Tuning;
use super::{FrequentPairs, Layout, Measure, PairWindow, Support};
use crate::testing::bind;
use crate::wave::Device;
use crate::{Collect, Memory, Share};

/// A time that is longer than any run of these tests.
const WATCHDOG: Duration = Duration::from_secs(120);

/// Items of a transaction; `None` for a null.
pub(super) type Transaction = Option<Vec<u32>>;

pub(super) type Pairs = BTreeMap<(u32, u32), u32>;

pub(super) fn batch(transactions: &[Transaction]) -> RecordBatch {
    let item = Arc::new(Field::new_list_field(DataType::UInt32, false));
    let mut sets = ListBuilder::new(UInt32Builder::new()).with_field(item);
    for transaction in transactions {
        sets.values().append_slice(transaction.as_deref().unwrap_or_default());
        sets.append(transaction.is_some());
    }
    let sets: ArrayRef = Arc::new(sets.finish());
    RecordBatch::try_from_iter_with_nullable([("set", sets, true)]).unwrap()
}

pub(super) fn run(
    transactions: &[Transaction],
    spec: FrequentPairs,
    batch_len: usize,
    kernels: usize,
) -> (Vec<RecordBatch>, Result<Metrics, String>) {
    let batches: Vec<RecordBatch> = transactions.chunks(batch_len).map(batch).collect();
    let mut graph = Graph::new();
    let source = graph.add("baskets", Memory::new(batch(&[]).schema(), batches));
    let pairs = graph.add_after(source, "pairs", spec);
    graph.cores(pairs, vec![available_cores()[0]; kernels]);
    let (sink, rows) = Collect::new();
    graph.add_after(pairs, "rows", sink);
    let mut running = graph.build().unwrap().start(RunOptions::new()).unwrap();
    assert!(running.wait(WATCHDOG), "the run hangs");
    let ended = running.join().map_err(|error| error.to_string());
    (rows.batches(), ended)
}

fn columns(rows: &RecordBatch) -> [Vec<u32>; 3] {
    [0, 1, 2].map(|column| rows.column(column).as_primitive::<UInt32Type>().values().to_vec())
}

pub(super) fn pairs_of(rows: &[RecordBatch]) -> Pairs {
    let mut pairs = Pairs::new();
    for rows in rows {
        let [lefts, rights, supports] = columns(rows);
        for ((left, right), support) in lefts.into_iter().zip(rights).zip(supports) {
            assert!(left < right);
            assert_eq!(pairs.insert((left, right), support), None, "{left} {right} comes twice");
        }
    }
    pairs
}

pub(super) fn by_hand(transactions: &[Transaction], least: u32) -> Pairs {
    let mut supports = Pairs::new();
    for items in transactions.iter().flatten() {
        let items: BTreeSet<u32> = items.iter().copied().collect();
        for &left in &items {
            for &right in items.range(left + 1..) {
                *supports.entry((left, right)).or_default() += 1;
            }
        }
    }
    supports.retain(|_, support| *support >= least);
    supports
}

fn check(transactions: &[Transaction], least: u32, tuning: Tuning) {
    let expected = by_hand(transactions, least);
    for layout in Layout::ALL {
        for (batch_len, kernels) in [(1, 1), (7, 2), (10_000, 3)] {
            let spec = FrequentPairs::new(Support::Count(least)).layout(layout).tuning(tuning);
            let (rows, ended) = run(transactions, spec, batch_len, kernels);
            let shown = format!("{layout:?} {least} {batch_len} {kernels} {tuning:?}");
            assert_eq!(pairs_of(&rows), expected, "{shown}");
            let metrics = ended.unwrap();
            let parts = &metrics.stage("pairs").unwrap().parts;
            assert_eq!(parts.len(), kernels + 2, "{shown}");
            assert!(rows.iter().all(|rows| rows.num_rows() <= tuning.batch_rows), "{shown}");
        }
    }
}

/// Transactions with a few common items and many rare items, whose numbers are scattered.
pub(super) fn mixed(count: u32) -> Vec<Transaction> {
    let item = |number: u32| number.wrapping_mul(0x9E37_79B1) >> 8;
    let transaction = |t: u32| {
        let held = (0..40_u32)
            .filter(|&i| (t.wrapping_mul(2_654_435_769) >> (i % 17)).is_multiple_of(i + 2));
        held.map(item).collect()
    };
    (0..count).map(|t| (t % 19 != 7).then(|| transaction(t))).collect()
}

#[test]
fn pairs_are_those_of_nested_loops() {
    for count in [0, 1, 2, 60, 300] {
        for least in [1, 2, 20] {
            check(&mixed(count), least, Tuning::SMALL);
        }
    }
    check(&mixed(3000), 30, Tuning::default());
}

/// The rows and the state depend neither on the number of kernels nor on the batches.
#[test]
fn any_number_of_kernels_makes_the_same_rows_and_state() {
    let folder = tempfile::tempdir().unwrap();
    let transactions = mixed(500);
    for itemset in [2, 3] {
        let made = |batch_len: usize, kernels: usize| {
            let file = folder.path().join("state");
            let spec = FrequentPairs::new(Support::Count(3)).itemset(itemset);
            let spec = spec.tuning(Tuning::SMALL).snapshot(&file);
            let (rows, ended) = run(&transactions, spec, batch_len, kernels);
            ended.unwrap();
            let mut all: Vec<Vec<u32>> = vec![Vec::new(); itemset + 1];
            for rows in &rows {
                for (all, column) in all.iter_mut().zip(rows.columns()) {
                    all.extend(column.as_primitive::<UInt32Type>().values());
                }
            }
            let rows: BTreeSet<Vec<u32>> = (0..all[0].len())
                .map(|row| all.iter().map(|column| column[row]).collect())
                .collect();
            (rows, std::fs::read(&file).unwrap())
        };
        let expected = made(500, 1);
        assert!(expected.0.len() > 20);
        for kernels in [1, 2, 3, 8] {
            for batch_len in [1, 33, 500] {
                let (rows, state) = made(batch_len, kernels);
                assert_eq!(rows, expected.0, "{itemset} {kernels} {batch_len}");
                assert!(state == expected.1, "{itemset} {kernels} {batch_len}");
            }
        }
    }
}

#[test]
fn items_that_come_twice_count_once() {
    let transactions = [vec![7, 7, 3], vec![3, 7, 3, 7, 9, 9], vec![], vec![9], vec![7, 3]];
    let transactions = transactions.map(Some);
    check(&transactions, 1, Tuning::SMALL);
    check(&transactions, 2, Tuning::SMALL);
}

/// Start, end and completeness of a window, and its pairs.
pub(super) type WindowPairs = BTreeMap<(u64, u64, bool), Pairs>;

pub(super) fn windows_of(rows: &[RecordBatch]) -> WindowPairs {
    let mut windows = WindowPairs::new();
    let mut last = 0;
    for rows in rows {
        let [start, end] =
            [0, 1].map(|column| rows.column(column).as_primitive::<UInt64Type>().value(0));
        let window = (start, end, rows.column(2).as_boolean().value(0));
        assert!(end >= last, "windows come in their order");
        last = end;
        let pairs = pairs_of(&[rows.project(&[3, 4, 5]).unwrap()]);
        let known = windows.entry(window).or_default();
        assert!(pairs.keys().all(|pair| !known.contains_key(pair)));
        known.extend(pairs);
    }
    windows
}

/// The pairs of all windows of `window` transactions with a support of 2.
pub(super) fn windows_by_hand(counted: &[Transaction], window: usize, slide: usize) -> WindowPairs {
    let mut expected = WindowPairs::new();
    let mut end = slide;
    loop {
        let last = end.min(counted.len());
        let begin = end.saturating_sub(window);
        let pairs = by_hand(&counted[begin..last], 2);
        if !pairs.is_empty() {
            let is_whole = last - begin == window;
            expected.insert((begin as u64, last as u64, is_whole), pairs);
        }
        if end >= counted.len() {
            return expected;
        }
        end += slide;
    }
}

#[test]
fn windows_are_counted_like_streams_of_their_transactions() {
    // Items change as the stream goes on, so that old items are forgotten.
    let transactions: Vec<Transaction> = (0..400_u32)
        .map(|t| (t % 13 != 5).then(|| (0..6).map(|i| t / 20 + (t * (i + 3) + i) % 9).collect()))
        .collect();
    let counted: Vec<Transaction> = transactions.iter().filter(|t| t.is_some()).cloned().collect();
    for (window, slide) in [(50, 50), (60, 20), (7, 1), (1000, 1000), (1000, 500)] {
        let expected = windows_by_hand(&counted, window, slide);
        for (batch_len, kernels) in [(1, 1), (33, 2), (1000, 3)] {
            let windows = PairWindow::transactions(window as u64).slide(slide as f64);
            let spec = FrequentPairs::new(Support::Count(2)).window(windows);
            let spec = spec.tuning(Tuning::SMALL);
            let (rows, ended) = run(&transactions, spec, batch_len, kernels);
            assert_eq!(windows_of(&rows), expected, "{window} {slide} {batch_len} {kernels}");
            ended.unwrap();
        }
    }
}

#[test]
fn a_window_of_time_has_times() {
    let transactions = vec![Some(vec![1, 2]); 5];
    let windows = PairWindow::seconds(1e6).slide(1e5);
    let spec = FrequentPairs::new(Support::Count(2)).window(windows);
    let (rows, _) = run(&transactions, spec, 2, 1);
    let rows = &rows[0];
    let names: Vec<String> = rows.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names[..3], ["window_start", "window_end", "complete"]);
    let times = [0, 1]
        .map(|column| rows.column(column).as_primitive::<TimestampMillisecondType>().value(0));
    assert_eq!(times[1] - times[0], 1_000_000_000);
    assert_eq!(times[1] % 100_000_000, 0);
    assert!(!rows.column(2).as_boolean().value(0));
    assert_eq!(pairs_of(&[rows.project(&[3, 4, 5]).unwrap()]), Pairs::from([((1, 2), 5)]));
}

#[test]
fn one_transaction_of_all_items_among_small_ones() {
    let mut transactions = vec![Some((0..300).collect())];
    transactions.extend((0..300).map(|item| Some(vec![item, (item * 7) % 300])));
    for least in [2, 3] {
        check(&transactions, least, Tuning::SMALL);
    }
}

#[test]
fn a_share_is_one_of_all_transactions() {
    let transactions = vec![Some(vec![1, 2]); 7];
    let more = vec![Some(vec![3, 4]); 6];
    let other = vec![None, Some(vec![]), Some(vec![5])];
    // A null is no transaction: 15 transactions are left; a support of 7 reaches 7/15, a support of
    // 6 does not.
    let all = [transactions, more, other].concat();
    let share = Support::Share(Share::new(7, 15).unwrap());
    let (rows, ended) = run(&all, FrequentPairs::new(share), 4, 1);
    assert_eq!(pairs_of(&rows), Pairs::from([((1, 2), 7)]));
    let metrics = ended.unwrap();
    let counters = &metrics.stage("pairs").unwrap().parts[0].counters;
    assert!(counters.contains(&("nulls", 1)) && counters.contains(&("transactions", 15)));
}

#[test]
fn measures_are_those_of_their_definitions() {
    let transactions = [vec![1, 2], vec![1, 2], vec![1], vec![2, 3], vec![3], vec![2]].map(Some);
    let spec = FrequentPairs::new(Support::Count(2)).measures([Measure::Lift, Measure::Confidence]);
    let (rows, _) = run(&transactions, spec, 100, 1);
    let rows = &rows[0];
    let names: Vec<String> = rows.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names[3..], ["lift", "left_confidence", "right_confidence"]);
    let value = |column: usize| rows.column(column).as_primitive::<Float64Type>().value(0);
    // Item 1 is in 3 of 6 transactions, item 2 in 4, both in 2.
    assert_eq!((rows.num_rows(), value(3)), (1, 2.0 * 6.0 / (3.0 * 4.0)));
    assert_eq!((value(4), value(5)), (2.0 / 3.0, 2.0 / 4.0));
}

/// The same transactions as texts, as a dictionary of texts, and as parts of one batch.
#[test]
fn items_are_texts_or_numbers() {
    check_texts(&FrequentPairs::new(Support::Count(3)).tuning(Tuning::SMALL));
}

/// Compares the pairs of texts that reach a support of 3 with nested loops.
pub(super) fn check_texts(spec: &FrequentPairs) {
    let transactions = mixed(200);
    let numbers = batch(&transactions);
    let lists = numbers.column(0).as_list::<i32>();
    let items = lists.values().as_primitive::<UInt32Type>();
    let texts: StringArray = items.values().iter().map(|item| Some(format!("i{item}"))).collect();
    let dictionary: DictionaryArray<UInt32Type> = texts.iter().collect();
    let column = |values: ArrayRef| -> RecordBatch {
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        let sets: ArrayRef = Arc::new(ListArray::new(field, offsets, values, nulls));
        RecordBatch::try_from_iter_with_nullable([("set", sets, true)]).unwrap()
    };
    let expected: BTreeSet<(String, String, u32)> = by_hand(&transactions, 3)
        .into_iter()
        .map(|((left, right), support)| {
            let mut pair = [left, right].map(|item| format!("i{item}"));
            pair.sort();
            let [left, right] = pair;
            (left, right, support)
        })
        .collect();
    for whole in [column(Arc::new(texts)), column(Arc::new(dictionary))] {
        let parts = (0..whole.num_rows()).step_by(33);
        let parts: Vec<RecordBatch> =
            parts.map(|begin| whole.slice(begin, (whole.num_rows() - begin).min(33))).collect();
        let mut graph = Graph::new();
        let source = graph.add("baskets", Memory::new(whole.schema(), parts));
        let pairs = graph.add_after(source, "pairs", spec.clone());
        let (sink, rows) = Collect::new();
        graph.add_after(pairs, "rows", sink);
        graph.build().unwrap().run(RunOptions::new()).unwrap();
        let mut found = BTreeSet::new();
        for rows in rows.batches() {
            let [left, right] = [0, 1].map(|column| rows.column(column).as_string::<i32>().clone());
            let supports = rows.column(2).as_primitive::<UInt32Type>();
            for row in 0..rows.num_rows() {
                let [left, right] = [&left, &right].map(|texts| texts.value(row).to_owned());
                assert!(found.insert((left, right, supports.value(row))));
            }
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn memory_has_a_limit() {
    let transactions: Vec<Transaction> = (0..2000).map(|t| Some((t..t + 100).collect())).collect();
    let spec = FrequentPairs::new(Support::Count(1)).memory_max(400_000);
    let (_, ended) = run(&transactions, spec, 100, 1);
    let error = ended.unwrap_err();
    assert!(error.contains("not enough memory for the transactions"), "{error}");
    assert!(error.contains("400000 allowed (`memory_max`)"), "{error}");
}

/// Transposed blocks take 2 bytes for each item of a transaction, and joined lists take 4 more
/// bytes.
#[test]
fn joined_lists_count_as_memory_before_they_are_made() {
    let transactions: Vec<Transaction> = vec![Some((0..50).collect()); 6_000];
    let tuning = Tuning { block_items: 1 << 12, ..Tuning::default() };
    let spec = FrequentPairs::new(Support::Count(6_000)).tuning(tuning);
    let (blocks, lists) = (2 * 50 * 6_000, 4 * 50 * 6_000);
    let (_, ended) = run(&transactions, spec.clone().memory_max(blocks + lists / 2), 100, 1);
    let error = ended.unwrap_err();
    assert!(error.contains("not enough memory for the joined lists"), "{error}");
    let (_, ended) = run(&transactions, spec.memory_max(blocks + lists + 600_000), 100, 1);
    ended.unwrap();
}

#[test]
fn parameters_are_checked() {
    let schema = batch(&[]).schema();
    let inputs = std::slice::from_ref(&schema);
    let refused = |spec: FrequentPairs| bind(spec, inputs).unwrap_err().to_string();
    let spec = || FrequentPairs::new(Support::Count(2));
    assert!(refused(FrequentPairs::new(Support::Count(0))).contains("at least 1"));
    assert!(refused(spec().memory_max(0)).contains("expected 1 to"));
    for items in [0, 1, 4] {
        assert!(refused(spec().itemset(items)).contains("expected 2 to 3"));
    }
    assert!(refused(spec().set("basket")).contains("basket"));
    let tensor = spec().layout(Layout::Tensor).device(Device::Cpu);
    assert!(refused(tensor).contains("it needs a GPU: `device` must be \"auto\" or \"cuda\""));
    for layout in [Layout::Lists, Layout::Sliced, Layout::Triangle] {
        let error = refused(spec().layout(layout).device(Device::Cuda(1)));
        assert!(error.contains(layout.name()) && error.contains("\"cuda:1\""), "{error}");
        assert!(
            error.contains("\"auto\", \"batmap\", \"bitmap\", \"sparse\" or \"tensor\""),
            "{error}"
        );
        assert!(bind(spec().layout(layout).device(Device::Auto), inputs).is_ok());
    }
    assert!(refused(spec().measures([Measure::Lift; 2])).contains("once"));
    let later = [Measure::Lift, Measure::Confidence, Measure::Confidence];
    assert!(refused(spec().measures(later)).contains("once"));
    let both: PairWindow = serde_json::from_str(r#"{"transactions": 5, "seconds": 1}"#).unwrap();
    assert!(refused(spec().window(both)).contains("either `transactions` or `seconds`"));
    let uneven = PairWindow::transactions(10).slide(3.0);
    assert!(refused(spec().window(uneven)).contains("must be a multiple"));
    assert!(bind(spec(), inputs).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_transactions(
        transactions in prop::collection::vec(
            prop::option::weighted(0.9, prop::collection::vec(0_u32..30, 0..12)),
            0..60,
        ),
        least in 1_u32..4,
    ) {
        check(&transactions, least, Tuning::SMALL);
    }
}
