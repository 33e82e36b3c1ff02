//! Every algorithm on every level against counting by hand, through chunks of every size.

mod pipelines;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use proptest::prelude::*;
use trommel_kernels::Isa;
use trommel_kernels::signatures::{self, Joined};

use super::candidates::pairs::{Match, matches};
use super::candidates::tiles::TileList;
use super::join::JoinQuestion;
use super::parameters::tuning::Tuning;
use super::plan::tiling::TiledRanks;
use super::postings::lists::Planned;
use super::*;
use crate::testing::oracle::{Pairs, Question, SIMILARITIES};
use crate::testing::sets::{families, pair, set};

/// The question as joins take it.
fn asked(question: Question, algorithm: JoinAlgorithm, isa: Isa) -> JoinQuestion {
    let Question { similarity, numerator, denominator } = question;
    let (threshold, tuning) = (Threshold::new(numerator, denominator).unwrap(), Tuning::SMALL);
    let (cores, search_cores, verifies_on_device) = (1, 1, false);
    JoinQuestion {
        similarity,
        threshold,
        algorithm,
        isa,
        cores,
        search_cores,
        verifies_on_device,
        tuning,
    }
}

fn join(
    question: Question,
    sets: &Arc<SetCollection>,
    algorithm: JoinAlgorithm,
    isa: Isa,
) -> SetJoin {
    SetJoin::of(sets, asked(question, algorithm, isa)).unwrap()
}

fn collect(left: &[BTreeSet<u32>], right: Option<&[BTreeSet<u32>]>) -> Arc<SetCollection> {
    let mut sets = SetCollector::new(1 << 30);
    if right.is_some() {
        sets = sets.two_sided();
    }
    let mut add = |side, many: &[BTreeSet<u32>]| {
        for (id, set) in (0..).zip(many) {
            sets.push(side, id, &set.iter().copied().collect::<Vec<_>>()).unwrap();
        }
    };
    add(Side::Left, left);
    right.into_iter().for_each(|right| add(Side::Right, right));
    Arc::new(sets.finish().unwrap())
}

/// Chunk by chunk.
fn pairs_of(mut join: SetJoin, similarity: Similarity, isa: Isa, chunk_bytes: usize) -> Pairs {
    let mut pairs = Pairs::new();
    let sets = join.sets().clone();
    let mut chunk = CandidateChunk::with_bytes(chunk_bytes);
    while join.next_chunk(&mut chunk) {
        assert!(chunk.len() <= (chunk_bytes / 20).max(1), "a chunk is no larger than asked for");
        let overlaps = chunk.verify(isa, &sets);
        let count = chunk.count(isa, &sets);
        let found = matches(&sets, &chunk, &overlaps).map(|found| found.pair(similarity));
        let before = pairs.len() as u64;
        for SimilarPair { left, right, overlap, .. } in found {
            assert!(pairs.insert((left, right, overlap)), "{left}, {right} twice");
        }
        assert_eq!(pairs.len() as u64 - before, count);
    }
    assert!(!join.next_chunk(&mut chunk), "the end stays the end");
    pairs
}

fn check(question: Question, left: &[BTreeSet<u32>], right: Option<&[BTreeSet<u32>]>) {
    let expected = question.pairs(left, right);
    let sets = collect(left, right);
    for (number, algorithm) in JoinAlgorithm::ALL.into_iter().enumerate() {
        // Each level has a size of chunks, and the sizes change from algorithm to algorithm.
        let sizes = [1, 41, 1 << 20].into_iter().cycle().skip(number);
        for (isa, chunk_bytes) in Isa::available().zip(sizes) {
            let found = join(question, &sets, algorithm, isa);
            let pairs = pairs_of(found, question.similarity, isa, chunk_bytes);
            assert_eq!(pairs, expected, "{question:?} {algorithm:?} {isa} {chunk_bytes}");
        }
        let counted = join(question, &sets, algorithm, Isa::Scalar).count();
        assert_eq!(counted.results, expected.len() as u64);
        assert!(counted.verified >= counted.results);
        assert!(counted.postings >= counted.pre_candidates);
    }
}

fn questions() -> impl Iterator<Item = Question> {
    SIMILARITIES.into_iter().flat_map(|similarity| {
        [50, 75, 80, 90, 100].map(|percent| match similarity {
            Similarity::Overlap => Question { similarity, numerator: percent / 10, denominator: 1 },
            _ => Question { similarity, numerator: percent, denominator: 100 },
        })
    })
}

#[test]
fn families_of_sets_of_all_sizes_are_found() {
    for (count, size) in [(40, 4), (40, 12), (20, 40), (10, 130)] {
        let (sets, others) = (families(count, size, size), families(count, size, size + 1));
        let mixed: Vec<_> = sets.iter().step_by(2).chain(&others).cloned().collect();
        for question in questions() {
            check(question, &sets, None);
            check(question, &sets, Some(&mixed));
        }
    }
}

#[test]
fn pairs_on_the_border_are_found_and_those_below_it_are_not() {
    // The required overlap is a whole number that floating point makes larger.
    for (percent, sum, required) in [(80, 63, 28), (80, 126, 56), (90, 19, 9), (90, 38, 18)] {
        for smaller in required..=sum / 2 {
            let [left, right] = pair(sum - smaller, smaller, required);
            let [_, less] = pair(sum - smaller, smaller, required - 1);
            let sets = [left, right, less];
            let similarity = Similarity::Jaccard;
            let question = Question { similarity, numerator: percent, denominator: 100 };
            assert!(question.pairs(&sets, None).contains(&(0, 1, required)));
            assert!(!question.pairs(&sets, None).iter().any(|pair| (pair.0, pair.1) == (0, 2)));
            check(question, &sets, None);
        }
    }
}

#[test]
fn odd_collections_are_joined() {
    let cases: [Vec<BTreeSet<u32>>; 7] = [
        vec![],
        vec![set(&[])],
        vec![set(&[]), set(&[]), set(&[3])],
        vec![set(&[1, 5, 9]); 10],
        vec![set(&[u32::MAX]), set(&[0, u32::MAX]), set(&[u32::MAX - 1, u32::MAX]), set(&[0])],
        (0..30).map(|other| set(&[7, 100 + other % 3, 200 + other])).collect(),
        (0..40).map(|len| (0..=len).collect()).collect(),
    ];
    for (number, sets) in cases.iter().enumerate() {
        for question in questions() {
            check(question, sets, None);
            check(question, sets, Some(&cases[(number + 3) % cases.len()]));
        }
    }
}

#[test]
fn positions_beyond_those_that_postings_know_are_right() {
    // The common tokens of two large sets are the most frequent tokens, so the first common token
    // is at the far end of both prefixes.
    let large = |own: u32| (own..own + 70_000).chain(900_000..903_000).collect::<BTreeSet<u32>>();
    let mut sets = vec![large(0), large(100_000), large(200_000)];
    sets.extend((0..4).map(|extra| (900_000..903_000 - extra).collect()));
    let question = Question { similarity: Similarity::Jaccard, numerator: 2, denominator: 100 };
    let expected = question.pairs(&sets, None);
    assert!(expected.contains(&(0, 1, 3_000)));
    let collection = collect(&sets, None);
    for isa in Isa::available() {
        let found = join(question, &collection, JoinAlgorithm::Auto, isa);
        assert_eq!(pairs_of(found, question.similarity, isa, 1 << 20), expected, "{isa}");
    }
}

#[test]
fn sets_that_do_not_fit_are_refused() {
    let mut sets = SetCollector::new(1000);
    let error = sets.push(Side::Left, 7, &[2, 2]).unwrap_err().to_string();
    assert!(error.contains("invalid set with id 7"), "{error}");
    let error = (0..).find_map(|id| sets.push(Side::Left, id, &[1, 2, 3]).err()).unwrap();
    assert!(error.to_string().contains("`memory_max`"), "{error}");
    let collect = |memory_max, sizes: std::ops::Range<u32>| {
        let mut sets = SetCollector::new(memory_max);
        for (id, size) in (0..).zip(sizes) {
            sets.push(Side::Left, id, &(id..id + size).collect::<Vec<u32>>())?;
        }
        sets.finish()
    };
    // The signatures of all sets, which `auto` may choose, too, need less memory than the
    // collection of the sets has freed, so these algorithms cannot fail.
    let is_indexed = |algorithm: &JoinAlgorithm| {
        !matches!(algorithm, JoinAlgorithm::GpuSignatures | JoinAlgorithm::Auto)
    };
    for algorithm in JoinAlgorithm::ALL.into_iter().filter(is_indexed) {
        let sizes = 1..24;
        let fits = |memory_max: &usize| collect(*memory_max, sizes.clone()).is_ok();
        let memory_max = (0..).step_by(100).find(fits).unwrap();
        let refused = collect(memory_max - 100, sizes.clone()).unwrap_err().to_string();
        assert!(refused.contains(&format!("{} allowed", memory_max - 100)), "{refused}");
        let sets = Arc::new(collect(memory_max, sizes).unwrap());
        let threshold = Threshold::new(1, 24).unwrap();
        let join = SetJoin::new(&sets, Similarity::Jaccard, threshold, algorithm, Isa::Scalar);
        let error = join.unwrap_err().to_string();
        assert!(error.contains("not enough memory for the index"), "{algorithm:?}: {error}");
    }
}

/// All pairs of a join that has a part of its probes in tiles.
fn pairs_of_divided(
    mut join: SetJoin,
    similarity: Similarity,
    isa: Isa,
    list_bytes: usize,
) -> Pairs {
    let mut pairs = Pairs::new();
    let sets = join.sets().clone();
    let mut list = TileList::with_bytes(list_bytes);
    let mut answer = Joined::default();
    while let Some(tiled) = join.next_tiles(&mut list) {
        let tiles = tiled.tiles(&list.tiles, &list.required);
        signatures::join(isa, tiled.signatures(isa), tiles, usize::MAX, &mut answer);
        for found in &answer.matches {
            let found = Match::new(&sets, found.probe, found.candidate, found.overlap);
            let SimilarPair { left, right, overlap, .. } = found.pair(similarity);
            assert!(pairs.insert((left, right, overlap)), "{left}, {right} twice");
        }
    }
    let others = pairs_of(join, similarity, isa, 1 << 20);
    assert!(pairs.is_disjoint(&others));
    pairs.extend(others);
    pairs
}

#[test]
fn sizes_may_be_divided_between_tiles_and_postings() {
    let (sets, others) = (families(60, 9, 7), families(60, 12, 8));
    let divisions: [fn(usize) -> bool; 5] =
        [|_| true, |_| false, |rank| rank % 2 == 0, |rank| rank % 2 == 1, |rank| rank > 4];
    for question in questions() {
        for right in [None, Some(&others[..])] {
            let expected = question.pairs(&sets, right);
            let collection = collect(&sets, right);
            for (division, isa) in divisions
                .into_iter()
                .zip(Isa::available().collect::<Vec<_>>().into_iter().rev().cycle())
            {
                let ranks = (0..collection.sizes().len()).map(division).collect();
                let tiled = TiledRanks { ranks, has_others: true };
                let asked = asked(question, JoinAlgorithm::Auto, isa);
                let join =
                    SetJoin::with_tiles(&collection, asked, tiled, Planned::default()).unwrap();
                let pairs = pairs_of_divided(join, question.similarity, isa, 2000);
                assert_eq!(pairs, expected, "{question:?} {isa}");
            }
        }
    }
}

/// All pairs of a join whose slices several tasks search in turn, and the number of candidates of
/// each task.
fn pairs_of_searches(
    mut join: SetJoin,
    similarity: Similarity,
    isa: Isa,
    chunk_bytes: usize,
) -> (Pairs, Vec<usize>) {
    let (mut pairs, mut found_by) = (Pairs::new(), Vec::new());
    let sets = join.sets().clone();
    let mut chunk = CandidateChunk::with_bytes(chunk_bytes);
    let mut under_way = VecDeque::new();
    loop {
        while let Some(task) = join.next_search() {
            under_way.push_back((found_by.len(), task));
            found_by.push(0);
        }
        let Some((number, mut task)) = under_way.pop_front() else { break };
        assert!(join.is_searching());
        chunk.clear();
        let has_more = task.fill(&mut chunk);
        assert!(chunk.len() <= (chunk_bytes / 20).max(1));
        let overlaps = chunk.verify(isa, &sets);
        for found in matches(&sets, &chunk, &overlaps) {
            let SimilarPair { left, right, overlap, .. } = found.pair(similarity);
            assert!(pairs.insert((left, right, overlap)), "{left}, {right} twice");
        }
        found_by[number] += chunk.len();
        join.search_returned(&mut task);
        if has_more {
            under_way.push_back((number, task));
        } else {
            join.search_landed(task);
        }
    }
    assert!(!join.is_searching());
    let counters = join.counters();
    assert_eq!(counters.candidates, found_by.iter().sum::<usize>() as u64);
    (pairs, found_by)
}

#[test]
fn searches_share_slices_that_others_have_built() {
    // Nearly all pairs of postings are in one list.
    let heavy: Vec<BTreeSet<u32>> =
        (0..300).map(|own| set(&[7, 1000 + own % 40, 2000 + own % 30, 3000 + own])).collect();
    let (sets, others) = (families(60, 9, 7), families(60, 12, 8));
    let three_in_ten = Question::jaccard(30);
    for (sets, right, question) in [
        (&heavy, None, three_in_ten),
        (&heavy, Some(&heavy[..90]), three_in_ten),
        (&sets, None, Question::jaccard(50)),
        (&sets, Some(&others[..]), Question::jaccard(75)),
    ] {
        let expected = question.pairs(sets, right);
        let collection = collect(sets, right);
        for (isa, search_cores) in Isa::available().flat_map(|isa| [2, 3, 8].map(|n| (isa, n))) {
            for chunk_bytes in [1, 400] {
                let asked = asked(question, JoinAlgorithm::Auto, isa);
                let asked = JoinQuestion { search_cores, ..asked };
                let ranks = vec![false; collection.sizes().len()];
                let tiled = TiledRanks { ranks, has_others: true };
                let planned = Planned::default();
                let join = SetJoin::with_tiles(&collection, asked, tiled, planned).unwrap();
                let (pairs, found_by) =
                    pairs_of_searches(join, question.similarity, isa, chunk_bytes);
                assert_eq!(pairs, expected, "{question:?} {isa} {search_cores} {chunk_bytes}");
                let most = found_by.iter().max().unwrap();
                let all: usize = found_by.iter().sum();
                assert!(most * 2 <= all + found_by.len(), "{most} of {all}");
            }
        }
    }
}

/// A tile with more sizes than a short list has room for.
#[test]
fn tiles_of_many_sizes_come_in_lists_of_any_length() {
    let sets: Vec<BTreeSet<u32>> = (1..=150).map(|size| (0..size).collect()).collect();
    let question = Question { similarity: Similarity::Jaccard, numerator: 1, denominator: 2 };
    let collection = collect(&sets, None);
    for list_bytes in [0, 800, 1000, 3000, 1 << 20] {
        let (isa, tiled) = (Isa::Scalar, TiledRanks::all(&collection));
        let asked = asked(question, JoinAlgorithm::GpuSignatures, isa);
        let join = SetJoin::with_tiles(&collection, asked, tiled, Planned::default()).unwrap();
        let pairs = pairs_of_divided(join, question.similarity, isa, list_bytes);
        assert_eq!(pairs, question.pairs(&sets, None), "{list_bytes}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn all_algorithms_agree_with_counting_by_hand(
        sets in prop::collection::vec(prop::collection::btree_set(0..40_u32, 0..16), 0..30),
        others in prop::collection::vec(prop::collection::btree_set(0..40_u32, 0..16), 0..20),
        scale in prop_oneof![Just(1), Just(100_000_000)],
        similarity in 0..3_usize,
        numerator in 1..=20_u32,
    ) {
        let scaled = |sets: Vec<BTreeSet<u32>>| -> Vec<BTreeSet<u32>> {
            sets.into_iter().map(|set| set.into_iter().map(|token| token * scale).collect()).collect()
        };
        let (sets, others) = (scaled(sets), scaled(others));
        let similarity = SIMILARITIES[similarity];
        let question = Question { similarity, numerator, denominator: 20 };
        check(question, &sets, None);
        check(question, &sets, Some(&others));
    }
}
