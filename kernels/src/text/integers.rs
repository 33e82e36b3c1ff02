//! Lines of integers.
//!
//! ```text
//! text      7   1 9 7 0 ⏎ 4 2 ⏎
//! digits    1 0 1 1 1 1 0 1 1 0
//! begins    1 0 1 0 0 0 0 1 0 0     a digit after another byte
//! ends      0 1 0 0 0 0 1 0 0 1     another byte after a digit
//! ```
//!
//! Masks of 64 bytes give the places of the integers of a piece of the text. Then the integers are
//! converted, four at a time: no place depends on the value of an earlier integer, and no branch
//! depends on the number of digits. Up to eight digits are a word:
//!
//! ```text
//! bytes of an integer  '1' '9' '7' '0'     one load, moved so that zeros stand in front
//!                     0 0 0 0 1 9 7 0
//!                      0   0  19  70       pairs of digits: times 10, plus the next one
//!                        0      1970       pairs of pairs: times 100
//!                              1970        both halves: times 10,000
//! ```
//!
//! Source: Langdale, Lemire, *Parsing gigabytes of JSON per second*, The VLDB Journal 28, 2019
//! (masks, conversion of eight digits). Departure: several integers are converted in one register,
//! and a loop converts more than eight digits.

use super::places::MatchBlock;
use super::{Block, TEXT_BLOCK};
use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};

/// Blocks of a piece, whose places stay in the first-level cache.
const PIECE_BLOCKS: usize = 32;
/// Maximum number of lines that end in a piece: a line for each byte, and one more block as room to
/// write.
const LINES: usize = PIECE_BLOCKS * TEXT_BLOCK + TEXT_BLOCK;
/// Maximum number of integers of a piece: an integer for each two bytes, an integer that began
/// before the piece, and one more block as room to write.
const BEGINS: usize = PIECE_BLOCKS * TEXT_BLOCK / 2 + 1 + TEXT_BLOCK;

/// Integers that are converted at once.
pub(super) const GROUP: usize = 4;
/// Digits of a word.
const WORD: u32 = 8;
/// A word with the same byte in each place is a multiple of this number.
const EACH: u64 = 0x0101_0101_0101_0101;

/// Appends the integers of `text` to `integers`, and, for each line, the number of integers up to
/// its end to `ends`.
///
/// Integers are decimal, between spaces and tabs. A line ends with `\n`, with `\r\n`, or at the end
/// of the text.
///
/// Returns false if the text has any other byte, a carriage return at its very end, or an integer
/// above [`u32::MAX`]. In that case part of its integers and lines may have been appended.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::text::integers_of;
///
/// let (mut integers, mut ends) = (Vec::new(), Vec::new());
/// assert!(integers_of(Isa::selected()?, b"7 1970\n\n42\n", &mut integers, &mut ends));
/// assert_eq!((&integers[..], &ends[..]), (&[7, 1970, 42][..], &[2, 2, 3][..]));
/// assert!(!integers_of(Isa::selected()?, b"7 x\n", &mut integers, &mut ends));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
///
/// One pass over the text, and some 20 instructions for each integer of up to eight digits. The
/// call allocates only room for the integers and ends.
///
/// # Panics
///
/// If `isa` is not available, the text has 2^32 bytes or more, or `integers` would have 2^32
/// integers.
#[must_use]
pub fn integers_of(isa: Isa, text: &[u8], integers: &mut Vec<u32>, ends: &mut Vec<u32>) -> bool {
    let _ = place(text.len());
    dispatch::<Base, _>(isa, Integers { text, integers, ends })
}

/// The arguments of [`integers_of`].
struct Integers<'a> {
    text: &'a [u8],
    integers: &'a mut Vec<u32>,
    ends: &'a mut Vec<u32>,
}

/// The kinds of the bytes of a block, with a bit for each byte.
#[derive(Clone, Copy)]
pub(super) struct LineKinds {
    pub(super) digits: u64,
    pub(super) newlines: u64,
    pub(super) returns: u64,
    /// Spaces and tabs.
    pub(super) blanks: u64,
}

/// The code of a level.
pub(super) trait ConvertIntegers: MatchBlock {
    fn line_kinds(self, block: &Block) -> LineKinds;

    /// Converts integers of up to [`WORD`] digits: integer `i` is the first `digits[i]` bytes of
    /// `words[i]`.
    #[inline(always)]
    fn convert(self, words: [u64; GROUP], digits: &[u32; GROUP]) -> [u32; GROUP] {
        // The shift drops the bytes that follow an integer.
        let bits = digits.map(|digits| 8 * (WORD - digits));
        std::array::from_fn(|integer| of_digits(words[integer] << bits[integer]))
    }
}

impl<L: ConvertIntegers> RunOn<L, bool> for Integers<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> bool {
        let Self { text, integers, ends } = self;
        let mut piece = TextPiece::new();
        for (number, bytes) in text.chunks(PIECE_BLOCKS * TEXT_BLOCK).enumerate() {
            let begin = place(number * PIECE_BLOCKS * TEXT_BLOCK);
            let before = place(integers.len());
            if !piece.find(level, bytes, begin) {
                return false;
            }
            ends.extend(piece.lines.all().iter().map(|found| before + found));
            if !piece.convert(level, text, integers) {
                return false;
            }
        }
        if piece.is_digit {
            // The text ends the last integer.
            piece.ends = FoundPlaces::one(place(text.len()));
            if !piece.convert(level, text, integers) {
                return false;
            }
        }
        if text.last().is_some_and(|&last| last != b'\n') {
            ends.push(place(integers.len()));
        }
        !piece.is_return
    }
}

/// A part of the text.
struct TextPiece {
    /// Places where integers begin, and where they end. The last integer may have no end yet.
    begins: FoundPlaces<BEGINS>,
    ends: FoundPlaces<BEGINS>,
    /// For each end of a line, the number of integers of the piece that end before it.
    lines: FoundPlaces<LINES>,
    /// Whether the last byte is a digit, or a carriage return.
    is_digit: bool,
    is_return: bool,
}

impl TextPiece {
    #[inline(always)]
    fn new() -> Self {
        let (begins, ends, lines) = (FoundPlaces::none(), FoundPlaces::none(), FoundPlaces::none());
        Self { begins, ends, lines, is_digit: false, is_return: false }
    }

    /// Finds the integers of the next piece, which begins at `begin`. Returns false if the piece
    /// has any other byte.
    #[inline(always)]
    fn find<L: ConvertIntegers>(&mut self, level: L, bytes: &[u8], begin: u32) -> bool {
        (self.ends.len, self.lines.len) = (0, 0);
        let (blocks, rest) = bytes.as_chunks();
        let mut others = 0;
        for (block, begin) in blocks.iter().zip((begin..).step_by(TEXT_BLOCK)) {
            others |= self.add(level, block, u64::MAX, begin);
        }
        if !rest.is_empty() {
            // The blanks that fill the block end the last integer.
            let mut last = [b' '; TEXT_BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            let begin = begin + place(bytes.len() - rest.len());
            others |= self.add(level, &last, (1 << rest.len()) - 1, begin);
        }
        others == 0
    }

    /// Finds the integers of a block; the bytes of the mask `within` belong to the text. Returns a
    /// mask of the bytes of the text that have no place in a line of integers.
    #[inline(always)]
    fn add<L: ConvertIntegers>(&mut self, level: L, block: &Block, within: u64, begin: u32) -> u64 {
        let LineKinds { digits, newlines, returns, blanks } = level.line_kinds(block);
        let after_digit = digits << 1 | u64::from(self.is_digit);
        let after_return = returns << 1 | u64::from(self.is_return);
        self.is_digit = digits >> (TEXT_BLOCK - 1) > 0;
        self.is_return = returns & (within ^ within >> 1) > 0;

        let ends = after_digit & !digits;
        let ended = place(self.ends.len);
        self.lines.len += count_at(newlines, ends, ended, self.lines.room());
        self.begins.len += level.write_places(digits & !after_digit, begin, self.begins.room());
        self.ends.len += level.write_places(ends, begin, self.ends.room());
        !(digits | newlines | returns | blanks) | (after_return & !newlines & within)
    }

    /// Appends the integers that have ended. Returns false if an integer is too large.
    #[inline(always)]
    fn convert<L: ConvertIntegers>(
        &mut self,
        level: L,
        text: &[u8],
        integers: &mut Vec<u32>,
    ) -> bool {
        let (found, before) = (self.ends.len, integers.len());
        integers.resize(before + found, 0);
        let (begins, begins_rest) = self.begins.all()[..found].as_chunks::<GROUP>();
        let (ends, ends_rest) = self.ends.all().as_chunks::<GROUP>();
        let (groups, rest) = integers[before..].as_chunks_mut::<GROUP>();
        for ((begins, ends), group) in begins.iter().zip(ends).zip(groups) {
            let digits = std::array::from_fn(|integer| ends[integer] - begins[integer]);
            let is_short = digits.iter().all(|&digits| digits <= WORD);
            match words(text, begins) {
                Some(words) if is_short => *group = level.convert(words, &digits),
                _ => {
                    if !convert_each(text, begins, ends, group) {
                        return false;
                    }
                }
            }
        }
        if !convert_each(text, begins_rest, ends_rest, rest) {
            return false;
        }
        // The last integer may go on in the next piece.
        let is_open = self.begins.len - found;
        self.begins.places[0] = self.begins.places[found];
        self.begins.len = is_open;
        true
    }
}

/// Places that have been found, in their order.
struct FoundPlaces<const N: usize> {
    places: [u32; N],
    len: usize,
}

impl<const N: usize> FoundPlaces<N> {
    #[inline(always)]
    fn none() -> Self {
        Self { places: [0; N], len: 0 }
    }

    #[inline(always)]
    fn one(place: u32) -> Self {
        let mut one = Self::none();
        (one.places[0], one.len) = (place, 1);
        one
    }

    #[inline(always)]
    fn all(&self) -> &[u32] {
        &self.places[..self.len]
    }

    /// Room for the places of the next block.
    #[inline(always)]
    fn room(&mut self) -> &mut [u32; TEXT_BLOCK] {
        self.places[self.len..].first_chunk_mut().expect("a piece has no more")
    }
}

/// Writes, for each bit of `newlines`, `before` plus the number of `ends` up to that bit. Returns
/// the number of newlines.
#[inline(always)]
fn count_at(newlines: u64, ends: u64, before: u32, counts: &mut [u32; TEXT_BLOCK]) -> usize {
    let found = newlines.count_ones() as usize;
    let mut rest = newlines;
    // Lines have several integers, so nearly all blocks need one round, and every block takes one.
    for counts in counts.as_chunks_mut::<4>().0.iter_mut().take(found.div_ceil(4).max(1)) {
        for count in counts {
            // The mask has the bits up to and including the lowest newline.
            *count = before + (ends & (rest ^ rest.wrapping_sub(1))).count_ones();
            rest &= rest.wrapping_sub(1);
        }
    }
    found
}

/// The eight bytes at each of `begins`; `None` if the text ends before.
#[inline(always)]
fn words(text: &[u8], begins: &[u32; GROUP]) -> Option<[u64; GROUP]> {
    let word = |begin: u32| -> Option<u64> {
        Some(u64::from_le_bytes(*text.get(begin as usize..)?.first_chunk()?))
    };
    let [a, b, c, d] = *begins;
    Some([word(a)?, word(b)?, word(c)?, word(d)?])
}

/// Converts integers of any number of digits. Returns false if an integer is too large.
#[cold]
fn convert_each(text: &[u8], begins: &[u32], ends: &[u32], integers: &mut [u32]) -> bool {
    let value = |digits: &[u8]| {
        digits.iter().try_fold(0_u32, |value, digit| {
            value.checked_mul(10)?.checked_add(u32::from(digit - b'0'))
        })
    };
    begins.iter().zip(ends).zip(integers).all(|((&begin, &end), integer)| {
        let value = value(&text[begin as usize..end as usize]);
        value.map(|value| *integer = value).is_some()
    })
}

/// The value of up to eight digits; the last digit is in the highest byte. Bytes in front of the
/// digits are 0.
#[inline(always)]
fn of_digits(digits: u64) -> u32 {
    // A digit is the low half of its byte, and so is an empty byte, which is zero.
    let ones = digits & (EACH * 0xf);
    let pairs = (ones.wrapping_mul((10 << 8) | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul((100 << 16) | 1) >> 16) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul((10_000 << 32) | 1) >> 32) as u32
}

fn place(index: usize) -> u32 {
    u32::try_from(index).expect("places have 32 bits")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Integers, and ends of lines, by the standard library.
    fn naive(text: &[u8]) -> Option<(Vec<u32>, Vec<u32>)> {
        let text = std::str::from_utf8(text).ok()?;
        let (mut integers, mut ends) = (Vec::new(), Vec::new());
        for line in text.split_inclusive('\n') {
            let line = match line.strip_suffix('\n') {
                Some(line) => line.strip_suffix('\r').unwrap_or(line),
                None => line,
            };
            for integer in line.split([' ', '\t']).filter(|integer| !integer.is_empty()) {
                let is_decimal = integer.bytes().all(|byte| byte.is_ascii_digit());
                integers.push(is_decimal.then(|| integer.parse().ok()).flatten()?);
            }
            ends.push(place(integers.len()));
        }
        Some((integers, ends))
    }

    fn check(text: &[u8]) {
        let expected = naive(text);
        for isa in Isa::available() {
            // The integers are appended to others, which stay.
            let (mut integers, mut ends) = (vec![7, 8], vec![2]);
            let is_whole = integers_of(isa, text, &mut integers, &mut ends);
            assert_eq!(is_whole, expected.is_some(), "{isa}: {:?}", text.escape_ascii());
            if let Some((of_text, ends_of_text)) = &expected {
                let all: Vec<u32> = [7, 8].iter().chain(of_text).copied().collect();
                assert_eq!(integers, all, "{isa}: {:?}", text.escape_ascii());
                let all: Vec<u32> =
                    std::iter::once(2).chain(ends_of_text.iter().map(|end| end + 2)).collect();
                assert_eq!(ends, all, "{isa}: {:?}", text.escape_ascii());
            }
        }
    }

    #[test]
    fn integers_of_every_length_end_everywhere() {
        for before in (0..70).chain(PIECE_BLOCKS * TEXT_BLOCK - 20..PIECE_BLOCKS * TEXT_BLOCK + 5) {
            for digits in 0..14 {
                let mut text = b"1 \n3".repeat(before / 4 + 1)[..before].to_vec();
                text.extend(&b"42949672959999"[..digits]);
                check(&text);
                text.extend(b"\t4294967295\r\n");
                check(&text);
            }
        }
    }

    #[test]
    fn every_other_byte_is_refused_in_every_place() {
        for byte in 0..=u8::MAX {
            for at in 0..70 {
                let mut text = b"1234567 ".repeat(9);
                text[at] = byte;
                check(&text);
            }
        }
    }

    #[test]
    fn a_piece_has_room_for_as_many_as_fit() {
        for len in [0, 1, 2, 100, 5000] {
            for of in [&b"\n"[..], b"1 ", b"1\n", b" ", b"1"] {
                check(&of.repeat(len));
            }
        }
        check(&[&b"0".repeat(10_000)[..], b"12"].concat());
    }

    #[test]
    fn a_carriage_return_is_part_of_a_line_end_only() {
        for before in [0, 62, 63, 64, PIECE_BLOCKS * TEXT_BLOCK - 1] {
            for end in ["\r\n", "\r", "\r\r\n", "\r1\n", "\r\n\r\n", "\r \n", "\n\r\n"] {
                check(&[&b"5".repeat(before % 2), &b" ".repeat(before), end.as_bytes()].concat());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn levels_read_what_the_standard_library_reads(
            text in "([0-9]{1,8}|[0-9]{1,11}|[ \\t]{1,3}|\n|\r\n|[ -~]?){0,400}",
        ) {
            check(text.as_bytes());
        }

        #[test]
        fn long_texts_are_read_over_pieces(
            integers in proptest::collection::vec(any::<u32>(), 0..2000),
            shift in 0_u32..32,
        ) {
            let mut text = String::new();
            for (number, integer) in integers.iter().enumerate() {
                text.push_str(&(integer >> shift).to_string());
                text.push(if number % 7 == 3 { '\n' } else { ' ' });
            }
            check(text.as_bytes());
        }
    }
}
