//! Every level of the machine against loops over all pairs that call no code of the crate.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::sets::Sets;
use crate::simd::Base;

/// Sets by size, in runs of one size.
struct Case {
    offsets: Vec<u32>,
    tokens: Vec<u32>,
    ends: Vec<u32>,
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

/// The required overlap of two sizes: a Jaccard similarity of `n / d`.
fn required((n, d): (u32, u32), left: usize, right: usize) -> u32 {
    (n * narrow(left + right)).div_ceil(n + d)
}

impl Case {
    fn new(mut sets: Vec<Vec<u32>>) -> Self {
        sets.sort_by_key(Vec::len);
        let mut case = Self { offsets: vec![0], tokens: Vec::new(), ends: Vec::new() };
        for (number, set) in (0..).zip(&sets) {
            case.tokens.extend(set);
            case.offsets.push(narrow(case.tokens.len()));
            if sets.get(number + 1).is_none_or(|next| next.len() != set.len()) {
                case.ends.push(narrow(number + 1));
            }
        }
        case
    }

    fn sets(&self) -> Sets<'_> {
        Sets::new(&self.offsets, &self.tokens)
    }

    /// Tiles of all pairs, with at most `probes` probes and `candidates` candidates, and their
    /// rows.
    fn tiles(
        &self,
        question: (u32, u32),
        [probes, candidates]: [usize; 2],
    ) -> (Vec<Tile>, Vec<u32>) {
        let (mut tiles, mut rows) = (Vec::new(), Vec::new());
        let mut begin = 0;
        for (run, &end) in self.ends.iter().enumerate() {
            let row = narrow(rows.len());
            for other in &self.ends[..=run] {
                let size = |end: u32| self.sets().set(end as usize - 1).len();
                rows.push(required(question, size(end), size(*other)));
            }
            for probe_begin in (begin..end).step_by(probes) {
                let probe_end = end.min(probe_begin + narrow(probes));
                for candidate_begin in (0..probe_end).step_by(candidates) {
                    let candidate_end = probe_end.min(candidate_begin + narrow(candidates));
                    let resume = candidate_begin;
                    tiles.push(Tile {
                        probe_begin,
                        probe_end,
                        candidate_begin,
                        candidate_end,
                        resume,
                        row,
                    });
                }
            }
            begin = end;
        }
        (tiles, rows)
    }

    fn by_hand(&self, question: (u32, u32)) -> Vec<Match> {
        let sets = self.sets();
        let mut matches = Vec::new();
        for probe in 0..sets.len() {
            for candidate in 0..probe {
                let (left, right) = (sets.set(probe), sets.set(candidate));
                let overlap = narrow(left.iter().filter(|token| right.contains(token)).count());
                if overlap >= required(question, left.len(), right.len()) {
                    matches.push(Match {
                        probe: narrow(probe),
                        candidate: narrow(candidate),
                        overlap,
                    });
                }
            }
        }
        matches
    }

    /// Joins in all ways: levels, widths, tiles, room.
    fn check(&self, question: (u32, u32), shapes: &[[usize; 2]], rooms: &[usize]) {
        let expected = self.by_hand(question);
        let sets = self.sets();
        let runs = Runs::new(sets, self.ends.iter().copied());
        for words in WORDS {
            let signatures = Signatures::new(Isa::Scalar, sets, words);
            for isa in Isa::available() {
                assert_eq!(Signatures::new(isa, sets, words), signatures, "{isa}, {words} words");
            }
            for &shape in shapes {
                let (list, required) = self.tiles(question, shape);
                let tiles = Tiles { sets, runs: &runs, tiles: &list, required: &required };
                let reference = count(Isa::Scalar, &signatures, tiles);
                for isa in Isa::available() {
                    let shown = format!("{isa}, {words} words, {shape:?}");
                    assert_eq!(count(isa, &signatures, tiles), reference, "{shown}");
                    assert_eq!(reference.matches, expected.len() as u64, "{shown}");
                    assert_eq!(tested(isa, &signatures, tiles), reference.survivors, "{shown}");
                    let without = tested_without_extension(isa, &signatures, tiles);
                    assert_eq!(without, reference.survivors, "{shown}");
                    for &room in rooms {
                        let (matches, survivors) = in_rounds(isa, &signatures, tiles, room);
                        assert_eq!(matches, expected, "{shown}, room for {room}");
                        assert_eq!(survivors, reference.survivors, "{shown}, room for {room}");
                    }
                }
            }
        }
    }
}

/// Asks again until no tile is unfinished; returns the matches in order.
fn in_rounds(
    isa: Isa,
    signatures: &Signatures,
    tiles: Tiles<'_>,
    room: usize,
) -> (Vec<Match>, u64) {
    let (mut matches, mut survivors) = (Vec::new(), 0);
    let mut list = tiles.tiles.to_vec();
    let mut answer = Joined::default();
    while !list.is_empty() {
        join(isa, signatures, Tiles { tiles: &list, ..tiles }, room, &mut answer);
        assert!(answer.matches.len() <= room);
        assert!(answer.unfinished.is_empty() || answer.matches.len() == room);
        matches.extend_from_slice(&answer.matches);
        survivors += answer.survivors;
        list.clone_from(&answer.unfinished);
    }
    matches.sort_unstable();
    (matches, survivors)
}

/// The number of survivors on a level without its extension.
fn tested_without_extension(isa: Isa, signatures: &Signatures, tiles: Tiles<'_>) -> u64 {
    let mut found = 0;
    for &tile in tiles.tiles {
        let mut part = tile;
        while part.candidate_begin < part.candidate_end {
            let mut survivors = Survivors::default();
            let survivors = &mut survivors;
            let call = TestTile { signatures, tiles, tile: part, survivors };
            part = part.after(dispatch::<Base, _>(isa, call));
            found += survivors.len() as u64;
        }
    }
    found
}

/// The number of survivors, in calls until no tile is unfinished.
fn tested(isa: Isa, signatures: &Signatures, tiles: Tiles<'_>) -> u64 {
    let (mut list, mut unfinished) = (tiles.tiles.to_vec(), Vec::new());
    let (mut survivors, mut seen) = (Survivors::default(), HashSet::new());
    while !list.is_empty() {
        test_tiles(
            isa,
            signatures,
            Tiles { tiles: &list, ..tiles },
            &mut survivors,
            &mut unfinished,
        );
        assert!(!survivors.is_empty() || unfinished.is_empty());
        let chunk = survivors.chunk();
        for entry in chunk.entries {
            for candidate in &chunk.candidates[entry.begin as usize..entry.end as usize] {
                assert!(seen.insert((entry.probe, *candidate)), "a pair twice");
            }
        }
        list.clone_from(&unfinished);
    }
    seen.len() as u64
}

/// Families of sets that differ in one or two tokens.
fn families(sizes: &[usize], seed: u32) -> Vec<Vec<u32>> {
    let mut state = seed.wrapping_mul(2_654_435_769) | 1;
    let mut below = move |end: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % end
    };
    sizes
        .iter()
        .map(|&size| {
            let family = below(3) * 1000;
            let mut set: Vec<u32> = (0..narrow(size)).map(|token| family + token).collect();
            if let Some(token) = set.last_mut() {
                *token += below(4);
            }
            set
        })
        .collect()
}

#[test]
fn numbers_of_sets_around_a_strip_and_a_tile_match_the_loop() {
    for sets in [0, 1, 2, 31, 32, 33, 65, 128, 129] {
        let case = Case::new(families(&vec![9; sets], narrow(sets)));
        case.check((4, 5), &[[128, 1024], [50, 33]], &[1000, 1 << 20]);
    }
}

#[test]
fn sizes_of_all_kinds_match_the_loop() {
    let sizes: Vec<usize> =
        (0..90).map(|number| [1, 2, 9, 10, 10, 63, 64, 65, 300][number * 7 % 9]).collect();
    let case = Case::new(families(&sizes, 5));
    for question in [(1, 2), (4, 5), (1, 1)] {
        case.check(question, &[[128, 4096], [3, 32]], &[40, 1 << 20]);
    }
}

#[test]
fn equal_sets_overflow_any_room() {
    let case = Case::new(vec![vec![3, 5, 900]; 40]);
    case.check((1, 1), &[[128, 128], [7, 33]], &[7, 31, 32, 33, 779, 780, 781]);
    let few = Case::new(vec![vec![3, 5, 900]; 7]);
    few.check((1, 1), &[[128, 128], [2, 3]], &[1, 2, 20, 21]);
}

#[test]
fn more_survivors_than_are_found_at_once_come_in_parts() {
    let case = Case::new(vec![vec![3, 5, 900]; 200]);
    case.check((1, 1), &[[128, 1024]], &[4095, 4096, 1 << 20]);
}

#[test]
fn far_tokens_match_the_loop() {
    let sets = (0..40).map(|number| vec![number % 3, u32::MAX - 2 + number % 2, u32::MAX]);
    Case::new(sets.collect()).check((1, 2), &[[128, 128]], &[100, 1 << 20]);
}

#[test]
fn signatures_bound_the_overlap() {
    let sets = families(&[5, 64, 65, 130, 130, 130, 130, 131], 3);
    let case = Case::new(sets);
    for words in WORDS {
        let signatures = Signatures::new(Isa::Scalar, case.sets(), words);
        assert_eq!(signatures.bits().len(), 32 * words);
        let bits_of = |set: usize| (0..words).map(move |word| word * 32 + set);
        let only_one = |left: usize, right: usize| {
            let (left, right) = (case.sets().set(left), case.sets().set(right));
            let missing = |set: &[u32], other: &[u32]| {
                set.iter().filter(|token| !other.contains(token)).count()
            };
            missing(left, right) + missing(right, left)
        };
        for (left, right) in (0..8).flat_map(|left| (0..8).map(move |right| (left, right))) {
            let words = bits_of(left).zip(bits_of(right));
            let distance: u32 = words
                .map(|(left, right)| signatures.bits()[left] ^ signatures.bits()[right])
                .map(u64::count_ones)
                .sum();
            assert!(distance as usize <= only_one(left, right), "{left} and {right}");
        }
    }
}

#[test]
fn widths_are_those_of_the_mean_size() {
    let widths = [0, 1, 16, 17, 32, 33, 64, 65, 1000].map(words_for_mean_size);
    assert_eq!(widths, [1, 1, 1, 2, 2, 4, 4, 8, 8]);
}

/// One tile of four sets of two tokens, changed by the caller.
fn broken(change: impl FnOnce(&mut Vec<Tile>, &mut Vec<u32>)) {
    let case = Case::new(vec![vec![1, 2]; 4]);
    let (mut list, mut required) = case.tiles((4, 5), [128, 128]);
    change(&mut list, &mut required);
    let runs = Runs::new(case.sets(), [4]);
    let signatures = Signatures::new(Isa::Scalar, case.sets(), 1);
    let tiles = Tiles { sets: case.sets(), runs: &runs, tiles: &list, required: &required };
    let _ = count(Isa::Scalar, &signatures, tiles);
}

#[test]
fn a_right_tile_is_taken() {
    broken(|_, _| ());
}

#[test]
#[should_panic(expected = "tile 0 has no place in 4 sets")]
fn probes_that_are_no_sets_are_refused() {
    broken(|tiles, _| tiles[0].probe_end = 5);
}

#[test]
#[should_panic(expected = "tile 0 has no place in 4 sets")]
fn candidates_that_are_no_sets_are_refused() {
    broken(|tiles, _| tiles[0].candidate_end = 5);
}

#[test]
#[should_panic(expected = "a required overlap at 1 of 1, for tile 0")]
fn rows_that_are_not_there_are_refused() {
    broken(|tiles, _| tiles[0].row = 1);
}

#[test]
#[should_panic(expected = "of run 0 differ in size")]
fn runs_of_different_sizes_are_refused() {
    let case = Case::new(vec![vec![1], vec![1, 2]]);
    let _ = Runs::new(case.sets(), [2]);
}

#[test]
#[should_panic(expected = "the last run ends at set 1 of 2")]
fn runs_that_miss_sets_are_refused() {
    let case = Case::new(vec![vec![1], vec![1, 2]]);
    let _ = Runs::new(case.sets(), [1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn levels_agree_with_the_loop(
        sets in prop::collection::vec(prop::collection::btree_set(0..40_u32, 0..12), 0..80),
        scale in prop_oneof![Just(1), Just(100_000_007)],
        numerator in 1..=10_u32,
        probes in 1..=128_usize,
        candidates in 1..100_usize,
        room in 1..50_usize,
    ) {
        let sets = sets.into_iter();
        let scaled = sets.map(|set| set.into_iter().map(|token| token * scale).collect());
        let case = Case::new(scaled.collect());
        case.check((numerator, 10), &[[probes, candidates]], &[room]);
    }
}
