//! Messages, and rows that are left out.

use arrow_array::Date32Array;

use super::*;
use crate::shared::rejected::OnError;
use crate::testing::bind;

#[test]
fn a_key_that_comes_twice_is_named_with_its_rows() {
    for cut in [1, 2, 10] {
        let table = table_of(&[Some(4), None, Some(9), None, Some(4), Some(9)], cut);
        let error = run(lookup(), &schemas(), table).unwrap_err().to_string();
        let expected = "row 5 of input 2: the key `4` is also the key of row 1; `duplicates` can be \
                        \"first\", \"last\" or \"all\"";
        assert_eq!(error, expected);
    }
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["ä".repeat(300); 2]));
    let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 0]));
    let table = batch_of(vec![("day".to_owned(), days), ("text".to_owned(), texts)]);
    let schemas = [table.schema(), table.schema()];
    let spec = Lookup::new(["day", "text"]).mode(LookupMode::Semi);
    let error = run(spec, &schemas, [Event::Table(table)]).unwrap_err().to_string();
    let key = format!("the key `1970-01-01`, `{}…` is also", "ä".repeat(200));
    assert!(error.contains(&key), "{error}");
}

#[test]
fn rows_without_a_value_are_rejected() {
    let texts = |texts: &[&str]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    let stream = batch_of(vec![
        ("text".to_owned(), texts(&["4", "no", "5", "6"])),
        ("n".to_owned(), integers(&some(0..4))),
    ]);
    let table = batch_of(vec![
        ("id".to_owned(), texts(&["x", "5", "4", "6"])),
        ("ms".to_owned(), texts(&["1", "2", "3", "y"])),
    ]);
    let schemas = [stream.schema(), table.schema()];
    let spec = || {
        let key = Lookup::new("cast(text as bigint)").table_key("cast(id as bigint)");
        key.columns("cast(ms as bigint) as at")
    };
    let events = |is_first: bool| {
        let end = Event::TableEnds(Ending::Whole);
        let table = [Event::Table(table.clone()), end];
        let stream = [Event::Stream(stream.clone())];
        match is_first {
            true => table.into_iter().chain(stream).collect::<Vec<_>>(),
            false => stream.into_iter().chain(table).collect(),
        }
    };
    for is_first in [true, false] {
        let sent = run(spec().on_error(OnError::Reject), &schemas, events(is_first)).unwrap();
        let rows = &sent.rows[0];
        let column = |name: &str| rows.column_by_name(name).unwrap().as_primitive::<Int64Type>();
        assert_eq!(column("n").values(), &[0, 2, 3]);
        assert_eq!(column("at").iter().collect::<Vec<_>>(), [Some(3), Some(2), None]);
        let rejected = sent.rejected.iter().flat_map(|rows| rows.column(5).as_string::<i32>());
        let mut rejected: Vec<_> = rejected.flatten().collect();
        rejected.sort_unstable();
        let all = [r#"{"id":"6","ms":"y"}"#, r#"{"id":"x","ms":"1"}"#, r#"{"text":"no","n":1}"#];
        assert_eq!(rejected, all);
        assert_eq!(sent.counter("rejected"), Some(3));
        let sent = run(spec().on_error(OnError::Skip), &schemas, events(is_first)).unwrap();
        assert_eq!((sent.rows[0].num_rows(), sent.counter("skipped")), (3, Some(3)));
        let error = run(spec(), &schemas, events(is_first)).unwrap_err().to_string();
        assert!(error.starts_with("row 1 of input 2: "), "{error}");
    }
}

#[test]
fn parameters_are_checked() {
    let numbers = |names: &[&str]| {
        let columns = names.iter().map(|name| ((*name).to_owned(), integers(&some([1]))));
        batch_of(columns.collect()).schema()
    };
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let texts = batch_of(vec![("id".to_owned(), texts)]).schema();
    let (stream, table) = (numbers(&["id", "n", "owner"]), numbers(&["id", "owner", "team"]));
    let by_id = || Lookup::new("id");
    let renamed = || by_id().columns("team");
    let none: [&str; 0] = [];
    for (spec, tables, messages) in [
        (
            by_id(),
            [&stream, &table],
            &[
                "a column `owner`, which the stream has",
                "`owner as table_owner` gives the column another name; `* except (owner)` leaves it out",
            ][..],
        ),
        (by_id().columns("n"), [&stream, &table], &["the input has no column `n`"]),
        (by_id().columns("team as n"), [&stream, &table], &["`n as table_n` gives"]),
        (
            by_id().columns(["team", "owner as team"]),
            [&stream, &table],
            &["a second column `team`"],
        ),
        (by_id().columns("unnest(team)"), [&stream, &table], &["unnest(team)"]),
        (by_id().columns(none), [&stream, &table], &["an empty list", "`mode` \"semi\" adds none"]),
        (
            renamed().mode(LookupMode::Anti),
            [&stream, &table],
            &[
                "columns with `mode`: \"anti\"",
                "`mode` \"left\" and \"inner\" add columns of the table",
            ],
        ),
        (renamed().mode(LookupMode::Semi), [&stream, &table], &["columns with `mode`: \"semi\""]),
        (renamed().table_key("ids"), [&stream, &table], &["ids"]),
        (Lookup::new("ids").columns("team"), [&stream, &table], &["ids"]),
        (Lookup::new(none).columns("team"), [&stream, &table], &["name one column at least"]),
        (
            renamed().table_key(["id", "team"]),
            [&stream, &table],
            &["a key of 2 columns for a key of 1", "both keys need the same number of columns"],
        ),
        (by_id(), [&stream, &texts], &["`id` of Utf8 for `id` of Int64", "need the same types"]),
        (
            Lookup::new("id / 2").table_key("id").columns("team"),
            [&stream, &table],
            &["`id` of Int64 for `id / 2` of Float64"],
        ),
    ] {
        let inputs = tables.map(Arc::clone);
        let error = bind(spec, &inputs).expect_err(messages[0]);
        let error = error.to_string();
        assert!(messages.iter().all(|message| error.contains(message)), "{error}");
    }
    let inputs = [Arc::clone(&stream), Arc::clone(&table)];
    assert!(bind(renamed(), &inputs).is_ok());
}
