//! The guarantees where the sieve has parts that the other summaries lack: cells that an adversary
//! fills, sums that reach their limits, hot items that are replaced, a limit on memory.

use std::collections::{HashMap, HashSet};

use super::*;
use crate::shared::items::Text;
use crate::shared::names::secret::Secret;
use crate::summary::{Summary, top};

const SEED: u64 = 1;

/// An empty table with the hash of [`SEED`].
fn table(cells: usize) -> CellTable<u32> {
    CellTable::new(cells, Secret::from_seed(SEED).code_hash())
}

/// A sieve beside exact counts.
struct Checked<K: Item> {
    sieve: Sieve<K>,
    truth: HashMap<K, u64>,
}

impl<K: Item + std::hash::Hash + for<'a> Item<Ref<'a> = K>> Checked<K>
where
    [K]: Items<K>,
{
    fn new(isa: Isa, counters: usize, cells: usize) -> Self {
        Self::seeded(isa, counters, cells, SEED)
    }

    fn seeded(isa: Isa, counters: usize, cells: usize, seed: u64) -> Self {
        let sieve =
            Sieve::with_shape(isa, SieveShape::new(counters, cells), Secret::from_seed(seed));
        Self { sieve, truth: HashMap::new() }
    }

    fn observe(&mut self, batch: &[K], weight: Option<u64>) {
        match weight {
            None => self.sieve.observe(batch),
            Some(weight) => self.sieve.observe_weighted(batch, &vec![weight; batch.len()]),
        }
        for item in batch {
            *self.truth.entry(item.clone()).or_default() += weight.unwrap_or(1);
        }
        self.check();
    }

    fn check(&self) {
        let Self { sieve, truth } = self;
        let bound = sieve.observed() / sieve.counters() as u64;
        assert!(sieve.count_min() <= bound, "{} is above {bound}", sieve.count_min());
        let mut monitored = HashSet::new();
        let mut excess = 0;
        for counted in sieve.iter() {
            let truth = truth[counted.item];
            assert!(counted.count_min() <= truth && truth <= counted.count, "{truth}: {counted:?}");
            assert!(counted.error <= bound, "{counted:?} errs by more than {bound}");
            assert!(monitored.insert(counted.item.clone()), "{counted:?} is monitored twice");
            let slack = sieve.shape.slack(sieve.observed());
            excess += counted.count.saturating_sub(slack);
        }
        assert!(excess <= sieve.observed(), "the excess {excess} is above N");
        for (item, &count) in truth {
            assert!(monitored.contains(item) || count <= sieve.count_min(), "{item:?}: {count}");
        }
    }
}

/// The page that tells the steps of an item has an example: its table is what the sieve does.
#[test]
fn the_page_of_the_sieve_shows_what_it_counts() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/sieve.md");
    let page = std::fs::read_to_string(page).unwrap();
    let letters = ["a", "b", "c", "d", "e"];
    // The items of the page have a place each.
    let items: HashMap<&str, u32> =
        letters.into_iter().enumerate().map(|(i, name)| (name, colliding(2, i, 1)[0])).collect();
    let shape = SieveShape::new(2, 2);
    assert_eq!((shape.slots(), shape.extra), (3, 1));
    let mut sieve = Sieve::with_shape(Isa::Scalar, shape, Secret::from_seed(SEED));
    let mut steps = 0;
    for row in page.lines().filter(|row| row.contains('±') && row.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [item, observed, line, _, counters] = cells[..] else { continue };
        let Some(&item) = items.get(item) else { continue };
        sieve.observe(&[item][..]);
        let name = |item| letters.into_iter().find(|name| items[name] == item).unwrap();
        let mut counted: Vec<String> = sieve
            .iter()
            .map(|counted| format!("{} {}±{}", name(*counted.item), counted.count, counted.error))
            .collect();
        counted.sort_unstable();
        assert_eq!(counted.join(", "), counters, "{row}");
        let numbers = (sieve.observed().to_string(), sieve.count_min().to_string());
        assert_eq!(numbers, (observed.to_owned(), line.to_owned()), "{row}");
        steps += 1;
    }
    assert_eq!(steps, 14);
    let resident = sieve.table.is_resident(sieve.table.place(items["a"]), items["a"]);
    assert!(resident && sieve.table.hits(items["a"]) == 3, "the cell counts the last hits");
}

#[test]
fn a_crowded_place_with_the_largest_alpha_stays_crowded() {
    let items = colliding(4, 9, 3);
    for line in (0..9_u64).map(|below| (1 << 32) - below) {
        let mut table = table(4);
        table.raise_line(line);
        table.house(9, items[0], true);
        table.house(9, items[1], true);
        table.evict(items[1], line);
        let mut refused = Vec::new();
        table.absorb(Isa::Scalar, &items[1..], None, &mut refused);
        assert_eq!(refused, [0b11], "line {line}: nothing fits below the mark");
        assert!(table.may_hold(9, items[1]), "line {line}");
    }
}

#[test]
fn places_of_one_cell_have_alphas_and_marks_of_their_own() {
    let mut table = table(4);
    table.raise_line(5);
    let [first, second] = [8, 11].map(|place| colliding(4, place, 2));
    table.house(8, first[0], true);
    table.house(11, second[0], true);
    let mut refused = Vec::new();
    table.absorb(Isa::Scalar, &[first[1], first[0], second[1], first[1]], None, &mut refused);
    assert_eq!(refused, [0b100], "only the place of the second resident is crowded");
    assert_eq!([8, 9, 11].map(|place| table.alpha(place)), [2, 0, 0]);
    assert_eq!([first[0], first[1]].map(|code| table.hits(code)), [1, 0]);
    assert!(table.may_hold(11, second[1]) && !table.may_hold(8, first[1]));
}

#[test]
fn the_most_frequent_item_of_a_cell_becomes_its_resident() {
    let mut table = table(4);
    let keys = [(8, 2), (10, 1), (11, 1)].map(|(place, len)| colliding(4, place, len)).concat();
    table.house(11, keys[3], true);
    table.house(8, keys[0], true);
    assert_eq!([8, 10, 11].map(|place| table.may_hold(place, 0)), [true, false, false]);
    for (counts, resident, crowded) in [
        ([5, 9, 9], 1, [true, true, false]),
        ([9, 5, 9], 0, [true, true, false]),
        ([5, 5, 9], 2, [true, false, false]),
    ] {
        table.rehouse(&counts, |slot| keys[slot as usize], |_| true);
        for (slot, &key) in keys.iter().enumerate() {
            let place = table.place(key);
            assert_eq!(table.is_resident(place, key), slot == resident, "{counts:?}");
        }
        assert_eq!([8, 10, 11].map(|place| table.may_hold(place, 0)), crowded, "{counts:?}");
        let mut refused = Vec::new();
        table.absorb(Isa::Scalar, &[keys[resident]; 3], None, &mut refused);
        assert_eq!((table.take_hits(keys[resident]), refused), (3, vec![0]));
    }
}

#[test]
fn merged_sieves_keep_the_excess_and_go_on() {
    for (counters, cells) in [(3, 4), (10, 16), (30, 256), (30, 1 << 12)] {
        for has_own_seeds in [false, true] {
            check_merged(counters, cells, has_own_seeds);
        }
    }
}

fn check_merged(counters: usize, cells: usize, has_own_seeds: bool) {
    let part = |seed: u32, step: u32, weight| {
        let own = if has_own_seeds { u64::from(step) } else { SEED };
        let mut part = Checked::seeded(Isa::Scalar, counters, cells, own);
        let items: Vec<u32> =
            (0..900_u32).map(|i| (i * step + seed) % (31 + 40 * step) + i % 3).collect();
        items.chunks(50).for_each(|batch| part.observe(batch, weight));
        part
    };
    let mut whole = part(0, 1, None);
    for (seed, step, weight) in [(7, 1, Some(3)), (3, 17, None), (100, 5, Some(1 << 33))] {
        let other = part(seed, step, weight);
        whole.sieve.merge(&other.sieve).unwrap();
        for (item, count) in other.truth {
            *whole.truth.entry(item).or_default() += count;
        }
        whole.check();
        whole.observe(&[5, seed, 5, 1_000 + step], None);
        whole.observe(&(0..60).map(|i| i * 7 + seed).collect::<Vec<_>>(), weight);
    }
}

#[test]
fn merging_adds_the_alphas_of_equal_cells_only_under_one_seed() {
    let part = |seed: u64| {
        let mut part = Checked::seeded(Isa::Scalar, 20, 64, seed);
        (0..40).for_each(|round| {
            part.observe(&(0..90).map(|i| i * 31 + round).collect::<Vec<u32>>(), None)
        });
        part.sieve
    };
    let (left, same, other) = (part(1), part(1), part(2));
    let alphas = |with: &Sieve<u32>| -> Vec<u64> {
        let mut merged = left.clone();
        merged.merge(with).unwrap();
        assert!(merged.table.alpha_max() <= merged.count_min());
        (0..256).map(|place| merged.table.alpha(place)).collect()
    };
    let (with_same, with_other) = (alphas(&same), alphas(&other));
    let others_max = other.table.alpha_max();
    for place in 0..256 {
        let own = left.table.alpha(place);
        assert!(with_same[place] >= own + same.table.alpha(place));
        assert!(with_other[place] >= own + others_max);
    }
    assert!(with_same.iter().sum::<u64>() < with_other.iter().sum::<u64>());
}

#[test]
fn every_seed_keeps_the_bounds_and_equal_seeds_give_equal_counts() {
    let items = |round: u32| (0..200).map(move |i: u32| (i * i + round * 37) % 1_009);
    for seed in 0..40 {
        let mut pair = [0, 1].map(|_| Checked::seeded(Isa::Scalar, 25, 64, seed));
        for round in 0..20 {
            let batch: Vec<u32> = items(round).collect();
            pair.iter_mut().for_each(|checked| checked.observe(&batch, None));
        }
        let [left, right] = pair.map(|checked| checked.sieve);
        assert_eq!(left.top(99), right.top(99));
        let shared = left.to_empty();
        assert_eq!((shared.len(), shared.secret), (0, left.secret));
    }
}

/// Items that all hash to one place.
fn colliding(cells: usize, place: usize, len: usize) -> Vec<u32> {
    let table = table(cells);
    (0..).filter(|&item| table.place(item) == place).take(len).collect()
}

#[test]
fn guarantees_hold_when_all_items_share_a_place() {
    for place in [0, 1, 1023] {
        let items = colliding(256, place, 900);
        let mut new = Checked::new(Isa::Scalar, 30, 256);
        items.chunks(7).for_each(|batch| new.observe(batch, None));
        let mut round_robin = Checked::new(Isa::Scalar, 30, 256);
        let laps: Vec<u32> = items[..62].iter().copied().cycle().take(3_000).collect();
        laps.chunks(61).for_each(|batch| round_robin.observe(batch, None));
        let mut weighted = Checked::new(Isa::Scalar, 30, 256);
        items.chunks(7).for_each(|batch| weighted.observe(batch, Some(u64::from(batch[0] % 9))));
    }
}

#[test]
fn alpha_changes_its_units_within_the_bounds() {
    for bits in [0, 20, 27, 31, 32, 40, 45] {
        let mut checked = Checked::new(Isa::Scalar, 5, 16);
        let mut state = 1_u32;
        for step in 0..400_u64 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let batch = [state >> 25, state >> 28, 3, 3];
            checked.observe(&batch, Some((1 << bits) + ((step * 7919) & ((1 << bits) - 1))));
            checked.observe(&batch, None);
        }
    }
}

#[test]
fn a_slow_rise_of_the_line_through_all_units_is_a_bound_for_the_smallest_weights() {
    let mut checked = Checked::<u64>::new(Isa::Scalar, 2, 4);
    for bits in 0..50 {
        let batch: Vec<u64> = (0..40).map(|i| i % 11).collect();
        checked.observe(&batch, Some(1 << bits));
        checked.observe(&batch[..13], Some(3));
        checked.observe(&batch, None);
    }
}

#[test]
fn hits_beyond_a_cell_reach_the_counter() {
    let mut checked = Checked::new(Isa::Scalar, 4, 16);
    for _ in 0..9 {
        checked.observe(&[1_u32, 2, 1], Some(u64::from(u32::MAX / 3)));
    }
    assert_eq!(checked.sieve.estimate(1).unwrap().count, 18 * u64::from(u32::MAX / 3));
}

#[test]
fn the_filter_follows_a_stream_that_changes() {
    for isa in Isa::available() {
        for weight in [None, Some(1), Some(1 << 30), Some(1 << 45)] {
            check_that_the_filter_follows(isa, weight);
        }
    }
}

fn check_that_the_filter_follows(isa: Isa, weight: Option<u64>) {
    let mut checked = Checked::new(isa, 40, 1 << 10);
    let mut noise = 0_u32;
    for era in 0..4 {
        for _ in 0..40 {
            let batch: Vec<u32> = (0..500)
                .map(|i| {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if i % 3 == 0 { noise } else { era * 100 + noise % 7 }
                })
                .collect();
            checked.observe(&batch, weight);
        }
        let last: Vec<u32> = checked.sieve.hot.codes().to_vec();
        assert_eq!(last.len(), checked.sieve.hot.slots().len());
        for (&code, &slot) in last.iter().zip(checked.sieve.hot.slots()) {
            assert_eq!(*checked.sieve.index.item(slot), code);
        }
        assert!(era > 0 || !last.is_empty(), "two thirds of the stream are seven items");
    }
}

#[test]
fn a_hot_item_that_loses_its_counter_leaves_the_filter() {
    let mut checked = Checked::new(Isa::selected().unwrap(), 2, 64);
    for round in 0..200_u32 {
        checked.observe(&[round % 3; 600], None);
        let new: Vec<u32> = (0..40).map(|i| 1_000 + 40 * round + i).collect();
        checked.observe(&new, Some(1 << 20));
        checked.observe(&[round % 3; 10], None);
    }
}

#[test]
fn residents_are_chosen_anew_when_crowds_are_slow() {
    let mut checked = Checked::new(Isa::Scalar, 30, 64);
    let items = colliding(64, 9, 8);
    let batch: Vec<u32> = items.iter().copied().cycle().take(400).collect();
    for _ in 0..20 {
        checked.observe(&batch, Some(2));
        assert!(checked.sieve.detours <= 400 + 256 / 8);
    }
}

#[test]
fn the_state_keeps_to_its_limit() {
    for (counters, limit) in [(1, 4_096), (10, 8_192), (1_000, 400_000), (1_000, 1_500_000)] {
        let mut sieve = Sieve::<u64>::within(Isa::selected().unwrap(), counters, limit).unwrap();
        let mut item = 1_u64;
        for round in 0..60 {
            let batch: Vec<u64> = (0..20_000)
                .map(|i| {
                    item = item.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    if i % 2 == 0 { 7 } else { item >> (20 + round % 20) }
                })
                .collect();
            sieve.observe(&batch[..]);
            sieve.observe_weighted(&batch[..3_000], &batch[3_000..6_000]);
        }
        assert!(sieve.state_bytes() <= limit, "{} of {limit}", sieve.state_bytes());
    }
    assert!(Sieve::<u64>::new(Isa::Scalar, 1_000).unwrap().state_bytes() <= 1_500_000);
}

#[test]
fn impossible_sizes_are_refused() {
    for counters in [0, COUNTERS_MAX + 1, usize::MAX] {
        let error = Sieve::<u32>::new(Isa::Scalar, counters).unwrap_err();
        assert_eq!(error, CapacityError::Counters { counters });
    }
    let error = Sieve::<u32>::within(Isa::Scalar, 100, 1_000).unwrap_err();
    assert!(error.to_string().starts_with("100 counters do not fit into 1000 bytes: at least "));
}

#[test]
fn a_thousand_counters_take_the_extra_ones_that_the_module_says() {
    let sieve = Sieve::<u32>::new(Isa::Scalar, 1_000).unwrap();
    assert_eq!((sieve.counters(), sieve.monitored_max(), sieve.cells()), (1_000, 1_092, 16_384));
}

#[test]
fn few_items_are_exact_and_text_is_what_it_says() {
    let mut sieve = Sieve::<Text>::new(Isa::Scalar, 3).unwrap();
    sieve.observe(&["a", "b", "a", "", "a"][..]);
    sieve.observe_weighted(&["b", "c"][..], &[4, 0]);
    let all: Vec<_> =
        sieve.top(9).into_iter().map(|c| (c.item.to_string(), c.count, c.error)).collect();
    let expected = [("b", 5, 0), ("a", 3, 0), ("", 1, 0)];
    assert_eq!(all, expected.map(|(item, count, error)| (item.to_owned(), count, error)));
    assert_eq!((sieve.estimate("c"), sieve.count_min(), sieve.len()), (None, 0, 3));
    assert_eq!(top(sieve.iter(), 1)[0].count, 5);
}
