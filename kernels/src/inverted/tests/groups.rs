//! Lists with groups: which lists have groups, and queries of such lists.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;

use super::{Index, Isa, QueryScratch, narrow};
use crate::inverted::segment::{Form, Row};

/// Runs of `run` documents, a run every `step` documents, of at most `len` ids below `documents`.
fn runs(documents: u32, begin: u32, step: u32, run: u32, len: usize) -> BTreeSet<u32> {
    let begins = (begin..documents).step_by(step as usize);
    let ids = begins.flat_map(|begin| begin..documents.min(begin.saturating_add(run)));
    ids.take(len).collect()
}

/// The number of groups of each list; zero for a list without groups.
fn groups(index: &Index) -> Vec<u32> {
    let view = index.segment.view();
    let of = |row: &[u32; 4]| {
        let row = Row(row);
        if row.form() == Some(Form::Inline) { 0 } else { row.size().groups }
    };
    view.rows().iter().map(of).collect()
}

#[test]
fn lists_have_groups_if_their_ids_are_close() {
    let documents = 1 << 20;
    let lists = vec![
        // A list in buckets with 32 ids in a group.
        runs(documents, 100, 4_096, 32, usize::MAX),
        // A list in buckets with an id in each group.
        runs(documents, 0, 128, 1, usize::MAX),
        // A bitmap with a sixteenth of the groups.
        runs(documents, 0, 1_024, 40, usize::MAX),
        // A bitmap with an id in each group.
        runs(documents, 0, 64, 1, usize::MAX),
        // A list with too few ids.
        runs(documents, 0, 4_096, 32, 100),
        BTreeSet::from([5, 6]),
    ];
    assert_eq!(groups(&Index::new(documents, lists)), [512, 0, 1_024, 0, 0, 0]);
}

#[test]
fn lines_at_the_ends_of_documents_are_found() {
    for documents in [65_535, 65_536, 65_537, 100_000, 1 << 17] {
        let first = runs(documents, 0, 64 * 7, 60, usize::MAX);
        let mut second = runs(documents, 64 * 7, 64 * 21, 64, usize::MAX);
        second.extend(documents - 70..documents);
        let mut third: BTreeSet<u32> = runs(documents, 0, 30_000, 900, usize::MAX);
        third.extend(documents - 3..documents);
        let all = (0..documents).collect();
        let index = Index::new(documents, vec![first, second, third, all]);
        assert!(groups(&index)[..3].iter().all(|&groups| groups > 0), "{documents}");
        for terms in [&[0, 1][..], &[0, 2], &[1, 2], &[2, 3], &[0, 3], &[0, 1, 2, 3], &[3, 1, 1]] {
            index.check(terms);
        }
    }
}

#[test]
fn ids_near_the_maximum_have_groups() {
    let last = u32::MAX - 1;
    let crowd = |begin: u32, len: u32| (begin..=begin + len).collect::<BTreeSet<u32>>();
    // A summary of so many documents pays only for long lists.
    let lists = vec![crowd(last - 2_500_000, 2_500_000), crowd(last - 2_400_000, 2_400_000)];
    let index = Index::new(u32::MAX, lists);
    let mut scratch = QueryScratch::new();
    for isa in Isa::available() {
        assert_eq!(index.segment.count(isa, &[0, 1], &mut scratch), 2_400_001, "{isa}");
    }
}

#[test]
fn more_lists_than_are_combined_by_groups_agree() {
    let list = |term: u32| runs(100_000, 64 * (term % 3), 64 * 9, 64 * 4, usize::MAX);
    let index = Index::new(100_000, (0..20).map(list).collect());
    for len in [2, 7, 8, 9, 20] {
        index.check(&Vec::from_iter(0..len));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn queries_of_lists_with_groups_agree_with_sets(
        documents in select(vec![32_767_u32, 32_768, 32_769, 65_535, 65_536, 65_537, 200_000]),
        shapes in prop::collection::vec(
            (0..3_000_u32, 1..5_000_u32, 1..700_u32, select(vec![3_usize, 60, 400, 9_000, 300_000])),
            2..6,
        ),
        nested: u8,
    ) {
        let list = |&(begin, step, run, len): &(u32, u32, u32, usize)| {
            runs(documents, begin, step, run, len)
        };
        let mut lists: Vec<BTreeSet<u32>> = shapes.iter().map(list).collect();
        for at in 1..lists.len() {
            if nested >> at & 1 != 0 {
                let inner = lists[at - 1].clone();
                lists[at].extend(inner);
            }
        }
        let index = Index::new(documents, lists);
        let terms = narrow(index.lists.len());
        for left in 0..terms {
            (0..left).for_each(|right| index.check(&[left, right]));
        }
        index.check(&Vec::from_iter(0..terms));
        index.check_within(&[0, 1], &runs(documents, 0, 300, 100, usize::MAX));
    }
}
