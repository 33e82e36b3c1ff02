//! Tables of JSON. Expected values are written by hand or come from `serde_json`.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, cast};
use arrow_schema::{DataType, Field, SchemaRef, TimeUnit};
use serde_json::{Map, Value, json};
use trommel_engine::memory::MemoryBudget;

use super::*;
use crate::source::read::json::jsonl::JsonRows;

/// A schema in the words of a configuration.
pub(super) fn schema_of(columns: Value) -> SchemaRef {
    let schema: TableSchema = serde_json::from_value(columns).unwrap();
    Arc::new(Schema::new(schema.0))
}

type Rows = (Vec<RecordBatch>, Counters);

fn read_json(columns: Value, files: &[&[u8]], sizes: Sizes) -> Result<Rows, OperatorError> {
    let rows = JsonRows::new(schema_of(columns)).unwrap();
    read_with(rows, files, sizes, OnError::Fail)
}

/// A value of a column as JSON; points in time and dates as their numbers.
pub(super) fn cell(column: &ArrayRef, row: usize) -> Value {
    fn number<P: ArrowPrimitiveType>(column: &ArrayRef, row: usize) -> Value
    where
        P::Native: Serialize,
    {
        json!(cast::as_primitive_array::<P>(column).value(row))
    }
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::Int8 => number::<Int8Type>(column, row),
        DataType::Int16 => number::<Int16Type>(column, row),
        DataType::Int32 => number::<Int32Type>(column, row),
        DataType::Int64 => number::<Int64Type>(column, row),
        DataType::UInt8 => number::<UInt8Type>(column, row),
        DataType::UInt16 => number::<UInt16Type>(column, row),
        DataType::UInt32 => number::<UInt32Type>(column, row),
        DataType::UInt64 => number::<UInt64Type>(column, row),
        DataType::Float32 => number::<Float32Type>(column, row),
        DataType::Float64 => number::<Float64Type>(column, row),
        DataType::Date32 => number::<Date32Type>(column, row),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            number::<TimestampMicrosecondType>(column, row)
        }
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::Binary => json!(column.as_binary::<i32>().value(row)),
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            (0..items.len()).map(|item| cell(&items, item)).collect()
        }
        DataType::Struct(fields) => {
            let columns = column.as_struct();
            let member = |(place, field): (usize, &Arc<Field>)| {
                (field.name().clone(), cell(columns.column(place), row))
            };
            Value::Object(fields.iter().enumerate().map(member).collect())
        }
        other => panic!("no test has the type {other}"),
    }
}

pub(super) fn rows_of(batches: &[RecordBatch]) -> Vec<Value> {
    let row = |batch: &RecordBatch, row: usize| {
        let names = batch.schema_ref().fields().iter().map(|field| field.name().clone());
        let values = batch.columns().iter().map(|column| cell(column, row));
        Value::Object(names.zip(values).collect::<Map<_, _>>())
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|at| row(batch, at))).collect()
}

#[test]
fn each_type_has_its_least_and_its_greatest_value() {
    for (kind, text, expected) in [
        ("boolean", "true", json!(true)),
        ("i8", "-128", json!(-128)),
        ("i16", "32767", json!(32767)),
        ("i32", "-2147483648", json!(-2_147_483_648_i64)),
        ("i64", "-9223372036854775808", json!(i64::MIN)),
        ("i64", "9007199254740993", json!(9_007_199_254_740_993_i64)),
        ("u8", "255", json!(255)),
        ("u16", "\"65535\"", json!(65535)),
        ("u32", "4.2e3", json!(4200)),
        ("u64", "18446744073709551615", json!(u64::MAX)),
        ("i64", "2.0", json!(2)),
        ("f32", "1e38", json!(1e38_f32)),
        ("f64", "0.1", json!(0.1)),
        ("f64", "-1.7976931348623157e308", json!(f64::MIN)),
        ("text", r#""a\u0000\ud83d\ude00\"\n""#, json!("a\0😀\"\n")),
        ("text", "1.50", json!("1.50")),
        ("text", "false", json!("false")),
        ("text", "null", Value::Null),
        ("date", "\"2000-03-01\"", json!(11_017)),
        ("timestamp", "\"1970-01-02T01:00:00.000001+01:00\"", json!(86_400_000_001_i64)),
        ("timestamp", "\"1970-01-02\"", json!(86_400_000_000_i64)),
        ("timestamptz", "\"1970-01-01 00:00:01Z\"", json!(1_000_000)),
        ("blob", "\"00ff\"", json!([0, 255])),
    ] {
        let line = format!("{{\"a\":{text}}}\n");
        let (batches, _) = read_json(json!({ "a": kind }), &[line.as_bytes()], ROOMY).unwrap();
        assert_eq!(rows_of(&batches), [json!({ "a": expected })], "{kind} {text}");
    }
}

#[test]
fn a_value_that_does_not_fit_is_named() {
    let number = |kind, found| format!("column `a` is {kind}; found the number {found}");
    for (kind, line, message) in [
        (json!("i64"), r#"{"a":1.5}"#, number("i64", "1.5")),
        (json!("u16"), r#"{"a":70000}"#, number("u16", "70000")),
        (json!("u8"), r#"{"a":-1}"#, number("u8", "-1")),
        (json!("i64"), r#"{"a":9223372036854775808}"#, number("i64", "9223372036854775808")),
        (json!("f64"), r#"{"a":1e400}"#, number("f64", "1e400")),
        (json!("timestamp"), r#"{"a":1700000000}"#, number("timestamp", "1700000000")),
        (json!("date"), r#"{"a":19000}"#, number("date", "19000")),
        (json!("boolean"), r#"{"a":1}"#, number("boolean", "1")),
        (json!("u16"), r#"{"a":"x"}"#, r#"column `a` is u16; found the text "x""#.into()),
        (json!("text"), r#"{"a":[1]}"#, "column `a` is text; found the list [1]".into()),
        (json!({"b": "i8"}), r#"{"a":{"b":true}}"#, "column `a.b` is i8; found true".into()),
        (json!({"b": "i8"}), r#"{"a":7}"#, "column `a` is an object; found the number 7".into()),
        (json!(["i8"]), r#"{"a":[1,2,300]}"#, "column `a[2]` is i8; found the number 300".into()),
        (json!(["i8"]), r#"{"a":{}}"#, "column `a` is a list of i8; found the object {}".into()),
    ] {
        let file = format!("{{\"a\":null}}\n{line}\n");
        let error = read_json(json!({ "a": kind }), &[file.as_bytes()], ROOMY).unwrap_err();
        assert_eq!(error.to_string(), format!("a.txt:2: {message}"), "{line}");
    }
}

#[test]
fn a_line_that_is_no_object_is_named() {
    for (line, reason) in [
        ("{\"a\":1", "EOF while parsing an object at byte 6"),
        ("{\"a\":1} x", "trailing characters at byte 9"),
        ("{\"a\":1}{\"a\":2}", "trailing characters at byte 8"),
        ("{\"a\":tru}", "expected ident at byte 9"),
        ("{\"a\":1,}", "trailing comma at byte 8"),
        ("{\"a\":1,\"x\":01}", "invalid number at byte 13"),
        ("{\"a\":1.}", "invalid number at byte 8"),
        ("{\"a\":1,\"x\":[1 2]}", "expected `,` or `]` at byte 15"),
        ("{\"a\":1 \"x\":2}", "expected `,` or `}` at byte 8"),
        ("[1]", "invalid type: sequence, expected a map at byte 0"),
        ("7", "invalid type: integer `7`, expected a map at byte 1"),
        ("{\"a\":\"\\ud800\"}", "`a`: unexpected end of hex escape at byte 8"),
    ] {
        let file = format!("\n \n{{\"a\":null}}\r\n{line}\n{{\"a\":2}}\n");
        let error = read_json(json!({"a": "i8"}), &[file.as_bytes()], ROOMY).unwrap_err();
        let expected = format!("a.txt:4: not an object of JSON: {reason}");
        assert_eq!(error.to_string(), expected, "{line}");
    }
    // An object is on one line, although its lines would make one.
    let error = read_json(json!({"a": "i8"}), &[b"{\"a\":\n1}\n"], ROOMY).unwrap_err();
    assert!(error.to_string().starts_with("a.txt:1: not an object of JSON: "), "{error}");
    let nested =
        |depth: usize| format!("{{\"a\":1,\"b\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let (batches, _) = read_json(json!({"a": "i8"}), &[nested(127).as_bytes()], ROOMY).unwrap();
    assert_eq!(rows_of(&batches), [json!({"a": 1})]);
    for depth in [128, 30_000] {
        let line = nested(depth);
        let error = read_json(json!({"a": "i8"}), &[line.as_bytes()], ROOMY).unwrap_err();
        assert!(error.to_string().contains("nested more than 128 deep"), "{error}");
    }
}

#[test]
fn members_come_in_any_order_and_the_last_of_equal_names_counts() {
    let file =
        b"\xef\xbb\xbf{\"b\":1,\"c\":[],\"a\":{\"y\":1}}\n{\"a\":{\"x\":2},\"b\":3,\"b\":4}\n{}";
    let columns = json!({"a": {"x": "i8"}, "b": "u64"});
    let (batches, _) = read_json(columns, &[file], ROOMY).unwrap();
    let expected = [
        json!({"a": {"x": null}, "b": 1}),
        json!({"a": {"x": 2}, "b": 4}),
        json!({"a": null, "b": null}),
    ];
    assert_eq!(rows_of(&batches), expected);
}

/// Reads all rows of files, and the rejected rows.
pub(super) fn drain(read: Read) -> Result<(Vec<Value>, Vec<Value>, Counters), OperatorError> {
    let mut source = bind_source(read);
    let (mut out, mut sent) = (Output::new(), [Vec::new(), Vec::new()]);
    loop {
        let flow = source.next(&mut out)?;
        out.drain_sent().for_each(|(port, payload)| sent[port].push(payload.into_records()));
        if flow == SourceFlow::Finished {
            return Ok((rows_of(&sent[0]), rows_of(&sent[1]), source.counters()));
        }
    }
}

#[test]
fn columns_are_those_of_the_first_thousand_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let mut text = String::from("not JSON\n");
    text += "{\"z\":1,\"big\":18446744073709551615,\"n\":null,\"tags\":[],\"u\":{\"id\":1}}\n";
    text += "{\"z\":2.5,\"big\":1,\"mixed\":true,\"tags\":[\"a\",null],\"u\":{\"name\":\"x\"}}\n";
    text += "{\"mixed\":7,\"sum\":-1}\n";
    text += &"{\"z\":3}\n".repeat(996);
    text += "{\"late\":1}\n";
    fs::write(&path, text).unwrap();
    let read = || Read::new([&path], ReadFormat::Jsonl).on_error(OnError::Skip);
    let fragment = bind(read(), &[]).unwrap();
    let found: Vec<_> = fragment.outputs[0]
        .fields()
        .iter()
        .map(|field| (field.name().as_str(), field.data_type().clone(), field.is_nullable()))
        .collect();
    let user = [("id", DataType::Int64), ("name", DataType::Utf8)];
    let user = user.map(|(name, kind)| Field::new(name, kind, true));
    assert_eq!(
        found,
        [
            ("z", DataType::Float64, true),
            ("big", DataType::UInt64, true),
            ("n", DataType::Utf8, true),
            ("tags", DataType::new_list(DataType::Utf8, true), true),
            ("u", DataType::Struct(user.to_vec().into()), true),
            ("mixed", DataType::Utf8, true),
            ("sum", DataType::Int64, true),
        ]
    );
    let (rows, _, counters) = drain(read().columns(["mixed", "u"])).unwrap();
    assert_eq!(counter(&counters, "skipped"), 1);
    assert_eq!(rows.len(), 1_000);
    assert_eq!(rows[1], json!({"mixed": "true", "u": {"id": null, "name": "x"}}));
    assert_eq!(rows[2], json!({"mixed": "7", "u": null}));
}

#[test]
fn columns_that_cannot_be_inferred_or_found_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        let path = folder.path().join("a.jsonl");
        fs::write(&path, text).unwrap();
        Read::new([path], ReadFormat::Jsonl)
    };
    let refused = |read: Read| bind(read, &[]).unwrap_err().to_string();
    for (text, message) in [
        (
            "{\"a\":1}\n{\"a\":[1]}\n",
            "the first rows, `a` is an empty object or has values of several kinds",
        ),
        ("{\"a\":{\"b\":{}}}\n", "`a.b` is an empty object"),
        ("1\n", "no line is an object of JSON"),
        ("", "a.jsonl: it has no lines; name the columns and their types in `schema`"),
        ("{}\n", "the objects of its first rows are empty"),
    ] {
        let error = refused(read(text));
        assert!(error.contains(message), "{error}");
    }
    let wide: Vec<_> = (0..4_097).map(|name| format!("\"{name}\":1")).collect();
    let error = refused(read(&format!("{{{}}}", wide.join(","))));
    assert!(error.contains("more than 4096 columns"), "{error}");
    let error = refused(read("{\"status\":1}").columns(["statsu"]));
    assert!(error.contains("did you mean `status`?"), "{error}");
    let error = refused(read("{\"status\":1}").columns(["status", "status"]));
    assert!(error.contains("`status` twice"), "{error}");
    let error = refused(Read::new(["-"], ReadFormat::Jsonl));
    let reason = "cannot infer the columns of standard input: standard input and pipes can be read \
                  only once; name the columns and their types in `schema`";
    assert!(error.contains(reason), "{error}");
    let later = folder.path().join("later.jsonl");
    let error = refused(Read::new([later], ReadFormat::Jsonl).follow());
    assert!(error.contains("later.jsonl: no file is there yet; name the columns"), "{error}");
    let unknown = serde_json::from_value::<TableSchema>(json!({"a": "u17"})).unwrap_err();
    assert!(unknown.to_string().contains("`u17` is no type"), "{unknown}");
    for kind in [json!([]), json!(["u8", "u8"]), json!({}), json!(7)] {
        assert!(serde_json::from_value::<TableSchema>(json!({ "a": kind })).is_err(), "{kind}");
    }
}

#[test]
fn files_without_rows_leave_the_columns_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let files = |texts: &[&str]| -> Vec<_> {
        let write = |(number, text): (usize, &&str)| {
            let path = folder.path().join(number.to_string());
            fs::write(&path, text).unwrap();
            path
        };
        texts.iter().enumerate().map(write).collect()
    };
    // More than eight files have no rows, since blank lines are no rows.
    let texts = [&["", "\n"][..], &[""; 10], &["{\"a\":1}\n", "{\"a\":2,\"b\":3}\n"]].concat();
    let read = Read::new(files(&texts), ReadFormat::Jsonl);
    assert_eq!(drain(read).unwrap().0, [json!({"a": 1}), json!({"a": 2})]);
    let read = Read::new(files(&["a,b\n", "b,a\nx,1\n"]), ReadFormat::Csv);
    assert_eq!(drain(read).unwrap().0, [json!({"b": "x", "a": 1})]);
    let pairs = Read::new(files(&["", "a=1\n"]), ReadFormat::Log).pattern("logfmt");
    assert_eq!(drain(pairs).unwrap().0, [json!({"a": 1})]);
    let error = bind(Read::new(files(&["", ""]), ReadFormat::Jsonl), &[]).unwrap_err().to_string();
    assert!(error.contains("0: it has no lines"), "{error}");
}

#[test]
fn a_long_line_takes_memory_of_the_pipeline() {
    let line = format!("{{\"a\":[{}1]}}", "1,".repeat(1 << 19));
    let read = |limit: usize| {
        let budget = MemoryBudget::new(limit);
        let rows = JsonRows::new(schema_of(json!({"a": ["u8"]}))).unwrap().within(&budget);
        let sizes = Sizes { line_bytes_max: 1 << 22, ..ROOMY };
        let read = read_with(rows, &[line.as_bytes()], sizes, OnError::Fail);
        read.map(|(batches, _)| (batches.len(), budget.reserved()))
    };
    assert_eq!(read(64 << 20).unwrap(), (1, 0));
    let error = read(16 << 20).unwrap_err();
    assert!(error.to_string().contains("no memory for a long line"), "{error}");
}

/// Values that fit the columns of [`PROPERTY_COLUMNS`], and values that do not fit.
fn any_line() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<i16>().prop_map(|value| json!(value)),
        any::<f64>().prop_filter("JSON has none", |f| f.is_finite()).prop_map(|value| json!(value)),
        Just(Value::Null),
    ];
    let text = prop_oneof![any::<String>().prop_map(|text| json!(text)), Just(json!([1]))];
    let list = proptest::collection::vec(any::<u8>(), 0..4).prop_map(|items| json!(items));
    let row = (number, text, list).prop_map(|(n, t, l)| json!({"n": n, "t": t, "l": l, "x": 1}));
    prop_oneof![
        8 => row.prop_map(|row| row.to_string()),
        1 => "[ -~]{0,12}".prop_filter("an object", |line| {
            serde_json::from_str::<Map<String, Value>>(line).is_err()
        }),
    ]
}

/// The row of a line by `serde_json`; `None` for a bad one.
fn expected(line: &str) -> Option<Value> {
    let row: Map<String, Value> = serde_json::from_str(line).ok()?;
    let is_small = |value: &Value| value.as_i64().is_some_and(|n| i16::try_from(n).is_ok());
    let fits = row["n"].is_null()
        || is_small(&row["n"])
        || row["n"].as_f64().is_some_and(|n| n.fract() == 0.0 && n.abs() <= 32_767.0);
    if !fits || !row["t"].is_string() {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a whole number of 16 bits")]
    let n = row["n"].as_f64().map(|n| n as i64);
    Some(json!({"n": n, "t": row["t"], "l": row["l"]}))
}

proptest! {
    #[test]
    fn rows_do_not_depend_on_sizes_and_bad_lines_are_set_aside(
        lines in proptest::collection::vec(any_line(), 0..40),
        batch in 1_usize..20,
        block in 16_usize..200,
        step in 1_usize..200,
    ) {
        let rows = JsonRows::new(schema_of(json!({"n": "i16", "t": "text", "l": ["u8"]}))).unwrap();
        let file = lines.join("\n");
        let sizes = Sizes { batch, block, step, line_bytes_max: 1 << 16 };
        let (batches, counters) =
            read_with(rows, &[file.as_bytes()], sizes, OnError::Skip).unwrap();
        let found = rows_of(&batches);
        let good: Vec<Value> = lines.iter().filter_map(|line| expected(line)).collect();
        prop_assert_eq!(found, good);
        let is_blank = |line: &&String| line.trim().is_empty();
        let bad = lines.iter().filter(|line| expected(line).is_none() && !is_blank(line)).count();
        prop_assert_eq!(counter(&counters, "skipped"), bad);
    }
}

/// A member of any kind, as it is written.
fn any_member() -> impl Strategy<Value = String> {
    let number = "-?(0|[1-9][0-9]{0,3})([.][0-9]{1,2})?(e[+-]?[0-9])?";
    let day = Just(json!("2024-02-29").to_string());
    let value = prop_oneof![
        "(null|true|false)",
        number,
        any::<String>().prop_map(|text| json!(text).to_string()),
        r#""[a-z0-9.]{0,3}(\\\\|\\n|\\u00e4|\\ud83d|\\ude00|\\x)?""#,
        number.prop_map(|number| format!("\"{number}\"")),
        day,
        Just("[1,{\"n\":2}]".to_owned()),
        Just("{}".to_owned()),
        "[ -~]{0,4}",
    ];
    ("[ndtbfx]", value).prop_map(|(name, value)| format!("\"{name}\": {value}"))
}

proptest! {
    /// With a column of structs, another parser finds the values.
    #[test]
    fn values_that_are_found_are_those_that_are_decoded(
        lines in proptest::collection::vec(proptest::collection::vec(any_member(), 0..5), 1..6),
    ) {
        let lines = lines.iter().map(|members| format!("{{{}}}\n", members.join(",")));
        let file: String = lines.collect();
        let mut columns =
            json!({"n": "i16", "d": "date", "t": "text", "b": "bool", "f": "f64"});
        let read = |columns: &Value| {
            let rows = JsonRows::new(schema_of(columns.clone())).unwrap();
            read_with(rows, &[file.as_bytes()], ROOMY, OnError::Skip).unwrap()
        };
        let (found, counters) = read(&columns);
        columns["z"] = json!({"x": "i8"});
        let (decoded, expected) = read(&columns);
        let decoded: Vec<_> =
            decoded.iter().map(|rows| rows.project(&[0, 1, 2, 3, 4]).unwrap()).collect();
        prop_assert_eq!(rows_of(&found), rows_of(&decoded), "{}", file);
        prop_assert_eq!(counters, expected);
    }
}

#[test]
fn followed_objects_come_when_their_lines_are_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, "{\"a\":1}\n{\"a\":").unwrap();
    let schema = Schema::new(vec![Field::new("a", DataType::Int8, false)]);
    let read = Read::new([&path], ReadFormat::Jsonl).schema(&schema).follow();
    let mut source = bind_source(read);
    let mut read = || {
        let mut out = Output::new();
        while source.next(&mut out).unwrap() == SourceFlow::HaveOutput {}
        let batches: Vec<_> = out.drain_sent().map(|(_, sent)| sent.into_records()).collect();
        rows_of(&batches)
    };
    assert_eq!(read(), [json!({"a": 1})]);
    fs::write(&path, "{\"a\":1}\n{\"a\":2}\n").unwrap();
    assert_eq!(read(), [json!({"a": 2})]);
}
