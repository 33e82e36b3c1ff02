//! Modes, duplicates, types of keys, batches and the order of the inputs.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use trommel_engine::graph::Graph;
use trommel_engine::operator::Ending;
use trommel_engine::runtime::RunOptions;

use super::*;
use crate::shared::parameters::Names;
use crate::sink::Collect;
use crate::source::Memory;
use crate::testing::streams::Random;

/// The events of both inputs: the table before the stream, after it, or in turns with it.
fn in_order(order: u64, stream: Vec<Event>, table: Vec<Event>) -> Vec<Event> {
    match order % 4 {
        0 => table.into_iter().chain(stream).collect(),
        1 => stream.into_iter().chain(table).collect(),
        // The runtime has a pause when the table has ended, or more of the stream.
        turn => {
            let (mut stream, mut table) = (stream.into_iter(), table.into_iter());
            let mut events = Vec::new();
            while stream.len() + table.len() > 0 {
                events.extend(table.next().into_iter().chain(stream.next()));
                events.extend((turn == 2).then_some(Event::Pause));
            }
            events
        }
    }
}

fn random_keys(random: &mut Random, len: usize, keys: u64) -> Vec<Option<i64>> {
    let mut key = || i64::try_from(random.below(keys)).unwrap() - 3;
    let keys: Vec<i64> = (0..len).map(|_| key()).collect();
    keys.into_iter().map(|key| (random.below(10) > 0).then_some(key)).collect()
}

/// The keys, each at its first place only.
fn distinct(keys: &[Option<i64>]) -> Vec<Option<i64>> {
    let mut distinct: Vec<Option<i64>> = Vec::new();
    for &key in keys {
        // A null is a key of no row, so that it may come twice.
        if key.is_none() || !distinct.contains(&key) {
            distinct.push(key);
        }
    }
    distinct
}

#[test]
fn rows_have_the_partners_of_a_map_for_all_modes_and_duplicates() {
    for seed in 0..24 {
        let mut random = Random(seed);
        let keys = 1 + random.below(60);
        let stream = random_keys(&mut random, 150, keys);
        let len = usize::try_from(random.below(80)).unwrap();
        let table = random_keys(&mut random, len, keys);
        for mode in MODES {
            for duplicates in DUPLICATES {
                let table =
                    if duplicates == Duplicates::Fail { distinct(&table) } else { table.clone() };
                let expected = by_hand(&stream, &table, mode, duplicates);
                for (place, cut) in (0..).zip([1, 7, 1_000]) {
                    let events =
                        in_order(seed + place, stream_of(&stream, cut), table_of(&table, cut));
                    let spec = lookup().mode(mode).duplicates(duplicates);
                    let sent = run(spec, &schemas(), events).unwrap();
                    let context = format!("seed {seed}, {mode:?}, {duplicates:?}, {cut}");
                    assert_eq!(pairs_of(&sent.rows), expected, "{context}");
                    let matched = by_hand(&stream, &table, LookupMode::Semi, duplicates).len();
                    assert_eq!(sent.counter("matched"), Some(matched as u64), "{context}");
                    let unmatched = (stream.len() - matched) as u64;
                    assert_eq!(sent.counter("unmatched"), Some(unmatched), "{context}");
                    assert_eq!(sent.counter("table_rows"), Some(table.len() as u64), "{context}");
                }
            }
        }
    }
}

/// The columns of keys, of the stream or of the table.
type Build = fn(is_table: bool, &[Option<i64>]) -> Vec<ArrayRef>;

fn texts(keys: &[Option<i64>]) -> ArrayRef {
    let texts = keys.iter().map(|key| key.map(|key| format!("the key {key}")));
    Arc::new(texts.collect::<StringArray>())
}

fn cast_to(column: &ArrayRef, kind: &DataType) -> ArrayRef {
    cast(column, kind).unwrap()
}

fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8))
}

/// Floats in which one key is NaN, and 0 is -0 in the table.
fn floats(is_table: bool, keys: &[Option<i64>]) -> ArrayRef {
    let float = |key: i64| match key {
        0 if is_table => -0.0,
        1 if is_table => -f64::NAN,
        1 => f64::NAN,
        key => key as f64 / 2.0,
    };
    Arc::new(keys.iter().map(|key| key.map(float)).collect::<Float64Array>())
}

/// Two columns whose values tell the key only together; a key that is null has one null.
fn two_columns(keys: &[Option<i64>]) -> Vec<ArrayRef> {
    let whole = keys.iter().enumerate().map(|(row, key)| match key {
        None if row % 2 == 0 => Some(1),
        key => key.map(|key| key.rem_euclid(5)),
    });
    let rest = keys.iter().enumerate().map(|(row, key)| match key {
        None if row % 2 == 1 => Some("1".to_owned()),
        key => key.map(|key| key.div_euclid(5).to_string()),
    });
    vec![Arc::new(whole.collect::<Int64Array>()), Arc::new(rest.collect::<StringArray>())]
}

const KINDS: [(&str, Build); 14] = [
    ("int32", |_, keys| vec![cast_to(&integers(keys), &DataType::Int32)]),
    ("int32 in int64", |is_table, keys| {
        let kind = if is_table { DataType::Int64 } else { DataType::Int32 };
        vec![cast_to(&integers(keys), &kind)]
    }),
    ("int64 in int8", |is_table, keys| {
        let kind = if is_table { DataType::Int8 } else { DataType::Int64 };
        vec![cast_to(&integers(keys), &kind)]
    }),
    ("float", |is_table, keys| vec![floats(is_table, keys)]),
    ("date", |_, keys| {
        vec![cast_to(&cast_to(&integers(keys), &DataType::Int32), &DataType::Date32)]
    }),
    ("time", |_, keys| {
        let kind = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        vec![cast_to(&integers(keys), &kind)]
    }),
    ("text", |_, keys| vec![texts(keys)]),
    ("large text in text", |is_table, keys| {
        let kind = if is_table { DataType::Utf8 } else { DataType::LargeUtf8 };
        vec![cast_to(&texts(keys), &kind)]
    }),
    ("text in view", |is_table, keys| {
        let kind = if is_table { DataType::Utf8View } else { DataType::Utf8 };
        vec![cast_to(&texts(keys), &kind)]
    }),
    ("dictionary in text", |is_table, keys| {
        let kind = if is_table { DataType::Utf8 } else { dictionary() };
        vec![cast_to(&texts(keys), &kind)]
    }),
    ("text in dictionary", |is_table, keys| {
        let kind = if is_table { dictionary() } else { DataType::Utf8 };
        vec![cast_to(&texts(keys), &kind)]
    }),
    ("bytes", |is_table, keys| {
        let kind = if is_table { DataType::LargeBinary } else { DataType::Binary };
        let bytes = keys.iter().map(|key| key.map(i64::to_le_bytes));
        let bytes: ArrayRef = Arc::new(bytes.collect::<BinaryArray>());
        vec![cast_to(&bytes, &kind)]
    }),
    ("two columns", |_, keys| two_columns(keys)),
    ("three columns", |is_table, keys| {
        two_columns(keys).into_iter().chain([floats(is_table, keys)]).collect()
    }),
];

#[test]
fn keys_of_all_types_find_their_rows() {
    for (name, build) in KINDS {
        for seed in 0..6 {
            let mut random = Random(seed);
            let stream = random_keys(&mut random, 200, 50);
            let table = random_keys(&mut random, 40, 50);
            let batches = |is_table: bool, keys: &[Option<i64>], cut: usize| -> Vec<RecordBatch> {
                let batches = keys.chunks(cut).enumerate().map(|(place, keys)| {
                    let numbers = numbers_from(place * cut, keys.len());
                    let make = if is_table { table_batch } else { stream_batch };
                    make(build(is_table, keys), numbers)
                });
                batches.collect()
            };
            let columns = build(false, &[]).len();
            let texts = |first: char| (0..columns).map(move |place| format!("{first}{place}"));
            let spec = || {
                let key: Names = texts('k').collect();
                Lookup::new(key).table_key(texts('t').collect::<Names>())
            };
            let schemas = [false, true].map(|is_table| batches(is_table, &[None], 1)[0].schema());
            for (duplicates, cut) in [(Duplicates::First, 7), (Duplicates::All, 1_000)] {
                let expected = by_hand(&stream, &table, LookupMode::Left, duplicates);
                let of_stream = batches(false, &stream, cut).into_iter().map(Event::Stream);
                let of_table = batches(true, &table, cut).into_iter().map(Event::Table);
                let of_table = of_table.chain([Event::TableEnds(Ending::Whole)]);
                let events = in_order(seed, of_stream.collect(), of_table.collect());
                let sent = run(spec().duplicates(duplicates), &schemas, events).unwrap();
                assert_eq!(pairs_of(&sent.rows), expected, "{name}, seed {seed}, {duplicates:?}");
                // The key leaves as it came.
                let found = &sent.rows[0];
                let own = batches(false, &stream, cut).swap_remove(0);
                assert_eq!(found.column(0).data_type(), own.column(0).data_type(), "{name}");
            }
        }
    }
}

#[test]
fn integers_that_the_other_type_does_not_have_find_nothing() {
    let find = |stream: ArrayRef, table: ArrayRef| {
        let rows = [stream.len(), table.len()].map(|len| numbers_from(0, len));
        let [numbers, table_numbers] = rows;
        let (stream, table) =
            (stream_batch(vec![stream], numbers), table_batch(vec![table], table_numbers));
        let schemas = [stream.schema(), table.schema()];
        let events = [Event::Table(table), Event::TableEnds(Ending::Whole), Event::Stream(stream)];
        let sent = run(lookup().duplicates(Duplicates::All), &schemas, events).unwrap();
        pairs_of(&sent.rows).into_iter().map(|(_, row)| row).collect::<Vec<_>>()
    };
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 5, 1 << 63, 0]));
    let signed: ArrayRef = Arc::new(Int64Array::from(vec![-1, 5, i64::MIN, 0]));
    assert_eq!(find(Arc::clone(&large), Arc::clone(&signed)), [None, Some(1), None, Some(3)]);
    assert_eq!(find(signed, large), [None, Some(1), None, Some(3)]);
    // 300 has the lowest byte of 44.
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![300, 44, -212]));
    let narrow = cast_to(&(Arc::new(Int64Array::from(vec![44])) as ArrayRef), &DataType::UInt8);
    assert_eq!(find(wide, narrow), [None, Some(0), None]);
}

#[test]
fn expressions_are_keys_and_columns() {
    let stream = stream_of(&some([12, -12, 7, 40]), 3);
    let table = table_of(&some([120, 70, 71]), 2);
    let spec = Lookup::new("abs(k0) * 10").table_key("t0");
    let spec = spec.columns(["at as place", "upper(text) as name", "t0"]);
    let sent = run(spec, &schemas(), table.into_iter().chain(stream)).unwrap();
    let schema = sent.rows[0].schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["k0", "n", "place", "name", "t0"]);
    let column = |name: &str| {
        let batches = sent.rows.iter().map(|rows| rows.column_by_name(name).unwrap());
        batches.flat_map(|column| column.as_primitive::<Int64Type>().iter()).collect::<Vec<_>>()
    };
    assert_eq!(column("place"), [Some(0), Some(0), Some(1), None]);
    assert_eq!(column("t0"), [Some(120), Some(120), Some(70), None]);
    let names: Vec<Option<&str>> = sent
        .rows
        .iter()
        .flat_map(|rows| rows.column_by_name("name").unwrap().as_string::<i32>().iter())
        .collect();
    assert_eq!(names, [None, None, Some("ROW 1"), None]);
}

#[test]
fn all_columns_but_the_key_are_the_default() {
    for (columns, expected) in [
        (None, &["k0", "n", "at", "text"][..]),
        (Some("* except (at)"), &["k0", "n", "text"]),
        (Some("text"), &["k0", "n", "text"]),
    ] {
        let spec = columns.map_or_else(lookup, |columns| lookup().columns(columns));
        let fragment = crate::testing::bind(spec, &schemas()).unwrap();
        let names: Vec<_> =
            fragment.outputs[0].fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, expected);
    }
}

#[test]
fn a_running_graph_looks_up_all_rows() {
    let mut random = Random(5);
    let (stream, table) = (random_keys(&mut random, 5_000, 900), some(0..700));
    let records = |events: Vec<Event>| -> Vec<RecordBatch> {
        let records = events.into_iter().filter_map(|event| match event {
            Event::Stream(records) | Event::Table(records) => Some(records),
            Event::TableEnds(_) | Event::Pause => None,
        });
        records.collect()
    };
    for (cut, table_cut) in [(10, 700), (5_000, 1)] {
        let [stream_schema, table_schema] = schemas();
        let mut graph = Graph::new();
        let rows = records(stream_of(&stream, cut));
        let in_stream = graph.add("stream", Memory::new(stream_schema, rows));
        let rows = records(table_of(&table, table_cut));
        let in_table = graph.add("table", Memory::new(table_schema, rows));
        let lookup = graph.add("lookup", lookup().mode(LookupMode::Inner));
        graph.connect(in_stream, lookup);
        graph.connect(in_table, lookup);
        let (sink, rows) = Collect::new();
        graph.add_after(lookup, "rows", sink);
        graph.build().unwrap().run(RunOptions::new()).unwrap();
        let expected = by_hand(&stream, &table, LookupMode::Inner, Duplicates::Fail);
        assert_eq!(pairs_of(&rows.take()), expected);
    }
}
