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
//! | `sift` | the loop over registers, written once for all levels |
//! | `scalar` | its reference |
//! | `cells`, `hash` | a direct-mapped table of counts, and its hash function |

mod cells;
mod hash;
mod scalar;
mod sift;
#[cfg(test)]
mod tests;

pub use self::cells::{Cell, GROUP, LANES, OWN, absorb, others_of, place_of};
pub use self::hash::{CellKey, CodeHash, split_mix};
pub use self::sift::{KEYS_MAX, MISSED_SLACK};
pub use crate::simd::Key;

use self::sift::Sift;
use crate::Isa;
use crate::simd::{Base, dispatch};

/// Counts the items that equal a key, and writes the missed ones in their order; returns the
/// number of missed items.
///
/// In pseudo-code: `for item { if item == keys[j] { hits[j] += 1 } else { missed.push(item) } }`.
///
/// # Shapes
///
/// `keys`: 1 to 8 distinct keys; `hits`: `u64`, as many, added to, saturating; `items`: `K[n]`, n
/// < 2^32; `missed`: `K[n + 16]` at least; elements past the missed items may be overwritten.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sieve::{MISSED_SLACK, sift};
///
/// let items = [7_u32, 3, 7, 9];
/// let (mut hits, mut missed) = ([0], [0; 4 + MISSED_SLACK]);
/// let len = sift(Isa::Scalar, &[7], &items, &mut hits, &mut missed);
/// assert_eq!((hits, &missed[..len]), ([2], &[3, 9][..]));
/// ```
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
/// use trommel_kernels::sieve::{MISSED_SLACK, sift};
///
/// let items = [7_u32, 3, 7, 9, 5];
/// let (mut hits, mut missed) = ([0; 2], [0; 5 + MISSED_SLACK]);
/// let end = sift(Isa::selected()?, &[7, 3], &items, &mut hits, &mut missed);
/// assert_eq!((hits, &missed[..end]), ([2, 1], &[9, 5][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sift<K: Key>(
    isa: Isa,
    keys: &[K],
    items: &[K],
    hits: &mut [u64],
    missed: &mut [K],
) -> usize {
    let (keys_len, hits_len) = (keys.len(), hits.len());
    assert!(
        (1..=KEYS_MAX).contains(&keys_len),
        "a sieve takes out 1 to {KEYS_MAX} keys, not {keys_len}"
    );
    assert!(keys_len == hits_len, "{keys_len} keys need as many counts of hits, not {hits_len}");
    let (items_len, missed_len) = (items.len(), missed.len());
    assert!(
        missed_len >= items_len + MISSED_SLACK,
        "{items_len} items need room for {MISSED_SLACK} more, not for {missed_len}"
    );
    assert!(u32::try_from(items_len).is_ok(), "{items_len} items overflow 32-bit lanes");
    dispatch::<Base, _>(isa, Sift { keys, items, hits, missed })
}
