//! Queries that are answered together.

use super::answers::{Answer, DenseQueries};
use super::document_set::DocumentSet;
use super::fetch::{GROUP, fetch};
use super::plan::{Steps, term_of};
use super::query::Query;
use super::scratch::Buffers;
use super::segment::{Segment, View};
use crate::Isa;
use crate::simd::{RunOn, Vp2Intersect, dispatch};

/// Queries laid end to end.
///
/// # Examples
///
/// ```
/// use trommel_kernels::inverted::QueryBatch;
///
/// let batch = QueryBatch::new(&[0, 2, 2, 3], &[4, 9, 4]);
/// assert_eq!(batch.len(), 3);
/// assert_eq!(batch.terms(0), [4, 9]);
/// assert_eq!(batch.terms(1), []);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct QueryBatch<'a> {
    offsets: &'a [u32],
    terms: &'a [u32],
    within: Option<DocumentSet<'a>>,
}

impl<'a> QueryBatch<'a> {
    /// Query `i` has the terms `terms[offsets[i]..offsets[i + 1]]`, with the rules of [`Query`].
    ///
    /// # Panics
    ///
    /// If there is no offset, offsets descend, or the last offset is not the number of terms.
    #[must_use]
    pub fn new(offsets: &'a [u32], terms: &'a [u32]) -> Self {
        let last = offsets.last().copied().expect("one offset more than queries");
        let len = terms.len();
        assert!(last as usize == len, "the last offset is {last}, but there are {len} terms");
        assert!(offsets.is_sorted(), "offsets must not descend");
        Self { offsets, terms, within: None }
    }

    /// The same queries, restricted to a set of documents.
    #[must_use]
    pub fn within(self, documents: DocumentSet<'a>) -> Self {
        Self { within: Some(documents), ..self }
    }

    /// The number of queries.
    #[must_use]
    pub fn len(self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no query.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The terms of a query.
    ///
    /// # Panics
    ///
    /// If there is no such query.
    #[inline(always)]
    #[must_use]
    pub fn terms(self, query: usize) -> &'a [u32] {
        &self.terms[self.offsets[query] as usize..self.offsets[query + 1] as usize]
    }

    /// The offset of each query's terms and the end, and all terms. The first offset may be past
    /// the first term.
    pub(crate) fn parts(self) -> (&'a [u32], &'a [u32]) {
        (self.offsets, self.terms)
    }

    /// Whether the queries are restricted to a set of documents.
    pub(crate) fn is_within(self) -> bool {
        self.within.is_some()
    }

    #[inline(always)]
    fn query(self, query: usize) -> Query<'a> {
        Query { terms: self.terms(query), within: self.within }
    }
}

/// The documents of each query of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundDocuments {
    /// The begin of each query's documents, and the end of all documents.
    pub offsets: Vec<u64>,
    /// The documents of all queries in their order, ascending for each.
    pub documents: Vec<u32>,
}

/// Memory of batches, which each batch uses again.
///
/// # Cost
///
/// The memory of a [`QueryScratch`](super::QueryScratch), 48 bytes for each query, 16 for each
/// term, and a copy of the documents found.
#[derive(Debug, Default)]
pub struct BatchScratch {
    buffers: Buffers,
    /// The keys of all queries.
    keys: Vec<u64>,
    /// The begin of the keys of each query, and the end of all keys.
    offsets: Vec<usize>,
    order: Vec<QueryPlace>,
    /// Queries that are counted together at the end.
    dense: DenseQueries,
    /// Documents in the order of work, and the range of each query.
    found: Vec<u32>,
    ranges: Vec<(usize, usize)>,
}

impl BatchScratch {
    /// Scratch without memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Plans all queries, and puts them in the order of work.
    fn plan(&mut self, view: View<'_>, batch: QueryBatch<'_>) {
        let len = u32::try_from(batch.len()).expect("at most u32::MAX queries");
        self.keys.clear();
        self.order.clear();
        self.offsets.clear();
        self.offsets.push(0);
        for query in 0..len {
            if let Some(&begin) = batch.offsets.get(query as usize + GROUP) {
                let terms = batch.terms[begin as usize..].iter().take(4);
                terms.for_each(|&term| view.fetch_row(term));
            }
            let begin = self.keys.len();
            Steps::plan(view, batch.query(query as usize), &mut self.keys);
            self.offsets.push(self.keys.len());
            let term = |at: usize| self.keys.get(begin + at).map_or(u32::MAX, |&key| term_of(key));
            self.order.push(QueryPlace { second: term(1), first: term(0), query });
        }
        self.order.sort_unstable();
    }
}

/// The place of a query in the order of work: first by the list that the query searches first, then
/// by the list of its ids. Queries that search the same list follow each other, and find the list
/// in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueryPlace {
    second: u32,
    first: u32,
    query: u32,
}

impl<B: AsRef<[u8]>> Segment<B> {
    /// Counts the documents of each query; `counts` are in the order of the queries.
    ///
    /// # Cost
    ///
    /// As [`count`](Self::count) for each query, with fewer misses of the cache: queries are
    /// answered in the order of their lists, the lists of 16 queries are fetched together, and
    /// bitmaps are read in parts, each part for all queries that have only bitmaps. The order costs
    /// about 50 ns for each query. Memory is allocated only while `scratch` and `counts` grow.
    ///
    /// # Panics
    ///
    /// If this machine lacks the level, the documents within which the batch asks are not of this
    /// segment, or there are more than `u32::MAX` queries.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::Isa;
    /// use trommel_kernels::inverted::{BatchScratch, QueryBatch, Segment, SegmentBuilder};
    ///
    /// let mut builder = SegmentBuilder::new();
    /// builder.push(&[0, 1]);
    /// builder.push(&[1]);
    /// let segment = Segment::new(builder.finish(2))?;
    /// let batch = QueryBatch::new(&[0, 2, 3], &[0, 1, 1]);
    /// let mut counts = Vec::new();
    /// segment.count_batch(Isa::Scalar, batch, &mut BatchScratch::new(), &mut counts);
    /// assert_eq!(counts, [1, 2]);
    /// # Ok::<(), trommel_kernels::inverted::SegmentError>(())
    /// ```
    pub fn count_batch(
        &self,
        isa: Isa,
        batch: QueryBatch<'_>,
        scratch: &mut BatchScratch,
        counts: &mut Vec<u32>,
    ) {
        counts.clear();
        counts.resize(batch.len(), 0);
        let mut dense = std::mem::take(&mut scratch.dense);
        dense.clear();
        self.work(isa, batch, scratch, WriteCounts { counts, dense: &mut dense });
        dense.count(isa, self.view(), batch.within, counts);
        scratch.dense = dense;
    }

    /// Finds the documents of each query; `found` is in the order of the queries.
    ///
    /// # Cost
    ///
    /// As [`count_batch`](Self::count_batch) and [`find`](Self::find), and a copy of the documents.
    ///
    /// # Panics
    ///
    /// As [`count_batch`](Self::count_batch).
    pub fn find_batch(
        &self,
        isa: Isa,
        batch: QueryBatch<'_>,
        scratch: &mut BatchScratch,
        found: &mut FoundDocuments,
    ) {
        let (mut documents, mut ranges) =
            (std::mem::take(&mut scratch.found), std::mem::take(&mut scratch.ranges));
        documents.clear();
        ranges.clear();
        ranges.resize(batch.len(), (0, 0));
        let writer = Documents { documents: &mut documents, ranges: &mut ranges };
        self.work(isa, batch, scratch, writer);
        found.offsets.clear();
        found.offsets.push(0);
        found.documents.clear();
        for &(begin, end) in &ranges {
            found.documents.extend_from_slice(&documents[begin..end]);
            found.offsets.push(found.documents.len() as u64);
        }
        (scratch.found, scratch.ranges) = (documents, ranges);
    }

    fn work<W: Write>(
        &self,
        isa: Isa,
        batch: QueryBatch<'_>,
        scratch: &mut BatchScratch,
        writer: W,
    ) {
        let view = self.view();
        if let Some(within) = batch.within {
            within.check(view.documents());
        }
        scratch.plan(view, batch);
        dispatch::<Vp2Intersect, _>(isa, AnswerBatch { view, batch, scratch, writer });
    }
}

/// Takes the answers of a batch.
trait Write {
    fn write<L: Answer>(&mut self, level: L, query: u32, steps: Steps<'_>, buffers: &mut Buffers);
}

struct WriteCounts<'a> {
    counts: &'a mut [u32],
    dense: &'a mut DenseQueries,
}

impl Write for WriteCounts<'_> {
    #[inline(always)]
    fn write<L: Answer>(&mut self, level: L, query: u32, steps: Steps<'_>, buffers: &mut Buffers) {
        if level.is_dense(steps) {
            self.dense.push(query, steps.keys);
        } else {
            self.counts[query as usize] = level.count(steps, buffers);
        }
    }
}

struct Documents<'a> {
    documents: &'a mut Vec<u32>,
    ranges: &'a mut [(usize, usize)],
}

impl Write for Documents<'_> {
    #[inline(always)]
    fn write<L: Answer>(&mut self, level: L, query: u32, steps: Steps<'_>, buffers: &mut Buffers) {
        let begin = self.documents.len();
        level.find(steps, buffers, self.documents);
        self.ranges[query as usize] = (begin, self.documents.len());
    }
}

struct AnswerBatch<'a, W> {
    view: View<'a>,
    batch: QueryBatch<'a>,
    scratch: &'a mut BatchScratch,
    writer: W,
}

impl<L: Answer, W: Write> RunOn<L> for AnswerBatch<'_, W> {
    #[inline(always)]
    fn run_on(self, level: L) {
        let Self { view, batch, scratch, mut writer } = self;
        let BatchScratch { buffers, keys, offsets, order, .. } = scratch;
        for group in order.chunks(GROUP) {
            let mut steps = [Steps { view, within: batch.within, keys: &[] }; GROUP];
            for (steps, place) in steps.iter_mut().zip(group) {
                let query = place.query as usize;
                steps.keys = &keys[offsets[query]..offsets[query + 1]];
            }
            let steps = &steps[..group.len()];
            fetch(steps);
            for (place, &steps) in group.iter().zip(steps) {
                writer.write(level, place.query, steps, buffers);
            }
        }
    }
}
