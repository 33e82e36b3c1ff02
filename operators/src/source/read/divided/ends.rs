//! The places where records end.

use memchr::{memchr, memrchr};

use crate::source::read::csv::dialect::{Dialect, is_quoted_after};
use crate::source::read::text::lines::Run;

/// Finds the ends of the records of a file. The caller passes the lines in order.
pub(in super::super) trait RecordEnds: Send {
    /// Takes the next lines. Returns the number of lines up to the last line at whose end a record
    /// ends; `None` if the lines have to be passed one by one.
    fn last_in(&mut self, run: &Run<'_>) -> Option<usize>;
    /// Takes the next line. Returns whether a record ends at the end of the line.
    fn is_at(&mut self, line: &[u8]) -> bool;
    /// Ends the record at a line that is too long.
    fn end_record(&mut self);
    /// Whether the first record of the file has not ended, in a format whose blocks need the first
    /// record.
    fn is_before_head(&self) -> bool {
        false
    }
    /// Whether a line between two records is no record, such as a comment.
    fn is_passed_over(&self, _line: &[u8]) -> bool {
        false
    }
    /// Begins another file.
    fn begin_file(&mut self);
}

/// Ends of records in formats whose records are single lines.
pub(in super::super) struct EachLine;

impl RecordEnds for EachLine {
    fn last_in(&mut self, run: &Run<'_>) -> Option<usize> {
        Some(run.lines())
    }

    fn is_at(&mut self, _: &[u8]) -> bool {
        true
    }

    fn end_record(&mut self) {}

    fn begin_file(&mut self) {}
}

/// Ends of records in CSV, where an open quote continues the record in the next line.
pub(in super::super) struct QuotedRecords {
    dialect: Dialect,
    is_quoted: bool,
    has_head: bool,
}

impl QuotedRecords {
    pub(in super::super) fn new(dialect: Dialect) -> Self {
        Self { dialect, is_quoted: false, has_head: false }
    }

    /// The first byte of the record that is open at the end of `bytes`; `None` if no record is
    /// open. The caller passes bytes that begin with a line. A quote opens at the beginning of a
    /// field, and two quotes inside of quotes are one quote of the text.
    fn open_record(&mut self, bytes: &[u8]) -> Option<usize> {
        let Dialect { quote, delimiter, .. } = self.dialect;
        let mut record = 0;
        // `from` is the first byte that has not been read, and `after` the first byte after the
        // last quoted text.
        let (mut from, mut after) = (0, 0);
        while let Some(at) = memchr(quote, &bytes[from..]) {
            let at = from + at;
            if self.is_quoted {
                let is_text = bytes.get(at + 1) == Some(&quote);
                self.is_quoted = is_text;
                from = at + 1 + usize::from(is_text);
                after = from;
                continue;
            }
            let before = at.checked_sub(1).map(|before| bytes[before]);
            if before.is_none_or(|byte| byte == b'\n' || byte == delimiter) {
                if let Some(newline) = memrchr(b'\n', &bytes[after..at]) {
                    record = after + newline + 1;
                }
                self.is_quoted = true;
            }
            from = at + 1;
        }
        self.is_quoted.then_some(record)
    }
}

impl RecordEnds for QuotedRecords {
    fn last_in(&mut self, run: &Run<'_>) -> Option<usize> {
        let bytes = run.bytes();
        let may_have_comments =
            self.dialect.comment.is_some_and(|comment| memchr(comment, bytes).is_some());
        if !self.has_head || may_have_comments || !run.is_accepted() {
            return None;
        }
        Some(match self.open_record(bytes) {
            None => run.lines(),
            Some(begin) => run.ends.partition_point(|&end| (end as usize) < begin),
        })
    }

    fn is_at(&mut self, line: &[u8]) -> bool {
        if !self.is_quoted && self.is_passed_over(line) {
            return true;
        }
        if self.is_quoted || memchr(self.dialect.quote, line).is_some() {
            self.is_quoted = is_quoted_after(line, &self.dialect, self.is_quoted);
        }
        self.has_head |= !self.is_quoted;
        !self.is_quoted
    }

    fn end_record(&mut self) {
        (self.is_quoted, self.has_head) = (false, true);
    }

    fn is_before_head(&self) -> bool {
        !self.has_head
    }

    fn is_passed_over(&self, line: &[u8]) -> bool {
        line.first().is_none_or(|&byte| Some(byte) == self.dialect.comment)
    }

    fn begin_file(&mut self) {
        (self.is_quoted, self.has_head) = (false, false);
    }
}
