//! The lists that the queries of a batch name, as a segment of their own.
//!
//! An index that is larger than a device's memory stays on the host, and each batch sends its
//! lists. A list is sent once, however many queries name it: so batches of queries with the same
//! lists send fewer bytes. Lists are numbered in the order of their first use, and written in the
//! layout of a segment and in their present form: the words are copied, not decoded.

use std::mem;

use super::Segment;
use super::cast::LINE;
use super::layout::{Form, HEADER, Header, ListSize, MARGIN, ROW, Row};
use super::view::View;
use crate::inverted::batch::QueryBatch;

/// The number of a list that is not sent: no term has this number.
const NO_LIST: u32 = u32::MAX;

/// Names the lists of batches; each batch uses the memory again.
///
/// # Cost
///
/// 8 bytes for each term of a segment, and 4 for each term of a batch.
#[derive(Debug, Default)]
pub struct ListNamer {
    /// For each term of the segment the stamp of the last batch that named the term, and its number
    /// there.
    numbers: Vec<(u32, u32)>,
    stamp: u32,
    /// The terms of the segment by their numbers.
    terms: Vec<u32>,
    /// The queries, with numbers in place of terms.
    offsets: Vec<u32>,
    named: Vec<u32>,
}

/// The lists that queries name, without repetition: a segment that is not written yet.
#[derive(Clone, Copy, Debug)]
pub struct NamedLists<'a> {
    view: View<'a>,
    terms: &'a [u32],
    queries: QueryBatch<'a>,
    size: Size,
}

/// The size of a segment of lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    /// Words of the lists, from the end of the table on.
    words: u64,
    postings: u64,
}

impl Size {
    /// Adds a list; returns its place, from the end of the table on.
    fn push(&mut self, form: Form, len: u32, documents: u32) -> u64 {
        // A table ends at the end of a line, so places count from there.
        let place = form.align(self.words);
        self.words = place + form.words(len, documents);
        self.postings += u64::from(len);
        place
    }

    /// Words of the segment of `terms` lists of this size.
    fn segment_words(self, terms: usize) -> u64 {
        let table = (HEADER + terms * ROW).next_multiple_of(LINE) as u64;
        (table + self.words + MARGIN as u64).next_multiple_of(LINE as u64)
    }
}

impl ListNamer {
    /// A namer without memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the lists of the first queries of a batch: as many queries as there can be with at
    /// most `words_max` words for a segment of their lists. A query with an unknown term, or with a
    /// term without documents, names no list.
    ///
    /// # Cost
    ///
    /// A look at the row of each term, and at its number: two cache misses if terms are far apart.
    ///
    /// # Panics
    ///
    /// If the queries are restricted to a set of documents.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::inverted::{ListNamer, QueryBatch, Segment, SegmentBuilder};
    ///
    /// let mut builder = SegmentBuilder::new();
    /// (0..100).for_each(|_| drop(builder.push(&[1, 4, 7])));
    /// let segment = Segment::new(builder.finish(8))?;
    /// let batch = QueryBatch::new(&[0, 2, 4], &[4, 7, 7, 4]);
    /// let mut namer = ListNamer::new();
    /// let lists = namer.name(&segment, batch, 1_000);
    /// assert_eq!((lists.len(), lists.queries().len()), (2, 2));
    /// assert_eq!(lists.queries().terms(1), [1, 0]);
    /// # Ok::<(), trommel_kernels::inverted::SegmentError>(())
    /// ```
    pub fn name<'a, B: AsRef<[u8]>>(
        &'a mut self,
        segment: &'a Segment<B>,
        batch: QueryBatch<'_>,
        words_max: usize,
    ) -> NamedLists<'a> {
        assert!(!batch.is_within(), "lists are named by queries over all documents");
        let view = segment.view();
        self.begin(segment.terms() as usize);
        let mut size = Size::default();
        for query in 0..batch.len() {
            let (lists, mut grown) = (self.terms.len(), size);
            let terms = batch.terms(query);
            if segment.shortest(terms) == 0 {
                self.named.extend(terms.iter().map(|_| NO_LIST));
            } else {
                terms.iter().for_each(|&term| self.push(view, term, &mut grown));
            }
            if grown.segment_words(self.terms.len()) > words_max as u64 {
                self.terms.truncate(lists);
                break;
            }
            size = grown;
            self.offsets.push(u32::try_from(self.named.len()).expect("offsets have 32 bits"));
        }
        self.named.truncate(self.offsets.last().map_or(0, |&end| end as usize));
        let queries = QueryBatch::new(&self.offsets, &self.named);
        NamedLists { view, terms: &self.terms, queries, size }
    }

    fn begin(&mut self, terms: usize) {
        if self.numbers.len() < terms {
            self.numbers.resize(terms, (0, 0));
        }
        if self.stamp == u32::MAX {
            self.numbers.fill((0, 0));
            self.stamp = 0;
        }
        self.stamp += 1;
        self.terms.clear();
        self.named.clear();
        self.offsets.clear();
        self.offsets.push(0);
    }

    /// Adds a term of a query, and its list if the batch has not named it before.
    fn push(&mut self, view: View<'_>, term: u32, size: &mut Size) {
        let number = &mut self.numbers[term as usize];
        if mem::replace(&mut number.0, self.stamp) != self.stamp {
            number.1 = u32::try_from(self.terms.len()).expect("at most 2^32 - 1 terms");
            self.terms.push(term);
            size.push(view.form(term), view.len(term), view.documents());
        }
        self.named.push(number.1);
    }
}

impl<'a> NamedLists<'a> {
    /// The number of lists.
    #[must_use]
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether there is no list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The first queries of the batch, with the numbers of lists in place of terms.
    #[must_use]
    pub fn queries(&self) -> QueryBatch<'a> {
        self.queries
    }

    /// The words of the segment of these lists.
    ///
    /// # Panics
    ///
    /// If the segment exceeds the address space.
    #[must_use]
    pub fn words(&self) -> usize {
        let words = self.size.segment_words(self.terms.len());
        usize::try_from(words).expect("it is a part of a segment in memory")
    }

    /// The number of documents of the segment, and the number of its terms.
    pub(crate) fn shape(&self) -> (u32, u32) {
        let terms = u32::try_from(self.terms.len()).expect("at most 2^32 - 1 terms");
        (self.view.documents(), terms)
    }

    /// Writes the segment of these lists.
    ///
    /// # Cost
    ///
    /// A copy of the words of each list.
    ///
    /// # Panics
    ///
    /// If there is not room for exactly [`Self::words`] words.
    pub fn write(&self, words: &mut [u32]) {
        let (len, expected) = (words.len(), self.words());
        assert!(len == expected, "room for {len} words, not for {expected}");
        let (documents, terms) = self.shape();
        let header = Header { documents, terms, postings: self.size.postings };
        let lists = usize::try_from(header.table_end()).expect("within the words");
        let (table, lists) = words.split_at_mut(lists);
        table[..HEADER].copy_from_slice(&header.encode());
        let (rows, pad) = table[HEADER..].split_at_mut(self.terms.len() * ROW);
        pad.fill(0);
        let (mut size, mut end) = (Size::default(), 0);
        for (row, &term) in rows.as_chunks_mut::<ROW>().0.iter_mut().zip(self.terms) {
            let source = self.view.rows()[term as usize];
            let (form, len) = (self.view.form(term), Row(&source).len());
            let place = size.push(form, len, documents);
            if form == Form::Inline {
                *row = source;
                continue;
            }
            // A device needs no groups.
            let list = ListSize { len, groups: 0 };
            *row = Row::encode(list, form, header.table_end() + place);
            let [begin, from] = [place, Row(&source).place()].map(narrow);
            // The words between lists align the lists.
            lists[end..begin].fill(0);
            end = narrow(size.words);
            lists[begin..end].copy_from_slice(&self.view.words()[from..from + end - begin]);
        }
        lists[end..].fill(0);
    }
}

fn narrow(place: u64) -> usize {
    usize::try_from(place).expect("places are within memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::inverted::{BatchScratch, FoundDocuments, SegmentBuilder, SegmentBytes};

    /// Lists of every form, and a list without documents.
    fn segment() -> Segment<SegmentBytes> {
        let mut builder = SegmentBuilder::new();
        for document in 0..70_000_u32 {
            let steps = [(0, 1), (1, 9), (2, 100), (3, 640), (5, 9_000), (6, 30_000), (7, 69_999)];
            let terms = steps.iter().filter(|(_, step)| document % step == 0);
            builder.push(&terms.map(|&(term, _)| term).collect::<Vec<u32>>());
        }
        Segment::new(builder.finish(9)).unwrap()
    }

    fn written(lists: &NamedLists<'_>) -> Segment<SegmentBytes> {
        let mut words = vec![u32::MAX; lists.words()];
        lists.write(&mut words);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Segment::new(SegmentBytes::copy_of(&bytes).unwrap()).unwrap()
    }

    fn found(segment: &Segment<SegmentBytes>, batch: QueryBatch<'_>) -> FoundDocuments {
        let mut found = FoundDocuments::default();
        segment.find_batch(Isa::Scalar, batch, &mut BatchScratch::new(), &mut found);
        found
    }

    const OFFSETS: [u32; 8] = [0, 2, 5, 5, 7, 9, 12, 14];
    const TERMS: [u32; 14] = [6, 2, 0, 1, 2, 0, 99, 4, 1, 3, 5, 0, 7, 3];

    #[test]
    fn written_lists_answer_as_the_segment() {
        let (segment, mut namer) = (segment(), ListNamer::new());
        let batch = QueryBatch::new(&OFFSETS, &TERMS);
        // The table of the previous batch has other numbers.
        for batch in [QueryBatch::new(&[0, 1], &[3]), batch] {
            let lists = namer.name(&segment, batch, usize::MAX);
            assert_eq!(lists.queries().len(), batch.len());
            let own = written(&lists);
            assert_eq!(found(&own, lists.queries()), found(&segment, batch));
        }
        let lists = namer.name(&segment, batch, usize::MAX);
        assert_eq!(lists.len(), 7, "no list of a query without documents");
        assert_eq!(written(&lists).postings(), segment.postings());
    }

    #[test]
    fn batches_are_cut_where_their_lists_have_no_room() {
        let (segment, mut namer) = (segment(), ListNamer::new());
        let batch = QueryBatch::new(&OFFSETS, &TERMS);
        let all = namer.name(&segment, batch, usize::MAX).words();
        let mut before = 0;
        for room in (0..=all).step_by(16) {
            let lists = namer.name(&segment, batch, room);
            let queries = lists.queries().len();
            assert!(lists.words() <= room || lists.is_empty(), "{room}");
            assert!((before..=batch.len()).contains(&queries), "{room}: {queries}");
            let front = &OFFSETS[..=queries];
            let front = QueryBatch::new(front, &TERMS[..front[queries] as usize]);
            assert_eq!(found(&written(&lists), lists.queries()), found(&segment, front));
            before = queries;
        }
        assert_eq!(before, batch.len());
    }

    #[test]
    fn stamps_begin_again() {
        let (segment, mut namer) = (segment(), ListNamer::new());
        namer.stamp = u32::MAX - 1;
        for _ in 0..3 {
            let batch = QueryBatch::new(&OFFSETS, &TERMS);
            let lists = namer.name(&segment, batch, usize::MAX);
            assert_eq!(found(&written(&lists), lists.queries()), found(&segment, batch));
        }
    }
}
