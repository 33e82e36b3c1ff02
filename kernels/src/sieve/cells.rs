//! Cells for the items that the sieve misses: counts codes in a direct-mapped table, as long as
//! no sum reaches its limit.
//!
//! A cell has the key that it belongs to and two sums: one for that key, one for all other codes
//! that hash to it. The sum to grow is chosen by an index and not by a branch, so the only branch
//! is the limit, which is rarely reached. The loop is the same on all levels, but compiled for
//! each: shifting by a variable is one instruction on the vector levels, of which AVX2 and
//! AVX-512 have BMI2. (Gathering and scattering cells of several items, with the conflicts found
//! first, costs more than the items one by one.)

#![expect(unsafe_code, reason = "the index of a cell is in range by construction")]

use crate::Isa;
use crate::simd::{Base, Call, Key, RunOn, dispatch};

/// 2^64 divided by the golden ratio, odd: the multiplier of Fibonacci hashing. Its highest bit is
/// set, so that 1 never hashes to cell 0, and 0 always does.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

const _: () = assert!(MULTIPLIER >> 63 == 1);

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

/// The index of the cell of a code in a table of 2^(64 - `shift`) cells, at least 2.
#[inline(always)]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "an index of a table that exists")]
pub fn cell_of<C: Key>(shift: u32, code: C) -> usize {
    (code.into().wrapping_mul(MULTIPLIER) >> shift) as usize
}

/// Adds 1 for each code to the sum of its cell that it belongs to, up to the first one that would
/// pass the limit of its sum; returns the number of counted codes.
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
/// use trommel_kernels::sieve::{Cell, OTHERS, OWN, absorb, cell_of};
///
/// let mut cells = [Cell::<u32>::default(); 4];
/// let cell = cell_of(62, 7_u32);
/// cells[cell].key = 7;
/// assert_eq!(absorb(Isa::Scalar, &mut cells, [100, 100], &[7, 7, 7]), 3);
/// assert_eq!((cells[cell].sums[OWN], cells[cell].sums[OTHERS]), (3, 0));
/// ```
///
/// # Cost
///
/// A multiplication, a comparison, and a read and a write of one cell an item.
///
/// # Panics
///
/// If the number of cells is not a power of two, or below 2.
pub fn absorb<C: Key>(isa: Isa, cells: &mut [Cell<C>], limits: [u32; 2], codes: &[C]) -> usize {
    let len = cells.len();
    assert!(len >= 2 && len.is_power_of_two(), "{len} cells; allowed are powers of two from 2 on");
    dispatch::<Base, _>(isa, Absorb { cells, limits, codes })
}

/// The arguments of [`absorb`], checked.
struct Absorb<'a, C> {
    cells: &'a mut [Cell<C>],
    limits: [u32; 2],
    codes: &'a [C],
}

/// Items a turn of the loop: four are 6 % faster than one.
const UNROLLED: usize = 4;

impl<C: Key> Absorb<'_, C> {
    #[inline(always)]
    fn run(mut self) -> usize {
        // Positions are counted a group at a time; the limit is looked at for each code.
        let (groups, rest) = self.codes.as_chunks::<UNROLLED>();
        let mut counted = 0;
        for group in groups {
            for &code in group {
                if !self.count(code) {
                    return counted;
                }
                counted += 1;
            }
        }
        counted + rest.iter().position(|&code| !self.count(code)).unwrap_or(rest.len())
    }

    /// Counts one code, unless its sum is at the limit.
    #[inline(always)]
    fn count(&mut self, code: C) -> bool {
        let shift = u64::BITS - self.cells.len().ilog2();
        // The highest bits of the product, which depend on all bits of the code.
        // SAFETY: the hash has 64 - shift bits, as many as the number of cells, a power of two,
        // has zeros: it is below that.
        let cell = unsafe { self.cells.get_unchecked_mut(cell_of(shift, code)) };
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
        /// Against a map from cells to sums, which hashes by division and not by shifting.
        #[test]
        fn sums_are_those_of_a_map_up_to_the_first_limit(
            log in 1..8_u32,
            codes in prop::collection::vec(any::<u32>(), 0..300),
            keys in prop::collection::vec(any::<u32>(), 0..20),
            repeats in 1..4_usize,
            limits in [1..20_u32, 1..20_u32],
        ) {
            let cell = |code: u32| {
                let hash = u128::from(u64::from(code).wrapping_mul(MULTIPLIER));
                usize::try_from(hash / ((1 << 64) >> log)).expect("a small number")
            };
            let mut cells = vec![Cell::default(); 1 << log];
            keys.iter().for_each(|&key| cells[cell(key)].key = key);
            let codes: Vec<u32> = keys.iter().chain(&codes).copied().collect();
            let codes = codes.repeat(repeats);
            let mut expected = cells.clone();
            let counted = codes.iter().position(|&code| {
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
                let end = absorb(isa, &mut cells, limits, &codes);
                prop_assert_eq!(end, counted.unwrap_or(codes.len()), "{}", isa);
                prop_assert_eq!(&cells, &expected, "{}", isa);
            }
        }
    }

    #[test]
    fn the_codes_that_mark_vacant_cells_hash_apart() {
        for log in 1..=30 {
            assert_eq!(cell_of(64 - log, 0_u32), 0);
            assert_ne!(cell_of(64 - log, 1_u32), 0);
            assert!(cell_of(64 - log, u64::MAX) < 1 << log);
        }
    }

    #[test]
    #[should_panic(expected = "3 cells; allowed are powers of two from 2 on")]
    fn an_odd_table_is_refused() {
        absorb(Isa::Scalar, &mut [Cell::<u64>::default(); 3], [1, 1], &[]);
    }
}
