//! The vertical filter: takes the few hottest keys out of a batch, many items at a time.
//!
//! The filter of Roy, Teubner and Alonso (KDD 2012, §3.2; [`filter`](crate::filter)) compares one
//! item with all keys. This filter compares a register full of items with one key after another,
//! and is faster as long as the keys are few:
//!
//! ```text
//! items    | 7 | 3 | 7 | 9 | 5 | 7 | 3 | 1 |     a register at a time
//! key 7    |+1 |   |+1 |   |   |+1 |   |   |     hits of 7, by lane
//! key 3    |   |+1 |   |   |   |   |+1 |   |     hits of 3, by lane
//! missed   | 9 | 5 | 1 | ..                      the others, closed up
//! ```
//!
//! The loop has no branch that depends on the data. Hits are counted in lanes, one register for
//! each key, and added up at the end of the call; missed items are closed up within the register
//! and stored where the missed items of earlier registers end.
//!
//! The items that this filter misses are counted in [`Cell`]s.
//!
//! # Step by step
//!
//! A batch goes through the two steps one after the other. The example has two keys and registers
//! of four items.
//!
//! ```text
//! sift     items              7   3   9   7 │  5   7   8   3        keys 7 and 3
//!     1    equal to 7         x           x │      x                counts[7] += 1 0 0 1 │ 0 1 0 0
//!     2    equal to 3             x         │              x        counts[3] += 0 1 0 0 │ 0 0 0 1
//!     3    in no mask                 9     │  5       8
//!     4    stored             9 . . .         at missed[0..4], and the end moves by 1
//!                               5 8 . .       at missed[1..5], and the end moves by 2
//!     5    hits               7: 1 + 1 + 1 = 3      3: 1 + 1 = 2      missed = 9 5 8
//!
//! absorb   missed             9            5            8
//!     1    hash               cell 2       cell 0       cell 2
//!          lane               lane 1       lane 3       lane 1
//!     2    key of the cell    9            4            9
//!          sum                own of 2     others[3]    others[1]
//!                                          of 0         of 2
//!     3    sum < limit        own + 1      others + 1   at the limit: bit 2 of `refused`
//! ```
//!
//! 1. `sift` compares a register of items with each key. A comparison gives a mask, and under the
//!    mask 1 is added to the lanes of the key's counts. With weights, the weights are added.
//! 2. The masks of all keys are united.
//! 3. The items outside of the united mask are missed. A compression moves them to the front of
//!    the register.
//! 4. The whole register is stored where the missed items so far end, and the end moves by the
//!    number of missed items. The lanes after the end hold old values, and the next store
//!    overwrites them. So `missed` needs [`MISSED_SLACK`] elements more than there are items.
//! 5. After the last register the lanes are added up. Items that do not fill a register go through
//!    the scalar reference.
//! 6. `absorb` takes 64 missed keys at a time, a [`GROUP`]. The first loop computes the cell and
//!    the lane of each key, and prefetches the cells if the table is larger than the caches.
//! 7. The first loop then reads the key of each cell. If the cell belongs to the key, the sum is
//!    the cell's own sum; otherwise it is the sum of the lane. No cell is written, so no read waits
//!    for a write.
//! 8. The second loop adds. A sum that would pass the limit stays as it is, and the bit of the key
//!    is set in `refused`. The caller decides what happens to refused keys.
//!
//! # Cases
//!
//! - **Two equal keys in a group** have the same sum. The second loop adds one key after the other,
//!   so both are counted, and the second key meets the limit if the first one has reached it.
//! - **Items for which no key is given.** A call has 1 to [`KEYS_MAX`] keys; without hot keys the
//!   caller leaves `sift` out.
//! - **Counts of a register overflow** at 2^32 items in a call; `sift` refuses such a call. Weights
//!   are taken in blocks of 1,024, and a block with a weight that does not fit its lanes takes
//!   wider lanes, or the scalar loop.
//! - **A vacant cell** has a key that hashes to another cell, so no key takes the cell for its own:
//!   the first cell has the [upper code](CodeHash::upper_code), and all other vacant cells have 0,
//!   which hashes to the first cell.
//! - **Few keys at the end.** A batch that is no multiple of 64 ends with single keys, by the same
//!   two steps.
//!
//! | file | contents |
//! |---|---|
//! | `hot_keys` | the keys and their hits |
//! | `sift` | the loop over registers, written once for all levels |
//! | `scalar` | the reference of the loop |
//! | `cells` | a direct-mapped table of counts; its `cell` and the `hash` of its keys |
//! | `cells/places`, `cells/avx512` | the sum of the table that each key belongs to |
//! | `weights` | the sum of weights |
//! | `ahead` | prefetching of items |

mod ahead;
mod cells;
mod hot_keys;
mod scalar;
mod sift;
#[cfg(test)]
mod tests;
mod weights;

pub use self::cells::{
    Cell, CellKey, Cells, CodeHash, GROUP, KeyGroup, LANES, OWN, absorb, absorb_weighted,
    others_of, place_of, split_mix,
};
pub use self::hot_keys::{HotKeys, KEYS_MAX};
pub use self::sift::MISSED_SLACK;
pub use self::weights::sum_of_weights;
pub use crate::simd::Key;

use self::sift::{Sift, SiftWeighted};
use crate::Isa;
use crate::simd::{Base, dispatch};

/// Counts the items that equal a key, and writes the missed items in their order; returns the
/// number of missed items.
///
/// In pseudo-code: `for item { if item == keys[j] { hits[j] += 1 } else { missed.push(item) } }`.
///
/// # Shapes
///
/// `hot`: as [`HotKeys`] says; `items`: `K[n]`, n < 2^32; `missed`: `K[n + 16]` at least; elements
/// past the missed items may be overwritten.
///
/// # Cost
///
/// One compare and one masked add per key and register of items (16 `u32` or 8 `u64` with
/// AVX-512, half that with AVX2), and one compression and store per register. Reads each item
/// once, writes each missed item once.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above. Checked once per call.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sieve::{HotKeys, MISSED_SLACK, sift};
///
/// let items = [7_u32, 3, 7, 9, 5];
/// let (mut hits, mut missed) = ([0; 2], [0; 5 + MISSED_SLACK]);
/// let hot = HotKeys { keys: &[7, 3], hits: &mut hits };
/// let end = sift(Isa::selected()?, hot, &items, &mut missed);
/// assert_eq!((hits, &missed[..end]), ([2, 1], &[9, 5][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sift<K: Key>(isa: Isa, hot: HotKeys<'_, K>, items: &[K], missed: &mut [K]) -> usize {
    check(&hot, items, missed);
    dispatch::<Base, _>(isa, Sift { hot, items, missed })
}

/// Adds up the weights of the items that equal a key, and writes the missed items and their weights
/// in their order; returns the number of missed items.
///
/// In pseudo-code: `for item, weight { if item == keys[j] { hits[j] += weight } else {
/// missed.push(item); missed_weights.push(weight) } }`.
///
/// # Shapes
///
/// As for [`sift`]; `weights`: as many as items; `missed_weights`: as `missed`.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sieve::{HotKeys, MISSED_SLACK, sift_weighted};
///
/// let (items, weights) = ([7_u32, 3, 7, 9], [1, 20, 300, 4000]);
/// let (mut missed, mut missed_weights) = ([0; 4 + MISSED_SLACK], [0; 4 + MISSED_SLACK]);
/// let mut sums = [0];
/// let hot = HotKeys { keys: &[7], hits: &mut sums };
/// let isa = Isa::selected()?;
/// let end = sift_weighted(isa, hot, &items, &weights, &mut missed, &mut missed_weights);
/// assert_eq!((sums, &missed[..end]), ([301], &[3, 9][..]));
/// assert_eq!(missed_weights[..end], [20, 4000]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
///
/// The cost of [`sift`], and a compression and a store of weights for each register of items. A
/// block has 1,024 items. A weight of 2^24 or more doubles the additions of a block of `u32`; a
/// weight of 2^54 or more makes the loop over a block scalar.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above. Checked once per call.
pub fn sift_weighted<K: Key>(
    isa: Isa,
    hot: HotKeys<'_, K>,
    items: &[K],
    weights: &[u64],
    missed: &mut [K],
    missed_weights: &mut [u64],
) -> usize {
    check(&hot, items, missed);
    let (items_len, weights_len) = (items.len(), weights.len());
    assert!(items_len == weights_len, "{items_len} items need as many weights, not {weights_len}");
    let (missed_len, weights_len) = (missed.len(), missed_weights.len());
    assert!(
        missed_len == weights_len,
        "room for {missed_len} missed items needs as much for weights, not {weights_len}"
    );
    let call = SiftWeighted { hot, items, weights, missed, missed_weights };
    dispatch::<Base, _>(isa, call)
}

/// Panics if a shape is not as [`sift`] says.
fn check<K>(hot: &HotKeys<'_, K>, items: &[K], missed: &[K]) {
    hot.check();
    let (items_len, missed_len) = (items.len(), missed.len());
    assert!(
        missed_len >= items_len + MISSED_SLACK,
        "{items_len} items need room for {MISSED_SLACK} more, not for {missed_len}"
    );
    assert!(u32::try_from(items_len).is_ok(), "{items_len} items overflow 32-bit lanes");
}
