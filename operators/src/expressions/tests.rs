//! Values that DuckDB 2.0 gives, and errors.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, StringArray, StructArray, UInt8Array,
    UInt64Array,
};
use arrow_json::WriterBuilder;
use arrow_json::writer::LineDelimited;
use arrow_schema::{DataType, Field, Schema};

use super::columns::rows::Evaluated;
use super::*;

fn nothing() -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let schema = Arc::new(Schema::empty());
    RecordBatch::try_new_with_options(schema, Vec::new(), &options).unwrap()
}

/// A column as JSON, a value a line.
fn lines(column: ArrayRef) -> Vec<String> {
    let records = RecordBatch::try_from_iter_with_nullable([("v", column, true)]).unwrap();
    let mut written = Vec::new();
    let mut writer =
        WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut written);
    writer.write(&records).unwrap();
    writer.finish().unwrap();
    let text = String::from_utf8(written).unwrap();
    let value =
        |line: &str| line.strip_prefix("{\"v\":").unwrap().strip_suffix('}').unwrap().to_owned();
    text.lines().map(value).collect()
}

fn value(text: &str) -> String {
    let found = Expression::new(text, &Schema::empty());
    let found = found.unwrap_or_else(|error| panic!("{text}: {error}"));
    lines(found.evaluate(&nothing()).unwrap()).remove(0)
}

fn error(text: &str, schema: &Schema) -> String {
    Expression::new(text, schema).expect_err(text).to_string()
}

/// Expressions without columns, and their values in DuckDB, as JSON.
const CONSTANTS: &[(&str, &str)] = &[
    ("1/0", "null"), // Infinity, which JSON has no form for
    ("7//2", "3"),
    ("-7//2", "-3"),
    ("-7%3", "-1"),
    ("1/2", "0.5"),
    ("2^3", "8.0"),
    ("-(-1)", "1"),
    ("-9223372036854775808", "-9223372036854775808"),
    ("cast('nan' as double) = cast('nan' as double)", "true"),
    ("cast('nan' as double) > 1", "true"),
    ("-0.0 = 0.0", "true"),
    ("substr('hello',2,3)", "\"ell\""),
    ("substr('hello',-3,2)", "\"ll\""),
    ("substr('hello',0,2)", "\"h\""),
    ("substr('hello',-10,7)", "\"he\""),
    ("substr('hello',2)", "\"ello\""),
    ("substring('hello' from 2 for 2)", "\"el\""),
    ("substr('hello',3,-2)", "\"he\""),
    ("substr('héllo',2,2)", "\"él\""),
    ("split_part('a,b,c',',',2)", "\"b\""),
    ("split_part('a,b,c',',',-1)", "\"c\""),
    ("split_part('a,b,c',',',0)", "\"\""),
    ("split_part('a,b,c',',',9)", "\"\""),
    ("split_part('abc','',2)", "\"b\""),
    ("split_part('a,,,b',',,',-1)", "\",b\""),
    ("split_part('a,,,b',',,',-2)", "\"a\""),
    ("split_part('a,,,b',',,',-3)", "\"\""),
    ("list_contains([1,2],2)", "true"),
    ("list_contains(['a',null],'b')", "false"),
    ("list_distinct([2.5,1,1])[1]", "2.5"),
    ("len([1,null,3])", "3"),
    ("[1,2,3]", "[1,2,3]"),
    ("[null,-1]", "[null,-1]"),
    ("date_trunc('century',timestamp '2000-05-05 01:00:00')", "\"2000-01-01T00:00:00\""),
    ("date_part('century',date '2000-05-05')", "20"),
    ("strptime('69','%y')", "\"1969-01-01T00:00:00\""),
    ("strptime('68','%y')", "\"2068-01-01T00:00:00\""),
    ("timestamp '2024-01-01T10:00'", "\"2024-01-01T10:00:00\""),
    ("timestamp '2024-01-01 10:00'", "\"2024-01-01T10:00:00\""),
    ("timestamptz '2024-01-01 10:00+02:00'", "\"2024-01-01T08:00:00Z\""),
    ("try_cast('2024-01-01 10:00:60' as timestamp)", "null"),
    (r#"json_extract_string('{"a": 1}','')"#, r#""{\"a\":1}""#),
    ("hash(null) = hash(cast(null as text))", "true"),
    ("hash(null) = hash(cast(null as int))", "true"),
    ("replace('aaa','a','bb')", "\"bbbbbb\""),
    ("replace('abc','','x')", "\"abc\""),
    ("regexp_matches('abc','b')", "true"),
    ("regexp_matches('ABC','b','i')", "true"),
    ("regexp_matches('a\nb','a.b')", "false"),
    ("regexp_matches('a\nb','a.b','s')", "true"),
    (r"regexp_extract('abc123','([a-z]+)(\d+)',2)", "\"123\""),
    ("regexp_extract('abc','x')", "\"\""),
    ("regexp_extract('abc','(x)?b',1)", "\"\""),
    ("regexp_extract('abc','b',5)", "\"\""),
    ("regexp_replace('aXbXc','X','-')", "\"a-bXc\""),
    ("regexp_replace('aXbXc','X','$-','g')", "\"a$-b$-c\""),
    (r"regexp_replace('abc','(b)','[\1]')", "\"a[b]c\""),
    ("length('héllo')", "5"),
    ("len(words('a b'))", "2"),
    ("trim('  a ')", "\"a\""),
    ("trim('\ta')", "\"\\ta\""),
    ("ltrim('xxa','x')", "\"a\""),
    ("trim('xyax','xy')", "\"a\""),
    ("trim(both 'x' from 'xax')", "\"a\""),
    ("upper('straße')", "\"STRAẞE\""),
    ("lower('ÀB')", "\"àb\""),
    ("concat('a',null,1)", "\"a1\""),
    ("'a'||null", "null"),
    ("'a'||1", "\"a1\""),
    ("greatest(1,null,3)", "3"),
    ("least(null,null)", "null"),
    ("greatest('a','b')", "\"b\""),
    ("abs(-3)", "3"),
    ("round(2.5)", "3.0"),
    ("round(-2.5)", "-3.0"),
    ("round(1234.567,2)", "1234.57"),
    ("round(1234.567,-2)", "1200.0"),
    ("round(125,-1)", "130"),
    ("round(1e300,400)", "1.0e300"),
    ("floor(-1.5)", "-2.0"),
    ("ceil(1.2)", "2.0"),
    ("coalesce(null,null,2)", "2"),
    ("nullif(1,1)", "null"),
    ("nullif(1,2)", "1"),
    ("strptime('2024-01-02 03:04:05','%Y-%m-%d %H:%M:%S')", "\"2024-01-02T03:04:05\""),
    ("strptime('2024','%Y')", "\"2024-01-01T00:00:00\""),
    ("strptime('05.5','%S.%f')", "\"1900-01-01T00:00:05.500\""),
    ("strptime('10/Oct/2000:13:55:36 -0700','%d/%b/%Y:%H:%M:%S %z')", "\"2000-10-10T20:55:36Z\""),
    ("to_timestamp(1.5)", "\"1970-01-01T00:00:01.500Z\""),
    ("date_trunc('week',date '2024-01-03')", "\"2024-01-01T00:00:00\""),
    ("date_trunc('quarter',timestamp '2024-05-05 01:00:00')", "\"2024-04-01T00:00:00\""),
    ("date_trunc('hour',timestamp '1969-12-31 23:30:00')", "\"1969-12-31T23:00:00\""),
    ("date_part('dow',date '2024-01-07')", "0"),
    ("date_part('isodow',date '2024-01-07')", "7"),
    ("date_part('week',date '2024-12-30')", "1"),
    ("date_part('doy',date '2024-12-31')", "366"),
    ("date_part('epoch',timestamp '2024-01-01 00:00:00.5')", "1704067200.5"),
    ("date_part('milliseconds',timestamp '2024-01-01 00:00:59.9')", "59900"),
    ("extract(year from date '2024-12-31')", "2024"),
    (r#"json_extract_string('{"a":{"b":[1,"x"]}}','$.a.b[1]')"#, "\"x\""),
    (r#"json_extract_string('{"a":1}','a')"#, "\"1\""),
    (r#"json_extract_string('{"a":{"b": 1}}','$.a')"#, r#""{\"b\":1}""#),
    (r#"json_extract_string('{"a":null}','$.a')"#, "null"),
    (r#"json_extract_string('{"a.b":1}','$."a.b"')"#, "\"1\""),
    ("json_extract_string('[1,2]','$[-1]')", "\"2\""),
    (r#"json_extract_string('{"a":true}','/a')"#, "\"true\""),
    ("1 between 0 and 2", "true"),
    ("null in (1,2)", "null"),
    ("1 in (2,null)", "null"),
    ("1 not in (2,null)", "null"),
    ("'b' in ('a','b')", "true"),
    ("'abc' like 'a%'", "true"),
    (r"'a%c' like 'a\%c'", "false"),
    ("'a%c' like 'a!%c' escape '!'", "true"),
    ("'ABC' ilike 'a_c'", "true"),
    ("'abc' not like 'a%'", "false"),
    ("case when null then 1 else 2 end", "2"),
    ("case 3 when 1 then 'a' when 3 then 'b' end", "\"b\""),
    ("case when false then 1 else 2.5 end", "2.5"),
    ("cast('12' as int)", "12"),
    ("cast('1.7' as int)", "2"),
    ("cast(' 12 ' as int)", "12"),
    ("cast('1e3' as int)", "1000"),
    ("cast(2.5 as int)", "2"),
    ("cast(3.5 as u8)", "4"),
    ("try_cast('abc' as int)", "null"),
    ("'7'::bigint + 1", "8"),
    ("cast('yes' as boolean)", "true"),
    ("cast(1.0 as varchar)", "\"1.0\""),
    ("cast(1e20 as varchar)", "\"1e+20\""),
    ("cast(0.0001 as varchar)", "\"0.0001\""),
    ("cast(1e-7 as varchar)", "\"1e-07\""),
    ("cast(date '2024-01-01' as varchar)", "\"2024-01-01\""),
    ("cast(timestamp '2024-01-01 01:02:03.4' as varchar)", "\"2024-01-01 01:02:03.4\""),
    ("cast(to_timestamp(0) as varchar)", "\"1970-01-01 00:00:00+00\""),
    ("cast('2024-01-01' as timestamp)", "\"2024-01-01T00:00:00\""),
    ("contains('abc','b')", "true"),
    ("list_contains(words('a b'),'b')", "true"),
    ("list_distinct(words('b a b'))", "[\"b\",\"a\"]"),
    ("words('Don''t stop')", "[\"don't\",\"stop\"]"),
    ("qgrams('abcd',3)", "[\"abc\",\"bcd\"]"),
    ("words('a b')[1]", "\"a\""),
    ("words('a b')[-1]", "\"b\""),
    ("words('a b')[3]", "null"),
    ("true and null", "null"),
    ("false and null", "false"),
    ("true or null", "true"),
    ("not null", "null"),
    ("1 <> null", "null"),
    ("1 is distinct from null", "true"),
    ("null is not distinct from null", "true"),
    ("'a' < 'B'", "false"),
    ("null is unknown", "true"),
    ("(1 > 2) is not true", "true"),
    ("length(null)", "null"),
    ("hash(1) = hash(1.0)", "false"),
    ("hash('a') = hash('a')", "true"),
    ("now() = now()", "true"),
    ("null::bigint[]", "null"),
    ("try_cast(1e39 as f32)", "null"),
    ("try_cast(9223372036854775807 as timestamp)", "null"),
];

#[test]
fn constants_have_the_values_of_duckdb() {
    for (text, expected) in CONSTANTS {
        assert_eq!(value(text), *expected, "{text}");
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    let schema = Schema::new(vec![
        Field::new("status", DataType::UInt16, false),
        Field::new("host", DataType::Utf8, true),
    ]);
    let cases = [
        (
            "statsu >= 500",
            "`statsu`, at character 1: the input has no column `statsu`; it has `status` (UInt16), `host` (Utf8); did you mean `status`?",
        ),
        (
            "lowr(host)",
            "`lowr(host)`, at character 1: there is no function `lowr`; did you mean `lower`?",
        ),
        (
            "status > 1 and host > 5",
            "`host > 5`, at character 16: Utf8 and Int64 are not compared; write `cast(... as ...)` around one",
        ),
        ("status = 'x'", "`'x'`, at character 10: \"x\" is no UInt16"),
        ("1 +", "`1 +`, at character 4: expected: an expression, found the end"),
        ("1 2", "`2`, at character 3: an operator or the end of the expression is expected here"),
        ("'abc", "`'abc`, at character 1: unterminated string literal"),
        (
            "substr(host)",
            "`host`, at character 8: it is called as `substr(text, begin[, length])`, and here with 1 arguments",
        ),
        (
            "lower(status)",
            "`status`, at character 7: expected a text, and this is UInt16; `cast(... as text)` makes one",
        ),
        (
            "host + 1",
            "`host + 1`, at character 1: arithmetic is for numbers, and these are Utf8 and Int64",
        ),
        (
            "regexp_matches(host, '(')",
            "`'('`, at character 22: this is no regular expression: unclosed group",
        ),
        ("cast(status as nubmer)", "`status`, at character 6: `nubmer` is no type"),
        ("not host", "`host`, at character 5: expected a truth value, and this is Utf8"),
        (
            "timestamp '2024-01-01 10:00:60'",
            "`'2024-01-01 10:00:60'`, at character 11: \"2024-01-01 10:00:60\" is no Timestamp(µs)",
        ),
        ("[1, status]", "`status`, at character 5: a list has constants only"),
        ("[1, 'a']", "`'a'`, at character 5: a list of Int64 has no value of Utf8"),
        ("1 // 0", "`1 // 0`, at character 1: division by zero"),
        ("(select 1)", "`select 1`, at character 2: an expression has no queries inside"),
        ("status in (select 1)", "an expression has no queries inside"),
    ];
    for (text, expected) in cases {
        let found = error(text, &schema);
        assert!(
            found.contains(expected) || expected.contains(&found),
            "{text}\n{found}\n{expected}"
        );
    }
    let long = format!("1{}", " + 1".repeat(220));
    assert!(error(&long, &schema).contains("stand inside each other"), "a long chain");
    let many = vec!["status = 1"; 80].join(" or ");
    assert_eq!(Expression::new(&many, &schema).unwrap().data_type(), &DataType::Boolean);
    assert!(error(&vec!["status = 1"; 2000].join(" or "), &schema).contains("at most 250"));
    assert!(error(&"(".repeat(10_000), &schema).contains("nested too deeply"));
    assert!(error(&" ".repeat(70_000), &schema).contains("at most 65536 bytes"));
}

#[test]
fn texts_that_are_made_have_a_limit() {
    let long: ArrayRef = Arc::new(StringArray::from(vec!["a".repeat(1 << 20); 5]));
    let rows = RecordBatch::try_from_iter([("t", long)]).unwrap();
    let of = |text: &str, count: usize| {
        let result = Expression::new(text, rows.schema_ref()).unwrap();
        let result = result.evaluate(&rows.slice(0, count));
        result.map(|column| column.len()).map_err(|error| error.to_string())
    };
    let long = |pieces: usize| format!("concat({})", vec!["t"; pieces].join(","));
    assert_eq!(of(&long(51), 5), Ok(5), "255 MiB");
    let error = of(&long(52), 5).unwrap_err();
    assert!(error.contains("the texts of a batch have more than 268435456 bytes"), "{error}");
    let groups = format!("regexp_replace(t, '(a+)', '{}')", r"\1".repeat(65));
    let replaced = "replace(t, 'a', t)".to_owned();
    for text in [long(65), format!("{} || t", long(64)), replaced, groups] {
        let error = of(&text, 1).unwrap_err();
        assert!(error.contains("the text has more than 67108864 bytes"), "{error}");
    }
}

fn table() -> RecordBatch {
    let number: ArrayRef = Arc::new(Int64Array::from(vec![Some(4), None, Some(0), Some(-2)]));
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("4"), Some("x"), None, Some("7")]));
    let small: ArrayRef = Arc::new(UInt8Array::from(vec![255, 1, 2, 3]));
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 0, 1, 2]));
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let field = Arc::new(Field::new("x", DataType::Int64, true));
    let valid = Some(vec![true, false, true, true].into());
    let nested: ArrayRef = Arc::new(StructArray::new(vec![field].into(), vec![inner], valid));
    RecordBatch::try_from_iter_with_nullable([
        ("n", number, true),
        ("t", text, true),
        ("small", small, true),
        ("large", large, true),
        ("d", nested, true),
    ])
    .unwrap()
}

fn column(text: &str) -> Result<Vec<String>, EvaluationError> {
    let table = table();
    let expression = Expression::new(text, table.schema_ref());
    let expression = expression.unwrap_or_else(|error| panic!("{text}: {error}"));
    expression.evaluate(&table).map(lines)
}

#[test]
fn narrow_integers_do_not_overflow() {
    assert_eq!(column("small + 1").unwrap(), ["256", "2", "3", "4"]);
    assert_eq!(column("small - 256").unwrap(), ["-1", "-255", "-254", "-253"]);
    assert_eq!(column("large > n").unwrap(), ["true", "null", "true", "true"]);
    assert_eq!(column("large + small * 0 = large").unwrap(), ["true"; 4]);
    assert!(column("large + small").is_err(), "the sum does not fit 64 bits");
}

#[test]
fn operands_are_evaluated_for_the_rows_that_need_them() {
    assert!(column("10 // n > 1").is_err());
    assert_eq!(column("n <> 0 and 10 // n > 1").unwrap(), ["true", "null", "false", "false"]);
    assert_eq!(column("n = 0 or 10 // n > 1").unwrap(), ["true", "null", "true", "false"]);
    let guarded = "case when t = 'x' then -1 else cast(t as int) end";
    assert_eq!(column(guarded).unwrap(), ["4", "-1", "null", "7"]);
    assert_eq!(column("coalesce(n, length(t))").unwrap(), ["4", "1", "0", "-2"]);
    let error = column("cast(t as int) + 1").unwrap_err().to_string();
    assert_eq!(error, "`t`: \"x\" is no Int32");
}

#[test]
fn fields_of_structs_are_null_where_the_struct_is() {
    assert_eq!(column("d.x").unwrap(), ["1", "null", "3", "4"]);
    assert_eq!(column("d['x'] > 2").unwrap(), ["false", "null", "true", "true"]);
}

#[test]
fn failing_rows_are_set_apart() {
    let table = table();
    let expressions = ["cast(t as int)", "10 // n"]
        .map(|text| Expression::new(text, table.schema_ref()).unwrap());
    let Evaluated { records, columns, failed } = evaluate_rows(&expressions, &table);
    assert_eq!(records.num_rows(), 2);
    assert_eq!(lines(Arc::clone(&columns[0])), ["4", "7"]);
    assert_eq!(lines(Arc::clone(&columns[1])), ["2", "-5"]);
    let at: Vec<_> = failed.iter().map(|failed| (failed.index, failed.expression)).collect();
    assert_eq!(at, [(1, 0), (2, 1)]);
    assert_eq!(first_failed(&expressions, &table), 1);
    assert_eq!(first_failed(&expressions, &table.slice(2, 2)), 0);
    assert_eq!(first_failed(&expressions[1..], &table), 2);
}

#[test]
fn columns_of_select_have_names() {
    let table = table();
    let names = |text: &str| -> Vec<String> {
        choose(text, table.schema_ref()).unwrap().into_iter().map(|chosen| chosen.name).collect()
    };
    assert_eq!(names("n"), ["n"]);
    assert_eq!(names("n + 1 as more"), ["more"]);
    assert_eq!(names("d.x"), ["x"]);
    assert_eq!(names("*"), ["n", "t", "small", "large", "d"]);
    assert_eq!(names("* except (n, d)"), ["t", "small", "large"]);
    assert_eq!(names("* exclude (\"t\")"), ["n", "small", "large", "d"]);
    let error = choose("* except (m)", table.schema_ref()).unwrap_err().to_string();
    assert!(error.starts_with("`m`, at character 11: the input has no column `m`"), "{error}");
    let unnested = choose("unnest(words(t)) as word", table.schema_ref()).unwrap();
    assert!(unnested[0].is_unnested && unnested[0].name == "word");
}
