//! Every level of the machine against intersections of sets that call no code of the crate.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::map::{BLOCK, Block, Map};
use super::slot::{codes, slot};
use super::*;
use crate::sets::Sets;

/// The recommended load, and a load at which insertions fail.
const LOADS: [u64; 2] = [100, 500];

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

/// A pseudo-random sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        u32::try_from(((self.0 >> 33) * u64::from(end)) >> 31).unwrap()
    }

    /// `len` tids of a universe, or all tids of a small universe.
    fn tids(&mut self, universe: u32, len: usize) -> Vec<u32> {
        if len >= universe as usize {
            return (0..universe).collect();
        }
        let mut tids = BTreeSet::new();
        while tids.len() < len {
            tids.insert(self.below(universe));
        }
        tids.into_iter().collect()
    }
}

/// Tid lists of a universe.
struct Case {
    universe: u32,
    lists: Vec<Vec<u32>>,
}

impl Case {
    /// Random lists of these lengths.
    fn random(universe: u32, lens: &[usize], seed: u64) -> Self {
        let mut random = Random(seed);
        Self { universe, lists: lens.iter().map(|&len| random.tids(universe, len)).collect() }
    }

    fn maps<const D: usize>(&self, isa: Isa, seed: u64, load: u64) -> BatMaps<D> {
        let mut offsets = vec![0];
        let tokens = self.lists.concat();
        for list in &self.lists {
            offsets.push(offsets[offsets.len() - 1] + narrow(list.len()));
        }
        let permutations = Permutations::new(self.universe, seed);
        BatMaps::with_load(isa, permutations, Sets::new(&offsets, &tokens), load)
    }

    /// The size of an intersection.
    fn support(&self, sets: &[u32]) -> u32 {
        let mut common: BTreeSet<u32> = self.lists[sets[0] as usize].iter().copied().collect();
        for &set in &sets[1..] {
            let list: BTreeSet<u32> = self.lists[set as usize].iter().copied().collect();
            common.retain(|tid| list.contains(tid));
        }
        narrow(common.len())
    }

    /// The supports of all pairs, row by row.
    fn pairs(&self) -> Vec<u32> {
        let sets = 0..narrow(self.lists.len());
        sets.clone()
            .flat_map(|row| sets.clone().map(move |column| [row, column]))
            .map(|pair| self.support(&pair))
            .collect()
    }

    /// Checks the supports of all pairs on all levels; returns the failed insertions.
    fn check_pairs<const D: usize>(&self, seed: u64, load: u64) -> usize {
        let (expected, sets) = (self.pairs(), narrow(self.lists.len()));
        let mut failed_counts = BTreeSet::new();
        for isa in Isa::available() {
            let maps = self.maps::<D>(isa, seed, load);
            maps_hold_each_element(&maps, self);
            let mut supports = vec![7; expected.len()];
            pair_supports(isa, &maps, 0..sets, 0..sets, &mut supports);
            assert_eq!(supports, expected, "{isa}, D = {D}, seed {seed}, load {load}");
            failed_counts.insert(maps.failed_count());
        }
        assert_eq!(failed_counts.len(), 1, "maps differ by level");
        failed_counts.into_iter().sum()
    }

    /// Checks the supports of triples of sets that follow each other, in all orders of a cycle and
    /// with one set twice.
    fn check_triples(&self, seed: u64, load: u64) {
        let maps = self.maps::<3>(Isa::Scalar, seed, load);
        let sets = narrow(self.lists.len());
        for set in 0..sets {
            let [next, far] = [(set + 1) % sets, (set + 3) % sets];
            for triple in [[set, next, far], [far, set, next], [next, far, set], [set, set, next]] {
                let expected = self.support(&triple);
                for isa in Isa::available() {
                    let support = triple_support(isa, &maps, triple);
                    assert_eq!(support, expected, "{isa}, {triple:?}, seed {seed}, load {load}");
                }
            }
        }
    }

    /// Checks all supports; returns the failed insertions for both `D`.
    fn check(&self, seed: u64, load: u64) -> [usize; 2] {
        self.check_triples(seed, load);
        [self.check_pairs::<2>(seed, load), self.check_pairs::<3>(seed, load)]
    }
}

/// Each element is in `D` tables, or in the side list and in no table; no slot has another one.
fn maps_hold_each_element<const D: usize>(maps: &BatMaps<D>, case: &Case) {
    for (set, list) in (0..).zip(&case.lists) {
        let (map, side) = (maps.map(set), maps.side(set));
        for &tid in list {
            let values = maps.permutations().values(tid);
            let is_in = |&table: &usize| {
                let code = u32::from(map.slot(table, values[table] as usize) & codes::<D>());
                code == values[table] / maps.permutations().range_min()
            };
            let copies = if side.contains(&tid) { 0 } else { D };
            assert_eq!((0..=D).filter(is_in).count(), copies, "tid {tid} of set {set}");
        }
        let slots = (0..=D).flat_map(|table| (0..map.range()).map(move |at| map.slot(table, at)));
        let taken = slots.filter(|&slot| slot != 0).count();
        assert_eq!(taken, D * (list.len() - side.len()), "set {set}");
    }
}

#[test]
fn sizes_around_registers_and_powers_of_two_match() {
    let lens = [0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000];
    for load in LOADS {
        let failed = Case::random(5000, &lens, 1).check(1, load);
        assert!(load == 100 || failed.iter().all(|&failed| failed > 100), "{failed:?}");
    }
}

#[test]
fn universes_and_densities_match() {
    for universe in [1, 2, 127, 128, 129, 1000, (1 << 16) - 1, 1 << 16, (1 << 16) + 1] {
        let len = |percent: usize| (universe as usize * percent).div_ceil(100);
        let percents: &[usize] =
            if universe > 1000 { &[1, 5, 30] } else { &[0, 1, 10, 50, 90, 100] };
        let lens: Vec<usize> = percents.iter().copied().map(len).collect();
        for load in LOADS {
            Case::random(universe, &lens, universe.into()).check(3, load);
        }
    }
    for universe in [(1 << 20) - 1, 1 << 20, (1 << 20) + 1] {
        Case::random(universe, &[20, 5000, 30_000], 9).check(4, 100);
    }
}

#[test]
fn the_largest_universe_matches() {
    let universe = Permutations::<2>::UNIVERSE_MAX;
    let mut random = Random(5);
    let common = random.tids(universe, 500);
    let list = |_| {
        let own = random.tids(universe, 500);
        common.iter().copied().chain(own).chain([0, universe - 1]).collect::<BTreeSet<_>>()
    };
    let lists = [0, 1].map(list).map(|list| list.into_iter().collect());
    let case = Case { universe, lists: lists.into() };
    let maps = case.maps::<2>(Isa::Scalar, 1, 100);
    for isa in Isa::available() {
        let mut supports = [0];
        pair_supports(isa, &maps, 0..1, 1..2, &mut supports);
        assert_eq!(supports, [case.support(&[0, 1])], "{isa}");
    }
}

#[test]
fn narrow_maps_are_folded_over_wide_ones() {
    let case = Case::random(100_000, &[20_000, 5, 300, 3000], 2);
    let maps = case.maps::<3>(Isa::Scalar, 2, 100);
    assert_eq!([0, 1, 2, 3].map(|map| maps.range(map)), [65_536, 2048, 2048, 16_384]);
    case.check(2, 100);
}

#[test]
fn full_sets_fit_without_failures() {
    for universe in [64, 4096, 8127] {
        let case = Case { universe, lists: vec![(0..universe).collect(); 2] };
        let maps = case.maps::<2>(Isa::Scalar, 1, 100);
        assert_eq!((maps.failed_count(), case.support(&[0, 1])), (0, universe));
        case.check(1, 100);
    }
}

#[test]
fn elements_that_collide_go_to_side_lists() {
    let universe = 300_000;
    let permutations = Permutations::<2>::new(universe, 6);
    let range = permutations.range_min();
    let place = |tid: u32, table: usize| permutations.values(tid)[table] % range;
    // Each of these tids misses the table in which all collide; no insertion fails.
    let in_one: Vec<u32> = (0..universe).filter(|&tid| place(tid, 0) == 5).collect();
    // Each of these tids needs at least one of the first slots of table 0 or 1.
    let first_slots = range / 16;
    let in_two = |&tid: &u32| place(tid, 0) < first_slots && place(tid, 1) < first_slots;
    let in_two: Vec<u32> = (0..universe).filter(in_two).collect();
    let failed_min = in_two.len() - 2 * first_slots as usize;
    assert!(in_one.len() > 50 && failed_min > 500);
    let case = Case { universe, lists: vec![in_one, in_two.clone(), in_two] };
    let maps = case.maps::<2>(Isa::Scalar, 6, 100);
    assert_eq!(maps.side(0).len(), 0);
    assert_eq!(maps.range(1), range as usize);
    assert!(maps.side(1).len() >= failed_min, "{} failed", maps.side(1).len());
    assert_eq!(maps.side(1), maps.side(2));
    case.check(6, 100);
}

#[test]
fn supports_do_not_depend_on_seeds() {
    let case = Case::random(3000, &[40, 400, 800, 800, 800], 3);
    let failed: BTreeSet<[usize; 2]> = (0..8).map(|seed| case.check(seed, 300)).collect();
    assert!(failed.len() > 1, "the side lists do");
}

#[test]
fn few_insertions_fail_at_the_recommended_load() {
    let case = Case::random(40_000, &[509; 300], 8);
    let failed = case.maps::<2>(Isa::Scalar, 8, 100).failed_count();
    assert!((10..80).contains(&failed), "{failed} in 300 sets");
}

#[test]
fn permutations_are_bijections_without_code_0() {
    fn check<const D: usize>(universe: u32, step: usize) {
        for seed in [0, 1, u64::MAX] {
            let permutations = Permutations::<D>::new(universe, seed);
            let tids: Vec<u32> = (0..universe).step_by(step).chain([universe - 1]).collect();
            let tids = BTreeSet::from_iter(tids);
            for table in 0..=D {
                let value = |&tid: &u32| permutations.values(tid)[table];
                let values: BTreeSet<u32> = tids.iter().map(value).collect();
                assert_eq!(values.len(), tids.len(), "{universe}, {seed}, {table}");
                let is_code = |&value: &u32| (1..=codes::<D>()).contains(&permutations.code(value));
                assert!(values.iter().all(is_code), "{universe}, {seed}, {table}");
                let domain = 1_u64 << permutations.domain_bits();
                assert!(values.iter().all(|&value| u64::from(value) < domain));
            }
        }
    }
    for universe in [1, 2, 63, 64, 65, 4031, 4032, 4033, 8127, 8128, 8129, 70_000] {
        check::<2>(universe, 1);
        check::<3>(universe, 1);
    }
    check::<2>(1 << 31, 65_521);
    check::<3>(1 << 31, 65_521);
}

/// The map of one element that misses this table.
fn map_of_one<const D: usize>(missed: usize) -> Vec<Block> {
    let mut tables = vec![Block([0; BLOCK]); D + 1];
    for table in (0..=D).filter(|&table| table != missed) {
        tables[table].0[9 * table + 5] = slot::<D>(codes::<D>() / 3, table, missed);
    }
    tables
}

#[test]
fn a_common_element_counts_once_for_all_missed_tables() {
    let pairs = map_of_one::<2>;
    for (left, right) in (0..9).map(|pair| (pairs(pair / 3), pairs(pair % 3))) {
        let maps = [&left, &right].map(|tables| Map { tables, table_bits: 0 });
        assert_eq!(levels::scalar::count::<2, 2>(maps), 1);
    }
    for missed in 0..64 {
        let tables = [missed % 4, missed / 4 % 4, missed / 16].map(map_of_one::<3>);
        let [a, b, c] = [0, 1, 2].map(|map| Map { tables: &tables[map], table_bits: 0 });
        assert_eq!(levels::scalar::count::<3, 2>([a, b]), 1);
        for isa in Isa::available() {
            assert_eq!(dispatch::<Base, _>(isa, CountTriple([a, b, c])), 1, "{isa}, {missed}");
        }
    }
}

#[test]
fn no_sets_and_no_pairs_have_no_supports() {
    let none = Case { universe: 0, lists: vec![] };
    assert!(none.maps::<2>(Isa::Scalar, 1, 100).is_empty());
    let maps = Case::random(100, &[9; 3], 1).maps::<2>(Isa::Scalar, 1, 100);
    for isa in Isa::available() {
        pair_supports(isa, &maps, 1..1, 0..3, &mut []);
        pair_supports(isa, &maps, 0..3, 2..2, &mut []);
    }
}

fn supports_of(rows: Range<u32>, columns: Range<u32>, len: usize) {
    let maps = Case::random(100, &[9; 3], 1).maps::<2>(Isa::Scalar, 1, 100);
    pair_supports(Isa::Scalar, &maps, rows, columns, &mut vec![0; len]);
}

#[test]
#[should_panic(expected = "rows 0..4 and columns 0..3 of 3 maps")]
fn maps_that_are_not_there_are_refused() {
    supports_of(0..4, 0..3, 12);
}

#[test]
#[should_panic(expected = "6 pairs need as many supports, not 5")]
fn a_wrong_number_of_supports_is_refused() {
    supports_of(0..2, 0..3, 5);
}

#[test]
#[should_panic(expected = "tid 100 in a universe of 100")]
fn tids_outside_of_the_universe_are_refused() {
    Case { universe: 100, lists: vec![vec![3, 100]] }.maps::<2>(Isa::Scalar, 1, 100);
}

#[test]
#[should_panic(expected = "invalid universe 2147483649: at most 2147483648 tids")]
fn a_universe_that_is_too_large_is_refused() {
    let _ = Permutations::<3>::new((1 << 31) + 1, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn random_sets_match(
        universe in prop_oneof![1_u32..300, 1_u32..20_000],
        densities in prop::collection::vec(0_u32..=100, 1..6),
        load in prop_oneof![Just(50_u64), Just(100), Just(150), Just(400)],
        seed: u64,
    ) {
        // Densities are squared, so that most sets are sparse, as tid lists are.
        let lens = densities.iter().map(|density| (universe * density / 100 * density / 100) as usize);
        Case::random(universe, &lens.collect::<Vec<_>>(), seed).check(seed, load);
    }
}
