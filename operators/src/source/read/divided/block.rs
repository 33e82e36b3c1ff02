//! The lines that a worker gets.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use encoding_rs::Encoding;
use trommel_engine::memory::Reservation;
use trommel_kernels::Isa;

use crate::source::read::text::lines::Run;

/// A line as it is in its file.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawLine<'a> {
    /// Number in its file, from 1.
    pub(super) number: u64,
    /// First byte in the file.
    pub(super) offset: u64,
    /// The bytes of the line, including the line end, which is a newline.
    pub(super) bytes: &'a [u8],
    /// The bytes of the line without the line end.
    pub(super) content: &'a [u8],
}

/// The lines of a run as they are in the file.
pub(super) fn raw_lines<'a>(run: &Run<'a>) -> impl Iterator<Item = RawLine<'a>> + use<'a> {
    let bytes = run.bytes();
    let begins = run.ranges().map(|range| range.start).skip(1).chain([bytes.len()]);
    run.each().zip(run.ranges()).zip(begins).map(move |((line, range), next)| RawLine {
        number: line.number,
        offset: line.offset,
        bytes: &bytes[range.start..next],
        content: line.bytes,
    })
}

/// Consecutive lines of a file, which own their bytes.
#[derive(Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// End of each line: the index of its newline, or the end of the file.
    ends: Vec<u32>,
    /// Number of the first line, and its first byte in the file.
    first_line: u64,
    offset: u64,
    ends_by_return: bool,
}

impl Lines {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Number of bytes of the first `lines` lines.
    pub(super) fn bytes_of(&self, lines: usize) -> usize {
        let last = lines.checked_sub(1).map_or(0, |last| self.ends[last] as usize + 1);
        last.min(self.bytes.len())
    }

    pub(super) fn first_line(&self) -> u64 {
        self.first_line
    }

    fn begin(&mut self, number: u64, offset: u64, run: &Run<'_>) {
        if self.ends.is_empty() {
            (self.first_line, self.offset) = (number, offset);
            self.ends_by_return = run.ends_by_return;
        }
    }

    /// Adds a run that follows these lines.
    pub(super) fn extend(&mut self, run: &Run<'_>) {
        self.begin(run.first_line, run.offset, run);
        let base = index(self.bytes.len());
        self.bytes.extend_from_slice(run.bytes());
        self.ends.extend(run.ends.iter().map(|end| base + end));
    }

    /// Adds the line that follows, a line of `run`.
    pub(super) fn push(&mut self, line: RawLine<'_>, run: &Run<'_>) {
        self.begin(line.number, line.offset, run);
        self.bytes.extend_from_slice(line.bytes);
        let has_end = line.bytes.last() == Some(&b'\n');
        self.ends.push(index(self.bytes.len() - usize::from(has_end)));
    }

    /// Takes the first lines.
    pub(super) fn take(&mut self, lines: usize) -> Self {
        if lines == self.ends.len() {
            return std::mem::take(self);
        }
        let bytes = self.bytes_of(lines);
        let rest = Self {
            bytes: self.bytes.split_off(bytes),
            ends: self.ends.split_off(lines),
            first_line: self.first_line + lines as u64,
            offset: self.offset + bytes as u64,
            ends_by_return: self.ends_by_return,
        };
        let taken = std::mem::replace(self, rest);
        let base = index(bytes);
        self.ends.iter_mut().for_each(|end| *end -= base);
        taken
    }

    /// Calls `then` with a run of the lines at these places.
    pub(super) fn with_run<T>(
        &self,
        places: Range<usize>,
        (isa, line_bytes_max): (Isa, usize),
        ends: &mut Vec<u32>,
        then: impl FnOnce(&Run<'_>) -> T,
    ) -> T {
        let (begin, end) = (self.bytes_of(places.start), self.bytes_of(places.end));
        ends.clear();
        let base = index(begin);
        ends.extend(self.ends[places.clone()].iter().map(|end| end - base));
        then(&Run {
            isa,
            bytes: &self.bytes[begin..end],
            ends,
            first_line: self.first_line + places.start as u64,
            offset: self.offset + begin as u64,
            line_bytes_max,
            ends_by_return: self.ends_by_return,
        })
    }
}

/// A place in the bytes of a block, which is at most a few times as long as the longest line.
fn index(place: usize) -> u32 {
    u32::try_from(place).expect("a block has fewer than 2^32 bytes")
}

/// The content of the file after the lines of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Another record, or the end of the lines that were read.
    Record,
    /// The line with this number, which is too long.
    LongLine(u64),
    /// The rest of a record that is too long, with the number of its next line.
    LongRecord(u64),
    FileEnd,
}

/// Lines of a file that begin where a record begins.
pub(super) struct Block {
    pub(super) path: Arc<str>,
    pub(super) encoding: &'static Encoding,
    /// The first record of the file; `None` unless the record ends before these lines.
    pub(super) head: Option<Arc<Lines>>,
    pub(super) lines: Lines,
    /// The lines belong to no record: lines that are too long are refused, and no rows are made.
    pub(super) is_left_out: bool,
    /// Number of lines in all files before the lines of the block.
    pub(super) lines_before: u64,
    pub(super) then: Then,
    /// Rejected files, which are sent before the rows.
    pub(super) rejected: Option<RecordBatch>,
    /// Memory for long lines, which is kept until the rows have been sent.
    pub(super) _room: Reservation,
    /// Counts the blocks that are under way: each such block holds a reference.
    pub(super) _under_way: Arc<()>,
}

impl Block {
    /// Bytes that the block holds.
    pub(super) fn bytes(&self) -> usize {
        self.lines.bytes() + self.lines.len() * size_of::<u32>()
    }
}
