//! Words by Unicode Standard Annex 29, in lower case.
//!
//! A text is read in windows, and a window in blocks of 64 bytes. Each block has masks with a bit
//! for each byte. One mask marks the bytes of letters, digits, underscores and ideographs; another
//! mask marks the signs that join two letters or two digits. Words are the runs of ones in both
//! masks together, which a third mask cuts at ideographs. `é` has two bytes here, and `中` three:
//!
//! ```text
//! text      d o n ' t   s t o p ,   p r é . s   中. . 文. .   e ◌́ . x
//! words     1 1 1 0 1 0 1 1 1 1 0 0 1 1 1 1 1 0 1 1 1 1 1 1 0 1 0 0 1
//! joined    0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
//! breaks    0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 1 0 0 1 0 0 0 0
//! special   0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 0
//! ```
//!
//! A run of underscores alone is no word. If a block has a special character, such as an accent
//! that belongs to the letter before it, `general` goes from character to character. The page
//! `docs/reference/word-masks.md` explains the masks line by line, with a whole block as an
//! example.
//!
//! Unicode has a word boundary before a run of white space, regardless of its neighbours. (After a
//! run of white space there may be no boundary: a combining mark belongs to the space before it.) A
//! text can therefore be cut before white space into windows, each of which is put into lower case
//! at once. A text without white space is cut between ideographs. The rows of a column lie one
//! after the other, so short rows share a window, and a word ends at the end of its row.
//!
//! Source: Unicode Standard Annex 29, §4.1; its rules are in brackets, as (WB6). The crate
//! `unicode-segmentation` has all rules, and is the reference of the tests. The masks are those of
//! Langdale and Lemire, *Parsing gigabytes of JSON per second*, 2019.
//!
//! | file | contents |
//! |---|---|
//! | `mask` | masks of 64 bytes |
//! | `runs` | words by the runs of a mask |
//! | `plain` | all words of a window at once, if none of its blocks has a special character |
//! | `general` | words of any text |
//! | `class` | classes of characters |

mod class;
mod general;
mod mask;
mod plain;
mod runs;

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use arrow_array::{Array, StringArray};
use memchr::{memchr_iter, memrchr_iter};

use trommel_kernels::Isa;

use super::token::{Token, TokenSink};

use self::mask::Window;
use self::plain::PlainWindow;

/// Bytes of a window. A tokenizer can stop after any word, and then reads the rest of the window
/// again, so a window is short.
const WINDOW: usize = 1024;

/// Characters at the end of a window among which [`between_ideographs`] looks for a boundary.
const IDEOGRAPHS_TRIED: usize = 64;

/// The position of a byte in a column of texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TextPosition {
    pub(crate) row: usize,
    /// The byte in the row.
    pub(crate) at: usize,
}

impl TextPosition {
    /// The beginning of the row after this one.
    fn next_row(self) -> Self {
        Self { row: self.row + 1, at: 0 }
    }
}

/// Buffers of a tokenizer, used again for each window.
#[derive(Debug)]
pub(crate) struct Buffers {
    isa: Isa,
    window: Window,
    /// One word in lower case.
    word: String,
    /// Ends of the rows of a window, from its beginning.
    ends: Vec<usize>,
    plain: PlainWindow,
}

impl Buffers {
    /// Buffers for words on this level.
    pub(crate) fn new(isa: Isa) -> Self {
        Self {
            isa,
            window: Window::new(),
            word: String::new(),
            ends: Vec::new(),
            plain: PlainWindow::new(),
        }
    }

    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }
}

/// Gives `sink` the words of `texts`, which have no nulls, from a position on, as long as the sink
/// wants more. Returns the position at which to continue; a row past the last one if nothing is
/// left.
pub(crate) fn words_of_rows<S: TokenSink>(
    texts: &StringArray,
    mut from: TextPosition,
    buffers: &mut Buffers,
    sink: &mut S,
) -> TextPosition {
    while from.row < texts.len() {
        buffers.find_row_ends(texts, from);
        let next = match buffers.ends.len() {
            ..2 => buffers.words_of_long_row(texts, from, sink),
            2.. => buffers.words_of_short_rows(texts, from, sink),
        };
        match next {
            ControlFlow::Continue(next) => from = next,
            ControlFlow::Break(stopped) => return stopped,
        }
    }
    from
}

/// A step over some words of a column: the position of the next step, or the position at which the
/// sink wants no more.
type Step = ControlFlow<TextPosition, TextPosition>;

impl Buffers {
    /// Finds the ends of the rows that end in the window from a position on.
    fn find_row_ends(&mut self, texts: &StringArray, from: TextPosition) {
        let begin = byte_of(texts, from);
        let offsets = &texts.value_offsets()[from.row + 1..];
        let offsets = &offsets[..offsets.len().min(WINDOW)];
        let rows = offsets.partition_point(|&end| to_byte(end) - begin <= WINDOW);
        self.ends.clear();
        self.ends.extend(offsets[..rows].iter().map(|&end| to_byte(end) - begin));
    }

    /// Words of rows that share a window.
    fn words_of_short_rows<S: TokenSink>(
        &mut self,
        texts: &StringArray,
        from: TextPosition,
        sink: &mut S,
    ) -> Step {
        let Self { isa, window, word, ends, plain } = self;
        let begin = byte_of(texts, from);
        let bytes = &texts.value_data()[begin..begin + ends[ends.len() - 1]];
        let text = simdutf8::basic::from_utf8(bytes).expect("rows of a text column");
        let (lower, blocks) = window.fill(*isa, text);
        let after = TextPosition { row: from.row + ends.len(), at: 0 };
        if plain.take_words(*isa, lower, &blocks, ends, sink) {
            return ControlFlow::Continue(after);
        }
        match runs::words_of_rows(text, lower, &blocks, ends, word, sink) {
            ControlFlow::Continue(()) => ControlFlow::Continue(after),
            ControlFlow::Break((row, at)) => {
                // Positions of the first row count from the beginning of the window.
                let before = if row == 0 { from.at } else { 0 };
                ControlFlow::Break(TextPosition { row: from.row + row, at: before + at })
            }
        }
    }

    /// Words of a row that has windows of its own: of one window at once if it is plain, and
    /// otherwise of the whole rest of the row.
    fn words_of_long_row<S: TokenSink>(
        &mut self,
        texts: &StringArray,
        from: TextPosition,
        sink: &mut S,
    ) -> Step {
        if let Some(next) = self.plain_window_of_row(texts, from, sink) {
            return ControlFlow::Continue(next);
        }
        let mut goes_on = true;
        let at = words(texts.value(from.row), from.at, self, |word| {
            goes_on = sink.token(word);
            goes_on
        });
        if !goes_on {
            return ControlFlow::Break(TextPosition { at, ..from });
        }
        let next = from.next_row();
        if sink.end_row() { ControlFlow::Continue(next) } else { ControlFlow::Break(next) }
    }

    /// Gives `sink` all words of the next window of a row, if the window is plain and the sink has
    /// room. Returns the position after the window.
    fn plain_window_of_row<S: TokenSink>(
        &mut self,
        texts: &StringArray,
        from: TextPosition,
        sink: &mut S,
    ) -> Option<TextPosition> {
        let Self { isa, window, ends, plain, .. } = self;
        let rest = &texts.value(from.row)[from.at..];
        let len = window_len(rest)?;
        let (lower, blocks) = window.fill(*isa, &rest[..len]);
        let ends_row = len == rest.len();
        ends.clear();
        ends.extend(ends_row.then_some(len));
        let next =
            if ends_row { from.next_row() } else { TextPosition { at: from.at + len, ..from } };
        plain.take_words(*isa, lower, &blocks, ends, sink).then_some(next)
    }
}

/// The byte of the column at a position.
fn byte_of(texts: &StringArray, position: TextPosition) -> usize {
    to_byte(texts.value_offsets()[position.row]) + position.at
}

fn to_byte(offset: i32) -> usize {
    usize::try_from(offset).expect("offsets are not negative")
}

/// Calls `sink` with the words from byte `at` on until it returns false. Returns the byte at which
/// to continue; the length of the text if nothing is left.
pub(crate) fn words(
    text: &str,
    at: usize,
    buffers: &mut Buffers,
    mut sink: impl FnMut(Token<'_>) -> bool,
) -> usize {
    let Buffers { isa, window, word, .. } = buffers;
    let (mut at, mut goes_on) = (at, true);
    while goes_on && at < text.len() {
        let mut watched = |word: Token<'_>| {
            goes_on = sink(word);
            goes_on
        };
        let rest = &text[at..];
        at += match window_len(rest) {
            Some(len) => {
                let text = &rest[..len];
                let (lower, blocks) = window.fill(*isa, text);
                runs::words(text, lower, &blocks, word, watched)
            }
            None => {
                let mut watched = |word: &str| watched(Token::of(word));
                general::words(rest, 0, 0..WINDOW, word, &mut watched).at
            }
        };
    }
    at
}

/// Length of a window at the beginning of `text`, up to its end or a cut, in bytes.
fn window_len(text: &str) -> Option<usize> {
    if text.len() <= WINDOW {
        return Some(text.len());
    }
    let mut spaces = memrchr_iter(b' ', &text.as_bytes()[..WINDOW]);
    spaces.find(|&space| is_cut(text, space)).or_else(|| between_ideographs(text))
}

/// The last boundary between two ideographs at the end of a window.
fn between_ideographs(text: &str) -> Option<usize> {
    let window = &text[..text.floor_char_boundary(WINDOW)];
    let mut ideographs = window.char_indices().rev().take(IDEOGRAPHS_TRIED);
    let is_ideograph = |at: usize| class::at(text, at).0 == class::ALONE;
    let mut is_last = false;
    ideographs.find_map(|(at, c)| {
        let is_before_last = std::mem::replace(&mut is_last, is_ideograph(at)) && is_last;
        is_before_last.then_some(at + c.len_utf8())
    })
}

/// Length of the stretch at the beginning of `text`, up to the next cut, in bytes.
fn mixed_len(text: &str) -> usize {
    let mut spaces = memchr_iter(b' ', text.as_bytes());
    spaces.find(|&space| is_cut(text, space)).unwrap_or(text.len())
}

/// True if the space at this index begins a run of white space.
fn is_cut(text: &str, space: usize) -> bool {
    space > 0 && !text[..space].ends_with(char::is_whitespace)
}
