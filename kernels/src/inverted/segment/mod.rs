//! An immutable part of an index.

mod cast;
mod groups;
mod layout;
mod list;
mod named;
mod validate;
mod view;

pub(super) use self::cast::{LINE, Line, bytes, bytes_mut, halves_mut, words, words_mut};
pub(super) use self::groups::{Groups, encode_groups};
pub(super) use self::layout::{
    Form, GROUP_SHIFT, HEADER, Header, ListSize, MARGIN, ROW, Row, summary_lines,
};
pub(super) use self::list::{Buckets, List, low};
pub use self::named::{ListNamer, NamedLists};
pub use self::validate::SegmentError;
pub(super) use self::view::View;

use self::validate::validate;

/// The inverted lists of documents, in memory as in its file.
///
/// Documents are numbered from 0, terms from 0; the list of a term has the ascending ids of its
/// documents. `B` has the bytes. A [`SegmentBuilder`](super::SegmentBuilder) and
/// [`merge`](super::merge) make [`SegmentBytes`](super::SegmentBytes).
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::inverted::{QueryScratch, Segment, SegmentBuilder};
///
/// let mut builder = SegmentBuilder::new();
/// builder.push(&[0, 1]);
/// builder.push(&[1]);
/// builder.push(&[1, 0, 2]);
/// let segment = Segment::new(builder.finish(3))?;
/// let (mut scratch, mut documents) = (QueryScratch::new(), Vec::new());
/// segment.find(Isa::Scalar, &[0, 1], &mut scratch, &mut documents);
/// assert_eq!(documents, [0, 2]);
/// # Ok::<(), trommel_kernels::inverted::SegmentError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Segment<B> {
    bytes: B,
    header: Header,
}

impl<B: AsRef<[u8]>> Segment<B> {
    /// Opens the bytes of a segment.
    ///
    /// # Errors
    ///
    /// If the bytes are no segment. All properties on which queries rely are checked, so that
    /// queries never fail on accepted bytes. A checksum is not part of the bytes: damage that
    /// leaves a correct segment is accepted.
    ///
    /// # Cost
    ///
    /// Reads the bytes once. The groups of a list are made anew and compared; that takes four bytes
    /// for each id of the longest list, and the memory of its groups.
    pub fn new(bytes: B) -> Result<Self, SegmentError> {
        let header = validate(bytes.as_ref())?;
        Ok(Self { bytes, header })
    }

    /// A segment of bytes that code of this module has written; nothing is checked.
    pub(super) fn written(bytes: B, header: Header) -> Self {
        debug_assert_eq!(validate(bytes.as_ref()), Ok(header), "only segments are written");
        Self { bytes, header }
    }

    /// The number of documents.
    #[must_use]
    pub fn documents(&self) -> u32 {
        self.header.documents
    }

    /// The number of terms.
    #[must_use]
    pub fn terms(&self) -> u32 {
        self.header.terms
    }

    /// The number of ids of all lists.
    #[must_use]
    pub fn postings(&self) -> u64 {
        self.header.postings
    }

    /// The bytes, for another owner.
    pub(super) fn into_bytes(self) -> B {
        self.bytes
    }

    /// The bytes, which are the content of its file.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// The number of documents with a term; zero for an unknown term.
    #[must_use]
    pub fn list_len(&self, term: u32) -> u32 {
        self.view().len(term)
    }

    /// The words, and the length of the longest list.
    pub(crate) fn words(&self) -> (&[u32], u32) {
        let view = self.view();
        let lens = view.rows().iter().map(|row| Row(row).len());
        (view.words(), lens.max().unwrap_or(0))
    }

    /// Words of a segment with the same lists; lists of more than two ids are plain ids.
    pub(crate) fn to_plain_words(&self) -> Vec<u32> {
        let view = self.view();
        let (words, table) = (view.words(), view.rows());
        let mut plain = words[..HEADER + table.len() * ROW].to_vec();
        let mut ids = Vec::new();
        for (term, row) in (0..).zip(table) {
            if view.form(term) == Form::Inline {
                continue;
            }
            ids.clear();
            view.list(term).decode(&mut ids);
            let list = ListSize { len: Row(row).len(), groups: 0 };
            let row = Row::encode(list, Form::Plain, plain.len() as u64);
            plain[HEADER + term as usize * ROW..][..ROW].copy_from_slice(&row);
            plain.extend_from_slice(&ids);
        }
        plain
    }

    /// The parts.
    ///
    /// # Panics
    ///
    /// If the bytes have changed since they were opened.
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        let words = words(self.bytes.as_ref()).and_then(|words| View::new(self.header, words));
        words.expect("the bytes were checked when the segment was opened")
    }
}
