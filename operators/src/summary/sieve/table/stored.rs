//! A table as a whole: made of the contents of its cells.

use trommel_kernels::sieve::{CellKey, LANES, OWN};

use super::{CROWDED, CellTable, UNITS_MAX, hits_of, narrow, no_hits, units};
use crate::shared::state::{Reader, RestoreError, Writer};

impl<K: CellKey> CellTable<K> {
    /// Sets alpha to `most`, which is at most the line, rounded up to units.
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

    /// Whether a monitored item with this key is the resident of its cell, and the hits there.
    pub(in crate::summary) fn write_place(&self, writer: &mut Writer, key: K) {
        let place = self.place(key);
        let is_resident = self.is_resident(place, key);
        writer.u8(is_resident.into());
        if is_resident {
            writer.u32(hits_of(&self.cells[place / LANES]));
        }
    }

    /// Gives a monitored item its place.
    pub(in crate::summary) fn read_place(
        &mut self,
        reader: &mut Reader<'_>,
        key: K,
        is_exact: bool,
    ) -> Result<(), RestoreError> {
        let name = "the place of an item";
        let no_hits = no_hits(is_exact);
        // The limit may have been higher before a change of units.
        let hits_max = UNITS_MAX.max(no_hits).abs_diff(no_hits);
        let place = self.place(key);
        let index = place / LANES;
        let is_resident = reader.u8(name)?;
        let is_resident = reader.check(name, is_resident, &(0..=1))? == 1;
        let (is_crowded, vacant) = (self.is_crowded(place), self.vacant(index));
        let cell = &mut self.cells[index];
        // Two items with one key are both taken for the resident.
        let is_shared = cell.key == key && is_crowded && !is_exact;
        if is_resident && (cell.key == vacant || is_shared) {
            cell.key = key;
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
