//! A table as a whole: made of the contents of its cells.

use trommel_kernels::filter::Key;
use trommel_kernels::sieve::{LANES, OWN};

use super::{CROWDED, Table, UNITS_MAX, narrow, units};
use crate::state::{Reader, RestoreError, Writer};

impl<C: Key> Table<C> {
    /// Lets alpha be `most`, which is at most the line, rounded up to units.
    pub(in crate::summary) fn set_alpha(&mut self, place: usize, most: u64) {
        debug_assert!(most <= self.line, "{most} is above the line {}", self.line);
        self.set_units(place, narrow(units(most, self.scale)));
    }

    /// The line and the alphas; the residents are written by [`Self::write_place`].
    pub(in crate::summary) fn write(&self, writer: &mut Writer) {
        writer.u64(self.line);
        (0..self.len()).for_each(|place| writer.u32(self.marked_units(place).unsigned_abs()));
    }

    /// Fills an empty table, residents left out.
    pub(in crate::summary) fn read(
        &mut self,
        reader: &mut Reader<'_>,
        line_max: u64,
    ) -> Result<(), RestoreError> {
        let line = reader.u64("the entry line")?;
        self.raise_line(reader.check("the entry line", line, &(0..=line_max))?);
        let units_max = narrow(units(line, self.scale)).unsigned_abs();
        for place in 0..self.len() {
            let marked = reader.u32("an alpha")?;
            let mark = marked & CROWDED.unsigned_abs();
            let alpha = reader.check("an alpha", marked ^ mark, &(0..=units_max))?;
            *self.marked_units_mut(place) = narrow(alpha.into()) | mark.cast_signed();
        }
        Ok(())
    }

    /// Whether a monitored item with this code is the resident of its cell, and the hits there.
    pub(in crate::summary) fn write_place(&self, writer: &mut Writer, code: C) {
        let place = self.place(code);
        let is_resident = self.is_resident(place, code);
        writer.u8(is_resident.into());
        if is_resident {
            writer.u32(self.hits_of(&self.cells[place / LANES]));
        }
    }

    /// Gives a monitored item its place.
    pub(in crate::summary) fn read_place(
        &mut self,
        reader: &mut Reader<'_>,
        code: C,
    ) -> Result<(), RestoreError> {
        let name = "the place of an item";
        // The limit was higher before a change of units.
        let hits_max = UNITS_MAX.max(self.no_hits).abs_diff(self.no_hits);
        let place = self.place(code);
        let index = place / LANES;
        let is_resident = reader.u8(name)?;
        let is_resident = reader.check(name, is_resident, &(0..=1))? == 1;
        let (is_crowded, vacant) = (self.is_crowded(place), self.vacant(index));
        let no_hits = self.no_hits;
        let cell = &mut self.cells[index];
        // Two items with one code are both taken for the resident.
        let is_shared = cell.key == code && is_crowded && hits_max == 0;
        if is_resident && (cell.key == vacant || is_shared) {
            cell.key = code;
            let hits = reader.u32("the hits of an item")?;
            let hits = reader.check("the hits of an item", hits, &(0..=hits_max))?;
            cell.sums[OWN] = no_hits.wrapping_add_unsigned(hits);
        } else if is_resident {
            return Err(reader.refuse(name, "that of another", "a vacant cell"));
        } else if !is_crowded {
            return Err(reader.refuse(name, "none", "a place that is marked as crowded"));
        }
        Ok(())
    }
}
