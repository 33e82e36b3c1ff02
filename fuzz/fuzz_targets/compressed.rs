//! Decompresses arbitrary bytes as gzip and zstd, whole and truncated, and bytes compressed
//! before.
//!
//! `cargo xtask fuzz compressed`
#![no_main]

mod support;

use std::io::Write as _;

use arrow_array::cast::AsArray;
use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use support::{Scratch, drain};
use trommel::{OnError, Read, ReadFormat};

#[derive(Debug, Arbitrary)]
enum Input {
    /// Arbitrary bytes.
    Any { zstd: bool, bytes: Vec<u8> },
    /// Consecutive members or frames, followed by zeros.
    Whole { zstd: bool, parts: Vec<Vec<u8>>, zeros: u8 },
    /// Truncated compressed file.
    Cut { zstd: bool, part: Vec<u8>, len: usize },
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn compress(zstd: bool, bytes: &[u8]) -> Vec<u8> {
    if zstd { zstd::encode_all(bytes, 1).expect("memory") } else { gzip(bytes) }
}

fn read(zstd: bool, bytes: &[u8], on_error: OnError) -> Option<Vec<u8>> {
    let scratch = Scratch::new("compressed", &[bytes], if zstd { "zst" } else { "gz" });
    let batches = drain(Read::new(scratch.paths(), ReadFormat::Lines).on_error(on_error))?;
    let lines = batches.iter().flat_map(|rows| rows.column(0).as_string::<i32>().iter().flatten());
    Some(lines.flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect())
}

/// Lines of text without carriage returns, which the reader would remove.
fn as_text(bytes: &[u8]) -> Vec<u8> {
    let letter = |&byte: &u8| if byte.is_multiple_of(7) { b'\n' } else { b'a' + byte % 26 };
    let mut text: Vec<u8> = bytes.iter().map(letter).collect();
    text.push(b'\n');
    text
}

fuzz_target!(|input: Input| match input {
    Input::Any { zstd, bytes } => {
        drop(read(zstd, &bytes, OnError::Fail));
        read(zstd, &bytes, OnError::Skip).expect("damaged files are left out");
    }
    Input::Whole { zstd, parts, zeros } => {
        let texts: Vec<Vec<u8>> = parts.iter().take(8).map(|part| as_text(part)).collect();
        // An empty file is not compressed.
        if texts.is_empty() {
            return;
        }
        let mut bytes: Vec<u8> = texts.iter().flat_map(|text| compress(zstd, text)).collect();
        if !zstd {
            bytes.resize(bytes.len() + usize::from(zeros), 0);
        }
        assert_eq!(read(zstd, &bytes, OnError::Fail), Some(texts.concat()));
    }
    Input::Cut { zstd, part, len } => {
        let bytes = compress(zstd, &as_text(&part));
        let cut = &bytes[..len % bytes.len()];
        if !cut.is_empty() {
            assert_eq!(read(zstd, cut, OnError::Fail), None, "a cut file is an error");
        }
    }
});
