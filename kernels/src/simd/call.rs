//! Calls with their arguments, and the levels that need no proof.

/// A call of a primitive: its checked arguments, its code for the level `L`, and the type of its
/// answer. The answer is the same on all levels.
pub(crate) trait RunOn<L, Answer = ()> {
    /// Runs the call. Implementations are `#[inline(always)]`, so that they are compiled for the
    /// level.
    fn run_on(self, level: L) -> Answer;
}

/// One element at a time, in plain Rust: the reference of every primitive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar;

/// 128-bit vectors that every target has or emulates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

/// An extension of AVX-512, which a processor may have beyond
/// [`Isa::Avx512`](crate::Isa::Avx512).
pub(crate) trait Extension: Copy {
    /// Whether the extension counts the bits of 64-bit lanes.
    const COUNTS_BITS: bool;
}

/// No extension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base;

/// The population count of 64-bit lanes: VPOPCNTDQ, which most processors with AVX-512 have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Popcount;

/// The intersection of two registers: VP2INTERSECT, which few processors have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vp2Intersect;

impl Extension for Base {
    const COUNTS_BITS: bool = false;
}

impl Extension for Popcount {
    const COUNTS_BITS: bool = true;
}

impl Extension for Vp2Intersect {
    const COUNTS_BITS: bool = false;
}
