//! Words by the runs of masks.

use super::class::{self, BETWEEN, of_byte};
use super::general;
use super::mask::{BLOCK, Blocks, Cuts, Masks};
use crate::shared::tokens::token::{Token, TokenSink};

/// State between two blocks.
#[derive(Default)]
struct State {
    /// Start of the run, or of the word before a byte that joins.
    start: usize,
    /// End of the last word.
    last: usize,
    /// Whether the last byte is in a run.
    is_inside: bool,
    /// Whether the byte after the last run joins it with the next one.
    is_joined: bool,
    /// Whether the run has bytes that are not ASCII.
    is_wide: bool,
    /// Whether the last block was not plain: runs have all that is not ASCII.
    is_general: bool,
}

/// Words of a window. `lower` is its lower case as far as plain blocks need it, which may go on
/// with what is in no word; and `blocks` has its masks.
pub(crate) fn words(
    text: &str,
    lower: &str,
    blocks: &Blocks<'_>,
    word: &mut String,
    mut sink: impl FnMut(Token<'_>) -> bool,
) -> usize {
    let bytes = lower.as_bytes();
    let mut state = State::default();
    let (mut base, mut general_end) = (0, 0);
    // A block past the end closes a word that ends with the text.
    'blocks: while base <= text.len() {
        let masks = blocks.at(base);
        if base >= general_end && state.is_plain(masks) {
            if !state.plain_words(masks, Cuts::default(), base, lower, &mut sink) {
                return state.last;
            }
            base += BLOCK;
            continue;
        }
        if !state.is_general {
            general_end = base + BLOCK;
            base = state.begin_general(text, base);
            continue;
        }
        let State { start, last, is_inside, is_joined, is_wide, .. } = &mut state;
        let Masks { inside, wide, .. } = masks;
        // Bit `i` is set where byte `i` differs from the byte before it.
        let mut changes = inside ^ (inside << 1 | u64::from(*is_inside));
        while changes != 0 {
            let place = changes.trailing_zeros() as usize;
            let at = base + place;
            changes &= changes - 1;
            *is_inside = !*is_inside;
            if *is_inside {
                if !*is_joined {
                    (*start, *is_wide) = (at, false);
                }
                continue;
            }
            *is_wide |= wide & ones(start.saturating_sub(base)..place) != 0;
            *is_joined = false;
            if !*is_wide {
                match after(bytes, at) {
                    After::Joined => {
                        *is_joined = true;
                        continue;
                    }
                    After::Boundary => {
                        *last = at;
                        if is_word(&bytes[*start..at]) && !sink(Token::within(lower, *start..at)) {
                            return at;
                        }
                        continue;
                    }
                    After::Unknown => {}
                }
            }
            let stopped =
                general::words(text, *last, *start..at, word, &mut |word| sink(Token::of(word)));
            *last = stopped.last;
            if !stopped.goes_on {
                return stopped.at;
            }
            if stopped.at > at {
                // The words have passed the end of the run: masks begin again.
                (base, *is_inside) = (stopped.at, false);
                continue 'blocks;
            }
        }
        *is_wide |= *is_inside && wide & ones(start.saturating_sub(base)..BLOCK) != 0;
        base += BLOCK;
    }
    text.len()
}

/// Words of the rows of a window, which lie one after the other and end at `ends`. Returns the row
/// and its byte at which to continue, if the sink wants no more.
pub(crate) fn words_of_rows(
    text: &str,
    lower: &str,
    blocks: &Blocks<'_>,
    ends: &[usize],
    word: &mut String,
    sink: &mut impl TokenSink,
) -> Option<(usize, usize)> {
    let mut state = State::default();
    let mut rows = Rows { ends, ended: 0, sink };
    let (mut base, mut row, mut begin) = (0, 0, 0);
    while row < ends.len() {
        let masks = blocks.at(base);
        if state.is_plain(masks) {
            let (mut cuts, mut after) = (Cuts::default(), row);
            if begin == base {
                cuts.add(0);
            }
            for end in ends[row..].iter().take_while(|end| **end <= base + BLOCK) {
                cuts.add(end - base);
                after += usize::from(*end < base + BLOCK);
            }
            let mut goes_on = true;
            let mut add = |token: Token<'_>| {
                goes_on = rows.end_before(token.begin());
                goes_on && rows.sink.token(token)
            };
            if !state.plain_words(masks, cuts, base, lower, &mut add) {
                let at = if goes_on { state.last - rows.begin() } else { 0 };
                return Some((rows.ended, at));
            }
            // Rows that end with the last byte are looked at in the next block, too.
            if after > row {
                (row, begin) = (after, ends[after - 1]);
            }
            base += BLOCK;
            continue;
        }
        // The rest of the row has the rules of any text.
        let (end, from) = (ends[row], begin.max(state.last));
        if !rows.end_before(begin) {
            return Some((rows.ended, 0));
        }
        let mut goes_on = true;
        let part = blocks.within(from..end);
        let at = words(&text[from..end], &lower[from..end], &part, word, |word| {
            goes_on = rows.sink.token(word);
            goes_on
        });
        if !goes_on {
            return Some((row, from + at - begin));
        }
        // Masks begin again with the next row, at any byte.
        state = State { last: end, ..State::default() };
        (base, row, begin) = (end, row + 1, end);
    }
    let goes_on = rows.end_before(usize::MAX);
    (!goes_on).then_some((rows.ended, 0))
}

/// The rows of a window, which end as their words are taken.
struct Rows<'a, S> {
    ends: &'a [usize],
    ended: usize,
    sink: &'a mut S,
}

impl<S: TokenSink> Rows<'_, S> {
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

    /// The first byte of the row that has not ended.
    fn begin(&self) -> usize {
        if self.ended == 0 { 0 } else { self.ends[self.ended - 1] }
    }
}

impl State {
    /// Whether the words of the next block are its runs of ones, as in most blocks.
    #[inline]
    fn is_plain(&self, masks: Masks) -> bool {
        masks.is_plain() && !self.is_joined && !(self.is_inside && self.is_wide)
    }

    /// Goes from plain blocks to the one from byte `base` on, which is not. Returns where the word
    /// or the character that this one begins in begins: it has the rules of any text, too.
    fn begin_general(&mut self, text: &str, base: usize) -> usize {
        let begin = if self.is_inside { self.start } else { text.floor_char_boundary(base) };
        *self = Self { last: self.last, is_general: true, ..Self::default() };
        begin
    }

    /// Words of a plain block, in which rows end at `cuts`. Returns whether the sink wants more.
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
        // Past the block, if no run begins in it.
        let mut next_start = || {
            let place = starts.trailing_zeros() as usize;
            starts &= starts.wrapping_sub(1);
            base + place
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
}

/// A mask of the bits of a range, which ends at [`BLOCK`] at most.
#[inline]
fn ones(range: std::ops::Range<usize>) -> u64 {
    let below = |end: usize| if end >= BLOCK { u64::MAX } else { (1 << end) - 1 };
    below(range.end) & !below(range.start)
}

/// The text after a run of ASCII.
enum After {
    Boundary,
    /// A byte that joins the letters or the digits on both of its sides.
    Joined,
    /// A byte that may join what is not ASCII.
    Unknown,
}

/// The text after the run that ends at `at` (WB6, WB7, WB11, WB12).
#[inline]
fn after(bytes: &[u8], at: usize) -> After {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let here = of_byte(byte(at));
    if here & BETWEEN == 0 {
        return After::Boundary;
    }
    let next = byte(at + 1);
    if !next.is_ascii() {
        return After::Unknown;
    }
    let is_joined = class::is_joined(of_byte(byte(at - 1)), here, of_byte(next));
    if is_joined { After::Joined } else { After::Boundary }
}

/// Whether a run of letters, digits and underscores has anything but underscores.
#[inline]
pub(crate) fn is_word(bytes: &[u8]) -> bool {
    bytes[0] != b'_' || bytes.iter().any(|&byte| byte != b'_')
}
