//! The state between two calls.

use std::ops::Range;

use super::block_list::BlockList;

/// The position of a join of lists between two calls.
#[derive(Debug, Default)]
pub struct Progress {
    /// The probes that are left, as indices of postings.
    pub(super) probes: Range<usize>,
    /// The current list.
    pub(super) list: usize,
    /// Its first posting.
    pub(super) begin: usize,
    /// The end of its postings that have been transposed.
    pub(super) transposed: usize,
    /// The postings of the list that others find, by side.
    pub(super) block_lists: [BlockList; 2],
    /// For each posting of the list, the number of postings in the block list of its partner's
    /// side that come before it.
    pub(super) visible: Vec<u32>,
    /// Postings that were tested, and that passed.
    pub(super) tested: u64,
    pub(super) passed: u64,
}

impl Progress {
    /// Without probes, of lists of at most `len_max` postings.
    #[must_use]
    pub fn new(len_max: usize, words: usize, is_two_sided: bool) -> Self {
        let other = if is_two_sided { len_max } else { 0 };
        let block_lists = [len_max, other].map(|len| BlockList::with_capacity(len, words));
        Self { block_lists, visible: vec![0; len_max], ..Self::default() }
    }

    /// Continues with other lists, of at most `len_max` postings; [`Self::go_to`] names their
    /// probes.
    pub fn begin(&mut self) {
        self.probes = 0..0;
        (self.list, self.begin, self.transposed) = (0, 0, 0);
    }

    /// Continues with the postings `probes`, and drops earlier probes that are left. A probe finds
    /// all sets before it in its list, whichever probes were named.
    ///
    /// # Panics
    ///
    /// If `probes` begins before the probes named earlier.
    pub fn go_to(&mut self, probes: Range<usize>) {
        let earlier = self.probes.start;
        assert!(probes.start >= earlier, "probes from {} on after {earlier}", probes.start);
        self.probes = probes;
    }

    /// The bytes of [`Self::new`].
    #[must_use]
    pub fn bytes(len_max: usize, words: usize, is_two_sided: bool) -> usize {
        let sides = 1 + usize::from(is_two_sided);
        sides * BlockList::bytes(len_max, words) + len_max * size_of::<u32>()
    }

    /// Postings that were tested, and that passed.
    #[must_use]
    pub fn tested(&self) -> (u64, u64) {
        (self.tested, self.passed)
    }
}
