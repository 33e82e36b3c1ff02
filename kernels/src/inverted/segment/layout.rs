//! The places of a segment: header, table and lists, all in words of 32 bits.

use super::cast::LINE;

/// Words of the header.
pub(in crate::inverted) const HEADER: usize = LINE;

/// Words of a row of the table.
pub(in crate::inverted) const ROW: usize = 4;

/// Words after the last list, so that a block that begins in a list ends in the segment.
pub(in crate::inverted) const MARGIN: usize = LINE;

/// Documents for each id up to which a list is a bitmap: at most eight bytes for each id.
///
/// The search of a bit is faster than the search of a bucket. Compared with a limit of 32, queries
/// of real text took 17 to 22 % less time at shortest lists of 100 to 10,000 ids, and 16 % more
/// memory.
const DENSE: u64 = 64;

/// The least average number of ids of a bucket. The next smaller width would have a smaller
/// average; so buckets have less than twice this number on average, and most buckets fit a block of
/// 16.
const FILL: u64 = 6;

/// The logarithm of the widest bucket in which halves distinguish ids.
pub(super) const SHIFT_MAX: u32 = 16;

/// The form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inverted) enum Form {
    /// At most two ids, in the row of the table.
    Inline,
    /// Ids in words.
    Plain,
    /// A directory of buckets of `1 << shift` documents, and the lower halves of the ids.
    Buckets {
        /// The logarithm of the width.
        shift: u32,
    },
    /// A bit for each document.
    Bits,
}

impl Form {
    /// The cheapest form of a list of `len` ids below `documents`.
    pub(in crate::inverted) fn of(len: u32, documents: u32) -> Self {
        if len <= 2 {
            return Self::Inline;
        }
        if u64::from(len) * DENSE >= u64::from(documents) {
            return Self::Bits;
        }
        let buckets = Self::Buckets { shift: shift(len, documents) };
        if buckets.words(len, documents) < Self::Plain.words(len, documents) {
            buckets
        } else {
            Self::Plain
        }
    }

    /// The words that a list takes outside of the table.
    pub(in crate::inverted) fn words(self, len: u32, documents: u32) -> u64 {
        match self {
            Self::Inline => 0,
            Self::Plain => len.into(),
            Self::Buckets { shift } => buckets(documents, shift) + 1 + u64::from(len).div_ceil(2),
            Self::Bits => u64::from(documents).div_ceil(32),
        }
    }

    /// The words of the groups of a list.
    pub(super) fn groups_words(self, groups: u32, documents: u32) -> u64 {
        let lines = summary_lines(documents);
        let summary = lines * LINE as u64;
        match self {
            Self::Bits => summary,
            _ => summary + lines * LINE_RANKS as u64 + 2 * u64::from(groups),
        }
    }

    /// The first word of the groups of a list at `place`.
    pub(in crate::inverted) fn groups_place(self, place: u64, len: u32, documents: u32) -> u64 {
        (place + self.words(len, documents)).next_multiple_of(LINE as u64)
    }

    /// The first word after a list at `place` and its groups.
    pub(in crate::inverted) fn end(self, place: u64, size: ListSize, documents: u32) -> u64 {
        if size.groups == 0 {
            return place + self.words(size.len, documents);
        }
        let groups = self.groups_place(place, size.len, documents);
        groups + self.groups_words(size.groups, documents)
    }

    /// The first place from `place` on at which a list may begin.
    pub(in crate::inverted) fn align(self, place: u64) -> u64 {
        if self == Self::Bits { place.next_multiple_of(LINE as u64) } else { place }
    }

    /// The form and the width of its buckets as the lower half of a word.
    fn to_code(self) -> u32 {
        match self {
            Self::Inline => 0,
            Self::Plain => 1,
            Self::Buckets { shift } => 2 | shift << 8,
            Self::Bits => 3,
        }
    }

    fn from_code(code: u32) -> Option<Self> {
        match (code & 0xff, code >> 8 & 0xff) {
            (0, 0) => Some(Self::Inline),
            (1, 0) => Some(Self::Plain),
            (2, shift) if shift <= SHIFT_MAX => Some(Self::Buckets { shift }),
            (3, 0) => Some(Self::Bits),
            _ => None,
        }
    }
}

/// Documents of a group: 64, a bit of a summary.
pub(in crate::inverted) const GROUP_SHIFT: u32 = 6;

/// Groups of a line of a summary.
const LINE_GROUPS: u32 = 512;

const _: () = assert!(LINE_GROUPS as usize == 32 * LINE, "a bit a group");

/// Ranks of a line of a summary: one for 64 groups.
pub(super) const LINE_RANKS: usize = LINE / 2;

/// Half words for each id up to which a list has groups: 14 bytes.
///
/// A summary and ranks take three bytes for 512 documents, and each group two words. Over text a
/// posting takes 5.5 bytes with groups, and 3.6 without.
const GROUPS_MAX: u64 = 7;

/// The number of ids of a list, and the number of groups that have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inverted) struct ListSize {
    pub(in crate::inverted) len: u32,
    pub(in crate::inverted) groups: u32,
}

impl ListSize {
    /// The size of a list of these ascending ids. Groups are not counted if the list is too short
    /// for groups.
    pub(in crate::inverted) fn of(ids: &[u32], documents: u32) -> Self {
        let len = u32::try_from(ids.len()).expect("a document names a term twice");
        let size = Self { len, groups: 0 };
        let groups = if size.may_have_groups(documents) { count_groups(ids) } else { 0 };
        Self { groups, ..size }
    }

    /// Whether a list of this length has groups if its ids are close enough.
    pub(in crate::inverted) fn may_have_groups(self, documents: u32) -> bool {
        let summary = summary_lines(documents) * LINE as u64;
        self.len > 2 && 2 * summary <= GROUPS_MAX * u64::from(self.len)
    }

    /// The size of the list, with its groups if lists of this form and size have groups.
    pub(in crate::inverted) fn with_form(self, form: Form, documents: u32) -> Self {
        let words = form.groups_words(self.groups, documents);
        let is_small = 2 * words <= GROUPS_MAX * u64::from(self.len);
        // Groups are no gain if nearly all are present, or if each has only one id.
        let groups_max = match form {
            Form::Inline => 0,
            Form::Bits => documents.div_ceil(1 << GROUP_SHIFT) / 2,
            Form::Plain | Form::Buckets { .. } => self.len / 8 * 5,
        };
        Self { groups: if is_small && self.groups <= groups_max { self.groups } else { 0 }, ..self }
    }
}

/// The number of groups that have an id of this ascending list.
pub(super) fn count_groups(ids: &[u32]) -> u32 {
    let (mut groups, mut before) = (0, u32::MAX);
    for id in ids {
        let group = id >> GROUP_SHIFT;
        groups += u32::from(group != before);
        before = group;
    }
    groups
}

/// Lines of a summary.
pub(in crate::inverted) fn summary_lines(documents: u32) -> u64 {
    u64::from(documents.div_ceil(1 << GROUP_SHIFT).div_ceil(LINE_GROUPS))
}

/// The number of buckets of `1 << shift` documents.
pub(super) fn buckets(documents: u32, shift: u32) -> u64 {
    u64::from(documents).div_ceil(1 << shift)
}

/// The logarithm of the smallest width at which buckets have [`FILL`] ids on average.
fn shift(len: u32, documents: u32) -> u32 {
    let fits = |&shift: &u32| buckets(documents, shift) * FILL <= len.into();
    (0..SHIFT_MAX).find(fits).unwrap_or(SHIFT_MAX)
}

/// A row of the table.
///
/// ```text
/// word 0   number of ids
/// word 1   bits 0..8 form, 8..16 logarithm of the width of a bucket, 16..32 place, upper bits
/// word 2   place, lower bits; of an inline list its first id
/// word 3   number of groups, zero if the list has none; of an inline list its second id
/// ```
#[derive(Clone, Copy, Debug)]
pub(in crate::inverted) struct Row<'a>(pub(in crate::inverted) &'a [u32; ROW]);

impl<'a> Row<'a> {
    /// The words of a row.
    pub(in crate::inverted) fn encode(size: ListSize, form: Form, place: u64) -> [u32; ROW] {
        let [low, upper] = split(place);
        [size.len, form.to_code() | upper << 16, low, size.groups]
    }

    /// The number of ids.
    #[inline(always)]
    pub(super) fn len(self) -> u32 {
        self.0[0]
    }

    /// The number of ids and of groups of a list that is not inline.
    #[inline(always)]
    pub(in crate::inverted) fn size(self) -> ListSize {
        ListSize { len: self.0[0], groups: self.0[3] }
    }

    /// The form of the list; `None` if there is no such form.
    #[inline(always)]
    pub(in crate::inverted) fn form(self) -> Option<Form> {
        Form::from_code(self.0[1] & 0xffff)
    }

    /// The first word of the list.
    #[inline(always)]
    pub(in crate::inverted) fn place(self) -> u64 {
        join([self.0[2], self.0[1] >> 16])
    }

    /// The ids of an inline list.
    #[inline(always)]
    pub(super) fn inline(self) -> &'a [u32] {
        &self.0[2..][..self.len().min(2) as usize]
    }
}

/// A number as two words, the lower word first.
#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
pub(super) fn split(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// The number of two words, the lower word first.
#[inline(always)]
pub(super) fn join([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The first words of a segment: documents, terms, and the number of postings as two words. All
/// further words are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inverted) struct Header {
    pub(in crate::inverted) documents: u32,
    pub(in crate::inverted) terms: u32,
    pub(in crate::inverted) postings: u64,
}

impl Header {
    pub(in crate::inverted) fn encode(self) -> [u32; HEADER] {
        let [low, high] = split(self.postings);
        let mut words = [0; HEADER];
        words[..4].copy_from_slice(&[self.documents, self.terms, low, high]);
        words
    }

    /// The header in these words; `None` if a word that has to be zero is not.
    pub(super) fn decode(words: &[u32; HEADER]) -> Option<Self> {
        let [documents, terms, low, high, rest @ ..] = *words;
        let is_padded = rest.iter().all(|&word| word == 0);
        is_padded.then_some(Self { documents, terms, postings: join([low, high]) })
    }

    /// The first word after the table.
    pub(in crate::inverted) fn table_end(self) -> u64 {
        (HEADER as u64 + u64::from(self.terms) * ROW as u64).next_multiple_of(LINE as u64)
    }
}
