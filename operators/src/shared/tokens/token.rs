//! Tokens, and the sinks that take tokens.

use std::ops::Range;

/// A token, as a part of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    text: &'a str,
    begin: usize,
    end: usize,
}

impl<'a> Token<'a> {
    /// The part of a text that is this range of its bytes.
    #[inline(always)]
    pub(crate) fn within(text: &'a str, Range { start, end }: Range<usize>) -> Self {
        Self { text, begin: start, end }
    }

    /// A whole text.
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, begin: 0, end: text.len() }
    }

    /// The first byte of the token in the text.
    #[inline(always)]
    pub(crate) fn begin(&self) -> usize {
        self.begin
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.end - self.begin
    }

    #[inline(always)]
    pub(crate) fn as_str(&self) -> &'a str {
        &self.text[self.begin..self.end]
    }

    /// The text of which the token is a part, and the range of its bytes there.
    #[inline(always)]
    pub(crate) fn part(&self) -> (&'a str, Range<usize>) {
        (self.text, self.begin..self.end)
    }

    /// The bytes of the token, and the bytes that follow in the text.
    #[inline(always)]
    pub(crate) fn bytes_and_more(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.begin..]
    }
}

/// A taker of the tokens of rows.
pub(crate) trait TokenSink {
    /// Takes the next token of a row. Returns whether the sink wants more.
    fn token(&mut self, token: Token<'_>) -> bool;

    /// Ends the row. Returns whether the sink wants another row.
    fn end_row(&mut self) -> bool;

    /// Whether the sink needs to know where rows end.
    const NEEDS_ROWS: bool;

    /// Takes all `words`, if they leave room for more. Otherwise the sink takes none and returns
    /// false.
    fn take_all(&mut self, words: Words<'_>) -> bool;
}

/// Words of a text, which may have several rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a> {
    /// The text of which the words are parts.
    pub(crate) text: &'a str,
    /// The first byte of each word.
    pub(crate) begins: &'a [u32],
    /// The first byte after each word.
    pub(crate) ends: &'a [u32],
    /// Number of words up to the end of each row that ends in the text, if the sink needs rows.
    /// Words after the last such end belong to a row that continues.
    pub(crate) row_ends: &'a [u32],
}

impl<'a> Words<'a> {
    /// Gives `sink` the words and the ends of rows in their order.
    #[inline(always)]
    pub(crate) fn for_each<S>(
        self,
        sink: &mut S,
        take: impl Fn(&mut S, Token<'a>),
        end_row: impl Fn(&mut S),
    ) {
        let Self { text, begins, ends, row_ends } = self;
        let mut words = begins.iter().zip(ends);
        let mut taken = 0;
        let last = u32::try_from(begins.len()).expect("words of a window");
        for (row, &row_end) in row_ends.iter().chain([&last]).enumerate() {
            for (&begin, &end) in words.by_ref().take((row_end - taken) as usize) {
                take(sink, Token::within(text, begin as usize..end as usize));
            }
            taken = row_end;
            if row < row_ends.len() {
                end_row(sink);
            }
        }
    }
}
