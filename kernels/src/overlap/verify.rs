//! The loop over the pairs of a chunk.

use super::levels::{Intersect, REJECTED};
use super::pairs::Pairs;
use crate::simd::RunOn;

/// Number of pairs between the current pair and the pair whose candidate is prefetched.
const AHEAD: usize = 8;

/// Takes the answers.
pub(super) trait Sink {
    /// Whether the sink needs the overlap of a pair, or only needs to know that it suffices.
    const NEEDS_OVERLAP: bool;
    /// The answer for one pair.
    fn take(&mut self, pair: usize, overlap: u32);
}

/// Writes every answer.
pub(super) struct WriteOverlaps<'a> {
    pub(super) overlaps: &'a mut [u32],
}

impl Sink for WriteOverlaps<'_> {
    const NEEDS_OVERLAP: bool = true;

    #[inline(always)]
    fn take(&mut self, pair: usize, overlap: u32) {
        self.overlaps[pair] = overlap;
    }
}

/// Counts the pairs that are not rejected.
pub(super) struct CountPairs {
    pub(super) count: u64,
}

impl Sink for CountPairs {
    const NEEDS_OVERLAP: bool = false;

    #[inline(always)]
    fn take(&mut self, _: usize, overlap: u32) {
        self.count += u64::from(overlap != REJECTED);
    }
}

/// The arguments of [`verify`](super::verify) and [`count`](super::count).
pub(super) struct Verify<'a, K> {
    pub(super) pairs: Pairs<'a>,
    pub(super) sink: K,
}

impl<K: Sink, L: Intersect> RunOn<L, K> for Verify<'_, K> {
    #[inline(always)]
    fn run_on(self, level: L) -> K {
        let Self { pairs, mut sink } = self;
        for entry in pairs.chunk.entries {
            for index in entry.begin as usize..entry.end as usize {
                // Candidates are scattered in memory: a miss takes as long as several pairs.
                pairs.prefetch_candidate(index + AHEAD);
                let pair = pairs.pair(entry.probe, index);
                let overlap = if K::NEEDS_OVERLAP {
                    level.overlap::<true>(pair)
                } else {
                    level.overlap::<false>(pair)
                };
                sink.take(index, overlap);
            }
        }
        sink
    }
}
