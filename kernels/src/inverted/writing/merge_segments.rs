//! The merge of segments whose documents follow each other.

use super::encode::{Encoder, SegmentBytes};
use crate::inverted::segment::{ListSize, Segment};

/// The new number of a term that a segment lacks.
const NONE: u32 = u32::MAX;

/// A segment to be merged, and the new numbers of its terms.
#[derive(Debug)]
pub struct MergePart<'a, B> {
    /// The segment.
    pub segment: &'a Segment<B>,
    /// The new number of each term of the segment; all numbers differ.
    pub terms: &'a [u32],
}

/// Merges segments, which may number their terms differently, to one segment of terms below
/// `terms`. The documents of a segment follow the documents of all earlier segments.
///
/// The result has the bytes that a builder makes from all documents.
///
/// # Cost
///
/// Reads each short list once and each long list twice, and writes each list once; no list is
/// sorted. Memory: the result, four bytes for each term times the number of parts plus three, and
/// twice the longest list at four bytes for each id.
///
/// # Panics
///
/// If a part has not a new number for each of its terms, a number is not below `terms`, two numbers
/// of one part are equal, or there are more than `u32::MAX` documents.
///
/// # Examples
///
/// ```
/// use trommel_kernels::inverted::{MergePart, Segment, SegmentBuilder, merge};
///
/// let mut builder = SegmentBuilder::new();
/// builder.push(&[0]);
/// let first = Segment::new(builder.finish(1))?;
/// let mut builder = SegmentBuilder::new();
/// builder.push(&[0, 1]);
/// let second = Segment::new(builder.finish(2))?;
/// // The second segment has the other order of terms.
/// let parts = [
///     MergePart { segment: &first, terms: &[0] },
///     MergePart { segment: &second, terms: &[1, 0] },
/// ];
/// let merged = Segment::new(merge(&parts, 2))?;
/// assert_eq!((merged.documents(), merged.list_len(0), merged.list_len(1)), (2, 2, 1));
/// # Ok::<(), trommel_kernels::inverted::SegmentError>(())
/// ```
#[must_use]
pub fn merge<B: AsRef<[u8]>>(parts: &[MergePart<'_, B>], terms: u32) -> SegmentBytes {
    let sources: Vec<Vec<u32>> = parts.iter().map(|part| source_of(part, terms)).collect();
    let documents: u64 = parts.iter().map(|part| u64::from(part.segment.documents())).sum();
    let documents = u32::try_from(documents).expect("at most u32::MAX documents");
    let mut lens = vec![0; terms as usize];
    for part in parts {
        for (term, &new) in (0..).zip(part.terms) {
            // The sum is at most the number of documents of all parts.
            lens[new as usize] += part.segment.list_len(term);
        }
    }
    let mut list = Vec::new();
    let mut merge_list = |term: usize, ids: &mut Vec<u32>| {
        ids.clear();
        let mut begin = 0;
        for (part, source) in parts.iter().zip(&sources) {
            if source[term] != NONE {
                list.clear();
                part.segment.view().list(source[term]).decode(&mut list);
                ids.extend(list.iter().map(|id| begin + id));
            }
            begin += part.segment.documents();
        }
    };
    let mut ids = Vec::new();
    // Lists that may have groups are decoded twice: the first time to count their groups.
    let mut size_of = |(term, len)| {
        let size = ListSize { len, groups: 0 };
        if !size.may_have_groups(documents) {
            return size;
        }
        merge_list(term, &mut ids);
        ListSize::of(&ids, documents)
    };
    let sizes: Vec<ListSize> = lens.into_iter().enumerate().map(&mut size_of).collect();
    let mut encoder = Encoder::new(documents, sizes.into_iter());
    for term in 0..terms as usize {
        merge_list(term, &mut ids);
        encoder.push(&ids);
    }
    encoder.finish()
}

/// The term of the part for each new number.
fn source_of<B: AsRef<[u8]>>(part: &MergePart<'_, B>, terms: u32) -> Vec<u32> {
    let (len, expected) = (part.terms.len(), part.segment.terms() as usize);
    assert!(len == expected, "{len} new numbers for {expected} terms");
    let mut source = vec![NONE; terms as usize];
    for (term, &new) in (0..).zip(part.terms) {
        assert!(new < terms, "term {new} is not below {terms}");
        let before = std::mem::replace(&mut source[new as usize], term);
        assert!(before == NONE, "terms {before} and {term} have the same new number {new}");
    }
    source
}
