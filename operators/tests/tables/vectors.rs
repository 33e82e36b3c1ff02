//! `epsilon_join` against counting by hand.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder};
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use trommel_operators::{EpsilonJoin, EpsilonOutput, Names, OnError, VectorWindow};

use crate::forms;
use crate::{Random, device, on_stand_in, run, shown, table};

type Vectors = Vec<Option<[f64; 3]>>;

/// Points on a small grid of whole numbers, so that all types have them; some are null.
fn points(random: &mut Random, rows: usize) -> Vectors {
    (0..rows)
        .map(|_| {
            let point = [0; 3].map(|_| f64::from(random.below(9)));
            (random.below(8) > 0).then_some(point)
        })
        .collect()
}

/// Pairs of rows at most 1.5 apart, the earlier row left in one input.
fn by_hand(left: &Vectors, right: Option<&Vectors>, window: Option<usize>) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    for vector in left {
        places.push(places.last().map_or(0, |last| last + usize::from(vector.is_some())));
    }
    let mut pairs = Vec::new();
    for (i, a) in left.iter().enumerate() {
        for (j, b) in right.unwrap_or(left).iter().enumerate() {
            let (Some(a), Some(b)) = (a, b) else { continue };
            let square: f64 = (0..3).map(|place| (a[place] - b[place]).powi(2)).sum();
            let is_near = window.is_none_or(|window| places[j].abs_diff(places[i]) < window);
            if (right.is_some() || i < j) && is_near && square <= 1.5 * 1.5 {
                pairs.push((i, j));
            }
        }
    }
    pairs
}

fn lists(vectors: &Vectors) -> ArrayRef {
    let mut lists = ListBuilder::new(Float64Builder::new());
    for vector in vectors {
        lists.append_option(vector.map(|vector| vector.map(Some)));
    }
    Arc::new(lists.finish())
}

fn coordinates(vectors: &Vectors, place: usize) -> ArrayRef {
    let coordinate = |vector: &Option<[f64; 3]>| vector.map(|vector| vector[place]);
    Arc::new(vectors.iter().map(coordinate).collect::<Float64Array>())
}

/// Tables of the vectors, and the names of their columns.
fn tables(vectors: &Vectors) -> Vec<(RecordBatch, Names)> {
    use DataType as T;
    let mut tables = Vec::new();
    for kind in [T::Float16, T::Float32, T::Float64, T::Int8, T::UInt16, T::Int64] {
        let field = Arc::new(Field::new_list_field(kind.clone(), true));
        for list in [
            T::List(Arc::clone(&field)),
            T::LargeList(Arc::clone(&field)),
            T::FixedSizeList(Arc::clone(&field), 3),
        ] {
            let items = cast(&lists(vectors), &T::List(Arc::clone(&field))).unwrap();
            tables.push((table([("place", cast(&items, &list).unwrap())]), "place".into()));
        }
        let column = |place| cast(&coordinates(vectors, place), &kind).unwrap();
        let columns = [("x", column(0)), ("y", column(1)), ("z", column(2))];
        tables.push((table(columns.clone()), ["x", "y", "z"].into()));
        tables.push((table(columns), ["x", "y + 0", "cast(z as double)"].into()));
    }
    tables
}

fn spec(names: Names) -> EpsilonJoin {
    EpsilonJoin::new(1.5).vector(names).on_error(OnError::Skip).device(device())
}

fn positions(rows: &[RecordBatch]) -> Vec<(usize, usize)> {
    let column = |name| shown(rows, name).into_iter().map(|id| id.parse().unwrap());
    let mut pairs: Vec<(usize, usize)> = column("left").zip(column("right")).collect();
    pairs.sort_unstable();
    pairs
}

#[test]
fn vectors_of_all_types_and_layouts_are_joined() {
    let mut random = Random(11);
    let [left, right] = [90, 70].map(|rows| points(&mut random, rows));
    let expected = [by_hand(&left, None, None), by_hand(&left, Some(&right), None)];
    for ((one, names), (other, _)) in tables(&left).into_iter().zip(tables(&right)) {
        let how = format!("{:?} {names:?}", one.schema());
        for cores in [&[0][..], &[0, 1, 0]] {
            let rows = run(&[&one], 13, spec(names.clone()), cores).unwrap();
            assert_eq!(positions(&rows), expected[0], "{how}");
            let rows = run(&[&one, &other], 13, spec(names.clone()), cores).unwrap();
            assert_eq!(positions(&rows), expected[1], "{how}");
        }
    }
}

#[test]
fn a_device_joins_vectors_of_all_types() {
    on_stand_in("vectors::vectors_of_all_types_and_layouts_are_joined");
}

#[test]
fn a_stream_of_vectors_of_all_types_is_joined() {
    let vectors = points(&mut Random(3), 150);
    for (input, names) in tables(&vectors) {
        let join = EpsilonJoin::new(1.5).vector(names).on_error(OnError::Skip);
        let rows = run(&[&input], 7, join.window(VectorWindow::vectors(20)), &[0, 1]).unwrap();
        assert_eq!(positions(&rows), by_hand(&vectors, None, Some(20)));
    }
}

#[test]
fn rows_name_the_ids_of_vectors() {
    let mut vectors = points(&mut Random(4), 80);
    for row in (6..vectors.len()).step_by(7) {
        vectors[row] = None;
    }
    for kind in forms::id_types() {
        let ids = forms::ids(80, &kind);
        let key = shown(&[table([("key", Arc::clone(&ids))])], "key");
        let input = table([("key", ids), ("vector", lists(&vectors))]);
        let pairs = by_hand(&vectors, None, None);
        let join = || spec("vector".into()).id("key");
        let rows = run(&[&input], 17, join().carry(["*"]), &[]).unwrap();
        let (left, right) = (shown(&rows, "left"), shown(&rows, "right"));
        assert_eq!((&left, &right), (&shown(&rows, "left_key"), &shown(&rows, "right_key")));
        let mut found: Vec<_> = left.into_iter().zip(right).collect();
        let named = |&(i, j): &(usize, usize)| (key[i].clone(), key[j].clone());
        let mut expected: Vec<_> = pairs.iter().map(named).collect();
        [&mut found, &mut expected].into_iter().for_each(|pairs| pairs.sort_unstable());
        assert_eq!(found, expected, "{kind}");
        let rows = run(&[&input], 17, join().output(EpsilonOutput::First), &[]).unwrap();
        let is_first =
            |row: &usize| vectors[*row].is_some() && pairs.iter().all(|(_, right)| right != row);
        let expected: Vec<_> = (0..80).filter(is_first).map(|row| key[row].clone()).collect();
        assert_eq!(shown(&rows, "id"), expected, "{kind}");
        assert_eq!(rows[0].schema().field(0).data_type(), &kind);
    }
}

#[test]
fn vectors_of_another_length_are_named() {
    let mut builder = ListBuilder::new(Float64Builder::new());
    [&[1.0, 2.0][..], &[3.0, 4.0], &[5.0]]
        .into_iter()
        .for_each(|vector| builder.append_value(vector.iter().copied().map(Some)));
    let input = table([("vector", Arc::new(builder.finish()) as ArrayRef)]);
    let strict = EpsilonJoin::new(1.5).device(device());
    let error = run(&[&input], 2, strict, &[]).unwrap_err();
    let said = "row 3 of the input: the vector has 1 coordinates; expected 2, as others";
    assert!(error.contains(said), "{error}");
    let other = table([("vector", lists(&points(&mut Random(1), 9)))]);
    let same = input.slice(0, 2);
    let error = run(&[&same, &other], 2, spec("vector".into()), &[]).unwrap_err();
    assert!(error.contains("vectors of 2 coordinates and of 3"), "{error}");
    let empty = other.slice(0, 0);
    assert!(run(&[&same, &empty], 2, spec("vector".into()), &[]).is_ok());
}
