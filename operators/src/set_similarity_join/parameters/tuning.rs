//! Sizes of a join that are no parameters: they change its speed and its limits, not its results.

/// Sizes and limits of a join. Tests make these sizes small to reach each limit with little data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Bytes of a batch of carried columns.
    pub(crate) carried_batch_bytes: usize,
    /// Smallest slice of the index of `auto`, in postings. Each slice costs a pass over all sets.
    pub(crate) slice_postings_min: usize,
    /// Work that a core takes at once from a slice that several cores search, in pairs of postings:
    /// about a millisecond, or more if many pairs have to be verified.
    pub(crate) run_pairs: u64,
    /// Tokens of the smallest part of a collection that is worth a task for another core.
    pub(crate) part_tokens_min: usize,
    /// Stream: maximum sets in the window. The maximum is half of the range of `u32`, so that
    /// wrapping differences keep set numbers ordered.
    pub(crate) window_sets_max: usize,
    /// Stream: maximum postings, with the free places of their lists.
    pub(crate) postings_max: usize,
    /// Stream: look-ups of a round. The lists of a round are still in the nearest caches after sets
    /// have been added to the lists.
    pub(crate) look_ups: usize,
    /// Stream: number of candidates that are found before they are verified, if the answer is each
    /// pair.
    pub(crate) candidates: usize,
    /// Stream: the same number if duplicates are dropped. The number is small, because a set with
    /// one similar set need not be looked up further.
    pub(crate) candidates_first: usize,
    /// Stream: number of postings from which on a list is looked up in slices, if one similar set
    /// is enough. The look-up of a shorter list takes less time than the cuts of the slices.
    pub(crate) long_list: u32,
    /// Stream: number of postings of the first slice of such a list.
    pub(crate) first_slice: u32,
    /// Stream: [position bounds](crate::set_similarity_join::stream) of all sizes, after which the
    /// cache is emptied.
    pub(crate) position_bounds_max: usize,
    /// Stream: number of known items, in addition to twice the number of tokens, at which items
    /// that have left the window are forgotten.
    pub(crate) items_min: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            carried_batch_bytes: 1 << 26,
            slice_postings_min: 1 << 16,
            run_pairs: 1 << 20,
            part_tokens_min: 1 << 18,
            window_sets_max: (1 << 31) - 1,
            postings_max: u32::MAX as usize,
            look_ups: 1 << 11,
            candidates: 1 << 14,
            candidates_first: 1 << 8,
            long_list: 1 << 9,
            first_slice: 1 << 6,
            position_bounds_max: 1 << 18,
            items_min: 1 << 16,
        }
    }
}

#[cfg(test)]
impl Tuning {
    /// Sizes that small tests exceed.
    pub(crate) const SMALL: Self = Self {
        carried_batch_bytes: 1 << 9,
        slice_postings_min: 8,
        run_pairs: 64,
        part_tokens_min: 16,
        window_sets_max: 1 << 13,
        postings_max: 1 << 19,
        look_ups: 8,
        candidates: 16,
        candidates_first: 4,
        long_list: 3,
        first_slice: 1,
        position_bounds_max: 32,
        items_min: 4,
    };
}
