//! The check of a segment's bytes.

use thiserror::Error;

use super::cast::words;
use super::groups::encode_groups;
use super::layout::{Form, HEADER, Header, MARGIN, Row, count_groups};
use super::list::{Buckets, List};
use super::view::View;

/// A reason to refuse the bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The machine is big-endian.
    #[error("segments are little-endian, and this machine is not")]
    Endianness,
    /// The bytes cannot be read as words.
    #[error("segment of {bytes} bytes: it must be aligned to 4 bytes and a multiple of 64")]
    Alignment {
        /// The number of bytes.
        bytes: usize,
    },
    /// The header is invalid, or the bytes end too early.
    #[error("segment of {bytes} bytes: invalid header, or the end is missing")]
    Header {
        /// The number of bytes.
        bytes: usize,
    },
    /// A row of the table is invalid: its form, its length or its place.
    #[error("invalid row of term {term}")]
    Row {
        /// The term.
        term: u32,
    },
    /// A list does not ascend strictly below the number of documents, or has another length than
    /// its row says.
    #[error("invalid list of term {term}")]
    List {
        /// The term.
        term: u32,
    },
    /// The groups of a list do not fit its ids.
    #[error("invalid groups of term {term}")]
    Groups {
        /// The term.
        term: u32,
    },
    /// The lists have another number of postings than the header says.
    #[error("{postings} postings; the header says {expected}")]
    Postings {
        /// Postings of all lists.
        postings: u64,
        /// Postings by the header.
        expected: u64,
    },
}

/// Checks all properties on which queries rely. Returns the header.
///
/// Lists are in the order of their terms and do not overlap, so that a word is read once.
pub(super) fn validate(bytes: &[u8]) -> Result<Header, SegmentError> {
    if cfg!(target_endian = "big") {
        return Err(SegmentError::Endianness);
    }
    let len = bytes.len();
    let words = words(bytes).filter(|words| words.len().is_multiple_of(MARGIN));
    let words = words.ok_or(SegmentError::Alignment { bytes: len })?;
    let view = header(words).and_then(|header| View::new(header, words));
    let view = view.ok_or(SegmentError::Header { bytes: len })?;
    let header = header(words).expect("it was just read");
    lists(view, header)?;
    Ok(header)
}

/// The header, if the words hold at least the table and the margin.
fn header(words: &[u32]) -> Option<Header> {
    let header = Header::decode(words.first_chunk::<HEADER>()?)?;
    (header.table_end() + MARGIN as u64 <= words.len() as u64).then_some(header)
}

fn lists(view: View<'_>, header: Header) -> Result<(), SegmentError> {
    let end = (view.words().len() - MARGIN) as u64;
    let (mut free, mut postings) = (header.table_end(), 0);
    let mut scratch = Scratch::default();
    for (term, row) in (0..).zip(view.rows()) {
        let row = Row(row);
        let form = form(row, view.documents(), free, end).ok_or(SegmentError::Row { term })?;
        if form != Form::Inline {
            free = form.end(row.place(), row.size(), view.documents());
        }
        let list = view.list_of(row, form);
        if !is_valid(list, row.len(), view.documents()) {
            return Err(SegmentError::List { term });
        }
        if form != Form::Inline && row.size().groups > 0 && !scratch.are_groups(view, row, form) {
            return Err(SegmentError::Groups { term });
        }
        postings += u64::from(row.len());
    }
    if postings != header.postings {
        return Err(SegmentError::Postings { postings, expected: header.postings });
    }
    Ok(())
}

/// The form of a row whose list lies between `free` and `end`.
fn form(row: Row<'_>, documents: u32, free: u64, end: u64) -> Option<Form> {
    let form = row.form()?;
    if form == Form::Inline {
        let is_padded = row.0[2..].iter().skip(row.len() as usize).all(|&word| word == 0);
        return (row.len() <= 2 && row.0[1] == 0 && is_padded).then_some(form);
    }
    // Places have 48 bits, lists less than 2^34 words and groups less than 2^34: the sum fits.
    let is_within = row.place() >= free && form.end(row.place(), row.size(), documents) <= end;
    let is_aligned = form.align(row.place()) == row.place();
    (is_within && is_aligned && row.len() <= documents).then_some(form)
}

/// Memory of checks.
#[derive(Default)]
struct Scratch {
    ids: Vec<u32>,
    words: Vec<u32>,
}

impl Scratch {
    /// Whether the groups of a list hold exactly its ids. The list is valid, and lies within the
    /// words.
    fn are_groups(&mut self, view: View<'_>, row: Row<'_>, form: Form) -> bool {
        let (documents, size) = (view.documents(), row.size());
        self.ids.clear();
        view.list_of(row, form).decode(&mut self.ids);
        if count_groups(&self.ids) != size.groups {
            return false;
        }
        let place = form.groups_place(row.place(), size.len, documents);
        let len = form.groups_words(size.groups, documents);
        let [place, len] = [place, len].map(|at| usize::try_from(at).expect("within the words"));
        self.words.clear();
        self.words.resize(len, 0);
        encode_groups(&mut self.words, form, documents, &self.ids);
        self.words == view.words()[place..][..len]
    }
}

fn is_valid(list: List<'_>, len: u32, documents: u32) -> bool {
    match list {
        List::Plain(ids) => ascends(ids) && ids.last().is_none_or(|&last| last < documents),
        List::Buckets(buckets) => are_buckets(buckets, len, documents),
        List::Bits(words) => are_bits(words, len, documents),
    }
}

fn ascends<T: Ord>(ids: &[T]) -> bool {
    ids.is_sorted_by(|left, right| left < right)
}

fn are_bits(words: &[u32], len: u32, documents: u32) -> bool {
    let count: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
    let rest = documents % 32;
    let excess = words.last().map_or(0, |&last| if rest == 0 { 0 } else { last >> rest });
    count == len.into() && excess == 0
}

fn are_buckets(list: Buckets<'_>, len: u32, documents: u32) -> bool {
    let directory = list.directory;
    if directory.first() != Some(&0) || directory.last() != Some(&len) || !directory.is_sorted() {
        return false;
    }
    (0u64..).zip(directory.windows(2)).all(|(bucket, range)| {
        let halves = &list.halves[range[0] as usize..range[1] as usize];
        let begin = bucket << list.shift;
        let last = (begin + (1 << list.shift)).min(documents.into()) - 1;
        let is_within = |half: Option<&u16>| {
            let id = half.map_or(begin, |&half| begin >> 16 << 16 | u64::from(half));
            (begin..=last).contains(&id)
        };
        ascends(halves) && is_within(halves.first()) && is_within(halves.last())
    })
}
