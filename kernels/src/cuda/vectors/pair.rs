//! Pairs of near vectors, and units of work.

#![expect(unsafe_code, reason = "structs that kernels read and write")]

use crate::memory::Plain;

/// Two vectors that are at most epsilon apart.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[repr(C)]
pub struct NearPair {
    /// The left vector; in a self-join, the vector with the lower number.
    pub left: u32,
    /// The right vector.
    pub right: u32,
    /// The square of the distance: the float64 sum, in the order of the dimensions.
    pub square: f64,
}

impl NearPair {
    /// The distance of the two vectors.
    #[must_use]
    pub fn distance(&self) -> f64 {
        self.square.sqrt()
    }
}

// SAFETY: two `u32` and a number of eight bytes, in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for NearPair {}

/// The pairs of a few left vectors with all right vectors from a place on. The
/// [`Method`](super::Method) decides which vectors `left` and `at` stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct JoinUnit {
    pub(super) left: u32,
    pub(super) at: u32,
    /// Number of matches from that place on that have been found before.
    pub(super) skip: u32,
}

// SAFETY: three `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for JoinUnit {}
