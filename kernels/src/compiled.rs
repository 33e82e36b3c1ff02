//! Code of other crates, compiled for each level.
//!
//! This module serves loops without a primitive: the compiler may use the instructions of the
//! level, but no level has code of its own. The published joins of sets run in this way; the loops
//! of `auto` are primitives.

use crate::Isa;
use crate::simd::{Popcount, RunOn, dispatch};

/// Code with its arguments.
pub trait Routine {
    /// The answer.
    type Output;

    /// Runs the code. Only inlined code is compiled for the level, so this method and the hot
    /// functions that it calls are `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// Runs `routine`, compiled for the level `isa`.
///
/// # Examples
///
/// ```
/// use trommel_kernels::{Isa, Routine, run_compiled_for};
///
/// struct Bits<'a>(&'a [u64]);
///
/// impl Routine for Bits<'_> {
///     type Output = u32;
///
///     #[inline(always)]
///     fn run(self) -> u32 {
///         self.0.iter().map(|word| word.count_ones()).sum()
///     }
/// }
///
/// for isa in Isa::available() {
///     assert_eq!(run_compiled_for(isa, Bits(&[7, 1])), 4);
/// }
/// ```
///
/// # Panics
///
/// If `isa` is not available.
#[inline]
pub fn run_compiled_for<R: Routine>(isa: Isa, routine: R) -> R::Output {
    dispatch::<Popcount, _>(isa, Compiled(routine))
}

struct Compiled<R>(R);

impl<L, R: Routine> RunOn<L, R::Output> for Compiled<R> {
    #[inline(always)]
    fn run_on(self, _: L) -> R::Output {
        self.0.run()
    }
}
