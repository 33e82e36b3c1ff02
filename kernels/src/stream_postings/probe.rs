//! The loop over look-ups.

use super::block::{BLOCK, POSTINGS_PER_BLOCK, PostingTest};
use super::postings::{Hit, LookUp, Posting};
use crate::simd::{RunOn, prefetch};

/// Number of look-ups between the current look-up and the look-up whose list is prefetched.
const AHEAD: usize = 8;

/// The arguments of [`probe_lists`](super::probe_lists).
pub(super) struct ProbeLists<'a> {
    pub(super) postings: &'a [Posting],
    pub(super) look_ups: &'a [LookUp],
    pub(super) hits: &'a mut Vec<Hit>,
    pub(super) hits_max: usize,
}

impl<L: PostingTest> RunOn<L, usize> for ProbeLists<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> usize {
        let Self { postings, look_ups, hits, hits_max } = self;
        for (number, look_up) in (0_u32..).zip(look_ups) {
            if hits.len() >= hits_max {
                return number as usize;
            }
            if let Some(ahead) = look_ups.get(number as usize + AHEAD) {
                prefetch(postings, ahead.begin as usize);
            }
            debug_assert!(look_up.size_min <= look_up.size_max, "{look_up:?} has no sizes");
            let list = &postings[look_up.begin as usize..][..look_up.len as usize];
            let (full, rest) = list.as_chunks::<BLOCK>();
            let mut index = look_up.begin;
            for block in full {
                // The mask is almost always zero, so the processor predicts the branch.
                let mut passed = level.passed(block, look_up);
                while passed != 0 {
                    let posting = index + passed.trailing_zeros();
                    hits.push(Hit { look_up: number, posting });
                    // Clears the lowest bit.
                    passed &= passed - 1;
                }
                index += POSTINGS_PER_BLOCK;
            }
            for posting in rest {
                if look_up.passes(posting) {
                    hits.push(Hit { look_up: number, posting: index });
                }
                index += 1;
            }
        }
        look_ups.len()
    }
}
