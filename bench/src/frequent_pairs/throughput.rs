//! Supports of pairs one at a time, by the density of the items: maps, bitmaps and merged lists, by
//! the bytes of both operands and by their transactions.

use std::time::{Duration, Instant};

use trommel::Isa;
use trommel_kernels::batmap::{BatMaps, Permutations, pair_supports};
use trommel_kernels::supports::{BitmapColumns, FoundPairs, ListColumns};

use super::lists::Lists;

/// Transactions, of which an item has a part.
const TRANSACTIONS: u32 = 1 << 20;
/// Items, all pairs of which are compared.
const ITEMS: u32 = 64;
/// Items of a side of a rectangle: the maps of both sides stay in the second-level cache.
const SIDE: u32 = 4;

const PERCENTS: [f64; 12] = [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.3, 2.0, 5.0, 20.0];

/// Median time of `run` after one round to warm up; all answers must be `expected`.
fn median(rounds: usize, expected: u64, name: &str, mut run: impl FnMut() -> u64) -> Duration {
    let mut times: Vec<Duration> = (0..=rounds.max(1))
        .map(|_| {
            let start = Instant::now();
            assert_eq!(run(), expected, "{name} gives another answer");
            start.elapsed()
        })
        .skip(1)
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

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

fn sum(found: &FoundPairs) -> u64 {
    found.pairs().iter().map(|pair| u64::from(pair.support)).sum()
}

/// Measures and prints.
pub(super) fn run(rounds: usize) {
    let isa = Isa::selected().expect("the variable names a level of this machine");
    println!("\nAll pairs of {ITEMS} items of {TRANSACTIONS} transactions on one core, {isa}:");
    println!("GB/s of both operands / 10^9 transactions a second; medians\n");
    println!("| density, % | batmap | bitmap | lists | batmap / bitmap | failed insertions |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for percent in PERCENTS {
        let lists = Lists::random(ITEMS, TRANSACTIONS, percent);
        let (sets, expected) = (lists.sets(), lists.by_hand(TRANSACTIONS));
        let maps = BatMaps::<2>::new(isa, Permutations::new(TRANSACTIONS, 7), sets);
        let mut bitmaps = BitmapColumns::new(sets, TRANSACTIONS, 0..ITEMS);
        let mut merged = ListColumns::new(0..ITEMS);
        let mut found = FoundPairs::new(1, usize::MAX);
        let of_maps = median(rounds, expected, "batmap", || by_maps(isa, &maps));
        let of_bits = median(rounds, expected, "bitmap", || {
            found.clear(1);
            bitmaps.count(isa, sets, 0..ITEMS, &mut found);
            sum(&found)
        });
        let of_lists = median(rounds, expected, "lists", || {
            found.clear(1);
            merged.count(isa, sets, 0..ITEMS, &mut found);
            sum(&found)
        });
        // Each item is in a pair with all others.
        let pairs_of_item = f64::from(ITEMS - 1);
        let elements = lists.len() as f64 * pairs_of_item;
        let cell = |bytes: f64, time: Duration| {
            let nanoseconds = time.as_secs_f64() * 1e9;
            format!("{:.0} / {:.1}", bytes * pairs_of_item / nanoseconds, elements / nanoseconds)
        };
        let bits = f64::from(ITEMS) * f64::from(TRANSACTIONS) / 8.0;
        println!(
            "| {percent} | {} | {} | {} | {:.2} | {} |",
            cell(maps.bytes() as f64, of_maps),
            cell(bits, of_bits),
            cell(4.0 * lists.len() as f64, of_lists),
            of_bits.as_secs_f64() / of_maps.as_secs_f64(),
            maps.failed_count(),
        );
    }
}
