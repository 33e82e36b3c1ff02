//! Counts of a range, before its lines are read.

use std::io;

use memchr::{memchr_iter, memchr2_iter};

use super::order::Count;
use super::queue::Content;
use crate::source::read::csv::dialect::Dialect;
use crate::source::read::error::ReadError;
use crate::source::read::files::ranged::FileRange;
use crate::source::read::text::source::read_bytes;

/// Bytes of one read that follows quotes.
const LOOK_BYTES: usize = 128 << 10;

/// What the rows of a piece take from earlier pieces.
#[derive(Debug, Clone)]
pub(super) struct Needs {
    /// Whether rows have the numbers of their lines.
    pub(super) lines: bool,
    pub(super) ids: Ids,
    /// For records with quotes, the dialect.
    pub(super) quotes: Option<Dialect>,
    /// Whether memory for a piece is reserved after the memory for all earlier pieces.
    pub(super) memory: bool,
}

/// The ids of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ids {
    None,
    /// Each line has an id.
    Lines,
    /// Each row of a fixed width has an id.
    Rows,
    /// Each record of CSV has an id.
    Records,
}

impl Needs {
    pub(super) fn nothing() -> Self {
        Self { lines: false, ids: Ids::None, quotes: None, memory: false }
    }

    /// Whether the rows of a piece are the same whatever precedes the piece.
    pub(super) fn are_none(&self) -> bool {
        !self.lines && self.ids == Ids::None && self.quotes.is_none() && !self.memory
    }
}

/// Counts ranges.
pub(super) struct Ahead {
    needs: Needs,
    line_bytes_max: usize,
    bytes: Vec<u8>,
}

impl Ahead {
    pub(super) fn new(needs: Needs, line_bytes_max: usize) -> Self {
        let bytes = if needs.quotes.is_some() { vec![0; LOOK_BYTES] } else { Vec::new() };
        Self { needs, line_bytes_max, bytes }
    }

    /// Whether memory for a piece is reserved after the memory for all earlier pieces.
    pub(super) fn needs_memory(&self) -> bool {
        self.needs.memory
    }

    /// What a piece adds, as far as it can be known before the piece is read.
    pub(super) fn count(&mut self, content: &Content) -> Result<Count, ReadError> {
        if self.needs.memory {
            return Ok(Count::default());
        }
        let no_ids = (self.needs.ids == Ids::None).then_some(0);
        let (range, end) = match content {
            Content::Range(range @ FileRange { end: Some(end), .. }) => (range, *end),
            // The last range of a file ends where the file ends when it is read.
            Content::Range(_) | Content::Files(_) | Content::Table(_) => {
                return Ok(Count { ids: no_ids, is_file_end: true, ..Count::default() });
            }
        };
        if self.needs.quotes.is_some() {
            let scan = self.scan(range, false)?;
            let (newlines, is_quoted) = (Some(scan.newlines), [Some(scan.is_quoted), None]);
            let ids = self.ids_of(&scan);
            return Ok(Count { newlines, ids, is_quoted, is_file_end: false });
        }
        let counts_lines = self.needs.lines || self.needs.ids == Ids::Lines;
        let newlines = match counts_lines {
            true => range.file.newlines(range.begin..end).map_err(failed(range))?,
            false => 0,
        };
        let ids = match self.needs.ids {
            Ids::None | Ids::Records => 0,
            Ids::Lines => newlines,
            Ids::Rows => (end - range.begin.max(range.file.first())) / range.file.width(),
        };
        let (newlines, ids, is_quoted) = (Some(newlines), Some(ids), [Some(false); 2]);
        Ok(Count { newlines, ids, is_quoted, is_file_end: false })
    }

    /// Whether records have ids, which a file without a usable header does not have.
    pub(super) fn counts_records(&self) -> bool {
        self.needs.ids == Ids::Records
    }

    /// Number of ids of the records of a range.
    pub(super) fn ids_of(&self, scan: &Scan) -> Option<u64> {
        match self.needs.ids {
            Ids::None => Some(0),
            Ids::Records => Some(scan.records),
            Ids::Lines | Ids::Rows => None,
        }
    }

    /// Finds the records of a range, if a quote is open (`is_quoted`) or not at the beginning of
    /// the first line that begins in the range.
    pub(super) fn scan(&mut self, range: &FileRange, is_quoted: bool) -> Result<Scan, ReadError> {
        self.follow(range, is_quoted).map_err(failed(range))
    }

    fn follow(&mut self, range: &FileRange, is_quoted: bool) -> io::Result<Scan> {
        let FileRange { file, begin, .. } = range;
        let end = range.end.unwrap_or(u64::MAX);
        let dialect = self.needs.quotes.as_ref().expect("records have quotes");
        let mut follow = Follow::new(dialect, self.line_bytes_max, is_quoted);
        let mut at = *begin;
        if at == 0 {
            // No range begins before the end of the first record.
            at = file.first();
            follow.scan.newlines = memchr_iter(b'\n', file.head()).count() as u64;
            follow.scan.records = u64::from(!dialect.has_header);
        }
        let is_within = *begin > 0 && file.is_within_line(at)?;
        follow.begin_line((!is_within).then_some(at), end);
        while !follow.has_ended(at, end) {
            let len = read_bytes(at, end, self.bytes.len());
            let read = file.read_at(&mut self.bytes[..len], at)?;
            if read == 0 {
                // The last line of the file began in the range, or the file was truncated.
                follow.end_file(at);
                break;
            }
            follow.add(&self.bytes[..read], at, end);
            at += read as u64;
        }
        Ok(follow.scan)
    }
}

/// The error of a range that cannot be read.
fn failed(range: &FileRange) -> impl FnOnce(io::Error) -> ReadError {
    let path = range.file.path();
    move |source| ReadError::Read { path, source }
}

/// The records of a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// The beginning of the first record that begins in the range, and the number of newlines of
    /// the range before; `None` if no record begins in the range.
    pub(super) first: Option<(u64, u64)>,
    /// Number of newlines in the range.
    pub(super) newlines: u64,
    /// Number of records that begin in the range, the header left out.
    pub(super) records: u64,
    /// Whether a quote is open at the beginning of the first line after the range.
    pub(super) is_quoted: bool,
}

/// Follows the quotes of a file from a range on.
struct Follow<'a> {
    dialect: &'a Dialect,
    line_bytes_max: usize,
    scan: Scan,
    /// The first byte of the open line; `None` in a line that began before the range.
    line: Option<u64>,
    /// Whether the open line is a comment; `None` until the first byte of the line is known.
    is_comment: Option<bool>,
    /// Whether a quote is open. `scan.is_quoted` is its value at the beginning of the line.
    is_open: bool,
    /// The place of a quote that closes the quotes, unless another quote follows.
    closed: Option<u64>,
    /// The last byte that was followed.
    last: u8,
    has_ended: bool,
}

impl<'a> Follow<'a> {
    fn new(dialect: &'a Dialect, line_bytes_max: usize, is_quoted: bool) -> Self {
        Self {
            dialect,
            line_bytes_max,
            scan: Scan { is_quoted, ..Scan::default() },
            line: None,
            is_comment: None,
            is_open: is_quoted,
            closed: None,
            last: b'\n',
            has_ended: false,
        }
    }

    /// Begins a line at byte `line`; `None` for a line that began before the range.
    fn begin_line(&mut self, line: Option<u64>, end: u64) {
        (self.line, self.is_comment, self.closed) = (line, None, None);
        self.is_open = self.scan.is_quoted;
        let Some(begin) = line else { return };
        self.has_ended = begin >= end;
        if !self.has_ended && !self.is_open && self.scan.first.is_none() {
            self.scan.first = Some((begin, self.scan.newlines));
        }
    }

    /// Whether the first line after the range is known, or no line begins in the range.
    fn has_ended(&self, at: u64, end: u64) -> bool {
        self.has_ended || self.line.is_none() && at >= end
    }

    /// Follows the bytes from byte `at` of the file on.
    fn add(&mut self, bytes: &[u8], at: u64, end: u64) {
        let dialect = self.dialect;
        self.look_at_first(bytes.first());
        for place in memchr2_iter(dialect.quote, b'\n', bytes) {
            let here = at + place as u64;
            let before = place.checked_sub(1).map_or(self.last, |before| bytes[before]);
            if bytes[place] == b'\n' {
                self.end_line(here, before, end);
                if self.has_ended {
                    return;
                }
                self.look_at_first(bytes.get(place + 1));
            } else if self.line.is_some() && self.is_comment == Some(false) {
                self.add_quote(here, before);
            }
        }
        self.last = bytes.last().copied().unwrap_or(self.last);
    }

    /// Finds out whether the open line is a comment, if its first byte is given.
    fn look_at_first(&mut self, first: Option<&u8>) {
        if let (None, Some(&first)) = (self.is_comment, first) {
            self.is_comment = Some(!self.is_open && Some(first) == self.dialect.comment);
        }
    }

    /// Follows a quote at byte `here`, after the byte `before`.
    fn add_quote(&mut self, here: u64, before: u8) {
        if self.is_open {
            (self.is_open, self.closed) = (false, Some(here));
            return;
        }
        // Two quotes inside of quotes are one quote of the text; any other quote opens at the
        // beginning of a field only.
        let is_second = self.closed.is_some_and(|closed| closed + 1 == here);
        self.is_open = is_second || self.line == Some(here) || before == self.dialect.delimiter;
    }

    fn end_line(&mut self, here: u64, before: u8, end: u64) {
        if here < end {
            self.scan.newlines += 1;
        }
        if let Some(begin) = self.line {
            let is_return = here > begin && before == b'\r';
            let bytes = here - begin - u64::from(is_return);
            let is_long = bytes > self.line_bytes_max as u64;
            self.count_record(bytes, is_long);
            // A line that is too long ends its record.
            self.scan.is_quoted = self.is_open && !is_long;
        }
        self.begin_line(Some(here + 1), end);
    }

    /// Counts a record that began with a line of this number of bytes.
    fn count_record(&mut self, bytes: u64, is_long: bool) {
        let is_passed_over = bytes == 0 || self.is_comment == Some(true);
        let is_record = !self.scan.is_quoted && (is_long || !is_passed_over);
        self.scan.records += u64::from(is_record);
    }

    /// Ends the last line at the end of the file.
    fn end_file(&mut self, end: u64) {
        if let Some(begin) = self.line.filter(|&begin| begin < end) {
            let bytes = end - begin - u64::from(self.last == b'\r');
            self.count_record(bytes, bytes > self.line_bytes_max as u64);
        }
    }
}
