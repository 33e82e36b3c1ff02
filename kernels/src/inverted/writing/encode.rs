//! The encoding of lists as the words of a segment.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

use crate::inverted::segment::{
    Form, Header, LINE, Line, ListSize, MARGIN, ROW, Row, Segment, SegmentError, bytes, bytes_mut,
    encode_groups, halves_mut, low, words_mut,
};
use crate::memory::{Part, prefer_huge_pages};

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

/// A segment whose lists are written in runs, which threads can write side by side.
///
/// ```text
/// header │ rows of run 0 │ rows of run 1 │ .. │ lists of run 0 │ lists of run 1 │ ..
/// ```
///
/// Runs begin at whole lines, so that the lines of a run are memory of its own. The place of a list
/// does not depend on the runs.
#[derive(Debug)]
pub(in crate::inverted) struct Encoding {
    header: Header,
    /// The line of the header.
    lines: Part<Line>,
}

/// The lists of a run of terms, and their rows of the table.
#[derive(Debug)]
pub struct ListRun {
    documents: u32,
    /// The terms whose lists are not written yet.
    terms: Range<usize>,
    rows: Part<Line>,
    /// Number of rows that are written.
    written: usize,
    lists: Part<Line>,
    /// The place of the first of `lists` in the segment, in words.
    begin: u64,
    /// The first place after the lists that are written.
    free: u64,
}

/// Rows of a line of the table.
const LINE_ROWS: usize = LINE / ROW;

impl Encoding {
    /// A segment of lists of these sizes, in at most about `runs` runs of about the same length; no
    /// list is written yet.
    ///
    /// # Panics
    ///
    /// If there are more than `u32::MAX` lists or the segment exceeds the address space.
    pub(in crate::inverted) fn new(
        documents: u32,
        sizes: &[ListSize],
        runs: usize,
    ) -> (Self, Vec<ListRun>) {
        let terms = u32::try_from(sizes.len()).expect("at most u32::MAX terms");
        let postings = sizes.iter().map(|size| u64::from(size.len)).sum();
        let header = Header { documents, terms, postings };
        let first = header.table_end();
        let after = |free, size: &ListSize| ListPlace::next(free, *size, documents).end;
        let end = sizes.iter().fold(first, after);
        // A row of a short list is all of its list.
        let weight = |terms: usize, place: u64| place - first + (terms * ROW) as u64;
        let least = weight(sizes.len(), end).div_ceil(runs.max(1) as u64).max(1);
        let mut begins = vec![(0, first)];
        let (mut free, mut next) = (first, least);
        for (term, size) in sizes.iter().enumerate() {
            let place = ListPlace::next(free, *size, documents);
            let is_line = term % LINE_ROWS == 0 && place.begin.is_multiple_of(LINE as u64);
            if is_line && weight(term, place.begin) >= next {
                begins.push((term, place.begin));
                next = weight(term, place.begin) + least;
            }
            free = place.end;
        }
        begins.push((sizes.len(), (end + MARGIN as u64).next_multiple_of(LINE as u64)));
        let lines = |words: u64| {
            usize::try_from(words / LINE as u64).expect("a segment fits the address space")
        };
        let ranges = || begins.windows(2).map(|pair| (pair[0], pair[1]));
        let rows = ranges().map(|((from, _), (to, _))| (to - from).div_ceil(LINE_ROWS));
        let lists = ranges().map(|((_, from), (_, to))| lines(to - from));
        let mut parts = Part::zeros([1].into_iter().chain(rows).chain(lists)).into_iter();
        let mut head = parts.next().expect("the line of the header");
        words_mut(&mut head).copy_from_slice(&header.encode());
        let rows: Vec<Part<Line>> = parts.by_ref().take(begins.len() - 1).collect();
        let run = |(((from, begin), (to, _)), (rows, lists))| {
            let terms = from..to;
            ListRun { documents, terms, rows, written: 0, lists, begin, free: begin }
        };
        let runs = ranges().zip(rows.into_iter().zip(parts)).map(run).collect();
        (Self { header, lines: head }, runs)
    }

    /// The segment, when the lists of all runs are written.
    ///
    /// # Panics
    ///
    /// If a run is missing, or a list is not written.
    pub(in crate::inverted) fn finish(self, runs: Vec<ListRun>) -> Segment<SegmentBytes> {
        assert!(runs.iter().all(|run| run.terms.is_empty()), "all lists are written");
        let (rows, lists): (Vec<_>, Vec<_>) =
            runs.into_iter().map(|run| (run.rows, run.lists)).unzip();
        let parts = [self.lines].into_iter().chain(rows).chain(lists).collect();
        Segment::written(SegmentBytes(Part::join(parts)), self.header)
    }
}

impl ListRun {
    /// The terms whose lists are not written yet.
    pub(in crate::inverted) fn terms(&self) -> Range<usize> {
        self.terms.clone()
    }

    /// Writes the list of the next term.
    ///
    /// # Panics
    ///
    /// If the list has another length than its size says, ids do not ascend strictly, or an id is
    /// not below the number of documents.
    pub(in crate::inverted) fn push(&mut self, size: ListSize, ids: &[u32]) {
        let (documents, term) = (self.documents, self.terms.start);
        assert!(ids.is_sorted_by(|left, right| left < right), "a document names term {term} twice");
        assert!(ids.last().is_none_or(|&id| id < documents), "term {term} has unknown documents");
        assert!(ids.len() == size.len as usize, "term {term} has another number of documents");
        let ListPlace { size, form, begin, end } = ListPlace::next(self.free, size, documents);
        let (rows, _) = words_mut(&mut self.rows).as_chunks_mut::<ROW>();
        let row = &mut rows[self.written];
        *row = Row::encode(size, form, if form == Form::Inline { 0 } else { begin });
        let within = |place: u64| {
            usize::try_from(place - self.begin).expect("a segment fits the address space")
        };
        let (place, groups) =
            (within(begin), within(form.groups_place(begin, size.len, documents)));
        let words = words_mut(&mut self.lists);
        if form != Form::Inline && size.groups > 0 {
            encode_groups(&mut words[groups..], form, documents, ids);
        }
        match form {
            Form::Inline => row[2..][..ids.len()].copy_from_slice(ids),
            Form::Plain => words[place..][..ids.len()].copy_from_slice(ids),
            Form::Buckets { shift } => encode_buckets(&mut words[place..], documents, shift, ids),
            Form::Bits => {
                for &id in ids {
                    words[place + (id / 32) as usize] |= 1 << (id % 32);
                }
            }
        }
        self.free = end;
        self.written += 1;
        self.terms.start += 1;
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

impl ListPlace {
    /// The place of a list of this size from the place `free` on.
    fn next(free: u64, size: ListSize, documents: u32) -> Self {
        let form = Form::of(size.len, documents);
        let size = size.with_form(form, documents);
        let begin = form.align(free);
        Self { size, form, begin, end: form.end(begin, size, documents) }
    }
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
