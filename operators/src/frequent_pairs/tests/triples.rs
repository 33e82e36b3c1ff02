//! Triples against three nested loops over each transaction.

use super::*;

type Triples = BTreeMap<[u32; 3], u32>;

fn triples_by_hand(transactions: &[Transaction], least: u32) -> Triples {
    let (mut supports, pairs) = (Triples::new(), by_hand(transactions, least));
    for items in transactions.iter().flatten() {
        let items: BTreeSet<u32> = items.iter().copied().collect();
        for &left in &items {
            // A triple has no larger support than a pair of it.
            let rights =
                items.range(left + 1..).filter(|&&right| pairs.contains_key(&(left, right)));
            for &right in rights {
                for &third in items.range(right + 1..) {
                    *supports.entry([left, right, third]).or_default() += 1;
                }
            }
        }
    }
    supports.retain(|_, support| *support >= least);
    supports
}

fn triples_of(rows: &[RecordBatch], first: usize) -> Triples {
    let mut triples = Triples::new();
    for rows in rows {
        let column = |at| rows.column(first + at).as_primitive::<UInt32Type>().values().to_vec();
        let [lefts, rights, thirds, supports] = [0, 1, 2, 3].map(column);
        for row in 0..rows.num_rows() {
            let triple = [lefts[row], rights[row], thirds[row]];
            assert!(triple.is_sorted());
            assert_eq!(triples.insert(triple, supports[row]), None, "{triple:?} comes twice");
        }
    }
    triples
}

fn check_triples(transactions: &[Transaction], least: u32, tuning: Tuning) {
    let expected = triples_by_hand(transactions, least);
    let pairs = by_hand(transactions, least).len() as u64;
    for layout in Layout::ALL {
        for (batch_len, kernels) in [(7, 1), (10_000, 3)] {
            let spec = FrequentPairs::new(Support::Count(least)).itemset(3).layout(layout);
            let (rows, ended) = run(transactions, spec.tuning(tuning), batch_len, kernels);
            let shown = format!("{layout:?} {least} {batch_len} {kernels} {tuning:?}");
            assert!(triples_of(&rows, 0) == expected, "{shown}");
            let metrics = ended.unwrap();
            let counters = &metrics.stage("pairs").unwrap().parts[0].counters;
            assert!(counters.contains(&("frequent_pairs", pairs)), "{shown}");
            assert!(rows.iter().all(|rows| rows.num_rows() <= tuning.batch_rows), "{shown}");
        }
    }
}

#[test]
fn triples_are_those_of_nested_loops() {
    for count in [0, 1, 2, 60] {
        for least in [1, 2, 20] {
            check_triples(&mixed(count), least, Tuning::SMALL);
        }
    }
    check_triples(&mixed(300), 3, Tuning { batch_rows: 1000, ..Tuning::SMALL });
    check_triples(&mixed(1500), 20, Tuning::default());
}

/// More items than a block of columns has, in small transactions and a large one.
#[test]
fn triples_of_many_items() {
    let mut transactions: Vec<Transaction> =
        (0..400_u32).map(|t| Some((0..5).map(|i| (t + i * i * (t % 7)) % 600).collect())).collect();
    transactions.extend(transactions.clone());
    transactions.push(Some((0..600).step_by(3).collect()));
    check_triples(&transactions, 2, Tuning { chunk_pairs: 500, batch_rows: 300, ..Tuning::SMALL });
    check_triples(&transactions, 3, Tuning::default());
}

#[test]
fn windows_have_triples_of_their_own() {
    let transactions: Vec<Transaction> = (0..200_u32)
        .map(|t| Some((0..6).map(|i| t / 20 + (t * (i + 3) + i) % 9).collect()))
        .collect();
    for (window, slide) in [(50, 50), (60, 20), (7, 1)] {
        let windows = PairWindow::transactions(window as u64).slide(slide as f64);
        let spec = FrequentPairs::new(Support::Count(2)).itemset(3).window(windows);
        let (rows, ended) = run(&transactions, spec.tuning(Tuning::SMALL), 33, 2);
        ended.unwrap();
        let mut found: BTreeMap<(u64, u64), Vec<RecordBatch>> = BTreeMap::new();
        for rows in rows {
            let [start, end] =
                [0, 1].map(|column| rows.column(column).as_primitive::<UInt64Type>().value(0));
            found.entry((start, end)).or_default().push(rows);
        }
        let mut end = slide;
        while end <= transactions.len() {
            let begin = end.saturating_sub(window);
            let expected = triples_by_hand(&transactions[begin..end], 2);
            let rows = found.remove(&(begin as u64, end as u64)).unwrap_or_default();
            assert_eq!(triples_of(&rows, 3), expected, "{window} {slide} {end}");
            end += slide;
        }
    }
}

#[test]
fn measures_of_triples_are_those_of_their_definitions() {
    let transactions = [vec![1, 2, 3], vec![3, 2, 1], vec![1, 2], vec![3], vec![3, 4], vec![2]];
    let spec = FrequentPairs::new(Support::Count(2)).itemset(3);
    let spec = spec.measures([Measure::Confidence, Measure::Lift]);
    let (rows, _) = run(&transactions.map(Some), spec, 100, 1);
    let rows = &rows[0];
    let names: Vec<String> = rows.schema().fields().iter().map(|f| f.name().clone()).collect();
    let expected = [
        ("left_confidence", 2.0 / 3.0),
        ("right_confidence", 2.0 / 4.0),
        ("third_confidence", 2.0 / 4.0),
        ("left_right_confidence", 2.0 / 3.0),
        ("left_third_confidence", 2.0 / 2.0),
        ("right_third_confidence", 2.0 / 2.0),
        ("lift", 2.0 * 6.0 * 6.0 / (3.0 * 4.0 * 4.0)),
    ];
    assert_eq!(names[..4], ["left", "right", "third", "support"]);
    assert_eq!((rows.num_rows(), names.len()), (1, 4 + expected.len()));
    for (column, (name, value)) in (4..).zip(expected) {
        assert_eq!(names[column], name);
        assert_eq!(rows.column(column).as_primitive::<Float64Type>().value(0), value, "{name}");
    }
}

#[test]
fn frequent_pairs_count_as_memory() {
    // 300 items have 44,850 pairs and a few thousand bytes of transactions.
    let transactions = vec![Some((0..300).collect()); 2];
    let spec = FrequentPairs::new(Support::Count(2)).itemset(3).memory_max(1_000_000);
    let (_, ended) = run(&transactions, spec, 100, 1);
    let error = ended.unwrap_err();
    assert!(error.contains("not enough memory for the frequent pairs"), "{error}");
    let spec = FrequentPairs::new(Support::Count(2)).memory_max(1_000_000);
    run(&transactions, spec, 100, 1).1.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn any_triples(
        transactions in prop::collection::vec(
            prop::option::weighted(0.9, prop::collection::vec(0_u32..20, 0..12)),
            0..40,
        ),
        least in 1_u32..4,
    ) {
        check_triples(&transactions, least, Tuning::SMALL);
    }
}
