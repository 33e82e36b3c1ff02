//! Stops, files that shrink or grow while they are read, and the memory of long lines.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;

use arrow_array::cast::AsArray;
use trommel_engine::memory::MemoryBudget;

use super::*;
use crate::source::read::text::plain::TextLines;

const SIZES: Sizes =
    Sizes { copies: 3, piece: 1_000, batch: 20, block: 64, line_bytes_max: 1 << 12, seed: 3 };

fn numbers(lines: usize) -> Vec<u8> {
    (0..lines).flat_map(|line| format!("{line:05}\n").into_bytes()).collect()
}

/// Copies of a source of lines.
fn copies(folder: &Folder, reading: Reading, sizes: Sizes) -> Vec<Box<dyn Source>> {
    let files = folder.files();
    let context = BindContext::new(0);
    let mut copy = reading.copies_of_lines(files, context, TextLines::new(), buffers(sizes));
    (0..sizes.copies).map(|_| Box::new(copy()) as Box<dyn Source>).collect()
}

/// The lines that a call sends.
fn lines_sent(out: &mut Output) -> Vec<String> {
    let sent = out.drain_sent().map(|(_, sent)| sent.into_records());
    let lines = sent.flat_map(|rows| {
        let lines = rows.column(0).as_string::<i32>();
        lines.iter().map(|line| line.unwrap().to_owned()).collect::<Vec<_>>()
    });
    lines.collect()
}

fn counted(copies: &[Box<dyn Source>], name: &str) -> u64 {
    let counters = copies.iter().flat_map(|copy| copy.counters());
    counters.filter(|counter| counter.0 == name).map(|counter| counter.1).sum()
}

/// Calls the copies one after the other until all have ended.
fn finish(copies: &mut [Box<dyn Source>], lines: &mut Vec<String>) {
    for _ in 0..10_000 {
        let mut ended = 0;
        for copy in copies.iter_mut() {
            let mut out = Output::new();
            ended += usize::from(copy.next(&mut out).unwrap() == SourceFlow::Finished);
            lines.extend(lines_sent(&mut out));
        }
        if ended == copies.len() {
            return;
        }
    }
    panic!("a copy waits for ever");
}

/// Each line that was taken is sent, a line that was read in part is counted, and the copies take
/// nothing more.
#[test]
fn a_stop_sends_what_was_taken() {
    let folder = Folder::new(&[numbers(2_000)]);
    let reading = reading(OnError::Reject, Invalid::Skip, SIZES).lines(1 << 12, true).numbered();
    let mut copies = copies(&folder, reading, SIZES);
    let mut lines = Vec::new();
    for turn in 0..4 {
        for copy in &mut copies[..2 + turn % 2] {
            let mut out = Output::new();
            copy.next(&mut out).unwrap();
            lines.extend(lines_sent(&mut out));
        }
    }
    for copy in &mut copies {
        let mut calls = 0;
        loop {
            let mut out = Output::new();
            let flow = copy.stop(&mut out).unwrap();
            lines.extend(lines_sent(&mut out));
            calls += 1;
            if flow == SourceFlow::Finished {
                break;
            }
            assert!(calls < 50, "a stop ends soon");
        }
    }
    let taken: u64 = copies.iter().map(|copy| copy.progress().bytes).sum();
    let count = lines.len() as u64;
    assert!(count > 20 && taken < 12_000, "{count} lines of {taken} bytes");
    // A range that begins within a line passes over some bytes of the line.
    let passed_over = taken - count * 6 - counted(&copies, "unfinished_bytes");
    assert!(passed_over < 6 * SIZES.copies as u64, "{passed_over}");
    let all: BTreeSet<_> = lines.iter().collect();
    assert_eq!(all.len(), lines.len(), "no line is sent twice");
}

/// All copies notice that a file was truncated, and one of them reports it.
#[test]
fn a_file_that_shrinks_is_reported_once() {
    let folder = Folder::new(&[numbers(2_000), numbers(10)]);
    let reading = reading(OnError::Skip, Invalid::Skip, SIZES).lines(1 << 12, true);
    let mut copies = copies(&folder, reading, SIZES);
    let mut lines = Vec::new();
    for copy in &mut copies {
        let mut out = Output::new();
        copy.next(&mut out).unwrap();
        lines.extend(lines_sent(&mut out));
    }
    OpenOptions::new().write(true).open(&folder.paths[0]).unwrap().set_len(6_003).unwrap();
    finish(&mut copies, &mut lines);
    assert_eq!(counted(&copies, "files_skipped"), 1);
    let named: Vec<_> = copies.iter().flat_map(|copy| copy.named_inputs().left_out).collect();
    assert!(named.len() == 1 && named[0].contains("was truncated while it was read: 12000 bytes"));
    lines.sort();
    let mut expected: Vec<_> = (0..1_000).chain(0..10).map(|line| format!("{line:05}")).collect();
    expected.sort();
    assert_eq!(lines, expected);
}

/// The last range ends where the file ends when it is read.
#[test]
fn lines_that_are_added_while_a_file_is_read_are_read() {
    let folder = Folder::new(&[numbers(2_000)]);
    let reading = reading(OnError::Fail, Invalid::Fail, SIZES).lines(1 << 12, true);
    let mut copies = copies(&folder, reading, SIZES);
    let mut lines = Vec::new();
    let mut out = Output::new();
    copies[0].next(&mut out).unwrap();
    lines.extend(lines_sent(&mut out));
    let mut file = OpenOptions::new().append(true).open(&folder.paths[0]).unwrap();
    file.write_all(b"more\nlines").unwrap();
    finish(&mut copies, &mut lines);
    assert_eq!(lines.len(), 2_002);
    assert!(lines.contains(&"more".into()) && lines.contains(&"lines".into()));
}

/// Long lines in several ranges need the memory of one long line.
#[test]
fn long_lines_need_the_memory_of_one() {
    let contents = [&b"x\n".repeat(1_000)[..], &[&[b'y'; 3 << 20][..], b"\n"].concat().repeat(6)];
    let contents = contents.concat();
    let folder = Folder::new(&[contents]);
    let sizes = Sizes { piece: 1 << 20, block: 1 << 16, line_bytes_max: 1 << 23, ..SIZES };
    // A line takes twice the buffer, which doubles up to its length.
    let memory = MemoryBudget::new(10 << 20);
    let budget = memory.clone();
    let reading = reading(OnError::Fail, Invalid::Fail, sizes).lines(1 << 23, true);
    let buffer = move || buffers(sizes)().within(&budget);
    let context = BindContext::new(0);
    let copy = reading.copies_of_lines(folder.files(), context, TextLines::new(), buffer);
    let rows = drain(copy, sizes).unwrap().rows.unwrap();
    assert_eq!(rows.num_rows(), 1_006);
    assert_eq!(memory.reserved(), 0);
}
