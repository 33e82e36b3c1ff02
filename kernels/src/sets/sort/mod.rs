//! Sorts many small lists.
//!
//! A list is a few rows; a row is a register. Rows are sorted, then runs of rows are merged, by the
//! network of Batcher for bitonic sequences (Knuth, *The Art of Computer Programming* 3, §5.3.4).
//! The places that the network compares depend on the number of rows only. So no branch depends on
//! a token, with one exception: a list of more than two rows that is sorted already stays as it is.
//! Up to eight rows stay in registers from the first step to the last; longer lists begin with runs
//! of eight:
//!
//! ```text
//! rows      7 3 9 8 .. │ 2 5 1 6 .. │ 4 ∞ ∞ ∞ ..    the last one is filled with the largest token
//! sorted    3 7 8 9 .. │ 1 2 5 6 .. │ 4 ∞ ∞ ∞ ..
//! merged    1 2 3 5 .. │ 6 7 8 9 .. │ 4 ∞ ∞ ∞ ..    runs of two rows, then of four, ..
//! ```
//!
//! Departure: a run is compared with the next run in reverse, so that the smaller token always goes
//! to the front. Rows past the end, which would have the largest tokens, can then be left out.
//!
//! The standard library sorts long lists, and all lists on the levels `scalar` and `portable`:
//! registers of 128 bits without a minimum of 32-bit lanes are slower.

#[cfg(target_arch = "x86_64")]
mod avx2;

use std::ops::Range;

use crate::Isa;
use crate::simd::{Base, Portable, RunOn, Scalar, dispatch};

/// Sorts the tokens of each list, ascending. Equal tokens stay.
///
/// # Shapes
///
/// List `i` is `tokens[offsets[i]..offsets[i + 1]]`, in any order.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sets::sort_lists;
///
/// let mut tokens = [9, 3, 8, 5, 2, 2];
/// sort_lists(Isa::Scalar, &[0, 3, 6], &mut tokens);
/// assert_eq!(tokens, [3, 8, 9, 2, 2, 5]);
/// ```
///
/// # Cost
///
/// `log2(n)² / 16` vector exchanges for each token of a list of `n` tokens, at most 1,024; a look
/// at each token of a list that is sorted already. The call allocates nothing.
///
/// # Backends
///
/// scalar and portable: the standard library · avx2, also for avx512: registers of 16 tokens would
/// be half empty for lists of this size.
///
/// # Panics
///
/// If `isa` is not available, offsets descend, or the last offset is beyond the tokens.
pub fn sort_lists(isa: Isa, offsets: &[u32], tokens: &mut [u32]) {
    dispatch::<Base, _>(isa, SortLists { offsets, tokens });
}

/// The arguments of [`sort_lists`].
struct SortLists<'a> {
    offsets: &'a [u32],
    tokens: &'a mut [u32],
}

impl RunOn<Scalar> for SortLists<'_> {
    #[inline(always)]
    fn run_on(self, _: Scalar) {
        let Self { offsets, tokens } = self;
        offsets.windows(2).for_each(|ends| tokens[range(ends)].sort_unstable());
    }
}

impl RunOn<Portable> for SortLists<'_> {
    #[inline(always)]
    fn run_on(self, _: Portable) {
        self.run_on(Scalar);
    }
}

/// The tokens of a list.
#[inline(always)]
fn range(ends: &[u32]) -> Range<usize> {
    ends[0] as usize..ends[1] as usize
}
