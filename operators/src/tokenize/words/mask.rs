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
#[derive(Debug, Clone, Copy)]
pub(super) struct Masks {
    /// Small letters, digits, underscores, and all that is not ASCII.
    pub(super) inside: u64,
    /// All that is not ASCII.
    pub(super) wide: u64,
}

impl Masks {
    #[inline]
    pub(super) fn at(bytes: &[u8], base: usize) -> Self {
        let rest = &bytes[base..];
        if let Some(block) = rest.first_chunk::<BLOCK>() {
            return Self::of(block);
        }
        let mut block = [0; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        Self::of(&block)
    }

    #[inline]
    fn of(block: &[u8; BLOCK]) -> Self {
        let (lanes, _) = block.as_chunks::<LANES>();
        let mut masks = Self { inside: 0, wide: 0 };
        for (place, bytes) in lanes.iter().enumerate() {
            let bytes = u64::from_le_bytes(*bytes);
            let (low, wide) = (bytes & !HIGH, bytes & HIGH);
            // A sum has its highest bit if the byte, which has 7 bits, is at least the limit.
            let at_least = |limit: u8| low + EACH * u64::from(0x80 - limit);
            let letters = at_least(b'a') & !at_least(b'z' + 1);
            let digits = at_least(b'0') & !at_least(b'9' + 1);
            let underscores = at_least(b'_') & !at_least(b'_' + 1);
            let inside = ((letters | digits | underscores) & HIGH) | wide;
            masks.inside |= bits(inside) << (LANES * place);
            masks.wide |= bits(wide) << (LANES * place);
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
