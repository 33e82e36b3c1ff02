//! Logs. Expected values are written by hand, or come from regular expressions and `serde_json`.

use arrow_schema::{DataType, Field};
use regex::Regex;
use serde_json::{Value, json};

use super::jsonl::{drain, rows_of, schema_of};
use super::*;
use crate::source::read::log::{LogRows, Pattern, Scanner};

fn log_rows(pattern: &str) -> LogRows {
    let Pattern::Fixed(scanner) = Pattern::new(pattern).unwrap() else { panic!("pairs") };
    let schema = Schema::new(scanner.fields());
    LogRows::new(scanner, schema.into()).unwrap()
}

fn pair_rows(columns: Value) -> LogRows {
    let schema = schema_of(columns);
    LogRows::new(Scanner::of_pairs(schema.fields()), schema).unwrap()
}

fn read_rows(rows: LogRows, file: &[u8]) -> Result<Vec<Value>, String> {
    let read = read_with(rows, &[file], ROOMY, OnError::Fail);
    read.map(|(batches, _)| rows_of(&batches)).map_err(|error| error.to_string())
}

/// The error of the second line, after a good first line.
fn error_of(rows: LogRows, good: &str, line: &str) -> String {
    let file = format!("{good}\n{line}\n");
    let error = read_rows(rows, file.as_bytes()).unwrap_err();
    error.strip_prefix("a.txt:2: ").unwrap_or(&error).to_owned()
}

/// The columns of a line of an access log; the time in microseconds.
fn access(line: &str) -> Value {
    let mut rows = read_rows(log_rows("combined"), line.as_bytes()).unwrap();
    assert_eq!(rows.len(), 1, "{line}");
    rows.remove(0)
}

/// 2000-10-10 20:55:36 UTC.
const TIME: i64 = 971_211_336_000_000;

#[test]
fn a_combined_line_has_eleven_columns() {
    let line = r#"127.0.0.1 - frank b [10/Oct/2000:13:55:36 -0700] "GET /a_b.gif HTTP/1.0" 200 2326 "http://a/" "Mozilla/4.08 [en] (Win98; I ;Nav)""#;
    let expected = json!({
        "ip": "127.0.0.1", "ident": null, "user": "frank b", "time": TIME, "method": "GET",
        "path": "/a_b.gif", "protocol": "HTTP/1.0", "status": 200, "bytes": 2326,
        "referer": "http://a/", "user_agent": "Mozilla/4.08 [en] (Win98; I ;Nav)"
    });
    assert_eq!(access(line), expected);
    // The file has a mark, line ends of Windows, blank lines, and no line end at the end.
    let file = format!("\u{feff}{line}\r\n\r\n \n{line}");
    let rows = read_rows(log_rows("combined"), file.as_bytes());
    assert_eq!(rows, Ok(vec![expected.clone(), expected.clone()]));
    // Text after the last field is passed over, and a common line lacks the last two fields.
    assert_eq!(access(&format!("{line} \"10.0.0.1\" 0.003")), expected);
    let common = line.split_once(" \"http").unwrap().0;
    let row = access(common);
    assert_eq!(
        (&row["bytes"], &row["referer"], &row["user_agent"]),
        (&json!(2326), &json!(null), &json!(null))
    );
    let row = &read_rows(log_rows("common"), common.as_bytes()).unwrap()[0];
    assert_eq!((row.as_object().unwrap().len(), &row["status"]), (9, &json!(200)));
}

#[test]
fn a_request_that_is_none_is_a_path() {
    for (request, method, path, protocol) in [
        ("GET /a b HTTP/1.1", json!("GET"), json!("/a b"), json!("HTTP/1.1")),
        (r#"GET /\"x\"\\ HTTP/1.1"#, json!("GET"), json!(r#"/"x"\"#), json!("HTTP/1.1")),
        ("-", json!(null), json!(null), json!(null)),
        ("", json!(null), json!(""), json!(null)),
        (r"\x16\x03\x01", json!(null), json!(r"\x16\x03\x01"), json!(null)),
        ("GET /", json!(null), json!("GET /"), json!(null)),
        ("GET HTTP/1.1", json!(null), json!("GET HTTP/1.1"), json!(null)),
        ("a/b c HTTP/1.1", json!(null), json!("a/b c HTTP/1.1"), json!(null)),
        (r#"\" \"x"#, json!(null), json!(r#"" "x"#), json!(null)),
    ] {
        let line =
            format!(r#"::1 - - [10/Oct/2000:20:55:36 +0000] "{request}" 400 - "-" "a \"b\" \x41""#);
        let row = access(&line);
        let found = [&row["method"], &row["path"], &row["protocol"]];
        assert_eq!(found, [&method, &path, &protocol], "{request}");
        let others = [&row["bytes"], &row["referer"], &row["user_agent"], &row["time"]];
        let expected = [json!(null), json!(null), json!(r#"a "b" \x41"#), json!(TIME)];
        assert_eq!(others.map(Clone::clone), expected);
    }
}

#[test]
fn a_line_without_the_pattern_is_named() {
    let good = r#"::1 - - [10/Oct/2000:20:55:36 +0000] "-" 400 -"#;
    for (line, message) in [
        ("x", "the line does not follow the pattern: there is no ` ` after `ip`"),
        (
            r#"::1 - - [10/Oct/2000:20:55:36] "-" 400 -"#,
            "column `time` is a time of the format `%d/%b/%Y:%H:%M:%S %z`; \
             found `10/Oct/2000:20:55:36`",
        ),
        (
            r#"::1 - - [10/Oct/2000:20:55:36 +0000] "-" 70000 -"#,
            "column `status` is u16; found `70000`",
        ),
        (
            r#"::1 - - [10/Oct/2000:20:55:36 +0000] "-" 400 - "a\""#,
            "the line does not follow the pattern: there is no `\" \"` after `referer`",
        ),
    ] {
        assert_eq!(error_of(log_rows("combined"), good, line), message, "{line}");
    }
    let template = "[{a:i8}] {b}!";
    for (line, message) in [
        ("x", "the line does not follow the pattern: it does not begin with `[`"),
        ("[1", "the line does not follow the pattern: there is no `] ` after `a`"),
        (
            "[1] x!y",
            "the line does not follow the pattern: text follows where the pattern ends, after `b`",
        ),
        ("[1] x", "the line does not follow the pattern: there is no `!` after `b`"),
        ("[x] y!", "column `a` is i8; found `x`"),
    ] {
        assert_eq!(error_of(log_rows(template), "[-] !", line), message, "{line}");
    }
}

#[test]
fn a_template_has_literals_types_times_and_texts_that_are_passed_over() {
    for (template, line, expected) in [
        ("{a}", "x y", json!({"a": "x y"})),
        ("{a} {b}", "x y z", json!({"a": "x", "b": "y z"})),
        ("{a}, {_}, {b}", "x, y, ", json!({"a": "x", "b": ""})),
        ("{{{a}}}", "{x}", json!({"a": "x"})),
        (
            "{a:i64}|{b:u8}|{c:f64}|{d:boolean}",
            "-5|-||true",
            json!({"a": -5, "b": null, "c": null, "d": true}),
        ),
        (
            "{a:date} {b:timestamptz}",
            "1970-01-02 1970-01-01T00:00:01Z",
            json!({"a": 1, "b": 1_000_000}),
        ),
        (
            "{t:%Y-%m-%d %H:%M:%S.%f} {a}",
            "1970-01-01 00:00:01.5 x",
            json!({"t": 1_500_000, "a": "x"}),
        ),
        ("\"{a}\" {b}", r#""x \" y\\" \" z"#, json!({"a": "x \" y\\", "b": "\\\" z"})),
        ("{a}\" {b}", r#"x\" y"#, json!({"a": "x\\", "b": "y"})),
        ("{a} - {b}", "x - - y", json!({"a": "x", "b": "- y"})),
        (
            "{t:%b %e %T} {a}",
            "Mar  1 00:00:00 x y",
            json!({"t": -2_203_891_200_000_000_i64, "a": "x y"}),
        ),
        ("«{ä}»", "«é»", json!({"ä": "é"})),
    ] {
        let found = read_rows(log_rows(template), line.as_bytes());
        assert_eq!(found, Ok(vec![expected]), "{template} {line}");
    }
}

#[test]
fn a_template_that_cannot_be_used_is_refused_with_its_place() {
    for (template, reason) in [
        ("{a}{b}", "the fields at the characters 1 and 4 have no text between them"),
        ("é{a} {a}", "the field at character 6 is a second `a`"),
        ("{a", "the brace at character 1 opens a field that is not closed"),
        ("{a{b}}", "the brace at character 1 opens a field that is not closed"),
        ("x} {a}", "the brace at character 2 closes no field"),
        ("{} x", "the field at character 1 has no name"),
        ("{:u8}", "the field at character 1 has no name"),
        ("{a:u17}", "the field at character 1 has the type `u17`; types are boolean, "),
        ("{a:timestap}", "did you mean `timestamp`?"),
        ("{a:blob}", "has the type `blob`"),
        ("{a:%Q}", "the field at character 1: \"%Q\" has a part that is no format"),
        ("{_} x", "it has no field that becomes a column"),
        ("combind", "did you mean `combined`?"),
        ("", "expected `combined`, `common`, `syslog`, `logfmt` or a template"),
    ] {
        let error = Pattern::new(template).unwrap_err();
        assert!(error.contains(reason), "{template}: {error}");
    }
}

#[test]
fn syslog_has_two_forms() {
    let columns =
        ["facility", "severity", "time", "host", "app", "pid", "message_id", "data", "message"];
    let row = |values: [Value; 9]| -> Value {
        Value::Object(columns.iter().map(|name| (*name).to_owned()).zip(values).collect())
    };
    let null = || Value::Null;
    for (line, values) in [
        (
            "<165>1 1970-01-01T00:00:01.5Z host.a evnt - ID47 [x@1 a=\"b ] \\\"\"][y] \u{feff}An entry",
            [
                json!(20),
                json!(5),
                json!(1_500_000),
                json!("host.a"),
                json!("evnt"),
                null(),
                json!("ID47"),
                json!("[x@1 a=\"b ] \\\"\"][y]"),
                json!("An entry"),
            ],
        ),
        (
            "<0>1 - - - - - -",
            [json!(0), json!(0), null(), null(), null(), null(), null(), null(), null()],
        ),
        (
            "<34>1970-01-01T01:00:01+01:00 host app[7]: failed: x",
            [
                json!(4),
                json!(2),
                json!(1_000_000),
                json!("host"),
                json!("app"),
                json!("7"),
                null(),
                null(),
                json!("failed: x"),
            ],
        ),
        (
            "1970-01-01T00:00:01Z host kernel: [  1.2] up",
            [
                null(),
                null(),
                json!(1_000_000),
                json!("host"),
                json!("kernel"),
                null(),
                null(),
                null(),
                json!("[  1.2] up"),
            ],
        ),
        (
            "1970-01-01T00:00:01Z host last message repeated 2 times",
            [
                null(),
                null(),
                json!(1_000_000),
                json!("host"),
                null(),
                null(),
                null(),
                null(),
                json!("last message repeated 2 times"),
            ],
        ),
    ] {
        assert_eq!(read_rows(log_rows("syslog"), line.as_bytes()), Ok(vec![row(values)]), "{line}");
    }
}

#[test]
fn a_syslog_time_without_a_year_is_a_day_of_some_year() {
    let found = read_rows(log_rows("syslog"), b"<13>Mar  1 12:00:00 host su: 'su root' failed");
    let found = &found.unwrap()[0];
    let texts = [&found["host"], &found["app"], &found["message"]];
    assert_eq!(texts, ["host", "su", "'su root' failed"]);
    // 1 March, at noon, of some year.
    let days = found["time"].as_i64().unwrap() / 86_400_000_000;
    let micros = found["time"].as_i64().unwrap() % 86_400_000_000;
    let date = chrono::NaiveDate::from_num_days_from_ce_opt(i32::try_from(days).unwrap() + 719_163);
    assert_eq!(date.unwrap().format("%m-%d").to_string(), "03-01");
    assert_eq!(micros, 12 * 3_600 * 1_000_000);
}

#[test]
fn a_line_that_is_no_syslog_is_named() {
    let good = "1970-01-01T00:00:01Z host x";
    for (line, message) in [
        ("<192>1 - - - - - -", "a priority is a number from 0 to 191"),
        ("<+1>1 - - - - - -", "a priority is a number from 0 to 191"),
        ("<é>1", "a priority is a number from 0 to 191"),
        ("<1>1 - -", "there is no `app`; a header has `-`"),
        ("<1>1 - - - - - x", "structured data are `-` or elements"),
        ("<1>1 - - - - - [a", "structured data are `-` or elements"),
        ("<1>1 - - - - - ", "structured data are `-` or elements"),
        ("hello", "it begins with no time"),
        ("hello, this is no time at all", "column `time` is a time such as `Mar  1 12:00:00`"),
        ("1970-01-01T00:00:01Z", "there is no `host` after `time`"),
    ] {
        let error = error_of(log_rows("syslog"), good, line);
        assert!(error.contains(message), "{line}: {error}");
    }
}

#[test]
fn pairs_become_the_columns_of_a_schema() {
    let columns = json!({"a": "i8", "b": "text", "c": "boolean", "t": "timestamp"});
    for (line, expected) in [
        ("a=1 b=x c t=1970-01-01T00:00:01Z", json!({"a": 1, "b": "x", "c": true, "t": 1_000_000})),
        (
            r#"  x="not a column" b="a \"b\"\n\u00e9=" c=false "#,
            json!({"a": null, "b": "a \"b\"\né=", "c": false, "t": null}),
        ),
        ("a= b= c=-", json!({"a": null, "b": "", "c": null, "t": null})),
        ("a=1 a=2 b=c=d", json!({"a": 2, "b": "c=d", "c": null, "t": null})),
        (r#"b="" é=1"#, json!({"a": null, "b": "", "c": null, "t": null})),
    ] {
        let found = read_rows(pair_rows(columns.clone()), line.as_bytes());
        assert_eq!(found, Ok(vec![expected]), "{line}");
    }
    for (line, message) in [
        ("a=x", "column `a` is i8; found `x`"),
        ("a=1 =2", "the line does not follow the pattern: at byte 5, a key has no equals sign"),
        ("b=\"x", "the quote of `b` is not closed"),
        ("b=\"x\\\"", "the quote of `b` is not closed"),
        ("b=\"x\"y", "the value of `b` goes on after its quote"),
        ("a\"b=1", "at byte 2, a key has no equals sign and no quote in it"),
    ] {
        let error = error_of(pair_rows(columns.clone()), "b=x", line);
        assert!(error.contains(message), "{line}: {error}");
    }
}

/// A file, and a reader of it as a log of this pattern.
fn log_file(pattern: &str, text: &[u8]) -> (tempfile::TempDir, Read) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    fs::write(&path, text).unwrap();
    let read = Read::new([path], ReadFormat::Log).pattern(pattern);
    (folder, read)
}

#[test]
fn pairs_tell_their_columns() {
    let text = "level=info n=1 x=1.5 ok at=2026-03-01T12:00:00Z\n\
                bad=\"\nlevel=warn n=-2 x=7 ok=false late=007\n";
    let (_folder, read) = log_file("logfmt", text.as_bytes());
    let read = read.on_error(OnError::Skip);
    let fragment = bind(read.clone(), &[]).unwrap();
    let found = fragment.outputs[0].fields().iter();
    let found: Vec<_> = found.map(|f| (f.name().as_str(), f.data_type().to_string())).collect();
    let expected = [
        ("level", "Utf8"),
        ("n", "Int64"),
        ("x", "Float64"),
        ("ok", "Boolean"),
        ("at", "Timestamp(µs)"),
        ("late", "Utf8"),
    ];
    let expected = expected.map(|(name, kind)| (name, kind.to_owned()));
    assert_eq!(found, expected);
    let (rows, _, counters) = drain(read.columns(["ok", "n"])).unwrap();
    assert_eq!(rows, [json!({"ok": true, "n": 1}), json!({"ok": false, "n": -2})]);
    assert_eq!(counter(&counters, "skipped"), 1);
    let (_folder, read) = log_file("logfmt", b"=\n");
    let error = bind(read, &[]).unwrap_err().to_string();
    assert!(error.contains("none of its first lines has a pair"), "{error}");
}

#[test]
fn columns_are_chosen_and_parameters_are_checked() {
    let (_folder, read) = log_file("{a:u8} {b:u8} {c}", b"1 x 2\n");
    let (rows, ..) = drain(read.clone().columns(["c", "a"])).unwrap();
    assert_eq!(rows, [json!({"c": "2", "a": 1})]);
    let refused = |read: Read| {
        let error = bind(read, &[]).unwrap_err();
        (error.parameter.unwrap_or_default(), error.to_string())
    };
    let one = Schema::new(vec![Field::new("a", DataType::Int8, true)]);
    let list = DataType::new_list(DataType::Int8, true);
    let lists = Schema::new(vec![Field::new("a", list, true)]);
    for (read, parameter, message) in [
        (read.clone().columns(["d"]), "columns", "`d` is not allowed here; the table has"),
        (read.clone().schema(&one), "schema", "a template has them as in `{status:u16}`"),
        (read.clone().pattern("logfmt").schema(&lists), "schema", "a list of i8 for `a`"),
        (read.clone().pattern("{a}{b}"), "pattern", "have no text between them"),
        (read.clone().start("("), "start", "this is no regular expression: unclosed group"),
        (Read { format: ReadFormat::Sets, ..read.clone() }, "pattern", "is for `format` `log`"),
        (Read { pattern: None, ..read.clone() }, "pattern", "`log` needs the pattern"),
    ] {
        let (found, error) = refused(read);
        assert_eq!(found, parameter, "{error}");
        assert!(error.contains(message), "{error}");
    }
    let sets = Read::new(["a"], ReadFormat::Sets).start("^a");
    assert!(refused(sets).1.contains("`start` is for `format` `lines` or `log` only"));
}

#[test]
fn lines_of_other_encodings_and_wrong_bytes_are_treated_as_lines_are() {
    let (_folder, read) = log_file("{a} {b:u8}", b"\xe9 1\n");
    let (rows, ..) = drain(read.clone().encoding("latin1")).unwrap();
    assert_eq!(rows, [json!({"a": "é", "b": 1})]);
    let (rows, ..) = drain(read.clone().invalid(Invalid::Replace)).unwrap();
    assert_eq!(rows, [json!({"a": "\u{fffd}", "b": 1})]);
    let error = drain(read.clone()).unwrap_err().to_string();
    assert!(error.contains(":1: byte 0 of the line is not valid UTF-8"), "{error}");
    let (rows, rejected, _) = drain(read.on_error(OnError::Reject)).unwrap();
    assert_eq!((rows.len(), &rejected[0]["bytes"]), (0, &json!("\\xe9 1")));
    let wide: Vec<u8> = "\u{feff}é 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let (_folder, read) = log_file("{a} {b:u8}", &wide);
    assert_eq!(drain(read).unwrap().0, [json!({"a": "é", "b": 1})]);
}

#[test]
fn a_bad_line_is_rejected_with_its_column_and_place() {
    let (_folder, read) = log_file("{a:u8} {b}", b"1 x\n300 y\nz\n2 \n");
    let (rows, rejected, _) = drain(read.on_error(OnError::Reject)).unwrap();
    assert_eq!(rows, [json!({"a": 1, "b": "x"}), json!({"a": 2, "b": ""})]);
    let place = |row: &Value| {
        ["line_number", "byte_offset", "column", "reason", "bytes"].map(|name| row[name].clone())
    };
    let reasons = [
        "column `a` is u8; found `300`",
        "the line does not follow the pattern: there is no ` ` after `a`",
    ];
    let expected = [
        [json!(2), json!(4), json!("a"), json!(reasons[0]), json!("300 y")],
        [json!(3), json!(10), json!("a"), json!(reasons[1]), json!("z")],
    ];
    assert_eq!(rejected.iter().map(place).collect::<Vec<_>>(), expected);
}

#[test]
fn lines_up_to_the_next_beginning_are_a_record() {
    let text = b"  before\n12 a\n  b\r\n\n13 c\nnone 14\n15";
    let (_folder, log) = log_file("{n:u8} {text}", text);
    let path = log.paths[0].clone();
    let lines = |batch| {
        let read = Read::new([&path], ReadFormat::Lines).start("^[0-9]").columns(["line_number"]);
        drain(read.batch(batch)).unwrap().0
    };
    let row = |line: &str, number: u64| json!({"line": line, "line_number": number});
    let expected =
        [row("  before", 1), row("12 a\n  b\n", 2), row("13 c\nnone 14", 5), row("15", 7)];
    for batch in [1, 2, 3, 100] {
        assert_eq!(lines(batch), expected, "{batch}");
    }
    let read = log.start("^[0-9]").on_error(OnError::Reject);
    let (rows, rejected, _) = drain(read.clone()).unwrap();
    let expected = [
        json!({"n": null, "text": " before"}),
        json!({"n": 12, "text": "a\n  b\n"}),
        json!({"n": 13, "text": "c\nnone 14"}),
    ];
    assert_eq!(rows, expected);
    let bytes: Vec<_> = rejected.iter().map(|row| row["bytes"].clone()).collect();
    assert_eq!(bytes, ["15"]);
    // A record that is too long is refused once, and a line that is too long is refused once.
    let (rows, rejected, _) = drain(read.line_bytes_max(8)).unwrap();
    assert_eq!(rows, expected[..1]);
    let lines: Vec<_> = rejected.iter().map(|row| row["line_number"].clone()).collect();
    assert_eq!(lines, [2, 5, 7]);
}

/// A line that a naive parser takes apart, too: its values, and the line that the template gives.
fn values() -> impl Strategy<Value = (Vec<String>, u64, i64)> {
    let text = proptest::collection::vec("[a-z0-9 \"\\\\=é]{0,6}", 3);
    (text, any::<u64>(), -10_000_000_000_i64..10_000_000_000)
}

proptest! {
    /// A regular expression without greed finds what the scanner finds.
    #[test]
    fn fields_are_those_of_a_regular_expression(
        literals in proptest::collection::vec("[a-c|\\[\\] -]{1,3}", 4),
        line in "[a-c|\\[\\] -]{0,40}",
    ) {
        let [head, first, second, tail] = &literals[..] else { unreachable!() };
        let template = format!("{head}{{x}}{first}{{y}}{second}{{z}}{tail}");
        let quote = |text: &str| regex::escape(text);
        // Each field ends at the first occurrence of the literal after it.
        let step = |text: &str, literal: &str| {
            let found = Regex::new(&format!("^(?s)(.*?){}(.*)$", quote(literal))).unwrap();
            let parts = found.captures(text)?;
            Some((parts[1].to_owned(), parts[2].to_owned()))
        };
        let expected = (|| {
            let rest = line.strip_prefix(head.as_str())?;
            let (x, rest) = step(rest, first)?;
            let (y, rest) = step(&rest, second)?;
            let (z, rest) = step(&rest, tail)?;
            rest.is_empty().then(|| json!({"x": x, "y": y, "z": z}))
        })();
        let found = read_rows(log_rows(&template), line.as_bytes());
        match expected {
            _ if line.trim().is_empty() => prop_assert_eq!(found, Ok(vec![])),
            Some(row) => prop_assert_eq!(found, Ok(vec![row])),
            None => prop_assert!(found.is_err(), "{:?}", found),
        }
    }

    /// The values that were written are read.
    #[test]
    fn values_come_back((texts, number, seconds) in values()) {
        let quoted = texts[0].replace('\\', r"\\").replace('"', "\\\"");
        let plain = texts[1].replace(' ', "_");
        let time = chrono::DateTime::from_timestamp(seconds, 0).unwrap();
        let time = time.format("%d/%b/%Y:%H:%M:%S +0000").to_string();
        let line = format!("({number}) \"{quoted}\" {plain} [{time}] {}", texts[2]);
        let pattern = "({n:u64}) \"{a}\" {b} [{t:%d/%b/%Y:%H:%M:%S %z}] {c}";
        let row = json!({"n": number, "a": texts[0], "b": plain, "t": seconds * 1_000_000, "c": texts[2]});
        prop_assert_eq!(read_rows(log_rows(pattern), line.as_bytes()), Ok(vec![row]));
        let pairs = format!("n={number} a={} b={plain}", json!(texts[0]));
        let expected = json!({"n": number, "a": texts[0], "b": plain});
        if !plain.starts_with('"') {
            let columns = json!({"n": "u64", "a": "text", "b": "text"});
            prop_assert_eq!(read_rows(pair_rows(columns), pairs.as_bytes()), Ok(vec![expected]));
        }
    }

    /// Arbitrary bytes become rows or bad rows, in every pattern and with every size of blocks.
    #[test]
    fn any_bytes_are_rows_or_bad_rows(
        lines in proptest::collection::vec(
            prop_oneof![
                any::<Vec<u8>>(),
                "[-<>0-9 \\[\\]:=\"\\\\a-cé]{0,30}".prop_map(String::into_bytes),
            ],
            0..10,
        ),
        step in 1_usize..50,
        batch in 1_usize..5,
    ) {
        let file = [b"x\n".to_vec(), lines.join(&b'\n')].concat();
        let sizes = Sizes { batch, block: 64, step, line_bytes_max: 100 };
        let read = |rows, sizes| {
            let (batches, counters) = read_with(rows, &[&file], sizes, OnError::Skip).unwrap();
            (rows_of(&batches), counter(&counters, "skipped"))
        };
        for pattern in ["combined", "syslog", "{a} \"{b}\" {c:i8}", "{a}"] {
            let whole = read(log_rows(pattern), Sizes { line_bytes_max: 100, ..ROOMY });
            prop_assert_eq!(read(log_rows(pattern), sizes), whole, "{}", pattern);
        }
        let columns = || pair_rows(json!({"a": "i8", "b": "text"}));
        prop_assert_eq!(read(columns(), sizes), read(columns(), Sizes { line_bytes_max: 100, ..ROOMY }));
    }
}
