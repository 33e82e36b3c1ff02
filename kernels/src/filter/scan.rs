//! The loops of the filter, written once over [`Lanes`].
//!
//! The number of registers is a constant of each loop, so that the arrays of registers below are
//! registers and not memory. The number is a power of two, and the lanes past the last bin repeat
//! the first key: these lanes match when the first lane does, and their counts are dropped.
//!
//! In the assembly for AVX-512, keys and counts are in registers for all numbers of bins: an item
//! costs a broadcast (a memory operand with one register of bins), a compare and a masked add for
//! each register, one `kortest`, and one store. For AVX2, counts of `u32` bins are in registers
//! throughout; with 33 bins and more the keys become memory operands of the compares. With 64 `u64`
//! bins, 7 of 16 registers of counts live on the stack; with 17 to 64 weighted bins, 3 of 8
//! registers or all do. There the 8 or 16 compares of an item take longer than the store and the
//! load.

use super::bins::{Absorbed, BINS_MAX, Bins};
use super::scalar;
use crate::simd::{Key, Lanes, RunOn, Scalar, Simd, WEIGHT_END, WEIGHTS_MAX, bits_of};

/// Evaluates `$body` with the constant `$n` = the registers that `$bins` keys need, rounded up to
/// a power of two.
macro_rules! with_registers {
    ($bins:expr, $lanes:ty, $n:ident => $body:expr) => {
        with_registers!(@match $bins, $lanes, $n => $body; 1 2 4 8 16 32)
    };
    (@match $bins:expr, $lanes:ty, $n:ident => $body:expr; $($count:literal)*) => {
        match $bins.div_ceil(<$lanes>::COUNT).next_power_of_two() {
            $($count => {
                const $n: usize = $count;
                if const { $n * <$lanes as Lanes>::COUNT > BINS_MAX } {
                    unreachable!("wider registers need fewer of them")
                } else {
                    $body
                }
            })*
            registers => unreachable!("{BINS_MAX} bins fit 32 registers, not {registers}"),
        }
    };
}

/// The arguments of [`absorb`](super::absorb).
pub(super) struct Absorb<'a, K> {
    pub(super) bins: Bins<'a, K>,
    pub(super) items: &'a [K],
    pub(super) missed: &'a mut [u32],
}

impl<K: Key> RunOn<Scalar, Absorbed> for Absorb<'_, K> {
    #[inline(always)]
    fn run_on(self, _: Scalar) -> Absorbed {
        check_positions(self.items);
        scalar::absorb(self.bins, self.items, self.missed)
    }
}

impl<K: Key, S: Simd> RunOn<S, Absorbed> for Absorb<'_, K> {
    #[inline(always)]
    fn run_on(self, simd: S) -> Absorbed {
        check_positions(self.items);
        if self.bins.keys.is_empty() {
            return scalar::absorb(self.bins, self.items, self.missed);
        }
        with_registers!(self.bins.keys.len(), K::Lanes<S>, N => {
            absorb::<S, K, N>(simd, self.bins, self.items, self.missed)
        })
    }
}

#[inline(always)]
fn absorb<S: Simd, K: Key, const N: usize>(
    simd: S,
    bins: Bins<'_, K>,
    items: &[K],
    missed: &mut [u32],
) -> Absorbed {
    let keys: [K::Lanes<S>; N] = load_keys(simd, bins.keys);
    let one = K::Lanes::<S>::one(simd);
    // Counts begin at zero in each call: the loop has fewer than 2^32 items, so lanes of 32 bits
    // suffice.
    let mut counts = [K::Lanes::<S>::splat(simd, K::default()); N];
    let mut consumed = 0;
    let mut misses = 0;
    while consumed < items.len() && misses < missed.len() {
        let item = K::Lanes::<S>::splat(simd, items[consumed]);
        let first = keys[0].matches(item);
        counts[0] = counts[0].count(first, one);
        let mut any = first;
        for register in 1..N {
            let mask = keys[register].matches(item);
            counts[register] = counts[register].count(mask, one);
            any = K::Lanes::<S>::either(any, mask);
        }
        // The position is always stored, and kept by an increment: there is no branch on a miss.
        missed[misses] = position(consumed);
        misses += usize::from(K::Lanes::<S>::bits(any) == 0);
        consumed += 1;
    }
    add_counts::<S, K, N>(&counts, bins.counts);
    Absorbed { consumed, missed: misses, missed_weight: misses as u64 }
}

/// The arguments of [`absorb_weighted`](super::absorb_weighted).
pub(super) struct AbsorbWeighted<'a, K> {
    pub(super) bins: Bins<'a, K>,
    pub(super) items: &'a [K],
    pub(super) weights: &'a [u64],
    pub(super) budget: u64,
    pub(super) missed: &'a mut [u32],
}

impl<K: Key> RunOn<Scalar, Absorbed> for AbsorbWeighted<'_, K> {
    #[inline(always)]
    fn run_on(self, _: Scalar) -> Absorbed {
        check_positions(self.items);
        let Self { bins, items, weights, budget, missed } = self;
        scalar::absorb_weighted(bins, items, weights, budget, missed, 0)
    }
}

impl<K: Key, S: Simd> RunOn<S, Absorbed> for AbsorbWeighted<'_, K> {
    #[inline(always)]
    fn run_on(self, simd: S) -> Absorbed {
        if self.bins.keys.is_empty() {
            return self.run_on(Scalar);
        }
        check_positions(self.items);
        with_registers!(self.bins.keys.len(), S::U64, N => absorb_weighted::<S, K, N>(simd, self))
    }
}

#[inline(always)]
fn absorb_weighted<S: Simd, K: Key, const N: usize>(
    simd: S,
    call: AbsorbWeighted<'_, K>,
) -> Absorbed {
    let AbsorbWeighted { bins: Bins { keys, counts }, items, weights, budget, missed } = call;
    let mut wide_keys = [0; BINS_MAX];
    wide_keys.iter_mut().zip(keys).for_each(|(wide, &key)| *wide = key.into());
    let registers: [S::U64; N] = load_keys(simd, &wide_keys[..keys.len()]);
    let mut done = Absorbed::default();
    while done.consumed < items.len() && done.missed < missed.len() && done.missed_weight < budget {
        let end = items.len().min(done.consumed + WEIGHTS_MAX);
        let (items, weights) = (&items[done.consumed..end], &weights[done.consumed..end]);
        let first = position(done.consumed);
        let missed = &mut missed[done.missed..];
        let rest = budget - done.missed_weight;
        let block = if bits_of(weights) < WEIGHT_END {
            let mut sums = [S::U64::splat(simd, 0); N];
            let block = absorb_block(
                simd,
                &registers,
                &mut sums,
                Items { items, weights, first },
                rest,
                missed,
            );
            add_counts::<S, u64, N>(&sums, counts);
            block
        } else {
            let bins = Bins { keys, counts: &mut *counts };
            scalar::absorb_weighted(bins, items, weights, rest, missed, first)
        };
        done.consumed += block.consumed;
        done.missed += block.missed;
        done.missed_weight = done.missed_weight.saturating_add(block.missed_weight);
    }
    done
}

/// A block of weighted items; `first` is the position of its first item in the batch.
struct Items<'a, K> {
    items: &'a [K],
    weights: &'a [u64],
    first: u32,
}

#[inline(always)]
fn absorb_block<S: Simd, K: Key, const N: usize>(
    simd: S,
    keys: &[S::U64; N],
    sums: &mut [S::U64; N],
    block: Items<'_, K>,
    budget: u64,
    missed: &mut [u32],
) -> Absorbed {
    let Items { items, weights, first } = block;
    let weights = &weights[..items.len()];
    let mut done = Absorbed::default();
    while done.consumed < items.len() && done.missed < missed.len() && done.missed_weight < budget {
        let item = S::U64::splat(simd, items[done.consumed].into());
        let weight = S::U64::splat(simd, weights[done.consumed]);
        let mask = keys[0].matches(item);
        sums[0] = sums[0].add(mask, weight);
        let mut any = mask;
        for register in 1..N {
            let mask = keys[register].matches(item);
            sums[register] = sums[register].add(mask, weight);
            any = S::U64::either(any, mask);
        }
        let miss = S::U64::bits(any) == 0;
        // The position is always stored, as in `absorb`.
        missed[done.missed] = first + position(done.consumed);
        done.missed += usize::from(miss);
        done.missed_weight += if miss { weights[done.consumed] } else { 0 };
        done.consumed += 1;
    }
    done
}

/// The arguments of [`locate`](super::locate).
pub(super) struct Locate<'a, K> {
    pub(super) keys: &'a [K],
    pub(super) items: &'a [K],
    pub(super) lanes: &'a mut [u8],
}

impl<K: Key> RunOn<Scalar> for Locate<'_, K> {
    #[inline(always)]
    fn run_on(self, _: Scalar) {
        scalar::locate(self.keys, self.items, self.lanes);
    }
}

impl<K: Key, S: Simd> RunOn<S> for Locate<'_, K> {
    #[inline(always)]
    fn run_on(self, simd: S) {
        if self.keys.is_empty() {
            return self.run_on(Scalar);
        }
        with_registers!(self.keys.len(), K::Lanes<S>, N => locate::<S, K, N>(simd, self));
    }
}

#[inline(always)]
fn locate<S: Simd, K: Key, const N: usize>(simd: S, call: Locate<'_, K>) {
    let keys: [K::Lanes<S>; N] = load_keys(simd, call.keys);
    for (&item, lane) in call.items.iter().zip(call.lanes) {
        let item = K::Lanes::<S>::splat(simd, item);
        // The masks of all registers side by side: the lowest bit is the first lane.
        let mut bits = 0;
        for (register, keys) in keys.iter().enumerate() {
            let mask = keys.matches(item);
            bits |= K::Lanes::<S>::bits(mask) << (register * K::Lanes::<S>::COUNT);
        }
        *lane = first_lane(bits);
    }
}

/// The lowest bit, or `NO_LANE`.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "64 zeros at most")]
fn first_lane(bits: u64) -> u8 {
    bits.trailing_zeros() as u8
}

fn check_positions<K>(items: &[K]) {
    let len = items.len();
    assert!(u32::try_from(len).is_ok(), "{len} items: positions have 32 bits");
}

/// A position in a batch that [`check_positions`] let pass.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "checked once per call by check_positions")]
fn position(index: usize) -> u32 {
    index as u32
}

/// Loads the keys, at least one, into registers, and repeats the first key in the lanes past the
/// last key.
#[inline(always)]
fn load_keys<S: Simd, L: Lanes<Simd = S>, const N: usize>(simd: S, keys: &[L::Key]) -> [L; N] {
    // A repeated key adds no hit: it matches only when the first key does.
    let mut padded = [keys[0]; BINS_MAX];
    padded[..keys.len()].copy_from_slice(keys);
    std::array::from_fn(|register| L::load(simd, &padded[register * L::COUNT..][..L::COUNT]))
}

/// Adds the counts of the lanes to the counts of the bins; lanes past the last bin are dropped.
#[inline(always)]
fn add_counts<S: Simd, K: Key, const N: usize>(lanes: &[K::Lanes<S>; N], counts: &mut [u64]) {
    let mut added = [K::default(); BINS_MAX];
    for (register, chunk) in lanes.iter().zip(added.chunks_exact_mut(K::Lanes::<S>::COUNT)) {
        register.store(chunk);
    }
    for (count, added) in counts.iter_mut().zip(added) {
        *count = count.saturating_add(added.to_count());
    }
}
