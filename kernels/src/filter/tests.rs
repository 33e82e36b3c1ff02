//! Every level of the machine against loops of a few lines that call no code of the crate.

use proptest::prelude::*;

use std::fmt::Debug;

use super::*;

/// A batch that mixes hits and misses: item `i` is `stride * i` modulo `alphabet`.
fn stream(len: usize, alphabet: u64, stride: u64) -> Vec<u64> {
    (0..len as u64).map(|i| i.wrapping_mul(stride) % alphabet).collect()
}

/// Counts and missed positions by a plain loop, which `room` and `budget` end.
fn by_hand(
    keys: &[u64],
    counts: &mut [u64],
    batch: &[(u64, u64)],
    room: usize,
    budget: u64,
) -> (Vec<u32>, Absorbed) {
    let (mut missed, mut consumed, mut missed_weight) = (Vec::new(), 0, 0_u64);
    for &(item, weight) in batch {
        if missed.len() == room || missed_weight >= budget {
            break;
        }
        match keys.iter().position(|&key| key == item) {
            Some(bin) => counts[bin] = counts[bin].saturating_add(weight),
            None => {
                missed.push(u32::try_from(consumed).unwrap());
                missed_weight = missed_weight.saturating_add(weight);
            }
        }
        consumed += 1;
    }
    let absorbed = Absorbed { consumed, missed: missed.len(), missed_weight };
    (missed, absorbed)
}

/// Checks all forms of the filter on all levels, with `u64` keys and, where they fit, with `u32`
/// keys.
fn check(keys: &[u64], start: u64, batch: &[(u64, u64)], room: usize, budget: u64) {
    check_key::<u64>(keys, start, batch, room, budget);
    if keys.iter().chain(batch.iter().map(|(item, _)| item)).all(|&key| u32::try_from(key).is_ok())
    {
        check_key::<u32>(keys, start, batch, room, budget);
    }
}

fn check_key<K: Key + TryFrom<u64, Error: Debug>>(
    keys: &[u64],
    start: u64,
    batch: &[(u64, u64)],
    room: usize,
    budget: u64,
) {
    let narrow = |key: u64| K::try_from(key).unwrap();
    let bins: Vec<K> = keys.iter().copied().map(narrow).collect();
    let items: Vec<K> = batch.iter().map(|&(item, _)| narrow(item)).collect();
    let weights: Vec<u64> = batch.iter().map(|&(_, weight)| weight).collect();
    let ones: Vec<(u64, u64)> = batch.iter().map(|&(item, _)| (item, 1)).collect();
    for isa in Isa::available() {
        let mut expected = vec![start; keys.len()];
        let (positions, end) = by_hand(keys, &mut expected, &ones, room, u64::MAX);
        let (mut counts, mut missed) = (vec![start; keys.len()], vec![0; room]);
        let got = absorb(isa, Bins { keys: &bins, counts: &mut counts }, &items, &mut missed);
        assert_eq!(
            (got, &counts, &missed[..got.missed]),
            (end, &expected, &positions[..]),
            "{isa}"
        );

        let mut expected = vec![start; keys.len()];
        let (positions, end) = by_hand(keys, &mut expected, batch, room, budget);
        let (mut counts, mut missed) = (vec![start; keys.len()], vec![0; room]);
        let bins_now = Bins { keys: &bins, counts: &mut counts };
        let got = absorb_weighted(isa, bins_now, &items, &weights, budget, &mut missed);
        assert_eq!(
            (got, &counts, &missed[..got.missed]),
            (end, &expected, &positions[..]),
            "{isa}"
        );

        let mut lanes = vec![77; items.len()];
        locate(isa, &bins, &items, &mut lanes);
        for (item, lane) in items.iter().zip(lanes) {
            let first = bins.iter().position(|key| key == item).unwrap_or(BINS_MAX);
            assert_eq!(usize::from(lane), first, "{isa}");
        }
    }
}

#[test]
fn every_number_of_bins_matches_the_loop() {
    for bins in 0..=BINS_MAX {
        let keys: Vec<u64> = (0..bins as u64).map(|bin| bin * 3).collect();
        for len in [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200] {
            let items = stream(len, 2 * BINS_MAX as u64, 7);
            let batch: Vec<_> = items.iter().map(|&item| (item, item % 5)).collect();
            check(&keys, 10, &batch, len, u64::MAX);
        }
    }
}

#[test]
fn a_full_buffer_stops_at_any_position() {
    let keys: Vec<u64> = (0..16).collect();
    let batch: Vec<_> = stream(40, 24, 5).into_iter().map(|item| (item, 2)).collect();
    for room in 0..=batch.len() {
        check(&keys, 0, &batch, room, u64::MAX);
    }
}

#[test]
fn a_spent_budget_stops_at_any_weight() {
    let keys: Vec<u64> = (0..9).collect();
    let batch: Vec<_> = stream(40, 24, 5).into_iter().map(|item| (item, item % 4)).collect();
    for budget in 0..=80 {
        check(&keys, 0, &batch, batch.len(), budget);
    }
}

#[test]
fn extreme_keys_are_keys_like_any_other() {
    let keys = [0, u64::MAX, u64::from(u32::MAX), 1 << 63, 1 << 32];
    let batch: Vec<_> = keys.iter().chain(&[1, 2]).map(|&item| (item, 1)).collect();
    check(&keys, 0, &batch, 7, u64::MAX);
    check(&[u64::from(u32::MAX), 0], 0, &[(0, 1), (u64::from(u32::MAX), 1), (5, 1)], 3, u64::MAX);
}

#[test]
fn counts_saturate() {
    let huge = [u64::MAX, u64::MAX / 2, 1 << 54, (1 << 54) - 1, 1, 0];
    let batch: Vec<_> =
        (0..60).map(|i| (i % 5, huge[usize::try_from(i).unwrap() % huge.len()])).collect();
    for start in [0, 1 << 60, u64::MAX - 3, u64::MAX] {
        check(&[0, 1, 2, 3], start, &batch, 60, u64::MAX);
        check(&[0, 2], start, &batch, 60, 1 << 55);
    }
}

#[test]
fn weights_over_many_blocks_add_up() {
    let keys: Vec<u64> = (0..12).collect();
    let heavy_at = |i: u64| if i == 2_500 { u64::MAX } else { (1 << 53) + i };
    let items = stream(5_000, 20, 3);
    let batch: Vec<_> = (0..).zip(items).map(|(i, item)| (item, heavy_at(i))).collect();
    check(&keys, 0, &batch, 5_000, u64::MAX);
    check(&keys, 0, &batch[..2_400], 1_500, u64::MAX);
}

#[test]
fn a_code_that_stands_twice_is_found_at_its_first_lane() {
    for isa in Isa::available() {
        let mut lanes = [0; 3];
        locate::<u64>(isa, &[7, 9, 9, 7, 9], &[9, 7, 8], &mut lanes);
        assert_eq!(lanes, [1, 0, NO_LANE], "{isa}");
    }
}

#[test]
#[should_panic(expected = "a filter has at most 64 bins, not 65")]
fn too_many_bins_are_refused() {
    let _ = absorb(Isa::Scalar, Bins { keys: &[0_u32; 65], counts: &mut [0; 65] }, &[], &mut []);
}

#[test]
#[should_panic(expected = "a filter of 2 bins needs as many counts, not 1")]
fn missing_counts_are_refused() {
    let _ = absorb(Isa::Scalar, Bins { keys: &[1_u32, 2], counts: &mut [0] }, &[], &mut []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn levels_agree_with_the_loop(
        bins in 0..=BINS_MAX,
        batch in prop::collection::vec((0..100_u64, prop_oneof![0..9_u64, any::<u64>()]), 0..300),
        room in 0..300_usize,
        budget in prop_oneof![0..500_u64, any::<u64>()],
        offset in prop_oneof![Just(0), Just(u64::from(u32::MAX) - 99), any::<u32>().prop_map(|x| u64::from(x) << 32)],
    ) {
        let keys: Vec<u64> = (0..bins as u64).map(|bin| offset + bin * 37 % 100).collect();
        let batch: Vec<_> = batch.into_iter().map(|(item, weight)| (offset + item, weight)).collect();
        check(&keys, 5, &batch, room, budget);
    }
}
