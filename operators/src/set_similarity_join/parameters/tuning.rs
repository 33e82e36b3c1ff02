//! Sizes of a join that are no parameters: they change its speed and its limits, not its results.

/// Sizes and limits of a join. Tests make them small to reach each limit with little data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// Bytes of a batch of carried columns.
    pub(crate) carried_batch_bytes: usize,
    /// Smallest slice of the index of `auto`, in postings. Each slice costs a pass over all sets.
    pub(crate) slice_postings_min: usize,
    /// Work that a core takes at a time of a slice that others can search, too, in pairs of
    /// postings: about a millisecond, or more if many pairs have to be verified.
    pub(crate) run_pairs: u64,
    /// Tokens of the smallest part of a collection that is worth a task for another core.
    pub(crate) part_tokens_min: usize,
    /// Stream: maximum sets in the window. Half of `u32`, so that wrapping differences keep set
    /// numbers ordered.
    pub(crate) window_sets_max: usize,
    /// Stream: maximum postings, with the free places of their lists.
    pub(crate) postings_max: usize,
    /// Stream: look-ups of a round. The lists of one round are still in the nearest caches, where
    /// they were added to.
    pub(crate) look_ups: usize,
    /// Stream: candidates found before they are verified, when each pair is asked for.
    pub(crate) candidates: usize,
    /// Stream: the same when only duplicates are asked for. Few, because a set with one similar
    /// set need not be looked up further.
    pub(crate) candidates_first: usize,
    /// Stream: postings of a list that is looked up in slices, where one similar set is enough.
    /// Fewer take less time than the cuts of the slices.
    pub(crate) long_list: u32,
    /// Stream: postings of the first of these slices.
    pub(crate) first_slice: u32,
    /// Stream: [position bounds](crate::set_similarity_join::stream) of all sizes, after which the
    /// cache is emptied.
    pub(crate) position_bounds_max: usize,
    /// Stream: known items at which those that have left the window are forgotten.
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
