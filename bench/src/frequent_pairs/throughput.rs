//! Supports of pairs one at a time, by the density of the items: maps, bitmaps and merged lists, by
//! the bytes of both operands and by their transactions.

use trommel::Isa;
use trommel_kernels::batmap::{BatMaps, Permutations, pair_supports};
use trommel_kernels::supports::{BitmapColumns, FoundPairs, ListColumns};

use super::lists::Lists;
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns};
use crate::runner::{Runs, isa};

/// Transactions, of which an item has a part.
const TRANSACTIONS: u32 = 1 << 20;
/// Items, all pairs of which are compared.
const ITEMS: u32 = 64;
/// Items of a side of a rectangle: the maps of both sides stay in the second-level cache.
const SIDE: u32 = 4;

const PERCENTS: [f64; 12] = [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.3, 2.0, 5.0, 20.0];

/// The sum of the supports of all pairs by maps.
fn by_maps(isa: Isa, maps: &BatMaps<2>) -> u64 {
    let (mut supports, mut sum) = ([0_u32; (SIDE * SIDE) as usize], 0);
    for top in (0..ITEMS).step_by(SIDE as usize) {
        for first in (0..=top).step_by(SIDE as usize) {
            let (rows, columns) = (top..top + SIDE, first..first + SIDE);
            pair_supports(isa, maps, rows.clone(), columns.clone(), &mut supports);
            for (row, supports) in rows.zip(supports.chunks(SIDE as usize)) {
                let before = columns.clone().zip(supports).take_while(|(column, _)| *column < row);
                sum += before.map(|(_, &support)| u64::from(support)).sum::<u64>();
            }
        }
    }
    sum
}

/// The sum of the supports of the pairs that `count` finds.
fn sum_of(count: impl FnOnce(&mut FoundPairs)) -> u64 {
    let mut found = FoundPairs::new(1, usize::MAX);
    count(&mut found);
    found.pairs().iter().map(|pair| u64::from(pair.support)).sum()
}

/// Measures and prints.
pub(super) fn run(runs: Runs) {
    let isa = isa();
    println!("All pairs of {ITEMS} items of {TRANSACTIONS} transactions on one core, {isa}:");
    println!("GB/s of both operands / 10^9 transactions a second; medians\n");
    let mut table = Table::new(
        "density, %: | batmap: | bitmap: | lists: | batmap / bitmap: | failed insertions:",
    );
    for percent in PERCENTS {
        let lists = Lists::random(ITEMS, TRANSACTIONS, percent);
        let sets = lists.sets();
        let maps = BatMaps::<2>::new(isa, Permutations::new(TRANSACTIONS, 7), sets);
        let mut bitmaps = BitmapColumns::new(sets, TRANSACTIONS, 0..ITEMS);
        let mut merged = ListColumns::new(0..ITEMS);
        let mut turns = Turns::new(runs).expect(lists.by_hand(TRANSACTIONS));
        turns.add("batmap", || Run::of(|| by_maps(isa, &maps)));
        turns.add("bitmap", || {
            Run::of(|| {
                sum_of(|found| {
                    bitmaps.count(isa, sets, 0..ITEMS, found);
                })
            })
        });
        turns.add("lists", || {
            Run::of(|| {
                sum_of(|found| {
                    merged.count(isa, sets, 0..ITEMS, found);
                })
            })
        });
        let times: Vec<f64> = turns.run().iter().map(|engine| engine.seconds()).collect();
        // Each item is in a pair with all others.
        let pairs_of_item = f64::from(ITEMS - 1);
        let elements = lists.len() as f64 * pairs_of_item;
        let bits = f64::from(ITEMS) * f64::from(TRANSACTIONS) / 8.0;
        let bytes = [maps.bytes() as f64, bits, 4.0 * lists.len() as f64];
        let [of_maps, of_bits, of_lists] = [0, 1, 2].map(|engine: usize| {
            let ns = 1e9 * times[engine];
            format!("{:.0} / {:.1}", bytes[engine] * pairs_of_item / ns, elements / ns)
        });
        table.row(format!(
            "{percent} | {of_maps} | {of_bits} | {of_lists} | {:.2} | {}",
            times[1] / times[0],
            maps.failed_count(),
        ));
    }
}
