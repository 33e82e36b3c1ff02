//! Parallel search of an index: each task builds a slice and searches the slice. When no slice is
//! left, a task takes runs of a slice that another task has built.

use std::iter;
use std::sync::Arc;

use super::JoinCounters;
use super::posting_index::PostingIndex;
use super::slice::{Slice, SliceSearch};
use crate::set_similarity_join::candidates::chunk::CandidateChunk;

/// The searches of an index, which kernels get as tasks.
pub(crate) struct Searching {
    index: Arc<PostingIndex>,
    /// Number of slices that no task has yet. The last slices have the most frequent tokens and the
    /// most work, so these slices are given out first.
    left: usize,
    /// Slices that are being searched and that further tasks can share.
    shared: Vec<Arc<Slice>>,
    /// Memory for slices and searches that are not under way. An entry is `None` until its memory
    /// has been allocated.
    free_slices: Vec<Option<Slice>>,
    free_searches: Vec<Option<Box<SliceSearch>>>,
    under_way: usize,
}

/// The search of a slice, or of a part of the runs of a slice.
pub(crate) struct SearchTask {
    index: Arc<PostingIndex>,
    slice: SearchedSlice,
    search: Option<Box<SliceSearch>>,
    /// Whether there can be more candidates.
    has_more: bool,
    counters: JoinCounters,
}

/// The slice of a task.
enum SearchedSlice {
    /// Number of the slice, and memory for the slice if memory has been allocated before.
    Unbuilt(usize, Option<Slice>),
    Built(Arc<Slice>),
}

impl Searching {
    pub(crate) fn new(index: PostingIndex) -> Self {
        let (slices, searches) = (index.slices(), index.searches());
        Self {
            index: Arc::new(index),
            left: slices,
            shared: Vec::new(),
            free_slices: iter::repeat_with(|| None).take(searches.min(slices)).collect(),
            free_searches: iter::repeat_with(|| None).take(searches).collect(),
            under_way: 0,
        }
    }

    /// The next slice, or else a share of the slice with the most work left; none while all
    /// searches are under way, or if no work is left.
    pub(crate) fn task(&mut self) -> Option<SearchTask> {
        if self.free_searches.is_empty() {
            return None;
        }
        let slice = if self.left > 0 {
            let memory = self.free_slices.pop()?;
            self.left -= 1;
            SearchedSlice::Unbuilt(self.left, memory)
        } else {
            self.shared.retain(|slice| slice.weight_left() > 0);
            let most = self.shared.iter().max_by_key(|slice| slice.weight_left())?;
            SearchedSlice::Built(Arc::clone(most))
        };
        let search = self.free_searches.pop()?;
        self.under_way += 1;
        let (index, counters) = (Arc::clone(&self.index), JoinCounters::default());
        Some(SearchTask { index, slice, search, has_more: true, counters })
    }

    /// Reads a returned task; from now on, further tasks can share its slice.
    pub(crate) fn returned(&mut self, task: &SearchTask) {
        if let SearchedSlice::Built(slice) = &task.slice
            && !self.shared.iter().any(|shared| Arc::ptr_eq(shared, slice))
        {
            self.shared.push(Arc::clone(slice));
        }
    }

    /// Takes back a task that has no more candidates.
    pub(crate) fn landed(&mut self, mut task: SearchTask) {
        self.under_way -= 1;
        if let Some(search) = &mut task.search {
            search.begin();
        }
        self.free_searches.push(task.search);
        if let SearchedSlice::Built(slice) = task.slice {
            self.shared.retain(|shared| !Arc::ptr_eq(shared, &slice));
            // The last task of a slice returns the memory of the slice.
            self.free_slices.extend(Arc::into_inner(slice).map(Some));
        }
    }

    /// Whether a slice is being searched.
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way > 0
    }
}

impl SearchTask {
    /// Adds candidates to `chunk` until the chunk is full or no candidate is left; false if no
    /// candidate is left. The first call builds the slice, if it is not built yet.
    pub(crate) fn fill(&mut self, chunk: &mut CandidateChunk) -> bool {
        let Self { index, slice, search, counters, .. } = self;
        if let SearchedSlice::Unbuilt(number, memory) = slice {
            let mut built = memory.take().unwrap_or_else(|| Slice::new(index));
            built.build(index, *number);
            *slice = SearchedSlice::Built(Arc::new(built));
        }
        if let SearchedSlice::Built(slice) = slice {
            let search = search.get_or_insert_with(|| Box::new(SliceSearch::new(index)));
            self.has_more = search.fill(index, slice, chunk, counters);
        }
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

    /// Work that is left of the slice of the task, in pairs of postings.
    pub(crate) fn weight(&self) -> u64 {
        match &self.slice {
            SearchedSlice::Unbuilt(number, _) => self.index.weight_of(*number),
            SearchedSlice::Built(slice) => slice.weight_left(),
        }
    }
}

impl std::fmt::Debug for SearchTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchTask").field("has_more", &self.has_more).finish_non_exhaustive()
    }
}
