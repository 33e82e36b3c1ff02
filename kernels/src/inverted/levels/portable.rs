//! Blocks on the 128-bit vectors of `wide`.

use wide::{u16x8, u32x4};

use super::{BLOCK, Blocks};
use crate::Isa;
use crate::simd::Portable;

impl Blocks for Portable {
    const ISA: Isa = Isa::Portable;

    #[inline(always)]
    fn has(self, block: &[u16; BLOCK], len: usize, half: u16) -> bool {
        let (registers, _) = block.as_chunks::<8>();
        let half = u16x8::splat(half);
        let bits = |register: [u16; 8]| u16x8::new(register).simd_eq(half).to_bitmask();
        let equal = bits(registers[0]) | bits(registers[1]) << 8;
        equal & !(u32::MAX << len) != 0
    }

    #[inline(always)]
    fn common(self, left: &[u32; BLOCK], right: &[u32; BLOCK]) -> u32 {
        let (registers, _) = left.as_chunks::<4>();
        let mut hits = 0;
        for (at, &register) in registers.iter().enumerate() {
            let register = u32x4::new(register);
            let mut any = u32x4::ZERO;
            for &id in right {
                any |= register.simd_eq(u32x4::splat(id));
            }
            hits |= any.to_bitmask() << (4 * at);
        }
        hits
    }
}
