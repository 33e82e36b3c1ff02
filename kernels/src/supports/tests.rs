//! Every layout on every level against two nested loops over each transaction.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::Isa;
use crate::sets::Sets;

/// Transactions, and the tid lists of their items.
struct Case {
    transactions: Vec<BTreeSet<u32>>,
    items: u32,
    offsets: Vec<u32>,
    tids: Vec<u32>,
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

impl Case {
    fn new(items: u32, transactions: Vec<BTreeSet<u32>>) -> Self {
        let (mut offsets, mut tids) = (vec![0], Vec::new());
        for item in 0..items {
            let of_item = (0..).zip(&transactions).filter(|(_, held)| held.contains(&item));
            tids.extend(of_item.map(|(transaction, _): (u32, _)| transaction));
            offsets.push(narrow(tids.len()));
        }
        Self { transactions, items, offsets, tids }
    }

    fn lists(&self) -> Sets<'_> {
        Sets::new(&self.offsets, &self.tids)
    }

    fn by_hand(&self, least: u32, rows: &std::ops::Range<u32>, first: u32) -> Vec<Pair> {
        let mut supports: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for held in &self.transactions {
            for &right in held.iter().filter(|right| rows.contains(right)) {
                for &left in held.iter().filter(|&&left| first <= left && left < right) {
                    *supports.entry((left, right)).or_default() += 1;
                }
            }
        }
        let pairs = supports.into_iter().filter(|&(_, support)| support >= least);
        pairs.map(|((left, right), support)| Pair { left, right, support }).collect()
    }

    /// Triples of `items`, by the number of the pair of their last two items in `pairs`.
    fn triples_by_hand(&self, least: u32, pairs: &[RowPair], first: u32) -> Vec<Pair> {
        let mut triples = Vec::new();
        for &RowPair { number, items: [second, third] } in pairs {
            for left in first..second {
                let holds =
                    |held: &&BTreeSet<u32>| [left, second, third].iter().all(|i| held.contains(i));
                let support = narrow(self.transactions.iter().filter(holds).count());
                if support >= least {
                    triples.push(Pair { left, right: number, support });
                }
            }
        }
        triples.sort_unstable();
        triples
    }

    /// Compares the triples of a part of the pairs of items from `first` on.
    fn check_triples(&self, least: u32, enough: usize, first: u32) {
        let all = (first..self.items).flat_map(|j| (j + 1..self.items).map(move |k| [j, k]));
        let some: Vec<[u32; 2]> = all.filter(|[j, k]| (j * 7 + k) % 3 != 0).collect();
        self.check_triples_of(&some, least, enough, first);
    }

    /// Compares the triples of the pairs `items` in all layouts on all levels.
    fn check_triples_of(&self, items: &[[u32; 2]], least: u32, enough: usize, first: u32) {
        let transactions = narrow(self.transactions.len());
        let pairs: Vec<RowPair> =
            items.iter().zip(5..).map(|(&items, number)| RowPair { number, items }).collect();
        let (mut offsets, mut tids) = (vec![0], Vec::new());
        let mut marks = Marks::new(transactions);
        for &[j, k] in items {
            marks.set(self.lists().set(j as usize));
            marks.common(self.lists().set(k as usize), &mut tids);
            offsets.push(narrow(tids.len()));
        }
        let lists = Rows::pairs(self.lists(), Sets::new(&offsets, &tids), &pairs);
        let expected = self.triples_by_hand(least, &pairs, first);
        for isa in Isa::available() {
            let rows = 0..narrow(pairs.len());
            let ask = Ask { isa, lists: self.lists(), transactions, least, enough, rows, first };
            ask.columns(self.items, lists, &expected);
            let mut found = Vec::new();
            let range = first..self.items;
            let mut sparse = SparseRows::new(self.lists(), transactions, range, least);
            ask.all(&mut found, |rows, into| sparse.count(isa, lists, rows, into));
            ask.compare("sparse", &mut found, &expected);
        }
    }

    /// Compares all layouts on all levels.
    fn check(&self, least: u32, enough: usize, rows: std::ops::Range<u32>, first: u32) {
        let expected = self.by_hand(least, &rows, first);
        let (lists, transactions) = (self.lists(), narrow(self.transactions.len()));
        for isa in Isa::available() {
            let ask = Ask { isa, lists, transactions, least, enough, rows: rows.clone(), first };
            let items = first..self.items;
            ask.columns(self.items, lists.into(), &expected);
            let mut found = Vec::new();
            let mut sparse = SparseRows::new(lists, transactions, items.clone(), least);
            ask.all(&mut found, |rows, into| sparse.count(isa, lists, rows, into));
            ask.compare("sparse", &mut found, &expected);
            let mut triangle = TriangleRows::new(lists, transactions, items, least);
            ask.all(&mut found, |rows, into| triangle.count(isa, lists, rows, into));
            ask.compare("triangle", &mut found, &expected);
        }
    }
}

/// A question to all layouts.
struct Ask<'a> {
    isa: Isa,
    lists: Sets<'a>,
    transactions: u32,
    least: u32,
    enough: usize,
    rows: std::ops::Range<u32>,
    first: u32,
}

impl Ask<'_> {
    /// Compares the layouts of blocks of columns before `end`.
    fn columns(&self, end: u32, rows: Rows<'_>, expected: &[Pair]) {
        let &Self { isa, lists, transactions, .. } = self;
        let blocks = (self.first..end).step_by(COLUMNS);
        let blocks = blocks.map(|begin| begin..end.min(begin + narrow(COLUMNS)));
        let mut found = Vec::new();
        for block in blocks.clone() {
            let columns = SlicedColumns::new(lists, transactions, block.clone());
            assert_eq!(columns.columns(), block);
            self.all(&mut found, |next, into| columns.count(isa, rows, next, into));
        }
        self.compare("sliced", &mut found, expected);
        for block in blocks.clone() {
            let mut columns = BitmapColumns::new(lists, transactions, block);
            self.all(&mut found, |next, into| columns.count(isa, rows, next, into));
        }
        self.compare("bitmap", &mut found, expected);
        for block in blocks {
            let mut columns = ListColumns::new(block);
            self.all(&mut found, |next, into| columns.count(isa, rows, next, into));
        }
        self.compare("lists", &mut found, expected);
    }

    /// Asks until all rows are counted.
    fn all(
        &self,
        found: &mut Vec<Pair>,
        mut count: impl FnMut(std::ops::Range<u32>, &mut FoundPairs) -> u32,
    ) {
        let mut answer = FoundPairs::new(self.least, self.enough);
        let mut next = self.rows.start;
        while next < self.rows.end {
            let counted = count(next..self.rows.end, &mut answer);
            assert!(counted > next && (counted == self.rows.end || answer.is_full()));
            next = counted;
            found.extend_from_slice(answer.pairs());
            answer.clear(self.least);
        }
    }

    fn compare(&self, layout: &str, found: &mut Vec<Pair>, expected: &[Pair]) {
        found.sort_unstable();
        let Self { isa, least, enough, rows, first, .. } = self;
        assert_eq!(found, expected, "{layout}, {isa}, {least}, {enough}, {rows:?} from {first}");
        assert!(self.lists.tokens().iter().all(|&transaction| transaction < self.transactions));
        found.clear();
    }
}

/// Each transaction holds each item with a probability of its own.
fn random(items: u32, transactions: usize, density: f64, seed: u64) -> Case {
    let mut state = seed | 1;
    let mut chance = || {
        // xorshift*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut transaction = || {
        let density = |item: &u32| density / (1.0 + f64::from(*item) / 64.0);
        (0..items).filter(|item| chance() < density(item)).collect()
    };
    Case::new(items, (0..transactions).map(|_| transaction()).collect())
}

#[test]
fn supports_are_those_of_nested_loops() {
    for (items, transactions, density) in [
        (0, 0, 0.0),
        (1, 1, 1.0),
        (2, 1, 1.0),
        (3, 15, 0.5),
        (65, 16, 0.7),
        (64, 17, 0.3),
        (130, 33, 1.0),
        (20, 511, 0.6),
        (20, 512, 0.1),
        (20, 513, 0.6),
        (511, 60, 0.3),
        (512, 60, 0.3),
        (513, 60, 0.3),
        (9, 4096, 0.9),
        (9, 4097, 0.9),
        (1030, 40, 0.2),
    ] {
        let case = random(items, transactions, density, 7 * u64::from(items) + 1);
        for (least, enough) in [(1, 1 << 20), (1, 1), (2, 100), (narrow(transactions / 4) + 1, 7)] {
            case.check(least, enough, 0..items, 0);
        }
        case.check(2, 50, items / 3..items, items / 4);
        if items <= 130 {
            case.check_triples(1, 1 << 20, 0);
            case.check_triples(3, 9, items / 4);
        }
    }
}

#[test]
fn a_digit_more_is_counted_right() {
    // Two items with `shared` common transactions, around each power of two.
    for shared in [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 63, 64, 255, 256, 257, 1023, 1024, 65_536]
    {
        let case = Case::new(2, vec![BTreeSet::from([0, 1]); shared]);
        for least in [1, narrow(shared), narrow(shared) + 1] {
            case.check(least, 10, 0..2, 0);
        }
    }
}

/// Three transactions hold all items, and many further transactions hold two or three items.
#[test]
fn the_largest_transactions_may_be_set_aside() {
    let items = 1100;
    let mut transactions = vec![BTreeSet::from_iter(0..items); 3];
    transactions.extend((1..items).map(|item| BTreeSet::from([item / 2, item])));
    transactions.extend((1..items).map(|item| BTreeSet::from([item / 2, item, item / 3])));
    let case = Case::new(items, transactions);
    for least in [1, 3, 6] {
        case.check(least, 1000, 0..items, 0);
        case.check(least, 1 << 20, 1000..items, 70);
    }
}

#[test]
fn supports_of_1_and_items_without_transactions() {
    let transactions = (0..300).map(|item| BTreeSet::from([item])).collect();
    let case = Case::new(400, transactions);
    case.check(1, 10, 0..400, 0);
    let transactions = (0..300).map(|item| BTreeSet::from([item, (item + 1) % 300])).collect();
    Case::new(400, transactions).check(1, 10, 0..400, 0);
}

/// Triples whose items are partly beyond the first block of columns, or in a large transaction.
#[test]
fn triples_of_many_items() {
    let items = 1100_u32;
    let near =
        (0..items / 9).map(|item| BTreeSet::from([item, 9 * item % items, 7 * item % items]));
    let mut transactions: Vec<BTreeSet<u32>> = near.collect();
    transactions.extend(transactions.clone());
    transactions.push((0..items).collect());
    let case = Case::new(items, transactions);
    let wanted = [[3, 700], [513, 514], [513, 1030], [600, 601], [1031, 1099]];
    for (least, enough) in [(1, 100), (2, 1 << 20), (2, 1)] {
        case.check_triples_of(&wanted, least, enough, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_transactions(
        transactions in prop::collection::vec(prop::collection::btree_set(0_u32..70, 0..20), 0..60),
        least in 1_u32..5,
        enough in 1_usize..40,
        first in 0_u32..70,
        rows in 0_u32..70,
    ) {
        Case::new(70, transactions).check(least, enough, rows.max(first)..70, first);
    }
}
