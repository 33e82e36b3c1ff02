//! Batmaps: supports of pairs and triples of items, by a comparison of bytes that does not depend
//! on the data.
//!
//! A batmap stores the tid list of an item, the set of the transactions that contain the item. The
//! map has `D + 1` hash tables of equal range, and every element is in `D` of these tables, at the
//! position that the permutation of the table gives the element in all maps. The maps of two sets
//! with a common element lack the element in two tables at most, so one of the `D + 1` >= 3 tables
//! holds it in both maps, at the same position:
//!
//! ```text
//!              table 0            table 1            table 2
//! map A    | . x . . y . . . | . . . y . . . . | . . x . . . . . |     x misses table 1, y misses 2
//! map B    | . x . . . . z . | . x . y . . . . | . . . . y z . . |     x misses 2, y misses 0
//!              x                   y                                   the slots that are equal
//!
//!          narrow map, over and over    | . x . . | . x . . |          range 4
//!          wide map                     | . . . . | . x . . |          range 8: position 5, modulo 4
//! ```
//!
//! A position is the lower bits of the permuted tid, modulo the range, which is a power of two. A
//! narrow map is therefore compared with each part of a wider one. A slot is a byte: the upper bits
//! of the permuted tid (its *code*), and flags that say which table lacks the element. As the range
//! has all bits that the code lacks, equal codes at one position are equal elements.
//! [`Permutations`] give no element the code 0, which marks an empty slot.
//!
//! # Each common element counts once
//!
//! **Pairs, `D` = 2** (as published). Order the tables cyclically. A slot has the flag *next* if
//! the other copy of its element is in the next table. A common element counts where at least one
//! of its two slots has the flag. If both sets miss the same table, the element meets itself in two
//! successive tables: both slots of the first table have the flag, and no slot of the second. If
//! the sets miss different tables, the element meets itself in the third table t only. One of the
//! two sets misses t - 1, so that set has the other copy in t + 1 and the flag in t.
//!
//! **Pairs and triples, `D` = 3** (the paper leaves more than two sets open, §V). Order the tables
//! linearly. A common element counts in the first table that no set misses: all sets hold the
//! element in table t, and for each table before t there is a set that misses it. Such a table
//! exists, as `k` <= 3 sets miss at most three of four tables. For two sets it is never the last
//! table, so pairs do not compare the last table. The flags name the missed tables as the rule
//! needs them:
//!
//! | table | counted if | test |
//! |---|---|---|
//! | 0 | always | the flag `misses 0`, which all slots of table 0 have, is in one slot |
//! | 1 | a set misses 0 | the flag `misses 0` is in one slot |
//! | 2 | sets miss 0 and 1 | each of the flags is in one slot |
//! | 3 | sets miss 0, 1 and 2 | each of the flags is in an odd number of the three slots |
//!
//! An element of table 3 misses table 0 (written as the first flag), 1 (the second flag) or 2 (no
//! flag). Three slots have an odd number of both flags only if they miss three different tables. As
//! table 0 has a flag in all slots, no test counts two empty slots, and the same formula serves
//! tables 0 to 2 and `D` = 2: the codes are equal, and each flag of the table is in one slot.
//!
//! # Failed insertions
//!
//! The slots that elements share bind the elements of a set to each other: an element that loses a
//! slot keeps its `D` other slots from all further elements, so with `n` elements and a range `r`
//! about `D n / r` elements lose a slot in turn. Below 1, few insertions fail. The table has the
//! failures in a set, from up to 2,000 sets of random tids:
//!
//! | `D n / r` | 0.5 | 0.8 | 0.9 | 0.95 | 0.99 | 1.05 | 1.1 | 1.2 |
//! |---|---|---|---|---|---|---|---|---|
//! | `D` = 2, `r` = 64 | 0.004 | 0.02 | 0.05 | 0.08 | 0.09 | 0.12 | 0.18 | 0.31 |
//! | `D` = 2, `r` = 1,024 | 0 | 0.006 | 0.04 | 0.07 | 0.13 | 0.34 | 0.70 | 2.6 |
//! | `D` = 2, `r` = 65,536 | 0 | 0 | 0 | 0 | 0.11 | 5.8 | 38 | 213 |
//! | `D` = 3, `r` = 64 | 0.002 | 0.02 | 0.05 | 0.05 | 0.08 | 0.09 | 0.13 | 0.22 |
//! | `D` = 3, `r` = 1,024 | 0 | 0.015 | 0.05 | 0.09 | 0.14 | 0.30 | 0.55 | 1.7 |
//! | `D` = 3, `r` = 65,536 | 0 | 0 | 0 | 0.005 | 0.07 | 3.2 | 19 | 122 |
//!
//! Runs of tids, tids at a distance of 16, and clusters of 8 fail as often. Ranges are therefore
//! wider than `D n`. An element that still has no place is in no slot, but in the *side list* of
//! its set, and is looked up in the other sets of a question: all supports are exact.
//!
//! Source: Amossen, Pagh, *A New Data Layout for Set Intersection on GPUs*, IPDPS 2011, §II
//! (redundant tables, folded comparison), §II-A (insertion), §III-A (slots of a byte), §III-C
//! (failed insertions). Departures from the paper:
//!
//! - Triples have 3 of 4 tables and another rule of counting; the paper has an outline (§V).
//! - Permutations without the code 0 replace the NULL value of the paper: an empty slot needs no
//!   test.
//! - A new element takes its free slots before it moves other elements; that saves a sixth of the
//!   time.
//! - Failed elements are looked up in the other maps. The paper goes through the transactions,
//!   which the maps do not have.
//! - A rectangle of pairs is compared in slices that fit a cache of the processor. The paper uses
//!   the shared memory of a work group (§III-B), as `cuda::supports` does on a GPU.
//!
//! | file | contents |
//! |---|---|
//! | `permute` | the keyed bijections |
//! | `slot`, `map`, `maps` | a slot, one map, the maps of a collection |
//! | `insert` | cuckoo insertion |
//! | `count` | the comparison by blocks of slots, written once for all levels |
//! | `levels` | the test of a block, as a trait; `portable`, `avx2`, `avx512`; the reference of the comparison (`scalar`) |
//! | `side` | elements whose insertion failed |

mod count;
mod insert;
mod levels;
mod map;
mod maps;
mod permute;
mod side;
mod slot;
#[cfg(test)]
mod tests;

pub(crate) use self::map::Block;
pub use self::maps::BatMaps;
pub use self::permute::Permutations;

use std::ops::Range;

use self::count::{CountPairs, CountTriple};
use crate::Isa;
use crate::simd::{Base, dispatch};

/// The number of common elements of a pair of sets that a map of the pair lacks.
pub(crate) fn failed_support<const D: usize>(maps: &BatMaps<D>, pair: [u32; 2]) -> u32 {
    let [row, column] = pair.map(|map| map..map + 1);
    let mut support = 0;
    side::add_pairs(maps, row, column, std::slice::from_mut(&mut support));
    support
}

/// Finds the supports of all pairs of a rectangle of items.
///
/// In pseudo-code: `for (i, row) in rows { for (j, column) in columns { supports[i * |columns| +
/// j] = |set(row) ∩ set(column)| } }`.
///
/// # Shapes
///
/// `rows`, `columns`: ranges of map numbers, at most `maps.len()`; they may overlap. `supports`:
/// `u32[|rows| * |columns|]`, overwritten.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::batmap::{BatMaps, Permutations, pair_supports};
/// use trommel_kernels::sets::Sets;
///
/// // {3, 8, 9}, {3, 8} and {5, 8, 9}: the first with the other two.
/// let tid_lists = Sets::new(&[0, 3, 5, 8], &[3, 8, 9, 3, 8, 5, 8, 9]);
/// let maps = BatMaps::new(Isa::Scalar, Permutations::<2>::new(10, 0x5EED), tid_lists);
/// let mut supports = [0; 2];
/// pair_supports(Isa::Scalar, &maps, 0..1, 1..3, &mut supports);
/// assert_eq!(supports, [2, 2]);
/// ```
///
/// # Cost
///
/// For each pair, reads 3 B of both maps for each position of the wider range, whatever the sets:
/// 200 GB/s on a core with AVX-512, 130 GB/s with AVX2 and 65 GB/s with 128 bits. Tiles of 8 by 16
/// maps are compared slice by slice, 12 KiB of each map, so that slices stay in the second-level
/// cache. Sort the items by the number of tids where the order is free: a tile costs as much as its
/// pairs, and a pair as much as its wider map. In addition, each element of a side list costs a
/// look-up in `D + 1` slots of each map of the other side.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above. Checked once per call.
pub fn pair_supports<const D: usize>(
    isa: Isa,
    maps: &BatMaps<D>,
    rows: Range<u32>,
    columns: Range<u32>,
    supports: &mut [u32],
) {
    let (len, room) = (maps.len(), supports.len());
    let is_inside = |range: &Range<u32>| range.end as usize <= len;
    let are_inside = is_inside(&rows) && is_inside(&columns);
    assert!(are_inside, "rows {rows:?} and columns {columns:?} of {len} maps");
    let pairs = rows.len() * columns.len();
    assert!(pairs == room, "{pairs} pairs need as many supports, not {room}");
    supports.fill(0);
    side::add_pairs(maps, rows.clone(), columns.clone(), supports);
    dispatch::<Base, _>(isa, CountPairs { maps, rows, columns, supports });
}

/// Finds the support of a triple of items: the size of the intersection of their tid lists.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::batmap::{BatMaps, Permutations, triple_support};
/// use trommel_kernels::sets::Sets;
///
/// // {3, 8, 9}, {3, 8} and {5, 8, 9}.
/// let tid_lists = Sets::new(&[0, 3, 5, 8], &[3, 8, 9, 3, 8, 5, 8, 9]);
/// let maps = BatMaps::new(Isa::Scalar, Permutations::<3>::new(10, 0x5EED), tid_lists);
/// assert_eq!(triple_support(Isa::Scalar, &maps, [0, 1, 2]), 1);
/// ```
///
/// # Cost
///
/// Reads 4 B of each map for each position of the widest range, at the rates of [`pair_supports`];
/// in addition, each element of a side list costs a look-up in each other map.
///
/// # Panics
///
/// If `isa` is not available, or there is no such map.
#[must_use]
pub fn triple_support(isa: Isa, maps: &BatMaps<3>, triple: [u32; 3]) -> u32 {
    let counted = dispatch::<Base, _>(isa, CountTriple(triple.map(|map| maps.map(map))));
    counted + side::count_triple(maps, triple)
}
