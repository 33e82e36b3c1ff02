//! The places where records end.

use memchr::memchr;

use super::super::csv::{Dialect, is_quoted_after};
use super::super::lines::Run;

/// Finds the ends of the records of a file, whose lines come in order.
pub(in super::super) trait RecordEnds: Send {
    /// Whether a record ends at the end of each line of a run; `false` if they have to be looked at
    /// one by one.
    fn are_at_all(&mut self, run: &Run<'_>) -> bool;
    /// Takes the next line; whether a record ends at its end.
    fn is_at(&mut self, line: &[u8]) -> bool;
    /// The record ends with a line that is too long.
    fn end_record(&mut self);
    /// Whether the next record of the file is its first one, if the first one matters to others.
    fn is_before_head(&self) -> bool {
        false
    }
    /// Whether a line between two records is none.
    fn is_passed_over(&self, _line: &[u8]) -> bool {
        false
    }
    /// Another file begins.
    fn begin_file(&mut self);
}

/// Each line is a record.
pub(in super::super) struct EachLine;

impl RecordEnds for EachLine {
    fn are_at_all(&mut self, _: &Run<'_>) -> bool {
        true
    }

    fn is_at(&mut self, _: &[u8]) -> bool {
        true
    }

    fn end_record(&mut self) {}

    fn begin_file(&mut self) {}
}

/// A record of CSV goes on in the next line if a quote is open.
pub(in super::super) struct QuotedRecords {
    dialect: Dialect,
    is_quoted: bool,
    has_head: bool,
}

impl QuotedRecords {
    pub(in super::super) fn new(dialect: Dialect) -> Self {
        Self { dialect, is_quoted: false, has_head: false }
    }
}

impl RecordEnds for QuotedRecords {
    fn are_at_all(&mut self, run: &Run<'_>) -> bool {
        self.has_head && !self.is_quoted && memchr(self.dialect.quote, run.bytes()).is_none()
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
