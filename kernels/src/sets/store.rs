//! Arrays of offsets and tokens, checked once: borrowed or owned.

use std::sync::atomic::{AtomicU64, Ordering};

/// Sets of tokens laid end to end.
///
/// # Examples
///
/// ```
/// use trommel_kernels::sets::Sets;
///
/// let sets = Sets::new(&[0, 3, 4], &[3, 8, 9, 4]);
/// assert_eq!(sets.len(), 2);
/// assert_eq!(sets.set(0), [3, 8, 9]);
/// assert_eq!(sets.set(1), [4]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sets<'a> {
    offsets: &'a [u32],
    tokens: &'a [u32],
}

impl<'a> Sets<'a> {
    /// Set `i` is `tokens[offsets[i]..offsets[i + 1]]`, strictly ascending.
    ///
    /// # Cost
    ///
    /// Reads each offset once. The order of tokens is checked in debug builds only; overlaps of
    /// sets that do not ascend are meaningless.
    ///
    /// # Panics
    ///
    /// If there is no offset, offsets descend, or the last offset is not the number of tokens.
    #[must_use]
    pub fn new(offsets: &'a [u32], tokens: &'a [u32]) -> Self {
        let last = offsets.last().copied().expect("one offset more than sets");
        let len = tokens.len();
        assert!(last as usize == len, "the last offset is {last}, but there are {len} tokens");
        assert!(offsets.is_sorted(), "offsets must not descend");
        let sets = Self { offsets, tokens };
        debug_assert!(
            (0..sets.len()).all(|set| sets.set(set).is_sorted_by(|left, right| left < right)),
            "the tokens of a set must ascend strictly"
        );
        sets
    }

    /// The number of sets.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The offsets of all sets, and the end of the last set.
    #[inline]
    #[must_use]
    pub fn offsets(self) -> &'a [u32] {
        self.offsets
    }

    /// The tokens of all sets.
    #[inline]
    #[must_use]
    pub fn tokens(self) -> &'a [u32] {
        self.tokens
    }

    /// The tokens of one set.
    ///
    /// # Panics
    ///
    /// If there is no such set.
    #[inline]
    #[must_use]
    pub fn set(self, set: usize) -> &'a [u32] {
        &self.tokens[self.offsets[set] as usize..self.offsets[set + 1] as usize]
    }
}

/// Sets of tokens that have been checked once, for many calls.
///
/// # Examples
///
/// ```
/// use trommel_kernels::sets::SetStore;
///
/// let store = SetStore::new(vec![0, 3, 4], vec![3, 8, 9, 4]);
/// assert_eq!(store.as_sets().set(1), [4]);
/// // Clones are the same sets; equal sets of another store are not.
/// assert_eq!(store.clone().version(), store.version());
/// assert_ne!(SetStore::new(vec![0], vec![]).version(), store.version());
/// ```
#[derive(Clone, Debug)]
pub struct SetStore {
    offsets: Vec<u32>,
    tokens: Vec<u32>,
    version: u64,
}

/// The version of the next store.
static NEXT_VERSION: AtomicU64 = AtomicU64::new(0);

impl SetStore {
    /// As [`Sets::new`].
    ///
    /// # Panics
    ///
    /// As [`Sets::new`].
    #[must_use]
    pub fn new(offsets: Vec<u32>, tokens: Vec<u32>) -> Self {
        let _ = Sets::new(&offsets, &tokens);
        // Relaxed suffices: all stores must get different numbers, and nothing is published.
        let version = NEXT_VERSION.fetch_add(1, Ordering::Relaxed);
        Self { offsets, tokens, version }
    }

    /// A number that only this store and its clones have: it names the sets where a copy is kept,
    /// such as on a device.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The sets. The call costs nothing.
    #[inline]
    #[must_use]
    pub fn as_sets(&self) -> Sets<'_> {
        Sets { offsets: &self.offsets, tokens: &self.tokens }
    }
}
