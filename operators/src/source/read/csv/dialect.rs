//! The dialect of a file of CSV: the characters with a meaning, and the quotes.

use csv_core::{Reader, ReaderBuilder, Terminator};

/// Characters of a file that have a meaning, and whether the first record names the columns.
#[derive(Debug, Clone)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) quote: u8,
    /// First character of a line that is not a record.
    pub(crate) comment: Option<u8>,
    pub(crate) has_header: bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { delimiter: b',', quote: b'"', comment: None, has_header: true }
    }
}

impl Dialect {
    /// A parser of records, for lines that end with a newline.
    pub(crate) fn parser(&self) -> Reader {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(self.delimiter).quote(self.quote);
        builder.terminator(Terminator::Any(b'\n'));
        builder.build()
    }
}

/// State of a record between two bytes. A quote opens at the beginning of a field only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    FieldBegins,
    Plain,
    Quoted,
    /// A quote inside of quotes: the quote ends the quotes, unless another quote follows.
    Quote,
}

impl State {
    /// The state after the next byte.
    pub(crate) fn after(self, byte: u8, dialect: &Dialect) -> Self {
        match (self, byte == dialect.quote) {
            (Self::FieldBegins | Self::Quote, true) => Self::Quoted,
            (Self::Quoted, true) => Self::Quote,
            (Self::Quoted, _) => Self::Quoted,
            _ if byte == dialect.delimiter => Self::FieldBegins,
            _ => Self::Plain,
        }
    }
}

/// Whether a quote is open after `line`, if a quote is open before the line (`is_quoted`) or not.
pub(crate) fn is_quoted_after(line: &[u8], dialect: &Dialect, is_quoted: bool) -> bool {
    let begin = if is_quoted { State::Quoted } else { State::FieldBegins };
    line.iter().fold(begin, |state, &byte| state.after(byte, dialect)) == State::Quoted
}
