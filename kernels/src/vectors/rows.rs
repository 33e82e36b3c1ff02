//! Vectors as rows of one slice, and the search for values that are not finite.

use std::ops::Range;

use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};

/// Calls a function whose last parameter is a constant number of dimensions, or 0 if the macro has
/// no arm for the number: with a constant, copies and loops over few dimensions are a few
/// instructions.
macro_rules! by_dims {
    ($dims:expr, $call:ident($($argument:expr),*)) => {
        match $dims {
            1 => $call::<1>($($argument),*),
            2 => $call::<2>($($argument),*),
            3 => $call::<3>($($argument),*),
            4 => $call::<4>($($argument),*),
            8 => $call::<8>($($argument),*),
            _ => $call::<0>($($argument),*),
        }
    };
}
pub(super) use by_dims;

/// Rows of `dims` coordinates each, one after the other.
///
/// # Examples
///
/// ```
/// use trommel_kernels::vectors::Vectors;
///
/// let vectors = Vectors::new(&[0.0, 1.0, 2.0, 3.0], 2);
/// assert_eq!((vectors.len(), vectors.row(1)), (2, &[2.0, 3.0][..]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Vectors<'a> {
    values: &'a [f32],
    dims: usize,
}

impl<'a> Vectors<'a> {
    /// Maximum number of dimensions.
    pub const DIMS_MAX: usize = 4096;

    /// Rows of finite values, row by row; [`first_not_finite`] says whether they are finite.
    ///
    /// # Panics
    ///
    /// If `dims` is zero or above [`Self::DIMS_MAX`], the last row is not whole, or there are
    /// `u32::MAX` rows or more.
    #[must_use]
    pub fn new(values: &'a [f32], dims: usize) -> Self {
        assert!((1..=Self::DIMS_MAX).contains(&dims), "{dims} dimensions of 1 to 4096");
        let len = values.len();
        assert!(len.is_multiple_of(dims), "{len} values are not rows of {dims}");
        assert!(len / dims < u32::MAX as usize, "{} rows are too many", len / dims);
        Self { values, dims }
    }

    /// Coordinates of a row.
    #[must_use]
    pub fn dims(self) -> usize {
        self.dims
    }

    /// Number of rows.
    #[must_use]
    pub fn len(self) -> usize {
        self.values.len() / self.dims
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.values.is_empty()
    }

    /// The coordinates of all rows.
    #[must_use]
    pub fn values(self) -> &'a [f32] {
        self.values
    }

    /// Some of the rows.
    pub(super) fn part(self, rows: Range<usize>) -> Self {
        Self { values: &self.values[rows.start * self.dims..rows.end * self.dims], ..self }
    }

    /// One row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[must_use]
    #[inline(always)]
    pub fn row(self, row: usize) -> &'a [f32] {
        &self.values[row * self.dims..][..self.dims]
    }
}

/// Index of the first value that is infinite or not a number.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::vectors::first_not_finite;
///
/// assert_eq!(first_not_finite(Isa::Scalar, &[1.0, f32::NAN, f32::INFINITY]), Some(1));
/// assert_eq!(first_not_finite(Isa::Scalar, &[1.0, f32::MAX]), None);
/// ```
///
/// # Panics
///
/// If `isa` is not available.
#[must_use]
pub fn first_not_finite(isa: Isa, values: &[f32]) -> Option<usize> {
    dispatch::<Base, _>(isa, FirstNotFinite(values))
}

struct FirstNotFinite<'a>(&'a [f32]);

impl<L> RunOn<L, Option<usize>> for FirstNotFinite<'_> {
    #[inline(always)]
    fn run_on(self, _: L) -> Option<usize> {
        const CHUNK: usize = 1024;
        for (chunk, values) in self.0.chunks(CHUNK).enumerate() {
            // The compiler vectorizes a loop without an exit.
            let any = values.iter().fold(false, |any, value| any | !value.is_finite());
            if any {
                let at = values.iter().position(|value| !value.is_finite());
                return at.map(|at| chunk * CHUNK + at);
            }
        }
        None
    }
}
