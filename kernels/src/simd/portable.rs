//! The 128-bit vectors of `wide`, which every target has or emulates.
//!
//! `wide` chooses its instructions when it is compiled: SSE2 in a default x86-64 build, NEON on
//! AArch64.

use wide::{u32x4, u64x2};

use super::call::Portable;
use super::lanes::{Lanes, Simd};

impl Simd for Portable {
    type U32 = U32x4;
    type U64 = U64x2;

    #[inline(always)]
    fn halves(mask: u32x4) -> [u64x2; 2] {
        // A mask has all bits of a lane, or none.
        let [a, b, c, d] = mask.to_array().map(|lane| u64::from(lane) << 32 | u64::from(lane));
        [u64x2::new([a, b]), u64x2::new([c, d])]
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the lower halves")]
    fn narrow([low, high]: [U64x2; 2]) -> U32x4 {
        let ([a, b], [c, d]) = (low.0.to_array(), high.0.to_array());
        U32x4(u32x4::new([a, b, c, d].map(|lane| lane as u32)))
    }
}

/// Four 32-bit lanes.
#[derive(Clone, Copy)]
pub(crate) struct U32x4(u32x4);

/// Two 64-bit lanes.
#[derive(Clone, Copy)]
pub(crate) struct U64x2(u64x2);

macro_rules! lanes {
    ($register:ident, $vector:ident, $key:ident, $count:literal) => {
        impl Lanes for $register {
            type Simd = Portable;
            type Key = $key;
            /// A mask has all bits of a lane, or none.
            type Mask = $vector;
            const COUNT: usize = $count;

            #[inline(always)]
            fn splat(_: Portable, key: $key) -> Self {
                Self($vector::splat(key))
            }

            #[inline(always)]
            fn load(_: Portable, keys: &[$key]) -> Self {
                let keys: [$key; $count] = keys.try_into().expect("a register has COUNT lanes");
                Self($vector::new(keys))
            }

            #[inline(always)]
            fn store(self, keys: &mut [$key]) {
                keys.copy_from_slice(&self.0.to_array());
            }

            #[inline(always)]
            fn matches(self, other: Self) -> $vector {
                self.0.simd_eq(other.0)
            }

            #[inline(always)]
            fn one(_: Portable) -> Self {
                Self($vector::splat(1))
            }

            #[inline(always)]
            fn count(self, mask: $vector, _: Self) -> Self {
                Self(self.0 - mask)
            }

            #[inline(always)]
            fn add(self, mask: $vector, numbers: Self) -> Self {
                Self(self.0 + (mask & numbers.0))
            }

            #[inline(always)]
            fn either(left: $vector, right: $vector) -> $vector {
                left | right
            }

            #[inline(always)]
            fn bits(mask: $vector) -> u64 {
                mask.to_bitmask().into()
            }

            #[inline(always)]
            fn compress(self, dropped: $vector, keys: &mut [$key]) -> usize {
                let keys: &mut [$key; $count] =
                    (&mut keys[..$count]).try_into().expect("sliced to COUNT lanes");
                let dropped = dropped.to_bitmask() as usize;
                let mut kept = 0;
                for (lane, key) in self.0.to_array().into_iter().enumerate() {
                    // Every lane is stored, and the next one overwrites it if it is dropped: no
                    // branch depends on the data. The `&` changes nothing, as at most `lane` keys
                    // are kept before this one, and tells the compiler that the index is in
                    // range.
                    keys[kept & ($count - 1)] = key;
                    kept += 1 - (dropped >> lane & 1);
                }
                kept
            }
        }
    };
}

lanes!(U32x4, u32x4, u32, 4);
lanes!(U64x2, u64x2, u64, 2);
