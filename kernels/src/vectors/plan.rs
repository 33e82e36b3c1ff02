//! The choice of an algorithm by its cost.

/// Pairs up to which a nested loop is faster than building a directory, for points of few
/// dimensions. Measured on a core with AVX-512, 2 to 8 dimensions: as fast at 500 rows; at 250 the
/// directory takes 1.1 to 1.8 times as long, at 1,000 0.6 to 0.7 times.
const FEW_DIMS_PAIRS_MAX: u64 = 1 << 17;
/// The same for points of many dimensions, whose components have to be found first: 384
/// dimensions, as fast at 8,000 rows.
const MANY_DIMS_PAIRS_MAX: u64 = 1 << 25;

/// Ways to join vectors; the pairs are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// [`NestedLoop`](super::NestedLoop).
    NestedLoop,
    /// [`Directory`](super::Directory) and [`Join`](super::Join).
    Directory,
}

impl Algorithm {
    /// The faster way to compare `pairs` pairs of vectors, if directories have to be built.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::vectors::Algorithm;
    ///
    /// assert_eq!(Algorithm::choose(100 * 99 / 2, 8), Algorithm::NestedLoop);
    /// assert_eq!(Algorithm::choose(100_000 * 800_000, 8), Algorithm::Directory);
    /// ```
    #[must_use]
    pub fn choose(pairs: u64, dims: usize) -> Self {
        let has_map = dims > super::directory::PLAIN_DIMS_MAX;
        let pairs_max = if has_map { MANY_DIMS_PAIRS_MAX } else { FEW_DIMS_PAIRS_MAX };
        if pairs <= pairs_max { Self::NestedLoop } else { Self::Directory }
    }
}
