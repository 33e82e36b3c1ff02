//! The loop of the sieve, written once over [`Lanes`].

use super::scalar;
use crate::simd::{Call, Key, Lanes, RunOn, Scalar, Simd, prefetch};

/// The maximum number of keys that a call can take out.
pub const KEYS_MAX: usize = 8;

/// Room that `missed` needs in addition to the number of items: a register is stored whole.
pub const MISSED_SLACK: usize = 16;

/// The distance in bytes at which items are prefetched. The processor's own prefetch stops at the
/// end of a page and comes too late. With items from memory, 1.3 to 3 times faster from skew 1.5
/// to 5; half and twice the distance are the same.
const AHEAD_BYTES: usize = 4096;

/// The shortest register with a prefetch for each.
const PREFETCH_BYTES_MIN: usize = 32;

/// The arguments of [`sift`](super::sift).
pub(super) struct Sift<'a, K> {
    pub(super) keys: &'a [K],
    pub(super) items: &'a [K],
    pub(super) hits: &'a mut [u64],
    pub(super) missed: &'a mut [K],
}

impl<K> Call for Sift<'_, K> {
    type Output = usize;
}

impl<K: Key> RunOn<Scalar> for Sift<'_, K> {
    #[inline(always)]
    fn run_on(self, _: Scalar) -> usize {
        scalar::sift(self.keys, self.items, self.hits, self.missed)
    }
}

impl<K: Key, S: Simd> RunOn<S> for Sift<'_, K> {
    /// The number of keys is a constant of each loop, so that keys and counts are registers.
    #[inline(always)]
    fn run_on(self, simd: S) -> usize {
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
        // Shorter registers would ask several times for each cache line, which costs up to 15 %.
        if const { size_of::<K>() * K::Lanes::<S>::COUNT >= PREFETCH_BYTES_MIN } {
            prefetch(chunk, AHEAD_BYTES / size_of::<K>());
        }
        // Hits are added under the mask, and all others stored: no branch depends on the data.
        let mut any = registers[0].matches(items);
        counts[0] = counts[0].count(any, one);
        for key in 1..N {
            let mask = registers[key].matches(items);
            counts[key] = counts[key].count(mask, one);
            any = K::Lanes::<S>::either(any, mask);
        }
        // Stored as a whole register; the next one begins where the missed items end.
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
