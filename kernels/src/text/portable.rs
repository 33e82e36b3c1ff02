//! Blocks in plain Rust: one byte at a time, or eight in a word.

use wide::u8x16;

use super::integers::{ConvertIntegers, LineKinds};
use super::places::MatchBlock;
use super::{
    Block, ByteKinds, ClassifyBlock, HEXAGRAM, IDEOGRAPH, IDEOGRAPHS, TEXT_BLOCK, ideographs,
};
use crate::simd::{Portable, Scalar};

impl ClassifyBlock for Scalar {
    #[inline(always)]
    fn classify(self, block: &Block, lower: &mut Block) -> ByteKinds {
        let mut kinds = ByteKinds::default();
        for (place, (&byte, lower)) in block.iter().zip(lower).enumerate() {
            *lower = byte.to_ascii_lowercase();
            let bit = |is: bool| u64::from(is) << place;
            kinds.letters |= bit(byte.is_ascii_alphabetic());
            kinds.digits |= bit(byte.is_ascii_digit());
            kinds.underscores |= bit(byte == b'_');
            kinds.join_letters |= bit(matches!(byte, b'.' | b'\'' | b':'));
            kinds.join_digits |= bit(matches!(byte, b'.' | b'\'' | b',' | b';'));
            kinds.wide |= bit(!byte.is_ascii());
            kinds.leads |= bit(byte >= 0xc0);
            let is_ideograph = match (byte, block.get(place + 1)) {
                (IDEOGRAPH, next) => next.is_some_and(|&next| next != HEXAGRAM),
                _ => (IDEOGRAPH..IDEOGRAPH + IDEOGRAPHS).contains(&byte),
            };
            kinds.ideographs |= bit(is_ideograph);
        }
        kinds
    }
}

impl MatchBlock for Scalar {
    #[inline(always)]
    fn matches(self, block: &Block, byte: u8) -> u64 {
        (0..TEXT_BLOCK).fold(0, |bits, place| bits | u64::from(block[place] == byte) << place)
    }
}

impl MatchBlock for Portable {
    #[inline(always)]
    fn matches(self, block: &Block, byte: u8) -> u64 {
        let (parts, _) = block.as_chunks();
        (0..).step_by(16).zip(parts).fold(0, |bits, (place, &part)| {
            let is = u8x16::new(part).simd_eq(u8x16::splat(byte));
            bits | u64::from(is.to_bitmask()) << place
        })
    }
}

impl ConvertIntegers for Scalar {
    #[inline(always)]
    fn line_kinds(self, block: &Block) -> LineKinds {
        let bits = |is: fn(&u8) -> bool| {
            block.iter().rev().fold(0, |bits, byte| bits << 1 | u64::from(is(byte)))
        };
        LineKinds {
            digits: bits(u8::is_ascii_digit),
            newlines: bits(|&byte| byte == b'\n'),
            returns: bits(|&byte| byte == b'\r'),
            blanks: bits(|byte| matches!(byte, b' ' | b'\t')),
        }
    }
}

impl ConvertIntegers for Portable {
    #[inline(always)]
    fn line_kinds(self, block: &Block) -> LineKinds {
        let is = |byte| self.matches(block, byte);
        // A digit is a byte that is at most 9 above the byte `0`.
        let (parts, _) = block.as_chunks();
        let digits = (0..).step_by(16).zip(parts).fold(0, |bits, (place, &part)| {
            let above = u8x16::new(part) - u8x16::splat(b'0');
            let is_digit = above.simd_eq(above.min(u8x16::splat(9)));
            bits | u64::from(is_digit.to_bitmask()) << place
        });
        let blanks = is(b' ') | is(b'\t');
        LineKinds { digits, newlines: is(b'\n'), returns: is(b'\r'), blanks }
    }
}

/// Bytes of a word of the processor.
const LANES: usize = 8;
/// A number with the same byte in each place is a multiple of this number.
const EACH: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = EACH << 7;
/// The bit by which a small letter differs from the capital.
const SMALL: u64 = EACH << 5;

impl ClassifyBlock for Portable {
    #[inline(always)]
    fn classify(self, block: &Block, lower: &mut Block) -> ByteKinds {
        let mut kinds = ByteKinds::default();
        let (mut below_5000, mut hexagrams) = (0, 0);
        let (words, _) = block.as_chunks::<LANES>();
        let (lower, _) = lower.as_chunks_mut::<LANES>();
        for (place, (bytes, lower)) in words.iter().zip(lower).enumerate() {
            let bytes = u64::from_le_bytes(*bytes);
            let (low, wide) = (bytes & !HIGH, bytes & HIGH);
            // A sum has its highest bit if the byte, which has 7 bits, is at least the limit.
            let at_least = |low: u64, limit: u8| low + EACH * u64::from(0x80 - limit);
            let among = |low, first, last: u8| {
                at_least(low, first) & !at_least(low, last + 1) & HIGH & !wide
            };
            let is = |byte: u8| among(low, byte, byte);
            let mask = |found: u64| bits(found) << (LANES * place);
            // This bit turns capitals into small letters, and no other byte into a small letter.
            let letters = among(low | SMALL, b'a', b'z');
            *lower = (bytes | letters >> 2).to_le_bytes();
            let (points, quotes) = (is(b'.'), is(b'\''));
            kinds.letters |= mask(letters);
            kinds.digits |= mask(among(low, b'0', b'9'));
            kinds.underscores |= mask(is(b'_'));
            kinds.join_letters |= mask(points | quotes | is(b':'));
            kinds.join_digits |= mask(points | quotes | is(b',') | is(b';'));
            kinds.wide |= mask(wide);
            // All bytes of a character but the first have a zero after the highest bit.
            kinds.leads |= mask(wide & bytes << 1);
            let wide_among = |first: u8, count: u8| {
                let first = first & !0x80;
                mask(at_least(low, first) & !at_least(low, first + count) & wide)
            };
            kinds.ideographs |= wide_among(IDEOGRAPH, IDEOGRAPHS);
            below_5000 |= wide_among(IDEOGRAPH, 1);
            hexagrams |= wide_among(HEXAGRAM, 1);
        }
        kinds.ideographs = ideographs(kinds.ideographs, below_5000, hexagrams);
        kinds
    }
}

/// The highest bits of eight bytes as the lowest bits of the answer.
#[inline(always)]
fn bits(bytes: u64) -> u64 {
    // The product moves the bit of byte `i` to bit `i` of the highest byte.
    (bytes >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}
