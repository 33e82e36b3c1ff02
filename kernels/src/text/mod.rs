//! Kinds of the bytes of a text as masks with a bit for each byte, its lower case, places of a
//! byte, lines of integers, columns of texts, and keys of texts.
//!
//! ```text
//! text         D o n ' t   s t o p ,   p r é . s
//! letters      1 1 1 0 1 0 1 1 1 1 0 0 1 1 0 0 0 1
//! join_letters 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 1 0
//! join_digits  0 0 0 1 0 0 0 0 0 0 1 0 0 0 0 0 1 0
//! wide         0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 0 0
//! ```
//!
//! Tokenizers find words in the runs of these masks, 64 bytes at a time. Source: Langdale and
//! Lemire, *Parsing gigabytes of JSON per second*, The VLDB Journal 28, 2019, §3.1.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod column;
mod integers;
mod parts;
mod places;
mod portable;

#[cfg(test)]
mod tests;

pub use self::column::text_column;
pub use self::integers::integers_of;
pub use self::parts::{append_parts, short_keys};
pub use self::places::{PLACES_SLACK, places_of, places_of_bits};
use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};

/// Bytes of a mask.
pub const TEXT_BLOCK: usize = 64;

/// A block of a text: bit `i` of each mask is byte `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteKinds {
    /// ASCII letters.
    pub letters: u64,
    /// ASCII digits.
    pub digits: u64,
    /// Underscores.
    pub underscores: u64,
    /// `.`, `'` and `:`, which join two letters (WB6 of Unicode Standard Annex 29).
    pub join_letters: u64,
    /// `.`, `'`, `,` and `;`, which join two digits (WB11).
    pub join_digits: u64,
    /// All bytes that are not ASCII.
    pub wide: u64,
    /// The first bytes of characters that are not ASCII.
    pub leads: u64,
    /// The lead bytes of CJK ideographs, U+4000 to U+9FFF. At the last byte of a block the
    /// continuation byte is unknown, so ideographs below U+5000 are not marked there.
    pub ideographs: u64,
}

/// First byte of U+4000, and the number of first bytes up to U+9FFF.
const IDEOGRAPH: u8 = 0xe4;
const IDEOGRAPHS: u8 = 6;

/// Second byte of the hexagrams U+4DC0 to U+4DFF, which are no ideographs.
const HEXAGRAM: u8 = 0xb7;

/// The lead bytes of ideographs among the lead bytes `all` of U+4000 to U+9FFF.
#[inline(always)]
fn ideographs(all: u64, below_5000: u64, hexagram_seconds: u64) -> u64 {
    all & !(below_5000 & (hexagram_seconds >> 1 | 1 << (TEXT_BLOCK - 1)))
}

/// Finds the kinds of the bytes of `text`, and writes the text with its ASCII letters in lower
/// case.
///
/// # Shapes
///
/// `kinds`: an element for each block of [`TEXT_BLOCK`] bytes (the last block may be shorter);
/// `lower`: as many bytes as these blocks have. Both are overwritten, with zeros past the end of
/// the text.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::text::{ByteKinds, TEXT_BLOCK, byte_kinds};
///
/// let (mut kinds, mut lower) = ([ByteKinds::default()], [0; TEXT_BLOCK]);
/// byte_kinds(Isa::Scalar, b"It's 1.", &mut kinds, &mut lower);
/// assert_eq!((kinds[0].letters, kinds[0].digits), (0b1011, 0b10_0000));
/// assert_eq!(&lower[..7], b"it's 1.");
/// ```
///
/// # Cost
///
/// One pass over the text: a step takes 64 bytes with AVX-512, 32 with AVX2, 8 on `portable`, 1 on
/// `scalar`.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above.
pub fn byte_kinds(isa: Isa, text: &[u8], kinds: &mut [ByteKinds], lower: &mut [u8]) {
    let blocks = text.len().div_ceil(TEXT_BLOCK);
    assert!(kinds.len() == blocks, "{blocks} blocks need as many kinds, not {}", kinds.len());
    let (lower, rest) = lower.as_chunks_mut();
    let is_shape = lower.len() == blocks && rest.is_empty();
    assert!(is_shape, "{blocks} blocks need as many for the lower case, not {}", lower.len());
    dispatch::<Base, _>(isa, Classify { text, kinds, lower });
}

/// The arguments of [`byte_kinds`].
struct Classify<'a> {
    text: &'a [u8],
    kinds: &'a mut [ByteKinds],
    lower: &'a mut [Block],
}

type Block = [u8; TEXT_BLOCK];

impl<L: ClassifyBlock> RunOn<L> for Classify<'_> {
    #[inline(always)]
    fn run_on(self, level: L) {
        let Self { text, kinds, lower } = self;
        let (blocks, rest) = text.as_chunks();
        for ((block, kinds), lower) in blocks.iter().zip(&mut *kinds).zip(&mut *lower) {
            *kinds = level.classify(block, lower);
        }
        if let (false, Some(kinds), Some(lower)) =
            (rest.is_empty(), kinds.last_mut(), lower.last_mut())
        {
            let mut last = [0; TEXT_BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            *kinds = level.classify(&last, lower);
        }
    }
}

/// The code of a level.
trait ClassifyBlock: Copy {
    /// Returns the kinds of a block, and writes its lower case.
    fn classify(self, block: &Block, lower: &mut Block) -> ByteKinds;
}
