//! The candidates for replacement in a snapshot: their order decides who is replaced.

use std::cmp::Reverse;

use super::Victims;
use crate::summary::stored::{Reader, RestoreError, Writer};

/// A count and a slot.
const ENTRY_BYTES: usize = 12;

impl Victims {
    pub(in crate::summary) fn write(&self, writer: &mut Writer) {
        writer.u64(self.horizon);
        writer.len(self.run.len());
        self.run.iter().for_each(|&entry| write_entry(writer, entry));
        // Equal sets of entries come out of a heap in the same order.
        let mut heap: Vec<(u64, u32)> = self.heap.iter().map(|entry| entry.0).collect();
        heap.sort_unstable();
        writer.len(heap.len());
        heap.into_iter().for_each(|entry| write_entry(writer, entry));
    }

    /// Those of these counts, none if a counter of `counters` is free.
    pub(in crate::summary) fn read(
        reader: &mut Reader<'_>,
        counts: &[u64],
        counters: usize,
    ) -> Result<Self, RestoreError> {
        let (name, is_full) = ("the horizon", counts.len() == counters);
        let horizon = reader.u64(name)?;
        let horizon = reader.check(name, horizon, &(0..=if is_full { u64::MAX } else { 0 }))?;
        let slots = if is_full { counters } else { 0 };
        let run = read_entries(reader, "the run", slots, slots)?;
        if !run.is_sorted_by(|before, after| before.0 >= after.0) {
            return Err(reader.refuse("the run", "unordered", "descending counts"));
        }
        let heap = read_entries(reader, "the heap", 2 * slots, slots)?;
        if !heap.is_sorted() {
            return Err(reader.refuse("the heap", "unordered", "ascending counts"));
        }
        let mut is_known: Vec<bool> = counts.iter().map(|&count| count >= horizon).collect();
        for &(count, slot) in run.iter().chain(&heap) {
            is_known[slot as usize] |= count <= counts[slot as usize];
        }
        if !is_known.iter().all(|&is_known| is_known) {
            let expected = "every counter below the horizon";
            return Err(reader.refuse("the candidates", "incomplete", expected));
        }
        Ok(Self { run, heap: heap.into_iter().map(Reverse).collect(), horizon })
    }
}

fn write_entry(writer: &mut Writer, (count, slot): (u64, u32)) {
    writer.u64(count);
    writer.u32(slot);
}

fn read_entries(
    reader: &mut Reader<'_>,
    field: &'static str,
    most: usize,
    slots: usize,
) -> Result<Vec<(u64, u32)>, RestoreError> {
    let len = reader.len(field, most, ENTRY_BYTES)?;
    (0..len).map(|_| Ok((reader.u64(field)?, reader.slot(field, slots)?))).collect()
}
