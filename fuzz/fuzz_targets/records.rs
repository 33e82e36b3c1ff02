//! Reads arbitrary bytes as tables of lines: CSV, JSON and logs. The rows do not depend on the size
//! of batches, and a row of JSON is one for `serde_json` too.
//!
//! `cargo xtask fuzz records`
#![no_main]

mod support;

use std::collections::HashMap;

use arrow_array::RecordBatch;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use support::{Scratch, drain};
use trommel::arrow::schema::{DataType, Field, Schema};
use trommel::{OnError, Read, ReadFormat};

/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: usize = 200;
const PATTERNS: [&str; 5] =
    ["combined", "common", "syslog", "logfmt", "({a:i8}) \"{b}\" {c:%Y-%m-%d %H:%M}|{_}|{d}"];

#[derive(Debug, Arbitrary)]
enum Format {
    Json,
    Csv { quote: bool, comment: bool },
    Log { pattern: u8, start: bool },
}

#[derive(Debug, Arbitrary)]
struct Input {
    format: Format,
    batch: u8,
    file: Vec<u8>,
}

fuzz_target!(|input: Input| {
    let file: &[u8] = &input.file;
    let scratch = Scratch::new("records", &[file], "txt");
    let read = |format| {
        Read::new(scratch.paths(), format).line_bytes_max(LINE_BYTES_MAX).on_error(OnError::Skip)
    };
    let read = match input.format {
        Format::Json => read(ReadFormat::Jsonl).schema(&columns()),
        Format::Csv { quote, comment } => {
            let read = read(ReadFormat::Csv).schema(&columns()).header(false);
            let read = if quote { read.quote('\'') } else { read };
            if comment { read.comment('#') } else { read }
        }
        Format::Log { pattern, start } => {
            let pattern = PATTERNS[usize::from(pattern) % PATTERNS.len()];
            let read = read(ReadFormat::Log).pattern(pattern);
            let read = if pattern == "logfmt" { read.schema(&columns()) } else { read };
            if start { read.start("^[(<0-9]") } else { read }
        }
    };
    let whole = drain(read.clone()).expect("bad lines are left out");
    let cut = drain(read.batch(usize::from(input.batch).max(1))).expect("bad lines are left out");
    assert_eq!(rows(&whole), rows(&cut));
    let is_plain = std::str::from_utf8(file).is_ok_and(|text| text.is_ascii())
        && file.iter().all(|byte| *byte >= b' ')
        && file.len() <= LINE_BYTES_MAX;
    if matches!(input.format, Format::Json) && is_plain && !whole.is_empty() {
        let members: Result<HashMap<String, &serde_json::value::RawValue>, _> =
            serde_json::from_slice(file);
        assert!(members.is_ok(), "{:?}", String::from_utf8_lossy(file));
    }
});

fn columns() -> Schema {
    let column = |name: &str, kind| Field::new(name, kind, true);
    Schema::new(vec![column("c1", DataType::Int8), column("c2", DataType::Utf8)])
}

/// Each row as a batch of its own.
fn rows(batches: &[RecordBatch]) -> Vec<RecordBatch> {
    let slices = |batch: &RecordBatch| {
        (0..batch.num_rows()).map(|row| batch.slice(row, 1)).collect::<Vec<_>>()
    };
    batches.iter().flat_map(slices).collect()
}
