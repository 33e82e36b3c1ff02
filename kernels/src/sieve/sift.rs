//! The loop of the sieve, written once over [`Lanes`].

use super::{KEYS_MAX, Key, MISSED_SLACK, scalar};
use crate::filter::lanes::{Kernel, Lanes, Simd};

/// Distance of the prefetch in bytes: the hardware prefetcher ends with a page, and is too late.
/// With items from memory, 1.3 to 3 times faster from skew 1.5 to 5; half and twice as far are
/// the same.
const AHEAD_BYTES: usize = 4096;

/// The arguments of [`sift`](super::sift).
pub(super) struct Sift<'a, K> {
    pub(super) keys: &'a [K],
    pub(super) items: &'a [K],
    pub(super) hits: &'a mut [u64],
    pub(super) missed: &'a mut [K],
}

impl<K: Key> Kernel for Sift<'_, K> {
    type Output = usize;

    fn scalar(self) -> usize {
        scalar::sift(self.keys, self.items, self.hits, self.missed)
    }

    /// The number of keys is a constant of each loop, so that keys and counts are registers.
    #[inline(always)]
    fn vector<S: Simd>(self, simd: S) -> usize {
        match self.keys.len() {
            1 => sift::<S, K, 1>(simd, self),
            2 => sift::<S, K, 2>(simd, self),
            3 => sift::<S, K, 3>(simd, self),
            4 => sift::<S, K, 4>(simd, self),
            5 => sift::<S, K, 5>(simd, self),
            6 => sift::<S, K, 6>(simd, self),
            7 => sift::<S, K, 7>(simd, self),
            8 => sift::<S, K, 8>(simd, self),
            keys => unreachable!("{keys} keys, of at most {KEYS_MAX}"),
        }
    }
}

#[inline(always)]
fn sift<S: Simd, K: Key, const N: usize>(simd: S, call: Sift<'_, K>) -> usize {
    const { assert!(K::Lanes::<S>::COUNT <= MISSED_SLACK, "a register is stored whole") };
    let Sift { keys, items, hits, missed } = call;
    let registers: [K::Lanes<S>; N] =
        std::array::from_fn(|key| K::Lanes::<S>::splat(simd, keys[key]));
    let one = K::Lanes::<S>::one(simd);
    let mut counts = [K::Lanes::<S>::splat(simd, K::default()); N];
    let mut end = 0;
    let chunks = items.chunks_exact(K::Lanes::<S>::COUNT);
    let rest = chunks.remainder();
    for chunk in chunks {
        let items = K::Lanes::<S>::load(simd, chunk);
        K::Lanes::<S>::prefetch(simd, chunk, AHEAD_BYTES / size_of::<K>());
        let mut any = registers[0].matches(items);
        counts[0] = counts[0].count(any, one);
        for key in 1..N {
            let mask = registers[key].matches(items);
            counts[key] = counts[key].count(mask, one);
            any = K::Lanes::<S>::either(any, mask);
        }
        end += items.compress(any, &mut missed[end..]);
    }
    for (hits, count) in hits.iter_mut().zip(counts) {
        *hits = hits.saturating_add(sum::<S, K>(count));
    }
    end + scalar::sift(keys, rest, hits, &mut missed[end..])
}

/// The sum of the lanes.
#[inline(always)]
fn sum<S: Simd, K: Key>(register: K::Lanes<S>) -> u64 {
    let mut lanes = [K::default(); MISSED_SLACK];
    let lanes = &mut lanes[..K::Lanes::<S>::COUNT];
    register.store(lanes);
    lanes.iter().map(|lane| lane.to_count()).sum()
}
