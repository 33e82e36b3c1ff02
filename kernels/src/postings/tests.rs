//! Every level against sets that are tested one by one, by their definitions.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Sets of one size, which are looked up among each other with bounds of any kind.
#[derive(Clone, Debug)]
struct Case {
    sets: Vec<Vec<u32>>,
    distinct: u32,
    token_min: u32,
    probe_prefix: usize,
    index_prefix: usize,
    position_max: u32,
    distance_max: u32,
}

/// A pair: probe, set, and the positions of the first common token of their prefixes.
type Pair = (u32, u32, u32, u32);

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

fn signature(set: &[u32]) -> u64 {
    let mut words = [0];
    sign(set, &mut words);
    words[0]
}

impl Case {
    /// What has to be found: the first common token decides about the position.
    fn by_hand(&self) -> BTreeSet<Pair> {
        let mut pairs = BTreeSet::new();
        for (probe, tokens) in self.sets.iter().enumerate() {
            for (set, others) in self.sets[..probe].iter().enumerate() {
                let shared =
                    tokens[..self.probe_prefix].iter().enumerate().find_map(|(at, token)| {
                        let other = others[..self.index_prefix].iter().position(|t| t == token)?;
                        (*token >= self.token_min).then_some((narrow(at), narrow(other)))
                    });
                let Some((at, other)) = shared else { continue };
                let distance = (signature(tokens) ^ signature(others)).count_ones();
                if other <= self.position_max && distance <= self.distance_max {
                    pairs.insert((narrow(probe), narrow(set), at, other));
                }
            }
        }
        pairs
    }

    fn offsets_and_tokens(&self) -> (Vec<u32>, Vec<u32>) {
        let mut offsets = vec![0];
        for set in &self.sets {
            offsets.push(offsets[offsets.len() - 1] + narrow(set.len()));
        }
        (offsets, self.sets.concat())
    }

    fn lists(&self) -> (Vec<List>, usize) {
        let mut lists = vec![List::default(); self.distinct as usize];
        let mut begin = 0;
        for (token, list) in (0..).zip(&mut lists) {
            *list = List { begin, end: begin };
            let is_in = |set: &&Vec<u32>| set[..self.index_prefix].contains(&token);
            begin += narrow(self.sets.iter().filter(is_in).count());
        }
        (lists, begin as usize)
    }

    fn run(&self, isa: Isa, candidates_max: usize) -> BTreeSet<Pair> {
        let (offsets, tokens) = self.offsets_and_tokens();
        let signatures: Vec<u64> = self.sets.iter().map(|set| signature(set)).collect();
        let (mut lists, room) = self.lists();
        let mut postings = vec![Posting::default(); room + BLOCK];
        let mut met = vec![0; self.sets.len()];
        let mut index = Index {
            lists: &mut lists,
            partner_lists: 0,
            own_lists: 0,
            postings: &mut postings,
            met: &mut met,
        };
        let window = Window {
            rank: 0,
            rank_min: 0,
            index_prefix: self.index_prefix,
            rank_max: &vec![0; self.probe_prefix],
            position_max: &[self.position_max],
            distance_max: &[self.distance_max],
        };
        let (mut next, end) = (0, narrow(self.sets.len()));
        let (mut pairs, mut candidates) = (BTreeSet::new(), Vec::new());
        while next < end {
            let probes = Probes {
                offsets: &offsets,
                tokens: &tokens,
                signatures: &signatures,
                range: next..end,
                token_min: self.token_min,
            };
            let sifted = sift(isa, probes, window, &mut index, &mut candidates, candidates_max);
            assert!(sifted.probes > 0 && sifted.passed <= sifted.postings);
            next += sifted.probes;
            for candidate in &candidates[..sifted.candidates] {
                let Candidate { probe, set, position, place } = *candidate;
                assert!(pairs.insert((probe, set, position, place)), "{candidate:?} twice");
            }
        }
        pairs
    }

    fn check(&self) {
        let expected = self.by_hand();
        for isa in Isa::available() {
            for candidates_max in [0, 1, 1000] {
                assert_eq!(self.run(isa, candidates_max), expected, "{isa} {candidates_max}");
            }
        }
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = (1_usize..10, 0_usize..120).prop_flat_map(|(size, count)| {
        let set = prop::collection::btree_set(0..24_u32, size);
        let sets = prop::collection::vec(set, count);
        (sets, 1..=size, 0..=size, 0..10_u32, 0..20_u32, 0..6_u32)
    });
    sizes.prop_map(|(sets, probe_prefix, index_prefix, position_max, distance_max, token_min)| {
        let sets = sets.into_iter().map(|set| set.into_iter().collect()).collect();
        let distinct = 24;
        Case { sets, distinct, token_min, probe_prefix, index_prefix, position_max, distance_max }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn levels_find_what_the_definitions_ask_for(case in cases()) {
        case.check();
    }
}

#[test]
fn lists_of_all_lengths_around_a_block_and_a_part_are_read_whole() {
    for count in [1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 1025, 1041] {
        let sets = (0..count).map(|other| vec![0, 1 + other]).collect();
        let distinct = 1 + count;
        let (probe_prefix, index_prefix, position_max, distance_max) = (1, 1, 0, 64);
        let case = Case {
            sets,
            distinct,
            token_min: 0,
            probe_prefix,
            index_prefix,
            position_max,
            distance_max,
        };
        let all = narrow((count * (count - 1) / 2) as usize);
        for isa in Isa::available() {
            assert_eq!(narrow(case.run(isa, 1 << 20).len()), all, "{isa}, {count} sets");
        }
    }
}

/// Sets 0 and 1 of two sizes have token 5; probes of a third size look for it.
fn sift_sizes(isa: Isa, rank_min: u32, rank_max: u32, position_max: [u32; 3]) -> Vec<u32> {
    let (offsets, tokens) = ([0, 1, 3, 6], [5, 4, 5, 5, 6, 7]);
    let mut lists = vec![List::default(); 8];
    lists[5] = List { begin: 0, end: 2 };
    (lists[6], lists[7]) = (List { begin: 3, end: 3 }, List { begin: 4, end: 4 });
    let mut postings = vec![Posting::default(); 5 + BLOCK];
    postings[1] = Posting { place: 1 << 16 | 1, set: 1, signature: 0 };
    let mut index = Index {
        lists: &mut lists,
        partner_lists: 0,
        own_lists: 0,
        postings: &mut postings,
        met: &mut [0; 3],
    };
    let window = Window {
        rank: 2,
        rank_min,
        index_prefix: 1,
        rank_max: &[rank_max],
        position_max: &position_max,
        distance_max: &[64; 3],
    };
    let signatures = &[0; 3];
    let probes =
        Probes { offsets: &offsets, tokens: &tokens, signatures, range: 2..3, token_min: 0 };
    let mut candidates = Vec::new();
    let sifted = sift(isa, probes, window, &mut index, &mut candidates, 10);
    assert_eq!(lists[5].end, 3, "the probe is added");
    candidates[..sifted.candidates].iter().map(|candidate| candidate.set).collect()
}

#[test]
fn sets_that_are_too_small_too_large_or_too_far_behind_are_left_out() {
    for isa in Isa::available() {
        assert_eq!(sift_sizes(isa, 0, 2, [0, 1, 2]), [0, 1], "{isa}");
        assert_eq!(sift_sizes(isa, 1, 2, [0, 1, 2]), [1], "{isa}: too small");
        assert_eq!(sift_sizes(isa, 0, 0, [0, 1, 2]), [0], "{isa}: too large");
        assert_eq!(sift_sizes(isa, 0, 2, [0, 0, 2]), [0], "{isa}: too far behind");
    }
}

#[test]
fn signatures_are_parities_and_fold() {
    let tokens: Vec<u32> = (0..300).map(|token| token * token * 7).collect();
    let signed = |tokens: &[u32], words| {
        let mut signature = vec![1; words];
        sign(tokens, &mut signature);
        signature
    };
    for words in [1, 2, 4, 8] {
        let whole = signed(&tokens, words);
        let (left, right) = tokens.split_at(100);
        let sum: Vec<u64> =
            signed(left, words).iter().zip(signed(right, words)).map(|(a, b)| a ^ b).collect();
        assert_eq!(whole, sum, "a parity is a sum");
        let fold = whole.iter().fold(0, |fold, word| fold ^ word);
        assert_eq!([fold], signed(&tokens, 1)[..], "{words} words fold to one");
        assert_eq!(
            signed(&tokens[..1], words).iter().map(|word| word.count_ones()).sum::<u32>(),
            1
        );
    }
}

#[test]
fn longer_signatures_are_compared_on_every_level() {
    let sets: Vec<Vec<u32>> = (0..40).map(|set| (set..set + 30).collect()).collect();
    for words in [2, 4, 8] {
        let mut signatures = vec![0; words * sets.len()];
        for (set, signature) in sets.iter().zip(signatures.chunks_mut(words)) {
            sign(set, signature);
        }
        let distance = |probe: usize, set: usize| -> u32 {
            let of = |set: usize| &signatures[set * words..(set + 1) * words];
            of(probe).iter().zip(of(set)).map(|(a, b)| (a ^ b).count_ones()).sum()
        };
        let all: Vec<Candidate> = (0..40)
            .flat_map(|probe| (0..probe).map(move |set| (probe, set)))
            .map(|(probe, set)| Candidate { probe, set, position: 0, place: (set % 2) << 16 })
            .collect();
        let limits = [7, 12];
        let expected: Vec<Candidate> = all
            .iter()
            .filter(|candidate| {
                let limit = limits[candidate.set as usize % 2];
                distance(candidate.probe as usize, candidate.set as usize) <= limit
            })
            .copied()
            .collect();
        assert!(!expected.is_empty() && expected.len() < all.len());
        for isa in Isa::available() {
            let mut candidates = all.clone();
            let kept = refine(isa, words, &signatures, &limits, &mut candidates);
            assert_eq!(candidates[..kept], expected, "{isa}, {words} words");
        }
    }
}

#[test]
#[should_panic(expected = "the position descends")]
fn bounds_that_descend_are_refused() {
    let _ = sift_sizes(Isa::Scalar, 0, 2, [1, 0, 2]);
}

#[test]
#[should_panic(expected = "a greatest rank outside 1 to 2")]
fn a_rank_outside_the_window_is_refused() {
    let _ = sift_sizes(Isa::Scalar, 1, 0, [0, 1, 2]);
}

#[test]
#[should_panic(expected = "signatures have 2, 4 or 8 words, not 3")]
fn signatures_of_another_length_are_refused() {
    let _ = refine(Isa::Scalar, 3, &[], &[], &mut []);
}
