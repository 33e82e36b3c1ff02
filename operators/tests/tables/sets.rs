//! `set_similarity_join` against counting by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_schema::DataType;
use trommel_operators::{JoinWindow, SetSimilarityJoin};

use crate::forms::{self, Given, given, meant};
use crate::{Random, device, on_stand_in, run, shown, table};

type Sets = Vec<Option<BTreeSet<u8>>>;

/// Whether two sets have at least half of their tokens in common.
fn is_similar(one: &BTreeSet<u8>, other: &BTreeSet<u8>) -> bool {
    let common = one.intersection(other).count();
    common > 0 && 2 * common >= one.union(other).count()
}

/// Pairs of rows by hand: of two inputs, or of one with itself, the earlier row left.
fn by_hand(left: &Sets, right: Option<&Sets>, window: Option<usize>) -> Vec<(usize, usize)> {
    // Rows without a set are not part of a window.
    let mut places = Vec::new();
    for set in left {
        places.push(places.last().map_or(0, |last| last + usize::from(set.is_some())));
    }
    let mut pairs = Vec::new();
    for (i, a) in left.iter().enumerate() {
        for (j, b) in right.unwrap_or(left).iter().enumerate() {
            let (Some(a), Some(b)) = (a, b) else { continue };
            let is_pair = right.is_some() || i < j;
            let is_near = window.is_none_or(|window| places[j].abs_diff(places[i]) < window);
            if is_pair && is_near && is_similar(a, b) {
                pairs.push((i, j));
            }
        }
    }
    pairs
}

fn spec() -> SetSimilarityJoin {
    SetSimilarityJoin::new("1/2".parse().unwrap()).device(device())
}

/// The pairs of rows that came out, by the positions of rows.
fn positions(rows: &[RecordBatch]) -> Vec<(usize, usize)> {
    let column = |name| shown(rows, name).into_iter().map(|id| id.parse().unwrap());
    let mut pairs: Vec<(usize, usize)> = column("left").zip(column("right")).collect();
    pairs.sort_unstable();
    pairs
}

#[test]
fn sets_of_all_types_and_layouts_are_joined() {
    for (number, kind) in forms::item_types().into_iter().enumerate() {
        let mut random = Random(number as u64);
        let [one, other] = [90, 70].map(|rows| given(&mut random, rows));
        for layout in 0..4 {
            let make = |given: &[Given]| table([("tags", forms::sets(given, &kind, layout))]);
            let tables = [&one, &other].map(|given| make(given));
            let [left, right] = [&one, &other].map(|given| meant(given));
            for cores in [&[0][..], &[0, 1, 0]] {
                let how = format!("{kind} {layout} {cores:?}");
                let rows = run(&[&tables[0]], 11, spec().set("tags"), cores).unwrap();
                assert_eq!(positions(&rows), by_hand(&left, None, None), "{how}");
                let rows = run(&[&tables[0], &tables[1]], 11, spec().set("tags"), cores).unwrap();
                assert_eq!(positions(&rows), by_hand(&left, Some(&right), None), "{how}");
            }
            let window = spec().set("tags").window(JoinWindow::sets(9));
            let rows = run(&[&tables[0]], 13, window, &[]).unwrap();
            assert_eq!(positions(&rows), by_hand(&left, None, Some(9)), "{kind} {layout}");
        }
    }
}

#[test]
fn a_device_joins_sets_of_all_types() {
    on_stand_in("sets::sets_of_all_types_and_layouts_are_joined");
}

#[test]
fn inputs_of_different_integers_are_joined_by_their_values() {
    use DataType as T;
    let mut random = Random(5);
    let [one, other] = [60, 50].map(|rows| given(&mut random, rows));
    let [left, right] = [&one, &other].map(|given| meant(given));
    // The items of each type are made as those of the narrower one.
    for (made_as, kinds) in [
        (T::UInt8, [T::UInt8, T::Int16]),
        (T::UInt16, [T::UInt16, T::UInt64]),
        (T::Int8, [T::Int8, T::Int64]),
        (T::UInt8, [T::UInt32, T::Int32]),
        (T::Utf8, [T::LargeUtf8, T::Utf8View]),
    ] {
        let make = |given: &[Given], kind: &DataType| {
            let sets = forms::sets(given, &made_as, 0);
            let sets = arrow_cast::cast(&sets, &T::new_list(kind.clone(), true)).unwrap();
            table([("set", sets)])
        };
        let tables = [make(&one, &kinds[0]), make(&other, &kinds[1])];
        let rows = run(&[&tables[0], &tables[1]], 20, spec(), &[]).unwrap();
        assert_eq!(positions(&rows), by_hand(&left, Some(&right), None), "{kinds:?}");
    }
    let sets = |kind: &T| table([("set", forms::sets(&one, kind, 0))]);
    for (kind, other) in [(T::UInt64, T::Int8), (T::UInt32, T::Utf8)] {
        let error = run(&[&sets(&kind), &sets(&other)], 20, spec(), &[]).unwrap_err();
        assert!(
            error.contains("both inputs need items of one kind: cast one of the lists"),
            "{error}"
        );
    }
    let error = run(&[&table([("set", forms::ids(3, &T::Utf8))])], 2, spec(), &[]).unwrap_err();
    assert!(error.contains("`set`") && error.contains("a list of integers or of texts"), "{error}");
}

#[test]
fn pairs_name_the_ids_of_the_rows() {
    let mut random = Random(9);
    let given = given(&mut random, 80);
    let mut sets = meant(&given);
    for row in (6..sets.len()).step_by(7) {
        sets[row] = None;
    }
    for kind in forms::id_types() {
        let ids = forms::ids(80, &kind);
        let key = shown(&[table([("key", Arc::clone(&ids))])], "key");
        let input = table([
            ("key", ids),
            ("set", forms::sets(&given, &DataType::Utf8, 0)),
            ("row", Arc::new(UInt64Array::from_iter_values(0..80))),
        ]);
        for (window, carry) in [(None, false), (None, true), (Some(12), false), (Some(12), true)] {
            let mut join = spec().id("key");
            if carry {
                join = join.carry(["*"]);
            }
            if let Some(sets) = window {
                join = join.window(JoinWindow::sets(sets as u64));
            }
            let rows = run(&[&input], 17, join, &[0, 1]).unwrap();
            let found = shown(&rows, "left").into_iter().zip(shown(&rows, "right"));
            let mut found: Vec<(String, String)> = found.collect();
            let pairs = by_hand(&sets, None, window);
            let named = |&(i, j): &(usize, usize)| (key[i].clone(), key[j].clone());
            let mut expected: Vec<_> = pairs.iter().map(named).collect();
            if kind == DataType::UInt32 && window.is_none() {
                // The smaller number is left, and ids descend.
                expected.iter_mut().for_each(|(left, right)| std::mem::swap(left, right));
            }
            [&mut found, &mut expected].into_iter().for_each(|pairs| pairs.sort_unstable());
            assert_eq!(found, expected, "{kind} {window:?}");
            let left = rows.first().map(|rows| rows.schema().field(0).data_type().clone());
            assert_eq!(left.as_ref(), Some(&kind));
            if carry {
                // Whole rows: each carried row is the row of its id.
                let of_row: BTreeMap<_, _> = key
                    .iter()
                    .enumerate()
                    .map(|(row, key)| (key.clone(), row.to_string()))
                    .collect();
                for side in ["left", "right"] {
                    let carried = shown(&rows, &format!("{side}_row"));
                    let ids = shown(&rows, side);
                    assert!(carried.iter().zip(&ids).all(|(row, id)| of_row[id] == *row));
                    assert_eq!(shown(&rows, &format!("{side}_key")), ids);
                    assert_eq!(shown(&rows, &format!("{side}_set")).len(), ids.len());
                }
            }
        }
    }
}

#[test]
fn rows_that_are_no_duplicates_stay_whole_for_expressions() {
    let texts = ["a b c", "x y", "c b a", "y x", "b c d e", "", "y x z"];
    let texts = Arc::new(StringArray::from(texts.to_vec()));
    let input = table([("text", texts as ArrayRef)]);
    for window in [None, Some(JoinWindow::sets(2))] {
        let mut join = SetSimilarityJoin::new("2/3".parse().unwrap()).set("words(text)");
        join = join.deduplicate();
        if let Some(window) = window {
            join = join.window(window);
        }
        let rows = run(&[&input], 3, join, &[]).unwrap();
        let expected: &[&str] = match window {
            None => &["a b c", "x y", "b c d e", ""],
            Some(_) => &["a b c", "x y", "c b a", "y x", "b c d e", "", "y x z"],
        };
        assert_eq!(shown(&rows, "text"), expected);
    }
}

/// Of a window of 50 sets, a stream of thousands of new words is joined in little memory.
#[test]
fn words_that_have_left_the_window_are_forgotten() {
    let text = |row: u64| {
        let row = row / 2;
        (0..6).map(|word| format!("a word of row {row} number {word}")).collect::<Vec<_>>()
    };
    let mut lists = ListBuilder::new(StringBuilder::new());
    (0..40_000).for_each(|row| lists.append_value(text(row).into_iter().map(Some)));
    let input = table([("set", Arc::new(lists.finish()) as ArrayRef)]);
    let join = |bytes| spec().window(JoinWindow::sets(50)).memory_max(bytes);
    let rows = run(&[&input], 1_000, join(6 << 20), &[]).unwrap();
    let expected: Vec<_> = (0..20_000).map(|pair| (2 * pair, 2 * pair + 1)).collect();
    assert_eq!(positions(&rows), expected);
    let error = run(&[&input], 1_000, join(1 << 16), &[]).unwrap_err();
    assert!(error.contains("not enough memory"), "{error}");
    // All words are kept without a window, and exceed the memory.
    let error = run(&[&input], 1_000, spec().memory_max(4 << 20), &[]).unwrap_err();
    assert!(error.contains("not enough memory"), "{error}");
}
