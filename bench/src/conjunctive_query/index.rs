//! Synthetic indexes and queries over them, with the right answers.

use std::fmt;
use std::str::FromStr;

use trommel_kernels::Isa;
use trommel_kernels::inverted::{
    BatchScratch, FoundDocuments, QueryBatch, Segment, SegmentBuilder, SegmentBytes,
};

use crate::numbers::Numbers;

/// The length of list `r` is as `1 / (r + 1)` to this power.
const SKEW: f64 = 0.8;

/// Percent of queries of two terms, three, and so on, as in the paper's queries of 2 to 8.
const TERMS_OF_QUERIES: [usize; 7] = [30, 25, 18, 11, 8, 5, 3];

/// Queries whose documents are found at once for the right answers.
const CHECKED: usize = 4000;

/// The size of an index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    terms: u32,
    documents: u32,
    postings: u64,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let [terms, documents, postings] = parts[..] else {
            return Err("needed are TERMS:DOCUMENTS:POSTINGS".to_owned());
        };
        let number = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
        let [terms, documents] = [number(terms)?, number(documents)?];
        if terms < 16 || documents < 16 {
            return Err("an index has at least 16 terms and 16 documents".to_owned());
        }
        Ok(Self { terms, documents, postings: number(postings)?.into() })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { terms, documents, .. } = self;
        write!(formatter, "{documents} documents, {terms} terms")
    }
}

/// An index and queries over it.
pub(super) struct Workload {
    /// The ascending documents of each term.
    pub(super) lists: Vec<Vec<u32>>,
    pub(super) segment: Segment<SegmentBytes>,
    pub(super) offsets: Vec<u32>,
    pub(super) terms: Vec<u32>,
    pub(super) right: Answers,
}

/// The number of documents of each query, and the sum of their ids.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Answers {
    pub(super) counts: Vec<u32>,
    pub(super) sums: Vec<u64>,
}

impl Answers {
    /// Adds the answer to a query; the documents ascend.
    pub(super) fn push(&mut self, documents: &[u32]) {
        assert!(documents.is_sorted_by(|left, right| left < right), "documents ascend");
        self.counts.push(u32::try_from(documents.len()).expect("ids have 32 bits"));
        self.sums.push(documents.iter().map(|&id| u64::from(id)).sum());
    }
}

impl Workload {
    /// Draws lists with uniform gaps, and terms of queries uniform by the logarithm of their rank.
    pub(super) fn new(shape: Shape, queries: usize) -> Self {
        let mut numbers = Numbers::default();
        let lists = draw_lists(shape, &mut numbers);
        let segment = segment(shape, &lists);
        let (mut offsets, mut terms) = (vec![0], Vec::new());
        for _ in 0..queries {
            draw_query(shape, &mut numbers, &mut terms);
            offsets.push(u32::try_from(terms.len()).expect("queries are few"));
        }
        let mut workload = Self { lists, segment, offsets, terms, right: Answers::default() };
        workload.right = workload.by_processor();
        workload
    }

    /// The number of queries.
    pub(super) fn queries(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The queries `begin..end`.
    pub(super) fn batch(&self, begin: usize, end: usize) -> QueryBatch<'_> {
        let offsets = &self.offsets[begin..=end];
        QueryBatch::new(offsets, &self.terms[..self.offsets[end] as usize])
    }

    /// The right number of documents of the queries `begin..end`.
    pub(super) fn documents(&self, begin: usize, end: usize) -> usize {
        self.right.counts[begin..end].iter().map(|&count| count as usize).sum()
    }

    /// Maximum units of the queries `begin..end` on a device: the shortest list of a query by 256.
    pub(super) fn units(&self, begin: usize, end: usize) -> usize {
        let batch = self.batch(begin, end);
        let units = |query| self.segment.shortest(batch.terms(query)) as usize / 256 + 1;
        (0..batch.len()).map(units).sum()
    }

    fn by_processor(&self) -> Answers {
        let isa = Isa::available().last().expect("every processor is scalar");
        let (mut scratch, mut found) = (BatchScratch::new(), FoundDocuments::default());
        let mut right = Answers::default();
        for begin in (0..self.queries()).step_by(CHECKED) {
            let batch = self.batch(begin, self.queries().min(begin + CHECKED));
            self.segment.find_batch(isa, batch, &mut scratch, &mut found);
            for ends in found.offsets.windows(2) {
                let [begin, end] =
                    [ends[0], ends[1]].map(|end| usize::try_from(end).expect("fits"));
                right.push(&found.documents[begin..end]);
            }
        }
        right
    }
}

/// A number between 0 and 1.
#[expect(clippy::cast_precision_loss, reason = "24 bits")]
fn unit(numbers: &mut Numbers) -> f64 {
    numbers.below(1 << 24) as f64 / f64::from(1 << 24)
}

#[expect(clippy::cast_precision_loss, reason = "postings are far below 2^53")]
#[expect(clippy::cast_possible_truncation, reason = "positions are below the documents")]
#[expect(clippy::cast_sign_loss, reason = "positions are not negative")]
fn draw_lists(shape: Shape, numbers: &mut Numbers) -> Vec<Vec<u32>> {
    let weight = |rank: u32| f64::from(rank + 1).powf(-SKEW);
    let norm: f64 = (0..shape.terms).map(weight).sum();
    let documents = f64::from(shape.documents);
    let draw = |rank| {
        let len = (shape.postings as f64 / norm * weight(rank)).clamp(1.0, documents / 3.0);
        let gap = documents / len;
        let mut list = Vec::with_capacity(len as usize + 8);
        let mut position = gap * unit(numbers);
        while position < documents {
            list.push(position as u32);
            position += 1.0 + (gap - 1.0) * 2.0 * unit(numbers);
        }
        list
    };
    (0..shape.terms).map(draw).collect()
}

/// The segment of lists, by way of their documents.
fn segment(shape: Shape, lists: &[Vec<u32>]) -> Segment<SegmentBytes> {
    let mut ends = vec![0_usize; shape.documents as usize + 1];
    lists.iter().flatten().for_each(|&id| ends[id as usize + 1] += 1);
    for document in 1..ends.len() {
        ends[document] += ends[document - 1];
    }
    let mut terms = vec![0; *ends.last().expect("one more than documents")];
    let mut places = ends.clone();
    for (term, list) in (0..).zip(lists) {
        for &id in list {
            let place = &mut places[id as usize];
            terms[*place] = term;
            *place += 1;
        }
    }
    let mut builder = SegmentBuilder::new();
    for ends in ends.windows(2) {
        builder.push(&terms[ends[0]..ends[1]]);
    }
    Segment::new(builder.finish(shape.terms)).expect("a segment that was just built")
}

/// Adds distinct terms of a query.
#[expect(clippy::cast_possible_truncation, reason = "ranks are below the terms")]
#[expect(clippy::cast_sign_loss, reason = "ranks are not negative")]
fn draw_query(shape: Shape, numbers: &mut Numbers, terms: &mut Vec<u32>) {
    let mut drawn = numbers.below(100);
    let mut len = 2;
    for share in TERMS_OF_QUERIES {
        if drawn < share {
            break;
        }
        drawn -= share;
        len += 1;
    }
    let begin = terms.len();
    while terms.len() < begin + len {
        let rank = (unit(numbers) * f64::from(shape.terms).ln()).exp() - 1.0;
        let term = rank as u32;
        if !terms[begin..].contains(&term) {
            terms.push(term);
        }
    }
}
