//! Tables of comma-separated values, against values that are written by hand.

use std::sync::Arc;

use arrow_schema::DataType;
use serde_json::{Value, json};

use super::jsonl::{drain, rows_of, schema_of};
use super::*;
use crate::source::read::csv::dialect::Dialect;
use crate::source::read::csv::records::CsvLines;
use crate::source::read::csv::typed::TypedRows;

fn typed(columns: Value, file: &[u8]) -> Result<Vec<Value>, String> {
    let rows = TypedRows::new(schema_of(columns), vec![String::new(), "NA".to_owned()]).unwrap();
    let format = CsvLines::new(rows, Dialect::default(), 1 << 16);
    let read = read_with(format, &[file], ROOMY, OnError::Fail);
    read.map(|(batches, _)| rows_of(&batches)).map_err(|error| error.to_string())
}

#[test]
fn fields_are_of_the_types_of_the_schema() {
    for (kind, field, expected) in [
        ("i8", " -128 ", json!(-128)),
        ("u64", "18446744073709551615", json!(u64::MAX)),
        ("i64", "2.0", json!(2)),
        ("f64", "1e-3", json!(0.001)),
        ("f32", "\"0.5\"", json!(0.5)),
        ("boolean", "TRUE", json!(true)),
        ("date", "2000-03-01", json!(11_017)),
        ("timestamp", "1970-01-01T00:00:01Z", json!(1_000_000)),
        ("text", " a ", json!(" a ")),
        ("text", "\"a\"\"b\nc,\"", json!("a\"b\nc,")),
        ("text", "007", json!("007")),
        ("text", "a\0b", json!("a\0b")),
        ("text", "", Value::Null),
        ("text", "NA", Value::Null),
        ("text", "\"\"", json!("")),
        ("text", "\"NA\"", json!("NA")),
        ("i8", "", Value::Null),
        ("i8", "\"\"", Value::Null),
        ("i8", "NA", Value::Null),
    ] {
        // The column stands between two other columns, and the line ends as on Windows.
        let file = format!("\u{feff}x,a,y\r\n,{field},\"q\"\r\n");
        let rows = typed(json!({ "a": kind }), file.as_bytes());
        assert_eq!(rows, Ok(vec![json!({ "a": expected })]), "{kind} {field}");
    }
}

#[test]
fn a_bad_field_or_record_is_named() {
    for (file, message) in [
        ("a,b\n1,x\n300,y\n", ":3: column `a` is i8; found `300`"),
        ("a,b\n1,\"x\n\"\n1.5,y\n", ":4: column `a` is i8; found `1.5`"),
        ("a,b\n1,x,2\n", ":2: a record of 3 fields; the header has 2"),
        ("a,b\n1\n", ":2: a record of 1 fields; the header has 2"),
        ("a,a,b\n1,2,3\n", " has 2 columns named `a`, expected one; its columns are `a`, `a`, `b`"),
        ("x,b\n1,2\n", " has 0 columns named `a`, expected one; its columns are `x`, `b`"),
        ("", " has no header; expected the names of its columns in the first line"),
        ("a,b\n1,\"x\n", ":2: the record that begins here has a quote that is not closed"),
    ] {
        let error = typed(json!({"a": "i8", "b": "text"}), file.as_bytes()).unwrap_err();
        assert_eq!(error, format!("a.txt{message}"), "{file}");
    }
}

#[test]
fn a_file_without_a_header_may_be_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "").unwrap();
    let schema = schema_of(json!({"c1": "text"}));
    let read = Read::new([&path], ReadFormat::Csv).schema(&schema).header(false);
    assert_eq!(drain(read).unwrap().0, [Value::Null; 0]);
}

#[test]
fn a_line_is_text_or_not_whatever_columns_are_read() {
    let file = b"a,b\n1,x\n2,\xff\n3,\"\xff\"\n";
    for columns in [json!({"a": "i8"}), json!({"a": "i8", "b": "text"})] {
        let rows = TypedRows::new(schema_of(columns), Vec::new()).unwrap();
        let format = CsvLines::new(rows, Dialect::default(), 1 << 16);
        let (batches, counters) = read_with(format, &[&file[..]], ROOMY, OnError::Skip).unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
        assert_eq!(counter(&counters, "skipped"), 2);
    }
}

#[test]
fn a_quote_that_is_not_closed_for_long_is_told() {
    let long = ["a,b\n1,\"x\n", &"1,y\n".repeat(1 << 14), "1,z\"\n2,y\n"].concat();
    let error = typed(json!({"a": "i8", "b": "text"}), long.as_bytes()).unwrap_err();
    assert!(error.starts_with("a.txt:2: the record that begins here has a quote"), "{error}");
    assert!(error.contains("within 65536 bytes"), "{error}");
}

#[test]
fn columns_are_those_of_the_header_with_the_types_of_the_first_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let header = "whole,big,number,flag,day,time,zip,mixed,nothing,key,below,\n";
    let first = "1,1,1,true,2024-02-29,2024-02-29,007,1,,123456789012345678901,-1,x\n";
    let second = "-2,18446744073709551615,2.5,False,2024-03-01,2024-02-29 12:00:00,10115,x,,1,\
                  18446744073709551615,y\n";
    fs::write(&path, [header, "ragged\n", first, second].concat()).unwrap();
    let read = || Read::new([&path], ReadFormat::Csv).on_error(OnError::Skip);
    let schema = Arc::clone(&bind(read(), &[]).unwrap().outputs[0]);
    let found: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| (field.name().as_str(), field.data_type().clone()))
        .collect();
    let time = DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, None);
    let expected = [
        ("whole", DataType::Int64),
        ("big", DataType::UInt64),
        ("number", DataType::Float64),
        ("flag", DataType::Boolean),
        ("day", DataType::Date32),
        ("time", time),
        ("zip", DataType::Utf8),
        ("mixed", DataType::Utf8),
        ("nothing", DataType::Utf8),
        ("key", DataType::Utf8),
        ("below", DataType::Utf8),
        ("c12", DataType::Utf8),
    ];
    assert_eq!(found, expected);
    let (rows, _, counters) = drain(read()).unwrap();
    assert_eq!(counter(&counters, "skipped"), 1);
    assert_eq!(rows[0]["zip"], json!("007"));
    assert_eq!(rows[1]["time"], json!(1_709_208_000_000_000_i64));
    assert_eq!(rows[1]["big"], json!(u64::MAX));
    // Named columns are texts next to an id, as in a reading without a schema.
    let schema = Arc::clone(&bind(read().columns(["zip"]), &[]).unwrap().outputs[0]);
    assert_eq!(schema.field(0).name(), "id");
}

#[test]
fn a_dialect_has_its_own_characters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "# no record\n'a;b';1\n#'x\n'it''s';-\n").unwrap();
    let read = || Read::new([&path], ReadFormat::Csv).delimiter(';').quote('\'').header(false);
    let read = || read().comment('#').null(["-"]);
    let (rows, ..) = drain(read()).unwrap();
    assert_eq!(rows, [json!({"c1": "a;b", "c2": 1}), json!({"c1": "it's", "c2": null})]);
    for (read, parameter) in [
        (Read::new([&path], ReadFormat::Csv).quote('é'), "quote"),
        (Read::new([&path], ReadFormat::Csv).comment('"'), "comment"),
        (Read::new([&path], ReadFormat::Lines).header(true), "header"),
        (Read::new(["-"], ReadFormat::Csv), "schema"),
    ] {
        assert_eq!(bind(read, &[]).unwrap_err().parameter, Some(parameter));
    }
    let lists = Schema::new(vec![arrow_schema::Field::new_list(
        "a",
        arrow_schema::Field::new_list_field(DataType::Int8, true),
        true,
    )]);
    let error = bind(Read::new([&path], ReadFormat::Csv).schema(&lists), &[]).unwrap_err();
    assert!(error.to_string().contains("a list of i8 for `a`"), "{error}");
}
