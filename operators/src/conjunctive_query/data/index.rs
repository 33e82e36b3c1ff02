//! An index: segments that follow each other, and the answers to batches of queries.

use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::inverted::{BatchScratch, FoundDocuments, QueryBatch};

use super::segments::IndexSegment;

/// Maximum number of documents: an answer is a list, whose length has 31 bits.
pub(crate) const DOCUMENTS_MAX: u32 = i32::MAX.unsigned_abs();

/// Segments, each with the number of documents before it. An index never changes: a new index
/// replaces an index that grows.
#[derive(Debug, Default)]
pub(crate) struct Index {
    parts: Vec<(u32, Arc<IndexSegment>)>,
    documents: u32,
}

impl Index {
    /// The index of segments that follow each other.
    pub(crate) fn new(segments: impl IntoIterator<Item = Arc<IndexSegment>>) -> Self {
        let mut index = Self::default();
        for segment in segments {
            let documents = segment.lists.documents();
            index.parts.push((index.documents, segment));
            index.documents += documents;
        }
        index
    }

    /// Number of documents.
    pub(crate) fn documents(&self) -> u32 {
        self.documents
    }

    /// Number of segments.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The segments.
    pub(crate) fn segments(&self) -> impl DoubleEndedIterator<Item = &Arc<IndexSegment>> {
        self.parts.iter().map(|(_, segment)| segment)
    }

    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> usize {
        self.segments().map(|segment| segment.bytes()).sum()
    }

    /// Bytes of the lists of all segments.
    pub(crate) fn list_bytes(&self) -> usize {
        self.segments().map(|segment| segment.lists.as_bytes().len()).sum()
    }

    /// The length of a query's shortest list, summed over the segments, and the query's modelled
    /// time in nanoseconds.
    pub(crate) fn price(&self, terms: &[u32], local: &mut Vec<u32>) -> (u64, u64) {
        self.segments().fold((0, 0), |(shortest, cost_ns), segment| {
            segment.find_terms(terms, local);
            let lists = &segment.lists;
            (shortest + u64::from(lists.shortest(local)), cost_ns + lists.cost_ns(local))
        })
    }

    /// Whether documents have names.
    pub(crate) fn has_names(&self) -> bool {
        self.segments().any(|segment| segment.names.is_some())
    }

    /// Joins the documents that the segments found for each of `queries` queries.
    pub(crate) fn join(
        &self,
        segments: &[FoundDocuments],
        queries: usize,
        found: &mut FoundDocuments,
    ) {
        found.offsets.clear();
        found.offsets.push(0);
        found.documents.clear();
        for query in 0..queries {
            for ((begin, _), part) in self.parts.iter().zip(segments) {
                let [first, last] = [0, 1].map(|end| narrow(part.offsets[query + end]));
                let documents = &part.documents[first..last];
                found.documents.extend(documents.iter().map(|document| begin + document));
            }
            found.offsets.push(found.documents.len() as u64);
        }
    }

    /// The name of a document.
    ///
    /// # Panics
    /// If documents have no names.
    pub(crate) fn name(&self, document: u32) -> &str {
        let part = self.parts.partition_point(|(begin, _)| *begin <= document) - 1;
        let (begin, segment) = &self.parts[part];
        let names = segment.names.as_ref().expect("documents have names");
        names.value((document - begin) as usize)
    }
}

/// Queries, laid end to end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) offsets: &'a [u32],
    pub(crate) terms: &'a [u32],
}

/// Answers batches of queries; the next batch uses the same memory.
#[derive(Debug)]
pub(crate) struct Answerer {
    isa: Isa,
    scratch: BatchScratch,
    /// Terms of the queries within a segment.
    local: Vec<u32>,
    /// Counts of a segment.
    counts: Vec<u32>,
    /// Documents of each segment.
    found: Vec<FoundDocuments>,
}

impl Answerer {
    pub(crate) fn new(isa: Isa) -> Self {
        let scratch = BatchScratch::new();
        Self { isa, scratch, local: Vec::new(), counts: Vec::new(), found: Vec::new() }
    }

    /// Counts the documents of each query.
    pub(crate) fn count(&mut self, index: &Index, queries: Terms<'_>, counts: &mut Vec<u32>) {
        counts.clear();
        counts.resize(queries.offsets.len() - 1, 0);
        for segment in index.segments() {
            segment.find_terms(queries.terms, &mut self.local);
            let batch = QueryBatch::new(queries.offsets, &self.local);
            segment.lists.count_batch(self.isa, batch, &mut self.scratch, &mut self.counts);
            add_counts(counts, &self.counts);
        }
    }

    /// Finds the documents of each query.
    pub(crate) fn find(&mut self, index: &Index, queries: Terms<'_>, found: &mut FoundDocuments) {
        self.found.resize_with(index.len(), FoundDocuments::default);
        for (segment, found) in index.segments().zip(&mut self.found) {
            segment.find_terms(queries.terms, &mut self.local);
            let batch = QueryBatch::new(queries.offsets, &self.local);
            segment.lists.find_batch(self.isa, batch, &mut self.scratch, found);
        }
        // One segment is the usual case: nothing is copied.
        if let [only] = &mut self.found[..] {
            std::mem::swap(only, found);
            return;
        }
        index.join(&self.found, queries.offsets.len() - 1, found);
    }
}

/// Adds the counts of a segment.
pub(crate) fn add_counts(sums: &mut [u32], counts: &[u32]) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

fn narrow(offset: u64) -> usize {
    usize::try_from(offset).expect("an offset in memory")
}
