//! Queries of all mixes of lists.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;

use super::Index;

/// The ids of a list below `documents`.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Ids spread over all documents.
    Spread,
    /// Ids in one bucket or a few.
    Crowded,
    /// The last documents.
    Last,
    /// The first documents.
    First,
}

/// A list of about `len` ids.
fn list(documents: u32, shape: Shape, len: u32, seed: u32) -> BTreeSet<u32> {
    let len = len.min(documents);
    let mix = |i: u32| i.wrapping_mul(0x9e37_79b1).wrapping_add(seed.wrapping_mul(0x85eb_ca6b));
    let base = seed % documents;
    let ids = (0..len).map(|i| match shape {
        Shape::Spread => mix(i) % documents,
        Shape::Crowded => base.saturating_add(mix(i) % (2 * len)).min(documents - 1),
        Shape::Last => documents - 1 - i,
        Shape::First => i,
    });
    ids.collect()
}

fn documents() -> impl Strategy<Value = u32> {
    select(vec![1, 33, 500, 65_535, 65_537, 150_000, 3_000_000, u32::MAX])
}

fn lists(documents: u32) -> impl Strategy<Value = Vec<BTreeSet<u32>>> {
    let len = select(vec![
        0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 100, 300, 1_000, 4_000, 20_000, 65_535, 65_536, 65_537,
    ]);
    let shape =
        select(vec![Shape::Spread, Shape::Spread, Shape::Crowded, Shape::Last, Shape::First]);
    let list = (shape, len, any::<u32>())
        .prop_map(move |(shape, len, seed)| list(documents, shape, len, seed));
    prop::collection::vec(list, 1..7)
}

/// Lists; some lists have the ids of the previous list and more.
fn index() -> impl Strategy<Value = Index> {
    documents().prop_flat_map(|documents| {
        (lists(documents), any::<u8>()).prop_map(move |(mut lists, nested)| {
            for at in 1..lists.len() {
                if nested >> at & 1 != 0 {
                    let inner = lists[at - 1].clone();
                    lists[at].extend(inner);
                }
            }
            Index::new(documents, lists)
        })
    })
}

impl std::fmt::Debug for Index {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lens = self.lists.iter().map(BTreeSet::len);
        formatter.debug_list().entry(&self.documents).entries(lens).finish()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn queries_of_all_forms_agree_with_sets(
        index in index(),
        queries in prop::collection::vec(prop::collection::vec(0_u32..7, 0..5), 6),
    ) {
        for terms in &queries {
            index.check(terms);
        }
        for left in 0..7 {
            (0..left).for_each(|right| index.check(&[left, right]));
        }
    }

    #[test]
    fn queries_within_documents_agree_with_sets(
        index in index().prop_filter("bits of all documents", |index| index.documents < 4_000_000),
        shape in select(vec![Shape::Spread, Shape::Crowded, Shape::First]),
        len in select(vec![0, 1, 17, 1_000, 50_000]),
        seed: u32,
        terms in prop::collection::vec(0_u32..7, 0..4),
    ) {
        let within = list(index.documents, shape, len, seed);
        index.check_within(&terms, &within);
        (0..index.segment.terms()).for_each(|term| index.check_within(&[term], &within));
    }
}

#[test]
fn skewed_buckets_are_searched_whole() {
    // One bucket has 5,000 halves, and its neighbours have no halves.
    let crowd: BTreeSet<u32> = (700_000..705_000).chain([0, 999_999]).collect();
    let probes: BTreeSet<u32> = (0..200).map(|i| 699_900 + 27 * i).collect();
    let other: BTreeSet<u32> = (0..1_000).map(|i| 997 * i).collect();
    let index = Index::new(1_000_000, vec![crowd, probes, other]);
    for terms in [&[0, 1][..], &[0, 2], &[1, 2], &[0, 1, 2]] {
        index.check(terms);
    }
}

#[test]
fn queries_of_many_terms_and_repeated_ones_agree() {
    let lists = (0..100).map(|term: u32| (0..20_000).filter(|id| id % (term + 2) != 1).collect());
    let index = Index::new(20_000, lists.chain([(0..900).collect()]).collect());
    let all: Vec<u32> = (0..101).collect();
    index.check(&all);
    index.check(&all[..100]);
    index.check(&[3, 3, 3]);
    index.check(&[100, 3, 100, 3]);
}

#[test]
fn unknown_terms_and_empty_queries_have_no_documents() {
    let index = Index::new(100, vec![(0..100).collect(), BTreeSet::new()]);
    for terms in [&[][..], &[1], &[0, 1], &[2], &[0, 2], &[u32::MAX], &[0, u32::MAX]] {
        assert_eq!(index.expected(terms), []);
        index.check(terms);
        index.check_within(terms, &(0..50).collect());
        assert_eq!(index.segment.shortest(terms), 0);
    }
    assert_eq!(index.segment.shortest(&[0, 0]), 100);
}

#[test]
#[should_panic(expected = "document 100 is not below 100")]
fn documents_of_another_segment_are_refused() {
    let index = Index::new(100, vec![BTreeSet::new()]);
    index.check_within(&[0], &BTreeSet::from([100]));
}
