//! Words by Unicode Standard Annex 29, in lower case.
//!
//! A mask of 64 bytes has a bit for each byte of a letter, a digit, an underscore or an ideograph.
//! Another one has a bit for each sign that joins two letters or two digits. Words are the runs of
//! ones of both, which a third one cuts at ideographs. `é` has two bytes here, and `中` three:
//!
//! ```text
//! text      d o n ' t   s t o p ,   p r é . s   中. . 文. .   e ◌́ . x
//! words     1 1 1 0 1 0 1 1 1 1 0 0 1 1 1 1 1 0 1 1 1 1 1 1 0 1 0 0 1
//! joined    0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
//! breaks    0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 1 0 0 1 0 0 0 0
//! special   0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 0
//! ```
//!
//! Only underscores alone are no word. Where a block has a special character, such as an accent
//! that belongs to the letter before it, `general` goes from character to character.
//!
//! Unicode has a word boundary before a run of white space, regardless of its neighbours (but not
//! after it: a combining mark belongs to the space before it). So the text can be cut there into
//! windows, each of which is put into lower case at once; without white space, between ideographs.
//! Rows of a column lie one after the other, so that short ones share a window, and a word ends at
//! the end of its row.
//!
//! Source: Unicode Standard Annex 29, §4.1; its rules are in brackets, as (WB6). The crate
//! `unicode-segmentation` has them all, and is the reference of the tests. The masks are those of
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

use arrow_array::{Array, StringArray};
use memchr::{memchr_iter, memrchr_iter};

use trommel_kernels::Isa;

use super::token::{Token, TokenSink};

use self::mask::Window;
use self::plain::PlainWindow;

/// Bytes that are looked at in advance. A tokenizer can stop anywhere, so they are looked at again
/// when it goes on.
const WINDOW: usize = 1024;

/// Characters at the end of a window among which a boundary between ideographs is looked for.
const IDEOGRAPHS_TRIED: usize = 64;

/// A place in a column of texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) row: usize,
    /// Byte of the row.
    pub(crate) at: usize,
}

/// Reused buffers.
#[derive(Debug)]
pub(crate) struct Buffers {
    isa: Isa,
    window: Window,
    /// One word in lower case.
    word: String,
    /// Ends of the rows of a window.
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

/// Gives `sink` the words of `texts`, which have no nulls, from a place on, as long as it wants
/// more. Returns the place at which to continue; a row past the last one if nothing is left.
pub(crate) fn words_of_rows<S: TokenSink>(
    texts: &StringArray,
    mut from: Place,
    buffers: &mut Buffers,
    sink: &mut S,
) -> Place {
    let place = |offset: i32| usize::try_from(offset).expect("not negative");
    while from.row < texts.len() {
        let begin = place(texts.value_offsets()[from.row]) + from.at;
        let Buffers { isa, window, word, ends, plain } = buffers;
        ends.clear();
        let offsets = &texts.value_offsets()[from.row + 1..];
        let offsets = &offsets[..offsets.len().min(WINDOW)];
        let rows = offsets.partition_point(|&end| place(end) - begin <= WINDOW);
        ends.extend(offsets[..rows].iter().map(|&end| place(end) - begin));
        // A long row has windows of its own.
        if ends.len() < 2 {
            let rest = &texts.value(from.row)[from.at..];
            if let Some(len) = window_len(rest) {
                let (lower, blocks) = window.fill(*isa, &rest[..len]);
                ends.clear();
                ends.extend(Some(len).filter(|len| *len == rest.len()));
                if plain.take_words(*isa, lower, &blocks, ends, sink) {
                    from = match ends.is_empty() {
                        true => Place { at: from.at + len, ..from },
                        false => Place { row: from.row + 1, at: 0 },
                    };
                    continue;
                }
            }
            let mut goes_on = true;
            from.at = words(texts.value(from.row), from.at, buffers, |word| {
                goes_on = sink.token(word);
                goes_on
            });
            if !goes_on {
                return from;
            }
            from = Place { row: from.row + 1, at: 0 };
            if !sink.end_row() {
                return from;
            }
            continue;
        }
        let bytes = &texts.value_data()[begin..begin + ends[ends.len() - 1]];
        let text = simdutf8::basic::from_utf8(bytes).expect("rows of a text column");
        let (lower, blocks) = window.fill(*isa, text);
        if plain.take_words(*isa, lower, &blocks, ends, sink) {
            from = Place { row: from.row + ends.len(), at: 0 };
            continue;
        }
        let stopped = runs::words_of_rows(text, lower, &blocks, ends, word, sink);
        if let Some((row, at)) = stopped {
            let before = if row == 0 { from.at } else { 0 };
            return Place { row: from.row + row, at: before + at };
        }
        from = Place { row: from.row + ends.len(), at: 0 };
    }
    from
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
