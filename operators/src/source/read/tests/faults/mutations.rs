//! Files of each format that are changed at random places. Each file gives rows, bad rows, or an
//! error that names the file, within the memory of the pipeline.

use std::collections::HashMap;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::*;
use crate::source::read::csv::dialect::Dialect;
use crate::source::read::csv::records::CsvLines;
use crate::source::read::csv::typed::TypedRows;
use crate::source::read::json::jsonl::JsonRows;
use crate::source::read::log::{LogRows, Pattern, Scanner};
use crate::source::read::tests::jsonl::{rows_of, schema_of};
use crate::source::read::tests::tables::{WRITERS, read_within, table};
use crate::source::read::text::records::{Beginning, Joined};

/// Signs with a meaning in some format, and bytes that are no text.
const SIGNS: &[u8] = b"{}[]\",:\\=<>- \r\n\t0x\xff\xc3\x00%'";
/// Whole numbers that lie about lengths.
const LIES: [i64; 6] = [-1, i64::MIN, i64::MAX, 1 << 31, 1 << 40, 0];

fn below(random: &mut Pcg64Mcg, end: usize) -> usize {
    usize::try_from(random.next_u64() % end.max(1) as u64).unwrap()
}

/// The file with one to four changes.
fn mutated(file: &[u8], random: &mut Pcg64Mcg) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for _ in 0..=below(random, 4) {
        let at = below(random, bytes.len());
        let end = (at + 1 + below(random, 8)).min(bytes.len());
        match below(random, 7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let part = bytes[at..end].to_vec();
                let to = below(random, bytes.len());
                drop(bytes.splice(to..to, part));
            }
            3 => drop(bytes.splice(at..at, [SIGNS[below(random, SIGNS.len())]])),
            4 => bytes[at..end].fill(0xff),
            5 => {
                let lie = LIES[below(random, LIES.len())].to_le_bytes();
                let end = (at + lie.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&lie[..end - at]);
            }
            _ => bytes[at] ^= 1 << below(random, 8),
        }
        if bytes.is_empty() {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// Reads changed files. The rows do not depend on sizes, and a file with a bad line fails.
#[track_caller]
fn check<F: LineFormat>(file: &str, new: impl Fn() -> F, files: usize) {
    let mut random = Pcg64Mcg::new(7);
    for _ in 0..files {
        let bytes = mutated(file.as_bytes(), &mut random);
        // Such bytes look like another encoding or a compression.
        if bytes.contains(&0) || bytes.starts_with(b"\xff") {
            continue;
        }
        let read = |sizes, on_error| {
            let read = read_with(new(), &[&bytes], sizes, on_error);
            read.map(|(batches, counters)| {
                (
                    rows_of(&batches),
                    ["skipped", "files_skipped"].map(|name| counter(&counters, name)),
                )
            })
        };
        let small = Sizes { batch: 3, block: 64, step: 7, line_bytes_max: 300 };
        let whole = read(Sizes { line_bytes_max: 300, ..ROOMY }, OnError::Skip).unwrap();
        let shown = String::from_utf8_lossy(&bytes);
        assert_eq!(read(small, OnError::Skip).unwrap(), whole, "{shown:?}");
        let failing = read(small, OnError::Fail);
        assert_eq!(failing.is_err(), whole.1 != [0, 0], "{shown:?}");
        if let Err(error) = failing {
            assert!(error.to_string().starts_with("a.txt"), "{error}");
        }
    }
}

#[test]
fn changed_lines_of_json_are_rows_where_serde_takes_them() {
    let line = r#"{"a":-1.5e3,"b":[1,[],{"c":"x\"\\é"}],"d":{"e":null,"f":true}}"#;
    let mut random = Pcg64Mcg::new(7);
    for _ in 0..3_000 {
        let bytes = mutated(line.as_bytes(), &mut random);
        if bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0)) {
            continue;
        }
        let rows = JsonRows::new(schema_of(json!({"none": "text"}))).unwrap();
        let read = read_with(rows, &[&bytes], ROOMY, OnError::Fail);
        let expected = serde_json::from_slice::<HashMap<String, IgnoredAny>>(&bytes).is_ok();
        let is_blank = bytes.iter().all(u8::is_ascii_whitespace);
        let is_text = std::str::from_utf8(&bytes).is_ok();
        let found = read.is_ok();
        let shown = String::from_utf8_lossy(&bytes);
        assert_eq!(found, is_blank || expected && is_text, "{shown}");
    }
}

#[test]
fn changed_lines_are_rows_or_bad_rows() {
    let json = "{\"a\":1,\"b\":[\"x\"],\"c\":{\"d\":\"2026-03-01\"}}\n".repeat(3);
    let columns = || schema_of(json!({"a": "u8", "b": ["text"], "c": {"d": "date"}}));
    check(&json, || JsonRows::new(columns()).unwrap(), 1_000);
    let csv = "a,b,c\n1,\"x, \"\"y\"\"\nz\",2026-03-01\r\n2,,\n3,x,2026-03-01T12:00:00Z\n";
    let columns = || schema_of(json!({"c": "timestamp", "a": "i8", "b": "text"}));
    let typed = || TypedRows::new(columns(), vec![String::new()]).unwrap();
    check(csv, || CsvLines::new(typed(), Dialect::default(), 300), 1_000);
    let access =
        "1.2.3.4 - - [01/Mar/2026:12:00:00 +0000] \"GET /a\\\" HTTP/1.1\" 200 - \"-\" \"x\"\n";
    let syslog =
        "<34>1 2026-03-01T12:00:00Z h a - - [x y=\"z\"] m\n<1>2026-03-01T12:00:00Z h a[1]: m\n";
    for (pattern, lines) in [
        ("combined", access.repeat(3)),
        ("syslog", syslog.repeat(2)),
        (
            "({a:i8}) \"{b}\" {t:%Y-%m-%d %H:%M}|{_}|{c}",
            "(1) \"x\\\"\" 2026-03-01 12:00||z\n".repeat(3),
        ),
    ] {
        let new = || {
            let Pattern::Fixed(scanner) = Pattern::new(pattern).unwrap() else { panic!("pairs") };
            let schema = Schema::new(scanner.fields()).into();
            LogRows::new(scanner, schema).unwrap()
        };
        check(&lines, new, 500);
        check(&lines, || Joined::new(new(), Beginning::new("^[(1<]").unwrap(), 100), 500);
    }
    let pairs = "a=1 b=\"x \\\"\\u00e9\" c\nb=y d=2 a=-3\n".repeat(2);
    let columns: fn() -> Value = || json!({"a": "i8", "b": "text", "c": "boolean"});
    let new = || {
        let schema = schema_of(columns());
        LogRows::new(Scanner::of_pairs(schema.fields()), schema).unwrap()
    };
    check(&pairs, new, 1_000);
}

#[test]
fn changed_tables_are_rows_or_errors_within_their_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let mut random = Pcg64Mcg::new(7);
    let mut errors = 0;
    for (format, write) in [WRITERS[1], WRITERS[4], WRITERS[5]] {
        write(&path, &table(40));
        let file = fs::read(&path).unwrap();
        for _ in 0..700 {
            fs::write(&path, mutated(&file, &mut random)).unwrap();
            if let Err(error) = read_within(Read::new([&path], format), 16 << 20) {
                assert!(error.contains(&path.display().to_string()), "{error}");
                errors += 1;
            }
        }
    }
    assert!(errors > 500, "{errors}");
}
