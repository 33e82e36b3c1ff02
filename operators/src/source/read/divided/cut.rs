//! CUT: the format of lines that makes blocks instead of rows.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use encoding_rs::Encoding;
use trommel_engine::batch::Chunk;
use trommel_engine::memory::{MemoryBudget, Reservation};
use trommel_engine::operator::Output;

use super::super::error::ReadError;
use super::PAUSE;
use super::block::{Block, Lines, RawLine, Then, raw_lines};
use super::ends::RecordEnds;
use crate::source::read::files::input::Inputs;
use crate::source::read::text::lines::{LineFormat, Run};

/// Bytes of lines that need no reservation.
const UNRESERVED_BYTES: usize = 512 << 10;
/// Bytes at which a block is sent alone.
const LONG_BYTES: usize = 1 << 20;
/// Bytes that a block counts in addition to its lines.
const BLOCK_OVERHEAD_BYTES: usize = 8 << 10;

/// The first record of the open file.
enum Head {
    /// The record has not ended; its lines so far.
    Open(Lines),
    Known(Arc<Lines>),
    /// The record cannot be used, so the file cannot be used.
    Bad,
}

impl Default for Head {
    fn default() -> Self {
        Self::Open(Lines::default())
    }
}

/// Path and encoding of a file.
type File = (Arc<str>, &'static Encoding);

/// Makes blocks of lines.
pub(super) struct Blocks<E> {
    ends: E,
    schema: SchemaRef,
    line_bytes_max: usize,
    /// Path and encoding of the open file, and its first record.
    file: Option<File>,
    head: Head,
    /// Lines that have not been sent, and the number of lines up to the last end of a record.
    open: Lines,
    complete: usize,
    /// Bytes of the lines up to the last end of a record.
    complete_bytes: usize,
    /// The first record of the file, if the record ended before the first open line.
    open_head: Option<Arc<Lines>>,
    /// Whether lines are passed over, up to the end of a record that is too long.
    is_dropping: bool,
    /// Number of lines in all files before the open lines.
    lines_before: u64,
    /// Blocks that can be sent, and the sum of the bytes that the blocks count.
    ready: Vec<Block>,
    ready_bytes: usize,
    memory: Option<MemoryBudget>,
    room: Reservation,
    /// Counts the blocks that are under way: each such block holds a reference.
    under_way: Arc<()>,
    /// Whether a long block waits or is under way.
    is_waiting: bool,
}

impl<E: RecordEnds> Blocks<E> {
    /// Makes blocks of records that have at most `line_bytes_max` bytes each.
    pub(super) fn new(ends: E, line_bytes_max: usize) -> Self {
        Self {
            ends,
            schema: Arc::new(Schema::empty()),
            line_bytes_max,
            file: None,
            head: Head::default(),
            open: Lines::default(),
            complete: 0,
            complete_bytes: 0,
            open_head: None,
            is_dropping: false,
            lines_before: 0,
            ready: Vec::new(),
            ready_bytes: 0,
            memory: None,
            room: Reservation::default(),
            under_way: Arc::new(()),
            is_waiting: false,
        }
    }

    /// Takes memory for long lines from this budget.
    pub(super) fn within(self, memory: &MemoryBudget) -> Self {
        Self { memory: Some(memory.clone()), room: memory.reservation(), ..self }
    }

    fn begin_file(&mut self, inputs: &Inputs) {
        if self.file.is_none() {
            self.file = Some((inputs.path(), inputs.line_encoding()));
            self.ends.begin_file();
            (self.head, self.is_dropping) = (Head::default(), false);
        }
    }

    /// Whether the open file is left out.
    fn is_left_out(&self) -> bool {
        matches!(self.head, Head::Bad)
    }

    /// Keeps the first record of the file for a block that begins with the next line.
    fn begin_lines(&mut self) {
        if self.open.len() == 0 {
            self.open_head = match &self.head {
                Head::Known(head) => Some(Arc::clone(head)),
                Head::Open(_) | Head::Bad => None,
            };
        }
    }

    fn complete_all(&mut self) {
        (self.complete, self.complete_bytes) = (self.open.len(), self.open.bytes());
    }

    /// Adds a line, which may end a record.
    fn add(&mut self, line: RawLine<'_>, run: &Run<'_>) {
        let is_too_long = line.content.len() > self.line_bytes_max;
        if self.is_left_out() {
            return self.drop_line(line, run, is_too_long);
        }
        // A comment before the first record is not part of the record.
        let is_of_head = self.ends.is_before_head()
            && (!self.ends.is_passed_over(line.content) || self.is_within_head());
        // A line that is too long ends its record, whatever quotes the line has.
        let is_end = is_too_long || self.ends.is_at(line.content);
        // The worker refuses the record, so its remaining lines make no rows.
        if self.is_dropping {
            self.is_dropping = !is_end;
            if is_too_long {
                self.ends.end_record();
            }
            return self.drop_line(line, run, is_too_long);
        }
        self.begin_lines();
        self.open.push(line, run);
        if is_too_long {
            self.end_bad_record();
        } else if is_of_head && let Head::Open(head) = &mut self.head {
            head.push(line, run);
            if !self.ends.is_before_head() {
                self.head = Head::Known(Arc::new(mem::take(head)));
            }
        }
        if is_end {
            self.complete_all();
        }
    }

    /// Passes over a line that belongs to no record.
    fn drop_line(&mut self, line: RawLine<'_>, run: &Run<'_>, is_too_long: bool) {
        if is_too_long {
            let mut lines = Lines::default();
            lines.push(line, run);
            self.push_left_out(lines, Then::Record);
        } else {
            self.lines_before += 1;
        }
    }

    fn is_within_head(&self) -> bool {
        matches!(&self.head, Head::Open(head) if head.len() > 0)
    }

    /// Asks for memory for the open lines.
    fn reserve(&mut self, inputs: &Inputs) -> Result<(), ReadError> {
        let bytes = self.open.bytes();
        let wanted = bytes.next_power_of_two();
        if bytes <= UNRESERVED_BYTES || wanted <= self.room.bytes() {
            return Ok(());
        }
        let line = self.open.first_line();
        self.room.resize(wanted).map_err(|full| inputs.no_memory(line, full))
    }

    /// Makes a block of the first `lines` open lines.
    fn close(&mut self, lines: usize, then: Then) {
        let (path, encoding) = self.file.clone().expect("a file is open");
        let lines = self.open.take(lines);
        self.push((path, encoding), lines, then, false);
        (self.complete, self.complete_bytes) = (0, 0);
        // The remaining lines begin with a record, so the next block gets the first record that is
        // known now.
        if let Head::Known(head) = &self.head {
            self.open_head = Some(Arc::clone(head));
        }
    }

    /// Makes a block of lines that belong to no record.
    fn push_left_out(&mut self, lines: Lines, then: Then) {
        if self.open.len() > 0 {
            self.close(self.open.len(), Then::Record);
        }
        let file = self.file.clone().expect("a file is open");
        self.push(file, lines, then, true);
    }

    fn push(&mut self, (path, encoding): File, lines: Lines, then: Then, is_left_out: bool) {
        let next = self.memory.as_ref().map(MemoryBudget::reservation).unwrap_or_default();
        let block = Block {
            path,
            encoding,
            head: self.open_head.clone(),
            lines_before: self.lines_before,
            is_left_out,
            then,
            rejected: None,
            _room: mem::replace(&mut self.room, next),
            _under_way: Arc::clone(&self.under_way),
            lines,
        };
        self.lines_before += block.lines.len() as u64;
        self.ready_bytes += block.bytes() + BLOCK_OVERHEAD_BYTES;
        self.ready.push(block);
    }

    /// Gives up the file if the record that ends here is its first record.
    fn end_bad_record(&mut self) {
        if self.ends.is_before_head() {
            self.head = Head::Bad;
        }
        self.ends.end_record();
    }

    fn is_any_under_way(&self) -> bool {
        // The reader and each block that waits hold a reference, too.
        Arc::strong_count(&self.under_way) > 1 + self.ready.len()
    }
}

impl<E: RecordEnds> LineFormat for Blocks<E> {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn append(&mut self, run: &Run<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        self.begin_file(inputs);
        // A file that is left out makes no rows; only its long lines are refused, one by one.
        if self.is_left_out() && run.is_accepted() {
            self.lines_before += run.lines() as u64;
            return Ok(());
        }
        let is_usual = !self.is_left_out() && !self.is_dropping;
        match is_usual.then(|| self.ends.last_in(run)).flatten() {
            Some(ended) => {
                self.begin_lines();
                let before = self.open.len();
                self.open.extend(run);
                if ended > 0 {
                    self.complete = before + ended;
                    self.complete_bytes = self.open.bytes_of(self.complete);
                }
            }
            None => raw_lines(run).for_each(|line| self.add(line, run)),
        }
        // Of two bytes, one at most is a quote that the parser drops. A record of more than twice
        // the limit is therefore too long for the worker, too.
        let record_bytes = self.open.bytes() - self.complete_bytes;
        if record_bytes > 2 * self.line_bytes_max + 4 {
            if self.complete > 0 {
                self.close(self.complete, Then::Record);
            }
            let next = self.open.first_line() + self.open.len() as u64;
            self.close(self.open.len(), Then::LongRecord(next));
            self.is_dropping = true;
            if self.ends.is_before_head() {
                self.head = Head::Bad;
            }
        }
        self.reserve(inputs)
    }

    fn pass_over(&mut self, _: &mut Inputs, _: u64) -> Result<(), ReadError> {
        Ok(())
    }

    fn refuse_long(
        &mut self,
        inputs: &mut Inputs,
        line: u64,
        _bytes_max: usize,
    ) -> Result<(), ReadError> {
        self.begin_file(inputs);
        if self.is_left_out() || self.is_dropping {
            self.push_left_out(Lines::default(), Then::LongLine(line));
            self.ends.end_record();
            self.is_dropping = false;
        } else {
            self.begin_lines();
            self.close(self.open.len(), Then::LongLine(line));
            self.end_bad_record();
        }
        self.lines_before += 1;
        Ok(())
    }

    fn end_file(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        self.begin_file(inputs);
        if !self.is_left_out() {
            self.begin_lines();
            self.close(self.open.len(), Then::FileEnd);
        } else if self.open.len() > 0 {
            // The open lines end with the unusable first record, which the worker refuses.
            self.close(self.open.len(), Then::Record);
        }
        self.file = None;
        Ok(())
    }

    fn abandon(&mut self) -> usize {
        let bytes = self.open.bytes() - self.complete_bytes;
        if self.complete > 0 {
            self.close(self.complete, Then::Record);
        }
        self.open = Lines::default();
        self.file = None;
        bytes
    }

    fn rows(&self) -> usize {
        // A block without lines also waits, so each block counts one more row.
        self.ready.iter().map(|block| block.lines.len() + 1).sum::<usize>() + self.complete
    }

    fn bytes(&self) -> usize {
        self.ready_bytes + self.complete_bytes
    }

    fn take(&mut self) -> RecordBatch {
        RecordBatch::new_empty(Arc::clone(&self.schema))
    }

    fn send(&mut self, inputs: &mut Inputs, out: &mut Output) {
        if self.complete > 0 {
            self.close(self.complete, Then::Record);
        }
        if self.ready.is_empty() && inputs.rows_waiting(0) > 0 {
            let file = (inputs.path(), inputs.line_encoding());
            self.push(file, Lines::default(), Then::Record, true);
        }
        if let Some(first) = self.ready.first_mut().filter(|first| first.rejected.is_none()) {
            first.rejected = inputs.take_rejected();
        }
        let is_long = self.ready.iter().any(|block| block.lines.bytes() > LONG_BYTES);
        self.is_waiting |= is_long;
        if is_long && self.is_any_under_way() {
            return;
        }
        self.ready_bytes = 0;
        for block in self.ready.drain(..) {
            let (items, bytes) = (block.lines.len(), block.bytes());
            out.send_chunk(Chunk::new(block, items, bytes));
        }
    }

    fn wait(&mut self) -> Option<Duration> {
        self.is_waiting &= self.is_any_under_way();
        self.is_waiting.then_some(PAUSE)
    }
}
