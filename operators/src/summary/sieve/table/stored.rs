//! A table as a whole: made of the contents of its cells.

use trommel_kernels::filter::Key;

use super::{ALPHA, CROWDED, HITS, Table, narrow, units};
use crate::state::{Reader, RestoreError, Writer};

impl<C: Key> Table<C> {
    /// Lets alpha be `most`, which is at most the line, rounded up to units.
    pub(in crate::summary) fn set_alpha(&mut self, cell: usize, most: u64) {
        debug_assert!(most <= self.line, "{most} is above the line {}", self.line);
        self.set_units(cell, narrow(units(most, self.scale)));
    }

    /// The line and the alphas; the residents are written by [`Self::write_place`].
    pub(in crate::summary) fn write(&self, writer: &mut Writer) {
        writer.u64(self.line);
        self.cells.iter().for_each(|cell| writer.u32(cell.sums[ALPHA]));
    }

    /// Fills an empty table, residents left out.
    pub(in crate::summary) fn read(
        &mut self,
        reader: &mut Reader<'_>,
        line_max: u64,
    ) -> Result<(), RestoreError> {
        let line = reader.u64("the entry line")?;
        self.raise_line(reader.check("the entry line", line, &(0..=line_max))?);
        let units_max = narrow(units(line, self.scale));
        for cell in &mut self.cells {
            let alpha = reader.u32("an alpha")?;
            reader.check("an alpha", alpha & !CROWDED, &(0..=units_max))?;
            cell.sums[ALPHA] = alpha;
        }
        Ok(())
    }

    /// Whether a monitored item with this code is the resident of its cell, and the hits there.
    pub(in crate::summary) fn write_place(&self, writer: &mut Writer, code: C) {
        let is_resident = self.is_resident(self.cell(code), code);
        writer.u8(is_resident.into());
        if is_resident {
            writer.u32(self.cells[self.cell(code)].sums[HITS]);
        }
    }

    /// Gives a monitored item its place.
    pub(in crate::summary) fn read_place(
        &mut self,
        reader: &mut Reader<'_>,
        code: C,
    ) -> Result<(), RestoreError> {
        let (name, hits_max) = ("the place of an item", self.limits[HITS]);
        let index = self.cell(code);
        let is_resident = reader.u8(name)?;
        let is_resident = reader.check(name, is_resident, &(0..=1))? == 1;
        let (is_crowded, vacant) = (self.is_crowded(index), self.vacant(index));
        let cell = &mut self.cells[index];
        // Two items with one code are both taken for the resident.
        let is_shared = cell.key == code && is_crowded && hits_max == 0;
        if is_resident && (cell.key == vacant || is_shared) {
            cell.key = code;
            let hits = reader.u32("the hits of an item")?;
            cell.sums[HITS] = reader.check("the hits of an item", hits, &(0..=hits_max))?;
        } else if is_resident {
            return Err(reader.refuse(name, "that of another", "a vacant cell"));
        } else if !is_crowded {
            return Err(reader.refuse(name, "none", "a cell that is marked as crowded"));
        }
        Ok(())
    }
}
