//! Signatures and sorted lists on every level.

use proptest::prelude::*;

use super::*;
use crate::Isa;

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn sets_are_signed_alike_on_every_level(
        sets in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..40), 0..12),
        words in prop_oneof![Just(1_usize), Just(2), Just(4), Just(8)],
    ) {
        let mut offsets = vec![0];
        for set in &sets {
            offsets.push(offsets[offsets.len() - 1] + narrow(set.len()));
        }
        let mut expected = Vec::new();
        for set in &sets {
            let mut signature = vec![u64::MAX; words];
            sign(set, &mut signature);
            expected.extend(signature);
        }
        for isa in Isa::available() {
            let mut signatures = vec![u64::MAX; words * sets.len()];
            sign_sets(isa, &offsets, &sets.concat(), words, &mut signatures);
            prop_assert_eq!(&signatures, &expected, "{}", isa);
        }
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
        let of_one = signed(&tokens[..1], words);
        assert_eq!(of_one.iter().map(|word| word.count_ones()).sum::<u32>(), 1);
    }
}

/// Sorts lists of these lengths, of tokens below `alphabet`, on every level.
fn check_sorting(lengths: &[usize], alphabet: u32) {
    let mut state = 1_u64;
    let mut lists: Vec<Vec<u32>> = Vec::new();
    for &length in lengths {
        let token = |_| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            u32::try_from(state >> 33).unwrap() % alphabet
        };
        lists.push((0..length).map(token).collect());
    }
    let mut offsets = vec![0];
    for list in &lists {
        offsets.push(offsets[offsets.len() - 1] + narrow(list.len()));
    }
    let given = lists.concat();
    lists.iter_mut().for_each(|list| list.sort_unstable());
    for isa in Isa::available() {
        let mut tokens = given.clone();
        sort_lists(isa, &offsets, &mut tokens);
        assert_eq!(tokens, lists.concat(), "{isa}");
    }
}

#[test]
fn lists_of_all_lengths_are_sorted() {
    check_sorting(&[], 1);
    check_sorting(&[0, 1, 0], 9);
    for length in (0..70).chain([127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 3000]) {
        // Lists for all lanes of a group, for part of a group, and too few lists.
        for lists in [1, 2, 3, 15, 16, 17, 37] {
            check_sorting(&vec![length; lists], u32::MAX);
        }
    }
    let mixed: Vec<usize> = (0..400).map(|list| list * list % 211).collect();
    check_sorting(&mixed, 1000);
    // Equal tokens, and the token that fills empty places.
    check_sorting(&mixed, 2);
}

#[test]
fn lists_that_are_sorted_or_nearly_so_are_sorted() {
    for length in [2, 15, 16, 17, 18, 64, 65, 200, 1024, 1025] {
        let sorted: Vec<u32> = (0..length).collect();
        let exchanged = |place: usize| {
            let mut list = sorted.clone();
            list.swap(place, place + 1);
            list
        };
        let last = sorted.len() - 2;
        let lists =
            [sorted.clone(), exchanged(0), sorted.clone(), exchanged(last), exchanged(last / 2)];
        let offsets: Vec<u32> = (0..=5).map(|list| list * length).collect();
        for isa in Isa::available() {
            let mut tokens = lists.concat();
            sort_lists(isa, &offsets, &mut tokens);
            assert_eq!(tokens, sorted.repeat(5), "{length} {isa}");
        }
    }
}

#[test]
fn the_largest_token_is_sorted_too() {
    for isa in Isa::available() {
        let mut tokens = [u32::MAX, 1, u32::MAX, 0, u32::MAX, 2, 1, 7, 5, 3, 2, 9];
        sort_lists(isa, &[0, 2, 5, 8, 12], &mut tokens);
        assert_eq!(tokens, [1, u32::MAX, 0, u32::MAX, u32::MAX, 1, 2, 7, 2, 3, 5, 9], "{isa}");
    }
}
