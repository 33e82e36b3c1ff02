//! One cell of the table, and the place of a key in it.

use std::mem::offset_of;

use super::hash::{CellKey, CodeHash};

/// The sums of a cell for codes that are not its key.
pub const LANES: usize = 1 << LANES_LOG;

pub(super) const LANES_LOG: u32 = 2;

/// One cell: 24 bytes for a key of `u32`, 32 for `u64`, 40 for two words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Cell<C> {
    /// The key of the cell.
    pub key: C,
    /// The sum of the key of the cell, and then for each lane the sum of all other keys.
    pub sums: [i32; 1 + LANES],
}

/// The index of the sum of the key of a cell.
pub const OWN: usize = 0;

/// The index of the sum of the other keys of a place.
#[inline(always)]
#[must_use]
pub const fn others_of(place: usize) -> usize {
    1 + place % LANES
}

/// The place of a key, [`LANES`] for each cell, among 2^(32 - `shift`) places. Its cell is the
/// place divided by [`LANES`].
#[inline(always)]
#[must_use]
pub fn place_of(hash: CodeHash, shift: u32, key: impl CellKey) -> usize {
    (hash.of(key) >> shift) as usize
}

impl<K> Cell<K> {
    /// The number of 32-bit words of a cell, and of the words before its sums.
    #[expect(clippy::cast_possible_truncation, reason = "at most ten")]
    pub(super) const WORDS: u32 = (size_of::<Self>() / size_of::<i32>()) as u32;
    pub(super) const WORDS_OF_KEY: usize = offset_of!(Self, sums) / size_of::<i32>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_that_mark_vacant_cells_hash_to_different_halves() {
        for seed in 0..100 {
            let hash = CodeHash::from_seed(seed);
            for log in 1..=30 {
                let cell = |code: u64| place_of(hash, 32 - log, code) >> (log - 1);
                assert_eq!((cell(0), cell(hash.upper_code().into())), (0, 1));
                assert!(place_of(hash, 32 - log, u64::MAX) < 1 << log);
            }
        }
    }
}
