//! Streams cut into batches in every way, against a comparison of each set with all earlier sets.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use proptest::prelude::*;
use trommel_engine::batch::{Batch, Origin, Payload};
use trommel_engine::operator::{Body, Flow, Output};
use trommel_kernels::Isa;

use super::super::candidates::chunk::CandidateChunk;
use super::super::candidates::pairs::matches;
use super::super::similarity::{Bounds, Similarity, Threshold};
use super::operator::{BatchStep, Batcher};
use super::{StreamRules, deduplicate};
use crate::set_similarity_join::parameters::tuning::Tuning;
use crate::shared::budget::Allowance;
use crate::shared::parameters::Names;
use crate::shared::sets::SetSource;
use crate::shared::window::Extent;
use crate::testing::oracle::{Question, SIMILARITIES};
use crate::testing::sets::{self, families, set};

/// A row: an id and a set, or a null.
type Row = (u32, Option<BTreeSet<u32>>);

/// Rows that enter together.
#[derive(Debug, Clone)]
struct Entry {
    after: Duration,
    rows: Vec<Row>,
}

/// The question of a stream.
#[derive(Debug, Clone, Copy)]
struct Case {
    question: Question,
    window: Extent,
    isa: Isa,
    chunk_bytes: usize,
    memory_max: usize,
}

impl Case {
    fn new(question: Question, window: Extent) -> Self {
        let isa = Isa::Scalar;
        Self { question, window, isa, chunk_bytes: 1 << 16, memory_max: 1 << 30 }
    }

    fn rules(self, is_each_pair: bool) -> StreamRules {
        let Question { similarity, numerator, denominator } = self.question;
        let threshold = Threshold::new(numerator, denominator).unwrap();
        StreamRules {
            on_error: None,
            bounds: Bounds::new(similarity, threshold).unwrap(),
            isa: self.isa,
            window: self.window,
            is_each_pair,
            size_min: 1,
            memory: Allowance::new(self.memory_max),
            tuning: Tuning::SMALL,
        }
    }
}

fn records(rows: &[Row]) -> RecordBatch {
    sets::batch(rows.iter().map(|(id, set)| (*id, set.as_ref())))
}

fn payload(entry: &Entry, start: Instant) -> Payload {
    let origin = Origin { sequence: 0, entered: start + entry.after };
    Payload::Batch(Batch { records: records(&entry.rows), origin })
}

fn source() -> SetSource {
    let schema = records(&[]).schema();
    SetSource::bind(&[schema], None, "set", &Names::default()).unwrap().remove(0)
}

/// A pair of the older and the newer id, and the overlap.
type Pair = (u32, u32, u32);

/// The pairs that each batch brings.
fn pairs(case: Case, stream: &[Entry]) -> Vec<Vec<Pair>> {
    let mut batcher = Batcher::new(case.rules(true), source());
    let start = Instant::now();
    let mut chunk = CandidateChunk::with_bytes(case.chunk_bytes);
    let of_batch = |entry: &Entry| {
        batcher.take(payload(entry, start)).unwrap();
        let mut pairs = Vec::new();
        loop {
            match batcher.next(&mut chunk).unwrap() {
                BatchStep::Chunk(sets) => {
                    let overlaps = chunk.verify(case.isa, &sets);
                    let found = matches(&sets, &chunk, &overlaps);
                    let found = found.map(|found| found.pair(case.question.similarity));
                    pairs.extend(found.map(|pair| (pair.left, pair.right, pair.overlap)));
                }
                BatchStep::Settled(_) => {}
                BatchStep::End => break,
            }
        }
        pairs.sort_unstable();
        pairs
    };
    stream.iter().map(of_batch).collect()
}

/// The ids of the rows that pass, by batch, from the operator; ids must be distinct.
fn passing(case: Case, stream: &[Entry]) -> Vec<Vec<u32>> {
    let schema = records(&[]).schema();
    let mut fragment = deduplicate(case.rules(false), source(), &[schema]);
    let Body::Operator(mut operator) = fragment.parts.remove(0).body else { unreachable!() };
    let start = Instant::now();
    let of_batch = |entry: &Entry| {
        let mut out = Output::new();
        let mut flow = operator.process(0, payload(entry, start), &mut out).unwrap();
        while flow == Flow::HaveOutput {
            flow = operator.resume(&mut out).unwrap();
        }
        let ids = |payload: Payload| {
            payload.into_records().column(0).as_primitive::<UInt32Type>().values().to_vec()
        };
        out.drain_sent().flat_map(|(_, payload)| ids(payload)).collect()
    };
    stream.iter().map(of_batch).collect()
}

/// Feeds a stream and calls `look` after each batch. The error is the reason why the stream cannot
/// be joined.
fn feed(
    rules: StreamRules,
    stream: &[Entry],
    mut look: impl FnMut(&Batcher),
) -> Result<(), String> {
    let mut batcher = Batcher::new(rules, source());
    let mut chunk = CandidateChunk::with_bytes(1 << 16);
    for entry in stream {
        batcher.take(payload(entry, Instant::now())).unwrap();
        while !matches!(
            batcher.next(&mut chunk).map_err(|error| error.to_string())?,
            BatchStep::End
        ) {}
        look(&batcher);
    }
    Ok(())
}

fn number(batcher: &Batcher, name: &str) -> u64 {
    batcher.counters().iter().find(|counter| counter.0 == name).unwrap().1
}

/// The sets of a stream in order: batch, id, time and set.
fn sets_of(stream: &[Entry]) -> Vec<(usize, u32, Duration, &BTreeSet<u32>)> {
    let mut latest = Duration::ZERO;
    let mut all = Vec::new();
    for (batch, entry) in stream.iter().enumerate() {
        latest = latest.max(entry.after);
        let sets = entry.rows.iter().filter_map(|(id, set)| Some((*id, set.as_ref()?)));
        all.extend(sets.map(|(id, set)| (batch, id, latest, set)));
    }
    all
}

/// The definition: the pairs that each batch brings.
fn pairs_by_hand(case: Case, stream: &[Entry]) -> Vec<Vec<Pair>> {
    let sets = sets_of(stream);
    let mut pairs = vec![Vec::new(); stream.len()];
    for (newer, &(batch, newer_id, newer_time, b)) in sets.iter().enumerate() {
        for (older, &(_, older_id, older_time, a)) in sets[..newer].iter().enumerate() {
            let is_in_window = match case.window {
                Extent::Items(sets) => ((newer - older) as u64) < sets,
                Extent::Nanoseconds(length) => {
                    newer_time - older_time < Duration::from_nanos(length)
                }
                Extent::Endless => true,
            };
            let overlap = case.question.overlap(a, b).filter(|_| is_in_window);
            pairs[batch].extend(overlap.map(|overlap| (older_id, newer_id, overlap)));
        }
    }
    pairs.iter_mut().for_each(|pairs| pairs.sort_unstable());
    pairs
}

/// The definition: the rows that pass, by batch.
fn passing_by_hand(case: Case, stream: &[Entry]) -> Vec<Vec<u32>> {
    let pairs = pairs_by_hand(case, stream);
    let dropped: BTreeSet<u32> = pairs.iter().flatten().map(|&(_, newer, _)| newer).collect();
    let of_batch = |entry: &Entry| {
        entry.rows.iter().map(|row| row.0).filter(|id| !dropped.contains(id)).collect()
    };
    stream.iter().map(of_batch).collect()
}

/// Checks all answers on one stream; each level has another size of chunks.
fn check(question: Question, window: Extent, stream: &[Entry]) {
    let case = Case::new(question, window);
    let expected = pairs_by_hand(case, stream);
    let firsts = passing_by_hand(case, stream);
    for (isa, chunk_bytes) in Isa::available().zip([1, 90, 1 << 16].into_iter().cycle()) {
        let case = Case { isa, chunk_bytes, ..case };
        assert_eq!(pairs(case, stream), expected, "{case:?}");
        assert_eq!(passing(case, stream), firsts, "{case:?}");
    }
}

/// Batches of `lengths` rows each, over and over, a second apart.
fn cut(sets: &[BTreeSet<u32>], lengths: &[usize]) -> Vec<Entry> {
    let mut rows = (0..).zip(sets).map(|(id, set)| (id, Some(set.clone())));
    let mut stream = Vec::new();
    for (seconds, &length) in (0..).zip(lengths.iter().cycle()) {
        let rows: Vec<Row> = rows.by_ref().take(length).collect();
        if rows.is_empty() {
            return stream;
        }
        stream.push(Entry { after: Duration::from_secs(seconds), rows });
    }
    unreachable!("batches have rows")
}

#[test]
fn pairs_do_not_depend_on_batches() {
    let sets = families(60, 9, 5);
    for length in [1, 2, 5, 20, 59, 60, 1000] {
        for lengths in [&[1][..], &[2], &[7], &[1, 30], &[60], &[16, 8, 4, 2, 1]] {
            check(Question::jaccard(60), Extent::Items(length), &cut(&sets, lengths));
        }
    }
    check(Question::jaccard(60), Extent::Endless, &cut(&sets, &[4, 1]));
}

#[test]
fn a_set_is_remembered_until_it_leaves_the_window() {
    // The same set arrives again after each distance.
    for distance in 1..20_u32 {
        let mut sets: Vec<_> = (0..=distance).map(|other| set(&[1000 + other])).collect();
        sets[0] = set(&[1, 2, 3]);
        sets[distance as usize] = set(&[1, 2, 3]);
        for (length, is_found) in [(distance, false), (distance + 1, true)] {
            let window = Extent::Items(length.into());
            for lengths in [&[1][..], &[3], &[100]] {
                let stream = cut(&sets, lengths);
                let found = pairs(Case::new(Question::jaccard(100), window), &stream).concat();
                assert_eq!(found, if is_found { vec![(0, distance, 3)] } else { vec![] });
                check(Question::jaccard(100), window, &stream);
            }
        }
    }
}

#[test]
fn time_is_that_of_the_batch() {
    let sets: Vec<BTreeSet<u32>> = vec![[1, 2].into(); 9];
    // Batches enter at 0 s, 1 s, .., three sets each.
    let stream = cut(&sets, &[3]);
    let second = 1_000_000_000;
    for length in [1, second - 1, second, second + 1, 2 * second, 2 * second + 1, 10 * second] {
        check(Question::jaccard(100), Extent::Nanoseconds(length), &stream);
    }
    let found =
        |length| pairs(Case::new(Question::jaccard(100), Extent::Nanoseconds(length)), &stream);
    let count = |length| found(length).iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(count(second), [3, 3, 3]);
    assert_eq!(count(second + 1), [3, 12, 12]);
    // A batch that is late counts as entering with the previous batch.
    let mut late = stream;
    late[2].after = Duration::ZERO;
    check(Question::jaccard(100), Extent::Nanoseconds(second), &late);
    assert_eq!(
        pairs(Case::new(Question::jaccard(100), Extent::Nanoseconds(second)), &late)[2].len(),
        3 * 3 + 3
    );
}

#[test]
fn odd_streams_are_joined() {
    let set = |tokens: &[u32]| Some(set(tokens));
    let rows = vec![
        (7, None),
        (3, set(&[])),
        (3, set(&[u32::MAX])),
        (9, set(&[0, u32::MAX])),
        (1, None),
        (2, set(&[])),
        (8, set(&[u32::MAX])),
        (0, set(&[u32::MAX - 1, u32::MAX])),
        (4, set(&[5, 6])),
        (6, set(&[5, 6])),
        (5, set(&[6])),
    ];
    let entry = |rows: &[Row]| Entry { after: Duration::ZERO, rows: rows.to_vec() };
    for question in SIMILARITIES.map(|similarity| match similarity {
        Similarity::Overlap => Question { similarity, numerator: 1, denominator: 1 },
        _ => Question { similarity, numerator: 1, denominator: 2 },
    }) {
        for at in 0..=rows.len() {
            let stream = [entry(&rows[..at]), entry(&[]), entry(&rows[at..])];
            for window in [Extent::Items(1), Extent::Items(4), Extent::Endless] {
                let case = Case::new(question, window);
                assert_eq!(pairs(case, &stream), pairs_by_hand(case, &stream), "{case:?} {at}");
            }
        }
    }
}

#[test]
fn copies_are_remembered_as_long_as_the_last_one() {
    let mut sets = vec![set(&[1, 2, 3, 4]); 10];
    sets.extend((0..5).map(|other| set(&[100 + other])));
    sets.push(set(&[1, 2, 3, 4, 5]));
    sets.push(set(&[1, 2, 3, 4]));
    for length in 1..20 {
        for lengths in [&[1][..], &[2], &[4, 3], &[17]] {
            check(Question::jaccard(80), Extent::Items(length), &cut(&sets, lengths));
        }
    }
}

#[test]
fn tokens_may_come_and_go() {
    // Half of the tokens of a set occur only for a time, and the frequent tokens change.
    let set = |id: u32| {
        let own = (0..6).map(|token| 1000 * (id / 2) + 31 * token * (1 + id % 2 * token / 5));
        let common = (0..6).map(|token| 4_000_000_000 + (id / 100 * 7 + token * token) % 40);
        own.chain(common).collect::<BTreeSet<u32>>()
    };
    let sets: Vec<BTreeSet<u32>> = (0..600).map(set).collect();
    for (window, percent) in
        [(Extent::Items(90), 60), (Extent::Items(7), 80), (Extent::Endless, 30)]
    {
        let stream = cut(&sets, &[23, 1, 8]);
        check(Question::jaccard(percent), window, &stream);
        let mut renumberings = 0;
        let rules = Case::new(Question::jaccard(percent), window).rules(true);
        feed(rules, &stream, |batcher| renumberings = number(batcher, "renumberings")).unwrap();
        assert!((5..150).contains(&renumberings), "{renumberings}");
    }
}

#[test]
fn a_common_token_far_behind_in_a_large_set_is_found() {
    // Positions that exceed the largest position of a posting, on both sides.
    let large = |own: u32| (own..own + 70_000).chain(900_000..903_000).collect::<BTreeSet<u32>>();
    let sets = [large(0), large(100_000), (900_000..902_999).collect(), large(200_000)];
    let question = Question::jaccard(2);
    let stream = cut(&sets, &[1]);
    let case = Case::new(question, Extent::Endless);
    let expected = pairs_by_hand(case, &stream);
    assert!(expected.concat().len() > 3);
    assert_eq!(pairs(case, &stream), expected);
}

#[test]
fn memory_holds_the_window_and_no_more() {
    let sets: Vec<BTreeSet<u32>> =
        (0..4000_u32).map(|id| (0..8).map(|token| id * 8 + token).collect()).collect();
    let window = Extent::Items(400);
    let stream = cut(&sets, &[20]);
    let case = Case::new(Question::jaccard(80), window);
    for memory_max in [1 << 30, 1 << 18] {
        let rules = Case { memory_max, ..case }.rules(true);
        let mut merges = 0;
        feed(rules, &stream, |batcher| {
            assert!(number(batcher, "panes") <= 5 + 3, "five cells, and those that grow");
            let bytes = number(batcher, "state_bytes");
            assert!(bytes < 500 * (8 * 4 + 8 * 80 + 60), "{bytes}");
            merges = number(batcher, "merges");
        })
        .unwrap();
        // A pane is merged when its size has doubled, three times in a cell, and when the cell
        // ends.
        assert!(merges <= 40 * 4);
    }
    let rules = Case { memory_max: 20_000, ..case }.rules(true);
    let error = feed(rules, &stream, |_| {}).unwrap_err();
    assert!(error.contains("20000 allowed (`memory_max`)"), "{error}");
}

/// Joins a stream in shares, in percent, of the memory that the stream takes without a limit. Each
/// share has a flag: whether tokens are numbered less often in that memory.
fn check_in_tight_memory(percent: u32, sets: &[BTreeSet<u32>], shares: &[(u64, bool)]) {
    let stream = cut(sets, &[5, 1]);
    let case = Case::new(Question::jaccard(percent), Extent::Endless);
    let (expected, firsts) = (pairs_by_hand(case, &stream), passing_by_hand(case, &stream));
    for is_each_pair in [true, false] {
        let numbers = |case: Case| {
            let (mut bytes, mut renumberings) = (0, 0);
            feed(case.rules(is_each_pair), &stream, |batcher| {
                bytes = number(batcher, "state_bytes").max(bytes);
                renumberings = number(batcher, "renumberings");
            })
            .unwrap();
            assert!(bytes <= case.memory_max as u64);
            (bytes, renumberings)
        };
        let (bytes, renumberings) = numbers(case);
        for &(share, is_less_often) in shares {
            let memory_max = usize::try_from(bytes * share / 100).unwrap();
            let case = Case { memory_max, ..case };
            let (_, in_it) = numbers(case);
            assert_eq!(in_it < renumberings, is_less_often, "{share}: {in_it} of {renumberings}");
            match is_each_pair {
                true => assert_eq!(pairs(case, &stream), expected),
                false => assert_eq!(passing(case, &stream), firsts),
            }
        }
    }
}

#[test]
fn panes_stay_apart_where_there_is_no_room_for_a_copy() {
    let set = |id: u32| (0..200).map(move |token| (id / 2 * 31 + 3 * token) % 700 + id % 2);
    let sets: Vec<BTreeSet<u32>> = (0..400).map(|id| set(id).collect()).collect();
    check_in_tight_memory(97, &sets, &[(120, false), (140, false), (170, false)]);
}

#[test]
fn tokens_keep_their_numbers_where_there_is_no_room_for_others() {
    // At first, sets of many tokens from a small vocabulary; when memory is used up, sets of new
    // tokens.
    let many = |id: u32| (0..60).map(move |token| (id / 2 * 31 + token * token) % 300 + id % 2);
    let new = |id: u32| (0..8).map(move |token| 1000 + 8 * id + token);
    let sets = (0..400).map(|id| many(id).collect());
    let sets: Vec<BTreeSet<u32>> = sets.chain((0..80).map(|id| new(id).collect())).collect();
    check_in_tight_memory(90, &sets, &[(115, true), (120, true), (130, false)]);
}

#[test]
fn streams_with_more_than_can_be_numbered_are_refused() {
    let case = Case { memory_max: usize::MAX, ..Case::new(Question::jaccard(80), Extent::Endless) };
    let sets: Vec<BTreeSet<u32>> = (0..1 << 13).map(|id| [id].into()).collect();
    let mut stream = cut(&sets, &[1000]);
    feed(case.rules(false), &stream, |_| {}).unwrap();
    stream.push(Entry { after: Duration::ZERO, rows: vec![(0, Some([1 << 13].into()))] });
    let error = feed(case.rules(false), &stream, |_| {}).unwrap_err();
    assert_eq!(error, "too many sets in the window: a streaming join allows at most 8192");

    let overlap = Question { similarity: Similarity::Overlap, numerator: 1, denominator: 1 };
    let case = Case { question: overlap, ..case };
    let tokens = 1 << 10;
    let sets: Vec<BTreeSet<u32>> =
        (0..600).map(|id| (id * tokens..(id + 1) * tokens).collect()).collect();
    let error = feed(case.rules(true), &cut(&sets, &[10]), |_| {}).unwrap_err();
    assert_eq!(error, "too many postings: a streaming join allows at most 524288");
}

fn stream() -> impl Strategy<Value = Vec<Entry>> {
    let set = prop::collection::btree_set(0..24_u32, 0..10);
    let rows = prop::collection::vec(prop::option::weighted(0.95, set), 0..12);
    let entry = (0..4_u64, rows);
    prop::collection::vec(entry, 0..14).prop_map(|entries| {
        let (mut seconds, mut id) = (0, 0);
        let mut numbered = |row| {
            id += 1;
            (id * 7919 % 65_521, row)
        };
        entries
            .into_iter()
            .map(|(after, rows)| {
                seconds += after;
                let rows = rows.into_iter().map(&mut numbered).collect();
                Entry { after: Duration::from_secs(seconds), rows }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn streams_are_joined_as_by_hand(
        stream in stream(),
        length in prop_oneof![1..6_u64, 1..80_u64],
        kind in 0..3,
        similarity in 0..4_usize,
        numerator in 1..=20_u32,
    ) {
        let similarity = SIMILARITIES[similarity];
        let question = match similarity {
            Similarity::Overlap => Question { similarity, numerator: 1 + numerator / 4, denominator: 1 },
            _ => Question { similarity, numerator, denominator: 20 },
        };
        let window = match kind {
            0 => Extent::Endless,
            1 => Extent::Nanoseconds(length * 500_000_000),
            _ => Extent::Items(length),
        };
        check(question, window, &stream);
    }
}

/// Sets that differ in one token, like the lines of a log: each set has a similar set shortly
/// before, so the number of tested postings grows with the stream and not with its square.
#[test]
fn sets_that_are_nearly_equal_are_dropped_in_time_linear_in_their_number() {
    let tested = |sets: u32| {
        let question = Question { similarity: Similarity::Jaccard, numerator: 4, denominator: 5 };
        let mut rules = Case::new(question, Extent::Endless).rules(false);
        rules.tuning = Tuning::default();
        let near = |id| (id, Some((0..19).chain([1_000 + id]).collect()));
        let rows: Vec<Row> = (0..sets).map(near).collect();
        let stream: Vec<Entry> = rows
            .chunks(1_000)
            .map(|rows| Entry { after: Duration::ZERO, rows: rows.to_vec() })
            .collect();
        let mut fragment = deduplicate(rules, source(), &[records(&[]).schema()]);
        let Body::Operator(mut operator) = fragment.parts.remove(0).body else { unreachable!() };
        let mut out = Output::new();
        for entry in &stream {
            let mut flow = operator.process(0, payload(entry, Instant::now()), &mut out).unwrap();
            while flow == Flow::HaveOutput {
                flow = operator.resume(&mut out).unwrap();
            }
        }
        let firsts: usize = out.drain_sent().map(|(_, sent)| sent.items()).sum();
        assert_eq!(firsts, 1);
        operator.counters().iter().find(|counter| counter.0 == "postings").unwrap().1
    };
    let [few, many] = [tested(4_000), tested(16_000)];
    assert!(many < 6 * few, "{few} postings of 4,000 sets, {many} of 16,000");
}
