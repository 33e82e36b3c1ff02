use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use proptest::prelude::*;
use trommel_engine::operator::{Body, Counters, OperatorError, Output, Source, SourceFlow};

mod csv;
mod encodings;
mod faults;
mod following;
mod jsonl;
mod logs;
mod tables;
mod typed;
mod vectors;
mod walking;

use trommel_kernels::Isa;

use super::files::input::Inputs;
use super::fixed::integers::{Integers, Word};
use super::fixed::source::{RowFormat, RowSource};
use super::fixed::vectors::{NpyVectors, RawVectors};
use super::text::lines::{LineBuffer, LineFormat};
use super::text::plain::TextLines;
use super::text::sets::SetLines;
use super::text::source::LineSource;
use super::text::texts::{Texts, Unit};
use super::*;
use crate::testing::{bind, bind_source, drain_source};

type Rows = Vec<(u32, Vec<u32>)>;

fn lines_of(batches: &[RecordBatch]) -> Vec<String> {
    let texts = batches.iter().flat_map(|b| b.column(0).as_string::<i32>().iter().flatten());
    texts.map(str::to_owned).collect()
}

fn sets_of(batches: &[RecordBatch]) -> Rows {
    let mut rows = Vec::new();
    for batch in batches {
        let ids = batch.column(0).as_primitive::<UInt32Type>().values();
        let sets = batch.column(1).as_list::<i32>();
        for (id, set) in ids.iter().zip(sets.iter().flatten()) {
            rows.push((*id, set.as_primitive::<UInt32Type>().values().to_vec()));
        }
    }
    rows
}

/// Reader of at most `step` bytes per call; every other call returns no data yet.
struct Trickle {
    bytes: io::Cursor<Vec<u8>>,
    step: usize,
    is_empty: bool,
}

impl Trickle {
    fn new(bytes: &[u8], step: usize) -> Self {
        Self { bytes: io::Cursor::new(bytes.to_vec()), step, is_empty: false }
    }
}

impl io::Read for Trickle {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        self.is_empty = !self.is_empty;
        if self.is_empty {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let len = target.len().min(self.step);
        self.bytes.read(&mut target[..len])
    }
}

/// Sizes of reads and batches that put a boundary at every place.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    batch: usize,
    block: usize,
    step: usize,
    line_bytes_max: usize,
}

const ROOMY: Sizes = Sizes { batch: 100, block: 1 << 12, step: 1 << 12, line_bytes_max: 1 << 16 };

fn inputs_of(files: &[&[u8]], step: usize, on_error: OnError) -> Inputs {
    let names = ["a.txt", "b.txt", "c.txt"];
    Inputs::of_readers(
        names.into_iter().zip(files).map(|(name, bytes)| {
            let reader = Trickle::new(bytes, step);
            (name, Box::new(reader) as Box<dyn io::Read + Send>)
        }),
        on_error,
    )
}

fn read_with<F: LineFormat>(
    format: F,
    files: &[&[u8]],
    sizes: Sizes,
    on_error: OnError,
) -> Result<(Vec<RecordBatch>, Counters), OperatorError> {
    let inputs = inputs_of(files, sizes.step, on_error);
    let Sizes { batch, block, line_bytes_max, .. } = sizes;
    let lines = LineBuffer::new(Isa::selected().unwrap(), block, line_bytes_max);
    let mut source = LineSource::new(inputs, format, batch, lines);
    let batches = drain_source(&mut source)?;
    assert!(batches.iter().all(|b| b.num_rows() <= batch));
    Ok((batches, source.counters()))
}

fn read_lines(
    files: &[&[u8]],
    sizes: Sizes,
    on_error: OnError,
) -> Result<(Vec<String>, Counters), OperatorError> {
    let (batches, counters) = read_with(TextLines::new(), files, sizes, on_error)?;
    Ok((lines_of(&batches), counters))
}

fn read_sets(
    files: &[&[u8]],
    sizes: Sizes,
    on_error: OnError,
) -> Result<(Rows, Counters), OperatorError> {
    let (batches, counters) = read_with(SetLines::new(), files, sizes, on_error)?;
    Ok((sets_of(&batches), counters))
}

fn words_of<T: Word>(
    files: &[&[u8]],
    sizes: Sizes,
    on_error: OnError,
) -> Result<(Vec<T::Native>, Counters), OperatorError> {
    let inputs = inputs_of(files, sizes.step, on_error);
    let mut source = RowSource::new(inputs, Integers::<T>::new(), sizes.batch);
    let batches = drain_source(&mut source)?;
    let items = batches.iter().flat_map(|b| b.column(0).as_primitive::<T>().values().to_vec());
    Ok((items.collect(), source.counters()))
}

/// A file whose lines end with newlines. Carriage returns become newlines if the first line, as far
/// as a line may reach, has carriage returns and no newline.
fn with_newlines(file: &[u8], line_bytes_max: usize) -> Vec<u8> {
    let head = &file[..file.len().min(line_bytes_max + 1)];
    let within = &head[..head.len().saturating_sub(1)];
    if head.contains(&b'\n') || !within.contains(&b'\r') {
        return file.to_vec();
    }
    let text = file.iter().map(|&byte| char::from(byte)).collect::<String>();
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().map(|character| u8::try_from(u32::from(character)).unwrap()).collect()
}

/// Lines as byte strings, by definition: the text between newlines, without a carriage return at
/// the end.
fn split_lines(file: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = file.split(|&byte| byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines.iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
}

/// Set of a line, or `None` if the line is invalid.
fn set_oracle(line: &[u8]) -> Option<Vec<u32>> {
    let text = std::str::from_utf8(line).ok()?;
    let tokens = text.split([' ', '\t']).filter(|token| !token.is_empty());
    let set: Option<BTreeSet<u32>> = tokens
        .map(|token| {
            let digits = token.bytes().all(|byte| byte.is_ascii_digit());
            if digits { token.parse().ok() } else { None }
        })
        .collect();
    set.map(|set| set.into_iter().collect())
}

fn counter(counters: &Counters, name: &str) -> usize {
    let (_, count) = counters.iter().find(|counter| counter.0 == name).unwrap();
    usize::try_from(*count).unwrap()
}

fn skipped(counters: &Counters) -> usize {
    counter(counters, "skipped")
}

/// Answer of a source without data.
const WAIT: SourceFlow = SourceFlow::AwaitReadable(Duration::MAX);

fn any_sizes() -> impl Strategy<Value = Sizes> {
    (1_usize..9, 1_usize..12, 1_usize..9, 1_usize..12).prop_map(
        |(batch, block, step, line_bytes_max)| Sizes { batch, block, step, line_bytes_max },
    )
}

fn any_bytes(alphabet: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(alphabet), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn lines_match_the_definition_at_all_boundaries(
        sizes in any_sizes(),
        // Newlines, carriage returns, whole and broken characters of two and three bytes.
        first in any_bytes(b"ab\n\n\r\xc3\xa9\xe4\xb8\xad"),
        second in any_bytes(b"abc\n\r\xc3\xa9"),
    ) {
        let files = [&first, &second].map(|file| with_newlines(file, sizes.line_bytes_max));
        let lines: Vec<&[u8]> = files.iter().flat_map(|file| split_lines(file)).collect();
        let good: Vec<String> = lines
            .iter()
            .filter(|line| line.len() <= sizes.line_bytes_max)
            .filter_map(|line| String::from_utf8(line.to_vec()).ok())
            .collect();
        let (read, counters) = read_lines(&[&first, &second], sizes, OnError::Skip).unwrap();
        prop_assert_eq!(&read, &good);
        prop_assert_eq!(skipped(&counters), lines.len() - good.len());
        let strict = read_lines(&[&first, &second], sizes, OnError::Fail);
        prop_assert_eq!(strict.is_ok(), lines.len() == good.len());
    }

    #[test]
    fn errors_name_the_first_bad_line(sizes in any_sizes(), file in any_bytes(b"ab\n\n\r\xc3\xa9")) {
        let is_bad = |line: &&[u8]| {
            line.len() > sizes.line_bytes_max || std::str::from_utf8(line).is_err()
        };
        let lines = with_newlines(&file, sizes.line_bytes_max);
        let bad = split_lines(&lines).iter().position(is_bad);
        match (bad, read_lines(&[&file], sizes, OnError::Fail)) {
            (None, Ok(_)) => {}
            (Some(line), Err(error)) => {
                let place = format!("a.txt:{}: ", line + 1);
                prop_assert!(error.to_string().starts_with(&place), "{} {}", place, error);
            }
            (bad, read) => prop_assert!(false, "{:?} {:?}", bad, read),
        }
    }

    #[test]
    fn sets_match_the_definition_at_all_boundaries(
        mut sizes in any_sizes(),
        first in any_bytes(b"0123  \t\n\n\r"),
        second in any_bytes(b"19  \n\nx-"),
    ) {
        sizes.line_bytes_max += 5;
        let files = [&first, &second].map(|file| with_newlines(file, sizes.line_bytes_max));
        let lines: Vec<&[u8]> = files.iter().flat_map(|file| split_lines(file)).collect();
        let expected: Rows = (0..)
            .zip(&lines)
            .filter(|(_, line)| line.len() <= sizes.line_bytes_max)
            .filter_map(|(id, line)| Some((id, set_oracle(line)?)))
            .collect();
        let (read, counters) = read_sets(&[&first, &second], sizes, OnError::Skip).unwrap();
        prop_assert_eq!(&read, &expected);
        prop_assert_eq!(skipped(&counters), lines.len() - expected.len());
    }

    #[test]
    fn words_match_the_definition_at_all_boundaries(
        sizes in any_sizes(),
        first in prop::collection::vec(any::<u8>(), 0..40),
        second in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let expected: Vec<u32> = [&first, &second]
            .into_iter()
            .flat_map(|file| file.chunks_exact(4))
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        let (read, counters) = words_of::<UInt32Type>(&[&first, &second], sizes, OnError::Skip).unwrap();
        prop_assert_eq!(&read, &expected);
        let partial = [&first, &second].iter().filter(|file| file.len() % 4 > 0).count();
        prop_assert_eq!(skipped(&counters), partial);
        let expected: Vec<u64> = first
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        let (read, _) = words_of::<UInt64Type>(&[&first], sizes, OnError::Skip).unwrap();
        prop_assert_eq!(&read, &expected);
    }
}

#[track_caller]
fn check_error<T: std::fmt::Debug>(result: Result<T, OperatorError>, expected: &str) {
    assert_eq!(result.unwrap_err().to_string(), expected);
}

#[test]
fn tokens_outside_the_range_are_named() {
    for token in ["-1", "4294967296", "abc", "1,2", "+5", "99999999999999999999999", "1x"] {
        check_error(
            read_sets(&[format!("1 2\n3 {token} 4\n").as_bytes()], ROOMY, OnError::Fail),
            &format!(
                "a.txt:2: invalid item `{token}` of a set; \
                 expected whole numbers from 0 to 4294967295, separated by blanks"
            ),
        );
    }
    let (sets, _) = read_sets(&[b"4294967295 0 007 0"], ROOMY, OnError::Fail).unwrap();
    assert_eq!(sets, [(0, vec![0, 7, u32::MAX])]);
    let long = read_sets(&["é".repeat(1000).as_bytes()], ROOMY, OnError::Fail).unwrap_err();
    assert!(long.to_string().len() < 200, "{long}");
}

#[test]
fn skipped_sets_keep_their_numbers() {
    let (sets, counters) = read_sets(&[b"1\nx\n3", b"-\n5"], ROOMY, OnError::Skip).unwrap();
    assert_eq!(sets, [(0, vec![1]), (2, vec![3]), (4, vec![5])]);
    assert_eq!(counters[..2], [("files", 2), ("skipped", 2)]);
}

#[test]
fn set_numbers_end_at_32_bits() {
    let last = u64::from(u32::MAX);
    let read = |file: &[u8]| read_with(SetLines::starting_at(last), &[file], ROOMY, OnError::Skip);
    assert_eq!(sets_of(&read(b"7\n").unwrap().0), [(u32::MAX, vec![7])]);
    check_error(read(b"7\n8\n"), "a.txt:2: more than 2^32 rows; their ids have 32 bits");
}

#[test]
fn text_that_is_not_utf8_is_located() {
    check_error(
        read_lines(&[b"good\nf\xc3\xa9\xff\n"], ROOMY, OnError::Fail),
        "a.txt:2: byte 3 of the line is not valid UTF-8",
    );
    // Two halves of a character on two lines are two invalid lines, not one valid character.
    let (lines, counters) = read_lines(&[b"\xc3\n\xa9\nok\n"], ROOMY, OnError::Skip).unwrap();
    assert_eq!((lines, skipped(&counters)), (vec!["ok".to_owned()], 2));
}

#[test]
fn bytes_left_over_are_located() {
    check_error(
        words_of::<UInt32Type>(&[b"12345678", b"1234567"], ROOMY, OnError::Fail),
        "b.txt: incomplete item at byte 4: 3 of 4 bytes",
    );
}

#[test]
fn batches_of_long_lines_are_bounded_in_bytes() {
    let line = [b"x".repeat(99_999), b"\n".to_vec()].concat();
    let file = line.repeat(50);
    let sizes = Sizes { batch: 8192, block: 1 << 18, step: usize::MAX, line_bytes_max: 1 << 20 };
    let (batches, _) = read_with(TextLines::new(), &[&file], sizes, OnError::Fail).unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 50);
    assert!(batches.iter().all(|b| b.column(0).get_array_memory_size() < 3 << 20));
    assert!(batches.len() >= 4);
}

/// Reader of a line of 1 GB that needs no file of 1 GB.
struct EndlessLine {
    left: u64,
    tail: &'static [u8],
}

impl io::Read for EndlessLine {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return self.tail.read(target);
        }
        let len = target.len().min(usize::try_from(self.left).unwrap());
        target[..len].fill(b'x');
        self.left -= len as u64;
        Ok(len)
    }
}

#[test]
fn a_line_of_a_gigabyte_costs_no_memory() {
    let source = |on_error| {
        let reader = EndlessLine { left: 1 << 30, tail: b"\nshort\n" };
        let inputs = Inputs::of_readers([("big.txt", Box::new(reader) as Box<_>)], on_error);
        let lines = LineBuffer::of_file(Isa::selected().unwrap(), 1 << 20);
        LineSource::new(inputs, TextLines::new(), 100, lines)
    };
    check_error(
        drain_source(&mut source(OnError::Fail)),
        "big.txt:1: the line is longer than 1048576 bytes (`line_bytes_max`)",
    );
    let mut skipping = source(OnError::Skip);
    assert_eq!(lines_of(&drain_source(&mut skipping).unwrap()), ["short"]);
    assert_eq!(skipping.counters()[..2], [("files", 1), ("skipped", 1)]);
    assert!(skipping.buffer_bytes() <= (1 << 20) + 2);
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn archives_of_several_parts_are_read_to_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let plain: Vec<u8> = (0..50_000).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
    let (head, tail) = plain.split_at(123_457);
    let expected = lines_of_text(&plain);
    let zstd = |bytes| zstd::encode_all(bytes, 1).unwrap();
    let archives =
        [("a.gz", [gzip(head), gzip(tail)].concat()), ("a.zst", [zstd(head), zstd(tail)].concat())];
    for (name, archive) in archives {
        let path = folder.path().join(name);
        fs::write(&path, &archive).unwrap();
        let mut source = bind_source(Read::new([text(&path)], ReadFormat::Lines));
        assert_eq!(lines_of(&drain_source(&mut *source).unwrap()), expected, "{name}");
        let progress = source.progress();
        assert_eq!(
            (progress.bytes, progress.bytes_total),
            (archive.len() as u64, Some(archive.len() as u64))
        );
    }
}

fn lines_of_text(plain: &[u8]) -> Vec<String> {
    std::str::from_utf8(plain).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn every_format_reads_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words");
    let words: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&path, &words).unwrap();
    let read = |format| drain_source(&mut *bind_source(Read::new([text(&path)], format))).unwrap();
    let items: Vec<u32> = read(ReadFormat::U32le)
        .iter()
        .flat_map(|b| b.column(0).as_primitive::<UInt32Type>().values().to_vec())
        .collect();
    assert_eq!(items, (0..20_000).collect::<Vec<_>>());
    let items: Vec<u64> = read(ReadFormat::U64le)
        .iter()
        .flat_map(|b| b.column(0).as_primitive::<UInt64Type>().values().to_vec())
        .collect();
    assert_eq!((items.len(), items[1]), (10_000, 3 << 32 | 2));
    fs::write(&path, "3 1 3\n\n2").unwrap();
    assert_eq!(sets_of(&read(ReadFormat::Sets)), [(0, vec![1, 3]), (1, vec![]), (2, vec![2])]);
}

#[test]
fn patterns_are_sorted_and_read_each_file_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("sub/deep")).unwrap();
    for name in ["b.txt", "a.txt", "sub/c.txt", "sub/deep/d.txt", ".hidden.txt", "e[1].txt", "x.md"]
    {
        fs::write(folder.path().join(name), format!("{name}\n")).unwrap();
    }
    let read = |patterns: &[&str]| {
        let paths = patterns.iter().map(|pattern| text(&folder.path().join(pattern)));
        lines_of(&drain_source(&mut *bind_source(Read::new(paths, ReadFormat::Lines))).unwrap())
    };
    assert_eq!(read(&["b.txt", "*.txt", "a.txt"]), ["b.txt", "a.txt", "e[1].txt"]);
    assert_eq!(read(&["**/*.txt"]), ["a.txt", "b.txt", "e[1].txt", "sub/c.txt", "sub/deep/d.txt"]);
    assert_eq!(read(&["e[1].txt", "?.md", "*"]), ["e[1].txt", "x.md", "a.txt", "b.txt"]);
}

#[test]
fn paths_are_checked_when_it_is_bound() {
    let folder = tempfile::tempdir().unwrap();
    let here = text(folder.path());
    let message = |path: &str| {
        let error = bind(Read::new([path], ReadFormat::Lines), &[]).unwrap_err();
        assert_eq!(error.parameter, Some("paths"));
        error.to_string()
    };
    let missing = format!("{here}/missing");
    assert!(message(&missing).starts_with(&format!("cannot open {missing}: ")));
    let pattern = format!("{here}/*.log");
    assert_eq!(message(&pattern), format!("no file matches the pattern `{pattern}`"));
    assert_eq!(message(&here), format!("{here} is a directory; `{here}/*` names the files in it"));
    let brackets = "in a pattern, `[ab]` is one of the characters in brackets, and `[[]` a bracket";
    let said = message("a[");
    assert!(said.starts_with("there is no file `a[`, and it is no pattern either: "), "{said}");
    assert!(said.ends_with(brackets), "{said}");
    let said = "no file matches the pattern `a[1].txt`, and none has this name; ";
    assert_eq!(message("a[1].txt"), format!("{said}{brackets}"));
    assert!(!message("a{b").contains('['));
    let error = bind(Read::new([""; 0], ReadFormat::Lines), &[]).unwrap_err();
    assert_eq!(error.to_string(), "an empty list is not allowed here; name at least one file");
}

#[test]
fn a_file_that_vanishes_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone");
    fs::write(&path, "").unwrap();
    let mut source = bind_source(Read::new([text(&path)], ReadFormat::Lines));
    fs::remove_file(&path).unwrap();
    let error = drain_source(&mut *source).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot open {}: ", path.display())), "{error}");
}

#[test]
fn a_pipe_is_idle_between_writes_and_hands_over_what_it_has() {
    for (format, written, rows) in
        [(ReadFormat::Lines, &b"one\ntwo\nthr"[..], 2), (ReadFormat::U32le, b"123456789", 2)]
    {
        let (reader, mut writer) = io::pipe().unwrap();
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        let mut source = bind_source(Read::new([path], format));
        let mut out = Output::new();
        assert_eq!(source.next(&mut out).unwrap(), WAIT);
        assert!(source.descriptor().is_some());
        writer.write_all(written).unwrap();
        assert_eq!(source.next(&mut out).unwrap(), SourceFlow::HaveOutput);
        assert_eq!(out.drain_sent().map(|(_, sent)| sent.items()).sum::<usize>(), rows);
        assert_eq!(source.next(&mut out).unwrap(), WAIT);
        assert!(source.descriptor().is_some());
        writer.write_all(b"ee\nfour").unwrap();
        drop((writer, reader));
        assert_eq!(drain_source(&mut *source).unwrap()[0].num_rows(), 2);
        assert_eq!(source.progress().bytes_total, None);
    }
}

#[test]
fn the_configuration_is_strict() {
    let read: Read = serde_json::from_str(r#"{"paths": ["a"], "format": "u32le"}"#).unwrap();
    assert_eq!((read.format, read.batch, read.on_error), (ReadFormat::U32le, 16_384, None));
    assert!(serde_json::from_str::<Read>(r#"{"paths": ["a"], "formt": "lines"}"#).is_err());
    for spec in [
        Read::new(["-"], ReadFormat::Lines).batch(0),
        Read::new(["-"], ReadFormat::Lines).line_bytes_max(0),
    ] {
        assert!(bind(spec, &[]).unwrap_err().parameter.is_some());
    }
}

/// Paragraphs by definition: path, number of the first line, text.
fn paragraphs_of(files: &[&[u8]]) -> Vec<(String, u64, String)> {
    let mut rows = Vec::new();
    for (name, file) in ["a.txt", "b.txt", "c.txt"].into_iter().zip(files) {
        let lines = split_lines(file);
        let mut at = 0;
        for group in lines.split(|line| line.iter().all(u8::is_ascii_whitespace)) {
            if !group.is_empty() {
                let text = String::from_utf8(group.join(&b'\n')).unwrap();
                rows.push((name.to_owned(), at as u64 + 1, text));
            }
            at += group.len() + 1;
        }
    }
    rows
}

fn texts_of(batches: &[RecordBatch], column: &str) -> Vec<String> {
    let texts = batches.iter().flat_map(|b| b[column].as_string::<i32>().iter().flatten());
    texts.map(str::to_owned).collect()
}

proptest! {
    #[test]
    fn paragraphs_and_files_keep_their_lines(
        texts in prop::collection::vec("([ab\u{e9}]{0,3}|[ \t]{1,2})(\r?\n([ab]{0,3}|[ \t])){0,12}\n?", 0..3),
        batch in 1..6_usize,
        block in 1..40_usize,
        step in 1..20_usize,
    ) {
        let files: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let sizes = Sizes { batch, block, step, ..ROOMY };
        let read = |unit| read_with(Texts::new(unit, 1 << 16), &files, sizes, OnError::Fail);
        let (batches, _) = read(Unit::Paragraph).unwrap();
        let lines = batches.iter().flat_map(|b| b["line_number"].as_primitive::<UInt64Type>().values());
        let found: Vec<_> = texts_of(&batches, "path")
            .into_iter()
            .zip(lines.copied())
            .zip(texts_of(&batches, "text"))
            .map(|((path, line), text)| (path, line, text))
            .collect();
        prop_assert_eq!(found, paragraphs_of(&files));

        let (batches, _) = read(Unit::File).unwrap();
        let whole = files.iter().map(|file| split_lines(file)).filter(|lines| !lines.is_empty());
        let expected: Vec<String> =
            whole.map(|lines| String::from_utf8(lines.join(&b'\n')).unwrap()).collect();
        prop_assert_eq!(texts_of(&batches, "text"), expected);
    }
}

#[test]
fn a_text_that_cannot_be_used_is_left_out_as_a_whole() {
    let files: [&[u8]; 2] = [b"a\nb\n\nc\n\xff\nd\n\ne\n", b"0123456789\n0123456789\n\nf"];
    let read = |unit, bytes_max, on_error| {
        let sizes = Sizes { line_bytes_max: bytes_max, ..ROOMY };
        read_with(Texts::new(unit, bytes_max), &files, sizes, on_error)
    };
    // Each line that is too long is counted.
    for (bytes_max, skipped) in [(20, 2), (9, 3), (21, 1)] {
        let (batches, counters) = read(Unit::Paragraph, bytes_max, OnError::Skip).unwrap();
        let mut expected = vec!["a\nb", "e", "f"];
        if skipped == 1 {
            expected.insert(2, "0123456789\n0123456789");
        }
        assert_eq!(texts_of(&batches, "text"), expected);
        assert_eq!(counters[1], ("skipped", skipped), "{bytes_max}");
    }
    let (batches, _) = read(Unit::File, 100, OnError::Skip).unwrap();
    assert_eq!(texts_of(&batches, "path"), ["b.txt"]);
    let error = |unit, bytes_max| read(unit, bytes_max, OnError::Fail).unwrap_err().to_string();
    assert!(error(Unit::Paragraph, 100).starts_with("a.txt:5: byte 0"));
    assert!(
        error(Unit::File, 2).starts_with("a.txt:1: the text that begins here is longer than 2")
    );
}
