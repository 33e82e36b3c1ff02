//! Documents from outside of the index.

use super::segment::List;

/// The documents within which a query asks: a condition that the index does not know, such as a
/// date or the rights of a user.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::inverted::{
///     DocumentSet, Query, QueryScratch, Segment, SegmentBuilder,
/// };
///
/// let mut builder = SegmentBuilder::new();
/// (0..5).for_each(|_| drop(builder.push(&[0])));
/// let segment = Segment::new(builder.finish(1))?;
/// for within in [DocumentSet::list(&[1, 4]), DocumentSet::bits(&[0b10010])] {
///     let query = Query { within: Some(within), ..Query::from(&[0]) };
///     assert_eq!(segment.count(Isa::Scalar, query, &mut QueryScratch::new()), 2);
/// }
/// # Ok::<(), trommel_kernels::inverted::SegmentError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DocumentSet<'a> {
    list: List<'a>,
    len: u32,
}

impl<'a> DocumentSet<'a> {
    /// A set of ids, which must ascend strictly. Only debug builds check the order; answers for an
    /// unordered list lack documents. For more than one of 64 documents, [`Self::bits`] is searched
    /// faster.
    ///
    /// # Panics
    ///
    /// If there are more than `u32::MAX` ids.
    #[must_use]
    pub fn list(ids: &'a [u32]) -> Self {
        debug_assert!(ids.is_sorted_by(|left, right| left < right), "ids must ascend strictly");
        let len = u32::try_from(ids.len()).expect("at most u32::MAX documents");
        Self { list: List::Plain(ids), len }
    }

    /// Bit `id % 32` of word `id / 32`. Bits past the last document of a segment are ignored.
    ///
    /// # Cost
    ///
    /// Reads the words once, to count the documents.
    #[must_use]
    pub fn bits(words: &'a [u32]) -> Self {
        let count: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
        Self { list: List::Bits(words), len: u32::try_from(count).unwrap_or(u32::MAX) }
    }

    /// The number of documents.
    #[inline(always)]
    pub(super) fn len(self) -> u32 {
        self.len
    }

    #[inline(always)]
    pub(super) fn is_bits(self) -> bool {
        matches!(self.list, List::Bits(_))
    }

    #[inline(always)]
    pub(super) fn as_list(self) -> List<'a> {
        self.list
    }

    /// Checks that the set belongs to a segment of `documents` documents.
    ///
    /// # Panics
    ///
    /// If the set does not belong to the segment.
    pub(super) fn check(self, documents: u32) {
        match self.list {
            List::Bits(words) => {
                let (len, expected) = (words.len(), documents.div_ceil(32) as usize);
                assert!(len == expected, "{len} words for {documents} documents, not {expected}");
            }
            List::Plain(ids) => {
                let last = ids.last().copied().unwrap_or(0);
                let is_below = ids.is_empty() || last < documents;
                assert!(is_below, "document {last} is not below {documents}");
            }
            List::Buckets(_) => {}
        }
    }
}
