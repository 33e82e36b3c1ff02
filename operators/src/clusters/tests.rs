//! Clusters against components that are found by marking neighbours.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};

use super::{Clusters, Keep};
use crate::shared::rejected::OnError;
use crate::testing::streams::Random;
use crate::testing::{bind, bind_operator, bind_operator_of, run_operator, run_operator_of};

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
                    Keep::Largest | Keep::Smallest => unreachable!("there are no values"),
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

/// A row of the second input: its id and its value.
type Valued = (i64, Option<f64>);

fn rows_batch(rows: &[(Option<i64>, Option<f64>)]) -> RecordBatch {
    let values: Float64Array = rows.iter().map(|row| row.1).collect();
    let ids: Int64Array = rows.iter().map(|row| row.0).collect();
    let columns: [(&str, ArrayRef); 2] = [("value", Arc::new(values)), ("id", Arc::new(ids))];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// The cluster, the size and whether the row is kept, for each of the rows, by marking neighbours.
fn rows_by_hand(pairs: &[(i64, i64)], rows: &[Valued], keep: Keep) -> Vec<(i64, u32, bool)> {
    let mut near = BTreeMap::<i64, BTreeSet<i64>>::new();
    for &(left, right) in pairs {
        near.entry(left).or_default().insert(right);
        near.entry(right).or_default().insert(left);
    }
    let values: BTreeMap<i64, Option<f64>> = rows.iter().copied().collect();
    let cluster_of = |id: i64| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            if reached.insert(id) {
                open.extend(near.get(&id).into_iter().flatten());
            }
        }
        reached.retain(|id| values.contains_key(id));
        reached
    };
    let mut out = Vec::new();
    for &(id, _) in rows {
        let cluster = cluster_of(id);
        // The ids from the best to the worst: a value before a null, and then the smallest id.
        let mut ranked: Vec<i64> = cluster.iter().copied().collect();
        let value = |id: &i64| values[id];
        let sign = if keep == Keep::Largest { -1.0 } else { 1.0 };
        let rank = |id: &i64| value(id).map_or(f64::INFINITY, |value| sign * value);
        ranked.sort_by(|one, other| rank(one).total_cmp(&rank(other)).then(one.cmp(other)));
        let kept = match keep {
            Keep::First => id == *cluster.first().unwrap(),
            Keep::Last => id == *cluster.last().unwrap(),
            Keep::Unmatched => !pairs.iter().any(|&(left, right)| right == id && left != id),
            Keep::Largest | Keep::Smallest => id == ranked[0],
        };
        let size = u32::try_from(cluster.len()).unwrap();
        out.push((*cluster.first().unwrap(), size, kept));
    }
    out
}

const KEEPS: [Keep; 5] = [Keep::First, Keep::Last, Keep::Unmatched, Keep::Largest, Keep::Smallest];

fn keeping(keep: Keep) -> Clusters {
    let spec = Clusters::new().keep(keep);
    if keep.is_by_value() { spec.by("value * 2") } else { spec }
}

#[test]
fn rows_leave_with_their_clusters_whatever_comes_first() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let ids = 1 + random.below(80);
        let mut id = || i64::try_from(random.below(ids)).unwrap() - 20;
        let pairs: Vec<(i64, i64)> = (0..seed).map(|_| (id(), id())).collect();
        // Some ids have no row, some rows have no pair, and rows are in no order.
        let mut rows: Vec<Valued> = (-25..40).map(|id| (id, None)).collect();
        for at in (1..rows.len()).rev() {
            let other = usize::try_from(random.below(at as u64 + 1)).unwrap();
            rows.swap(at, other);
        }
        rows.truncate(50);
        for row in &mut rows {
            row.1 = (random.below(4) > 0).then(|| random.below(5) as f64 - 2.0);
        }
        for keep in KEEPS {
            let expected = rows_by_hand(&pairs, &rows, keep);
            for cut in [1, 7, 1_000] {
                let schemas = [batch(&[]).schema(), rows_batch(&[]).schema()];
                let mut operator = bind_operator_of(keeping(keep), &schemas);
                let of_pairs = some(&pairs);
                let of_pairs = of_pairs.chunks(cut).map(|pairs| (0, batch(pairs)));
                let some_rows: Vec<_> = rows.iter().map(|&(id, value)| (Some(id), value)).collect();
                let of_rows = some_rows.chunks(cut).map(|rows| (1, rows_batch(rows)));
                let (of_pairs, of_rows): (Vec<_>, Vec<_>) = (of_pairs.collect(), of_rows.collect());
                // Pairs come before the rows, after them, or in turns with them.
                let mut inputs = Vec::new();
                let (mut of_pairs, mut of_rows) = (of_pairs.into_iter(), of_rows.into_iter());
                match seed % 3 {
                    0 => inputs.extend(of_pairs.by_ref()),
                    1 => inputs.extend(of_rows.by_ref()),
                    _ => {}
                }
                while of_pairs.len() + of_rows.len() > 0 {
                    inputs.extend(of_pairs.next().into_iter().chain(of_rows.next()));
                }
                let found = run_operator_of(&mut *operator, inputs).unwrap();
                let (mut own, mut places) = (Vec::new(), Vec::new());
                for found in &found {
                    let own_ids = found.column(1).as_primitive::<Int64Type>();
                    own.extend(own_ids.values().iter().copied());
                    let clusters = found.column(2).as_primitive::<Int64Type>().values();
                    let sizes = found.column(3).as_primitive::<UInt32Type>().values();
                    let kept = found.column(4).as_boolean();
                    places.extend(
                        (0..found.num_rows())
                            .map(|row| (clusters[row], sizes[row], kept.value(row))),
                    );
                }
                assert!(own.iter().eq(rows.iter().map(|(id, _)| id)), "seed {seed}");
                assert_eq!(places, expected, "seed {seed}, {keep:?}, {cut}");
            }
        }
    }
}

#[test]
fn rows_whose_id_is_null_or_repeated_are_rejected() {
    let rows = [(Some(1), Some(1.0)), (None, Some(2.0)), (Some(2), None), (Some(1), Some(9.0))];
    let schemas = [batch(&[]).schema(), rows_batch(&[]).schema()];
    for cut in [1, 4] {
        let spec = keeping(Keep::Largest).on_error(OnError::Reject);
        let mut operator = bind_operator_of(spec, &schemas);
        let of_rows = rows.chunks(cut).map(|rows| (1, rows_batch(rows)));
        let inputs = of_rows.chain([(0, batch(&[(Some(2), Some(1))]))]);
        let found = run_operator_of(&mut *operator, inputs).unwrap();
        let (rejected, kept): (Vec<_>, Vec<_>) =
            found.iter().partition(|rows| rows.num_columns() == 6);
        let rows: usize = kept.iter().map(|rows| rows.num_rows()).sum();
        assert_eq!(rows, 2);
        let reasons: Vec<_> = rejected
            .iter()
            .flat_map(|rows| rows.column(4).as_string::<i32>().iter().flatten())
            .collect();
        assert_eq!(reasons, ["the id is null", "an earlier row has this id"]);
    }
    let mut strict = bind_operator_of(keeping(Keep::Largest), &schemas);
    let error =
        run_operator_of(&mut *strict, [(1, rows_batch(&rows[2..])), (1, rows_batch(&rows[2..3]))]);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("row 3 of input 2: an earlier row has this id"), "{error}");
}

#[test]
fn rows_count_against_the_memory() {
    let schemas = [batch(&[]).schema(), rows_batch(&[]).schema()];
    let rows: Vec<_> = (0..1_000).map(|id| (Some(id), Some(1.0))).collect();
    let run = |bytes| {
        let mut operator = bind_operator_of(keeping(Keep::Smallest).memory_max(bytes), &schemas);
        run_operator_of(&mut *operator, [(1, rows_batch(&rows))]).map(|found| found[0].num_rows())
    };
    assert_eq!(run(1 << 20).unwrap(), 1_000);
    for bytes in [100, 10_000, 40_000] {
        let error = run(bytes).unwrap_err().to_string();
        assert!(error.contains(&format!("{bytes} allowed (`memory_max`)")), "{error}");
    }
}

#[test]
fn parameters_of_rows_are_checked() {
    let (pairs, rows) = (batch(&[]).schema(), rows_batch(&[]).schema());
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let texts = RecordBatch::try_from_iter([("id", texts)]).unwrap();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let columns = [("id", Arc::clone(&numbers)), ("size", numbers)];
    let sizes = RecordBatch::try_from_iter(columns).unwrap();
    for (spec, inputs, message) in [
        (Clusters::new().keep(Keep::Largest), vec![&pairs, &rows], "\"largest\" without `by`"),
        (Clusters::new().by("value"), vec![&pairs, &rows], "`by` is for `keep`"),
        (keeping(Keep::Smallest), vec![&pairs], "the rows are the second input"),
        (Clusters::new().id("id"), vec![&pairs], "the rows are the second input"),
        (Clusters::new(), vec![&pairs, &texts.schema()], "ids of Utf8 beside pairs of Int64"),
        (Clusters::new(), vec![&pairs, &sizes.schema()], "rows with a column `size`"),
        (Clusters::new().id("value"), vec![&pairs, &rows], "an integer or a text"),
    ] {
        let inputs: Vec<_> = inputs.into_iter().map(Arc::clone).collect();
        let error = bind(spec, &inputs).expect_err("refused").to_string();
        assert!(error.contains(message), "{error}");
    }
}
