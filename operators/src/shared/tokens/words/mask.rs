//! Masks of 64 bytes. A kernel makes the masks of ASCII and of ideographs; other characters are
//! added one by one.

use std::ops::Range;

use trommel_kernels::text::{ByteKinds, TEXT_BLOCK, byte_kinds};
use trommel_kernels::{Isa, Routine, run_compiled_for};

use super::WINDOW;
use super::class::{self, ALONE, BETWEEN, CHANGES, COMPLEX, DIGIT, EXTEND, LETTER, Narrow};

/// Bytes of a block, and bits of a mask.
pub(super) const BLOCK: usize = TEXT_BLOCK;

/// The masks of a block. Bytes past the end of the text are outside of words.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Masks {
    /// ASCII letters, digits, underscores, and all bytes that are not ASCII.
    pub(super) inside: u64,
    /// All bytes that are not ASCII.
    pub(super) wide: u64,
    /// Letters, digits, underscores and ideographs, of all alphabets.
    pub(super) words: u64,
    /// Signs that join the two letters or the two digits on their sides.
    pub(super) joined: u64,
    /// First bytes of ideographs, which are words alone, and the bytes after ideographs.
    pub(super) breaks: u64,
    /// Special characters, which have other rules, and the two bytes before each: a special
    /// character may belong to the character there.
    pub(super) near_special: u64,
}

/// The ends of rows in a block and at its end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cuts {
    /// First bytes after a row.
    first: u64,
    /// Last bytes of a row.
    last: u64,
}

impl Cuts {
    /// Cuts of a block, from the first bytes of rows in the block and in the next block.
    #[inline]
    pub(crate) fn at([first, next]: [u64; 2]) -> Self {
        Self { first, last: first >> 1 | next << (BLOCK - 1) }
    }

    /// Adds the end of a row, in bytes from the beginning of the block, up to [`BLOCK`].
    #[inline]
    pub(crate) fn add(&mut self, end: usize) {
        self.first |= if end < BLOCK { 1 << end } else { 0 };
        self.last |= if end > 0 { 1 << (end - 1) } else { 0 };
    }

    /// Bits of the first byte of each word, and of the byte after each word; and whether the last
    /// byte of the block is in a word. `is_inside` tells whether the byte before the block is in a
    /// word. The words are right if the block is plain.
    #[inline]
    pub(crate) fn runs(self, masks: Masks, is_inside: bool) -> (u64, u64, bool) {
        let inside = masks.words | masks.joined & !(self.first | self.last);
        let before = inside << 1 | u64::from(is_inside);
        let breaks = self.first | masks.breaks;
        let starts = inside & (!before | breaks);
        let ends = before & (!inside | breaks);
        (starts, ends, inside >> (BLOCK - 1) != 0)
    }
}

/// Memory for the masks of a window, and for its lower case.
#[derive(Debug)]
pub(crate) struct Window {
    kinds: [ByteKinds; WINDOW / BLOCK],
    masks: [Masks; WINDOW / BLOCK],
    /// The lower case. The text is followed by a block of zeros, so that a register can read past
    /// each word.
    lower: [u8; WINDOW + BLOCK],
}

impl Window {
    pub(crate) fn new() -> Self {
        Self {
            kinds: [ByteKinds::default(); _],
            masks: [Masks::default(); _],
            lower: [0; WINDOW + BLOCK],
        }
    }

    /// Makes the lower case of a text of up to [`WINDOW`] bytes, as far as plain blocks need it and
    /// with zeros after it, and the masks of the text.
    pub(super) fn fill(&mut self, isa: Isa, text: &str) -> (&str, Blocks<'_>) {
        let Self { kinds, masks, lower } = self;
        let blocks = text.len().div_ceil(BLOCK);
        let (kinds, masks) = (&mut kinds[..blocks], &mut masks[..blocks]);
        let (lower, after) = lower.split_at_mut(blocks * BLOCK);
        byte_kinds(isa, text.as_bytes(), kinds, lower);
        after[..BLOCK].fill(0);
        let characters =
            Characters { text, narrow: class::narrow(), lower, begun: WideMasks::default() };
        run_compiled_for(isa, MakeMasks { characters, kinds, masks });
        let lower = simdutf8::basic::from_utf8(&self.lower[..(blocks + 1) * BLOCK]);
        let lower = lower.expect("characters in place of others, and zeros");
        (lower, Blocks { masks: &self.masks[..blocks], range: 0..text.len() })
    }
}

/// The masks of a text, which begins in the first block.
#[derive(Debug, Clone)]
pub(crate) struct Blocks<'a> {
    masks: &'a [Masks],
    range: Range<usize>,
}

impl Blocks<'_> {
    /// The masks of a part of the text.
    pub(crate) fn within(&self, part: Range<usize>) -> Self {
        Self {
            masks: self.masks,
            range: self.range.start + part.start..self.range.start + part.end,
        }
    }

    /// Number of blocks of the text. The last block may be shorter.
    pub(super) fn count(&self) -> usize {
        self.range.len().div_ceil(BLOCK)
    }

    /// The masks of the 64 bytes from byte `base` on.
    #[inline]
    pub(crate) fn at(&self, base: usize) -> Masks {
        let at = self.range.start + base;
        let len = self.range.end.saturating_sub(at);
        let block = |number: usize| self.masks.get(number).copied().unwrap_or_default();
        let mut masks = block(at / BLOCK);
        if !at.is_multiple_of(BLOCK) {
            masks = masks.and_then(block(at / BLOCK + 1), at % BLOCK);
        }
        // The masks cover the whole window, even where these are the blocks of a part of it.
        if base == 0 {
            // The byte before the first byte belongs to another text.
            masks.joined &= !1;
        }
        if len <= BLOCK {
            let bits = |count: usize| if count < BLOCK { (1 << count) - 1 } else { u64::MAX };
            // The byte after the last byte belongs to another text, too.
            masks.joined &= bits(len.saturating_sub(1));
            masks = masks.map(|mask| mask & bits(len));
        }
        masks
    }
}

/// Makes the masks of all blocks.
struct MakeMasks<'a> {
    characters: Characters<'a>,
    kinds: &'a [ByteKinds],
    masks: &'a mut [Masks],
}

impl Routine for MakeMasks<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { mut characters, kinds, masks } = self;
        let (mut before, mut here) = (BlockKinds::default(), BlockKinds::default());
        // The masks of a block are made when the next block is known. A closure would not be
        // compiled for the instruction set.
        for number in 0..=masks.len() {
            let mut after = BlockKinds::default();
            if let Some(&ascii) = kinds.get(number) {
                after = BlockKinds { ascii, wide: characters.of_block(number * BLOCK, ascii) };
            }
            if number > 0 {
                masks[number - 1] = here.masks(before, after);
            }
            (before, here) = (here, after);
        }
    }
}

/// The characters that are not ASCII, block by block.
struct Characters<'a> {
    text: &'a str,
    narrow: &'a Narrow,
    /// The text with its ASCII letters in lower case, and zeros.
    lower: &'a mut [u8],
    /// Bits of the next block, from characters that begin in the current block.
    begun: WideMasks,
}

impl Characters<'_> {
    /// The characters of the block from byte `base` on, which has these kinds of bytes. Writes the
    /// lower case of the characters.
    #[inline(always)]
    fn of_block(
        &mut self,
        base: usize,
        ByteKinds { leads, ideographs, .. }: ByteKinds,
    ) -> WideMasks {
        let mut wide = std::mem::take(&mut self.begun);
        if ideographs != 0 {
            // All ideographs are marked at once. An ideograph has three bytes, and the next block
            // may have the last bytes of an ideograph.
            wide.ideographs |= ideographs | ideographs << 1 | ideographs << 2;
            wide.breaks |= ideographs | ideographs << 3;
            self.begun.ideographs |= ideographs >> (BLOCK - 1) | ideographs >> (BLOCK - 2);
            self.begun.breaks |= ideographs >> (BLOCK - 3);
        }
        let mut leads = leads & !ideographs;
        while leads != 0 {
            let place = leads.trailing_zeros() as usize;
            leads &= leads - 1;
            let (mut class, len) = self.at(base + place);
            let joins_nothing = class & BETWEEN != 0
                && (wide.is_between_ideographs(place..place + len)
                    || self.is_apart(base + place, class, len));
            if joins_nothing {
                class = 0;
            }
            wide.add(class, ((1 << len) - 1) << place, 1 << place);
            // Only the last character of the block can have bytes in the next block.
            let end = place + len;
            if end >= BLOCK {
                self.begun.add(class, (1 << (end - BLOCK)) - 1, 0);
            }
            if class == ALONE {
                let breaks = if end < BLOCK { &mut wide.breaks } else { &mut self.begun.breaks };
                *breaks |= 1 << (end % BLOCK);
            }
        }
        wide
    }

    /// Class of the character at byte `at`, and its bytes; without [`CHANGES`] if its lower case
    /// has been written.
    #[inline(always)]
    fn at(&mut self, at: usize) -> (u16, usize) {
        let bytes = &self.text.as_bytes()[at..];
        match (bytes[0], bytes.first_chunk(), bytes.first_chunk()) {
            (..0xe0, Some(two), _) => match self.narrow.of(*two) {
                // The lower case has one byte or several characters, or depends on the neighbours.
                (class, [0, _]) => (class, 2),
                (class, lower) => {
                    if class & CHANGES != 0 {
                        self.lower[at..at + 2].copy_from_slice(&lower);
                    }
                    (class & !CHANGES, 2)
                }
            },
            (..0xf0, _, Some(three)) => (class::of_three(*three), 3),
            _ => class::at(self.text, at),
        }
    }

    /// Whether a sign joins nothing and has no special neighbour, wherever rows end.
    #[cold]
    fn is_apart(&self, at: usize, class: u16, len: usize) -> bool {
        let before = self.text[..at].char_indices().next_back();
        let before = before.map_or(0, |(before, _)| class::at(self.text, before).0);
        let (after, _) = class::at(self.text, at + len);
        (before | after) & (EXTEND | COMPLEX) == 0 && !class::is_joined(before, class, after)
    }
}

/// The characters of a block that are not ASCII, with a bit for each byte.
#[derive(Clone, Copy, Default)]
struct WideMasks {
    letters: u64,
    digits: u64,
    ideographs: u64,
    /// See [`Masks::breaks`].
    breaks: u64,
    /// Special characters, which have other rules.
    special: u64,
}

impl WideMasks {
    /// Whether the masks already show that the characters before and after these bytes are
    /// ideographs.
    #[inline(always)]
    fn is_between_ideographs(&self, Range { start, end }: Range<usize>) -> bool {
        let is_ideograph = |place: usize| place < BLOCK && self.ideographs >> place & 1 == 1;
        start > 0 && is_ideograph(start - 1) && is_ideograph(end)
    }

    /// Adds the bits of a character of this class. `first` is the bit of its first byte, if the
    /// block has it.
    #[inline(always)]
    fn add(&mut self, class: u16, bytes: u64, first: u64) {
        match class {
            LETTER => self.letters |= bytes,
            ALONE => {
                self.ideographs |= bytes;
                self.breaks |= first;
            }
            DIGIT => self.digits |= bytes,
            0 => {}
            _ => self.special |= bytes,
        }
    }
}

/// The kinds of all bytes of a block.
#[derive(Clone, Copy, Default)]
struct BlockKinds {
    ascii: ByteKinds,
    wide: WideMasks,
}

impl BlockKinds {
    #[inline(always)]
    fn letters(self) -> u64 {
        self.ascii.letters | self.wide.letters
    }

    #[inline(always)]
    fn digits(self) -> u64 {
        self.ascii.digits | self.wide.digits
    }

    /// The masks of this block, which stands between `before` and `after`.
    #[inline(always)]
    fn masks(self, before: Self, after: Self) -> Masks {
        let (letters, digits, WideMasks { ideographs, breaks, special, .. }) =
            (self.letters(), self.digits(), self.wide);
        let ByteKinds { underscores, join_letters, join_digits, wide, .. } = self.ascii;
        let beside = |of: fn(Self) -> u64| {
            let (after, before) = (of(after) << (BLOCK - 1), of(before) >> (BLOCK - 1));
            (of(self) << 1 | before) & (of(self) >> 1 | after)
        };
        let joined = join_letters & beside(Self::letters) | join_digits & beside(Self::digits);
        let next = |bytes: usize| special >> bytes | after.wide.special << (BLOCK - bytes);
        Masks {
            inside: letters | digits | underscores | wide,
            wide,
            words: letters | digits | underscores | ideographs,
            joined,
            breaks,
            near_special: special | next(1) | next(2),
        }
    }
}

impl Masks {
    /// Whether the words of the block are the runs of [`Cuts::runs`].
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.near_special == 0
    }

    /// The masks of 64 bytes that begin with byte `begin` of this block.
    #[inline]
    fn and_then(self, next: Self, begin: usize) -> Self {
        let join = |here: u64, next: u64| here >> begin | next << (BLOCK - begin);
        Self {
            inside: join(self.inside, next.inside),
            wide: join(self.wide, next.wide),
            words: join(self.words, next.words),
            joined: join(self.joined, next.joined),
            breaks: join(self.breaks, next.breaks),
            near_special: join(self.near_special, next.near_special),
        }
    }

    #[inline]
    fn map(self, bits: impl Fn(u64) -> u64) -> Self {
        let Self { inside, wide, words, joined, breaks, near_special } = self;
        Self {
            inside: bits(inside),
            wide: bits(wide),
            words: bits(words),
            joined: bits(joined),
            breaks: bits(breaks),
            near_special: bits(near_special),
        }
    }
}
