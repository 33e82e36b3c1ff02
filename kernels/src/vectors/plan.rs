//! The choice of an algorithm by its cost.

/// Number of pairs up to which a nested loop is faster than building a directory, for points of few
/// dimensions. Measured on a core with AVX-512 and 2 to 8 dimensions: both are equally fast at 500
/// rows; at 250 rows the directory takes 1.1 to 1.8 times as long, at 1,000 rows 0.6 to 0.7 times.
const FEW_DIMS_PAIRS_MAX: u64 = 1 << 17;
/// The same limit for points of many dimensions, whose components have to be found first: with 384
/// dimensions both are equally fast at 8,000 rows.
const MANY_DIMS_PAIRS_MAX: u64 = 1 << 25;

/// Share of pairs that pass the filters of a directory up to which the directory is faster: a pair
/// that passes costs about ten times as much as a pair of a nested loop, which takes points in
/// order. Measured with 6,000 rows: with 384 dimensions both are equally fast at a share of 0.18;
/// with 32 dimensions the directory takes 0.6 times as long at 0.01 and 1.9 times at 0.14.
const SHARE_MAX: f64 = 0.1;

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

    /// The faster way, if this share of all pairs passes the filters of a directory.
    pub(super) fn of_share(share: f64) -> Self {
        if share <= SHARE_MAX { Self::Directory } else { Self::NestedLoop }
    }
}
