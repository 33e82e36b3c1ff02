//! Limits of memory and of batches, and a run that is stopped.

use arrow_array::Array;

use super::*;
use crate::shared::parameters::BATCH_ITEMS;

#[test]
fn the_table_and_the_rows_that_wait_have_a_limit() {
    let (stream, table) = (some(0..3_000), some(0..2_000));
    let expected = by_hand(&stream, &table, LookupMode::Left, Duplicates::Fail);
    for duplicates in [Duplicates::Fail, Duplicates::All] {
        for waits in [false, true] {
            let run = |bytes: usize| {
                let (stream, table) = (stream_of(&stream, 100), table_of(&table, 100));
                let events = if waits { [stream, table] } else { [table, stream] };
                let spec = lookup().duplicates(duplicates).memory_max(bytes);
                run(spec, &schemas(), events.concat())
            };
            assert_eq!(pairs_of(&run(8 << 20).unwrap().rows), expected);
            let mut bytes = 100;
            while let Err(error) = run(bytes) {
                let error = error.to_string();
                let allowed = format!("{bytes} allowed (`memory_max`)");
                assert!(error.contains(&allowed), "{error}");
                assert!(error.contains("; the table has "), "{error}");
                bytes += bytes / 3;
            }
            let sent = run(bytes).unwrap();
            assert_eq!(pairs_of(&sent.rows), expected, "{bytes}");
            assert_eq!(sent.counter("waited"), Some(if waits { 3_000 } else { 0 }));
            let least = 2_000 * 3 * size_of::<i64>() + if waits { 3_000 * 16 } else { 0 };
            assert!((least..2 << 20).contains(&bytes), "{bytes}");
        }
    }
}

#[test]
fn the_error_says_which_input_fills_the_memory() {
    let spec = || lookup().memory_max(60_000);
    let stream = stream_of(&some(0..9_000), 500);
    let error = run(spec(), &schemas(), stream).unwrap_err().to_string();
    let begin = "not enough memory for the rows that wait for the end of the table: ";
    assert!(error.starts_with(begin), "{error}");
    assert!(error.contains("; the table has 0 bytes, and the rows of the stream"), "{error}");
    let table = table_of(&some(0..9_000), 500);
    let error = run(spec(), &schemas(), table).unwrap_err().to_string();
    assert!(error.starts_with("not enough memory for the table: "), "{error}");
    assert!(error.ends_with("that wait for the end of the table have 0"), "{error}");
}

#[test]
fn a_batch_larger_than_the_memory_passes_a_small_table() {
    let table = table_of(&some(0..10), 10);
    let stream: Vec<_> = stream_of(&some(0..50_000), 50_000);
    let sent = run(lookup().memory_max(10_000), &schemas(), [table, stream].concat()).unwrap();
    assert_eq!(pairs_of(&sent.rows).len(), 50_000);
}

#[test]
fn many_partners_leave_in_batches() {
    let table: Vec<_> = (0..40_000).map(|row| Some(i64::from(row % 2 == 0) * 7)).collect();
    let stream = some([7, 3, 7, 0]);
    let expected = by_hand(&stream, &table, LookupMode::Left, Duplicates::All);
    let events = [table_of(&table, 9_000), stream_of(&stream, 4)].concat();
    let sent = run(lookup().duplicates(Duplicates::All), &schemas(), events).unwrap();
    assert!(sent.rows.iter().all(|rows| rows.num_rows() <= BATCH_ITEMS));
    assert_eq!(sent.rows.len(), expected.len().div_ceil(BATCH_ITEMS));
    assert_eq!(pairs_of(&sent.rows), expected);
}

#[test]
fn large_rows_leave_in_small_batches() {
    let texts = |texts: Vec<String>| Arc::new(StringArray::from(texts)) as ArrayRef;
    let large = "x".repeat(1 << 20);
    let table = batch_of(vec![
        ("id".to_owned(), integers(&some([1, 2, 2]))),
        ("text".to_owned(), texts(vec![large.clone(), "small".to_owned(), large.clone()])),
    ]);
    let keys: Vec<_> = (0..60).map(|row| Some(1 + row % 2)).collect();
    let stream = batch_of(vec![("k".to_owned(), integers(&keys))]);
    let schemas = [stream.schema(), table.schema()];
    for (duplicates, rows) in [(Duplicates::First, 60), (Duplicates::All, 90)] {
        let events = [
            Event::Table(table.clone()),
            Event::TableEnds(Ending::Whole),
            Event::Stream(stream.clone()),
        ];
        let spec = Lookup::new("k").table_key("id").duplicates(duplicates);
        let sent = run(spec, &schemas, events).unwrap();
        assert_eq!(sent.rows.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
        for rows in &sent.rows {
            let texts = rows.column(1).as_string::<i32>();
            assert!(texts.value_data().len() <= 16 << 20, "{}", texts.value_data().len());
        }
        // Texts of 30 or 60 MiB have the fewest batches that the limit allows.
        assert_eq!(sent.rows.len(), if duplicates == Duplicates::All { 4 } else { 2 });
    }
    // A large row of the stream is copied once for each partner.
    let many = batch_of(vec![("id".to_owned(), integers(&vec![Some(5); 40]))]);
    let columns =
        vec![("k".to_owned(), integers(&[Some(5)])), ("own".to_owned(), texts(vec![large]))];
    let stream = batch_of(columns);
    let schemas = [stream.schema(), many.schema()];
    let events = [Event::Table(many), Event::TableEnds(Ending::Whole), Event::Stream(stream)];
    let spec = Lookup::new("k").table_key("id").columns("id").duplicates(Duplicates::All);
    let sent = run(spec, &schemas, events).unwrap();
    assert_eq!(sent.rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 40);
    let bytes = |rows: &RecordBatch| rows.column(1).as_string::<i32>().value_data().len();
    assert!(sent.rows.iter().all(|rows| bytes(rows) <= 16 << 20));
}

#[test]
fn lists_and_structs_of_the_table_leave_with_their_rows() {
    use arrow_array::types::Int32Type;
    use arrow_array::{FixedSizeListArray, ListArray, StructArray};
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
    ]);
    let vectors = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
        [Some(vec![Some(1), Some(2)]), Some(vec![Some(3), Some(4)]), None],
        2,
    );
    let lists: ArrayRef = Arc::new(lists);
    let vectors: ArrayRef = Arc::new(vectors);
    let structs: ArrayRef =
        Arc::new(StructArray::try_from(vec![("l", Arc::clone(&lists))]).unwrap());
    let table = batch_of(vec![
        ("t0".to_owned(), integers(&some([4, 5, 6]))),
        ("list".to_owned(), Arc::clone(&lists)),
        ("vector".to_owned(), Arc::clone(&vectors)),
        ("struct".to_owned(), Arc::clone(&structs)),
    ]);
    let stream = stream_batch(vec![integers(&[Some(6), None, Some(4), Some(5)])], vec![0, 1, 2, 3]);
    let schemas = [stream.schema(), table.schema()];
    let events = [
        Event::Table(table.slice(0, 2)),
        Event::Table(table.slice(2, 1)),
        Event::TableEnds(Ending::Whole),
        Event::Stream(stream),
    ];
    let sent = run(lookup(), &schemas, events).unwrap();
    for (place, column) in [lists, vectors, structs].iter().enumerate() {
        let found = sent.rows[0].column(2 + place);
        for (row, own) in [(0, 2), (2, 0), (3, 1)] {
            assert_eq!(&found.slice(row, 1), &column.slice(own, 1), "{place}, {row}");
        }
        assert!(found.is_null(1));
    }
}

#[test]
fn a_table_without_rows_has_no_partners() {
    let stream = some([1, 2, 3]);
    for mode in MODES {
        let events = [table_of(&[], 1), stream_of(&stream, 2)].concat();
        let sent = run(lookup().mode(mode), &schemas(), events).unwrap();
        assert_eq!(pairs_of(&sent.rows), by_hand(&stream, &[], mode, Duplicates::Fail));
    }
}

#[test]
fn rows_are_left_out_if_the_run_stops_before_the_end_of_the_table() {
    let mut events = stream_of(&some(0..20), 5);
    events.extend(table_of(&some(0..10), 10));
    events.pop();
    events.push(Event::TableEnds(Ending::Stopped));
    events.extend(stream_of(&some(0..7), 7));
    let sent = run(lookup().mode(LookupMode::Anti), &schemas(), events).unwrap();
    assert!(sent.rows.is_empty());
    assert_eq!(sent.counter("unanswered"), Some(27));
}
