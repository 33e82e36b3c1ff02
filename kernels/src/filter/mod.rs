//! The horizontal filter: searches each item of a batch in a handful of bins and counts what it
//! finds.
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
//! The loop has no branch that depends on the data: counts are updated under the compare mask, the
//! position of the item is stored unconditionally, and the cursor behind it advances by the miss
//! bit. Bins and counts stay in registers for a whole call: counts in memory would chain each item
//! to the one before it by a store and a load, which caps a filter of 16 bins at a fifth of its
//! speed.
//!
//! Departures from the paper: the miss is stored rather than branched on (line 12), bins number 1
//! to 64 instead of 8, and counts start from zero in each call and are added to the caller's 64-bit
//! counts at its end, so that 32-bit lanes cannot overflow.
//!
//! | file | what it holds |
//! |---|---|
//! | `scalar` | the reference, one loop a function |
//! | `lanes` | what a register of lanes can do, as a trait |
//! | `scan` | the loops, written once over that trait |
//! | `portable`, `avx2`, `avx512` | the trait for each instruction set |

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod lanes;
mod portable;
mod scalar;
mod scan;
#[cfg(test)]
mod tests;

use std::fmt::Debug;

use self::lanes::{Kernel, KeyLanes};
use self::scan::{Absorb, AbsorbWeighted, Locate};
use crate::Isa;

/// The most bins a filter can have.
pub const BINS_MAX: usize = 64;

/// What [`locate`] answers for an item that is in no bin.
pub const NO_LANE: u8 = 64;

const _: () = assert!(NO_LANE as usize == BINS_MAX && NO_LANE as u32 == 0_u64.trailing_zeros());

/// A key that vectors can hold: `u32` or `u64`. Sealed.
pub trait Key:
    KeyLanes + Copy + Eq + Ord + From<u8> + Into<u64> + Debug + Send + Sync + 'static
{
}

impl Key for u32 {}
impl Key for u64 {}

/// The bins of a filter: distinct keys and how often each one was seen.
#[derive(Debug)]
pub struct Bins<'a, K> {
    /// The keys, pairwise distinct, at most [`BINS_MAX`].
    pub keys: &'a [K],
    /// The count of each key, as many as keys; calls add to it.
    pub counts: &'a mut [u64],
}

impl<K> Bins<'_, K> {
    fn check(&self) {
        let (keys, counts) = (self.keys.len(), self.counts.len());
        assert!(keys <= BINS_MAX, "a filter has at most {BINS_MAX} bins, not {keys}");
        assert!(keys == counts, "a filter of {keys} bins needs as many counts, not {counts}");
    }
}

/// How far a call came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Absorbed {
    /// Items consumed from the front of the batch.
    pub consumed: usize,
    /// How many of them are in no bin, that is, how many positions were written.
    pub missed: usize,
    /// The weight of those, saturating; equal to `missed` for items without weights.
    pub missed_weight: u64,
}

/// Counts each item that is in a bin and writes down the position of each that is not.
///
/// In pseudo-code: `for item { if item in bins { count += 1 } else { missed.push(position) } }`,
/// stopping after the item that fills `missed`.
///
/// # Shapes
///
/// `bins`: 0 to 64 distinct keys and their counts; `items`: `K[n]`, n < 2^32; `missed`: `u32[m]`,
/// its length is the most misses the caller accepts. Of `missed`, the first [`Absorbed::missed`]
/// elements are positions in `items`, ascending; the element behind them may be overwritten. An
/// empty `missed` consumes nothing.
///
/// # Cost
///
/// One compare and one masked add per item and register of bins (16 `u32` or 8 `u64` keys with
/// AVX-512, half that with AVX2), rounded up to a power of two of registers; reads each item once,
/// writes at most 4 B an item.
///
/// # Panics
///
/// If `isa` is not available, there are more than [`BINS_MAX`] bins, the counts are not as many as
/// the keys, or there are 2^32 items or more. Checked once per call.
pub fn absorb<K: Key>(isa: Isa, bins: Bins<'_, K>, items: &[K], missed: &mut [u32]) -> Absorbed {
    bins.check();
    dispatch(isa, Absorb { bins, items, missed })
}

/// Like [`absorb`] for items that count more than once: adds the weight of each item, saturating at
/// `u64::MAX`.
///
/// Stops after the item that fills `missed` or that brings the weight of the missed items to
/// `budget`. A budget of zero consumes nothing.
///
/// # Shapes
///
/// As for [`absorb`]; `weights`: `u64[n]`, parallel to `items`.
///
/// # Cost
///
/// Keys and counts take 64-bit lanes, whatever the key type. Blocks of 1,024 items in which a
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
    dispatch(isa, AbsorbWeighted { bins, items, weights, budget, missed })
}

/// Finds the bin of each item: `lanes[i]` becomes the position of `items[i]` in `keys`, the first
/// one if there are several, or [`NO_LANE`].
///
/// For keys that stand for something longer, such as the hash codes of strings: the caller verifies
/// the lane.
///
/// # Shapes
///
/// `keys`: `K[b]`, b <= 64, not necessarily distinct; `items`: `K[n]`; `lanes`: `u8[n]`.
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
    dispatch(isa, Locate { keys, items, lanes });
}

/// Runs a kernel on one level: the only place where a level becomes code.
#[cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "a function with target features is entered here, after the check"
    )
)]
pub(crate) fn dispatch<T: Kernel>(isa: Isa, kernel: T) -> T::Output {
    assert!(isa.is_available(), "this machine lacks the instruction-set level {isa}");
    match isa {
        Isa::Scalar => kernel.scalar(),
        Isa::Portable => portable::run(kernel),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has the features of the level, as asserted above.
        Isa::Avx2 => unsafe { avx2::run(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has the features of the level, as asserted above.
        Isa::Avx512 => unsafe { avx512::run(kernel) },
        #[cfg(not(target_arch = "x86_64"))]
        Isa::Avx2 | Isa::Avx512 => unreachable!("x86-64 levels are not available elsewhere"),
    }
}
