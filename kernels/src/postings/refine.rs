//! The test by signatures of more bits.

use super::call::Candidate;
use super::registers::{Kernel, Registers};
use crate::prefetch::prefetch;

/// How many candidates ahead signatures are asked for.
const AHEAD: usize = 12;

/// The arguments of [`refine`](super::refine).
pub(super) struct Refine<'a> {
    pub(super) words: usize,
    pub(super) signatures: &'a [u64],
    pub(super) distance_max: &'a [u32],
    pub(super) candidates: &'a mut [Candidate],
}

impl Kernel for Refine<'_> {
    type Output = usize;

    fn scalar(self) -> usize {
        self.run()
    }

    /// The compiler makes the best of population counts, whose number is known.
    #[inline(always)]
    fn blocks<R: Registers>(self, _: R) -> usize {
        self.run()
    }
}

impl Refine<'_> {
    #[inline(always)]
    fn run(self) -> usize {
        match self.words {
            2 => self.of_words::<2>(),
            4 => self.of_words::<4>(),
            _ => self.of_words::<8>(),
        }
    }

    #[inline(always)]
    fn of_words<const WORDS: usize>(self) -> usize {
        let Self { signatures, distance_max, candidates, .. } = self;
        let (signatures, _) = signatures.as_chunks::<WORDS>();
        let mut kept = 0;
        for at in 0..candidates.len() {
            if let Some(next) = candidates.get(at + AHEAD) {
                prefetch(signatures, next.set as usize);
            }
            let candidate = candidates[at];
            let probe = signatures[candidate.probe as usize];
            let set = signatures[candidate.set as usize];
            candidates[kept] = candidate;
            let distance_max = distance_max[(candidate.place >> 16) as usize];
            kept += usize::from(distance(probe, set) <= distance_max);
        }
        kept
    }
}

/// In how many bits two signatures differ.
#[inline(always)]
fn distance<const WORDS: usize>(left: [u64; WORDS], right: [u64; WORDS]) -> u32 {
    let mut distance = 0;
    for word in 0..WORDS {
        distance += (left[word] ^ right[word]).count_ones();
    }
    distance
}
