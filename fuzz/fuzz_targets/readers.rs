//! Reads files of arbitrary bytes in every format, and compares lines, integers and sets with
//! naive readers.
//!
//! `cargo xtask fuzz readers`
#![no_main]

mod support;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt32Type, UInt64Type};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use support::{Scratch, drain};
use trommel::arrow::schema::{DataType, Field, Schema};
use trommel::{OnError, Read, ReadFormat};

/// Maximum length of a line, in bytes.
const LINE_BYTES_MAX: usize = 64;

#[derive(Debug, Arbitrary)]
struct Input {
    format: u8,
    batch: u8,
    fails: bool,
    files: Vec<Vec<u8>>,
}

fuzz_target!(|input: Input| {
    let formats = [
        ReadFormat::Lines,
        ReadFormat::Sets,
        ReadFormat::U32le,
        ReadFormat::U64le,
        ReadFormat::Paragraphs,
        ReadFormat::Files,
        ReadFormat::F32le,
        ReadFormat::Npy,
        ReadFormat::Csv,
        ReadFormat::Jsonl,
    ];
    let format = formats[usize::from(input.format) % formats.len()];
    let files: Vec<&[u8]> = input.files.iter().take(4).map(Vec::as_slice).collect();
    if files.is_empty() || files.iter().any(|file| looks_special(file)) {
        return;
    }
    let scratch = Scratch::new("readers", &files, "txt");
    let on_error = if input.fails { OnError::Fail } else { OnError::Skip };
    let read = Read::new(scratch.paths(), format)
        .batch(usize::from(input.batch).max(1))
        .line_bytes_max(LINE_BYTES_MAX)
        .on_error(on_error);
    let read = match format {
        ReadFormat::F32le | ReadFormat::Npy => read.dims(2),
        ReadFormat::Csv => read.columns(["a"]).vector(["x*"]).dims(2),
        ReadFormat::Jsonl => read.schema(&objects()),
        _ => read,
    };
    let Some(batches) = drain(read) else {
        assert!(input.fails, "bad lines are left out");
        return;
    };
    let columns = batches.iter();
    match format {
        ReadFormat::Lines => {
            let read = columns.flat_map(|rows| rows.column(0).as_string::<i32>().iter().flatten());
            assert!(read.eq(files.iter().flat_map(|file| lines(file)).filter_map(text)));
        }
        ReadFormat::U32le => {
            let read =
                columns.flat_map(|rows| rows.column(0).as_primitive::<UInt32Type>().values());
            let words = files.iter().flat_map(|file| file.chunks_exact(4));
            assert!(
                read.copied().eq(words.map(|word| u32::from_le_bytes(word.try_into().unwrap())))
            );
        }
        ReadFormat::F32le => {
            let rows =
                columns.flat_map(|rows| rows.column(1).as_fixed_size_list().iter().flatten());
            let read = rows.flat_map(|row| row.as_primitive::<Float32Type>().values().to_vec());
            let rows = files.iter().flat_map(|file| file.chunks_exact(8));
            let words = rows.flat_map(|row| row.chunks_exact(4));
            // Compared as bits, since a NaN differs from itself.
            let words = words.map(|word| u32::from_le_bytes(word.try_into().unwrap()));
            assert!(read.map(f32::to_bits).eq(words));
        }
        ReadFormat::U64le => {
            let read =
                columns.flat_map(|rows| rows.column(0).as_primitive::<UInt64Type>().values());
            let words = files.iter().flat_map(|file| file.chunks_exact(8));
            assert!(
                read.copied().eq(words.map(|word| u64::from_le_bytes(word.try_into().unwrap())))
            );
        }
        ReadFormat::Sets => {
            let mut read = Vec::new();
            for rows in columns {
                let ids = rows.column(0).as_primitive::<UInt32Type>().values();
                let sets = rows.column(1).as_list::<i32>();
                for (&id, set) in ids.iter().zip(sets.iter().flatten()) {
                    read.push((id, set.as_primitive::<UInt32Type>().values().to_vec()));
                }
            }
            let all = (0..).zip(files.iter().flat_map(|file| lines(file)));
            let sets = all.filter_map(|(id, line)| Some((id, set(line)?)));
            assert_eq!(read, sets.collect::<Vec<_>>());
        }
        _ => {}
    }
});

/// Columns of a table of JSON, of each kind.
fn objects() -> Schema {
    let column = |name: &str, kind| Field::new(name, kind, true);
    let inner = DataType::Struct(vec![column("a", DataType::Date32)].into());
    Schema::new(vec![
        column("a", DataType::UInt8),
        column("b", DataType::new_list(DataType::Float32, true)),
        column("c", DataType::Utf8),
        column("d", inner),
    ])
}

/// Lines of a file without their line ends.
fn lines(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    file.split_inclusive(|&byte| byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    })
}

fn text(line: &[u8]) -> Option<&str> {
    std::str::from_utf8(line).ok().filter(|line| line.len() <= LINE_BYTES_MAX)
}

/// Set of a line, if all of its tokens are numbers.
fn set(line: &[u8]) -> Option<Vec<u32>> {
    if line.len() > LINE_BYTES_MAX {
        return None;
    }
    let tokens = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|token| !token.is_empty());
    let number = |token: &[u8]| {
        let digits = token.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(token).ok().filter(|_| digits)?.parse::<u32>().ok()
    };
    let mut set: Vec<u32> = tokens.map(number).collect::<Option<_>>()?;
    set.sort_unstable();
    set.dedup();
    Some(set)
}

/// True if the content of a file shows that it is not plain text, independent of its name.
fn looks_special(bytes: &[u8]) -> bool {
    let marks: [&[u8]; 6] =
        [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ", b"\xff\xfe", b"\xfe\xff"];
    // Skippable frame of zstd.
    let is_skippable = bytes.len() >= 4 && bytes[1..4] == [0x2a, 0x4d, 0x18];
    is_skippable || marks.iter().any(|mark| bytes.starts_with(mark))
}
