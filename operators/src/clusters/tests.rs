//! Clusters against components that are found by marking neighbours.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use super::{Clusters, Keep};
use crate::shared::rejected::OnError;
use crate::testing::streams::Random;
use crate::testing::{bind_operator, run_operator};

type Row = (i64, i64, u32, bool);

/// Components, found by marking all numbers that can be reached from a number.
fn by_hand(pairs: &[(i64, i64)], keep: Keep) -> Vec<Row> {
    let mut near = BTreeMap::<i64, BTreeSet<i64>>::new();
    for &(left, right) in pairs {
        near.entry(left).or_default().insert(right);
        near.entry(right).or_default().insert(left);
    }
    let (mut rows, mut seen) = (Vec::new(), BTreeSet::new());
    for &begin in near.keys() {
        let mut reached = BTreeSet::new();
        let mut open = vec![begin];
        while let Some(id) = open.pop() {
            if reached.insert(id) {
                open.extend(&near[&id]);
            }
        }
        if !seen.contains(&begin) {
            let size = u32::try_from(reached.len()).unwrap();
            let last = *reached.last().unwrap();
            for &id in &reached {
                let kept = match keep {
                    Keep::First => id == begin,
                    Keep::Last => id == last,
                    Keep::Unmatched => {
                        !pairs.iter().any(|&(left, right)| right == id && left != id)
                    }
                };
                rows.push((id, begin, size, kept));
            }
        }
        seen.extend(reached);
    }
    rows
}

fn batch(pairs: &[(Option<i64>, Option<i64>)]) -> RecordBatch {
    let [left, right]: [Int64Array; 2] =
        [pairs.iter().map(|pair| pair.0).collect(), pairs.iter().map(|pair| pair.1).collect()];
    let columns: [(&str, ArrayRef); 2] = [("left", Arc::new(left)), ("right", Arc::new(right))];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn rows_of(batches: &[RecordBatch]) -> Vec<Row> {
    let rows = batches.iter().filter(|batch| batch.num_columns() == 4).flat_map(|batch| {
        let ids = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        let clusters = batch.column(1).as_primitive::<Int64Type>().values().to_vec();
        let sizes = batch.column(2).as_primitive::<UInt32Type>().values().to_vec();
        let kept: Vec<bool> = batch.column(3).as_boolean().iter().flatten().collect();
        let rows = (0..ids.len()).map(|row| (ids[row], clusters[row], sizes[row], kept[row]));
        rows.collect::<Vec<_>>()
    });
    rows.collect()
}

fn run(spec: Clusters, pairs: &[(Option<i64>, Option<i64>)], cut: usize) -> Vec<RecordBatch> {
    let batches: Vec<RecordBatch> = pairs.chunks(cut).map(batch).collect();
    run_operator(&mut *bind_operator(spec, &batch(&[]).schema()), batches).unwrap()
}

fn some(pairs: &[(i64, i64)]) -> Vec<(Option<i64>, Option<i64>)> {
    pairs.iter().map(|&(left, right)| (Some(left), Some(right))).collect()
}

#[test]
fn clusters_are_the_components_whatever_the_order_of_the_pairs() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let ids = 1 + random.below(80);
        let mut id = || i64::try_from(random.below(ids)).unwrap() - 20;
        let mut pairs: Vec<(i64, i64)> = (0..seed).map(|_| (id(), id())).collect();
        for keep in [Keep::First, Keep::Last, Keep::Unmatched] {
            let expected = by_hand(&pairs, keep);
            for cut in [1, 7, 1_000] {
                let found = run(Clusters::new().keep(keep), &some(&pairs), cut);
                assert_eq!(rows_of(&found), expected, "seed {seed}, {keep:?}, {cut}");
                pairs.reverse();
                let at = pairs.len() / 3;
                pairs.rotate_left(at);
            }
        }
    }
}

#[test]
fn a_long_chain_is_one_cluster_in_any_order() {
    let chain: Vec<(i64, i64)> = (0..40_000).map(|id| (id, id + 1)).collect();
    let reversed: Vec<(i64, i64)> = chain.iter().rev().copied().collect();
    for pairs in [chain, reversed] {
        let rows = rows_of(&run(Clusters::new(), &some(&pairs), 1_000));
        assert_eq!(rows.len(), 40_001);
        assert!(rows.iter().zip(0..).all(|(&row, id)| row == (id, 0, 40_001, id == 0)));
    }
}

#[test]
fn pairs_with_a_null_are_rejected() {
    let pairs = [(Some(1), Some(2)), (None, Some(2)), (Some(3), None), (Some(2), Some(5))];
    let found = run(Clusters::new().on_error(OnError::Reject), &pairs, 3);
    assert_eq!(rows_of(&found), by_hand(&[(1, 2), (2, 5)], Keep::First));
    let rejected: usize =
        found.iter().filter(|rows| rows.num_columns() == 6).map(RecordBatch::num_rows).sum();
    assert_eq!(rejected, 2);
    let mut strict = bind_operator(Clusters::new(), &batch(&[]).schema());
    let error = run_operator(&mut *strict, [batch(&pairs)]).unwrap_err().to_string();
    assert!(error.starts_with("row 2 of the input: the id is null"), "{error}");
}

#[test]
fn texts_have_clusters_and_memory_has_a_limit() {
    let texts = |ids: &[&str]| Arc::new(StringArray::from(ids.to_vec())) as ArrayRef;
    let columns = [("a", texts(&["x", "b", "y"])), ("b", texts(&["b", "ab", "z"]))];
    let pairs = RecordBatch::try_from_iter(columns).unwrap();
    let spec = || Clusters::new().of("a", "upper(b)");
    let mut operator = bind_operator(spec(), &pairs.schema());
    let found = run_operator(&mut *operator, [pairs.clone()]).unwrap();
    let shown = |column: usize| -> Vec<String> {
        found[0].column(column).as_string::<i32>().iter().flatten().map(str::to_owned).collect()
    };
    assert_eq!(shown(0), ["AB", "b", "B", "x", "Z", "y"]);
    assert_eq!(shown(1), ["AB", "AB", "B", "B", "Z", "Z"]);
    let mut small = bind_operator(spec().memory_max(100), &pairs.schema());
    let error = run_operator(&mut *small, [pairs]).unwrap_err().to_string();
    assert!(error.contains("100 allowed (`memory_max`)"), "{error}");
}
