//! Every form of list on every level against intersections of `BTreeSet`s.

mod batches;
mod damage;
mod forms;
mod groups;
mod merges;
mod queries;

use std::collections::BTreeSet;

use super::one::Find;
use super::segment::ListSize;
use super::writing::{Encoding, SegmentBytes};
use super::*;
use crate::Isa;
use crate::simd::{Base, dispatch};

/// Lists, and the segment of these lists.
struct Index {
    documents: u32,
    lists: Vec<BTreeSet<u32>>,
    segment: Segment<SegmentBytes>,
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

/// The segment of lists, made without documents, which could be too many.
fn encode(documents: u32, lists: &[BTreeSet<u32>]) -> SegmentBytes {
    let lists = lists.iter().map(|list| Vec::from_iter(list.iter().copied()));
    let lists: Vec<Vec<u32>> = lists.collect();
    let sizes: Vec<ListSize> = lists.iter().map(|ids| ListSize::of(ids, documents)).collect();
    let (encoding, mut runs) = Encoding::new(documents, &sizes, 3);
    let terms: Vec<_> = runs.iter().flat_map(|run| run.terms()).collect();
    assert!(terms.into_iter().eq(0..lists.len()), "runs have each list once");
    for run in &mut runs {
        run.terms().for_each(|term| run.push(sizes[term], &lists[term]));
    }
    encoding.finish(runs).into_bytes()
}

/// The documents that are in all lists.
fn by_hand<'a>(lists: impl IntoIterator<Item = &'a BTreeSet<u32>>) -> Vec<u32> {
    let mut lists: Vec<_> = lists.into_iter().collect();
    lists.sort_by_key(|list| list.len());
    let Some((first, others)) = lists.split_first() else { return Vec::new() };
    first.iter().copied().filter(|id| others.iter().all(|list| list.contains(id))).collect()
}

/// The bits of a set of documents.
fn bits(documents: u32, set: &BTreeSet<u32>) -> Vec<u32> {
    let mut words = vec![0; documents.div_ceil(32) as usize];
    set.iter().for_each(|id| words[(id / 32) as usize] |= 1 << (id % 32));
    words
}

impl Index {
    fn new(documents: u32, lists: Vec<BTreeSet<u32>>) -> Self {
        let segment = Segment::new(encode(documents, &lists)).unwrap();
        Self { documents, lists, segment }
    }

    /// The documents of a query.
    fn expected(&self, terms: &[u32]) -> Vec<u32> {
        let none = BTreeSet::new();
        by_hand(terms.iter().map(|&term| self.lists.get(term as usize).unwrap_or(&none)))
    }

    /// Compares count and documents on all levels.
    fn check(&self, terms: &[u32]) {
        let expected = self.expected(terms);
        self.check_answer(&Query::from(terms), &expected);
    }

    /// Compares count and documents with `within` as a list and as bits.
    fn check_within(&self, terms: &[u32], within: &BTreeSet<u32>) {
        let of_terms = BTreeSet::from_iter(self.expected(terms));
        let expected = by_hand([&of_terms, within]);
        let ids = Vec::from_iter(within.iter().copied());
        let list = Some(DocumentSet::list(&ids));
        self.check_answer(&Query { terms, within: list }, &expected);
        let words = bits(self.documents, within);
        let bits = Some(DocumentSet::bits(&words));
        self.check_answer(&Query { terms, within: bits }, &expected);
    }

    /// The documents by the code of processors without the extension of AVX-512.
    fn find_on_base(&self, isa: Isa, query: Query<'_>, scratch: &mut QueryScratch) -> Vec<u32> {
        let mut found = Vec::new();
        let steps = self.segment.steps(query, &mut scratch.order);
        let buffers = &mut scratch.buffers;
        dispatch::<Base, _>(isa, Find { steps, buffers, found: &mut found });
        found
    }

    fn check_answer(&self, query: &Query<'_>, expected: &[u32]) {
        let mut scratch = QueryScratch::new();
        for isa in Isa::available() {
            let mut found = vec![7, 7];
            self.segment.find(isa, *query, &mut scratch, &mut found);
            assert_eq!(found[..2], [7, 7], "what was there stays");
            assert_eq!(found[2..], *expected, "{isa}: {:?}", query.terms);
            let count = self.segment.count(isa, *query, &mut scratch);
            assert_eq!(count as usize, expected.len(), "{isa}: {:?}", query.terms);
            assert_eq!(
                self.find_on_base(isa, *query, &mut scratch),
                expected,
                "{isa}, no extension"
            );
        }
    }
}
