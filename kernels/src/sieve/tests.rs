//! Every level of the machine against a loop of a few lines that calls no code of the crate.

use std::fmt::Debug;

use proptest::prelude::*;

use super::*;

/// Sifts with these weights, without weights, and with weights that do not fit into lanes.
fn check<K: Key + TryFrom<u64, Error: Debug>>(keys: &[u64], items: &[u64], start: u64) {
    let ones = vec![1; items.len()];
    let uneven: Vec<u64> = (0..items.len() as u64).map(|i| i * i * 0x1_0000_0001).collect();
    let large: Vec<u64> = (0..items.len() as u64).map(|i| i << 58).collect();
    check_weighted::<K>(keys, items, &ones, start);
    check_weighted::<K>(keys, items, &uneven, start);
    check_weighted::<K>(keys, items, &large, start);
}

fn check_weighted<K: Key + TryFrom<u64, Error: Debug>>(
    keys: &[u64],
    items: &[u64],
    weights: &[u64],
    start: u64,
) {
    let narrow = |key: &u64| K::try_from(*key).unwrap();
    let (mut expected, mut expected_weights) = (Vec::new(), Vec::new());
    let mut sums = vec![start; keys.len()];
    for (item, &weight) in items.iter().zip(weights) {
        match keys.iter().position(|key| key == item) {
            Some(key) => sums[key] = sums[key].saturating_add(weight),
            None => {
                expected.push(narrow(item));
                expected_weights.push(weight);
            }
        }
    }
    let keys: Vec<K> = keys.iter().map(narrow).collect();
    let items: Vec<K> = items.iter().map(narrow).collect();
    for isa in Isa::available() {
        let mut counts = vec![start; keys.len()];
        let mut missed = vec![K::default(); items.len() + MISSED_SLACK];
        let mut missed_weights = vec![u64::MAX; missed.len()];
        let hot = HotKeys { keys: &keys, hits: &mut counts };
        let end = sift_weighted(isa, hot, &items, weights, &mut missed, &mut missed_weights);
        assert_eq!((&counts, &missed[..end]), (&sums, &expected[..]), "{isa}");
        assert_eq!(missed_weights[..end], expected_weights, "{isa}");
        if weights.iter().all(|&weight| weight == 1) {
            counts.fill(start);
            let hot = HotKeys { keys: &keys, hits: &mut counts };
            let end = sift(isa, hot, &items, &mut missed);
            assert_eq!((&counts, &missed[..end]), (&sums, &expected[..]), "{isa}");
        }
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

/// Blocks of 1,024 items: the weights fit into lanes of their width in some blocks and not in
/// others, and all items of some blocks are one key.
#[test]
fn weights_of_many_blocks_add_up() {
    let mixed: Vec<u64> = (0..5_000).map(|i| i * i % 11).collect();
    let same = vec![9; mixed.len()];
    for len in [1_023, 1_024, 1_025, 2_048, 5_000] {
        for large in [0, 1_023, 1_024, 3_000] {
            for (most, beyond) in [((1 << 24) - 1, 1 << 24), ((1 << 54) - 1, u64::MAX)] {
                let mut weights = vec![most; len];
                if let Some(weight) = weights.get_mut(large) {
                    *weight = beyond;
                }
                for items in [&mixed, &same] {
                    check_weighted::<u32>(&[3, 9, 4], &items[..len], &weights, 0);
                    check_weighted::<u64>(&[3, 9, 4], &items[..len], &weights, 7);
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "2 items need as many weights, not 1")]
fn fewer_weights_than_items_are_refused() {
    let hot = HotKeys { keys: &[1_u32], hits: &mut [0] };
    let _ = sift_weighted(Isa::Scalar, hot, &[1; 2], &[1], &mut [0; 18], &mut [0; 18]);
}

#[test]
#[should_panic(expected = "a sieve takes out 1 to 8 keys, not 0")]
fn no_key_is_refused() {
    let hot = HotKeys::<u32> { keys: &[], hits: &mut [] };
    let _ = sift(Isa::Scalar, hot, &[], &mut [0; 16]);
}

#[test]
#[should_panic(expected = "1 items need room for 16 more, not for 16")]
fn a_buffer_without_slack_is_refused() {
    let hot = HotKeys { keys: &[1_u32], hits: &mut [0] };
    let _ = sift(Isa::Scalar, hot, &[1], &mut [0; 16]);
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
