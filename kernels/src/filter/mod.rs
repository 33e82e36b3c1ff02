//! The horizontal filter: searches each item of a batch in a handful of bins and counts the hits.
//!
//! Source: Roy, Teubner, Alonso, *Efficient Frequent Item Counting in Multi-Core Hardware*, KDD
//! 2012, §3.2, Fig. 6:
//!
//! ```text
//!             bins   | 17 | 42 |  5 | 99 |  3 | .. |    one item against all bins,
//!     item 5  ────►    =?   =?   =?   =?   =?   =?      a register of lanes at a time
//!             counts |    |    | +1 |    |    |    |    lanes that match count one; no lane: a miss
//! ```
//!
//! The loop has no branch that depends on the data: counts are updated under the compare mask,
//! the position of the item is stored unconditionally, and the cursor advances by the
//! miss bit. Bins and counts stay in registers for a whole call: counts in memory would chain each
//! item to the previous item by a store and a load, and a filter of 16 bins would have a fifth of
//! its speed.
//!
//! Departures from the paper: the miss is stored rather than branched on (line 12), bins number 1
//! to 64 instead of 8, and counts start from zero in each call and are added to the caller's
//! 64-bit counts at its end, so that 32-bit lanes cannot overflow.
//!
//! | file | contents |
//! |---|---|
//! | `bins` | bins, and the answer of a call |
//! | `scalar` | the reference, a loop for each function |
//! | `scan` | the loops over registers, written once for all levels |

mod bins;
mod scalar;
mod scan;
#[cfg(test)]
mod tests;

pub use self::bins::{Absorbed, BINS_MAX, Bins, NO_LANE};
pub use crate::simd::Key;

use self::scan::{Absorb, AbsorbWeighted, Locate};
use crate::Isa;
use crate::simd::{Base, dispatch};

/// Counts each item that is in a bin, and writes the position of each item that is in no bin.
///
/// In pseudo-code: `for item { if item in bins { count += 1 } else { missed.push(position) } }`,
/// stopping after the item that fills `missed`.
///
/// # Shapes
///
/// `bins`: 0 to 64 distinct keys and their counts; `items`: `K[n]`, n < 2^32; `missed`: `u32[m]`,
/// its length is the maximum number of misses that the caller accepts. The first
/// [`Absorbed::missed`] elements of `missed` become positions in `items`, ascending; the element
/// after them may be overwritten. With an empty `missed` the call consumes no item.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::filter::{Bins, absorb};
///
/// let (mut counts, mut missed) = ([0, 0], [0; 4]);
/// let bins = Bins { keys: &[17_u32, 42], counts: &mut counts };
/// let done = absorb(Isa::Scalar, bins, &[42, 5, 42, 9], &mut missed);
/// assert_eq!(counts, [0, 2]);
/// assert_eq!(missed[..done.missed], [1, 3], "positions of 5 and 9");
/// ```
///
/// # Cost
///
/// One compare and one masked add per item and register of bins (16 `u32` or 8 `u64` keys with
/// AVX-512, half that with AVX2), rounded up to a power of two of registers; reads each item once,
/// writes at most 4 B for each item.
///
/// # Panics
///
/// If `isa` is not available, there are more than [`BINS_MAX`] bins, the counts are not as many
/// as the keys, or there are 2^32 items or more. Checked once per call.
pub fn absorb<K: Key>(isa: Isa, bins: Bins<'_, K>, items: &[K], missed: &mut [u32]) -> Absorbed {
    bins.check();
    dispatch::<Base, _>(isa, Absorb { bins, items, missed })
}

/// Like [`absorb`] for items that count more than once: adds the weight of each item, saturating
/// at `u64::MAX`.
///
/// Stops after the item that fills `missed` or that brings the weight of the missed items to
/// `budget`. With a budget of zero the call consumes no item.
///
/// # Shapes
///
/// As for [`absorb`]; `weights`: `u64[n]`, parallel to `items`.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::filter::{Bins, absorb_weighted};
///
/// let (mut counts, mut missed) = ([0], [0; 4]);
/// let bins = Bins { keys: &[42_u32], counts: &mut counts };
/// let (items, weights) = ([42, 5, 9, 42], [10, 3, 4, 20]);
/// // The missed items 5 and 9 weigh 7, which ends the call before the second 42.
/// let done = absorb_weighted(Isa::Scalar, bins, &items, &weights, 7, &mut missed);
/// assert_eq!((done.consumed, done.missed_weight, counts), (3, 7, [10]));
/// ```
///
/// # Cost
///
/// Keys and counts take 64-bit lanes for both key types. Blocks of 1,024 items in which a
/// weight reaches 2^54 could overflow a lane and run on the scalar reference.
///
/// # Panics
///
/// As for [`absorb`], and if there are not as many weights as items.
pub fn absorb_weighted<K: Key>(
    isa: Isa,
    bins: Bins<'_, K>,
    items: &[K],
    weights: &[u64],
    budget: u64,
    missed: &mut [u32],
) -> Absorbed {
    bins.check();
    let (items_len, weights_len) = (items.len(), weights.len());
    assert!(items_len == weights_len, "{items_len} items need as many weights, not {weights_len}");
    dispatch::<Base, _>(isa, AbsorbWeighted { bins, items, weights, budget, missed })
}

/// Finds the bin of each item: `lanes[i]` becomes the first position of `items[i]` in `keys`, or
/// [`NO_LANE`].
///
/// Keys may stand for longer items, such as the hash codes of strings: the caller then verifies the
/// lane.
///
/// # Shapes
///
/// `keys`: `K[b]`, b <= 64, not necessarily distinct; `items`: `K[n]`; `lanes`: `u8[n]`.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::filter::{NO_LANE, locate};
///
/// let mut lanes = [0; 3];
/// locate(Isa::Scalar, &[17_u64, 42], &[42, 5, 17], &mut lanes);
/// assert_eq!(lanes, [1, NO_LANE, 0]);
/// ```
///
/// # Cost
///
/// As [`absorb`] with a byte written per item.
///
/// # Panics
///
/// If `isa` is not available, there are more than [`BINS_MAX`] keys, or `lanes` is not as long as
/// `items`.
pub fn locate<K: Key>(isa: Isa, keys: &[K], items: &[K], lanes: &mut [u8]) {
    assert!(keys.len() <= BINS_MAX, "a filter has at most {BINS_MAX} bins, not {}", keys.len());
    let (items_len, lanes_len) = (items.len(), lanes.len());
    assert!(items_len == lanes_len, "{items_len} items need as many lanes, not {lanes_len}");
    dispatch::<Base, _>(isa, Locate { keys, items, lanes });
}
