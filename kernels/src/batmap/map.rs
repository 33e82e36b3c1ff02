//! One map: its tables, in blocks of slots.

use super::permute::Permutations;
use super::slot::{TABLES_MAX, codes};

/// Slots of a block.
pub(super) const BLOCK: usize = 64;

/// A block of slots: a cache line, and a register of AVX-512.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Block(pub(super) [u8; BLOCK]);

/// The blocks of a map, table after table.
#[derive(Clone, Copy)]
pub(super) struct Map<'a> {
    pub(super) tables: &'a [Block],
    /// The binary logarithm of the blocks of a table.
    pub(super) table_bits: u32,
}

impl<'a> Map<'a> {
    /// Blocks of a table, a power of two.
    #[inline(always)]
    pub(super) fn blocks(self) -> usize {
        1 << self.table_bits
    }

    /// Slots of a table.
    pub(super) fn range(self) -> usize {
        BLOCK << self.table_bits
    }

    /// A table.
    #[inline(always)]
    pub(super) fn table(self, table: usize) -> &'a [Block] {
        &self.tables[table << self.table_bits..][..1 << self.table_bits]
    }

    /// The slot at a position of a table, modulo its range.
    #[inline(always)]
    pub(super) fn slot(self, table: usize, position: usize) -> u8 {
        let block = (position / BLOCK) & (self.blocks() - 1);
        self.table(table)[block].0[position % BLOCK]
    }

    /// Whether the map holds the element with these values.
    ///
    /// A range is at least [`Permutations::range_min`], so position and code have all bits of a
    /// value, and only one element has the value.
    pub(super) fn holds<const D: usize>(
        self,
        permutations: &Permutations<D>,
        values: &[u32; TABLES_MAX],
    ) -> bool {
        (0..=D).any(|table| {
            let slot = self.slot(table, values[table] as usize);
            slot & codes::<D>() == permutations.code(values[table])
        })
    }
}
