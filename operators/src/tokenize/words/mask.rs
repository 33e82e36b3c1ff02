//! Masks of 64 bytes, made of eight bytes an instruction, or more on wider registers: the loop is
//! compiled for each instruction set.

use std::ops::Range;

use trommel_kernels::{Isa, Routine, run_compiled_for};

/// Bytes of a mask.
pub(super) const BLOCK: usize = 64;
/// Bytes of a word of the processor.
const LANES: usize = 8;
/// A number with this byte in each place is a multiple of it.
const EACH: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = EACH << 7;

/// Masks of a block; bytes past the end are outside of words.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Masks {
    /// Small letters, digits, underscores, and all that is not ASCII.
    pub(super) inside: u64,
    /// Punctuation between two letters or two digits that joins them.
    joined: u64,
    /// All that is not ASCII.
    pub(super) wide: u64,
    /// The same, and the two bytes before it, which it may belong to.
    near_wide: u64,
}

/// Rows that end in a block or with it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cuts {
    /// First bytes after a row.
    first: u64,
    /// Last bytes of a row.
    last: u64,
}

impl Cuts {
    /// Adds the end of a row, in bytes from the beginning of the block, up to [`BLOCK`].
    #[inline]
    pub(super) fn add(&mut self, end: usize) {
        self.first |= if end < BLOCK { 1 << end } else { 0 };
        self.last |= if end > 0 { 1 << (end - 1) } else { 0 };
    }

    /// Bits of the bytes that begin a word and that end one, for a block after a byte of which
    /// `is_inside` tells whether it is in a word; and whether the last byte is. Words are right if
    /// the block has ASCII only.
    #[inline]
    pub(super) fn runs(self, masks: Masks, is_inside: bool) -> (u64, u64, bool) {
        let inside = masks.inside | masks.joined & !(self.first | self.last);
        let before = inside << 1 | u64::from(is_inside);
        let starts = inside & (!before | self.first);
        let ends = before & (!inside | self.first);
        (starts, ends, inside >> (BLOCK - 1) != 0)
    }
}

/// The masks of a text, which begins in the first block.
#[derive(Debug, Clone)]
pub(super) struct Blocks<'a> {
    masks: &'a [Masks],
    range: Range<usize>,
}

impl<'a> Blocks<'a> {
    /// The masks of a text, in the memory of `masks`.
    pub(super) fn new(isa: Isa, text: &str, masks: &'a mut Vec<Masks>) -> Self {
        masks.clear();
        masks.resize(text.len().div_ceil(BLOCK), Masks::default());
        run_compiled_for(isa, MakeMasks { bytes: text.as_bytes(), masks });
        Self { masks, range: 0..text.len() }
    }

    /// The masks of a part of the text.
    pub(super) fn within(&self, part: Range<usize>) -> Self {
        Self {
            masks: self.masks,
            range: self.range.start + part.start..self.range.start + part.end,
        }
    }

    /// The masks of the 64 bytes from byte `base` on.
    #[inline]
    pub(super) fn at(&self, base: usize) -> Masks {
        let at = self.range.start + base;
        let len = self.range.end.saturating_sub(at);
        let block = |number: usize| self.masks.get(number).copied().unwrap_or_default();
        let mut masks = block(at / BLOCK);
        if !at.is_multiple_of(BLOCK) {
            masks = masks.and_then(block(at / BLOCK + 1), at % BLOCK);
        }
        // The masks cover the whole window, even if a part of it is asked for.
        if base == 0 {
            // The byte before it is of another text.
            masks.joined &= !1;
        }
        if len <= BLOCK {
            let bits = |count: usize| if count < BLOCK { (1 << count) - 1 } else { u64::MAX };
            // And so is the byte after the last one.
            masks.joined &= bits(len.saturating_sub(1));
            masks = masks.map(|mask| mask & bits(len));
        }
        masks
    }
}

/// Makes the masks of all blocks.
struct MakeMasks<'a> {
    bytes: &'a [u8],
    masks: &'a mut [Masks],
}

impl Routine for MakeMasks<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (blocks, rest) = self.bytes.as_chunks::<BLOCK>();
        // Zeros past the end are in no word.
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        let kinds = |number: usize| Kinds::of(blocks.get(number).unwrap_or(&last));
        let (mut before, mut here) = (Kinds::default(), kinds(0));
        for (number, masks) in self.masks.iter_mut().enumerate() {
            let after = if number < blocks.len() { kinds(number + 1) } else { Kinds::default() };
            *masks = here.masks(before, after);
            (before, here) = (here, after);
        }
    }
}

impl Masks {
    /// Whether words are the runs of [`Cuts::runs`].
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.near_wide == 0
    }

    /// The masks of 64 bytes that begin with byte `begin` of this block.
    #[inline]
    fn and_then(self, next: Self, begin: usize) -> Self {
        let join = |here: u64, next: u64| here >> begin | next << (BLOCK - begin);
        Self {
            inside: join(self.inside, next.inside),
            joined: join(self.joined, next.joined),
            wide: join(self.wide, next.wide),
            near_wide: join(self.near_wide, next.near_wide),
        }
    }

    #[inline]
    fn map(self, bits: impl Fn(u64) -> u64) -> Self {
        let Self { inside, joined, wide, near_wide } = self;
        Self {
            inside: bits(inside),
            joined: bits(joined),
            wide: bits(wide),
            near_wide: bits(near_wide),
        }
    }
}

/// Bytes of a block by what they are.
#[derive(Clone, Copy, Default)]
struct Kinds {
    letters: u64,
    digits: u64,
    underscores: u64,
    wide: u64,
    /// Punctuation that joins two letters (WB6, WB7).
    between_letters: u64,
    /// Punctuation that joins two digits (WB11, WB12).
    between_digits: u64,
}

impl Kinds {
    #[inline(always)]
    fn of(block: &[u8; BLOCK]) -> Self {
        let (lanes, _) = block.as_chunks::<LANES>();
        let mut kinds = Self::default();
        for (place, bytes) in lanes.iter().enumerate() {
            let bytes = u64::from_le_bytes(*bytes);
            let (low, wide) = (bytes & !HIGH, bytes & HIGH);
            // A sum has its highest bit if the byte, which has 7 bits, is at least the limit.
            let at_least = |limit: u8| low + EACH * u64::from(0x80 - limit);
            let within = |first: u8, last: u8| at_least(first) & !at_least(last + 1);
            let mask = |found: u64| bits(found & HIGH & !wide) << (LANES * place);
            let (points, quotes) = (within(b'.', b'.'), within(b'\'', b'\''));
            kinds.letters |= mask(within(b'a', b'z'));
            kinds.digits |= mask(within(b'0', b'9'));
            kinds.underscores |= mask(within(b'_', b'_'));
            kinds.wide |= bits(wide) << (LANES * place);
            kinds.between_letters |= mask(points | quotes | within(b':', b':'));
            kinds.between_digits |= mask(points | quotes | within(b',', b',') | within(b';', b';'));
        }
        kinds
    }

    /// The masks of this block between two others.
    #[inline(always)]
    fn masks(self, before: Self, after: Self) -> Masks {
        let Self { letters, digits, underscores, wide, between_letters, between_digits } = self;
        let beside = |of: fn(Self) -> u64| {
            let (after, before) = (of(after) << (BLOCK - 1), of(before) >> (BLOCK - 1));
            (of(self) << 1 | before) & (of(self) >> 1 | after)
        };
        let joined = between_letters & beside(|kinds| kinds.letters)
            | between_digits & beside(|kinds| kinds.digits);
        let next = |bytes: usize| wide >> bytes | after.wide << (BLOCK - bytes);
        Masks {
            inside: letters | digits | underscores | wide,
            joined,
            wide,
            near_wide: wide | next(1) | next(2),
        }
    }
}

/// The highest bits of eight bytes as the lowest bits of the answer.
#[inline(always)]
fn bits(bytes: u64) -> u64 {
    // The product moves the bit of byte `i` to bit `i` of the highest byte.
    (bytes >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}
