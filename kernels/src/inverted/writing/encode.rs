//! The encoding of lists as the words of a segment.

use std::fmt;
use std::io::{self, Read};

use crate::inverted::segment::{
    Form, HEADER, Header, LINE, Line, ListSize, MARGIN, ROW, Row, SegmentError, bytes, bytes_mut,
    encode_groups, halves_mut, low, words_mut,
};
use crate::memory::prefer_huge_pages;

/// The bytes of a segment in memory, aligned to 64 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct SegmentBytes(Vec<Line>);

impl SegmentBytes {
    /// The next `len` bytes of a reader, such as a file.
    ///
    /// # Errors
    ///
    /// If reading fails or ends too early, or if `len` is not a multiple of 64. The content is
    /// checked by [`Segment::new`](crate::inverted::Segment::new).
    pub fn read_from(reader: &mut impl Read, len: usize) -> io::Result<Self> {
        if !len.is_multiple_of(size_of::<Line>()) {
            let error = SegmentError::Alignment { bytes: len };
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        let mut lines = zeroed(len / size_of::<Line>());
        reader.read_exact(bytes_mut(&mut lines))?;
        Ok(Self(lines))
    }

    /// An aligned copy of bytes.
    ///
    /// # Errors
    ///
    /// If their number is not a multiple of 64. Their content is checked by
    /// [`Segment::new`](crate::inverted::Segment::new).
    pub fn copy_of(bytes: &[u8]) -> Result<Self, SegmentError> {
        let (chunks, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() || !chunks.len().is_multiple_of(LINE) {
            return Err(SegmentError::Alignment { bytes: bytes.len() });
        }
        let mut lines = zeroed(chunks.len() / LINE);
        for (word, &bytes) in words_mut(&mut lines).iter_mut().zip(chunks) {
            *word = u32::from_ne_bytes(bytes);
        }
        Ok(Self(lines))
    }
}

/// Lines of zeros. Queries read scattered lines, and huge pages save misses of the processor's
/// address cache.
fn zeroed(lines: usize) -> Vec<Line> {
    let mut memory = Vec::with_capacity(lines);
    prefer_huge_pages(&mut memory);
    memory.resize(lines, Line::default());
    memory
}

impl AsRef<[u8]> for SegmentBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        bytes(&self.0)
    }
}

impl fmt::Debug for SegmentBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SegmentBytes").field("len", &self.as_ref().len()).finish()
    }
}

/// Writes lists one after another to their places.
pub(in crate::inverted) struct Encoder {
    lines: Vec<Line>,
    documents: u32,
    term: u32,
}

impl Encoder {
    /// A segment of lists of these sizes; no list is written yet.
    ///
    /// # Panics
    ///
    /// If there are more than `u32::MAX` lists or the segment exceeds the address space.
    pub(in crate::inverted) fn new(
        documents: u32,
        sizes: impl ExactSizeIterator<Item = ListSize> + Clone,
    ) -> Self {
        let terms = u32::try_from(sizes.len()).expect("at most u32::MAX terms");
        let postings = sizes.clone().map(|size| u64::from(size.len)).sum();
        let header = Header { documents, terms, postings };
        let end = places(header, sizes.clone()).last().map_or(header.table_end(), |at| at.end);
        let words = usize::try_from(end).expect("a segment fits the address space") + MARGIN;
        let mut lines = zeroed(words.div_ceil(LINE));
        let target = words_mut(&mut lines);
        target[..HEADER].copy_from_slice(&header.encode());
        let (rows, _) = target[HEADER..].as_chunks_mut::<ROW>();
        for (row, ListPlace { size, form, begin, .. }) in rows.iter_mut().zip(places(header, sizes))
        {
            *row = Row::encode(size, form, if form == Form::Inline { 0 } else { begin });
        }
        Self { lines, documents, term: 0 }
    }

    /// Writes the list of the next term.
    ///
    /// # Panics
    ///
    /// If the list has another length than its size says, or ids do not ascend strictly.
    pub(in crate::inverted) fn push(&mut self, ids: &[u32]) {
        let term = self.term;
        assert!(ids.is_sorted_by(|left, right| left < right), "a document names term {term} twice");
        let words = words_mut(&mut self.lines);
        let row = HEADER + term as usize * ROW;
        let (table, _) = words[row..].split_first_chunk_mut::<ROW>().expect("rows were counted");
        assert!(ids.len() == table[0] as usize, "term {term} has another number of documents");
        let (form, size) = (Row(table).form().expect("it was encoded here"), Row(table).size());
        let place = usize::try_from(Row(table).place()).expect("a segment fits the address space");
        if form != Form::Inline && size.groups > 0 {
            let groups = form.groups_place(place as u64, size.len, self.documents);
            let groups = usize::try_from(groups).expect("a segment fits the address space");
            encode_groups(&mut words[groups..], form, self.documents, ids);
        }
        let (table, _) = words[row..].split_first_chunk_mut::<ROW>().expect("rows were counted");
        match form {
            Form::Inline => table[2..][..ids.len()].copy_from_slice(ids),
            Form::Plain => words[place..][..ids.len()].copy_from_slice(ids),
            Form::Buckets { shift } => {
                encode_buckets(&mut words[place..], self.documents, shift, ids)
            }
            Form::Bits => {
                for &id in ids {
                    words[place + (id / 32) as usize] |= 1 << (id % 32);
                }
            }
        }
        self.term += 1;
    }

    /// The segment.
    pub(in crate::inverted) fn finish(self) -> SegmentBytes {
        SegmentBytes(self.lines)
    }
}

/// The place of a list.
struct ListPlace {
    size: ListSize,
    form: Form,
    begin: u64,
    /// The end of the list and its groups.
    end: u64,
}

/// The place of each list.
fn places(
    header: Header,
    sizes: impl Iterator<Item = ListSize>,
) -> impl Iterator<Item = ListPlace> {
    let documents = header.documents;
    sizes.scan(header.table_end(), move |free, size| {
        let form = Form::of(size.len, documents);
        let size = size.with_form(form, documents);
        let begin = form.align(*free);
        *free = form.end(begin, size, documents);
        Some(ListPlace { size, form, begin, end: *free })
    })
}

fn encode_buckets(words: &mut [u32], documents: u32, shift: u32, ids: &[u32]) {
    let buckets = (u64::from(documents)).div_ceil(1 << shift);
    let buckets = usize::try_from(buckets).expect("a segment fits the address space");
    let (directory, rest) = words.split_at_mut(buckets + 1);
    let mut end = 0;
    for (bucket, place) in (0..).zip(&mut directory[1..]) {
        while ids.get(end as usize).is_some_and(|&id| id >> shift <= bucket) {
            end += 1;
        }
        *place = end;
    }
    for (half, &id) in halves_mut(rest).iter_mut().zip(ids) {
        *half = low(id);
    }
}
