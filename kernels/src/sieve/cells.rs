//! Cells for the items that the sieve misses: counts codes in a direct-mapped table, as long as
//! no sum reaches its limit.
//!
//! A cell has the key that it belongs to and two sums: one for that key, one for all other codes
//! that hash to it. The sum to grow is chosen by an index and not by a branch, so the only branch
//! is the limit, which is rarely reached. The places of a group of codes are computed before the
//! first of them is counted, in a loop that compiles to vectors on the levels that multiply in
//! them. The code is the same on all levels, but compiled for each. (Gathering and scattering
//! cells of several items, with the conflicts found first, costs more than the items one by one.)

#![expect(unsafe_code, reason = "the index of a cell is in range by construction")]

use super::hash::CodeHash;
use crate::Isa;
use crate::simd::{Base, Call, Key, RunOn, dispatch, prefetch};

/// The index of the sum of a cell's key.
pub const OWN: usize = 0;
/// The index of the sum of all other codes.
pub const OTHERS: usize = 1;

/// One cell: 12 bytes for `u32`. The less a table takes, the better for the caches and the pages
/// in use; cells of 16 bytes, none of which crosses a cache line, were slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell<C> {
    /// The key of the cell.
    pub key: C,
    /// [`OWN`] and [`OTHERS`].
    pub sums: [u32; 2],
}

/// The index of the cell of a code in a table of 2^(32 - `shift`) cells, at least 2.
#[inline(always)]
#[must_use]
pub fn cell_of<C: Key>(hash: CodeHash, shift: u32, code: C) -> usize {
    (hash.of(code) >> shift) as usize
}

/// Adds 1 for each code from position `start` on to the sum of its cell that it belongs to, up to
/// the first one that would pass the limit of its sum; returns the position of that one, or the
/// number of codes.
///
/// ```text
/// for code:  cell = cells[hash(code)];  sum = OWN if cell.key == code else OTHERS
///            if cell.sums[sum] + 1 > limits[sum] { return }
///            cell.sums[sum] += 1
/// ```
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sieve::{Cell, CodeHash, OTHERS, OWN, absorb, cell_of};
///
/// let hash = CodeHash::from_seed(1);
/// let mut cells = [Cell::<u32>::default(); 4];
/// let cell = cell_of(hash, 30, 7_u32);
/// cells[cell].key = 7;
/// let end = absorb(Isa::Scalar, hash, &mut cells, [100, 100], &[7, 7, 7], 0);
/// assert_eq!((end, cells[cell].sums[OWN], cells[cell].sums[OTHERS]), (3, 3, 0));
/// ```
///
/// # Cost
///
/// Two multiplications in vectors, a comparison, and a read and a write of one cell an item. A
/// call that starts within a group of codes finds the places of the rest of that group one by
/// one.
///
/// # Panics
///
/// If the number of cells is not a power of two from 2 to 2^32, or there are fewer than `start`
/// codes.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sieve::{Cell, CodeHash, OTHERS, OWN, absorb, cell_of};
///
/// let (hash, log) = (CodeHash::from_seed(1), 10);
/// let mut cells = vec![Cell::<u32>::default(); 1 << log];
/// let cell = cell_of(hash, 32 - log, 7_u32);
/// cells[cell].key = 7;
/// // The fourth 7 would pass the limit.
/// let end = absorb(Isa::selected()?, hash, &mut cells, [3, 9], &[7, 7, 7, 7, 7], 0);
/// assert_eq!((end, cells[cell].sums[OWN], cells[cell].sums[OTHERS]), (3, 3, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn absorb<C: Key>(
    isa: Isa,
    hash: CodeHash,
    cells: &mut [Cell<C>],
    limits: [u32; 2],
    codes: &[C],
    start: usize,
) -> usize {
    let len = cells.len();
    assert!(len >= 2 && len.is_power_of_two(), "{len} cells; allowed are powers of two from 2 on");
    assert!(len as u64 <= 1 << 32, "{len} cells; a hash of 32 bits reaches 2^32");
    let shift = u32::BITS - len.ilog2();
    dispatch::<Base, _>(isa, Absorb { hash, shift, cells, limits, codes, start })
}

/// The arguments of [`absorb`], checked.
struct Absorb<'a, C> {
    hash: CodeHash,
    /// 32 - log2(cells).
    shift: u32,
    cells: &'a mut [Cell<C>],
    limits: [u32; 2],
    codes: &'a [C],
    start: usize,
}

/// Codes whose places are computed together, and whose cells are prefetched. With AVX-512 and 64
/// of them, the loop takes half of the time that it takes with the same hash inside it.
const GROUP: usize = 64;

/// A table up to this size stays in the first-level cache, where prefetching its cells costs 15
/// %. Beyond, it makes the loop 1.2 to 2 times as fast.
const NEAR_BYTES: usize = 1 << 15;

/// Items a turn of the loop over the cells: four are 6 % faster than one.
const UNROLLED: usize = 4;

impl<C: Key> Absorb<'_, C> {
    #[inline(always)]
    fn run(mut self) -> usize {
        // A caller that comes back after a few codes would pay for a whole group each time.
        let aligned = self.start.next_multiple_of(GROUP).min(self.codes.len());
        let mut position = self.count_one_by_one(self.start, aligned);
        if position < aligned {
            return position;
        }
        let is_far = size_of_val(self.cells) > NEAR_BYTES;
        let (groups, _) = self.codes[aligned..].as_chunks::<GROUP>();
        for group in groups {
            // Into an array first: this loop has no other effect, so that it becomes vectors.
            let mut places = [0; GROUP];
            for (place, &code) in places.iter_mut().zip(group) {
                *place = self.hash.of(code) >> self.shift;
            }
            if is_far {
                places.iter().for_each(|&place| prefetch(self.cells, place as usize));
            }
            let (places, _) = places.as_chunks::<UNROLLED>();
            let (codes, _) = group.as_chunks::<UNROLLED>();
            for (places, codes) in places.iter().zip(codes) {
                for (&place, &code) in places.iter().zip(codes) {
                    if !self.count(place, code) {
                        return position;
                    }
                    position += 1;
                }
            }
        }
        self.count_one_by_one(position, self.codes.len())
    }

    /// Counts the codes in this range, up to the first one whose sum is at the limit.
    #[inline(always)]
    fn count_one_by_one(&mut self, start: usize, end: usize) -> usize {
        let codes = self.codes;
        let is_full = |&code: &C| !self.count(self.hash.of(code) >> self.shift, code);
        codes[start..end].iter().position(is_full).map_or(end, |offset| start + offset)
    }

    /// Counts one code, unless its sum is at the limit.
    #[inline(always)]
    fn count(&mut self, place: u32, code: C) -> bool {
        // SAFETY: a place is a hash of 32 bits, shifted by `shift`, so that it has as many bits
        // as the number of cells, a power of two, has zeros: it is below that.
        let cell = unsafe { self.cells.get_unchecked_mut(place as usize) };
        // An index rather than a branch: whether the key matches cannot be foretold.
        let sum = usize::from(cell.key != code);
        // Sums never wrap: none exceeds its limit.
        let next = cell.sums[sum].wrapping_add(1);
        if next > self.limits[sum] {
            return false;
        }
        cell.sums[sum] = next;
        true
    }
}

impl<C> Call for Absorb<'_, C> {
    type Output = usize;
}

/// One loop for all levels, compiled for each.
impl<C: Key, L> RunOn<L> for Absorb<'_, C> {
    #[inline(always)]
    fn run_on(self, _: L) -> usize {
        self.run()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a map from cells to sums, which finds a place by division and not by shifting.
        #[test]
        fn sums_are_those_of_a_map_up_to_the_first_limit(
            log in 1..8_u32,
            codes in prop::collection::vec(any::<u32>(), 0..300),
            keys in prop::collection::vec(any::<u32>(), 0..20),
            repeats in 1..4_usize,
            limits in [1..20_u32, 1..20_u32],
            start in 0..400_usize,
            seed: u64,
        ) {
            let hash = CodeHash::from_seed(seed);
            let cell = |code: u32| {
                let hash = u64::from(hash.of(code));
                usize::try_from(hash / ((1 << 32) >> log)).expect("a small number")
            };
            let mut cells = vec![Cell::default(); 1 << log];
            keys.iter().for_each(|&key| cells[cell(key)].key = key);
            let codes: Vec<u32> = keys.iter().chain(&codes).copied().collect();
            let codes = codes.repeat(repeats);
            let start = start.min(codes.len());
            let mut expected = cells.clone();
            let counted = codes[start..].iter().position(|&code| {
                let cell = &mut expected[cell(code)];
                let (sum, limit) = match cell.key == code {
                    true => (&mut cell.sums[0], limits[0]),
                    false => (&mut cell.sums[1], limits[1]),
                };
                let is_over = *sum >= limit;
                *sum += u32::from(!is_over);
                is_over
            });
            for isa in Isa::available() {
                let mut cells = cells.clone();
                let end = absorb(isa, hash, &mut cells, limits, &codes, start);
                let expected_end = counted.map_or(codes.len(), |offset| start + offset);
                prop_assert_eq!(end, expected_end, "{}", isa);
                prop_assert_eq!(&cells, &expected, "{}", isa);
            }
        }
    }

    #[test]
    fn the_codes_that_mark_vacant_cells_hash_apart() {
        for seed in 0..100 {
            let hash = CodeHash::from_seed(seed);
            for log in 1..=30 {
                assert_eq!(cell_of(hash, 32 - log, 0_u32), 0);
                assert_ne!(cell_of(hash, 32 - log, u32::from(hash.upper_code())), 0);
                assert!(cell_of(hash, 32 - log, u64::MAX) < 1 << log);
            }
        }
    }

    #[test]
    #[should_panic(expected = "3 cells; allowed are powers of two from 2 on")]
    fn an_odd_table_is_refused() {
        let hash = CodeHash::from_seed(1);
        absorb(Isa::Scalar, hash, &mut [Cell::<u64>::default(); 3], [1, 1], &[], 0);
    }
}
