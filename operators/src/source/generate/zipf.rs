//! Zipf distribution over a finite alphabet, drawn exactly in constant time.
//!
//! ```text
//! alias table ──► bucket of ranks ──► rank within it ──► accept or draw again ──► permutation ──► item
//! ```
//!
//! Ranks are divided into buckets: single ranks below 512, then 256 buckets for each power of two,
//! so that the weights r^-skew within a bucket differ by less than 1/256 · skew. A bucket counts as
//! if all of its ranks had the weight of its first rank. Walker's alias table draws a bucket with
//! that probability. A rank of the bucket is drawn uniformly and accepted with probability weight
//! of the rank / weight of the first rank. The ratio is rarely computed, because the random number
//! is usually below the smallest ratio of the bucket. The table has a few thousand entries for any
//! alphabet and skew, so the table stays in the cache; a table of all ranks would not.
//!
//! "Exactly" means to the resolution of the random numbers: 51 bits for the bucket, 44 bits for the
//! acceptance. The stream is the same on every machine because it depends only on basic operations
//! of IEEE 754, which every machine rounds alike, and not on the exponential function and the
//! logarithm of the platform.
//!
//! (Walker: An efficient method for generating discrete random variables with general
//! distributions, 1977; Vose: A linear algorithm for generating random numbers with a given
//! distribution, 1991.)

use std::hint::select_unpredictable;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use thiserror::Error;
use trommel_kernels::{Isa, Routine, run_compiled_for};

use super::scatter::Scatter;

const ALPHABET_MAX: u32 = 1 << 28;
pub(super) const SKEW_MAX: f64 = 10.0;
/// Each power of two of ranks is divided into 2^8 buckets.
const SPLIT_BITS: u32 = 8;
/// Bits of a random word that decide on acceptance; the remaining bits choose the rank within a
/// bucket.
const ACCEPT_BITS: u32 = 44;
const RANK_BITS: u32 = u64::BITS - ACCEPT_BITS;
/// Bits of a random word that choose between a slot and its alias.
const ALIAS_BITS: u32 = 51;
/// Bits that choose a slot.
const SLOT_BITS: u32 = u64::BITS - ALIAS_BITS;

const _: () =
    assert!(ALPHABET_MAX.ilog2() - SPLIT_BITS <= RANK_BITS, "a bucket has 2^20 ranks at most");
const _: () = assert!(
    (ALPHABET_MAX.ilog2() - SPLIT_BITS + 2) << SPLIT_BITS <= 1 << SLOT_BITS,
    "13 bits choose a slot"
);

/// Invalid parameter of a Zipf distribution.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ZipfError {
    /// The number of distinct items is out of range.
    #[error("invalid alphabet of {0} items; expected 1 to {ALPHABET_MAX}")]
    Alphabet(u32),
    /// The exponent is out of range.
    #[error("invalid skew {0}; expected 0 to {SKEW_MAX}")]
    Skew(f64),
}

impl ZipfError {
    /// Name of the parameter that is out of range.
    pub(super) fn parameter(&self) -> &'static str {
        match self {
            Self::Alphabet(_) => "alphabet",
            Self::Skew(_) => "skew",
        }
    }
}

/// Generator of items with a Zipf distribution: the item of rank r has a probability proportional
/// to 1 / r^skew.
///
/// # Examples
/// ```
/// use trommel_operators::Zipf;
/// let mut zipf = Zipf::new(1_000_000, 1.0, 42)?;
/// let mut items = [0; 1000];
/// zipf.fill(&mut items);
/// assert!(items.iter().all(|&item| item < 1_000_000));
/// assert!((zipf.probability(1) / zipf.probability(10) - 10.0).abs() < 1e-9);
/// # Ok::<(), trommel_operators::ZipfError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Zipf {
    alphabet: u32,
    skew: f64,
    weight_sum: f64,
    slots: Vec<AliasSlot>,
    /// Number of buckets within the alphabet; one more may extend past it.
    whole: usize,
    /// Random numbers below this bound accept every rank of every whole bucket.
    accept_below: u64,
    scatter: Scatter,
    random: Pcg64Mcg,
    isa: Isa,
}

/// Entry of the alias table. Its upper [`ALIAS_BITS`] bits are a threshold: a random number below
/// the threshold chooses the bucket of the slot, and any other number its alias, the lower
/// [`SLOT_BITS`] bits.
#[derive(Debug, Clone, Copy)]
struct AliasSlot(u64);

impl AliasSlot {
    fn new(threshold: u64, alias: usize) -> Self {
        Self(threshold << SLOT_BITS | alias as u64)
    }

    #[inline(always)]
    fn threshold(self) -> u64 {
        self.0 >> SLOT_BITS
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "13 bits")]
    fn alias(self) -> usize {
        self.0 as usize & ((1 << SLOT_BITS) - 1)
    }
}

/// A bucket of the ranks `first` to `first + 2^width_bits - 1`. The last bucket may extend past the
/// alphabet.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    first: u32,
    width_bits: u32,
}

impl Bucket {
    /// The bucket of this index.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a few thousand buckets")]
    fn at(index: usize) -> Self {
        // Each rank below 2^9 has its own bucket. From 2^9 on, each power of two of ranks has a row
        // of 2^8 buckets.
        let place = index as u32 + 1;
        let width_bits = (place >> SPLIT_BITS).saturating_sub(1);
        let row = width_bits << SPLIT_BITS;
        Self { first: (place - row) << width_bits, width_bits }
    }

    fn last(self) -> u32 {
        self.first + (1 << self.width_bits) - 1
    }
}

impl Zipf {
    /// A distribution over `alphabet` items (1 to 2^28) with the exponent `skew` (0 to 10);
    /// `seed` chooses the stream.
    ///
    /// # Errors
    /// If a parameter is out of range.
    pub fn new(alphabet: u32, skew: f64, seed: u64) -> Result<Self, ZipfError> {
        if !(1..=ALPHABET_MAX).contains(&alphabet) {
            return Err(ZipfError::Alphabet(alphabet));
        }
        if !(0.0..=SKEW_MAX).contains(&skew) {
            return Err(ZipfError::Skew(skew));
        }
        let count = (0..).take_while(|&index| Bucket::at(index).first <= alphabet).count();
        let weights: Vec<f64> = (0..count)
            .map(Bucket::at)
            .map(|bucket| f64::from(1_u32 << bucket.width_bits) * rank_weight(bucket.first, skew))
            .collect();
        let whole = if Bucket::at(count - 1).last() > alphabet { count - 1 } else { count };
        let accept_below = (0..whole)
            .map(Bucket::at)
            .map(|bucket| to_accept(weight_ratio(bucket.last(), bucket.first, skew)))
            .fold(u64::MAX, u64::min);
        let mut words = SplitMix(seed);
        let scatter = Scatter::new(alphabet, || words.next());
        let state = u128::from(words.next()) << 64 | u128::from(words.next());
        Ok(Self {
            alphabet,
            skew,
            weight_sum: sum_weights(alphabet, skew),
            slots: alias_table(&weights),
            whole,
            accept_below,
            scatter,
            random: Pcg64Mcg::new(state),
            // Other parts report an unknown level; the stream is the same at all levels.
            isa: Isa::selected().unwrap_or(Isa::Scalar),
        })
    }

    /// Fills `items` with the next items of the stream.
    pub fn fill(&mut self, items: &mut [u32]) {
        run_compiled_for(self.isa, Fill { zipf: self, items });
    }

    /// As [`Self::fill`], with ranks from 0 instead of items.
    #[inline(always)]
    pub(super) fn fill_ranks(&mut self, ranks: &mut [u32]) {
        let Self { slots, whole, accept_below, random, alphabet, skew, .. } = self;
        // The upper bits of one word choose the slot. The lower 51 bits choose between slot and
        // alias.
        let slot_shift = u64::BITS - slots.len().ilog2();
        for drawn in ranks {
            *drawn = loop {
                // With a single slot the shift is 64 bits, which would overflow.
                let word = random.next_u64();
                let index = word.checked_shr(slot_shift).unwrap_or(0);
                #[expect(clippy::cast_possible_truncation, reason = "13 bits")]
                let index = index as usize;
                let slot = slots[index];
                let kept = word & ((1 << ALIAS_BITS) - 1) < slot.threshold();
                // A conditional move: about half of the draws take the alias, so a branch would
                // be mispredicted.
                let index = select_unpredictable(kept, index, slot.alias());
                let Bucket { first, width_bits } = Bucket::at(index);

                let word = random.next_u64();
                // The upper 20 bits choose the rank. The lower 44 bits decide whether the rank is
                // accepted.
                let rank = first + ((word >> ACCEPT_BITS) as u32 >> (RANK_BITS - width_bits));
                let accept = word & ((1 << ACCEPT_BITS) - 1);
                if (accept < *accept_below && index < *whole)
                    || accept_slowly(accept, rank, first, *alphabet, *skew)
                {
                    break rank - 1;
                }
            };
        }
    }

    /// Probability of the item of this `rank`, counted from 1.
    ///
    /// # Panics
    /// If `rank` is 0 or greater than the alphabet.
    #[must_use]
    pub fn probability(&self, rank: u32) -> f64 {
        self.check_rank(rank);
        rank_weight(rank, self.skew) / self.weight_sum
    }

    /// Item of this `rank`, counted from 1. Rank 1 is the most frequent item.
    ///
    /// # Panics
    /// If `rank` is 0 or greater than the alphabet.
    #[must_use]
    pub fn item_of_rank(&self, rank: u32) -> u32 {
        self.check_rank(rank);
        self.scatter.apply(rank - 1)
    }

    fn check_rank(&self, rank: u32) {
        let alphabet = self.alphabet;
        assert!((1..=alphabet).contains(&rank), "rank {rank} is not within 1 to {alphabet}");
    }
}

/// Call of [`Zipf::fill`].
struct Fill<'a> {
    zipf: &'a mut Zipf,
    items: &'a mut [u32],
}

impl Routine for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { zipf, items } = self;
        zipf.fill_ranks(items);
        for item in items {
            *item = zipf.scatter.apply(*item);
        }
    }
}

/// True if the random number `accept` accepts `rank` in the bucket that begins with `first`.
#[cold]
fn accept_slowly(accept: u64, rank: u32, first: u32, alphabet: u32, skew: f64) -> bool {
    rank <= alphabet && accept < to_accept(weight_ratio(rank, first, skew))
}

/// Bound of random numbers of [`ACCEPT_BITS`] bits that are accepted with probability `ratio`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ratios are within 0 and 1"
)]
fn to_accept(ratio: f64) -> u64 {
    (ratio * (1_u64 << ACCEPT_BITS) as f64) as u64
}

/// Walker's alias table in Vose's form, padded with empty slots to a power of two, so that random
/// bits choose a slot without a division.
fn alias_table(weights: &[f64]) -> Vec<AliasSlot> {
    let count = weights.len().next_power_of_two();
    let sum: f64 = weights.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand slots")]
    let scale = count as f64 / sum;
    let mut shares: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
    shares.resize(count, 0.0);
    // A slot that gets no alias stands for its own bucket only.
    let mut slots: Vec<AliasSlot> = (0..count).map(|slot| AliasSlot::new(0, slot)).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..count).partition(|&slot| shares[slot] < 1.0);
    while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
        slots[poor] = AliasSlot::new(to_threshold(shares[poor]), rich);
        // The rich slot gives the share that fills the poor slot, and may become poor itself.
        shares[rich] -= 1.0 - shares[poor];
        if shares[rich] < 1.0 {
            large.pop();
            small.push(rich);
        }
    }
    // Rounding may leave slots on either list; the share of such a slot is 1 up to an error in the
    // last place.
    slots
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares are within 0 and 1"
)]
fn to_threshold(share: f64) -> u64 {
    (share * (1_u64 << ALIAS_BITS) as f64) as u64
}

/// Weight of `rank`: `rank`^-skew.
fn rank_weight(rank: u32, skew: f64) -> f64 {
    exp(-skew * ln(f64::from(rank)))
}

/// Weight of `rank` divided by that of `first`.
fn weight_ratio(rank: u32, first: u32, skew: f64) -> f64 {
    exp(-skew * ln(f64::from(rank) / f64::from(first)))
}

/// Natural logarithm of a number from 1 to 2^28, from basic operations only; the error is a few
/// units in the last place. The crate `libm` rounds other last bits: 70,526 of 337,148
/// thresholds, hence streams, would change.
fn ln(x: f64) -> f64 {
    let mut exponent = 0.0;
    let mut x = x;
    while x > std::f64::consts::SQRT_2 {
        x *= 0.5;
        exponent += 1.0;
    }
    // ln x = 2 artanh z with |z| < 0.172: the thirteenth term is below 2^-60.
    let z = (x - 1.0) / (x + 1.0);
    let square = z * z;
    let series = (0..13).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    exponent * std::f64::consts::LN_2 + 2.0 * z * series
}

/// Exponential of a number from -200 to 0, from basic operations only; the error is a few units
/// in the last place.
fn exp(x: f64) -> f64 {
    // ln 2 in two parts. The first ends in enough zero bits that small multiples of it are exact.
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let halvings = (-x / std::f64::consts::LN_2).floor();
    let rest = (x + halvings * LN_2_HIGH) + halvings * LN_2_LOW;
    // |rest| < 0.694: the twentieth term of the series is below 2^-70.
    let series = (1..20).rev().fold(1.0, |sum, k| 1.0 + rest / f64::from(k) * sum);
    #[expect(clippy::cast_possible_truncation, reason = "0 to 289")]
    let scale = 0.5_f64.powi(halvings as i32);
    series * scale
}

/// Sum of all weights: the weights of the first ranks one by one, all further weights by the
/// Euler-Maclaurin formula.
///
/// Only [`Zipf::probability`] uses it, so it may call functions of the platform.
fn sum_weights(alphabet: u32, skew: f64) -> f64 {
    const DIRECT: u32 = 1024;
    // Smallest weights first, which loses least to rounding.
    let direct: f64 = (1..=alphabet.min(DIRECT)).rev().map(|rank| rank_weight(rank, skew)).sum();
    if alphabet <= DIRECT {
        return direct;
    }
    let (low, high) = (f64::from(DIRECT), f64::from(alphabet));
    let (low_weight, high_weight) = (low.powf(-skew), high.powf(-skew));
    let octaves = (high / low).ln();
    let integral = if skew == 1.0 {
        octaves
    } else {
        low_weight * low * ((1.0 - skew) * octaves).exp_m1() / (1.0 - skew)
    };
    let slope = skew * (low_weight / low - high_weight / high);
    direct + integral + (high_weight - low_weight) / 2.0 + slope / 12.0
}

/// Expands a seed into independent words. (Steele, Lea, Flood: Fast splittable pseudorandom
/// number generators, 2014.)
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKEWS: [f64; 6] = [0.0, 0.5, 1.0, 1.000_001, 2.0, 5.0];

    fn draw(alphabet: u32, skew: f64, seed: u64, count: usize) -> (Zipf, Vec<u32>) {
        let mut zipf = Zipf::new(alphabet, skew, seed).unwrap();
        let mut items = vec![0; count];
        zipf.fill(&mut items);
        (zipf, items)
    }

    /// Chi-square statistic of the drawn ranks against probabilities computed without the code
    /// under test, as standard deviations from its mean. Ranks are pooled until at least 50 are
    /// expected.
    fn chi_square_sigmas(alphabet: u32, skew: f64, seed: u64, count: usize) -> f64 {
        let (zipf, items) = draw(alphabet, skew, seed, count);
        let mut counts = vec![0_u32; alphabet as usize];
        for item in items {
            counts[item as usize] += 1;
        }
        let weights: Vec<f64> = (1..=alphabet).map(|r| f64::from(r).powf(-skew)).collect();
        let sum: f64 = weights.iter().sum();
        let (mut square, mut cells, mut expected, mut observed) = (0.0, 0_u32, 0.0, 0.0);
        for (rank, weight) in (1..=alphabet).zip(&weights) {
            expected += weight / sum * count as f64;
            observed += f64::from(counts[zipf.item_of_rank(rank) as usize]);
            if expected >= 50.0 {
                square += (observed - expected) * (observed - expected) / expected;
                cells += 1;
                (expected, observed) = (0.0, 0.0);
            }
        }
        let freedom = f64::from(cells.max(2) - 1);
        (square - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn draws_follow_the_exact_distribution() {
        for alphabet in [2, 10, 256, 257, 300, 513, 1000, 1025, 100_000] {
            for skew in SKEWS {
                let sigmas = chi_square_sigmas(alphabet, skew, 7, 400_000);
                assert!(sigmas < 5.0, "alphabet {alphabet}, skew {skew}: {sigmas} sigmas");
            }
        }
    }

    #[test]
    fn probabilities_match_the_definition() {
        for alphabet in [1, 2, 1000, 1024, 1025, 50_000] {
            for skew in SKEWS.into_iter().chain([10.0]) {
                let zipf = Zipf::new(alphabet, skew, 1).unwrap();
                let sum: f64 = (1..=alphabet).rev().map(|r| f64::from(r).powf(-skew)).sum();
                for rank in [1, alphabet.div_ceil(2), alphabet] {
                    let expected = f64::from(rank).powf(-skew) / sum;
                    let error = zipf.probability(rank) / expected - 1.0;
                    assert!(error.abs() < 1e-11, "{alphabet} {skew} {rank}: {error}");
                }
            }
        }
    }

    #[test]
    fn own_functions_agree_with_the_platform() {
        for i in 1..20_000 {
            let x = 1.0 + f64::from(i) * f64::from(i) / 1.5;
            assert!((ln(x) - x.ln()).abs() < 1e-14 * x.ln().max(1.0), "ln {x}");
            let y = -f64::from(i) / 100.0;
            assert!((exp(y) / y.exp() - 1.0).abs() < 5e-14, "exp {y}");
        }
        assert_eq!((ln(1.0), exp(0.0)), (0.0, 1.0));
    }

    #[test]
    fn the_stream_is_fixed() {
        let (_, items) = draw(1_000_000, 1.0, 1, 1_000_000);
        let first = [87_278, 64_050, 386_838, 219_308, 977_912, 375_931, 429_046, 321_477];
        assert_eq!(items[..8], first);
        let digest = |sum: u64, &item: &u32| sum.wrapping_mul(31).wrapping_add(u64::from(item));
        assert_eq!(items.iter().fold(0, digest), 4_571_239_115_278_097_046);
    }

    #[test]
    fn one_item_is_drawn_forever() {
        assert_eq!(draw(1, 3.0, 5, 10).1, [0; 10]);
    }

    #[test]
    fn the_largest_alphabet_stays_in_range() {
        let (zipf, items) = draw(ALPHABET_MAX, 0.0, 3, 100_000);
        assert!(items.iter().all(|&item| item < ALPHABET_MAX));
        assert!(zipf.slots.len() <= 8192);
        let mean = items.iter().map(|&item| f64::from(item)).sum::<f64>() / items.len() as f64;
        assert!((mean / f64::from(ALPHABET_MAX) - 0.5).abs() < 0.01);
    }
}
