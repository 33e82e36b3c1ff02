//! Segments of an index: their terms and names, and how they are built.

use arrow_array::{Array, LargeStringArray};
use trommel_kernels::inverted::{MergePart, Segment, SegmentBuilder, SegmentBytes};

use crate::shared::names::UNKNOWN;
use crate::shared::names::block::ItemBlock;

/// Documents that have arrived and that a kernel makes a segment of.
#[derive(Debug, Default)]
pub(crate) struct DocumentBlock {
    /// Number of the block, from 0.
    pub(crate) number: u64,
    /// Terms of all documents, with duplicates.
    pub(crate) terms: ItemBlock,
    /// The end of each document in `terms`.
    pub(crate) ends: Vec<usize>,
    /// Names of the documents; empty if the documents have no names.
    pub(crate) names: Vec<LargeStringArray>,
    /// Bytes of the names.
    pub(crate) names_bytes: usize,
    /// Bytes of the block when a kernel got it.
    pub(crate) sent_bytes: usize,
}

impl DocumentBlock {
    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.terms.bytes() + size_of_val(&self.ends[..]) + self.names_bytes
    }

    /// Removes all documents; memory is kept.
    pub(crate) fn clear(&mut self) {
        self.terms.clear();
        self.ends.clear();
        self.names.clear();
        self.names_bytes = 0;
    }
}

/// The global number of each term of a segment.
#[derive(Debug)]
pub(crate) enum SegmentTerms {
    /// Term `i` of the segment is term `i`.
    All,
    /// Ascending global numbers. A segment of few documents lacks most terms, and its table has no
    /// rows for the missing terms.
    Some(Vec<u32>),
}

impl SegmentTerms {
    /// Terms with these numbers, ascending.
    fn new(numbers: Vec<u32>) -> Self {
        let is_all = numbers.last().map_or(0, |&last| last as usize + 1) == numbers.len();
        if is_all { Self::All } else { Self::Some(numbers) }
    }

    /// The number of a term within the segment; [`UNKNOWN`] if the segment lacks the term.
    #[inline]
    fn find(&self, term: u32) -> u32 {
        match self {
            Self::All => term,
            Self::Some(numbers) => numbers.binary_search(&term).map_or(UNKNOWN, narrow),
        }
    }
}

/// A place in a list of terms.
fn narrow(place: usize) -> u32 {
    u32::try_from(place).expect("fewer than 2^32 terms")
}

/// An immutable part of an index, with the names of its documents.
#[derive(Debug)]
pub(crate) struct IndexSegment {
    pub(crate) lists: Segment<SegmentBytes>,
    terms: SegmentTerms,
    /// A name for each document, or `None` if the documents have no names.
    pub(crate) names: Option<LargeStringArray>,
}

impl IndexSegment {
    /// A segment that has all terms.
    pub(crate) fn whole(lists: Segment<SegmentBytes>, names: Option<LargeStringArray>) -> Self {
        Self { lists, terms: SegmentTerms::All, names }
    }

    /// The numbers of `terms` within the segment.
    pub(crate) fn find_terms(&self, terms: &[u32], found: &mut Vec<u32>) {
        found.clear();
        match &self.terms {
            SegmentTerms::All => found.extend_from_slice(terms),
            some @ SegmentTerms::Some(_) => found.extend(terms.iter().map(|&t| some.find(t))),
        }
    }

    /// A segment of terms with these ascending global numbers.
    pub(crate) fn merged(
        numbers: Vec<u32>,
        lists: Segment<SegmentBytes>,
        names: Option<LargeStringArray>,
    ) -> Self {
        Self { lists, terms: SegmentTerms::new(numbers), names }
    }

    /// The segment as a part of a merge.
    pub(crate) fn part(&self) -> MergePart<'_, SegmentBytes> {
        let numbers = match &self.terms {
            SegmentTerms::All => None,
            SegmentTerms::Some(numbers) => Some(&numbers[..]),
        };
        MergePart { segment: &self.lists, numbers }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let terms = match &self.terms {
            SegmentTerms::All => 0,
            SegmentTerms::Some(numbers) => size_of_val(&numbers[..]),
        };
        let names = self.names.as_ref().map_or(0, Array::get_array_memory_size);
        self.lists.as_bytes().len() + terms + names
    }

    /// Postings and documents: the work of a merge.
    pub(crate) fn weight(&self) -> u64 {
        self.lists.postings() + u64::from(self.lists.documents())
    }
}

/// Builds segments; the next segment uses the same memory.
#[derive(Debug, Default)]
pub(crate) struct SegmentFactory {
    /// For each term: the stamp of the last document with that term.
    stamps: Vec<u32>,
    /// The stamp of the last document.
    stamp: u32,
    /// For each term of the block: the number of the term within the segment.
    local: Vec<u32>,
}

impl SegmentFactory {
    /// The segment of a block.
    pub(crate) fn build(&mut self, block: &mut DocumentBlock) -> IndexSegment {
        let DocumentBlock { terms, ends, names, .. } = block;
        let terms = terms.numbers_mut();
        let known = terms.iter().max().map_or(0, |&term| term as usize + 1);
        if self.stamps.len() < known {
            self.stamps.resize(known, 0);
            self.local.resize(known, 0);
        }
        // Stamps continue from block to block, so that a small block does not have to clear all
        // stamps.
        if u64::from(self.stamp) + ends.len() as u64 >= u64::from(u32::MAX) {
            self.stamps.fill(0);
            self.stamp = 0;
        }
        let numbers = self.deduplicate(terms, ends);
        for (number, &term) in (0..).zip(&numbers) {
            self.local[term as usize] = number;
        }
        terms.iter_mut().for_each(|term| *term = self.local[*term as usize]);
        let mut builder = SegmentBuilder::new();
        let mut begin = 0;
        for &end in &*ends {
            builder.push(&terms[begin..end]);
            begin = end;
        }
        let lists = open(builder.finish(narrow(numbers.len())));
        IndexSegment { lists, terms: SegmentTerms::new(numbers), names: join_names(names) }
    }

    /// Removes the duplicates of each document. Returns the terms of the block, ascending.
    fn deduplicate(&mut self, terms: &mut Vec<u32>, ends: &mut [usize]) -> Vec<u32> {
        let (before, mut numbers) = (self.stamp, Vec::new());
        let (mut kept, mut begin) = (0, 0);
        for end in ends {
            self.stamp += 1;
            for place in begin..*end {
                let term = terms[place];
                let last = std::mem::replace(&mut self.stamps[term as usize], self.stamp);
                if last != self.stamp {
                    terms[kept] = term;
                    kept += 1;
                }
                // Stamps up to `before` belong to documents of other blocks.
                if last <= before {
                    numbers.push(term);
                }
            }
            begin = std::mem::replace(end, kept);
        }
        terms.truncate(kept);
        numbers.sort_unstable();
        numbers
    }
}

fn open(bytes: SegmentBytes) -> Segment<SegmentBytes> {
    Segment::new(bytes).expect("a builder makes segments")
}

/// Names of documents that follow each other.
pub(crate) fn join_names(names: &[LargeStringArray]) -> Option<LargeStringArray> {
    match names {
        [] => None,
        [one] => Some(one.clone()),
        _ => Some(LargeStringArray::from_iter_values(
            names
                .iter()
                .flat_map(|names| names.iter().map(|name| name.expect("names are not null"))),
        )),
    }
}
