//! Lanes on the 256-bit registers of AVX2, four each. There is no population count of vectors: the
//! bits of each half byte are looked up, and the bytes of a word added.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_castsi256_pd, _mm256_cmpgt_epi64, _mm256_loadu_si256,
    _mm256_movemask_pd, _mm256_sad_epu8, _mm256_set1_epi64x, _mm256_setzero_si256,
    _mm256_xor_si256,
};

use super::registers::{GROUP, Kernel, Registers};
use crate::bits;

/// Lanes of a register.
const LANES: usize = 4;

/// Runs a kernel on 256-bit registers. The features are those of `Isa::Avx2`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: Kernel>(kernel: T) -> T::Output {
    kernel.groups(Avx2(()))
}

/// The proof that the processor has AVX2: made by [`run`] alone.
#[derive(Clone, Copy)]
struct Avx2(());

/// Calls an intrinsic in a place that holds an [`Avx2`].
macro_rules! avx2 {
    ($call:expr) => {
        // SAFETY: an `Avx2` exists only where `run` was entered, whose features these are.
        unsafe { $call }
    };
}

impl Avx2 {
    #[inline(always)]
    fn load(self, words: &[u64; LANES]) -> __m256i {
        // SAFETY: the array is 32 readable bytes, and the load needs no alignment; features as in
        // `avx2!`.
        unsafe { _mm256_loadu_si256(std::ptr::from_ref(words).cast()) }
    }
}

impl Registers for Avx2 {
    #[inline(always)]
    fn fewer<const WORDS: usize>(
        self,
        signature: [u64; WORDS],
        lanes: [&[u64; GROUP]; WORDS],
        bounds: &[u64; GROUP],
    ) -> u32 {
        let (halves, _) = bounds.as_chunks::<LANES>();
        let zero = avx2!(_mm256_setzero_si256());
        let mut fewer = 0;
        for half in 0..GROUP / LANES {
            // A byte of eight words counts at most 64.
            let mut bytes = zero;
            for word in 0..WORDS {
                let (words, _) = lanes[word].as_chunks::<LANES>();
                let own = avx2!(_mm256_set1_epi64x(signature[word].cast_signed()));
                let difference = avx2!(_mm256_xor_si256(self.load(&words[half]), own));
                let counts = avx2!(bits::of_bytes(difference));
                bytes = avx2!(_mm256_add_epi8(bytes, counts));
            }
            let distances = avx2!(_mm256_sad_epu8(bytes, zero));
            let is_less = avx2!(_mm256_cmpgt_epi64(self.load(&halves[half]), distances));
            let is_less = avx2!(_mm256_castsi256_pd(is_less));
            let bits = avx2!(_mm256_movemask_pd(is_less)).cast_unsigned();
            fewer |= bits << (LANES * half);
        }
        fewer
    }
}
