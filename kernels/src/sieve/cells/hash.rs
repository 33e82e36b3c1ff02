//! A keyed hash function: each table draws its own.
//!
//! ```text
//! key ──► * wide, upper half ──► y ^ (y >> 9) ──► * narrow, upper bits ──► place
//!         of 64 bits: 32 bits                       of 32 bits: log2(places) bits
//! ```
//!
//! Source: multiply-shift hashing of Dietzfelbinger, Hagerup, Katajainen, Penttonen, *A Reliable
//! Randomized Algorithm for the Closest-Pair Problem*, Journal of Algorithms 25 (1997), twice,
//! with a bijection in between. A key of two words is multiplied word by word, and the products
//! are added.
//!
//! # Collisions
//!
//! For two different keys that were chosen without knowledge of the multipliers, all odd and
//! drawn at random, multiply-shift to 2^l values collides with a probability of at most 2 / 2^l.
//! For two words and l = 32 this bound needs a proof: each word is combined with its upper half, a
//! bijection, so that two different words differ below bit 32. Let 2^t, t < 32, be the largest
//! power of two that divides both differences, and let the first difference be an odd multiple of
//! 2^t. The product of the first difference is each odd multiple of 2^t with the same probability;
//! so, whatever the second product is, the sum is each of the 2^(63 - t) multiples of one parity,
//! and at most 2^(32 - t) of these are less than 2^32 away from 0.
//!
//! The first step has 2^32 values, the shift by 9 is a bijection, and the second step has m
//! places: **two different keys share a place with a probability of at most 2 / m + 2 / 2^32**.
//! So among n keys, a key shares its place with 2 n / m + 2 n / 2^32 other keys in expectation, and
//! work that grows with the pairs of a place grows with n, not with n^2, while n is at most m.
//!
//! One multiplication has the same bound, but it turns an arithmetic progression of keys into a
//! progression of places, and for some percent of the multipliers this progression returns to the
//! same places after few steps: counting consecutive integers would be slow in some runs. The
//! bijection breaks the progression (`progressions_spread` below).
//!
//! The bound is about the multipliers, not about the seed from which they are made: a person who
//! knows the seed can choose keys that collide.

use std::fmt;
use std::fmt::Debug;

/// Among 8 to 17, this shift best spreads multiples of high powers of 2, of which the first step
/// leaves few bits.
pub(super) const SHIFT: u32 = 9;

/// Number of keys whose sums are found together, and whose refusals fill a word.
pub const GROUP: usize = 64;

/// Key of a cell: an integer, or two words.
pub trait CellKey: Copy + Eq + Debug + Default + Send + Sync + 'static {
    /// The key of a small integer.
    fn small(code: u8) -> Self;
    /// The sum of the products with these multipliers, modulo 2^64.
    fn product(self, multipliers: [u64; 2]) -> u64;

    /// A group with its type, for loops of their own.
    fn group(keys: &[Self; GROUP]) -> KeyGroup<'_>;

    /// The upper half of [`Self::product`].
    #[inline(always)]
    fn upper(self, multipliers: [u64; 2]) -> u32 {
        (self.product(multipliers) >> 32) as u32
    }
}

/// A group of keys of each type.
#[derive(Clone, Copy, Debug)]
pub enum KeyGroup<'a> {
    /// Integers of 32 bits.
    U32(&'a [u32; GROUP]),
    /// Integers of 64 bits.
    U64(&'a [u64; GROUP]),
    /// Keys of two words.
    Words(&'a [[u64; 2]; GROUP]),
}

impl CellKey for u32 {
    fn small(code: u8) -> Self {
        code.into()
    }

    fn group(keys: &[Self; GROUP]) -> KeyGroup<'_> {
        KeyGroup::U32(keys)
    }

    #[inline(always)]
    fn product(self, [first, _]: [u64; 2]) -> u64 {
        u64::from(self).wrapping_mul(first)
    }

    /// Computes two products of 32-bit numbers: with vector instructions these take half the time
    /// of one 64-bit product.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a number")]
    fn upper(self, [first, _]: [u64; 2]) -> u32 {
        let carry = (u64::from(self) * u64::from(first as u32)) >> 32;
        (carry as u32).wrapping_add(self.wrapping_mul((first >> 32) as u32))
    }
}

impl CellKey for u64 {
    fn small(code: u8) -> Self {
        code.into()
    }

    fn group(keys: &[Self; GROUP]) -> KeyGroup<'_> {
        KeyGroup::U64(keys)
    }

    #[inline(always)]
    fn product(self, [first, _]: [u64; 2]) -> u64 {
        self.wrapping_mul(first)
    }
}

impl CellKey for [u64; 2] {
    fn small(code: u8) -> Self {
        [code.into(), 0]
    }

    fn group(keys: &[Self; GROUP]) -> KeyGroup<'_> {
        KeyGroup::Words(keys)
    }

    #[inline(always)]
    fn product(self, [first, last]: [u64; 2]) -> u64 {
        let [left, right] = self.map(|word| word ^ (word >> 32));
        left.wrapping_mul(first).wrapping_add(right.wrapping_mul(last))
    }
}

/// A member of the family, fixed by its multipliers.
///
/// Key 0 has the hash 0. `Debug` does not show the multipliers.
///
/// # Examples
///
/// ```
/// use trommel_kernels::sieve::CodeHash;
///
/// let hash = CodeHash::from_seed(7);
/// let place = hash.of(12_345_u64) >> (32 - 10);
/// assert!(place < 1 << 10);
/// assert_ne!(hash.of(1_u32), CodeHash::from_seed(8).of(1_u32));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CodeHash {
    wide: [u64; 2],
    narrow: u32,
    upper_code: u8,
}

impl Debug for CodeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeHash(..)")
    }
}

impl CodeHash {
    /// The member that `seed` stands for.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::sieve::CodeHash;
    ///
    /// let hash = CodeHash::from_seed(1);
    /// assert_eq!(hash.of(7_u32), hash.of(7_u64));
    /// assert_eq!(hash.of(7_u32), hash.of([7_u64, 0]));
    /// assert_eq!(hash.of(0_u32), 0);
    /// assert_ne!(hash, CodeHash::from_seed(2));
    /// ```
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half of a random number")]
    pub fn from_seed(seed: u64) -> Self {
        let last = split_mix(seed, u64::MAX) | 1;
        let mut step = 1;
        loop {
            let (wide, narrow) = (split_mix(seed, step) | 1, split_mix(seed, step + 1) as u32 | 1);
            let hash = Self { wide: [wide, last], narrow, upper_code: 0 };
            // About one hash in 2^200 has no such code.
            let mut codes = 1..=u8::MAX;
            if let Some(upper_code) = codes.find(|&code| hash.of(u32::from(code)) >> 31 == 1) {
                return Self { upper_code, ..hash };
            }
            step += 2;
        }
    }

    /// The hash: its upper bits are the place of the key.
    #[inline(always)]
    #[must_use]
    pub fn of(self, key: impl CellKey) -> u32 {
        let upper = key.upper(self.wide);
        (upper ^ (upper >> SHIFT)).wrapping_mul(self.narrow)
    }

    pub(super) fn wide(self) -> [u64; 2] {
        self.wide
    }

    pub(super) fn narrow(self) -> u32 {
        self.narrow
    }

    /// An integer that has another place than 0 in every table of at least 2 places: the first
    /// integer whose hash is in the upper half.
    #[must_use]
    pub fn upper_code(self) -> u8 {
        self.upper_code
    }
}

/// Number `step` of the pseudo-random sequence SplitMix64 that starts with `seed` (Steele, Lea,
/// Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014).
#[must_use]
pub fn split_mix(seed: u64, step: u64) -> u64 {
    let state = seed.wrapping_add(step.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of keys that share one of 2^log places, over the number expected of random places.
    fn crowding(hash: CodeHash, codes: &[impl CellKey], log: u32) -> f64 {
        let mut places = vec![0_u64; 1 << log];
        codes.iter().for_each(|&code| places[(hash.of(code) >> (32 - log)) as usize] += 1);
        let pairs: u64 = places.iter().map(|&n| n * n.saturating_sub(1) / 2).sum();
        let n = codes.len() as f64;
        pairs as f64 / (n * (n - 1.0) / 2.0 / f64::from(1_u32 << log))
    }

    /// Steps of arithmetic progressions: small, round, powers of 2, Fibonacci numbers, random.
    const STEPS: [u64; 12] = [
        1,
        3,
        1_000,
        1 << 20,
        1 << 32,
        1 << 48,
        832_040,
        102_334_155,
        2_971_215_073,
        86_400_000_000,
        23_416_728_348_467_685,
        0x3C6E_F372_FE94_F82B,
    ];

    #[test]
    fn progressions_spread() {
        for step in STEPS {
            let codes: Vec<u64> = (0..4096).map(|i: u64| i.wrapping_mul(step)).collect();
            let mut sum = 0.0;
            for seed in 0..200 {
                let crowding = crowding(CodeHash::from_seed(seed), &codes, 12);
                assert!(crowding < 8.0, "step {step}, seed {seed}: {crowding}");
                sum += crowding;
            }
            assert!(sum / 200.0 < 1.3, "step {step}: {}", sum / 200.0);
        }
    }

    /// Two words that differ in the same bits, in one word only, or in high bits only.
    #[test]
    fn two_words_spread() {
        let words = |i: u64| {
            let high = [(i % 64) << 58, (i / 64) << 58];
            [
                [i, i],
                [i, i.wrapping_neg()],
                [i << 48, i << 40],
                [0, i << 52],
                high,
                [i % 64, i / 64],
            ]
        };
        for form in 0..words(0).len() {
            let keys: Vec<[u64; 2]> = (0..4096).map(|i| words(i)[form]).collect();
            let of = |seed| crowding(CodeHash::from_seed(seed), &keys, 12);
            let mean = (0..200).map(of).sum::<f64>() / 200.0;
            assert!(mean < 1.3, "{form}: {mean}");
        }
    }

    #[test]
    fn codes_that_collide_under_one_hash_do_not_under_another() {
        let known = CodeHash::from_seed(1);
        let codes: Vec<u64> = (0..).filter(|&code| known.of(code) >> 22 == 0).take(1000).collect();
        assert!(crowding(known, &codes, 10) > 1000.0);
        for seed in 2..100 {
            let crowding = crowding(CodeHash::from_seed(seed), &codes, 10);
            assert!(crowding < 4.0, "seed {seed}: {crowding}");
        }
    }

    #[test]
    fn zero_hashes_to_zero_and_the_upper_code_elsewhere() {
        for seed in 0..10_000 {
            let hash = CodeHash::from_seed(seed);
            assert_eq!((hash.of(0_u32), hash.of(0_u64)), (0, 0));
            assert!(hash.of(u32::from(hash.upper_code())) >= 1 << 31);
        }
    }

    #[test]
    fn a_code_has_one_hash_for_all_types() {
        let hash = CodeHash::from_seed(7);
        for code in [1, 77, u32::MAX] {
            assert_eq!(hash.of(code), hash.of(u64::from(code)));
            assert_eq!(hash.of(code), hash.of([u64::from(code), 0]));
            assert_ne!(hash.of(code), hash.of([0, u64::from(code)]));
        }
        assert_eq!(hash.of(u32::small(200)), hash.of(<[u64; 2]>::small(200)));
    }
}
