//! The comparison of maps, a block of slots at a time, written once for all levels.

use std::ops::Range;

use super::levels::scalar;
use super::levels::{Compared, Slots};
use super::map::Map;
use super::maps::BatMaps;
use super::slot::{PAIR_TABLES, TABLES_MAX};
use crate::simd::{RunOn, Scalar};

/// Number of blocks of a table that are compared before the next table. Counts are bytes, and a
/// byte counts at most one match in each block of each table.
const SLICE: usize = 64;
const _: () = assert!(SLICE * PAIR_TABLES <= u8::MAX as usize, "counts of pairs overflow");

/// As [`SLICE`], for triples.
const TRIPLE_SLICE: usize = 32;
const _: () = assert!(TRIPLE_SLICE * TABLES_MAX <= u8::MAX as usize, "counts of triples overflow");

/// Rows and columns of a tile: its slices, 12 KiB for each map, fit the second-level cache.
const ROWS: u32 = 8;
const COLUMNS: u32 = 16;

/// Counts the common elements that each pair of a rectangle of maps holds, and adds them to
/// `supports`, row by row.
pub(super) struct CountPairs<'a, const D: usize> {
    pub(super) maps: &'a BatMaps<D>,
    pub(super) rows: Range<u32>,
    pub(super) columns: Range<u32>,
    pub(super) supports: &'a mut [u32],
}

/// Counts the common elements that three maps hold.
pub(super) struct CountTriple<'a>(pub(super) [Map<'a>; 3]);

impl<const D: usize> RunOn<Scalar> for CountPairs<'_, D> {
    fn run_on(self, _: Scalar) {
        let pairs = self.rows.flat_map(|row| self.columns.clone().map(move |column| [row, column]));
        for (pair, support) in pairs.zip(self.supports) {
            *support += scalar::count::<D, 2>(pair.map(|map| self.maps.map(map)));
        }
    }
}

impl RunOn<Scalar, u32> for CountTriple<'_> {
    fn run_on(self, _: Scalar) -> u32 {
        scalar::count::<3, 3>(self.0)
    }
}

impl<const D: usize, L: Slots> RunOn<L> for CountPairs<'_, D> {
    #[inline(always)]
    fn run_on(mut self, level: L) {
        let compared = compared::<D, PAIR_TABLES, L>(level);
        for row in self.rows.clone().step_by(ROWS as usize) {
            let rows = row..self.rows.end.min(row.saturating_add(ROWS));
            for column in self.columns.clone().step_by(COLUMNS as usize) {
                let columns = column..self.columns.end.min(column.saturating_add(COLUMNS));
                self.count_tile(level, &compared, rows.clone(), columns);
            }
        }
    }
}

impl<const D: usize> CountPairs<'_, D> {
    /// Counts in a tile, slice by slice of all its maps.
    #[inline(always)]
    fn count_tile<L: Slots>(
        &mut self,
        level: L,
        compared: &[Compared<L::Bytes>; PAIR_TABLES],
        rows: Range<u32>,
        columns: Range<u32>,
    ) {
        let widths = rows.clone().chain(columns.clone()).map(|map| self.maps.map(map).blocks());
        let blocks = widths.max().unwrap_or(0);
        for begin in (0..blocks).step_by(SLICE) {
            for row in rows.clone() {
                let (map, line) = (self.maps.map(row), (row - self.rows.start) as usize);
                let supports = &mut self.supports[line * self.columns.len()..];
                for column in columns.clone() {
                    let pair = [map, self.maps.map(column)];
                    let support = &mut supports[(column - self.columns.start) as usize];
                    *support += count_slice(level, compared, pair, begin);
                }
            }
        }
    }
}

/// Counts in the slice from block `begin` of the tables of a pair.
#[inline(always)]
fn count_slice<L: Slots>(
    level: L,
    compared: &[Compared<L::Bytes>; PAIR_TABLES],
    [left, right]: [Map<'_>; 2],
    begin: usize,
) -> u32 {
    let (narrow, wide) =
        if left.blocks() <= right.blocks() { (left, right) } else { (right, left) };
    let end = wide.blocks().min(begin + SLICE);
    let mut counts = level.splat(0);
    for (table, &compared) in compared.iter().enumerate() {
        let (narrow, wide) = (narrow.table(table), wide.table(table));
        for index in begin..end {
            // Ranges are powers of two: the mask takes a position of the wider map modulo the
            // narrower range.
            let slots = [level.load(&narrow[index & (narrow.len() - 1)]), level.load(&wide[index])];
            counts = level.count_pair(counts, slots, compared);
        }
    }
    level.sum(counts)
}

impl<L: Slots> RunOn<L, u32> for CountTriple<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> u32 {
        let compared = compared::<3, TABLES_MAX, L>(level);
        let blocks = self.0.iter().map(|map| map.blocks()).max().unwrap_or(0);
        let mut count = 0;
        for begin in (0..blocks).step_by(TRIPLE_SLICE) {
            let slice = begin..blocks.min(begin + TRIPLE_SLICE);
            count += self.count_slice(level, &compared, slice);
        }
        count
    }
}

/// The compared bits of each table.
#[inline(always)]
fn compared<const D: usize, const TABLES: usize, L: Slots>(
    level: L,
) -> [Compared<L::Bytes>; TABLES] {
    std::array::from_fn(
        #[inline(always)]
        |table| Compared::of::<D, L>(level, table),
    )
}

impl CountTriple<'_> {
    /// Counts in a slice of all tables.
    #[inline(always)]
    fn count_slice<L: Slots>(
        &self,
        level: L,
        compared: &[Compared<L::Bytes>; TABLES_MAX],
        slice: Range<usize>,
    ) -> u32 {
        let mut counts = level.splat(0);
        for (table, &compared) in compared.iter().enumerate() {
            let tables = self.0.map(|map| map.table(table));
            for index in slice.clone() {
                let slots = tables.map(
                    #[inline(always)]
                    |table| level.load(&table[index & (table.len() - 1)]),
                );
                counts = if table + 1 == TABLES_MAX {
                    level.count_triple::<true>(counts, slots, compared)
                } else {
                    level.count_triple::<false>(counts, slots, compared)
                };
            }
        }
        level.sum(counts)
    }
}
