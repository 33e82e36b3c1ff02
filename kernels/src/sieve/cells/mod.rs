//! Cells for the items that the sieve misses: a direct-mapped table counts keys as long as their
//! sums are below a limit.
//!
//! ```text
//! key ──hash──► place = 4 cell + lane        cell { key │ own │ others[4] }
//!                                             the same key:  own + 1
//!                                             otherwise:     others[lane] + 1
//! ```
//!
//! A cell belongs to a key and has five sums: one for that key, and one for each of the four lanes
//! of all other keys that hash to the cell. A key costs at least as much memory as a sum, and many
//! more keys lack a cell than have one: therefore four sums share a key. An index, not a branch,
//! chooses the sum that grows, so the only branch is the test of the limit, which is rarely
//! reached.
//!
//! A group of keys is counted in two loops. The first loop finds the sum of each key: it reads the
//! keys of cells and writes no cell, so that no read waits for an earlier write. The second loop
//! adds. A single loop for both takes 1.3 times as long. (A scatter of the sums of several items,
//! after a search for conflicts, costs more than single additions.)

#![expect(unsafe_code, reason = "the index of a sum is in range by construction")]

#[cfg(target_arch = "x86_64")]
mod avx512;
mod cell;
mod hash;
mod places;

pub use self::cell::{Cell, LANES, OWN, others_of, place_of};
pub use self::hash::{CellKey, CodeHash, GROUP, KeyGroup, split_mix};

use self::places::{Find, Places, Sums, find_each};
use super::ahead::{WEIGHTS_AHEAD_BYTES, fetch_after_lines};
use crate::Isa;
use crate::simd::{Base, RunOn, bits_of, dispatch};

/// The distance in bytes at which keys are prefetched. Twice the distance is slower for keys of 64
/// bits, half the distance for keys of two words.
const AHEAD_BYTES: usize = 2048;

/// The most cells, of up to 10 words.
const CELLS_MAX: usize = 1 << 27;

/// Cells with the hash of their keys and the limit of their sums.
#[derive(Debug)]
pub struct Cells<'a, K> {
    /// The hash that finds the place of a key.
    pub hash: CodeHash,
    /// 2 to 2^27 cells, a power of two. No sum is `i32::MAX`; a sum may start below 0, to count
    /// further.
    pub cells: &'a mut [Cell<K>],
    /// No sum grows above this limit.
    pub limit: i32,
    /// Sums of other keys count weights in units of 2^`scale`, rounded up; 0 to 63.
    pub scale: u32,
}

impl<K> Cells<'_, K> {
    /// 32 - log2(places); panics if the cells are not as said above.
    fn shift(&self) -> u32 {
        let (len, scale) = (self.cells.len(), self.scale);
        assert!(len >= 2 && len.is_power_of_two(), "{len} cells; allowed are powers of two from 2");
        assert!(len <= CELLS_MAX, "{len} cells; 31 bits number the words of {CELLS_MAX}");
        assert!(scale < u64::BITS, "units of 2^{scale}; allowed are 2^0 to 2^63");
        u32::BITS - (len * LANES).ilog2()
    }
}

/// Adds 1 for each key to its sum in its cell, unless the sum is at the limit; `refused` gets a bit
/// for each key that was not counted.
///
/// ```text
/// for key:  cell, lane = hash(key);  sum = own if cell.key == key else others[lane]
///           if sum < limit { sum += 1 } else { refused += key }
/// ```
///
/// # Shapes
///
/// `cells`: as [`Cells`] says. `refused`: a word for each [`GROUP`] keys, the first key in the
/// lowest bit.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sieve::{Cell, Cells, CodeHash, LANES, OWN, absorb, others_of, place_of};
///
/// let (hash, log) = (CodeHash::from_seed(1), 10);
/// let mut cells = vec![Cell::<u32>::default(); (1 << log) / LANES];
/// let place = place_of(hash, 32 - log, 7_u32);
/// cells[place / LANES].key = 7;
/// let mut refused = [0];
/// let table = Cells { hash, cells: &mut cells, limit: 3, scale: 0 };
/// absorb(Isa::selected()?, table, &[7, 7, 7, 7, 7], &mut refused);
/// let sums = cells[place / LANES].sums;
/// assert_eq!((sums[OWN], sums[others_of(place)]), (3, 0));
/// assert_eq!(refused, [0b11000]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
///
/// An item costs two vector multiplications (three for two words), a comparison, and a read and a
/// write of one cell.
///
/// # Panics
///
/// If a shape is not as above. Checked once per call.
pub fn absorb<K: CellKey>(isa: Isa, cells: Cells<'_, K>, keys: &[K], refused: &mut [u64]) {
    let call = Absorb::new(cells, keys, Ones, refused);
    dispatch::<Base, _>(isa, call);
}

/// Adds the weight of each key to its sum in its cell, unless the sum would pass the limit;
/// `refused` gets a bit for each key that was not counted.
///
/// ```text
/// for key, weight:  cell, lane = hash(key)
///                   sum, added = own, weight                              if cell.key == key
///                                others[lane], ceil(weight / 2^scale)     otherwise
///                   if sum + added <= limit { sum += added } else { refused += key }
/// ```
///
/// # Shapes
///
/// As for [`absorb`]; `weights`: as many as keys.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sieve::{Cell, Cells, CodeHash, absorb_weighted, others_of, place_of};
///
/// let (hash, mut cells) = (CodeHash::from_seed(1), [Cell::default(); 2]);
/// let table = Cells { hash, cells: &mut cells, limit: 9, scale: 1 };
/// let mut refused = [0];
/// absorb_weighted(Isa::selected()?, table, &[7_u32; 3], &[5, 20, 6], &mut refused);
/// let place = place_of(hash, 32 - 3, 7_u32);
/// assert_eq!(cells[place / 4].sums[others_of(place)], 3 + 3);
/// assert_eq!(refused, [0b010]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
///
/// A fifth more than [`absorb`] with a `scale` of 0; twice as much with another `scale` or with
/// weights of 2^62 and more.
///
/// # Panics
///
/// If a shape is not as above. Checked once per call.
pub fn absorb_weighted<K: CellKey>(
    isa: Isa,
    cells: Cells<'_, K>,
    keys: &[K],
    weights: &[u64],
    refused: &mut [u64],
) {
    let (keys_len, weights_len) = (keys.len(), weights.len());
    assert!(keys_len == weights_len, "{keys_len} keys need as many weights, not {weights_len}");
    let call = Absorb::new(cells, keys, weights, refused);
    dispatch::<Base, _>(isa, AbsorbWeighted(call));
}

/// Numbers that keys add to their cells.
trait Added: Copy {
    /// Numbers of `N` keys.
    type Few<const N: usize>: Few;
    /// The numbers for the keys from `begin` on.
    fn few<const N: usize>(self, begin: usize) -> Self::Few<N>;
    /// Prefetches the numbers after the group from `begin` on.
    fn fetch_after_lines(self, begin: usize);
}

/// Numbers of a constant number of keys, so that a look-up checks no bound.
trait Few: Copy {
    /// The number for the key at `position`; `is_own` says whether the cell belongs to the key.
    fn at(self, position: usize, is_own: bool) -> i64;
}

/// One for each key.
#[derive(Clone, Copy)]
struct Ones;

impl Added for Ones {
    type Few<const N: usize> = Self;

    #[inline(always)]
    fn few<const N: usize>(self, _: usize) -> Self {
        self
    }

    #[inline(always)]
    fn fetch_after_lines(self, _: usize) {}
}

impl Few for Ones {
    #[inline(always)]
    fn at(self, _: usize, _: bool) -> i64 {
        1
    }
}

/// Weights below this limit can be added to a sum of 32 bits without overflow.
const SMALL_END: u64 = 1 << 62;

/// The weight of the key, in all sums. All weights are below [`SMALL_END`].
#[derive(Clone, Copy)]
struct Small<W>(W);

impl<'a> Added for Small<&'a [u64]> {
    type Few<const N: usize> = Small<&'a [u64; N]>;

    #[inline(always)]
    fn few<const N: usize>(self, begin: usize) -> Self::Few<N> {
        Small(few(self.0, begin))
    }

    #[inline(always)]
    fn fetch_after_lines(self, begin: usize) {
        fetch_after_lines::<WEIGHTS_AHEAD_BYTES, _>(few::<GROUP>(self.0, begin));
    }
}

impl<const N: usize> Few for Small<&[u64; N]> {
    #[inline(always)]
    fn at(self, position: usize, _: bool) -> i64 {
        self.0[position].cast_signed()
    }
}

/// More than any sum has room for, so that larger weights need not be distinguished.
const ADDED_MAX: u64 = 1 << 33;

/// The weight of the key in units of 2^scale, rounded up.
#[derive(Clone, Copy)]
struct Units<'a, W> {
    weights: W,
    /// The scale of other keys, and of the key of the cell. Both are in memory, so that the choice
    /// needs no branch.
    scales: &'a [u32; 2],
}

impl<'a> Added for Units<'a, &'a [u64]> {
    type Few<const N: usize> = Units<'a, &'a [u64; N]>;

    #[inline(always)]
    fn few<const N: usize>(self, begin: usize) -> Self::Few<N> {
        let Self { weights, scales } = self;
        Units { weights: few(weights, begin), scales }
    }

    #[inline(always)]
    fn fetch_after_lines(self, begin: usize) {
        fetch_after_lines::<WEIGHTS_AHEAD_BYTES, _>(few::<GROUP>(self.weights, begin));
    }
}

impl<const N: usize> Few for Units<'_, &[u64; N]> {
    #[inline(always)]
    fn at(self, position: usize, is_own: bool) -> i64 {
        let (weight, scale) = (self.weights[position], self.scales[usize::from(is_own)]);
        let is_rounded = weight & ((1 << scale) - 1) != 0;
        ((weight >> scale) + u64::from(is_rounded)).min(ADDED_MAX).cast_signed()
    }
}

/// The `N` weights from `begin` on.
#[inline(always)]
fn few<const N: usize>(weights: &[u64], begin: usize) -> &[u64; N] {
    weights[begin..].first_chunk().expect("as many weights as keys")
}

/// The checked arguments of [`absorb`], with the numbers that are added for each key.
struct Absorb<'a, K, A> {
    cells: Cells<'a, K>,
    /// 32 - log2(places).
    shift: u32,
    keys: &'a [K],
    added: A,
    refused: &'a mut [u64],
}

/// The checked arguments of [`absorb_weighted`].
struct AbsorbWeighted<'a, K>(Absorb<'a, K, &'a [u64]>);

impl<'a, K, A> Absorb<'a, K, A> {
    fn new(cells: Cells<'a, K>, keys: &'a [K], added: A, refused: &'a mut [u64]) -> Self {
        let (words, words_len) = (keys.len().div_ceil(GROUP), refused.len());
        assert!(words == words_len, "{} keys need {words} words, not {words_len}", keys.len());
        let shift = cells.shift();
        Self { cells, shift, keys, added, refused }
    }

    /// The same arguments with other numbers.
    fn adding<B>(self, added: B) -> Absorb<'a, K, B> {
        let Self { cells, shift, keys, refused, .. } = self;
        Absorb { cells, shift, keys, added, refused }
    }
}

/// Number of sums that a turn of the loop counts.
const UNROLLED: usize = 4;

impl<K: CellKey, A: Added> Absorb<'_, K, A> {
    #[inline(always)]
    fn run(mut self, level: impl Find<K>) {
        let (groups, rest) = self.keys.as_chunks::<GROUP>();
        for (word, group) in groups.iter().enumerate() {
            fetch_after_lines::<AHEAD_BYTES, _>(group);
            self.added.fetch_after_lines(GROUP * word);
            let sums = level.find(self.places(), group);
            self.refused[word] = self.count(&sums, GROUP * word);
        }
        let Some(word) = self.refused.get_mut(groups.len()) else { return };
        *word = 0;
        for (position, &key) in rest.iter().enumerate() {
            let sums = find_each(self.places(), &[key]);
            let bit = self.count(&sums, GROUP * groups.len() + position);
            self.refused[groups.len()] |= bit << position;
        }
    }

    #[inline(always)]
    fn places(&self) -> Places<'_, K> {
        Places { hash: self.cells.hash, shift: self.shift, cells: self.cells.cells }
    }

    /// Counts the keys from `begin` on in their `sums`; returns a bit for each key whose sum would
    /// pass the limit.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a sum is at most the limit")]
    fn count<const N: usize>(&mut self, sums: &Sums<N>, begin: usize) -> u64 {
        let (added, limit) = (self.added.few::<N>(begin), self.cells.limit.into());
        let words = self.cells.cells.as_mut_ptr().cast::<i32>();
        let mut refused = 0;
        for turn in (0..N).step_by(UNROLLED) {
            for position in turn..(turn + UNROLLED).min(N) {
                let sum = sums.0[position];
                let added = added.at(position, sum.is_multiple_of(Cell::<K>::WORDS));
                let sum = words.wrapping_add(sum as usize + Cell::<K>::WORDS_OF_KEY);
                // SAFETY: `find` returns the number of a sum of a cell.
                let sum = unsafe { &mut *sum };
                let next = i64::from(*sum) + added;
                if next <= limit {
                    *sum = next as i32;
                } else {
                    refused |= 1 << position;
                }
            }
        }
        refused
    }
}

impl<K: CellKey, A: Added, L: Find<K>> RunOn<L> for Absorb<'_, K, A> {
    #[inline(always)]
    fn run_on(self, level: L) {
        self.run(level);
    }
}

impl<K: CellKey, L: Find<K>> RunOn<L> for AbsorbWeighted<'_, K> {
    #[inline(always)]
    fn run_on(self, level: L) {
        let Self(call) = self;
        let weights = call.added;
        match call.cells.scale {
            0 if bits_of(weights) < SMALL_END => call.adding(Small(weights)).run(level),
            scale => call.adding(Units { weights, scales: &[scale, 0] }).run(level),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The shape of a table, and the sum of each cell at the beginning.
    #[derive(Debug, Clone, Copy)]
    struct Shape {
        log: u32,
        limit: i32,
        own: i32,
        scale: u32,
        seed: u64,
    }

    /// Counts `keys` in cells that belong to the `owners`, and in a second table that finds a place
    /// by division and not by shifting, and adds integers that do not overflow.
    fn check<K: CellKey>(
        shape: Shape,
        owners: &[K],
        keys: &[K],
        weights: Option<&[u64]>,
    ) -> Result<(), TestCaseError> {
        let Shape { log, limit, own, scale, seed } = shape;
        let hash = CodeHash::from_seed(seed);
        let place = |key: K| {
            let hash = u64::from(hash.of(key));
            usize::try_from(hash / ((1 << 32) >> (log + 2))).expect("a small number")
        };
        let mut cells = vec![Cell::default(); 1 << log];
        cells.iter_mut().for_each(|cell: &mut Cell<K>| cell.sums[0] = own);
        owners.iter().for_each(|&key| cells[place(key) / 4].key = key);
        let mut expected = cells.clone();
        let mut refused = Vec::new();
        for (position, &key) in keys.iter().enumerate() {
            let weight = weights.map(|weights| u128::from(weights[position]));
            let cell = &mut expected[place(key) / 4];
            let (sum, added) = match cell.key == key {
                true => (&mut cell.sums[0], weight.unwrap_or(1)),
                false => {
                    let units = weight.map_or(1, |weight| weight.div_ceil(1 << scale));
                    (&mut cell.sums[1 + place(key) % 4], units)
                }
            };
            let next = i128::from(*sum) + i128::try_from(added).expect("65 bits");
            refused.push(next > i128::from(limit));
            if next <= i128::from(limit) {
                *sum = i32::try_from(next).expect("at most the limit");
            }
        }
        for isa in Isa::available() {
            let mut cells = cells.clone();
            let mut words = vec![u64::MAX; keys.len().div_ceil(64)];
            let table = Cells { hash, cells: &mut cells, limit, scale };
            match weights {
                None => absorb(isa, table, keys, &mut words),
                Some(weights) => absorb_weighted(isa, table, keys, weights, &mut words),
            }
            let bits = (0..64 * words.len()).map(|bit| words[bit / 64] >> (bit % 64) & 1 == 1);
            let expected_bits = refused.iter().copied().chain(std::iter::repeat(false));
            prop_assert!(bits.zip(expected_bits).all(|(bit, expected)| bit == expected));
            prop_assert_eq!(&cells, &expected, "{}", isa);
        }
        Ok(())
    }

    /// Weights; the largest has `bits` bits.
    fn weights(len: usize, bits: u32, seed: u64) -> Vec<u64> {
        (0..len as u64).map(|i| split_mix(seed, i) >> (64 - bits)).collect()
    }

    proptest! {
        #[test]
        fn sums_and_refusals_are_those_of_a_table_without_hashing_by_shifts(
            log in 1..8_u32,
            others in prop::collection::vec(any::<u32>(), 0..300),
            owners in prop::collection::vec(any::<u32>(), 0..20),
            repeats in 1..4_usize,
            limit in prop_oneof![1..20_i32, 1 << 29..1 << 30],
            own in prop_oneof![-10..10_i32, Just(i32::MIN), Just(i32::MAX - 1)],
            scale in prop_oneof![Just(0_u32), 0..40_u32],
            bits in prop::option::of(1..=64_u32),
            seed: u64,
        ) {
            let shape = Shape { log, limit, own, scale, seed };
            let keys = [&*owners, &*others].concat().repeat(repeats);
            let weights = bits.map(|bits| weights(keys.len(), bits, seed));
            let weights = weights.as_deref();
            check(shape, &owners, &keys, weights)?;
            let wide = |keys: &[u32]| -> Vec<u64> {
                keys.iter().map(|&key| u64::from(key) << 20).collect()
            };
            check(shape, &wide(&owners), &wide(&keys), weights)?;
            // Keys that share one of their words with other keys.
            let words = |keys: &[u32]| {
                let words = |&key: &u32| [u64::from(key) % 97, u64::from(key) << 32];
                keys.iter().map(words).collect::<Vec<_>>()
            };
            check(shape, &words(&owners), &words(&keys), weights)?;
        }
    }

    #[test]
    #[should_panic(expected = "3 cells; allowed are powers of two from 2")]
    fn an_odd_table_is_refused() {
        let hash = CodeHash::from_seed(1);
        let cells = &mut [Cell::<u64>::default(); 3];
        absorb(Isa::Scalar, Cells { hash, cells, limit: 1, scale: 0 }, &[], &mut []);
    }
}
