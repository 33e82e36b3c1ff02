//! Blocks on the 512-bit registers of AVX-512, four postings each. Population counts of vectors are
//! an extension that most of these processors have; without it, the bits of each half byte are
//! looked up.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi8, _mm512_and_si512, _mm512_cmple_epu64_mask, _mm512_loadu_si512,
    _mm512_mask_cmple_epu64_mask, _mm512_maskz_compress_epi64, _mm512_popcnt_epi64,
    _mm512_sad_epu8, _mm512_set1_epi8, _mm512_set1_epi64, _mm512_set4_epi32, _mm512_setzero_si512,
    _mm512_shuffle_epi8, _mm512_srli_epi16, _mm512_storeu_si512, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi64, _mm512_xor_si512,
};

use super::BLOCK;
use super::call::{Met, Posting};
use super::registers::{Kernel, Limits, Registers};

/// Postings of two registers.
const HALF: usize = BLOCK / 2;

/// For each number of valid postings of eight: their lanes, when two registers of four have been
/// interleaved.
const VALID: [u8; HALF + 1] = valid();

const fn valid() -> [u8; HALF + 1] {
    let order = [0, 4, 1, 5, 2, 6, 3, 7];
    let mut table = [0; HALF + 1];
    let mut count = 0;
    while count <= HALF {
        let mut lane = 0;
        while lane < HALF {
            if order[lane] < count {
                table[count] |= 1 << lane;
            }
            lane += 1;
        }
        count += 1;
    }
    table
}

/// Whether the processor counts the bits of vectors.
pub(super) fn has_popcount() -> bool {
    is_x86_feature_detected!("avx512vpopcntdq")
}

/// Runs a kernel on 512-bit registers. The features are those of `Isa::Avx512`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: Kernel>(kernel: T) -> T::Output {
    kernel.blocks(Avx512::<false>(()))
}

/// As [`run`], with the population count.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn run_with_popcount<T: Kernel>(kernel: T) -> T::Output {
    kernel.blocks(Avx512::<true>(()))
}

/// The proof that the processor has AVX-512, and with `POPCOUNT` the population count: made by
/// [`run`] and [`run_with_popcount`] alone.
#[derive(Clone, Copy)]
struct Avx512<const POPCOUNT: bool>(());

/// Calls an intrinsic in a place that holds an [`Avx512`].
macro_rules! avx512 {
    ($call:expr) => {
        // SAFETY: an `Avx512` exists only where `run` or `run_with_popcount` was entered, whose
        // features these are.
        unsafe { $call }
    };
}

impl<const POPCOUNT: bool> Avx512<POPCOUNT> {
    #[inline(always)]
    fn load(self, postings: &[Posting; 4]) -> __m512i {
        // SAFETY: the array is 64 readable bytes without padding, and the load needs no alignment;
        // features as in `avx512!`.
        unsafe { _mm512_loadu_si512(std::ptr::from_ref(postings).cast()) }
    }

    /// How many bits each 64-bit lane has set.
    #[inline(always)]
    fn count_bits(self, words: __m512i) -> __m512i {
        if POPCOUNT {
            return avx512!(_mm512_popcnt_epi64(words));
        }
        let of_half =
            avx512!(_mm512_set4_epi32(0x0403_0302, 0x0302_0201, 0x0302_0201, 0x0201_0100));
        let low = avx512!(_mm512_set1_epi8(0x0f));
        let high_bits = avx512!(_mm512_srli_epi16::<4>(words));
        let high_bits = avx512!(_mm512_and_si512(high_bits, low));
        let low_bits = avx512!(_mm512_and_si512(words, low));
        let of_high = avx512!(_mm512_shuffle_epi8(of_half, high_bits));
        let of_low = avx512!(_mm512_shuffle_epi8(of_half, low_bits));
        let bytes = avx512!(_mm512_add_epi8(of_high, of_low));
        let zero = avx512!(_mm512_setzero_si512());
        avx512!(_mm512_sad_epu8(bytes, zero))
    }

    /// Tests eight postings; as [`Registers::test`].
    #[inline(always)]
    fn test_half(
        self,
        half: &[Posting; HALF],
        valid: usize,
        limits: Limits,
        to: &mut [Met; HALF],
    ) -> usize {
        let (quarters, _) = half.as_chunks::<4>();
        let (first, second) = (self.load(&quarters[0]), self.load(&quarters[1]));
        let met = avx512!(_mm512_unpacklo_epi64(first, second));
        let signatures = avx512!(_mm512_unpackhi_epi64(first, second));
        let low = avx512!(_mm512_set1_epi64(0xffff));
        let positions = avx512!(_mm512_and_si512(met, low));
        let position_max = avx512!(_mm512_set1_epi64(limits.position_max.into()));
        let is_near = avx512!(_mm512_cmple_epu64_mask(positions, position_max));
        let is_near = is_near & VALID[valid];
        let signature = avx512!(_mm512_set1_epi64(limits.signature.cast_signed()));
        let difference = avx512!(_mm512_xor_si512(signatures, signature));
        let distances = self.count_bits(difference);
        let distance_max = avx512!(_mm512_set1_epi64(limits.distance_max.into()));
        let passed = avx512!(_mm512_mask_cmple_epu64_mask(is_near, distances, distance_max));
        if passed != 0 {
            let met = avx512!(_mm512_maskz_compress_epi64(passed, met));
            // SAFETY: the array is 64 writable bytes, any of which make a `Met`, and the store
            // needs no alignment; features as in `avx512!`.
            unsafe { _mm512_storeu_si512(std::ptr::from_mut(to).cast(), met) };
        }
        passed.count_ones() as usize
    }
}

impl<const POPCOUNT: bool> Registers for Avx512<POPCOUNT> {
    #[inline(always)]
    fn test(
        self,
        block: &[Posting; BLOCK],
        valid: usize,
        limits: Limits,
        to: &mut [Met; BLOCK],
    ) -> usize {
        let (halves, _) = block.as_chunks::<HALF>();
        let (to_halves, _) = to.as_chunks_mut::<HALF>();
        let passed = self.test_half(&halves[0], valid.min(HALF), limits, &mut to_halves[0]);
        if valid <= HALF {
            return passed;
        }
        let mut behind = [Met::default(); HALF];
        let more = self.test_half(&halves[1], valid - HALF, limits, &mut behind);
        if more > 0 {
            // There is room: of the first half no more than eight passed.
            let to = to[passed..].first_chunk_mut().expect("half of the block is left");
            *to = behind;
        }
        passed + more
    }
}
