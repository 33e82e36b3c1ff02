//! Every level of the machine against a loop of three lines that calls no code of the crate.

use proptest::prelude::*;

use super::*;
use crate::simd::Base;

/// Sets, and pairs among them with their required overlaps.
#[derive(Clone, Debug, Default)]
struct Case {
    offsets: Vec<u32>,
    tokens: Vec<u32>,
    entries: Vec<Entry>,
    candidates: Vec<u32>,
    required: Vec<u32>,
    starts: Vec<Start>,
}

impl Case {
    fn new(sets: &[Vec<u32>]) -> Self {
        let mut case = Self { offsets: vec![0], ..Self::default() };
        for set in sets {
            case.tokens.extend(set);
            case.offsets.push(narrow(case.tokens.len()));
        }
        case
    }

    /// Adds an entry; a candidate is a set, its required overlap, and the token at which it
    /// starts.
    fn entry(&mut self, probe: usize, candidates: &[(usize, u32, u32)]) {
        let begin = narrow(self.candidates.len());
        for &(candidate, required, from) in candidates {
            let (left, right) = (self.sets().set(probe), self.sets().set(candidate));
            let settled = |set: &[u32]| narrow(set.iter().filter(|token| **token < from).count());
            let both = left.iter().filter(|token| **token < from && right.contains(token));
            let start = Start {
                probe: settled(left),
                candidate: settled(right),
                overlap: narrow(both.count()),
            };
            self.starts.push(start);
            self.candidates.push(narrow(candidate));
            self.required.push(required);
        }
        let end = narrow(self.candidates.len());
        self.entries.push(Entry { probe: narrow(probe), begin, end });
    }

    /// Every set with every set, with required overlaps around the true overlaps.
    fn all_with_all(sets: &[Vec<u32>], from: u32) -> Self {
        let mut case = Self::new(sets);
        for probe in 0..sets.len() {
            let candidates: Vec<_> = (0..sets.len())
                .flat_map(|candidate| {
                    let truth = by_hand(&sets[probe], &sets[candidate]);
                    [0, truth.saturating_sub(1), truth, truth + 1, u32::MAX]
                        .map(|required| (candidate, required, from))
                })
                .collect();
            case.entry(probe, &candidates);
        }
        case
    }

    fn sets(&self) -> Sets<'_> {
        Sets::new(&self.offsets, &self.tokens)
    }

    fn pairs(&self) -> Pairs<'_> {
        let chunk = Chunk {
            entries: &self.entries,
            candidates: &self.candidates,
            required: &self.required,
            starts: &self.starts,
        };
        Pairs { probes: self.sets(), candidates: self.sets(), chunk }
    }

    fn check(&self) {
        let mut expected = Vec::new();
        for entry in &self.entries {
            for pair in entry.begin as usize..entry.end as usize {
                let candidate = self.sets().set(self.candidates[pair] as usize);
                let overlap = by_hand(self.sets().set(entry.probe as usize), candidate);
                expected.push(if overlap >= self.required[pair] { overlap } else { REJECTED });
            }
        }
        let accepted = expected.iter().filter(|overlap| **overlap != REJECTED).count() as u64;
        let from_the_first = Chunk { starts: &[], ..self.pairs().chunk };
        for chunk in [self.pairs().chunk, from_the_first] {
            let pairs = Pairs { chunk, ..self.pairs() };
            for isa in Isa::available() {
                let mut overlaps = vec![7; expected.len()];
                verify(isa, pairs, &mut overlaps);
                assert_eq!(overlaps, expected, "{isa}");
                assert_eq!(count(isa, pairs), accepted, "{isa}");
                // The level without its extension gives the same answers.
                let sink = WriteOverlaps { overlaps: &mut overlaps };
                dispatch::<Base, _>(isa, Verify { pairs, sink });
                assert_eq!(overlaps, expected, "registers of {isa}");
                let sink = CountPairs { count: 0 };
                let counted = dispatch::<Base, _>(isa, Verify { pairs, sink });
                assert_eq!(counted.count, accepted, "registers of {isa}");
            }
        }
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

fn by_hand(left: &[u32], right: &[u32]) -> u32 {
    narrow(left.iter().filter(|token| right.contains(token)).count())
}

/// A set of `len` tokens, at distances of `step` on average.
fn set(len: usize, step: u32, seed: u32) -> Vec<u32> {
    let mut state = seed.wrapping_mul(2_654_435_769) | 1;
    let mut token = 0;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            token += 1 + (state >> 16) % (2 * step - 1).max(1);
            token
        })
        .collect()
}

#[test]
fn all_sizes_around_a_register_match_the_loop() {
    let sizes = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 65];
    for step in [1, 2, 5] {
        let sets: Vec<_> =
            (0..).zip(sizes).map(|(seed, size)| set(size, step, seed * 3 + step)).collect();
        for from in [0, 9, 40] {
            Case::all_with_all(&sets, from).check();
        }
    }
}

#[test]
fn skewed_and_disjoint_and_equal_sets_match_the_loop() {
    let even: Vec<u32> = (0..500).map(|token| token * 2).collect();
    let odd: Vec<u32> = (0..500).map(|token| token * 2 + 1).collect();
    let all: Vec<u32> = (0..1000).collect();
    let extreme = vec![0, 1, 998, 999, u32::MAX - 1, u32::MAX];
    let sets = [even, odd, all, vec![999], vec![0], vec![], extreme, (300..340).collect()];
    Case::all_with_all(&sets, 0).check();
    Case::all_with_all(&sets, 320).check();
}

#[test]
fn a_chunk_may_begin_and_end_at_any_candidate() {
    let sets: Vec<_> = (0..12).map(|seed| set(20, 2, seed)).collect();
    for size in 1..12 {
        let mut case = Case::new(&sets);
        for probe in [3, 3, 0, 11] {
            let candidates: Vec<_> = (0..12).map(|candidate| (candidate, 8, 0)).collect();
            for part in candidates.chunks(size) {
                case.entry(probe, part);
            }
            case.entry(probe, &[]);
        }
        case.check();
    }
}

#[test]
fn no_pairs_and_no_sets_are_no_work() {
    Case::new(&[]).check();
    Case::new(&[vec![], vec![1]]).check();
}

#[test]
fn two_collections_may_be_joined() {
    let (left, right) = (Case::new(&[vec![1, 2, 3]]), Case::new(&[vec![], vec![2, 3, 4]]));
    let entries = [Entry { probe: 0, begin: 0, end: 2 }];
    let chunk = Chunk { entries: &entries, candidates: &[0, 1], required: &[1, 2], starts: &[] };
    let pairs = Pairs { probes: left.sets(), candidates: right.sets(), chunk };
    for isa in Isa::available() {
        let mut overlaps = [0; 2];
        verify(isa, pairs, &mut overlaps);
        assert_eq!((overlaps, count(isa, pairs)), ([REJECTED, 2], 1), "{isa}");
    }
}

/// One pair of two sets of two tokens, changed by the caller.
fn broken(change: impl FnOnce(&mut Case)) {
    let mut case = Case::new(&[vec![1, 2], vec![2, 3]]);
    case.entry(0, &[(1, 1, 0)]);
    change(&mut case);
    let mut overlaps = vec![0; case.candidates.len()];
    verify(Isa::Scalar, case.pairs(), &mut overlaps);
}

#[test]
#[should_panic(expected = "candidate 2 of 2 sets")]
fn a_candidate_that_is_no_set_is_refused() {
    broken(|case| case.candidates[0] = 2);
}

#[test]
#[should_panic(expected = "probe 2 of 2 sets in entry 0")]
fn a_probe_that_is_no_set_is_refused() {
    broken(|case| case.entries[0].probe = 2);
}

#[test]
#[should_panic(expected = "does not begin at candidate 0")]
fn a_gap_between_entries_is_refused() {
    broken(|case| case.entries[0].begin = 1);
}

#[test]
#[should_panic(expected = "the entries end at 1 of 2 candidates")]
fn candidates_without_an_entry_are_refused() {
    broken(|case| {
        case.candidates.push(0);
        case.required.push(0);
        case.starts.push(Start::default());
    });
}

#[test]
#[should_panic(expected = "of pair 0, of sets of 2 and 2")]
fn a_start_behind_its_set_is_refused() {
    broken(|case| case.starts[0].probe = 3);
}

/// Settled tokens are tokens of their sets, and common tokens are settled in both.
#[test]
fn a_device_gets_starts_within_their_sets_only() {
    for number in 0..64 {
        let (probe, candidate, overlap) = (number / 16, number / 4 % 4, number % 4);
        let start = Start { probe, candidate, overlap };
        let mut case = Case::new(&[vec![1, 2], vec![2, 3, 4]]);
        case.entry(0, &[(1, 1, 0), (0, 1, 0)]);
        case.starts[1] = start;
        let is_within = probe <= 2 && candidate <= 2 && overlap <= probe && overlap <= candidate;
        let checked = std::panic::catch_unwind(|| case.pairs().check());
        assert_eq!(checked.is_ok(), is_within, "{start:?}");
    }
}

#[test]
#[should_panic(expected = "1 candidates need as many required overlaps, not 0")]
fn missing_required_overlaps_are_refused() {
    broken(|case| case.required.clear());
}

#[test]
#[should_panic(expected = "the last offset is 3, but there are 2 tokens")]
fn offsets_behind_the_tokens_are_refused() {
    let _ = Sets::new(&[0, 3], &[1, 2]);
}

#[test]
#[should_panic(expected = "offsets must not descend")]
fn descending_offsets_are_refused() {
    let _ = Sets::new(&[0, 3, 2], &[1, 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn levels_agree_with_the_loop(
        sets in prop::collection::vec(prop::collection::btree_set(0..120_u32, 0..90), 1..7),
        scale in prop_oneof![Just(1), Just(7), Just(35_000_000)],
        from in 0..120_u32,
    ) {
        let sets: Vec<Vec<u32>> = sets
            .into_iter()
            .map(|set| set.into_iter().map(|token| token * scale).collect())
            .collect();
        Case::all_with_all(&sets, from * scale).check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Sets that lack some of the same tokens, next to sets of a few of these tokens: a level that
    /// reads past the end of a set finds these tokens.
    #[test]
    fn similar_sets_match_the_loop(
        len in 0..150_u32,
        lacking in prop::collection::vec(prop::collection::vec(0..150_u32, 0..20), 1..5),
        ends in prop::collection::vec(0..150_u32, 3),
        from in 0..40_u32,
    ) {
        let mut sets: Vec<Vec<u32>> = Vec::new();
        for (lacking, end) in lacking.iter().zip(ends.iter().cycle()) {
            sets.push((0..len).filter(|token| !lacking.contains(token)).collect());
            sets.push((*end.min(&len)..len).collect());
        }
        Case::all_with_all(&sets, from).check();
    }
}

/// All matches of sets with each other, and the first match of each pair.
fn matches(sets: &[Vec<u32>]) -> [ChunkStore; 2] {
    let (mut all, mut first) = (ChunkStore::default(), ChunkStore::default());
    for (probe, tokens) in (0..).zip(sets) {
        for (candidate, others) in (0..).zip(sets) {
            let mut is_first = true;
            for (probe_at, token) in (0..).zip(tokens) {
                let place = others.iter().position(|other| other == token);
                if let Some(candidate_at) = place.map(narrow) {
                    let required = probe + candidate_at;
                    let start =
                        Start { probe: probe_at + 1, candidate: candidate_at + 1, overlap: 1 };
                    all.push(probe, candidate, required, start);
                    if is_first {
                        first.push(probe, candidate, required, start);
                    }
                    is_first = false;
                }
            }
        }
    }
    [all, first]
}

/// The pairs of a chunk, one by one.
fn pairs_of(chunk: Chunk<'_>) -> Vec<(u32, u32, u32, Start)> {
    let pairs = |entry: &Entry| entry.begin as usize..entry.end as usize;
    let of_entry = |entry: &Entry| {
        let probe = entry.probe;
        pairs(entry)
            .map(move |at| (probe, chunk.candidates[at], chunk.required[at], chunk.starts[at]))
    };
    chunk.entries.iter().flat_map(of_entry).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn first_matches_are_kept_on_every_level(
        sets in prop::collection::vec(prop::collection::btree_set(0..60_u32, 0..40), 1..8),
    ) {
        let sets: Vec<Vec<u32>> = sets.into_iter().map(|set| set.into_iter().collect()).collect();
        let case = Case::new(&sets);
        let [all, first] = matches(&sets);
        for isa in Isa::available() {
            let mut found = all.clone();
            retain_first(isa, case.sets(), &mut found);
            prop_assert_eq!(pairs_of(found.as_chunk()), pairs_of(first.as_chunk()), "{}", isa);
            let mut found = all.clone();
            let call = RetainFirst { sets: case.sets(), matches: &mut found };
            dispatch::<Base, _>(isa, call);
            prop_assert_eq!(pairs_of(found.as_chunk()), pairs_of(first.as_chunk()), "{}", isa);
            let kept = Pairs { probes: case.sets(), candidates: case.sets(), chunk: found.as_chunk() };
            kept.check();
        }
    }

    #[test]
    fn a_chunk_is_taken_in_parts(
        pairs in prop::collection::vec((0..4_u32, 0..9_u32), 0..60),
        parts in prop::collection::vec(1..20_usize, 1..9),
    ) {
        let mut whole = ChunkStore::default();
        for (candidate, &(probe, required)) in (0..).zip(&pairs) {
            let start = Start { probe: required, candidate, overlap: 0 };
            whole.push(probe, candidate, required, start);
        }
        let (mut cursor, mut taken) = (Cursor::default(), Vec::new());
        for pairs_max in parts.into_iter().cycle() {
            let mut part = ChunkStore::default();
            // A first pair, so that the taken pairs do not begin at 0.
            part.push(7, 7, 7, Start::default());
            part.take(&whole, &mut cursor, pairs_max);
            if part.len() == 1 {
                break;
            }
            prop_assert!(part.len() <= pairs_max + 1);
            let found = pairs_of(part.as_chunk());
            prop_assert_eq!(found.len(), part.len(), "entries cover all pairs");
            taken.extend_from_slice(&found[1..]);
        }
        prop_assert_eq!(taken, pairs_of(whole.as_chunk()));
    }
}
