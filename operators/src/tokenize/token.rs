//! Tokens, and what takes them.

use std::ops::Range;

/// A token, as a part of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    text: &'a str,
    begin: usize,
    end: usize,
}

impl<'a> Token<'a> {
    /// The part of a text that is this range of its bytes.
    #[inline(always)]
    pub(super) fn within(text: &'a str, Range { start, end }: Range<usize>) -> Self {
        Self { text, begin: start, end }
    }

    /// A whole text.
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, begin: 0, end: text.len() }
    }

    /// Its first byte in the text.
    #[inline(always)]
    pub(super) fn begin(&self) -> usize {
        self.begin
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.end - self.begin
    }

    #[inline(always)]
    pub(super) fn as_str(&self) -> &'a str {
        &self.text[self.begin..self.end]
    }

    /// The text that it is a part of, and the range of its bytes there.
    #[inline(always)]
    pub(super) fn part(&self) -> (&'a str, Range<usize>) {
        (self.text, self.begin..self.end)
    }

    /// Its bytes, and what follows it.
    #[inline(always)]
    pub(super) fn bytes_and_more(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.begin..]
    }
}

/// Takes the tokens of rows.
pub(super) trait TokenSink {
    /// Takes the next token of a row. Returns whether it wants more.
    fn token(&mut self, token: Token<'_>) -> bool;

    /// Ends the row. Returns whether it wants another one.
    fn end_row(&mut self) -> bool;

    /// Whether it needs to know where rows end.
    const NEEDS_ROWS: bool;

    /// Takes all tokens of `text` between these bytes, which may be of several rows, if they leave
    /// room for more. Otherwise takes none and returns false.
    fn take_all(&mut self, text: &str, begins: &[u32], ends: &[u32]) -> bool;
}
