//! The costs of steps of the layouts on a CPU, which the operator's model has as constants
//! (`operators/src/frequent_pairs/plan/cost.rs`).

use std::hint::black_box;

use trommel::Isa;
use trommel_kernels::supports::{
    BitmapColumns, COLUMNS, FoundPairs, Marks, SlicedColumns, SparseRows,
};

use super::lists::Lists;
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns};
use crate::runner::{Runs, isa};

/// Median nanoseconds of `run`.
fn nanoseconds(runs: Runs, mut run: impl FnMut()) -> f64 {
    let mut turns = Turns::new(runs);
    turns.add("step", || Run::of(&mut run));
    1e9 * turns.run()[0].seconds()
}

/// Measures all steps and prints them.
pub(super) fn run(runs: Runs) {
    let isa = isa();
    let rounds = runs.rounds(5);
    println!("Steps of the layouts on one core, {isa}; nanoseconds, medians of {rounds}\n");
    let mut table = Table::new("constant | ns: | step");
    let mut show = |name: &str, time: f64, step: &str| {
        table.row(format!("`{name}` | {time:.2} | {step}"));
    };
    let (items, transactions) = (2_000, 50_000);
    let lists = Lists::random(items, transactions, 5.0);
    let sets = lists.sets();
    // No pair is frequent: rows of results are the user's cost, not the layout's.
    let mut found = FoundPairs::new(u32::MAX, usize::MAX);
    let block = 0..u32::try_from(COLUMNS).expect("512");
    let bits: usize = block.clone().map(|item| sets.set(item as usize).len()).sum();
    let mut columns = SlicedColumns::new(sets, transactions, block.clone());
    let clear = nanoseconds(runs, || columns.reset(sets, transactions, 0..0));
    let set = nanoseconds(runs, || columns.reset(sets, transactions, block.clone()));
    show("SET_BIT", (set - clear) / bits as f64, "setting the bit of an item");
    show("CLEAR_ROW", clear / f64::from(transactions), "clearing the row of a transaction");
    // Supports are compared with a count that no pair reaches, but lists do.
    found.clear(1 << 11);
    let rows = block.end..items;
    let adds: usize = rows.clone().map(|item| sets.set(item as usize).len()).sum();
    let add = nanoseconds(runs, || {
        black_box(columns.count(isa, sets, rows.clone(), &mut found));
    });
    let short = Lists::random(items, 2_000, 0.5);
    let few = SlicedColumns::new(short.sets(), 2_000, block.clone());
    let mut none = FoundPairs::new(11, usize::MAX);
    let compared = rows.clone().filter(|&item| short.sets().set(item as usize).len() > 10).count();
    let compare = nanoseconds(runs, || {
        black_box(few.count(isa, short.sets(), rows.clone(), &mut none));
    });
    let per_row = compare / compared.max(1) as f64;
    show(
        "ADD_ROW",
        (add - per_row * rows.len() as f64) / adds as f64,
        "adding the row of a transaction",
    );
    show("COMPARE_ROW", per_row, "comparing the sums of an item, with ten transactions");
    let mut bitmaps = BitmapColumns::new(sets, transactions, block.clone());
    let some = rows.start..rows.start + 100;
    let bit_rows = transactions.div_ceil(512) * 100 * block.end;
    let bitmap = nanoseconds(runs, || {
        black_box(bitmaps.count(isa, sets, some.clone(), &mut found));
    });
    show("COMPARE_BITMAP", bitmap / f64::from(bit_rows), "comparing a row of bits of two bitmaps");
    sparse(isa, runs, &mut show);
    let mut marks = Marks::new(transactions);
    marks.set(sets.set(0));
    let mut common = Vec::new();
    let seconds: usize = rows.clone().map(|item| sets.set(item as usize).len()).sum();
    let find = nanoseconds(runs, || {
        for item in rows.clone() {
            common.clear();
            marks.common(sets.set(item as usize), &mut common);
        }
    });
    show("FIND_COMMON", find / seconds as f64, "looking for a transaction in a tid list");
}

/// The steps of `sparse`: transactions of about two items have visits, and of forty, counts.
fn sparse(isa: Isa, runs: Runs, show: &mut impl FnMut(&str, f64, &str)) {
    let least = 1 << 20;
    let time = |items: u32, transactions: u32, percent: f64| {
        let lists = Lists::random(items, transactions, percent);
        let mut rows = SparseRows::new(lists.sets(), transactions, 0..items, least);
        let mut found = FoundPairs::new(least, usize::MAX);
        let time = nanoseconds(runs, || {
            black_box(rows.count(isa, lists.sets(), 0..items, &mut found));
        });
        let mut sizes = vec![0_u64; transactions as usize];
        lists.sets().tokens().iter().for_each(|&tid| sizes[tid as usize] += 1);
        let counts: u64 = sizes.iter().map(|size| size * size.saturating_sub(1) / 2).sum();
        (time, lists.len() as f64, counts as f64)
    };
    let (few, visits, counts) = time(20_000, 500_000, 0.01);
    let (many, more_visits, more_counts) = time(4_000, 500_000, 1.0);
    // Two equations: visits * v + counts * c = time.
    let divisor = visits * more_counts - more_visits * counts;
    let visit = (few * more_counts - many * counts) / divisor;
    let count = (many * visits - few * more_visits) / divisor;
    show("COUNT_ITEM", count, "counting an item of a transaction, and reading its counter");
    show("VISIT", visit, "finding the items before another one in a transaction in memory");
}
