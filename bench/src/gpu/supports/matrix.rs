//! Random matrices of items and transactions, with the correct answer.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use crate::frequent_pairs::data::Case;
use crate::runner::isa;
use trommel_kernels::cuda::supports::{TILE, Tile, tiles, tiles_of_part};
use trommel_kernels::sets::Sets;
use trommel_kernels::supports::{COLUMNS, FoundPairs, Pair, SlicedColumns};

/// Eighths of the items at the ends of the parts that are sent one after the other: the first one
/// comes soon, and little is left to count after the last one.
const PARTS: [u32; 6] = [1, 2, 4, 6, 7, 8];

/// The parts of few tids: a part holds up the bus for the time of half a megabyte.
const PARTS_OF_FEW: [u32; 2] = [6, 8];

/// Fewest tids in many parts.
const MANY_TIDS: f64 = 2e7;

/// A random matrix and the question about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix {
    pub(super) items: u32,
    pub(super) transactions: u32,
    pub(super) density: f64,
    pub(super) least: u32,
}

impl FromStr for Matrix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let [items, transactions, density, least] = parts[..] else {
            return Err("needed are ITEMS:TRANSACTIONS:DENSITY:LEAST".to_owned());
        };
        let number = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
        let density: f64 = density.parse().map_err(|_| format!("invalid density {density}"))?;
        if !(density > 0.0 && density < 1.0) {
            return Err(format!("invalid density {density}: between 0 and 1"));
        }
        let [items, transactions, least] = [number(items)?, number(transactions)?, number(least)?];
        Ok(Self { items, transactions, density, least: least.max(1) })
    }
}

/// Number of pairs and sum of their supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) pairs: u64,
    pub(super) supports: u64,
}

impl Answer {
    fn plus(self, other: Self) -> Self {
        Self { pairs: self.pairs + other.pairs, supports: self.supports + other.supports }
    }

    pub(super) fn add(&mut self, pairs: &[Pair]) {
        self.pairs += pairs.len() as u64;
        self.supports += pairs.iter().map(|pair| u64::from(pair.support)).sum::<u64>();
    }
}

/// A matrix as tid lists, with the correct answer.
pub(super) struct Workload {
    pub(super) matrix: Matrix,
    pub(super) offsets: Vec<u32>,
    pub(super) tids: Vec<u32>,
    pub(super) answer: Answer,
    /// The answer of each tile of right items.
    pub(super) parts: Vec<Answer>,
    /// Time of the processor.
    pub(super) time: Duration,
}

impl Workload {
    pub(super) fn generate(matrix: Matrix) -> Self {
        let (offsets, tids) = matrix.lists();
        Self::new(matrix, offsets, tids)
    }

    /// The frequent items of transactions, by falling support.
    pub(super) fn of(case: &Case) -> Self {
        let mut lists: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut transactions = 0;
        for (tid, items) in (0..).zip(case.each()) {
            items.iter().for_each(|&item| lists.entry(item).or_default().push(tid));
            transactions = tid + 1;
        }
        let is_frequent = |list: &Vec<u32>| list.len() >= case.least as usize;
        let mut lists: Vec<Vec<u32>> = lists.into_values().filter(is_frequent).collect();
        lists.sort_by_key(|list| Reverse(list.len()));
        let mut offsets = vec![0];
        let number = |len: usize| u32::try_from(len).expect("32 bits");
        offsets.extend(lists.iter().scan(0, |end, list| {
            *end += number(list.len());
            Some(*end)
        }));
        let (items, tids) = (number(lists.len()), lists.concat());
        let cells = f64::from(items) * f64::from(transactions);
        let density = f64::from(number(tids.len())) / cells.max(1.0);
        let matrix = Matrix { items, transactions, density, least: case.least.max(1) };
        Self::new(matrix, offsets, tids)
    }

    fn new(matrix: Matrix, offsets: Vec<u32>, tids: Vec<u32>) -> Self {
        let start = Instant::now();
        let parts = by_processor(Sets::new(&offsets, &tids), matrix);
        let answer = parts.iter().fold(Answer::default(), |all, part| all.plus(*part));
        Self { matrix, offsets, tids, answer, parts, time: start.elapsed() }
    }

    pub(super) fn lists(&self) -> Sets<'_> {
        Sets::new(&self.offsets, &self.tids)
    }

    /// Pairs of items of all transactions.
    pub(super) fn additions(&self) -> f64 {
        let mut held = vec![0_u64; self.matrix.transactions as usize];
        self.tids.iter().for_each(|tid| held[*tid as usize] += 1);
        held.iter().map(|items| items * items.saturating_sub(1) / 2).sum::<u64>() as f64
    }
}

impl Matrix {
    /// A matrix of a density in percent, and a support that pairs reach by chance: three deviations
    /// above the mean.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small, positive")]
    pub(super) fn of_density(items: u32, transactions: u32, percent: f64) -> Self {
        let density = percent / 100.0;
        let mean = f64::from(transactions) * density * density;
        Self { items, transactions, density, least: (mean + 3.0 * mean.sqrt() + 2.0) as u32 }
    }

    /// Tid lists, of which each transaction is a member by chance: gaps are drawn.
    #[expect(clippy::cast_possible_truncation, reason = "gaps past the end saturate")]
    #[expect(clippy::cast_sign_loss, reason = "a quotient of negative numbers")]
    pub(super) fn lists(&self) -> (Vec<u32>, Vec<u32>) {
        let mut state = 0x5EED_u64;
        let mut gap = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let mixed = (state ^ (state >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let uniform = ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            (uniform.ln() / (1.0 - self.density).ln()) as u64
        };
        let (mut offsets, mut tids) = (vec![0], Vec::new());
        for _ in 0..self.items {
            let mut tid = gap();
            while tid < u64::from(self.transactions) {
                tids.push(tid as u32);
                tid += 1 + gap();
            }
            offsets.push(u32::try_from(tids.len()).expect("offsets have 32 bits"));
        }
        (offsets, tids)
    }

    pub(super) fn tiles(&self) -> Vec<Tile> {
        tiles(self.items, TILE).collect()
    }

    /// The ends of the parts of items that are sent one after the other, whole tiles.
    pub(super) fn ends(&self) -> Vec<u32> {
        let full = self.items.div_ceil(TILE);
        let tids = f64::from(self.items) * f64::from(self.transactions) * self.density;
        let parts = if tids < MANY_TIDS { &PARTS_OF_FEW[..] } else { &PARTS };
        let end = |part: &u32| self.items.min(full * part / 8 * TILE);
        let mut ends: Vec<u32> = parts.iter().map(end).collect();
        ends.dedup();
        ends
    }

    pub(super) fn parts(&self, ends: &[u32]) -> Vec<Vec<Tile>> {
        let begins = [0].into_iter().chain(ends.iter().copied());
        let parts = begins.zip(ends).map(|(begin, end)| tiles_of_part(begin..*end, TILE));
        parts.map(Iterator::collect).collect()
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { items, transactions, density, least } = self;
        write!(
            formatter,
            "{items} items, {transactions} transactions, density {density}, support {least}"
        )
    }
}

/// The answers of tiles of right items by sliced columns, on all cores.
fn by_processor(lists: Sets<'_>, matrix: Matrix) -> Vec<Answer> {
    let isa = isa();
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let width = u32::try_from(COLUMNS).expect("512");
    let part = |core: usize| {
        let mut answers = vec![Answer::default(); matrix.items.div_ceil(TILE) as usize];
        let mut found = FoundPairs::new(matrix.least, 1 << 20);
        for begin in (0..matrix.items).step_by(COLUMNS).skip(core).step_by(cores) {
            let columns = begin..matrix.items.min(begin + width);
            let columns = SlicedColumns::new(lists, matrix.transactions, columns);
            let mut row = begin;
            while row < matrix.items {
                row = columns.count(isa, lists, row..matrix.items, &mut found);
                for pair in found.pairs() {
                    answers[(pair.right / TILE) as usize].add(&[*pair]);
                }
                found.clear(matrix.least);
            }
        }
        answers
    };
    thread::scope(|scope| {
        let parts: Vec<_> = (0..cores).map(|core| scope.spawn(move || part(core))).collect();
        let parts = parts.into_iter().map(|part| part.join().expect("no part panics"));
        parts
            .reduce(|all, part| all.iter().zip(part).map(|(one, other)| one.plus(other)).collect())
            .unwrap_or_default()
    })
}
