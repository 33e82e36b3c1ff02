//! The loop of the sieve, written once over [`Lanes`].

use super::ahead::{WEIGHTS_AHEAD_BYTES, fetch_after, fetch_after_lines};
use super::hot_keys::{HotKeys, KEYS_MAX};
use super::scalar;
use crate::simd::{Key, Lanes, MaskOf, RunOn, Scalar, Simd, WEIGHT_END, WEIGHTS_MAX, bits_of};

/// Room that `missed` needs in addition to the number of items: a register is stored whole.
pub const MISSED_SLACK: usize = 16;

/// The distance in bytes at which items are prefetched. Half the distance is a tenth slower at skew
/// 5.
const AHEAD_BYTES: usize = 4096;

/// The least bytes of a register that gets a prefetch of its own.
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

impl<K: Key> RunOn<Scalar, usize> for Sift<'_, K> {
    #[inline(always)]
    fn run_on(self, _: Scalar) -> usize {
        scalar::sift(self.hot, self.items, self.missed)
    }
}

impl<K: Key, S: Simd> RunOn<S, usize> for Sift<'_, K> {
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
        // Hits are added under the mask, and all missed items are stored: no branch depends on the
        // data.
        let mut any = registers[0].matches(items);
        counts[0] = counts[0].count(any, one);
        for key in 1..N {
            let mask = registers[key].matches(items);
            counts[key] = counts[key].count(mask, one);
            any = K::Lanes::<S>::either(any, mask);
        }
        // The register is stored whole; the next register begins where the missed items end.
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

impl<K: Key> RunOn<Scalar, usize> for SiftWeighted<'_, K> {
    #[inline(always)]
    fn run_on(self, _: Scalar) -> usize {
        let Self { hot, items, weights, missed, missed_weights } = self;
        scalar::sift_weighted(hot, items, weights, missed, missed_weights)
    }
}

impl<K: Key, S: Simd> RunOn<S, usize> for SiftWeighted<'_, K> {
    #[inline(always)]
    fn run_on(self, simd: S) -> usize {
        let Self { hot, items, weights, missed, missed_weights } = self;
        let mut end = 0;
        for (items, weights) in items.chunks(WEIGHTS_MAX).zip(weights.chunks(WEIGHTS_MAX)) {
            let (missed, missed_weights) = (&mut missed[end..], &mut missed_weights[end..]);
            let hot = HotKeys { keys: hot.keys, hits: &mut *hot.hits };
            let bits = bits_of(weights);
            let block = SiftWeighted { hot, items, weights, missed, missed_weights };
            end += if bits < K::WEIGHT_END {
                with_keys!(block.hot.keys.len(), N => {
                    sift_weighted::<S, K, Narrow<S, K>, N>(simd, block)
                })
            } else if bits < WEIGHT_END {
                with_keys!(block.hot.keys.len(), N => {
                    sift_weighted::<S, K, Wide<S>, N>(simd, block)
                })
            } else {
                block.run_on(Scalar)
            };
        }
        end
    }
}

/// Weights of a register of keys, or sums of such weights.
trait Weights<S: Simd, K: Key>: Copy {
    /// Weights of a slice, as many as lanes.
    fn load(simd: S, weights: &[u64]) -> Self;
    /// Sums of no weights.
    fn zero(simd: S) -> Self;
    /// Adds the weights of the lanes that are set in the mask.
    fn add(self, mask: MaskOf<K, S>, weights: Self) -> Self;
    /// Writes the weights of the lanes that are not set in the mask, as [`Lanes::compress`] does.
    fn compress(self, dropped: MaskOf<K, S>, weights: &mut [u64]) -> usize;
    /// The sum of all lanes.
    fn sum(self) -> u64;
}

/// Weights below the `WEIGHT_END` of the key type, in lanes as wide as a key.
#[derive(Clone, Copy)]
struct Narrow<S: Simd, K: Key>(K::Lanes<S>);

impl<S: Simd, K: Key> Weights<S, K> for Narrow<S, K> {
    #[inline(always)]
    fn load(simd: S, weights: &[u64]) -> Self {
        Self(K::narrow(simd, weights))
    }

    #[inline(always)]
    fn zero(simd: S) -> Self {
        Self(K::Lanes::<S>::splat(simd, K::default()))
    }

    #[inline(always)]
    fn add(self, mask: MaskOf<K, S>, weights: Self) -> Self {
        Self(self.0.add(mask, weights.0))
    }

    #[inline(always)]
    fn compress(self, dropped: MaskOf<K, S>, weights: &mut [u64]) -> usize {
        let mut kept = [K::default(); MISSED_SLACK];
        let end = self.0.compress(dropped, &mut kept);
        let lanes = K::Lanes::<S>::COUNT;
        weights[..lanes].iter_mut().zip(&kept).for_each(|(weight, kept)| *weight = kept.to_count());
        end
    }

    #[inline(always)]
    fn sum(self) -> u64 {
        sum_of::<S, K>(self.0)
    }
}

/// Weights below [`WEIGHT_END`], in 64-bit lanes: two registers for one of 32-bit keys.
#[derive(Clone, Copy)]
struct Wide<S: Simd>([S::U64; 2]);

impl<S: Simd, K: Key> Weights<S, K> for Wide<S> {
    #[inline(always)]
    fn load(simd: S, weights: &[u64]) -> Self {
        let mut parts = <Self as Weights<S, K>>::zero(simd);
        for (part, weights) in parts.0.iter_mut().zip(weights.chunks_exact(S::U64::COUNT)) {
            *part = S::U64::load(simd, weights);
        }
        parts
    }

    #[inline(always)]
    fn zero(simd: S) -> Self {
        Self([S::U64::splat(simd, 0); 2])
    }

    #[inline(always)]
    fn add(mut self, mask: MaskOf<K, S>, weights: Self) -> Self {
        for part in 0..K::WIDTH {
            self.0[part] = self.0[part].add(K::part::<S>(mask, part), weights.0[part]);
        }
        self
    }

    #[inline(always)]
    fn compress(self, dropped: MaskOf<K, S>, weights: &mut [u64]) -> usize {
        (0..K::WIDTH).fold(0, |end, part| {
            end + self.0[part].compress(K::part::<S>(dropped, part), &mut weights[end..])
        })
    }

    #[inline(always)]
    fn sum(self) -> u64 {
        self.0.map(sum_of::<S, u64>).iter().sum()
    }
}

/// Sifts the items of a block whose weights are small enough for `W`.
#[inline(always)]
fn sift_weighted<S: Simd, K: Key, W: Weights<S, K>, const N: usize>(
    simd: S,
    call: SiftWeighted<'_, K>,
) -> usize {
    let SiftWeighted { hot, items, weights, missed, missed_weights } = call;
    let registers: [K::Lanes<S>; N] =
        std::array::from_fn(|key| K::Lanes::<S>::splat(simd, hot.keys[key]));
    let mut sums = [W::zero(simd); N];
    let mut end = 0;
    let chunks = items.chunks_exact(K::Lanes::<S>::COUNT);
    let rest = chunks.remainder();
    let (weights, weights_rest) = weights.split_at(items.len() - rest.len());
    for (chunk, weights) in chunks.zip(weights.chunks_exact(K::Lanes::<S>::COUNT)) {
        let items = K::Lanes::<S>::load(simd, chunk);
        fetch_ahead::<K::Lanes<S>>(chunk);
        let added = W::load(simd, weights);
        let mut any = registers[0].matches(items);
        sums[0] = sums[0].add(any, added);
        for key in 1..N {
            let mask = registers[key].matches(items);
            sums[key] = sums[key].add(mask, added);
            any = K::Lanes::<S>::either(any, mask);
        }
        fetch_after_lines::<WEIGHTS_AHEAD_BYTES, _>(weights);
        added.compress(any, &mut missed_weights[end..]);
        end += items.compress(any, &mut missed[end..]);
    }
    for (hits, sum) in hot.hits.iter_mut().zip(sums) {
        *hits = hits.saturating_add(sum.sum());
    }
    let (missed, missed_weights) = (&mut missed[end..], &mut missed_weights[end..]);
    end + scalar::sift_weighted(hot, rest, weights_rest, missed, missed_weights)
}

/// Prefetches the items that follow the content of a register.
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
