//! Words by the runs of masks.
//!
//! A run is a sequence of ones in a mask. [`words`] goes from block to block in one of two modes:
//!
//! ```text
//!             begin_general
//!   ┌───────┐ ────────────► ┌─────────┐
//!   │ plain │               │ general │
//!   └───────┘ ◄──────────── └─────────┘
//!             is_plain, after general_end
//! ```
//!
//! In a plain block, the words are the runs of [`Cuts::runs`]. In a general block, a run contains
//! every character that is not ASCII, and the text after the end of a run decides what the run is:
//! a word, the first part of a word, or something for the rules of any text ([`general`]). The page
//! `docs/reference/word-masks.md` goes through both modes with an example.

use std::ops::{ControlFlow, Range};

use super::class::{self, BETWEEN, of_byte};
use super::general;
use super::mask::{BLOCK, Blocks, Cuts, Masks};
use crate::shared::tokens::token::{Token, TokenSink};

/// A window as it is, and in lower case.
#[derive(Clone, Copy)]
struct WindowText<'a> {
    text: &'a str,
    /// The lower case as far as plain blocks need it. Bytes of no word may follow the text.
    lower: &'a str,
}

/// The run that a block leaves open for the next block.
#[derive(Default)]
struct OpenRun {
    /// Start of the run. After a byte that joins two runs, the start of the first run.
    start: usize,
    /// End of the last word.
    last: usize,
    /// Whether the last byte is in a run.
    is_inside: bool,
    /// Whether the byte after the last run joins it with the next run.
    is_joined: bool,
    /// Whether the run has bytes that are not ASCII.
    is_wide: bool,
    /// Whether the last block was general.
    is_general: bool,
}

/// Calls `sink` with the words of a window until it returns false. Returns the byte at which to
/// continue; the length of the text if nothing is left.
///
/// `lower` is the lower case of `text` as far as plain blocks need it; bytes of no word may follow.
/// `blocks` has the masks of the text.
pub(super) fn words(
    text: &str,
    lower: &str,
    blocks: &Blocks<'_>,
    word: &mut String,
    mut sink: impl FnMut(Token<'_>) -> bool,
) -> usize {
    let window = WindowText { text, lower };
    let mut run = OpenRun::default();
    // Blocks before this byte are general, since the first of these blocks was.
    let mut general_end = 0;
    let mut base = 0;
    // A block past the end closes a word that ends with the text.
    while base <= text.len() {
        let masks = blocks.at(base);
        if base >= general_end && run.is_plain(masks) {
            if !run.plain_words(masks, Cuts::default(), base, lower, &mut sink) {
                return run.last;
            }
            base += BLOCK;
        } else if !run.is_general {
            general_end = base + BLOCK;
            base = run.begin_general(text, base);
        } else {
            match run.general_words(masks, base, window, word, &mut sink) {
                ControlFlow::Continue(next) => base = next,
                ControlFlow::Break(stopped) => return stopped,
            }
        }
    }
    text.len()
}

/// Gives `sink` the words of the rows of a window, which lie one after the other and end at `ends`.
/// Breaks with the row and its byte at which to continue, if the sink wants no more.
pub(super) fn words_of_rows(
    text: &str,
    lower: &str,
    blocks: &Blocks<'_>,
    ends: &[usize],
    word: &mut String,
    sink: &mut impl TokenSink,
) -> ControlFlow<(usize, usize)> {
    let window = WindowText { text, lower };
    let mut run = OpenRun::default();
    let mut rows = WindowRows { ends, next: 0, ended: 0, sink };
    let mut base = 0;
    while rows.next < ends.len() {
        let masks = blocks.at(base);
        if run.is_plain(masks) {
            rows.plain_words(&mut run, masks, base, lower)?;
            base += BLOCK;
        } else {
            base = rows.rest_of_row(run.last, window, blocks, word)?;
            // The masks begin again with the next row, at any byte.
            run = OpenRun { last: base, ..OpenRun::default() };
        }
    }
    if rows.end_before(usize::MAX) {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break((rows.ended, 0))
    }
}

/// The rows of a window, which end as their words are taken.
struct WindowRows<'a, S> {
    ends: &'a [usize],
    /// The row that the next block begins in, or with.
    next: usize,
    /// Number of rows whose ends the sink knows.
    ended: usize,
    sink: &'a mut S,
}

impl<S: TokenSink> WindowRows<'_, S> {
    /// Takes the words of a plain block, between the ends of its rows.
    #[inline(always)]
    fn plain_words(
        &mut self,
        run: &mut OpenRun,
        masks: Masks,
        base: usize,
        lower: &str,
    ) -> ControlFlow<(usize, usize)> {
        let (cuts, next) = self.cuts(base);
        let mut goes_on = true;
        let mut add = |token: Token<'_>| {
            goes_on = self.end_before(token.begin());
            goes_on && self.sink.token(token)
        };
        if !run.plain_words(masks, cuts, base, lower, &mut add) {
            let at = if goes_on { run.last - self.begin_of(self.ended) } else { 0 };
            return ControlFlow::Break((self.ended, at));
        }
        self.next = next;
        ControlFlow::Continue(())
    }

    /// The ends of rows in the block from byte `base` on, and the row that the next block begins
    /// in. A row that ends with the last byte of the block is looked at in the next block, too.
    #[inline(always)]
    fn cuts(&self, base: usize) -> (Cuts, usize) {
        let (mut cuts, mut next) = (Cuts::default(), self.next);
        if self.begin_of(self.next) == base {
            cuts.add(0);
        }
        for end in self.ends[self.next..].iter().take_while(|end| **end <= base + BLOCK) {
            cuts.add(end - base);
            next += usize::from(*end < base + BLOCK);
        }
        (cuts, next)
    }

    /// Takes the words of the remaining part of a row, from the last word on, by [`words`]. Returns
    /// the end of the row.
    fn rest_of_row(
        &mut self,
        last: usize,
        WindowText { text, lower }: WindowText<'_>,
        blocks: &Blocks<'_>,
        word: &mut String,
    ) -> ControlFlow<(usize, usize), usize> {
        let (row, begin) = (self.next, self.begin_of(self.next));
        let part = begin.max(last)..self.ends[row];
        if !self.end_before(begin) {
            return ControlFlow::Break((self.ended, 0));
        }
        let mut goes_on = true;
        let masks = blocks.within(part.clone());
        let at = words(&text[part.clone()], &lower[part.clone()], &masks, word, |word| {
            goes_on = self.sink.token(word);
            goes_on
        });
        if !goes_on {
            return ControlFlow::Break((row, part.start + at - begin));
        }
        self.next = row + 1;
        ControlFlow::Continue(part.end)
    }

    /// Ends the rows up to byte `at`. Returns whether the sink wants more.
    #[inline(always)]
    fn end_before(&mut self, at: usize) -> bool {
        while let Some(end) = self.ends.get(self.ended)
            && *end <= at
        {
            self.ended += 1;
            if !self.sink.end_row() {
                return false;
            }
        }
        true
    }

    /// The first byte of a row.
    fn begin_of(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

impl OpenRun {
    /// Whether the words of the next block are the runs of its masks, as in most blocks: the block
    /// has no special character, and the open run needs no rules of general blocks.
    #[inline]
    fn is_plain(&self, masks: Masks) -> bool {
        masks.is_plain() && !self.is_joined && !(self.is_inside && self.is_wide)
    }

    /// Takes the words of a plain block, in which rows end at `cuts`. Returns whether the sink
    /// wants more.
    #[inline]
    fn plain_words(
        &mut self,
        masks: Masks,
        cuts: Cuts,
        base: usize,
        lower: &str,
        sink: &mut impl FnMut(Token<'_>) -> bool,
    ) -> bool {
        let (mut starts, mut ends, is_inside) = cuts.runs(masks, self.is_inside);
        // A byte past the block, if no further run begins in the block.
        let mut next_start = || {
            let bit = starts.trailing_zeros() as usize;
            starts &= starts.wrapping_sub(1);
            base + bit
        };
        let mut start = if self.is_inside { self.start } else { next_start() };
        while ends != 0 {
            self.last = base + ends.trailing_zeros() as usize;
            ends &= ends - 1;
            let word = start..self.last;
            if is_word(&lower.as_bytes()[word.clone()]) && !sink(Token::within(lower, word)) {
                return false;
            }
            start = next_start();
        }
        (self.start, self.is_inside) = (start, is_inside);
        (self.is_wide, self.is_general) = (false, false);
        true
    }

    /// Enters the general mode before the block from byte `base` on. Returns the byte at which
    /// general blocks begin: the word or the character that this byte is in has the rules of any
    /// text, too.
    fn begin_general(&mut self, text: &str, base: usize) -> usize {
        let begin = if self.is_inside { self.start } else { text.floor_char_boundary(base) };
        *self = Self { last: self.last, is_general: true, ..Self::default() };
        begin
    }

    /// Takes the words of the runs that end in a general block. Continues with the byte of the next
    /// block, or breaks with the byte at which the sink stopped.
    #[inline]
    fn general_words(
        &mut self,
        Masks { inside, wide, .. }: Masks,
        base: usize,
        window: WindowText<'_>,
        word: &mut String,
        sink: &mut impl FnMut(Token<'_>) -> bool,
    ) -> ControlFlow<usize, usize> {
        // Bit `i` is set where byte `i` is inside of a run and the byte before it is not, or the
        // other way around: the bits are the starts and the ends of runs by turns.
        let mut changes = inside ^ (inside << 1 | u64::from(self.is_inside));
        while changes != 0 {
            let bit = changes.trailing_zeros() as usize;
            changes &= changes - 1;
            self.is_inside = !self.is_inside;
            if self.is_inside {
                self.begin_run(base + bit);
                continue;
            }
            self.is_wide |= wide & ones(self.start.saturating_sub(base)..bit) != 0;
            let done = self.end_run(base + bit, window, word, sink)?;
            if done > base + bit {
                // The general rules have gone past the end of the run: the masks begin again
                // where these rules have ended.
                return ControlFlow::Continue(done);
            }
        }
        self.is_wide |= self.is_inside && wide & ones(self.start.saturating_sub(base)..BLOCK) != 0;
        ControlFlow::Continue(base + BLOCK)
    }

    /// Opens a run at byte `at`, unless the byte before it joins it with the last run.
    #[inline]
    fn begin_run(&mut self, at: usize) {
        if !self.is_joined {
            (self.start, self.is_wide) = (at, false);
        }
    }

    /// Closes the run that ends at byte `at`. Continues with the byte up to which all words have
    /// been taken, or breaks with the byte at which the sink stopped.
    #[inline]
    fn end_run(
        &mut self,
        at: usize,
        WindowText { text, lower }: WindowText<'_>,
        word: &mut String,
        sink: &mut impl FnMut(Token<'_>) -> bool,
    ) -> ControlFlow<usize, usize> {
        self.is_joined = false;
        if !self.is_wide {
            match after_run(lower.as_bytes(), at) {
                AfterRun::Joined => {
                    self.is_joined = true;
                    return ControlFlow::Continue(at);
                }
                AfterRun::Boundary => {
                    self.last = at;
                    let run = self.start..at;
                    let is_word = is_word(&lower.as_bytes()[run.clone()]);
                    return match is_word && !sink(Token::within(lower, run)) {
                        true => ControlFlow::Break(at),
                        false => ControlFlow::Continue(at),
                    };
                }
                AfterRun::Unknown => {}
            }
        }
        let mut take = |word: &str| sink(Token::of(word));
        let stopped = general::words(text, self.last, self.start..at, word, &mut take);
        self.last = stopped.last;
        match stopped.goes_on {
            true => ControlFlow::Continue(stopped.at),
            false => ControlFlow::Break(stopped.at),
        }
    }
}

/// A mask of the bits of a range, which ends at [`BLOCK`] at most.
#[inline]
fn ones(range: Range<usize>) -> u64 {
    let below = |end: usize| if end >= BLOCK { u64::MAX } else { (1 << end) - 1 };
    below(range.end) & !below(range.start)
}

/// What the bytes after a run of ASCII make of the run.
enum AfterRun {
    /// The run ends here.
    Boundary,
    /// A byte joins the letters or the digits on both of its sides: the run continues after the
    /// byte.
    Joined,
    /// A byte may join the run with a character that is not ASCII.
    Unknown,
}

/// What the bytes from `at` on make of the run that ends there (WB6, WB7, WB11, WB12).
#[inline]
fn after_run(bytes: &[u8], at: usize) -> AfterRun {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let here = of_byte(byte(at));
    if here & BETWEEN == 0 {
        return AfterRun::Boundary;
    }
    let next = byte(at + 1);
    if !next.is_ascii() {
        return AfterRun::Unknown;
    }
    let is_joined = class::is_joined(of_byte(byte(at - 1)), here, of_byte(next));
    if is_joined { AfterRun::Joined } else { AfterRun::Boundary }
}

/// Whether a run of letters, digits and underscores has anything but underscores.
#[inline]
pub(crate) fn is_word(bytes: &[u8]) -> bool {
    bytes[0] != b'_' || bytes.iter().any(|&byte| byte != b'_')
}
