//! Merged segments against segments that are built from all documents.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::{MergePart, MergedLists, MergedTerms, SegmentBytes, merge, merge_ranges};
use super::{Segment, SegmentBuilder, encode, narrow};

/// The segment of documents, whose terms are below `terms`.
fn build(documents: &[BTreeSet<u32>], terms: u32) -> SegmentBytes {
    let mut builder = SegmentBuilder::new();
    for document in documents {
        builder.push(&Vec::from_iter(document.iter().copied()));
    }
    builder.finish(terms)
}

/// Merges by `tasks` tasks of each round.
fn merge_by(
    parts: &[MergePart<'_, SegmentBytes>],
    tasks: usize,
) -> (Vec<u32>, Segment<SegmentBytes>) {
    let ranges = merge_ranges(parts, tasks);
    assert!((1..=tasks).contains(&ranges.len()), "{tasks}: {ranges:?}");
    assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
    // Tasks end in any order.
    let terms = ranges.iter().rev().map(|range| MergedTerms::new(parts, range));
    let mut terms: Vec<_> = terms.collect();
    terms.reverse();
    let (lists, mut runs) = MergedLists::new(parts, terms, tasks);
    runs.iter_mut().rev().for_each(|run| lists.write(parts, run));
    lists.finish(runs)
}

proptest! {
    #[test]
    fn a_merge_is_the_segment_of_all_documents(
        parts in prop::collection::vec(
            prop::collection::vec(prop::collection::btree_set(0_u32..60, 0..11), 0..300), 0..4),
        tasks in 1_usize..9,
        spread in 1_u32..9,
    ) {
        // Part `p` lacks some terms, and a term of all parts has a number that is `spread` times
        // as large.
        let terms_of = |part: u32| (0..60).filter(move |term| !(term + part).is_multiple_of(5));
        let (mut all, mut used) = (Vec::new(), BTreeSet::new());
        let mut segments: Vec<(Segment<SegmentBytes>, Vec<u32>)> = Vec::new();
        for (part, documents) in (0..).zip(&parts) {
            let terms: Vec<u32> = terms_of(part).collect();
            let own = |document: &BTreeSet<u32>| -> BTreeSet<u32> {
                document.iter().copied().filter(|term| terms.contains(term)).collect()
            };
            let documents: Vec<_> = documents.iter().map(own).collect();
            let place = |term: &u32| narrow(terms.binary_search(term).unwrap());
            let local: Vec<_> =
                documents.iter().map(|document| document.iter().map(place).collect()).collect();
            segments.push((
                Segment::new(build(&local, narrow(terms.len()))).unwrap(),
                terms.iter().map(|term| term * spread).collect(),
            ));
            used.extend(terms);
            all.extend(documents);
        }
        let used = Vec::from_iter(used);
        let place = |term: &u32| narrow(used.binary_search(term).unwrap());
        let all: Vec<_> =
            all.iter().map(|document| document.iter().map(place).collect()).collect();
        let numbers: Vec<u32> = used.iter().map(|term| term * spread).collect();
        let merged: Vec<_> = segments
            .iter()
            .map(|(segment, numbers)| MergePart { segment, numbers: Some(numbers) })
            .collect();
        let expected = build(&all, narrow(used.len()));
        for (found, merged) in [merge_by(&merged, tasks), merge(&merged)] {
            prop_assert_eq!(&found, &numbers);
            prop_assert!(merged.as_bytes() == expected.as_ref());
            let copy = SegmentBytes::copy_of(merged.as_bytes()).unwrap();
            prop_assert!(Segment::new(copy).is_ok());
        }
    }
}

#[test]
fn lists_of_all_forms_are_merged() {
    let every = |documents: u32, step: usize| (0..documents).step_by(step).collect();
    let steps = [2, 70, 900, 9_000, 90_000].into_iter().cycle().take(60);
    let lists: Vec<BTreeSet<u32>> = steps.map(|step| every(100_000, step)).collect();
    let segment = Segment::new(encode(100_000, &lists)).unwrap();
    let part = || MergePart { segment: &segment, numbers: None };
    let twice = |list: &BTreeSet<u32>| list.iter().flat_map(|&id| [id, id + 100_000]).collect();
    let expected = encode(200_000, &lists.iter().map(twice).collect::<Vec<_>>());
    for tasks in [1, 2, 3, 8, 100] {
        let (numbers, merged) = merge_by(&[part(), part()], tasks);
        assert!(numbers.into_iter().eq(0..60), "{tasks} tasks");
        assert!(merged.as_bytes() == expected.as_ref(), "{tasks} tasks");
    }
}

fn segment(documents: u32) -> Segment<SegmentBytes> {
    Segment::new(encode(documents, &[BTreeSet::new(), BTreeSet::new()])).unwrap()
}

#[test]
#[should_panic(expected = "the numbers of a part ascend")]
fn terms_of_a_part_keep_apart() {
    let _ = merge(&[MergePart { segment: &segment(1), numbers: Some(&[3, 3]) }]);
}

#[test]
#[should_panic(expected = "1 numbers for 2 terms")]
fn all_terms_of_a_part_are_numbered() {
    let _ = merge(&[MergePart { segment: &segment(1), numbers: Some(&[3]) }]);
}

#[test]
#[should_panic(expected = "at most u32::MAX documents")]
fn a_merge_has_at_most_the_maximum_number_of_documents() {
    let (most, one) = (segment(u32::MAX), segment(1));
    let _ = merge(&[&most, &one].map(|segment| MergePart { segment, numbers: None }));
}
