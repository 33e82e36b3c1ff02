//! The candidates for replacement in a snapshot: their order decides which counter is replaced.

use std::cmp::Reverse;

use super::MinQueue;
use super::level::MinLevel;
use crate::shared::state::{Reader, RestoreError, Writer};

/// A count and a slot.
const ENTRY_BYTES: usize = 12;

impl MinQueue {
    pub(in crate::summary) fn write(&self, writer: &mut Writer) {
        writer.u64(self.horizon);
        // A level is a run of equal counts.
        let level = self.level.slots().map(|slot| (self.level.count(), slot));
        let run: Vec<(u64, u32)> = level.chain(self.run.iter().copied()).collect();
        writer.len(run.len());
        run.into_iter().for_each(|entry| write_entry(writer, entry));
        // Equal sets of entries come out of a heap in the same order.
        let mut heap: Vec<(u64, u32)> = self.heap.iter().map(|entry| entry.0).collect();
        heap.sort_unstable();
        writer.len(heap.len());
        heap.into_iter().for_each(|entry| write_entry(writer, entry));
    }

    /// Reads the candidates of these counts. There are no candidates while a counter of `counters`
    /// is free.
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
        // An entry above the horizon could be taken for the smallest count although a smaller one
        // exists.
        let is_above = |&(count, _): &(u64, u32)| count >= horizon && horizon < u64::MAX;
        if run.iter().chain(&heap).any(is_above) {
            return Err(reader.refuse("the candidates", "above the horizon", "counts below it"));
        }
        let mut is_known: Vec<bool> = counts.iter().map(|&count| count >= horizon).collect();
        for &(count, slot) in run.iter().chain(&heap) {
            is_known[slot as usize] |= count <= counts[slot as usize];
        }
        if !is_known.iter().all(|&is_known| is_known) {
            let expected = "every counter below the horizon";
            return Err(reader.refuse("the candidates", "incomplete", expected));
        }
        let heap = heap.into_iter().map(Reverse).collect();
        Ok(Self { level: MinLevel::default(), run, heap, horizon })
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

#[cfg(test)]
mod tests {
    use std::collections::BinaryHeap;

    use super::*;
    use crate::shared::items::StoredItem;
    use crate::shared::state::StateKind;

    fn restored(min_queue: &MinQueue, counts: &[u64]) -> Result<MinQueue, RestoreError> {
        let mut writer = Writer::new(StateKind::SpaceSaving, u32::NUMBER);
        min_queue.write(&mut writer);
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes, StateKind::SpaceSaving, u32::NUMBER)?;
        MinQueue::read(&mut reader, counts, counts.len())
    }

    #[test]
    fn a_candidate_above_the_horizon_is_refused() {
        let run = vec![(9_000, 0)];
        let forged = MinQueue { run, ..MinQueue::default() };
        let error = restored(&forged, &[9_000, 1]).unwrap_err().to_string();
        assert!(error.contains("the candidates is above the horizon"), "{error}");
        let heap = BinaryHeap::from([Reverse((3, 1))]);
        let forged = MinQueue { run: vec![(1, 0)], heap, horizon: 2, ..MinQueue::default() };
        assert!(restored(&forged, &[1, 3]).is_err());
        // Saturated counts are on the horizon.
        let counts = [u64::MAX; 2];
        let mut saturated = MinQueue::default();
        let slot = saturated.take_min(&counts);
        saturated.put_back(slot, u64::MAX, 2);
        assert!(restored(&saturated, &counts).is_ok());
    }
}
