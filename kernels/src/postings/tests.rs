//! Every level against postings that are compared one by one, by their definitions.

use proptest::prelude::*;

use super::*;
use crate::simd::Base;

/// Whether a level runs with the extension for which it has code, if the processor has the
/// extension.
#[derive(Clone, Copy, Debug)]
enum Extension {
    Used,
    Unused,
}

/// A set in one list.
#[derive(Clone, Copy, Debug)]
struct Member {
    list: usize,
    rank: u32,
    position: u32,
    before: u32,
    is_right: bool,
    signature: [u64; 8],
}

/// Sets, each in one list, and bounds of any kind.
#[derive(Clone, Debug)]
struct Case {
    members: Vec<Member>,
    words: usize,
    is_two_sided: bool,
    rank_reach: u32,
    index_prefix: u32,
    position_max: u32,
    distance_max: u32,
}

const LISTS: usize = 4;
const RANKS: u32 = 6;
const POSITIONS: u32 = 8;

/// The division of probes: each of several searches takes `probes` probes in turn.
#[derive(Clone, Copy, Debug)]
struct Sharing {
    searches: usize,
    probes: usize,
}

const ALONE: Sharing = Sharing { searches: 1, probes: usize::MAX };

/// List, probe, its place, set, its place.
type Found = (u32, u32, u32, u32, u32);

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

impl Case {
    fn limits(&self) -> Limits {
        let (mut rows, mut pairs, mut rank_max) = (Vec::new(), Vec::new(), Vec::new());
        for rank in 0..RANKS {
            let rank_min = rank.saturating_sub(self.rank_reach);
            rows.push(Row {
                size: POSITIONS,
                is_probe: rank != 4,
                rank_min,
                index_prefix: self.index_prefix,
                pairs: narrow(pairs.len()),
                positions: narrow(rank_max.len()),
            });
            pairs.extend((rank_min..=rank).map(|other| self.pair_limit(other)));
            rank_max.extend((0..POSITIONS).map(|position| self.rank_max(rank, position)));
        }
        Limits::new(rows, pairs, rank_max)
    }

    fn pair_limit(&self, rank: u32) -> PairLimit {
        let position_max = self.position_max + rank;
        PairLimit { required: 1, position_max, distance_max: u64::from(self.distance_max + rank) }
    }

    fn rank_max(&self, rank: u32, position: u32) -> u32 {
        rank.saturating_sub(position / 3).max(rank.saturating_sub(self.rank_reach))
    }

    /// Whether a probe finds a set of its list; with `is_loose`, by the bounds of the largest
    /// size.
    fn finds(&self, probe: &Member, set: &Member, is_loose: bool) -> bool {
        let limit = self.pair_limit(if is_loose { probe.rank } else { set.rank });
        let rank_max = if is_loose { RANKS } else { self.rank_max(probe.rank, probe.position) };
        let words = probe.signature.iter().zip(&set.signature).take(self.words);
        let distance: u32 = words.map(|(left, right)| (left ^ right).count_ones()).sum();
        probe.list == set.list
            && probe.rank != 4
            && set.position < self.index_prefix
            && (!self.is_two_sided || probe.is_right != set.is_right)
            && (set.rank + self.rank_reach >= probe.rank && set.rank <= rank_max)
            && (probe.before == NO_TOKEN || probe.before != set.before)
            && set.position <= limit.position_max
            && u64::from(distance) <= limit.distance_max
    }

    fn by_hand(&self, is_loose: bool) -> Vec<(usize, usize)> {
        let pairs =
            (0..self.members.len()).flat_map(|probe| (0..probe).map(move |set| (probe, set)));
        pairs
            .filter(|&(probe, set)| self.finds(&self.members[probe], &self.members[set], is_loose))
            .collect()
    }

    fn run(
        &self,
        isa: Isa,
        extension: Extension,
        hits_max: usize,
        Sharing { searches, probes }: Sharing,
    ) -> Vec<Found> {
        let mut ends = Vec::new();
        let mut postings = Vec::new();
        for list in 0..LISTS {
            for (set, member) in (0_u32..).zip(&self.members) {
                if member.list == list {
                    let side = if self.is_two_sided && member.is_right { SIDE_BIT } else { 0 };
                    let place = member.rank << 16 | member.position;
                    postings.push(Posting { place, set: set | side, before: member.before });
                }
            }
            ends.push(narrow(postings.len()));
        }
        let words = self.words;
        let signatures: Vec<u64> =
            self.members.iter().flat_map(|member| member.signature[..words].to_vec()).collect();
        let lists = Lists {
            ends: &ends,
            postings: &postings,
            words,
            signatures: &signatures,
            is_two_sided: self.is_two_sided,
        };
        let limits = self.limits();
        let progress = || Progress::new(self.members.len(), words, self.is_two_sided);
        let mut shares: Vec<Progress> = std::iter::repeat_with(progress).take(searches).collect();
        let (mut hits, mut all) = (Hits::default(), Vec::new());
        for (turn, begin) in (0..postings.len()).step_by(probes).enumerate() {
            let progress = &mut shares[turn % searches];
            progress.go_to(begin..begin.saturating_add(probes).min(postings.len()));
            loop {
                let has_more = match extension {
                    Extension::Used => {
                        scan_lists(isa, lists, &limits, progress, &mut hits, hits_max)
                    }
                    Extension::Unused => {
                        let (limits, progress, hits) = (&limits, &mut *progress, &mut hits);
                        let call = ScanLists { lists, limits, progress, hits, hits_max };
                        dispatch::<Base, _>(isa, call)
                    }
                };
                let mut begin = 0;
                for &ProbeHits { list, place, probe, end } in &hits.probes {
                    for at in begin..end as usize {
                        all.push((list, probe, place, hits.sets[at], hits.places[at]));
                    }
                    begin = end as usize;
                }
                if !has_more {
                    break;
                }
            }
        }
        let (mut tested, mut passed) = (0, 0);
        for progress in &shares {
            let counts = progress.tested();
            (tested, passed) = (tested + counts.0, passed + counts.1);
        }
        assert!(passed == all.len() as u64 && passed <= tested);
        all
    }

    fn check(&self) {
        let reference = self.run(Isa::Scalar, Extension::Used, usize::MAX, ALONE);
        let place = |set: usize| self.members[set].rank << 16 | self.members[set].position;
        for &(list, probe, probe_place, set, set_place) in &reference {
            let (probe, set) = (probe as usize, set as usize);
            assert_eq!((probe_place, set_place), (place(probe), place(set)));
            assert_eq!(self.members[probe].list, list as usize);
        }
        let mut found: Vec<(usize, usize)> =
            reference.iter().map(|found| (found.1 as usize, found.3 as usize)).collect();
        found.sort_unstable();
        assert!(found.is_sorted_by(|left, right| left < right), "a pair is found once");
        let (needed, allowed) = (self.by_hand(false), self.by_hand(true));
        assert!(needed.iter().all(|pair| found.binary_search(pair).is_ok()), "{found:?}");
        assert!(found.iter().all(|pair| allowed.contains(pair)), "{found:?}");
        for isa in Isa::available() {
            for hits_max in [1, 20, usize::MAX] {
                for extension in [Extension::Used, Extension::Unused] {
                    let found = self.run(isa, extension, hits_max, ALONE);
                    assert_eq!(found, reference, "{isa} {extension:?} {hits_max}");
                }
            }
            for (searches, probes) in [(1, 1), (1, 7), (2, 1), (3, 16), (3, 17), (7, 40)] {
                let sharing = Sharing { searches, probes };
                let found = self.run(isa, Extension::Used, 20, sharing);
                assert_eq!(found, reference, "{isa} {sharing:?}");
            }
        }
    }
}

fn members() -> impl Strategy<Value = Vec<Member>> {
    let before = prop_oneof![Just(NO_TOKEN), 0..4_u32];
    let words = prop_oneof![Just([0; 8]), prop::array::uniform8(0..64_u64)];
    let member = (0..LISTS, 0..RANKS, 0..POSITIONS, before, any::<bool>(), words).prop_map(
        |(list, rank, position, before, is_right, signature)| {
            // Both halves of a word, and all eight words, have bits.
            let signature = signature.map(|word| word | word.rotate_right(9));
            Member { list, rank, position, before, is_right, signature }
        },
    );
    prop::collection::vec(member, 0..130).prop_map(|mut members| {
        members.sort_by_key(|member| member.rank);
        members
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn levels_find_what_the_definitions_ask_for(
        members in members(),
        words in prop_oneof![Just(0_usize), Just(1), Just(2), Just(4), Just(8)],
        is_two_sided: bool,
        rank_reach in 0..=RANKS,
        index_prefix in 0..=POSITIONS,
        position_max in 0..POSITIONS,
        distance_max in 0..40_u32,
    ) {
        let case = Case {
            members, words, is_two_sided, rank_reach, index_prefix, position_max, distance_max,
        };
        case.check();
    }
}

/// `count` sets in one list, without bounds.
fn of_one_list(count: usize) -> Case {
    let member = Member {
        list: 1,
        rank: 0,
        position: 0,
        before: NO_TOKEN,
        is_right: false,
        signature: [0; 8],
    };
    Case {
        members: vec![member; count],
        words: 1,
        is_two_sided: false,
        rank_reach: 0,
        index_prefix: 1,
        position_max: 0,
        distance_max: 0,
    }
}

#[test]
fn lists_of_all_lengths_around_a_block_are_read_whole() {
    for count in [1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 257] {
        let case = of_one_list(count);
        for isa in Isa::available() {
            assert_eq!(
                case.run(isa, Extension::Used, 100, ALONE).len(),
                count * (count - 1) / 2,
                "{isa}, {count} sets"
            );
        }
    }
}

/// Bounds of two ranks.
fn two_ranks(position_max: [u32; 2], rank_max: u32) -> Limits {
    let row = Row { size: 1, is_probe: true, rank_min: 0, index_prefix: 1, pairs: 0, positions: 0 };
    let limit = |position_max| PairLimit { required: 1, position_max, distance_max: 0 };
    let rows = vec![row, Row { pairs: 1, positions: 1, ..row }];
    let [first, second] = position_max.map(limit);
    Limits::new(rows, vec![first, first, second], vec![0, rank_max])
}

#[test]
#[should_panic(expected = "position bounds of rank 1 descend")]
fn bounds_that_descend_are_refused() {
    let _ = two_ranks([1, 0], 1);
}

#[test]
#[should_panic(expected = "a maximum rank of rank 1 is outside 0 to 1")]
fn a_rank_outside_the_row_is_refused() {
    let _ = two_ranks([0, 1], 2);
}

#[test]
#[should_panic(expected = "probes from 1 on after 2")]
fn probes_that_go_back_are_refused() {
    let mut progress = Progress::default();
    progress.go_to(2..3);
    progress.go_to(1..3);
}

#[test]
#[should_panic(expected = "signatures of 3 words; allowed are 0, 1, 2, 4 and 8")]
fn signatures_of_another_length_are_refused() {
    let lists = Lists { ends: &[], postings: &[], words: 3, signatures: &[], is_two_sided: false };
    let (mut progress, mut hits) = (Progress::default(), Hits::default());
    scan_lists(Isa::Scalar, lists, &two_ranks([0, 1], 1), &mut progress, &mut hits, 1);
}
