//! The answer to one query.

use super::answers::Answer;
use super::fetch::fetch;
use super::plan::Steps;
use super::query::Query;
use super::scratch::{Buffers, QueryScratch};
use super::segment::Segment;
use crate::Isa;
use crate::simd::{RunOn, Vp2Intersect, dispatch};

impl<B: AsRef<[u8]>> Segment<B> {
    /// The number of documents with all terms of a query.
    ///
    /// # Cost
    ///
    /// About one to three nanoseconds for each id of the shortest list and each other list, less if
    /// earlier steps drop ids. Queries of bitmaps alone read the words of all bitmaps, and queries
    /// of lists with groups read the groups that all lists share. The last step only counts. Memory
    /// is allocated only while `scratch` grows.
    ///
    /// # Panics
    ///
    /// If this machine lacks the level, or the documents within which the query asks are not of
    /// this segment.
    pub fn count<'a>(
        &self,
        isa: Isa,
        query: impl Into<Query<'a>>,
        scratch: &mut QueryScratch,
    ) -> u32 {
        let QueryScratch { order, buffers } = scratch;
        let steps = self.steps(query.into(), order);
        dispatch::<Vp2Intersect, _>(isa, Count { steps, buffers })
    }

    /// Appends the documents with all terms of a query, ascending.
    ///
    /// # Cost
    ///
    /// As [`count`](Self::count).
    ///
    /// # Panics
    ///
    /// As [`count`](Self::count).
    pub fn find<'a>(
        &self,
        isa: Isa,
        query: impl Into<Query<'a>>,
        scratch: &mut QueryScratch,
        found: &mut Vec<u32>,
    ) {
        let QueryScratch { order, buffers } = scratch;
        let steps = self.steps(query.into(), order);
        dispatch::<Vp2Intersect, _>(isa, Find { steps, buffers, found });
    }

    /// The lists of a query, with their keys in `order`.
    pub(super) fn steps<'b>(&'b self, query: Query<'b>, order: &'b mut Vec<u64>) -> Steps<'b> {
        let view = self.view();
        if let Some(within) = query.within {
            within.check(view.documents());
        }
        order.clear();
        Steps::plan(view, query, order);
        Steps { view, within: query.within, keys: order }
    }
}

/// Counts the documents of a query.
struct Count<'a> {
    steps: Steps<'a>,
    buffers: &'a mut Buffers,
}

impl<L: Answer> RunOn<L, u32> for Count<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> u32 {
        fetch(&[self.steps]);
        level.count(self.steps, self.buffers)
    }
}

/// Finds the documents of a query.
pub(super) struct Find<'a> {
    pub(super) steps: Steps<'a>,
    pub(super) buffers: &'a mut Buffers,
    pub(super) found: &'a mut Vec<u32>,
}

impl<L: Answer> RunOn<L> for Find<'_> {
    #[inline(always)]
    fn run_on(self, level: L) {
        fetch(&[self.steps]);
        level.find(self.steps, self.buffers, self.found);
    }
}
