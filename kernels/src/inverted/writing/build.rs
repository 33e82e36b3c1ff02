//! The builder of a segment from documents.

use super::encode::{Encoding, SegmentBytes};
use crate::inverted::segment::ListSize;

/// Collects documents in the order of their ids.
///
/// # Cost
///
/// Four bytes for each posting and eight for each document until [`finish`](Self::finish). That
/// call needs four more bytes for each posting and sixteen for each term, and the segment itself.
/// The builder sorts by counting: O(postings + terms).
///
/// # Examples
///
/// ```
/// use trommel_kernels::inverted::{Segment, SegmentBuilder};
///
/// let mut builder = SegmentBuilder::new();
/// assert_eq!(builder.push(&[7, 2]), 0);
/// assert_eq!(builder.push(&[]), 1);
/// assert_eq!(builder.push(&[2]), 2);
/// let segment = Segment::new(builder.finish(10))?;
/// assert_eq!((segment.documents(), segment.terms(), segment.postings()), (3, 10, 3));
/// assert_eq!(segment.list_len(2), 2);
/// # Ok::<(), trommel_kernels::inverted::SegmentError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SegmentBuilder {
    terms: Vec<u32>,
    /// The end of each document in `terms`.
    ends: Vec<usize>,
    documents: u32,
}

impl SegmentBuilder {
    /// A builder without documents.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a document with the next id, and returns the id. The terms are distinct, in any order.
    ///
    /// # Panics
    ///
    /// If there are `u32::MAX` documents already.
    pub fn push(&mut self, terms: &[u32]) -> u32 {
        let id = self.documents;
        assert!(id < u32::MAX, "a segment has at most {} documents", u32::MAX);
        self.terms.extend_from_slice(terms);
        self.ends.push(self.terms.len());
        self.documents += 1;
        id
    }

    /// The number of documents.
    #[must_use]
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// The number of postings.
    #[must_use]
    pub fn postings(&self) -> u64 {
        self.terms.len() as u64
    }

    /// The segment of terms below `terms`.
    ///
    /// # Panics
    ///
    /// If a document has a term twice, or a term that is not below `terms`.
    #[must_use]
    pub fn finish(self, terms: u32) -> SegmentBytes {
        let documents = self.documents;
        // The end of each list, and while ids are written the place of the next id.
        let mut ends = vec![0_usize; terms as usize];
        for &term in &self.terms {
            assert!(term < terms, "term {term} is not below {terms}");
            ends[term as usize] += 1;
        }
        let mut begin = 0;
        for place in &mut ends {
            begin += std::mem::replace(place, begin);
        }
        let ids = self.sort(&mut ends);
        let begins = [0].into_iter().chain(ends.iter().copied());
        let lists = || begins.clone().zip(&ends).map(|(begin, &end)| &ids[begin..end]);
        let sizes: Vec<ListSize> = lists().map(|ids| ListSize::of(ids, documents)).collect();
        let (encoding, mut runs) = Encoding::new(documents, &sizes, 1);
        let run = runs.iter_mut().next().expect("there is a run");
        sizes.iter().zip(lists()).for_each(|(&size, ids)| run.push(size, ids));
        encoding.finish(runs).into_bytes()
    }

    /// The ids, sorted by their terms. `places` are the begins of the lists, and become their ends.
    fn sort(self, places: &mut [usize]) -> Vec<u32> {
        let mut ids = vec![0; self.terms.len()];
        let mut begin = 0;
        for (document, &end) in (0..).zip(&self.ends) {
            for &term in &self.terms[begin..end] {
                let place = &mut places[term as usize];
                ids[*place] = document;
                *place += 1;
            }
            begin = end;
        }
        ids
    }
}
