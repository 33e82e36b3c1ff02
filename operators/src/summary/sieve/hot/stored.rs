//! The items of the filter in a snapshot.

use trommel_kernels::filter::Key;
use trommel_kernels::sieve::KEYS_MAX;

use super::{HotItems, WINDOW_MAX, WINDOW_MIN};
use crate::shared::state::{Reader, RestoreError, Writer};

impl<C: Key> HotItems<C> {
    pub(in crate::summary) fn write(&self, writer: &mut Writer) {
        writer.u64(self.last);
        writer.u64(self.items);
        writer.u64(self.window);
        self.before.iter().for_each(|&count| writer.u64(count));
        writer.len(self.slots.len());
        self.slots.iter().for_each(|&slot| writer.u32(slot));
    }

    /// The hot items of a sieve that has observed `observed`, with the code and the count of each
    /// slot in use.
    pub(in crate::summary) fn read(
        reader: &mut Reader<'_>,
        slots: usize,
        observed: u64,
        counted: &[(C, u64)],
    ) -> Result<Self, RestoreError> {
        let mut hot = Self::new(slots);
        let last = reader.u64("the last look")?;
        hot.last = reader.check("the last look", last, &(0..=observed))?;
        hot.items = reader.u64("the items since the last look")?;
        let window = reader.u64("the items between looks")?;
        hot.window = reader.check("the items between looks", window, &(WINDOW_MIN..=WINDOW_MAX))?;
        let counts = counted.iter().map(|&(_, count)| count).chain(std::iter::repeat(0));
        for (before, count) in hot.before.iter_mut().zip(counts) {
            *before = reader.u64("a count at the last look")?;
            reader.check("a count at the last look", *before, &(0..=count))?;
        }
        for _ in 0..reader.len("the number of hot items", KEYS_MAX, size_of::<u32>())? {
            let slot = reader.slot("the slot of a hot item", counted.len())?;
            if hot.slots.contains(&slot) {
                return Err(reader.refuse("the slot of a hot item", slot, "different slots"));
            }
            hot.slots.push(slot);
            hot.codes.push(counted[slot as usize].0);
        }
        Ok(hot)
    }
}
