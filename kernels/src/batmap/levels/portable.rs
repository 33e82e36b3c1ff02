//! Blocks in the 128-bit vectors of `wide`, four vectors for each block.

use wide::u8x16;

use super::{Compared, Slots};
use crate::batmap::map::Block;
use crate::simd::Portable;

/// Vectors of a block.
const VECTORS: usize = 4;

impl Slots for Portable {
    type Bytes = [u8x16; VECTORS];

    #[inline(always)]
    fn splat(self, byte: u8) -> Self::Bytes {
        [u8x16::splat(byte); VECTORS]
    }

    #[inline(always)]
    fn load(self, block: &Block) -> Self::Bytes {
        let (vectors, _) = block.0.as_chunks();
        std::array::from_fn(|index| u8x16::new(vectors[index]))
    }

    #[inline(always)]
    fn count_pair(
        self,
        counts: Self::Bytes,
        [left, right]: [Self::Bytes; 2],
        compared: Compared<Self::Bytes>,
    ) -> Self::Bytes {
        std::array::from_fn(
            #[inline(always)]
            |index| {
                let (left, right) = (left[index], right[index]);
                // A flag must be in one slot at least: where one slot lacks the flag, the slots
                // must differ.
                let differences = (left ^ right) & compared.all[index];
                let expected = compared.flags[index] & !(left & right);
                // All bits of a byte are the number -1.
                counts[index] - differences.simd_eq(expected)
            },
        )
    }

    #[inline(always)]
    fn count_triple<const IS_LAST: bool>(
        self,
        counts: Self::Bytes,
        [first, second, third]: [Self::Bytes; 3],
        compared: Compared<Self::Bytes>,
    ) -> Self::Bytes {
        std::array::from_fn(
            #[inline(always)]
            |index| {
                let [first, second, third] = [first[index], second[index], third[index]];
                let differences = ((first ^ second) | (first ^ third)) & compared.codes[index];
                let flags = if IS_LAST { first ^ second ^ third } else { first | second | third };
                let lacking = compared.flags[index] & !flags;
                counts[index] - (differences | lacking).simd_eq(u8x16::ZERO)
            },
        )
    }

    #[inline(always)]
    fn sum(self, counts: Self::Bytes) -> u32 {
        counts.iter().flat_map(|vector| vector.to_array()).map(u32::from).sum()
    }
}
