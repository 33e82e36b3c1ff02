//! Documents as sets of terms, and the inverted lists of their terms.

use arrow_array::RecordBatch;
use trommel_kernels::inverted::{Segment, SegmentBuilder, SegmentBytes};

use crate::runner::pipelines::batch_of_sets;

/// Documents of a batch of the stream.
const BATCH: usize = 8192;

/// Sets of terms, laid end to end.
pub(crate) struct Documents {
    ends: Vec<usize>,
    terms: Vec<u32>,
    /// Number of terms, of which some may have no document.
    term_count: u32,
}

impl Default for Documents {
    fn default() -> Self {
        Self { ends: vec![0], terms: Vec::new(), term_count: 0 }
    }
}

impl Documents {
    /// The documents of lists, each of which ascends and has documents below `documents`.
    pub(crate) fn of_lists(documents: u32, lists: &[Vec<u32>]) -> Self {
        let mut ends = vec![0_usize; documents as usize + 1];
        lists.iter().flatten().for_each(|&id| ends[id as usize + 1] += 1);
        for document in 1..ends.len() {
            ends[document] += ends[document - 1];
        }
        let mut terms = vec![0; *ends.last().expect("one more than documents")];
        // A counting sort: lists in the order of terms leave the terms of each document sorted.
        let mut places = ends.clone();
        for (term, list) in (0..).zip(lists) {
            for &id in list {
                let place = &mut places[id as usize];
                terms[*place] = term;
                *place += 1;
            }
        }
        Self { ends, terms, term_count: u32::try_from(lists.len()).expect("terms have 32 bits") }
    }

    /// Adds a document of distinct terms.
    pub(crate) fn push(&mut self, terms: &[u32]) {
        self.terms.extend_from_slice(terms);
        self.ends.push(self.terms.len());
        let count = terms.iter().max().map_or(0, |&last| last + 1);
        self.term_count = self.term_count.max(count);
    }

    /// Number of documents.
    pub(crate) fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// Number of terms.
    pub(crate) fn term_count(&self) -> u32 {
        self.term_count
    }

    /// Terms of a document.
    pub(crate) fn terms(&self, document: usize) -> &[u32] {
        &self.terms[self.ends[document]..self.ends[document + 1]]
    }

    /// The ascending documents of each term.
    pub(crate) fn lists(&self) -> Vec<Vec<u32>> {
        // Lengths first, so that no list grows.
        let mut lens = vec![0; self.term_count as usize];
        self.terms.iter().for_each(|&term| lens[term as usize] += 1);
        let mut lists: Vec<Vec<u32>> = lens.into_iter().map(Vec::with_capacity).collect();
        for (document, id) in (0..self.len()).zip(0_u32..) {
            self.terms(document).iter().for_each(|&term| lists[term as usize].push(id));
        }
        lists
    }

    /// The index of these documents.
    pub(crate) fn segment(&self) -> Segment<SegmentBytes> {
        let mut builder = SegmentBuilder::new();
        for document in 0..self.len() {
            builder.push(self.terms(document));
        }
        Segment::new(builder.finish(self.term_count)).expect("a segment that was just built")
    }

    /// Number of batches of the stream.
    pub(crate) fn batches(&self) -> usize {
        self.len().div_ceil(BATCH)
    }

    /// A batch with the column `set`.
    pub(crate) fn batch(&self, number: usize) -> RecordBatch {
        let end = self.len().min((number + 1) * BATCH);
        batch_of_sets((number * BATCH..end).map(|document| self.terms(document)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_documents_are_two_views_of_the_same_pairs() {
        let lists = vec![vec![0, 2, 3], vec![], vec![2]];
        let documents = Documents::of_lists(5, &lists);
        assert_eq!(documents.len(), 5);
        assert_eq!(documents.terms(2), [0, 2]);
        assert_eq!(documents.lists(), lists);
        let mut pushed = Documents::default();
        (0..documents.len()).for_each(|document| pushed.push(documents.terms(document)));
        assert_eq!((pushed.lists(), pushed.term_count()), (lists, 3));
        assert_eq!(documents.segment().postings(), 4);
    }
}
