//! Frequent pairs, the answers of a call.

/// A column and a row, and the number of transactions that hold both: two items, or an item and a
/// pair ([`Rows::pairs`](super::Rows::pairs)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Pair {
    /// The column, an item; of two items, the lower number.
    pub left: u32,
    /// The number of the row; of two items, the higher number.
    pub right: u32,
    /// Transactions that hold both.
    pub support: u32,
}

/// Pairs with at least a given support.
///
/// # Examples
///
/// ```
/// use trommel_kernels::supports::FoundPairs;
///
/// let found = FoundPairs::new(10, 1 << 16);
/// assert!(found.pairs().is_empty() && !found.is_full());
/// assert_eq!(found.least(), 10);
/// ```
#[derive(Clone, Debug)]
pub struct FoundPairs {
    pairs: Vec<Pair>,
    least: u32,
    enough: usize,
}

impl FoundPairs {
    /// Room for pairs with a support of at least `least`. A call ends after the row that brings the
    /// number of pairs to `enough`; memory is allocated as pairs are found.
    ///
    /// # Panics
    ///
    /// If `least` is 0: pairs without a common transaction are not found.
    #[must_use]
    pub fn new(least: u32, enough: usize) -> Self {
        assert!(least > 0, "the least support is 1");
        Self { pairs: Vec::new(), least, enough }
    }

    /// The pairs found since the last [`clear`](Self::clear).
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The least support of a pair.
    #[must_use]
    pub fn least(&self) -> u32 {
        self.least
    }

    /// Whether there are enough pairs, so that a call ends.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.pairs.len() >= self.enough
    }

    /// Removes all pairs; the next pairs have a support of at least `least`.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub fn clear(&mut self, least: u32) {
        assert!(least > 0, "the least support is 1");
        self.pairs.clear();
        self.least = least;
    }

    /// Adds a pair if its support suffices.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::supports::{FoundPairs, Pair};
    ///
    /// let mut found = FoundPairs::new(10, 1 << 16);
    /// found.offer(Pair { left: 0, right: 1, support: 9 });
    /// found.offer(Pair { left: 0, right: 2, support: 10 });
    /// assert_eq!(found.pairs(), [Pair { left: 0, right: 2, support: 10 }]);
    /// ```
    #[inline]
    pub fn offer(&mut self, pair: Pair) {
        if pair.support >= self.least {
            self.push(pair);
        }
    }

    /// Adds a pair whose support suffices.
    #[inline]
    pub(super) fn push(&mut self, pair: Pair) {
        debug_assert!(pair.support >= self.least);
        self.pairs.push(pair);
    }
}
