//! Finds for each key of a group the sum that counts the key.
//!
//! ```text
//! key ──hash──► place ──► cell, lane        own, if the cell has the key; otherwise others[lane]
//! ```
//!
//! A loop computes the places of a group; it compiles to vector instructions on the levels whose
//! vectors can multiply. Cells are read one by one. AVX-512 has code of its own for keys of 32
//! bits, which are gathered from the cells, and for keys of two words.

#![expect(unsafe_code, reason = "the index of a cell is in range by construction")]

use std::hint::select_unpredictable;

use super::cell::{Cell, LANES_LOG};
use super::hash::{CellKey, CodeHash, GROUP};
#[cfg(target_arch = "x86_64")]
use crate::simd::Avx2;
use crate::simd::{Portable, Scalar, prefetch_at};

/// The table in which the sums of keys are found.
pub(super) struct Places<'a, K> {
    pub(super) hash: CodeHash,
    /// 32 - log2(places).
    pub(super) shift: u32,
    /// The cells; their number is a power of two.
    pub(super) cells: &'a [Cell<K>],
}

/// The numbers of sums among the words of 32 bits of the cells, less the words of a key: the sum of
/// the key of a cell has the number of the first word of that cell. Aligned to a cache line, so
/// that storing a register writes one line.
#[repr(align(64))]
pub(super) struct Sums<const N: usize>(pub(super) [u32; N]);

/// A level that finds the sums of keys.
pub(super) trait Find<K: CellKey>: Copy {
    /// The sum of each key.
    #[inline(always)]
    fn find(self, places: Places<'_, K>, keys: &[K; GROUP]) -> Sums<GROUP> {
        find_each(places, keys)
    }
}

impl<K: CellKey> Find<K> for Scalar {}
impl<K: CellKey> Find<K> for Portable {}
#[cfg(target_arch = "x86_64")]
impl<K: CellKey> Find<K> for Avx2 {}

/// A table up to this size is read without prefetching its cells: for small tables the prefetch
/// costs up to a fifth, for larger tables it saves as much.
const NEAR_BYTES: usize = 1 << 20;

/// As [`Find::find`], for keys one by one.
#[inline(always)]
pub(super) fn find_each<K: CellKey, const N: usize>(
    places: Places<'_, K>,
    keys: &[K; N],
) -> Sums<N> {
    let words = places.cells.as_ptr().cast::<u32>();
    // `firsts` are the first words of cells. The loop goes by index, so that the compiler
    // vectorizes it.
    let (mut firsts, mut others) = (Sums([0; N]), Sums([0; N]));
    let (firsts, others) = (&mut firsts.0, &mut others.0);
    for position in 0..N {
        let place = places.hash.of(keys[position]) >> places.shift;
        firsts[position] = (place >> LANES_LOG) * Cell::<K>::WORDS;
        others[position] = firsts[position] + 1 + place % (1 << LANES_LOG);
    }
    if size_of_val(places.cells) > NEAR_BYTES {
        firsts.iter().for_each(|&first| prefetch_at(words.wrapping_add(first as usize)));
    }
    Sums(std::array::from_fn(|position| {
        let cell = words.wrapping_add(firsts[position] as usize).cast::<K>();
        // SAFETY: a place is a hash of 32 bits, shifted by `shift`, so that it has as many bits as
        // the number of places, a power of two, has zeros: it is below that, and its cell is below
        // the number of cells. A cell begins with its key.
        let is_own = unsafe { *cell } == keys[position];
        // There is no branch, since the processor cannot predict whether the key matches.
        select_unpredictable(is_own, firsts[position], others[position])
    }))
}
