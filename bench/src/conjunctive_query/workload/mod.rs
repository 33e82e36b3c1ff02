//! An index and queries over the index, with the right answers.

pub(super) mod documents;
mod draw;
mod synthetic;
mod text;
mod text_queries;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::inverted::{BatchScratch, FoundDocuments, QueryBatch, Segment, SegmentBytes};

use self::documents::Documents;
use self::draw::Queries;

pub(super) use self::synthetic::Shape;
pub(super) use self::text::standard_library;

/// Queries of a batch by which the processor finds the right answers.
const CHECKED: usize = 4000;

/// Maximum number of queries whose documents a search by hand finds, too.
const BY_HAND: usize = 1000;

/// The source of an index.
pub(super) enum Input {
    Text(PathBuf),
    Synthetic(Shape),
}

/// An index and queries over the index.
pub(crate) struct Workload {
    /// The name of the workload in tables and in names of figures.
    pub(crate) name: String,
    pub(crate) documents: Arc<Documents>,
    /// The ascending documents of each term.
    pub(crate) lists: Arc<Vec<Vec<u32>>>,
    pub(crate) segment: Arc<Segment<SegmentBytes>>,
    pub(crate) offsets: Vec<u32>,
    pub(crate) terms: Vec<u32>,
    pub(crate) right: Answers,
}

/// The number of documents of each query, and the sum of their ids.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Answers {
    pub(crate) counts: Vec<u32>,
    pub(crate) sums: Vec<u64>,
}

impl Answers {
    /// Adds the answer to a query; the documents ascend.
    pub(crate) fn push(&mut self, documents: &[u32]) {
        assert!(documents.is_sorted_by(|left, right| left < right), "documents ascend");
        self.counts.push(u32::try_from(documents.len()).expect("ids have 32 bits"));
        self.sums.push(documents.iter().map(|&id| u64::from(id)).sum());
    }
}

impl Workload {
    /// The index of an input, and `queries` queries over the index.
    ///
    /// # Errors
    /// If a folder of text cannot be read, or has no text.
    pub(crate) fn of(input: Input, queries: usize) -> io::Result<Self> {
        let folder = match input {
            Input::Synthetic(shape) => return Ok(shape.workload(queries)),
            Input::Text(folder) => folder,
        };
        let documents = text::read(&folder)?;
        if documents.term_count() == 0 {
            let folder = folder.display();
            return Err(io::Error::other(format!("{folder}: no text was found in its files")));
        }
        let lists = documents.lists();
        let drawn = text_queries::draw(&documents, &lists, queries);
        Ok(Self::new("text".to_owned(), documents, lists, drawn))
    }

    /// Builds the index of documents, whose lists are `lists`.
    ///
    /// # Panics
    /// If a search by hand finds other documents for one of the first queries.
    fn new(name: String, documents: Documents, lists: Vec<Vec<u32>>, queries: Queries) -> Self {
        let segment = documents.segment();
        let Queries { offsets, terms } = queries;
        let mut workload = Self {
            name,
            documents: Arc::new(documents),
            lists: Arc::new(lists),
            segment: Arc::new(segment),
            offsets,
            terms,
            right: Answers::default(),
        };
        workload.right = workload.by_processor();
        workload.check_by_hand();
        workload
    }

    /// The same index, with the queries whose numbers `order` lists, in that order.
    pub(crate) fn with_queries(&self, order: &[usize]) -> Self {
        // The right answers are copied: no query is answered again.
        let mut queries = Queries::default();
        let mut right = Answers::default();
        for &query in order {
            queries.push(self.query(query));
            right.counts.push(self.right.counts[query]);
            right.sums.push(self.right.sums[query]);
        }
        let Queries { offsets, terms } = queries;
        Self {
            name: self.name.clone(),
            documents: Arc::clone(&self.documents),
            lists: Arc::clone(&self.lists),
            segment: Arc::clone(&self.segment),
            offsets,
            terms,
            right,
        }
    }

    /// The number of queries.
    pub(crate) fn queries(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The terms of a query.
    pub(crate) fn query(&self, query: usize) -> &[u32] {
        &self.terms[self.offsets[query] as usize..self.offsets[query + 1] as usize]
    }

    /// The length of the shortest list of a query.
    pub(crate) fn shortest(&self, query: usize) -> u32 {
        self.segment.shortest(self.query(query))
    }

    /// The number of postings.
    pub(crate) fn postings(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    /// The queries `begin..end`.
    pub(crate) fn batch(&self, begin: usize, end: usize) -> QueryBatch<'_> {
        let offsets = &self.offsets[begin..=end];
        QueryBatch::new(offsets, &self.terms[..self.offsets[end] as usize])
    }

    /// The right number of documents of the queries `begin..end`.
    pub(crate) fn documents(&self, begin: usize, end: usize) -> usize {
        self.right.counts[begin..end].iter().map(|&count| count as usize).sum()
    }

    /// Maximum units of the queries `begin..end` on a device: for each query, the length of the
    /// shortest list divided by 256, and 1.
    pub(crate) fn units(&self, begin: usize, end: usize) -> usize {
        let units = |query| self.shortest(query) as usize / 256 + 1;
        (begin..end).map(units).sum()
    }

    fn by_processor(&self) -> Answers {
        let isa = Isa::available().last().expect("every processor is scalar");
        let (mut scratch, mut found) = (BatchScratch::new(), FoundDocuments::default());
        let mut right = Answers::default();
        for begin in (0..self.queries()).step_by(CHECKED) {
            let batch = self.batch(begin, self.queries().min(begin + CHECKED));
            self.segment.find_batch(isa, batch, &mut scratch, &mut found);
            for ends in found.offsets.windows(2) {
                let [begin, end] =
                    [ends[0], ends[1]].map(|end| usize::try_from(end).expect("fits"));
                right.push(&found.documents[begin..end]);
            }
        }
        right
    }

    /// Looks for each document of the shortest list of a query in the other lists of the query.
    fn check_by_hand(&self) {
        let mut by_hand = Answers::default();
        for query in 0..self.queries().min(BY_HAND) {
            let mut lists: Vec<&Vec<u32>> =
                self.query(query).iter().map(|&term| &self.lists[term as usize]).collect();
            // The code under test is not used, and a search of plain ids is easily right.
            lists.sort_unstable_by_key(|list| list.len());
            let is_in_all = |id: &u32| lists[1..].iter().all(|list| list.binary_search(id).is_ok());
            let found: Vec<u32> = lists[0].iter().copied().filter(is_in_all).collect();
            by_hand.push(&found);
        }
        let len = by_hand.counts.len();
        assert!(by_hand.counts == self.right.counts[..len], "wrong counts");
        assert!(by_hand.sums == self.right.sums[..len], "wrong documents");
    }
}
