//! The test of eight lanes of a strip, as a trait that each level implements.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::simd::Portable;

/// Lanes that are tested at once.
pub(super) const GROUP: usize = 8;

/// A level that tests distances of signatures.
pub(super) trait DistanceTest: Copy {
    /// The lanes, as bits, that differ from the signature in fewer bits than their bounds: word
    /// `w` of lane `l` is `lanes[w][l]`.
    fn fewer<const WORDS: usize>(
        self,
        signature: [u64; WORDS],
        lanes: [&[u64; GROUP]; WORDS],
        bounds: &[u64; GROUP],
    ) -> u32;
}

/// The level goes lane by lane: a default x86-64 build has no population count, neither of vectors
/// nor of words.
impl DistanceTest for Portable {
    #[inline(always)]
    fn fewer<const WORDS: usize>(
        self,
        signature: [u64; WORDS],
        lanes: [&[u64; GROUP]; WORDS],
        bounds: &[u64; GROUP],
    ) -> u32 {
        let mut distances = [0; GROUP];
        for word in 0..WORDS {
            for lane in 0..GROUP {
                distances[lane] += u64::from((lanes[word][lane] ^ signature[word]).count_ones());
            }
        }
        let mut fewer = 0;
        for lane in 0..GROUP {
            fewer |= u32::from(distances[lane] < bounds[lane]) << lane;
        }
        fewer
    }
}
