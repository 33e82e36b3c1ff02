//! The bits that bitmaps have in common, as a trait that each level implements.

use crate::simd::{Portable, Scalar};
use crate::supports::sliced::BitRow;

/// Bitmaps that one bitmap is compared with at once.
pub(super) const GROUP: usize = 4;

/// A level that counts common bits.
pub(super) trait SharedBits: Copy {
    /// Number of bits that `own` has in common with each of four bitmaps of its length.
    fn shared(self, own: &[BitRow], columns: [&[BitRow]; GROUP]) -> [u32; GROUP];
}

/// Word by word.
#[inline(always)]
fn by_words(own: &[BitRow], columns: [&[BitRow]; GROUP]) -> [u32; GROUP] {
    let mut shared = [0; GROUP];
    for (shared, column) in shared.iter_mut().zip(columns) {
        for (own, row) in own.iter().zip(column) {
            let bits = own.0.iter().zip(&row.0);
            *shared += bits.map(|(own, word)| (own & word).count_ones()).sum::<u32>();
        }
    }
    shared
}

macro_rules! words {
    ($level:ty) => {
        impl SharedBits for $level {
            #[inline(always)]
            fn shared(self, own: &[BitRow], columns: [&[BitRow]; GROUP]) -> [u32; GROUP] {
                by_words(own, columns)
            }
        }
    };
}

words!(Scalar);
words!(Portable);

#[cfg(target_arch = "x86_64")]
mod x86 {
    #![expect(unsafe_code, reason = "intrinsics of instruction sets that are detected at run time")]

    use std::arch::x86_64::{
        _mm256_add_epi64, _mm256_and_si256, _mm256_setzero_si256, _mm256_storeu_si256,
        _mm512_add_epi64, _mm512_and_si512, _mm512_setzero_si512,
    };

    use super::{BitRow, GROUP, SharedBits};
    use crate::simd::{Avx2, Avx512, Extension, avx2, avx512};

    impl<E: Extension> SharedBits for Avx512<E> {
        #[inline(always)]
        fn shared(self, own: &[BitRow], columns: [&[BitRow]; GROUP]) -> [u32; GROUP] {
            let mut sums = [avx512!(self, _mm512_setzero_si512()); GROUP];
            let columns = columns.map(|column| &column[..own.len()]);
            for (index, row) in own.iter().enumerate() {
                let own = self.load_u64(&row.0);
                for column in 0..GROUP {
                    let other = self.load_u64(&columns[column][index].0);
                    let both = avx512!(self, _mm512_and_si512(own, other));
                    let counts = self.count_bits(both);
                    sums[column] = avx512!(self, _mm512_add_epi64(sums[column], counts));
                }
            }
            let mut shared = [0; GROUP];
            for (shared, sums) in shared.iter_mut().zip(sums) {
                let mut lanes = [0; 8];
                self.store_u64(sums, &mut lanes);
                *shared = lanes.into_iter().map(narrow).sum();
            }
            shared
        }
    }

    impl SharedBits for Avx2 {
        #[inline(always)]
        fn shared(self, own: &[BitRow], columns: [&[BitRow]; GROUP]) -> [u32; GROUP] {
            let mut sums = [avx2!(self, _mm256_setzero_si256()); GROUP];
            let columns = columns.map(|column| &column[..own.len()]);
            for (index, row) in own.iter().enumerate() {
                let (own, _) = row.0.as_chunks::<4>();
                for column in 0..GROUP {
                    let (other, _) = columns[column][index].0.as_chunks::<4>();
                    for half in 0..2 {
                        let (own, other) = (self.load_u64(&own[half]), self.load_u64(&other[half]));
                        let both = avx2!(self, _mm256_and_si256(own, other));
                        let counts = self.add_bytes(self.count_bits_of_bytes(both));
                        sums[column] = avx2!(self, _mm256_add_epi64(sums[column], counts));
                    }
                }
            }
            let mut shared = [0; GROUP];
            for (shared, sums) in shared.iter_mut().zip(sums) {
                let mut lanes = [0_u64; 4];
                // SAFETY: the array is 32 writable bytes, and the store needs no alignment;
                // features as in `avx2!`.
                unsafe { _mm256_storeu_si256(std::ptr::from_mut(&mut lanes).cast(), sums) };
                *shared = lanes.into_iter().map(narrow).sum();
            }
            shared
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "bits of a strip")]
    const fn narrow(count: u64) -> u32 {
        count as u32
    }
}
