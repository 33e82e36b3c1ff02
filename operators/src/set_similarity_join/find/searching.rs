//! Slices of an index that are searched side by side.

use std::sync::Arc;

use super::JoinCounters;
use super::posting_join::{PostingIndex, SliceSearch};
use crate::set_similarity_join::candidates::chunk::CandidateChunk;

/// The slices of an index, given out as tasks.
pub(crate) struct Searching {
    index: Arc<PostingIndex>,
    /// Number of slices that nobody has yet. The last ones, with the most frequent tokens and the
    /// most work, come first.
    left: usize,
    /// Memory of searches that are not under way; none that has not been allocated.
    free: Vec<Option<Box<SliceSearch>>>,
    under_way: usize,
}

/// The search of one slice.
pub(crate) struct SearchTask {
    index: Arc<PostingIndex>,
    slice: usize,
    search: Option<Box<SliceSearch>>,
    is_begun: bool,
    /// Whether there can be more candidates.
    has_more: bool,
    counters: JoinCounters,
}

impl Searching {
    pub(crate) fn new(index: PostingIndex) -> Self {
        let free = std::iter::repeat_with(|| None).take(index.searches()).collect();
        Self { left: index.slices(), index: Arc::new(index), free, under_way: 0 }
    }

    /// The next slice; none until one comes back, or if there is none left.
    pub(crate) fn task(&mut self) -> Option<SearchTask> {
        if self.left == 0 {
            return None;
        }
        let search = self.free.pop()?;
        self.left -= 1;
        self.under_way += 1;
        let (index, slice) = (Arc::clone(&self.index), self.left);
        let counters = JoinCounters::default();
        Some(SearchTask { index, slice, search, is_begun: false, has_more: true, counters })
    }

    /// Takes a task back that has no more candidates.
    pub(crate) fn landed(&mut self, task: SearchTask) {
        self.under_way -= 1;
        self.free.push(task.search);
    }

    /// Whether a slice is being searched.
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way > 0
    }
}

impl SearchTask {
    /// Adds candidates to `chunk` until it is full or none is left; false in the second case. The
    /// slice is built first.
    pub(crate) fn fill(&mut self, chunk: &mut CandidateChunk) -> bool {
        let Self { index, search, counters, .. } = self;
        let search = search.get_or_insert_with(|| Box::new(SliceSearch::new(index)));
        if !self.is_begun {
            self.is_begun = true;
            search.begin(index, self.slice);
        }
        self.has_more = search.fill(index, chunk, counters);
        self.has_more
    }

    /// Whether there can be more candidates.
    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    /// The counters since the last call.
    pub(crate) fn take_counters(&mut self) -> JoinCounters {
        std::mem::take(&mut self.counters)
    }

    /// Number of postings of the slice.
    pub(crate) fn postings(&self) -> u64 {
        self.index.postings_of(self.slice)
    }
}

impl std::fmt::Debug for SearchTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchTask").field("slice", &self.slice).finish_non_exhaustive()
    }
}
