//! Signatures of sets on every level.

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
