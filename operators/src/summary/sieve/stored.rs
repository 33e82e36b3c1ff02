//! The sieve in a snapshot.

use trommel_kernels::Isa;

use super::{CELLS_LOG_MAX, HotItems, ItemIndex, Sieve, SieveShape, SpareCounters};
use crate::shared::items::StoredItem;
use crate::shared::names::secret::Secret;
use crate::shared::state::{Reader, RestoreError, StateKind, Writer, check_bytes, free_bytes_max};
use crate::summary::capacity::COUNTERS_MAX;
use crate::summary::contract::Stored;
use crate::summary::counted::Counted;

/// Minimum bytes of a counter: a count, an error, and the mark of a resident. The item and the hits
/// of a resident take more.
const COUNTER_BYTES: usize = 17;

impl<K: StoredItem> Sieve<K> {
    /// Everything on which the future of the sieve depends, as bytes.
    ///
    /// # Cost
    ///
    /// O(k + cells); 16 bytes a cell, up to 29 bytes a counter and the item, and 4 bytes for each
    /// spare counter and each hot item.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::Isa;
    /// use trommel_operators::frequent_items::Sieve;
    ///
    /// let isa = Isa::selected()?;
    /// let mut sieve = Sieve::new(isa, 1_000)?;
    /// sieve.observe(&[7_u32, 7, 1][..]);
    /// let again = Sieve::<u32>::restore(isa, &sieve.snapshot())?;
    /// assert_eq!(again.top(2), sieve.top(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        let mut writer = Writer::new(StateKind::Sieve, K::NUMBER);
        writer.len(self.shape.counters);
        writer.len(self.shape.cells);
        writer.u64(self.secret.seed());
        writer.u64(self.observed);
        writer.len(self.detours);
        writer.len(self.index.len());
        self.table.write(&mut writer);
        for ((item, &count), &error) in self.index.items().zip(&self.counts).zip(&self.errors) {
            Counted { item, count, error }.write(&mut writer);
            self.table.write_place(&mut writer, item.key());
        }
        writer.u64(self.spare.slack);
        writer.len(self.spare.slots.len());
        self.spare.slots.iter().for_each(|&slot| writer.u32(slot));
        self.hot.write(&mut writer);
        writer.finish()
    }

    /// Restores the sieve of a snapshot. The restored sieve answers and continues like the sieve
    /// that was saved, with any instruction set.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the bytes are no snapshot of a `Sieve` of such items, if the bytes are
    /// damaged, or if the sieve can need more memory than 64 MiB plus 64 times the length of
    /// `bytes`.
    pub fn restore(isa: Isa, bytes: &[u8]) -> Result<Self, RestoreError> {
        Self::restore_within(isa, bytes, free_bytes_max(bytes))
    }

    /// Restores a sieve as [`Self::restore`] does, if the sieve needs at most `state_bytes_max`
    /// bytes of memory.
    ///
    /// # Errors
    ///
    /// As [`Self::restore`].
    pub fn restore_within(
        isa: Isa,
        bytes: &[u8],
        state_bytes_max: usize,
    ) -> Result<Self, RestoreError> {
        let mut reader = Reader::new(bytes, StateKind::Sieve, K::NUMBER)?;
        let shape = read_shape::<K>(&mut reader, state_bytes_max)?;
        let secret = Secret::from_seed(reader.u64("the seed")?);
        let observed = reader.u64("the weight")?;
        let detours = reader.size("the number of detours", &(0..=usize::MAX))?;
        let len = reader.len("the number of items", shape.slots(), COUNTER_BYTES)?;
        let line_max = match (len == shape.slots(), observed) {
            (false, _) => 0,
            (true, u64::MAX) => u64::MAX,
            (true, observed) => observed / shape.counters as u64,
        };
        let mut sieve = Self::with_shape(isa, shape, secret);
        (sieve.observed, sieve.detours) = (observed, detours);
        sieve.table.read(&mut reader, line_max)?;
        sieve.read_counters(&mut reader, len)?;
        sieve.spare = read_spare(&mut reader, len)?;
        let coded = |counted: Counted<&K>| {
            (K::code_of_key(counted.item.key(), sieve.index.secret()), counted.count)
        };
        let counted: Vec<(K::Code, u64)> = sieve.iter().map(coded).collect();
        sieve.hot = HotItems::read(&mut reader, shape.slots(), observed, &counted)?;
        if !K::CODE_IS_ITEM && !sieve.hot.slots().is_empty() {
            return Err(reader.refuse("the number of hot items", "above 0", "0 for text"));
        }
        reader.finish()?;
        Ok(sieve)
    }

    fn read_counters(&mut self, reader: &mut Reader<'_>, len: usize) -> Result<(), RestoreError> {
        let mut items = Vec::with_capacity(len);
        for _ in 0..len {
            let Counted { item, count, error } = Counted::<K>::read(reader)?;
            reader.check("an error", error, &(0..=self.table.line()))?;
            let key = self.index.key_of(item.borrowed());
            self.table.read_place(reader, key, K::is_exact(key))?;
            items.push(item);
            self.counts.push(count);
            self.errors.push(error);
        }
        reader.check_distinct(items.iter())?;
        self.index = ItemIndex::of(self.shape.slots(), self.index.secret().clone(), items);
        self.check_excess(reader)
    }

    /// Refuses an entry line that (1) of the proof excludes, and counts that (4) excludes.
    fn check_excess(&self, reader: &Reader<'_>) -> Result<(), RestoreError> {
        let slack = if self.is_full() { self.shape.slack(self.observed) } else { 0 };
        let (mut min, mut excess) = (u64::MAX, 0_u128);
        for counted in self.iter() {
            min = min.min(counted.count);
            excess += u128::from(counted.count.saturating_sub(slack));
        }
        if self.is_full() {
            reader.check("the entry line", self.table.line(), &(0..=slack.max(min)))?;
        }
        if excess > self.observed.into() && self.observed != u64::MAX {
            let expected = format!("at most the weight, {}", self.observed);
            return Err(reader.refuse("the sum of the counts above the slack", excess, expected));
        }
        Ok(())
    }
}

impl<K: StoredItem> Stored<K> for Sieve<K> {
    fn snapshot(&self) -> Vec<u8> {
        Sieve::snapshot(self)
    }

    fn restored(&self, state: &[u8], state_bytes_max: usize) -> Result<Self, RestoreError> {
        Self::restore_within(self.isa, state, state_bytes_max)
    }
}

fn read_shape<K: StoredItem>(
    reader: &mut Reader<'_>,
    state_bytes_max: usize,
) -> Result<SieveShape, RestoreError> {
    let counters = reader.size("the number of counters", &(1..=COUNTERS_MAX))?;
    let name = "the number of cells";
    let cells = reader.size(name, &(2..=1 << CELLS_LOG_MAX))?;
    if !cells.is_power_of_two() {
        return Err(reader.refuse(name, cells, "a power of two"));
    }
    let shape = SieveShape::new(counters, cells);
    check_bytes(shape.state_bytes_max::<K>(), state_bytes_max)?;
    let table_bytes = cells * size_of::<u32>() + shape.slots() * size_of::<u64>();
    reader.check_room("the table", table_bytes, 1)?;
    Ok(shape)
}

fn read_spare(reader: &mut Reader<'_>, slots: usize) -> Result<SpareCounters, RestoreError> {
    let slack = reader.u64("the slack of the last search")?;
    let len = reader.len("the number of spare counters", slots, size_of::<u32>())?;
    let slots = (0..len).map(|_| reader.slot("a spare counter", slots));
    Ok(SpareCounters { slots: slots.collect::<Result<_, _>>()?, slack })
}
