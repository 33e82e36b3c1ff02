//! The state between two calls.

use std::ops::Range;

use super::block_list::BlockList;

/// The position of a join of lists between two calls.
#[derive(Debug, Default)]
pub struct Progress {
    /// The remaining probes, as indices of postings.
    pub(super) probes: Range<usize>,
    /// The current list.
    pub(super) list: usize,
    /// The first posting of the list.
    pub(super) begin: usize,
    /// The end of the transposed postings of the list.
    pub(super) transposed: usize,
    /// The postings of the list that other sets find, by side.
    pub(super) block_lists: [BlockList; 2],
    /// For each posting of the list, the number of earlier postings in the block list of its
    /// partner's side.
    pub(super) visible: Vec<u32>,
    /// The number of tested postings, and the number of postings that passed.
    pub(super) tested: u64,
    pub(super) passed: u64,
}

impl Progress {
    /// A progress without probes, for lists of at most `len_max` postings.
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

    /// Continues with the postings `probes`, and drops the remaining earlier probes. A probe finds
    /// all earlier sets of its list, whichever probes were named.
    ///
    /// # Panics
    ///
    /// If `probes` begins before the remaining probes.
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

    /// The number of tested postings, and the number of postings that passed.
    #[must_use]
    pub fn tested(&self) -> (u64, u64) {
        (self.tested, self.passed)
    }
}
