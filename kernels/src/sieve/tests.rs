//! Every level of the machine against a loop of a few lines that calls nothing of the crate.

use std::fmt::Debug;

use proptest::prelude::*;

use super::*;

fn check<K: Key + TryFrom<u64, Error: Debug>>(keys: &[u64], items: &[u64], start: u64) {
    let narrow = |key: &u64| K::try_from(*key).unwrap();
    let expected: Vec<K> = items.iter().filter(|item| !keys.contains(item)).map(narrow).collect();
    let count = |key| items.iter().filter(|item| *item == key).count() as u64;
    let expected_hits: Vec<u64> = keys.iter().map(|key| start.saturating_add(count(key))).collect();
    let keys: Vec<K> = keys.iter().map(narrow).collect();
    let items: Vec<K> = items.iter().map(narrow).collect();
    for isa in Isa::available() {
        let mut hits = vec![start; keys.len()];
        let mut missed = vec![K::default(); items.len() + MISSED_SLACK];
        let end = sift(isa, &keys, &items, &mut hits, &mut missed);
        assert_eq!((&hits, &missed[..end]), (&expected_hits, &expected[..]), "{isa}");
    }
}

#[test]
fn every_number_of_keys_and_items_matches_the_loop() {
    for keys in 1..=KEYS_MAX as u64 {
        let keys: Vec<u64> = (0..keys).collect();
        for len in 0..100 {
            let items: Vec<u64> = (0..len).map(|i| i * 7 % 12).collect();
            check::<u32>(&keys, &items, 3);
            check::<u64>(&keys, &items, 3);
        }
    }
}

#[test]
fn every_set_of_hits_in_a_register_is_compressed_in_order() {
    for set in 0..=u16::MAX {
        let items: Vec<u64> =
            (0..16).map(|lane| if set >> lane & 1 == 0 { 100 + lane } else { 0 }).collect();
        check::<u32>(&[0], &items, 0);
        check::<u64>(&[0], &items[..8], 0);
    }
}

#[test]
fn extreme_keys_are_keys_like_any_other_and_hits_saturate() {
    let (all, none) = (u64::from(u32::MAX), 0);
    check::<u32>(&[all, none], &[all, 1, none, all, 2].repeat(9), u64::MAX - 2);
    check::<u64>(&[u64::MAX, 1 << 32], &[u64::MAX, 0, 1 << 32, 1].repeat(9), u64::MAX);
}

#[test]
#[should_panic(expected = "a sieve takes out 1 to 8 keys, not 0")]
fn no_key_is_refused() {
    let _ = sift::<u32>(Isa::Scalar, &[], &[], &mut [], &mut [0; 16]);
}

#[test]
#[should_panic(expected = "1 items need room for 16 more, not for 16")]
fn a_buffer_without_slack_is_refused() {
    let _ = sift(Isa::Scalar, &[1_u32], &[1], &mut [0], &mut [0; 16]);
}

proptest! {
    #[test]
    fn levels_agree_with_the_loop(
        keys in 1..=KEYS_MAX as u64,
        items in prop::collection::vec(0..20_u64, 0..400),
        start: u64,
    ) {
        let keys: Vec<u64> = (0..keys).map(|key| key * 3).collect();
        check::<u32>(&keys, &items, start);
        check::<u64>(&keys, &items, start);
    }
}
