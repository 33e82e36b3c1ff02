//! The state between two calls.

use super::block_list::BlockList;

/// The position of a join of lists between two calls.
#[derive(Debug, Default)]
pub struct Progress {
    /// The current list.
    pub(super) list: usize,
    /// Its first posting.
    pub(super) begin: usize,
    /// Its next probe; the list has been transposed unless this is the first one.
    pub(super) next: usize,
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
    /// Before the first list, of lists of at most `len_max` postings.
    #[must_use]
    pub fn new(len_max: usize, words: usize, is_two_sided: bool) -> Self {
        let other = if is_two_sided { len_max } else { 0 };
        let block_lists = [len_max, other].map(|len| BlockList::with_capacity(len, words));
        Self { block_lists, visible: vec![0; len_max], ..Self::default() }
    }

    /// Goes on with the first one of other lists, which are no longer.
    pub fn go_on(&mut self) {
        (self.list, self.begin, self.next) = (0, 0, 0);
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
