//! The parts of a segment in memory.

use super::cast::{LINE, halves};
use super::groups::{Content, Groups};
use super::layout::{Form, HEADER, Header, LINE_RANKS, ROW, Row, buckets, summary_lines};
use super::list::{Buckets, List};
use crate::simd::prefetch;

/// A segment's words, split into its parts.
///
/// Every access is checked against the words, so that a file that is changed under its memory map
/// gives a wrong answer or a panic, and never a read outside of the map.
#[derive(Clone, Copy, Debug)]
pub(in crate::inverted) struct View<'a> {
    header: Header,
    table: &'a [[u32; ROW]],
    words: &'a [u32],
    halves: &'a [u16],
}

impl<'a> View<'a> {
    /// The parts of the words with this header; `None` if the table reaches past the words.
    #[inline]
    pub(in crate::inverted) fn new(header: Header, words: &'a [u32]) -> Option<Self> {
        let table = words.get(HEADER..)?.get(..header.terms as usize * ROW)?;
        Some(Self { header, table: table.as_chunks().0, words, halves: halves(words) })
    }

    #[inline(always)]
    pub(in crate::inverted) fn documents(self) -> u32 {
        self.header.documents
    }

    pub(super) fn words(self) -> &'a [u32] {
        self.words
    }

    /// The table.
    #[inline(always)]
    pub(in crate::inverted) fn rows(self) -> &'a [[u32; ROW]] {
        self.table
    }

    /// The length of a list; zero for an unknown term.
    #[inline(always)]
    pub(in crate::inverted) fn len(self, term: u32) -> u32 {
        self.table.get(term as usize).map_or(0, |row| Row(row).len())
    }

    /// Fetches the row of a term.
    #[inline(always)]
    pub(in crate::inverted) fn fetch_row(self, term: u32) {
        prefetch(self.table, term as usize);
    }

    /// The form of the list of a term.
    ///
    /// # Panics
    ///
    /// If there is no such term.
    #[inline(always)]
    pub(in crate::inverted) fn form(self, term: u32) -> Form {
        let row = Row(&self.table[term as usize]);
        row.form().expect("forms were checked when the segment was opened")
    }

    /// The list of a term.
    ///
    /// # Panics
    ///
    /// If there is no such term.
    #[inline(always)]
    pub(in crate::inverted) fn list(self, term: u32) -> List<'a> {
        self.list_of(Row(&self.table[term as usize]), self.form(term))
    }

    /// The groups of the list of a term, if it has groups or is a bitmap.
    ///
    /// # Panics
    ///
    /// If there is no such term.
    #[inline(always)]
    pub(in crate::inverted) fn groups(self, term: u32) -> Option<Groups<'a>> {
        let row = Row(&self.table[term as usize]);
        self.groups_of(row, self.form(term))
    }

    /// The groups of the list of a row of this form, if it has groups or is a bitmap.
    ///
    /// # Panics
    ///
    /// If the groups reach past the words.
    #[inline(always)]
    pub(super) fn groups_of(self, row: Row<'a>, form: Form) -> Option<Groups<'a>> {
        let has_groups = row.size().groups > 0;
        if form != Form::Bits && (form == Form::Inline || !has_groups) {
            return None;
        }
        let (documents, mut summary) = (self.documents(), &[][..]);
        let mut rest = summary;
        let lines = usize::try_from(summary_lines(documents)).expect("they are within memory");
        if has_groups {
            let place = form.groups_place(row.place(), row.len(), documents);
            let place = usize::try_from(place).expect("places are within memory");
            (summary, rest) = self.words[place..].split_at(lines * LINE);
        }
        let content = if form == Form::Bits {
            let place = usize::try_from(row.place()).expect("places are within memory");
            Content::Bits(&self.words[place..][..documents.div_ceil(32) as usize])
        } else {
            let (ranks, packed) = rest.split_at(lines * LINE_RANKS);
            Content::Packed { ranks, packed }
        };
        Some(Groups { summary: summary.as_chunks().0, content })
    }

    /// The list of a row of this form.
    ///
    /// # Panics
    ///
    /// If the list reaches past the words.
    #[inline(always)]
    pub(super) fn list_of(self, row: Row<'a>, form: Form) -> List<'a> {
        let place = usize::try_from(row.place()).expect("places are within memory");
        match form {
            Form::Inline => List::Plain(row.inline()),
            Form::Plain => List::Plain(&self.words[place..][..row.len() as usize]),
            Form::Buckets { shift } => {
                let len = entries(self.documents(), shift);
                let directory = &self.words[place..][..len];
                let halves = &self.halves[2 * (place + len)..];
                List::Buckets(Buckets { shift, directory, halves })
            }
            Form::Bits => {
                let len = self.documents().div_ceil(32) as usize;
                List::Bits(&self.words[place..][..len])
            }
        }
    }
}

/// Words of the directory of buckets of this width.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 2^32 + 1")]
fn entries(documents: u32, shift: u32) -> usize {
    buckets(documents, shift) as usize + 1
}

const _: () = assert!(LINE >= 8, "a margin of a line holds a block of 16 halves");
