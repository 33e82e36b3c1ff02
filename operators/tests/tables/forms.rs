//! Sets and ids in all types of columns.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, TimeUnit};

use crate::Random;

/// A set as it comes: in any order, with duplicates and nulls; `None` for a null.
pub(crate) type Given = Option<Vec<Option<u8>>>;

/// Sets of up to 7 of 12 tokens, some of them copies.
pub(crate) fn given(random: &mut Random, rows: usize) -> Vec<Given> {
    let mut sets: Vec<Given> = Vec::new();
    for row in 0..rows {
        if row > 3 && random.below(4) == 0 {
            let copied = random.below(u32::try_from(row).unwrap());
            let mut copy = sets[copied as usize].clone();
            copy.iter_mut().for_each(|set| set.reverse());
            sets.push(copy);
            continue;
        }
        let mut token = || (random.below(9) > 0).then(|| u8::try_from(random.below(12)).unwrap());
        let tokens = (0..7).map(|_| token()).collect::<Vec<_>>();
        let len = random.below(8) as usize;
        sets.push((random.below(10) > 0).then(|| tokens[..len].to_vec()));
    }
    sets
}

/// The sets that are meant.
pub(crate) fn meant(given: &[Given]) -> Vec<Option<BTreeSet<u8>>> {
    let set = |set: &Given| set.as_ref().map(|set| set.iter().flatten().copied().collect());
    given.iter().map(set).collect()
}

/// Types of items: integers, and texts of each layout.
pub(crate) fn item_types() -> Vec<DataType> {
    let keys = |values| DataType::Dictionary(Box::new(DataType::Int16), Box::new(values));
    vec![
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        keys(DataType::Utf8),
        keys(DataType::Int64),
    ]
}

/// The item that stands for a token in a column of a type, as text.
pub(crate) fn item(token: u8, kind: &DataType) -> String {
    match integer(token, kind) {
        Some(integer) => integer.to_string(),
        // Some texts are longer than those that tables keep in place.
        None => format!("item {}{token}", "ö".repeat(usize::from(token % 3) * 9)),
    }
}

fn integer(token: u8, kind: &DataType) -> Option<i64> {
    if let DataType::Dictionary(_, values) = kind {
        return integer(token, values);
    }
    let token = i64::from(token);
    Some(match kind {
        DataType::Int8 => token - 6,
        DataType::Int16 | DataType::Int32 => (token - 6) * 1_000,
        DataType::Int64 => (token - 6) << 40,
        DataType::UInt8 => token + 200,
        DataType::UInt16 => token * 5_000,
        DataType::UInt32 => token * 300_000_000,
        DataType::UInt64 => token << 50,
        _ => return None,
    })
}

/// Sets as a column of lists of a layout, of items of a type.
pub(crate) fn sets(given: &[Given], kind: &DataType, layout: usize) -> ArrayRef {
    let padded = |set: &Vec<Option<u8>>| {
        let mut set = set.clone();
        if layout == 2 {
            // Lists of a fixed size are filled up by nulls.
            set.resize(7, None);
        }
        set
    };
    let lists: ArrayRef = if integer(0, kind).is_some() {
        let mut lists = ListBuilder::new(Int64Builder::new());
        for set in given {
            let set = set.as_ref().map(padded);
            lists.append_option(
                set.map(|set| set.into_iter().map(|token| Some(integer(token?, kind).unwrap()))),
            );
        }
        Arc::new(lists.finish())
    } else {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for set in given {
            let set = set.as_ref().map(padded);
            lists.append_option(
                set.map(|set| set.into_iter().map(|token| Some(item(token?, kind)))),
            );
        }
        Arc::new(lists.finish())
    };
    let field = Arc::new(Field::new_list_field(kind.clone(), true));
    let list = cast(&lists, &DataType::List(Arc::clone(&field))).unwrap();
    match layout {
        0 => list,
        1 => cast(&list, &DataType::LargeList(field)).unwrap(),
        2 => cast(&list, &DataType::FixedSizeList(field, 7)).unwrap(),
        _ => cast(&list, &DataType::ListView(field)).unwrap(),
    }
}

/// Types of ids.
pub(crate) fn id_types() -> Vec<DataType> {
    vec![
        DataType::UInt32,
        DataType::Int8,
        DataType::UInt64,
        DataType::Utf8,
        DataType::Utf8View,
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
    ]
}

/// Ids of `rows` rows, descending, of a type; the id of each seventh row is null.
pub(crate) fn ids(rows: usize, kind: &DataType) -> ArrayRef {
    let id = |row: usize| (row % 7 != 6).then_some(120 - row as i64);
    let is_text = kind.is_string() || matches!(kind, DataType::Dictionary(..));
    let ids: ArrayRef = if is_text {
        let ids = (0..rows).map(|row| id(row).map(|id| format!("{id:03}")));
        Arc::new(ids.collect::<StringArray>())
    } else {
        Arc::new((0..rows).map(id).collect::<Int64Array>())
    };
    let ids = if kind.is_temporal() && *kind == DataType::Date32 {
        cast(&ids, &DataType::Int32).unwrap()
    } else {
        ids
    };
    cast(&ids, kind).unwrap()
}
