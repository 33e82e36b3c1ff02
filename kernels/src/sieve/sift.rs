//! The loop of the sieve, written once over [`Lanes`].

use super::ahead::fetch_after;
use super::hot_keys::{HotKeys, KEYS_MAX};
use super::scalar;
use crate::simd::{Call, Key, Lanes, RunOn, Scalar, Simd, WEIGHTS_MAX, WideLanes, are_small};

/// Room that `missed` needs in addition to the number of items: a register is stored whole.
pub const MISSED_SLACK: usize = 16;

/// The distance in bytes at which items are prefetched. Half of it is a tenth slower at skew 5.
const AHEAD_BYTES: usize = 4096;

/// The shortest register with a prefetch for each.
const PREFETCH_BYTES_MIN: usize = 32;

/// Evaluates `$body` with the constant `$n` = `$keys`.
macro_rules! with_keys {
    ($keys:expr, $n:ident => $body:expr) => {
        with_keys!(@match $keys, $n => $body; 1 2 3 4 5 6 7 8)
    };
    (@match $keys:expr, $n:ident => $body:expr; $($count:literal)*) => {
        match $keys {
            $($count => {
                const $n: usize = $count;
                $body
            })*
            keys => unreachable!("{keys} keys, of at most {KEYS_MAX}"),
        }
    };
}

/// The arguments of [`sift`](super::sift).
pub(super) struct Sift<'a, K> {
    pub(super) hot: HotKeys<'a, K>,
    pub(super) items: &'a [K],
    pub(super) missed: &'a mut [K],
}

impl<K> Call for Sift<'_, K> {
    type Output = usize;
}

impl<K: Key> RunOn<Scalar> for Sift<'_, K> {
    #[inline(always)]
    fn run_on(self, _: Scalar) -> usize {
        scalar::sift(self.hot, self.items, self.missed)
    }
}

impl<K: Key, S: Simd> RunOn<S> for Sift<'_, K> {
    /// The number of keys is a constant of each loop, so that keys and counts are registers.
    #[inline(always)]
    fn run_on(self, simd: S) -> usize {
        with_keys!(self.hot.keys.len(), N => sift::<S, K, N>(simd, self))
    }
}

#[inline(always)]
fn sift<S: Simd, K: Key, const N: usize>(simd: S, call: Sift<'_, K>) -> usize {
    const { assert!(K::Lanes::<S>::COUNT <= MISSED_SLACK, "a register is stored whole") };
    let Sift { hot, items, missed } = call;
    let registers: [K::Lanes<S>; N] =
        std::array::from_fn(|key| K::Lanes::<S>::splat(simd, hot.keys[key]));
    let one = K::Lanes::<S>::one(simd);
    let mut counts = [K::Lanes::<S>::splat(simd, K::default()); N];
    let mut end = 0;
    let chunks = items.chunks_exact(K::Lanes::<S>::COUNT);
    let rest = chunks.remainder();
    for chunk in chunks {
        let items = K::Lanes::<S>::load(simd, chunk);
        fetch_ahead::<K::Lanes<S>>(chunk);
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
    for (hits, count) in hot.hits.iter_mut().zip(counts) {
        *hits = hits.saturating_add(sum_of::<S, K>(count));
    }
    end + scalar::sift(hot, rest, &mut missed[end..])
}

/// The arguments of [`sift_weighted`](super::sift_weighted).
pub(super) struct SiftWeighted<'a, K> {
    pub(super) hot: HotKeys<'a, K>,
    pub(super) items: &'a [K],
    pub(super) weights: &'a [u64],
    pub(super) missed: &'a mut [K],
    pub(super) missed_weights: &'a mut [u64],
}

impl<K> Call for SiftWeighted<'_, K> {
    type Output = usize;
}

impl<K: Key> RunOn<Scalar> for SiftWeighted<'_, K> {
    #[inline(always)]
    fn run_on(self, _: Scalar) -> usize {
        let Self { hot, items, weights, missed, missed_weights } = self;
        scalar::sift_weighted(hot, items, weights, missed, missed_weights)
    }
}

impl<K: Key, S: Simd> RunOn<S> for SiftWeighted<'_, K> {
    #[inline(always)]
    fn run_on(self, simd: S) -> usize {
        let Self { hot, items, weights, missed, missed_weights } = self;
        let mut end = 0;
        for (items, weights) in items.chunks(WEIGHTS_MAX).zip(weights.chunks(WEIGHTS_MAX)) {
            let (missed, missed_weights) = (&mut missed[end..], &mut missed_weights[end..]);
            let hot = HotKeys { keys: hot.keys, hits: &mut *hot.hits };
            end += if are_small(weights) {
                let block = SiftWeighted { hot, items, weights, missed, missed_weights };
                with_keys!(block.hot.keys.len(), N => sift_weighted::<S, K, N>(simd, block))
            } else {
                scalar::sift_weighted(hot, items, weights, missed, missed_weights)
            };
        }
        end
    }
}

/// Items of a block, with weights that are small.
#[inline(always)]
fn sift_weighted<S: Simd, K: Key, const N: usize>(simd: S, call: SiftWeighted<'_, K>) -> usize {
    let SiftWeighted { hot, items, weights, missed, missed_weights } = call;
    let registers: [K::Lanes<S>; N] =
        std::array::from_fn(|key| K::Lanes::<S>::splat(simd, hot.keys[key]));
    // As many registers of 64-bit lanes as the weights of a register of items fill, at most two.
    let mut lanes = [[S::U64::splat(simd, 0); 2]; N];
    let (mut end, mut weights_end) = (0, 0);
    let chunks = items.chunks_exact(K::Lanes::<S>::COUNT);
    let rest = chunks.remainder();
    let (weights, weights_rest) = weights.split_at(items.len() - rest.len());
    for (chunk, weights) in chunks.zip(weights.chunks_exact(K::Lanes::<S>::COUNT)) {
        let items = K::Lanes::<S>::load(simd, chunk);
        fetch_ahead::<K::Lanes<S>>(chunk);
        let masks: [_; N] = std::array::from_fn(|key| registers[key].matches(items));
        let any = masks[1..].iter().fold(masks[0], |any, &mask| K::Lanes::<S>::either(any, mask));
        end += items.compress(any, &mut missed[end..]);
        let parts = weights.chunks_exact(S::U64::COUNT);
        for (part, weights) in parts.enumerate().take(K::WIDTH) {
            fetch_ahead::<S::U64>(weights);
            let weights = S::U64::load(simd, weights);
            for (lanes, &mask) in lanes.iter_mut().zip(&masks) {
                lanes[part] = lanes[part].add(K::part::<S>(mask, part), weights);
            }
            let any = K::part::<S>(any, part);
            weights_end += weights.compress(any, &mut missed_weights[weights_end..]);
        }
    }
    for (sum, lanes) in hot.hits.iter_mut().zip(lanes) {
        let added: u64 = lanes.map(sum_of::<S, u64>).iter().sum();
        *sum = sum.saturating_add(added);
    }
    let (missed, missed_weights) = (&mut missed[end..], &mut missed_weights[end..]);
    end + scalar::sift_weighted(hot, rest, weights_rest, missed, missed_weights)
}

/// Prefetches what comes after the content of a register.
#[inline(always)]
fn fetch_ahead<L: Lanes>(keys: &[L::Key]) {
    // Shorter registers would ask several times for each cache line, which costs up to 15 %.
    if const { size_of::<L::Key>() * L::COUNT >= PREFETCH_BYTES_MIN } {
        fetch_after::<AHEAD_BYTES, _>(keys);
    }
}

/// The sum of the lanes.
#[inline(always)]
fn sum_of<S: Simd, K: Key>(register: K::Lanes<S>) -> u64 {
    let mut lanes = [K::default(); MISSED_SLACK];
    let lanes = &mut lanes[..K::Lanes::<S>::COUNT];
    register.store(lanes);
    lanes.iter().map(|lane| lane.to_count()).sum()
}
