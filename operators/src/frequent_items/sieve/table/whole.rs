//! A table as a whole: made anew from what is known of each cell.

use trommel_kernels::filter::Key;

use super::{Table, narrow, units};

impl<C: Key> Table<C> {
    /// Lets alpha be at least `most`, which is at most the line, rounded up to units.
    pub(in super::super) fn set_alpha(&mut self, cell: usize, most: u64) {
        debug_assert!(most <= self.line, "{most} is above the line {}", self.line);
        self.set_units(cell, narrow(units(most, self.scale)));
    }
}
