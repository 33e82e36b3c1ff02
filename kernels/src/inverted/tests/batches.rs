//! Batches against the same queries one by one, and against sets.

use std::collections::BTreeSet;

use super::{BatchScratch, DocumentSet, FoundDocuments, Index, Isa, QueryBatch, by_hand, narrow};

/// An index with lists of all forms; list 40 is empty.
fn index() -> Index {
    let documents = 70_000;
    let step = |term: u32| 1 + term as usize * term as usize * term as usize / 5;
    let lists = (0..40).map(|term| (term..documents).step_by(step(term)).collect());
    Index::new(documents, lists.chain([BTreeSet::new()]).collect())
}

/// `len` queries of 0 to 5 terms; some terms are unknown.
fn queries(len: u32) -> Vec<Vec<u32>> {
    let query = |at: u32| (0..at * 7 % 6).map(|i| (at * 31 + i * i * 17) % 43).collect();
    (0..len).map(query).collect()
}

fn check(index: &Index, queries: &[Vec<u32>], within: Option<&BTreeSet<u32>>) {
    let mut offsets = vec![0];
    let mut terms = Vec::new();
    for query in queries {
        terms.extend_from_slice(query);
        offsets.push(narrow(terms.len()));
    }
    let ids: Vec<u32> = within.into_iter().flatten().copied().collect();
    let mut batch = QueryBatch::new(&offsets, &terms);
    if within.is_some() {
        batch = batch.within(DocumentSet::list(&ids));
    }
    let expected: Vec<Vec<u32>> = queries
        .iter()
        .map(|query| {
            let found: BTreeSet<u32> = index.expected(query).into_iter().collect();
            by_hand([Some(&found), within].into_iter().flatten())
        })
        .collect();
    let (mut scratch, mut counts) = (BatchScratch::new(), vec![9; 5]);
    let mut found = FoundDocuments { offsets: vec![3], documents: vec![3] };
    for isa in Isa::available() {
        index.segment.count_batch(isa, batch, &mut scratch, &mut counts);
        assert_eq!(counts, Vec::from_iter(expected.iter().map(|ids| narrow(ids.len()))), "{isa}");
        index.segment.find_batch(isa, batch, &mut scratch, &mut found);
        assert_eq!(found.documents, expected.concat(), "{isa}");
        let ends = expected.iter().scan(0, |end, ids| {
            *end += ids.len() as u64;
            Some(*end)
        });
        assert_eq!(found.offsets, Vec::from_iter([0].into_iter().chain(ends)), "{isa}");
    }
}

#[test]
fn batches_of_all_sizes_are_answered_in_the_order_of_queries() {
    let index = index();
    for len in [0, 1, 2, 15, 16, 17, 33, 1_000] {
        check(&index, &queries(len), None);
    }
}

#[test]
fn bitmaps_of_any_length_are_counted_by_parts() {
    // A part has 65,536 documents, a strip 2,048.
    for documents in [1, 2_047, 2_048, 2_049, 65_535, 65_536, 65_537, 2 * 65_536 + 2_080] {
        let lists = (0..12).map(|term| (term / 2..documents).step_by(1 + term as usize).collect());
        let index = Index::new(documents, lists.collect());
        let query = |at: u32| (0..2 + at % 9).map(|i| (at + i * i) % 12).collect();
        check(&index, &Vec::from_iter((0..25).map(query)), None);
    }
}

#[test]
fn batches_ask_within_documents() {
    let index = index();
    let within = (0..70_000).filter(|id| id % 7 < 2).collect();
    check(&index, &queries(200), Some(&within));
    check(&index, &queries(20), Some(&BTreeSet::from([0, 69_999])));
}

#[test]
fn equal_queries_have_equal_answers() {
    let index = index();
    check(&index, &vec![vec![3, 9, 3]; 40], None);
}

#[test]
#[should_panic(expected = "the last offset is 2, but there are 3 terms")]
fn a_batch_has_all_of_its_terms() {
    let _ = QueryBatch::new(&[0, 2], &[1, 2, 3]);
}

#[test]
fn longer_lists_cost_more() {
    let segment = index().segment;
    let cost = |terms: &[u32]| segment.cost_ns(terms);
    assert!(cost(&[30, 10]) < cost(&[12, 10]));
    assert!(cost(&[30, 10]) < cost(&[30, 10, 11]));
    assert!(cost(&[0, 1, 2]) > cost(&[0, 1]));
    // A query with an unknown term searches no list.
    assert!(cost(&[12, 99]) < cost(&[12, 11]));
    assert!(cost(&[]) < cost(&[12]));
}
