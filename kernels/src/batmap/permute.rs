//! Keyed bijections of tids, one for each table.
//!
//! A tid is split into a high part, below the number of codes, and a low part of `low_bits` bits.
//! A round changes each part by a hash of the other part and mixes the low part:
//!
//! ```text
//! high ───────┬─────────► + modulo codes ─────► high
//!             ▼               ▲ upper bits
//! low  ─────► ^ ───► * odd ───┴──► ^ >> half ─► low          value: high + 1, then low
//! ```
//!
//! **Bijection.** Every step can be undone: the exclusive or, since `high` is still known; the odd
//! factor modulo a power of two, by its inverse; the addition modulo the codes, since its summand
//! is a function of the low part; the shift, bit by bit from the top. So different tids have
//! different values. There are `2^b - 1` codes of `b` bits, and 1 is added to the last high part:
//! **no value has the code 0**, the code of an empty slot. A permutation of a power of two would
//! have to be repeated for the tids that it maps to that code. The price is that a universe just
//! below a power of two needs the next power of two as its domain.
//!
//! Source of the rounds: Feistel's network, with multiply-shift hashing (Dietzfelbinger,
//! Hagerup, Katajainen, Penttonen, *A Reliable Randomized Algorithm for the Closest-Pair
//! Problem*, Journal of Algorithms 25, 1997) as its functions. The network is no cipher: an
//! adversary who sees side lists could find keys in the end.

use std::fmt;

use super::slot::{TABLES_MAX, code_bits, codes};
use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};

/// Rounds of a permutation. With 3 rounds, runs of tids and tids at distances of powers of two fail
/// as often as random tids; with 2 rounds, runs fail twice as often; with 1 round, tids at
/// distances of powers of two fail by hundreds.
const ROUNDS: usize = 3;

/// Low bits of the smallest domain: a table has at least a register of slots.
const LOW_BITS_MIN: u32 = 6;

/// The factors of a round, odd.
#[derive(Clone, Copy)]
struct Round {
    high: u32,
    low: u32,
}

/// `D + 1` keyed pseudo-random bijections of the tids `[0, universe)`, one for each table of a
/// batmap.
///
/// All maps of a comparison are made with the same permutations. No support depends on the seed,
/// but the number of failed insertions does: a person who knows the seed can choose tids that
/// collide. Draw the seed at random where tids come from outside. `Debug` does not show the keys.
///
/// # Examples
///
/// ```
/// use trommel_kernels::batmap::Permutations;
///
/// let permutations = Permutations::<2>::new(1000, 0x5EED);
/// assert_eq!(permutations.universe(), 1000);
/// // A table has at least a 128th of the domain as slots; the smallest one has a register.
/// assert_eq!(permutations.range_min(), 64);
/// assert_eq!(Permutations::<2>::new(1 << 20, 7).range_min(), 1 << 14);
/// ```
#[derive(Clone)]
pub struct Permutations<const D: usize> {
    universe: u32,
    low_bits: u32,
    rounds: [[Round; ROUNDS]; TABLES_MAX],
}

impl<const D: usize> fmt::Debug for Permutations<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permutations").field("universe", &self.universe).finish_non_exhaustive()
    }
}

impl<const D: usize> Permutations<D> {
    /// The largest universe: its values fit 32 bits for all `D`.
    pub const UNIVERSE_MAX: u32 = 1 << 31;

    /// The permutations of a universe that `seed` stands for; `D` is 2 or 3.
    ///
    /// # Panics
    ///
    /// If `universe` is above [`Self::UNIVERSE_MAX`].
    #[must_use]
    pub fn new(universe: u32, seed: u64) -> Self {
        const { assert!(D == 2 || D == 3, "a batmap holds an element in 2 or 3 tables") };
        let max = Self::UNIVERSE_MAX;
        assert!(universe <= max, "invalid universe {universe}: at most {max} tids");
        let mut low_bits = LOW_BITS_MIN;
        while u64::from(codes::<D>()) << low_bits < u64::from(universe) {
            low_bits += 1;
        }
        let mut keys = Keys { state: seed };
        let rounds = std::array::from_fn(|_| {
            std::array::from_fn(|_| Round { high: keys.next_odd(), low: keys.next_odd() })
        });
        Self { universe, low_bits, rounds }
    }

    /// The number of tids.
    #[must_use]
    pub fn universe(&self) -> u32 {
        self.universe
    }

    /// The least range of a table: a smaller range could not distinguish all tids of a slot.
    #[must_use]
    pub fn range_min(&self) -> u32 {
        1 << self.low_bits
    }

    /// The binary logarithm of [`Self::range_min`].
    pub(super) fn low_bits(&self) -> u32 {
        self.low_bits
    }

    /// The binary logarithm of the domain, in which all values are.
    pub(super) fn domain_bits(&self) -> u32 {
        self.low_bits + code_bits::<D>()
    }

    /// The value of a tid in each table, and zeroes after the last table.
    pub(super) fn values(&self, tid: u32) -> [u32; TABLES_MAX] {
        let mut values = [0; TABLES_MAX];
        for (value, rounds) in values[..=D].iter_mut().zip(&self.rounds) {
            *value = permute::<D>(rounds, self.low_bits, tid);
        }
        values
    }

    /// The values of tids in one table.
    pub(super) fn permute(&self, isa: Isa, table: usize, tids: &[u32], values: &mut Vec<u32>) {
        let (rounds, low_bits) = (self.rounds[table], self.low_bits);
        values.resize(tids.len(), 0);
        dispatch::<Base, _>(isa, Permute::<D> { rounds, low_bits, tids, values });
    }

    /// The code of a value: its upper bits, which are not 0.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "at most 7 bits are left")]
    pub(super) fn code(&self, value: u32) -> u8 {
        (value >> self.low_bits) as u8
    }
}

/// The value of a tid.
#[inline(always)]
fn permute<const D: usize>(rounds: &[Round; ROUNDS], low_bits: u32, tid: u32) -> u32 {
    let (codes, mask) = (u32::from(codes::<D>()), (1 << low_bits) - 1);
    let (mut high, mut low) = (tid >> low_bits, tid & mask);
    for round in rounds {
        low ^= (high + 1).wrapping_mul(round.high) >> (u32::BITS - low_bits);
        let product = low.wrapping_mul(round.low);
        // Both summands are at most `codes`, so one subtraction is enough.
        high += product >> (u32::BITS - code_bits::<D>());
        high -= if high >= codes { codes } else { 0 };
        low = product & mask;
        low ^= low >> (low_bits / 2);
    }
    ((high + 1) << low_bits) | low
}

/// Finds the values of tids in one table.
struct Permute<'a, const D: usize> {
    rounds: [Round; ROUNDS],
    low_bits: u32,
    tids: &'a [u32],
    values: &'a mut [u32],
}

/// Each level runs the same plain Rust, which the compiler vectorizes.
impl<L, const D: usize> RunOn<L> for Permute<'_, D> {
    #[inline(always)]
    fn run_on(self, _: L) {
        for (value, &tid) in self.values.iter_mut().zip(self.tids) {
            *value = permute::<D>(&self.rounds, self.low_bits, tid);
        }
    }
}

/// The pseudo-random sequence SplitMix64 (Steele, Lea, Flood, *Fast Splittable Pseudorandom
/// Number Generators*, OOPSLA 2014).
struct Keys {
    state: u64,
}

impl Keys {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half of a random number")]
    fn next_odd(&mut self) -> u32 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as u32 | 1
    }
}
