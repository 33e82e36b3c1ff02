//! Masks of 64 bytes, made of eight bytes an instruction.

/// Bytes of a mask.
pub(super) const BLOCK: usize = 64;
/// Bytes of a word of the processor.
const LANES: usize = 8;
/// A number with this byte in each place is a multiple of it.
const EACH: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = EACH << 7;

/// Masks of the block at `base`; bytes past the end are outside of words.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Masks {
    /// Small letters, digits, underscores, and all that is not ASCII.
    pub(super) inside: u64,
    /// All that is not ASCII.
    pub(super) wide: u64,
    /// Underscores, and the bytes that can join what is beside them.
    special: u64,
}

impl Masks {
    #[inline]
    pub(super) fn at(bytes: &[u8], base: usize) -> Self {
        let rest = &bytes[base..];
        if let Some(block) = rest.first_chunk::<BLOCK>() {
            return Self::of(block);
        }
        if rest.is_empty() {
            return Self::default();
        }
        if let Some(block) = bytes.last_chunk::<BLOCK>() {
            // The last bytes of the block before it move out.
            return Self::of(block).moved(BLOCK - rest.len());
        }
        let mut block = [0; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        Self::of(&block)
    }

    /// The masks without the first `bytes`.
    #[inline]
    fn moved(self, bytes: usize) -> Self {
        let Self { inside, wide, special } = self;
        Self { inside: inside >> bytes, wide: wide >> bytes, special: special >> bytes }
    }

    /// Whether words are the runs of ones, for a block after a byte of which `is_inside` tells
    /// whether it is in a word. A text begins at each of the bytes `cuts`.
    #[inline]
    pub(super) fn is_plain(&self, is_inside: bool, cuts: u64) -> bool {
        let Self { inside, wide, special } = *self;
        let before = (inside << 1 | u64::from(is_inside)) & !cuts;
        // The byte after the block may be anything.
        let after = (inside & !cuts) >> 1 | 1 << (BLOCK - 1);
        wide | (special & (before & after | inside)) == 0
    }

    #[inline]
    fn of(block: &[u8; BLOCK]) -> Self {
        let (lanes, _) = block.as_chunks::<LANES>();
        let mut masks = Self::default();
        for (place, bytes) in lanes.iter().enumerate() {
            let bytes = u64::from_le_bytes(*bytes);
            let (low, wide) = (bytes & !HIGH, bytes & HIGH);
            // A sum has its highest bit if the byte, which has 7 bits, is at least the limit.
            let at_least = |limit: u8| low + EACH * u64::from(0x80 - limit);
            let within = |first: u8, last: u8| at_least(first) & !at_least(last + 1);
            let underscores = within(b'_', b'_');
            let inside = within(b'a', b'z') | within(b'0', b'9') | underscores;
            let quotes = within(b'\'', b'\'');
            let special = within(b':', b';') | within(b',', b',') | within(b'.', b'.') | quotes;
            masks.inside |= bits(inside & HIGH | wide) << (LANES * place);
            masks.wide |= bits(wide) << (LANES * place);
            masks.special |= bits((special | underscores) & HIGH & !wide) << (LANES * place);
        }
        masks
    }
}

/// The highest bits of eight bytes as the lowest bits of the answer.
#[inline]
fn bits(bytes: u64) -> u64 {
    // The product moves the bit of byte `i` to bit `i` of the highest byte.
    (bytes >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}
