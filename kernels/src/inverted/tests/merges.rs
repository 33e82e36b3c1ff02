//! Merged segments against segments that are built from all documents.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::{MergePart, merge};
use super::{Segment, SegmentBuilder, encode, narrow};

/// The segment of documents, whose terms are below `terms`.
fn build(documents: &[BTreeSet<u32>], terms: u32) -> super::SegmentBytes {
    let mut builder = SegmentBuilder::new();
    for document in documents {
        builder.push(&Vec::from_iter(document.iter().copied()));
    }
    builder.finish(terms)
}

proptest! {
    #[test]
    fn a_merge_is_the_segment_of_all_documents(
        parts in prop::collection::vec(
            prop::collection::vec(prop::collection::btree_set(0_u32..11, 0..11), 0..300), 0..4),
    ) {
        // The new number of term `t` of part `p` is `(t + 5 p) % 13`.
        let maps: Vec<Vec<u32>> =
            (0..narrow(parts.len())).map(|p| (0..11).map(|t| (t + 5 * p) % 13).collect()).collect();
        let mut all = Vec::new();
        let mut segments = Vec::new();
        for (part, map) in parts.iter().zip(&maps) {
            let renumber = |terms: &BTreeSet<u32>| terms.iter().map(|&t| map[t as usize]).collect();
            all.extend(part.iter().map(renumber));
            segments.push(Segment::new(build(part, 11)).unwrap());
        }
        let merged: Vec<_> = segments
            .iter()
            .zip(&maps)
            .map(|(segment, terms)| MergePart { segment, terms })
            .collect();
        let merged = merge(&merged, 13);
        prop_assert!(merged == build(&all, 13));
        prop_assert!(Segment::new(merged).is_ok());
    }
}

#[test]
fn lists_of_all_forms_are_merged() {
    let every = |documents: u32, step: usize| (0..documents).step_by(step).collect();
    let lists: Vec<BTreeSet<u32>> = [2, 70, 900, 9_000].map(|step| every(100_000, step)).to_vec();
    let segment = Segment::new(encode(100_000, &lists)).unwrap();
    let part = || MergePart { segment: &segment, terms: &[0, 1, 2, 3] };
    let twice = |list: &BTreeSet<u32>| list.iter().flat_map(|&id| [id, id + 100_000]).collect();
    let expected = encode(200_000, &lists.iter().map(twice).collect::<Vec<_>>());
    assert!(merge(&[part(), part()], 4) == expected);
}

fn segment(documents: u32) -> Segment<super::SegmentBytes> {
    Segment::new(encode(documents, &[BTreeSet::new(), BTreeSet::new()])).unwrap()
}

#[test]
#[should_panic(expected = "terms 0 and 1 have the same new number 3")]
fn terms_of_a_part_keep_apart() {
    let segment = segment(1);
    let _ = merge(&[MergePart { segment: &segment, terms: &[3, 3] }], 4);
}

#[test]
#[should_panic(expected = "1 new numbers for 2 terms")]
fn all_terms_of_a_part_are_numbered() {
    let segment = segment(1);
    let _ = merge(&[MergePart { segment: &segment, terms: &[3] }], 4);
}

#[test]
#[should_panic(expected = "at most u32::MAX documents")]
fn a_merge_has_at_most_the_maximum_number_of_documents() {
    let (most, one) = (segment(u32::MAX), segment(1));
    let terms = &[0, 1];
    let _ = merge(&[&most, &one].map(|segment| MergePart { segment, terms }), 2);
}
