//! The vertical filter: takes the few hottest keys out of a batch, many items at a time.
//!
//! The filter of Roy, Teubner and Alonso (KDD 2012, §3.2; [`filter`](crate::filter)) compares one
//! item with all keys. This one compares a register full of items with one key after the other,
//! which is faster as long as the keys are few:
//!
//! ```text
//! items    | 7 | 3 | 7 | 9 | 5 | 7 | 3 | 1 |     a register at a time
//! key 7    |+1 |   |+1 |   |   |+1 |   |   |     hits of 7, by lane
//! key 3    |   |+1 |   |   |   |   |+1 |   |     hits of 3, by lane
//! missed   | 9 | 5 | 1 | ..                      the others, closed up
//! ```
//!
//! The loop has no branch that depends on the data. Hits are counted in lanes, one register a
//! key, and added up at the end of the call; missed items are closed up within the register and
//! stored where the ones before them end.
//!
//! The items that this filter misses are counted in [`Cell`]s.
//!
//! | file | contents |
//! |---|---|
//! | `hot_keys` | the keys and their hits |
//! | `sift` | the loop over registers, written once for all levels |
//! | `scalar` | its reference |
//! | `cell`, `cells`, `hash` | a direct-mapped table of counts, its keys and their hash function |
//! | `places`, `avx512` | the sum of the table that each key belongs to |
//! | `weights` | the sum of weights |
//! | `ahead` | prefetching of items |

mod ahead;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod cell;
mod cells;
mod hash;
mod hot_keys;
mod places;
mod scalar;
mod sift;
#[cfg(test)]
mod tests;
mod weights;

pub use self::cell::{Cell, LANES, OWN, others_of, place_of};
pub use self::cells::{Cells, absorb, absorb_weighted};
pub use self::hash::{CellKey, CodeHash, GROUP, KeyGroup, split_mix};
pub use self::hot_keys::{HotKeys, KEYS_MAX};
pub use self::sift::MISSED_SLACK;
pub use self::weights::sum_of_weights;
pub use crate::simd::Key;

use self::sift::{Sift, SiftWeighted};
use crate::Isa;
use crate::simd::{Base, dispatch};

/// Counts the items that equal a key, and writes the missed ones in their order; returns the
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
/// block has 1,024 items. One weight of 2^24 or more doubles the adds of a block of `u32`; one of
/// 2^54 or more makes the loop over a block scalar.
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
