//! Transactions with items, for the kernels of supports.

use trommel_kernels::sets::Sets;
use trommel_kernels::supports::Pair;

use super::cases::{Numbers, narrow};

/// Transactions, each the items that it holds, and the tid lists of the items.
#[derive(Clone, Debug)]
pub(crate) struct TransactionCase {
    pub(crate) name: String,
    pub(crate) items: u32,
    transactions: Vec<Vec<u32>>,
    offsets: Vec<u32>,
    tids: Vec<u32>,
}

impl TransactionCase {
    /// Each transaction holds each item with a probability of `percent`.
    pub(crate) fn of_density(items: u32, transactions: usize, percent: u32) -> Self {
        let mut numbers = Numbers::new(u64::from(items) + transactions as u64);
        let mut hold = |_| (0..items).filter(|_| numbers.below(100) < percent).collect();
        let name = format!("{items} items, {transactions} transactions, {percent} percent");
        Self::new(name, items, (0..transactions).map(&mut hold).collect())
    }

    /// Item `i` is in `sizes[i % sizes.len()]` transactions, or a few less.
    pub(crate) fn of_sizes(items: u32, transactions: u32, sizes: &[u32]) -> Self {
        let mut numbers = Numbers::new(u64::from(items) << 32 | u64::from(transactions));
        let mut held = vec![Vec::new(); transactions as usize];
        for (item, size) in (0..items).zip(sizes.iter().cycle()) {
            for _ in 0..*size {
                // Many items are drawn from a quarter of the transactions, so that supports vary.
                let end = if item % 3 == 0 { transactions } else { transactions.div_ceil(4) };
                let first = numbers.below(end);
                let mut rest = (first..transactions).chain(0..first);
                let free = rest.find(|tid| held[*tid as usize].last() != Some(&item));
                free.into_iter().for_each(|tid| held[tid as usize].push(item));
            }
        }
        let name = format!("{items} items of sizes {sizes:?}, {transactions} transactions");
        Self::new(name, items, held)
    }

    pub(crate) fn new(name: String, items: u32, transactions: Vec<Vec<u32>>) -> Self {
        let mut lists = vec![Vec::new(); items as usize];
        for (tid, held) in (0..).zip(&transactions) {
            held.iter().for_each(|item| lists[*item as usize].push(tid));
        }
        let (mut offsets, mut tids) = (vec![0], Vec::<u32>::new());
        for list in lists {
            tids.extend(list);
            offsets.push(narrow(tids.len()));
        }
        Self { name, items, transactions, offsets, tids }
    }

    pub(crate) fn lists(&self) -> Sets<'_> {
        Sets::new(&self.offsets, &self.tids)
    }

    pub(crate) fn transactions(&self) -> u32 {
        narrow(self.transactions.len())
    }

    /// All pairs with a common transaction in order, by two loops over each transaction.
    pub(crate) fn by_hand(&self) -> Vec<Pair> {
        let items = self.items as usize;
        let mut supports = vec![0; items * items];
        for held in &self.transactions {
            for (at, right) in held.iter().enumerate() {
                for left in &held[..at] {
                    supports[*left as usize * items + *right as usize] += 1;
                }
            }
        }
        let pairs =
            (0..self.items).flat_map(|left| (0..self.items).map(move |right| (left, right)));
        let pairs = pairs.zip(supports).filter(|(_, support)| *support > 0);
        pairs.map(|((left, right), support)| Pair { left, right, support }).collect()
    }
}

/// Cases for batmaps: items around tiles, ranges from narrow to wide in one tile, and sizes just
/// below a full table, at which insertions fail.
pub(crate) fn all_of_sizes() -> Vec<TransactionCase> {
    let wide = [0, 1, 31, 32, 500, 3, 64, 2000, 130];
    let cases = [
        (0, 0, &[0][..]),
        (1, 5, &[5]),
        (2, 0, &[0]),
        (63, 60, &[31, 0, 60]),
        (64, 700, &wide[..6]),
        (65, 9000, &[31, 63, 5]),
        (129, 64, &[31]),
        (12, 2100, &wide),
    ];
    let case = |&(items, transactions, sizes): &(u32, u32, &[u32])| {
        TransactionCase::of_sizes(items, transactions, sizes)
    };
    cases.iter().map(case).collect()
}

/// Items around units of two tiles, and transactions around a ring of four panels.
pub(crate) fn around_rings() -> Vec<TransactionCase> {
    let sizes = [(300, 4095, 4), (129, 4097, 30), (385, 5121, 2)];
    sizes.iter().map(|size| TransactionCase::of_density(size.0, size.1, size.2)).collect()
}

/// All cases: items around tiles, transactions around stages and blocks, and densities.
pub(crate) fn all() -> Vec<TransactionCase> {
    let sizes = [
        (0, 0, 50),
        (1, 1, 100),
        (2, 0, 50),
        (2, 65_535, 40),
        (3, 65_536, 1),
        (2, 65_537, 100),
        (40, 1023, 10),
        (127, 255, 3),
        (128, 256, 100),
        (129, 257, 50),
        (129, 1, 100),
        (255, 1024, 1),
        (256, 513, 20),
        (250, 1025, 0),
        (257, 511, 97),
    ];
    let mut cases: Vec<TransactionCase> =
        sizes.iter().map(|size| TransactionCase::of_density(size.0, size.1, size.2)).collect();
    // Every bit of a stage alone: item `i` is in transactions `i` and `i + 1`.
    let ladder = (0..300_u32).map(|tid| vec![tid.saturating_sub(1).min(298), tid.min(298)]);
    let ladder = ladder.map(|mut held| {
        held.dedup();
        held
    });
    cases.push(TransactionCase::new("a ladder".to_owned(), 299, ladder.collect()));
    cases
}
