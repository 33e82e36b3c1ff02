//! Forms of lists, and builders.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Index, Segment, SegmentBuilder, encode, narrow};
use crate::inverted::segment::{Form, MARGIN, words};

/// Every `step`th document of `documents` from `begin` on.
fn every(documents: u32, begin: u32, step: usize) -> BTreeSet<u32> {
    (begin..documents).step_by(step).collect()
}

#[test]
fn a_list_has_the_form_of_its_density() {
    let million = 1_000_000;
    assert_eq!(Form::of(0, million), Form::Inline);
    assert_eq!(Form::of(2, million), Form::Inline);
    assert_eq!(Form::of(3, million), Form::Plain);
    assert_eq!(Form::of(1_000, million), Form::Buckets { shift: 13 });
    assert_eq!(Form::of(15_624, million), Form::Buckets { shift: 9 });
    assert_eq!(Form::of(15_625, million), Form::Bits);
    assert_eq!(Form::of(3, 192), Form::Bits);
    assert_eq!(Form::of(3, 193), Form::Plain);
    assert_eq!(Form::of(100_000, u32::MAX), Form::Plain);
    assert_eq!(Form::of(140_000, u32::MAX), Form::Buckets { shift: 16 });
    assert_eq!(Form::of(u32::MAX, u32::MAX), Form::Bits);
}

#[test]
fn only_bitmaps_take_more_than_plain_ids_and_at_most_twice_as_much() {
    for documents in [1, 64, 1_000, 65_536, 1 << 20, u32::MAX] {
        for len in (0..32).map(|bit| 1 << bit).filter(|&len| len <= documents) {
            let form = Form::of(len, documents);
            let (words, limit) = (form.words(len, documents), u64::from(len));
            let limit = if form == Form::Bits { 2 * limit } else { limit };
            assert!(words <= limit, "{len} of {documents}: {words} words");
        }
    }
}

#[test]
fn a_segment_has_lists_of_all_forms() {
    let documents = 1 << 17;
    let lists = [2, 5, 64, 1_000, 1 << 15, 1 << 16].map(|step| every(documents, 3, step));
    let index = Index::new(documents, lists.to_vec());
    let segment = &index.segment;
    assert_eq!((segment.documents(), segment.terms()), (documents, 6));
    let postings: usize = index.lists.iter().map(BTreeSet::len).sum();
    assert_eq!(segment.postings(), postings as u64);
    for (term, list) in (0..).zip(&index.lists) {
        assert_eq!(segment.list_len(term), narrow(list.len()));
        index.check(&[term]);
    }
    assert_eq!(segment.list_len(6), 0);
    let words = words(segment.as_bytes()).unwrap();
    assert!(words[words.len() - MARGIN..].iter().all(|&word| word == 0));
    assert_eq!(words.as_ptr().addr() % 64, 0);
}

#[test]
fn a_segment_of_nothing_is_valid() {
    let segment = Segment::new(SegmentBuilder::new().finish(0)).unwrap();
    assert_eq!((segment.documents(), segment.terms(), segment.postings()), (0, 0, 0));
    let index = Index::new(0, vec![BTreeSet::new(); 3]);
    index.check(&[]);
    index.check(&[0, 2]);
    let empty = Index::new(1, vec![BTreeSet::new(), BTreeSet::from([0])]);
    empty.check(&[1]);
    empty.check(&[0, 1]);
}

#[test]
fn segments_of_the_maximum_number_of_documents_answer() {
    let last = u32::MAX - 1;
    let sparse: BTreeSet<u32> = (0..140_000).map(|i| i * 30_000).chain([last]).collect();
    let end: BTreeSet<u32> = (0..200_000).map(|i| last - i).collect();
    let few = BTreeSet::from([0, 30_000, 65_535, 65_536, last - 1, last]);
    let index = Index::new(u32::MAX, vec![sparse, end, few, BTreeSet::from([last])]);
    for terms in [[0, 1], [0, 2], [1, 2], [2, 3], [3, 0]] {
        index.check(&terms);
    }
    index.check(&[0, 1, 2, 3]);
}

#[test]
#[should_panic(expected = "names term 3 twice")]
fn a_document_names_a_term_once() {
    let mut builder = SegmentBuilder::new();
    builder.push(&[3, 1, 3]);
    let _ = builder.finish(4);
}

#[test]
#[should_panic(expected = "term 4 is not below 4")]
fn terms_are_below_their_number() {
    let mut builder = SegmentBuilder::new();
    builder.push(&[4]);
    let _ = builder.finish(4);
}

proptest! {
    #[test]
    fn a_builder_sorts_documents_by_terms(
        documents in prop::collection::vec(prop::collection::btree_set(0_u32..9, 0..9), 0..200),
        is_reversed: bool,
    ) {
        let mut builder = SegmentBuilder::new();
        let mut lists = vec![BTreeSet::new(); 9];
        for (id, terms) in (0..).zip(&documents) {
            let mut terms = Vec::from_iter(terms.iter().copied());
            if is_reversed {
                terms.reverse();
            }
            prop_assert_eq!(builder.push(&terms), id);
            for &term in &terms {
                lists[term as usize].insert(id);
            }
        }
        prop_assert_eq!(builder.documents(), narrow(documents.len()));
        prop_assert!(builder.finish(9) == encode(narrow(documents.len()), &lists));
    }
}
