//! Cuts blocks of bytes into lines, and the conversion of lines to rows.

use std::ops::Range;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use memchr::{memchr, memrchr};
use trommel_engine::memory::{MemoryBudget, MemoryFull, Reservation};
use trommel_engine::operator::Output;
use trommel_kernels::Isa;
use trommel_kernels::text::{PLACES_SLACK, places_of};

use super::encoding::{Start, Wide, start_of};
use crate::source::read::error::ReadError;
use crate::source::read::files::input::{Inputs, Line};

/// Bytes of one read: large enough to amortise the system call, small enough for the second-level
/// cache.
const BLOCK_BYTES: usize = 256 << 10;
/// Maximum bytes of a first line in which the kind of line ends is searched.
pub(crate) const FIRST_LINE_BYTES: usize = 64 << 10;
/// Maximum blocks, files or runs of lines per call, so that a call returns even if no line becomes
/// a row.
pub(crate) const STEPS_MAX: usize = 64;

/// Conversion of lines to rows.
pub(crate) trait LineFormat: Send {
    /// Schema of the rows.
    fn schema(&self) -> &SchemaRef;
    /// Adds the rows of `run`; calls [`Inputs::refuse`] for each unusable line.
    fn append(&mut self, run: &Run<'_>, inputs: &mut Inputs) -> Result<(), ReadError>;
    /// Called for the number of a line that was refused while it was read.
    fn pass_over(&mut self, inputs: &mut Inputs, line: u64) -> Result<(), ReadError>;
    /// Refuses a line of more than `bytes_max` bytes, which are no longer available.
    fn refuse_long(
        &mut self,
        inputs: &mut Inputs,
        line: u64,
        bytes_max: usize,
    ) -> Result<(), ReadError> {
        inputs.refuse_long(line, bytes_max)?;
        self.pass_over(inputs, line)
    }
    /// Called at the end of the open file.
    fn end_file(&mut self, _inputs: &mut Inputs) -> Result<(), ReadError> {
        Ok(())
    }
    /// Whether a record is open, which the next line continues.
    fn is_within_record(&self) -> bool {
        false
    }
    /// Called when the open file breaks off. Drops an incomplete row and returns the bytes of the
    /// row.
    fn abandon(&mut self) -> usize {
        0
    }
    /// Number of rows so far.
    fn rows(&self) -> usize;
    /// Bytes of the rows so far.
    fn bytes(&self) -> usize;
    /// Takes the rows so far.
    fn take(&mut self) -> RecordBatch;
    /// Sends the rows so far, and the rejected rows.
    fn send(&mut self, inputs: &mut Inputs, out: &mut Output) {
        if self.rows() > 0 {
            out.send(self.take());
        }
        inputs.send_rejected(out);
    }
    /// The pause before more lines can be added, if a pause is needed.
    fn wait(&mut self) -> Option<Duration> {
        None
    }
}

/// Run of consecutive lines of a file.
pub(crate) struct Run<'a> {
    /// Instruction set of the conversion.
    pub(crate) isa: Isa,
    pub(crate) bytes: &'a [u8],
    /// End of each line in `bytes`: the index of its newline, or the end of the file.
    pub(crate) ends: &'a [u32],
    /// Number of the first line in its file, from 1.
    pub(crate) first_line: u64,
    /// First byte of the run in its file.
    pub(crate) offset: u64,
    pub(crate) line_bytes_max: usize,
    /// The lines of the file end with a carriage return alone, which `bytes` replaces by a newline.
    pub(crate) ends_by_return: bool,
}

impl<'a> Run<'a> {
    /// Range of each line in `bytes`, without its line end.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<'a> {
        let (bytes, mut start) = (self.bytes, 0);
        self.ends.iter().map(move |&end| {
            let end = end as usize;
            // A carriage return before the newline belongs to the line end.
            let content = start..end - usize::from(end > start && bytes[end - 1] == b'\r');
            start = end + 1;
            content
        })
    }

    /// The lines, including lines that are too long.
    pub(crate) fn each(&self) -> impl Iterator<Item = Line<'a>> + use<'a> {
        let (bytes, offset) = (self.bytes, self.offset);
        (self.first_line..).zip(self.ranges()).map(move |(number, range)| Line {
            number,
            offset: offset + range.start as u64,
            bytes: &bytes[range],
        })
    }

    /// Whether a line is at most as long as the limit.
    pub(crate) fn is_within(&self, line: Line<'_>) -> bool {
        line.bytes.len() <= self.line_bytes_max
    }

    /// True if the line is at most as long as the limit; otherwise refuses the line.
    pub(crate) fn accepts(&self, line: Line<'_>, inputs: &mut Inputs) -> Result<bool, ReadError> {
        if self.is_within(line) {
            return Ok(true);
        }
        let (number, bytes_max) = (line.number, self.line_bytes_max);
        let error = |path| ReadError::LineTooLong { path, line: number, bytes_max };
        inputs.refuse(&line.into(), error)?;
        Ok(false)
    }

    /// Gives `then` the first byte of each line in `bytes`, and the first byte after the line
    /// without its line end.
    pub(crate) fn with_places<T>(
        &self,
        Places { begins, ends }: &mut Places,
        then: impl FnOnce(&[u32], &[u32]) -> T,
    ) -> T {
        begins.clear();
        begins.push(0);
        begins.extend(self.ends.iter().map(|newline| newline + 1));
        begins.pop();
        if memchr(b'\r', self.bytes).is_none() {
            return then(begins, self.ends);
        }
        ends.clear();
        let end = |(line, &end): (Range<usize>, &u32)| end - u32::from(line.end < end as usize);
        ends.extend(self.ranges().zip(self.ends).map(end));
        then(begins, ends)
    }

    /// First byte of the line with this number in the run.
    pub(crate) fn begin_of(&self, number: u64) -> usize {
        let line = usize::try_from(number - self.first_line).expect("a line of the run");
        line.checked_sub(1).map_or(0, |before| self.ends[before] as usize + 1)
    }

    /// Whether the line ends in the file differ from the line ends in `bytes`.
    pub(crate) fn has_other_line_ends(&self) -> bool {
        self.ends_by_return
    }

    /// Number of lines in the run.
    pub(crate) fn lines(&self) -> usize {
        self.ends.len()
    }

    /// Whether no line exceeds the limit.
    pub(crate) fn is_accepted(&self) -> bool {
        // A short run cannot hold a long line, so the check of each line is skipped.
        self.bytes.len() <= self.line_bytes_max
            || self.ranges().all(|range| range.len() <= self.line_bytes_max)
    }

    /// The bytes of all lines, with line ends.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Calls `accept` for each line, with its number. A line that is too long is refused, and
    /// `accept` gets the number alone.
    pub(crate) fn for_each_accepted(
        &self,
        inputs: &mut Inputs,
        mut accept: impl FnMut(&mut Inputs, u64, Option<Line<'_>>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        self.for_each_with_end(inputs, |inputs, number, line, _| accept(inputs, number, line))
    }

    /// As [`Self::for_each_accepted`], with the line end of the file.
    pub(crate) fn for_each_with_end(
        &self,
        inputs: &mut Inputs,
        mut accept: impl FnMut(&mut Inputs, u64, Option<Line<'_>>, &[u8]) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        for (line, &end) in self.each().zip(self.ends) {
            let line_end: &[u8] = match self.ends_by_return {
                true => b"\r",
                false if line.offset - self.offset + (line.bytes.len() as u64) < u64::from(end) => {
                    b"\r\n"
                }
                false => b"\n",
            };
            let accepted = self.accepts(line, inputs)?.then_some(line);
            accept(inputs, line.number, accepted, line_end)?;
        }
        Ok(())
    }
}

/// Reused room for the places of lines.
#[derive(Default)]
pub(crate) struct Places {
    begins: Vec<u32>,
    ends: Vec<u32>,
}

/// Outcome of adding bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// The bytes were added.
    Bytes,
    /// The line with this number has just become too long.
    TooLong(u64),
    /// The file has another encoding. The buffer still has the bytes of the file.
    Wide(Wide),
}

/// Byte at which the lines of a file end. If the first line has carriage returns and no newline,
/// the lines end with carriage returns, as in old spreadsheets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    /// The first line has not ended.
    Unknown,
    Newline,
    /// The last byte was a carriage return if `after`, so that a newline as the next byte belongs
    /// to the same line end.
    Return {
        after: bool,
    },
}

/// Position in a file at the beginning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the line, from 1.
    pub(crate) line: u64,
    /// First byte of the line in the file.
    offset: u64,
    /// True if the byte order mark of the file has been checked.
    has_begun: bool,
    /// The line is too long: the bytes up to the next newline are dropped.
    dropping: bool,
    line_end: LineEnd,
}

impl Default for Place {
    /// Beginning of a file.
    fn default() -> Self {
        Self { line: 1, offset: 0, has_begun: false, dropping: false, line_end: LineEnd::Unknown }
    }
}

impl Place {
    /// The place at an earlier line, and the bytes between the two places.
    pub(crate) fn back_to(self, line: u64, offset: u64) -> (Self, u64) {
        (Self { line, offset, dropping: false, ..self }, self.offset - offset)
    }

    /// First byte of the line in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the rest of the line is passed over.
    pub(crate) fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// The place with this number of its line.
    pub(crate) fn numbered(self, line: u64) -> Self {
        Self { line, ..self }
    }

    /// The place at byte `offset` after lines that were not read. If the byte lies within a line
    /// (`is_within`), the rest of the line is passed over.
    pub(crate) fn after_lines(offset: u64, is_within: bool) -> Self {
        let line_end = LineEnd::Newline;
        Self { line: 1, offset, has_begun: true, dropping: is_within, line_end }
    }
}

/// Cuts the bytes of a file into lines.
///
/// Indices into the buffer:
///
/// ```text
/// buffer  | consumed | whole lines      | beginning of a line | free |
///         0        start            complete               filled   len
/// ```
pub(crate) struct LineBuffer {
    isa: Isa,
    buffer: Vec<u8>,
    start: usize,
    complete: usize,
    filled: usize,
    /// Ends of the lines of a run, with room for more lines.
    ends: Vec<u32>,
    /// Number and state of the line at `start`.
    place: Place,
    line_bytes_max: usize,
    /// Whether encodings without a mark are recognised.
    guesses: bool,
    /// Whether zeros before the first line are skipped.
    skips_zeros: bool,
    block_bytes: usize,
    /// Memory for lines that are longer than a block, and for their rows.
    room: Reservation,
}

impl LineBuffer {
    pub(crate) fn new(isa: Isa, block_bytes: usize, line_bytes_max: usize) -> Self {
        Self {
            guesses: true,
            skips_zeros: false,
            block_bytes,
            room: Reservation::default(),
            isa,
            buffer: vec![0; block_bytes],
            start: 0,
            complete: 0,
            filled: 0,
            ends: Vec::new(),
            place: Place::default(),
            line_bytes_max,
        }
    }

    pub(crate) fn of_file(isa: Isa, line_bytes_max: usize) -> Self {
        Self::new(isa, BLOCK_BYTES, line_bytes_max)
    }

    /// Takes memory for long lines from this budget.
    pub(crate) fn within(self, memory: &MemoryBudget) -> Self {
        Self { room: memory.reservation(), ..self }
    }

    /// Takes the encoding of a file without a mark from the parameter, without a guess.
    pub(crate) fn without_guesses(self) -> Self {
        Self { guesses: false, ..self }
    }

    /// Skips zeros before the first line. Such zeros are the hole that a writer leaves if its file
    /// is emptied.
    pub(crate) fn skipping_zeros(self) -> Self {
        Self { skips_zeros: true, ..self }
    }

    #[cfg(test)]
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.buffer.len()
    }

    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    pub(crate) fn line_bytes_max(&self) -> usize {
        self.line_bytes_max
    }

    /// Takes the bytes of a file in another encoding. No line of the file has been taken before.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        let bytes = self.buffer[self.start..self.filled].to_vec();
        self.abandon();
        bytes
    }

    /// Place of the first line not taken.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Continues a file from `place`, and drops all bytes of another file.
    pub(crate) fn resume(&mut self, place: Place) {
        self.abandon();
        self.place = place;
    }

    /// Moves the start of the unread bytes to the index `start`.
    fn pass(&mut self, start: usize) {
        self.place.offset += (start - self.start) as u64;
        self.start = start;
    }

    /// Checks the first bytes of a file as soon as enough bytes are there, and skips a mark.
    fn begin(&mut self) -> Start {
        if self.skips_zeros {
            let text = &self.buffer[self.start..self.filled];
            let zeros = text.iter().take_while(|&&byte| byte == 0).count();
            self.pass(self.start + zeros);
            self.complete = self.start;
            if self.start == self.filled {
                return Start::Unknown;
            }
        }
        let start = start_of(&self.buffer[self.start..self.filled], self.guesses);
        if let Start::Text(mark) = start {
            self.pass(self.start + mark);
            self.complete = self.start;
            self.place.has_begun = true;
        }
        start
    }

    /// Ends a file. Returns true if the end of the file shows that lines end with carriage returns,
    /// which makes whole lines.
    pub(crate) fn end(&mut self) -> bool {
        let line = &self.buffer[self.start..self.filled];
        let is_unknown = self.place.has_begun && self.place.line_end == LineEnd::Unknown;
        let (_, within) = line.split_last().unwrap_or((&0, &[]));
        if is_unknown && memchr(b'\r', within).is_some() {
            self.end_by_returns(self.start);
        }
        self.has_lines()
    }

    /// Finds out how lines end, if the bytes from `from` on show the line ends, and replaces
    /// carriage returns at line ends.
    fn find_line_end(&mut self, from: usize) {
        match self.place.line_end {
            LineEnd::Newline => {}
            LineEnd::Return { .. } => self.end_by_returns(from),
            LineEnd::Unknown => {
                // The same number of bytes decides for every size of blocks.
                let bytes = self.line_bytes_max.min(FIRST_LINE_BYTES);
                let line = &self.buffer[self.start..self.filled];
                let head = &line[..line.len().min(bytes + 1)];
                if memchr(b'\n', head).is_some() {
                    self.place.line_end = LineEnd::Newline;
                } else if head.len() > bytes {
                    self.place.line_end = LineEnd::Newline;
                    if memchr(b'\r', &head[..bytes]).is_some() {
                        self.end_by_returns(self.start);
                    }
                }
            }
        }
    }

    /// Replaces each carriage return from `from` on, and a newline after the return, by one
    /// newline.
    fn end_by_returns(&mut self, from: usize) {
        let mut after = self.place.line_end == LineEnd::Return { after: true };
        let mut to = from;
        for at in from..self.filled {
            let byte = self.buffer[at];
            if after && byte == b'\n' {
                after = false;
                continue;
            }
            after = byte == b'\r';
            self.buffer[to] = if after { b'\n' } else { byte };
            to += 1;
        }
        self.filled = to;
        self.place.line_end = LineEnd::Return { after };
        if let Some(newline) = memrchr(b'\n', &self.buffer[from..to]) {
            self.complete = from + newline + 1;
        }
    }

    /// Drops an incomplete line and prepares for the next file. Returns the bytes of the line.
    pub(crate) fn abandon(&mut self) -> usize {
        let bytes = self.filled - self.start;
        self.last_run();
        bytes
    }

    pub(crate) fn has_lines(&self) -> bool {
        self.start < self.complete
    }

    /// Gives the memory of long lines back, after the last line of a file.
    pub(crate) fn shrink(&mut self) {
        if self.filled == 0 && self.buffer.len() > self.block_bytes {
            self.buffer.truncate(self.block_bytes);
            self.buffer.shrink_to_fit();
            self.room.resize(0).expect("less than before");
        }
    }

    /// Whether the next read needs a larger buffer, since an incomplete line fills the buffer.
    pub(crate) fn is_full(&self) -> bool {
        self.filled - self.start == self.buffer.len()
    }

    /// Position in the file of the first byte that has not been added, if the buffer has the bytes
    /// of the file as they are.
    pub(crate) fn position(&self) -> u64 {
        self.place.offset + (self.filled - self.start) as u64
    }

    /// Free space for a read. Moves an incomplete line to the front, and doubles the buffer if the
    /// line fills the buffer.
    ///
    /// # Errors
    /// If there is no memory for a line of this length.
    pub(crate) fn free(&mut self) -> Result<&mut [u8], MemoryFull> {
        if self.start > 0 {
            // At most one incomplete line is moved per block: whole lines are taken before the
            // next read.
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.complete = 0;
            self.start = 0;
        }
        if self.filled == self.buffer.len() {
            // A line within the limit has at most this number of bytes, including its line end.
            let longest = self.line_bytes_max + 2;
            let bytes = (self.buffer.len() * 2).min(longest);
            // The row that is made of the line has the same length.
            self.room.resize(bytes.saturating_sub(self.block_bytes) * 2)?;
            self.buffer.resize(bytes, 0);
        }
        Ok(&mut self.buffer[self.filled..])
    }

    /// Adds `bytes` bytes that were read into [`Self::free`].
    pub(crate) fn add(&mut self, bytes: usize) -> Added {
        let mut from = self.filled;
        self.filled += bytes;
        if !self.place.has_begun {
            match self.begin() {
                Start::Unknown => return Added::Bytes,
                Start::Wide(wide) => return Added::Wide(wide),
                // The bytes before, which were too few to decide, may have a newline.
                Start::Text(_) => from = self.start,
            }
        }
        self.find_line_end(from);
        if self.place.dropping {
            self.drop_to_newline(from);
        }
        // Only the last newline is needed here; `run` finds the other newlines while the bytes are
        // in the cache.
        let from = from.max(self.start);
        if let Some(newline) = memrchr(b'\n', &self.buffer[from..self.filled]) {
            self.complete = from + newline + 1;
        }
        let beginning = self.complete.max(self.start);
        // The byte after the limit may be the carriage return of the line end.
        if self.place.dropping || self.filled - beginning <= self.line_bytes_max + 1 {
            return Added::Bytes;
        }
        // Whole lines before the long line are taken first, so that reports are in the order of the
        // lines.
        if self.has_lines() {
            return Added::Bytes;
        }
        self.place.dropping = true;
        self.pass(self.filled);
        Added::TooLong(self.place.line)
    }

    fn drop_to_newline(&mut self, from: usize) {
        match memchr(b'\n', &self.buffer[from..self.filled]) {
            Some(newline) => {
                self.pass(from + newline + 1);
                self.place.line += 1;
                self.place.dropping = false;
            }
            None => self.pass(self.filled),
        }
        self.complete = self.start;
    }

    /// Takes the next whole lines: at most `lines_max`, at least one, and about `bytes_max`
    /// bytes.
    pub(crate) fn run(&mut self, lines_max: usize, bytes_max: usize) -> Run<'_> {
        let bytes = &self.buffer[self.start..self.complete];
        let (within, beyond) = bytes.split_at(bytes_max.min(bytes.len()));
        let lines_max = lines_max.min(bytes.len());
        self.ends.resize(lines_max + PLACES_SLACK, 0);
        let found = places_of(self.isa, b'\n', within, &mut self.ends);
        let mut lines = found.min(lines_max);
        if lines < lines_max
            && let Some(newline) = memchr(b'\n', beyond)
        {
            self.ends[lines] = place(within.len() + newline);
            lines += 1;
        }
        let ends = &self.ends[..lines];
        let consumed = *ends.last().expect("there is a whole line") as usize + 1;
        let bytes = &bytes[..consumed];
        let (first_line, offset) = (self.place.line, self.place.offset);
        self.start += consumed;
        self.place.offset += consumed as u64;
        self.place.line += lines as u64;
        let ends_by_return = matches!(self.place.line_end, LineEnd::Return { .. });
        let (isa, line_bytes_max) = (self.isa, self.line_bytes_max);
        Run { isa, bytes, ends, first_line, offset, line_bytes_max, ends_by_return }
    }

    /// Takes the last line of a file that does not end with a newline, and prepares for the next
    /// file.
    pub(crate) fn last_run(&mut self) -> Option<Run<'_>> {
        let bytes = &self.buffer[self.start..self.filled];
        let (first_line, offset) = (self.place.line, self.place.offset);
        let is_line = !self.place.dropping && !bytes.is_empty();
        self.ends.clear();
        self.ends.push(place(bytes.len()));
        (self.start, self.complete, self.filled) = (0, 0, 0);
        let ends_by_return = matches!(self.place.line_end, LineEnd::Return { .. });
        self.place = Place::default();
        let (isa, line_bytes_max, ends) = (self.isa, self.line_bytes_max, &self.ends[..]);
        is_line.then_some(Run {
            isa,
            bytes,
            ends,
            first_line,
            offset,
            line_bytes_max,
            ends_by_return,
        })
    }
}

/// A place in a buffer.
fn place(index: usize) -> u32 {
    u32::try_from(index).expect("a line has at most 2^30 bytes")
}
