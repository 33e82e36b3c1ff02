//! The filter in a snapshot: its front half, then its back half.

use trommel_kernels::Isa;
use trommel_kernels::filter::BINS_MAX;

use super::front::FilterFront;
use super::{Filter, MISSED_MAX};
use crate::shared::items::StoredItem;
use crate::shared::names::secret::random_seed;
use crate::shared::state::{Reader, RestoreError, StateKind, Writer, check_bytes, free_bytes_max};
use crate::summary::capacity::COUNTERS_MAX;
use crate::summary::contract::Stored;
use crate::summary::space_saving::{SpaceSaving, check_sums};

impl<K: StoredItem> Filter<K> {
    /// Everything that the future of the filter depends on, as bytes.
    ///
    /// # Cost
    ///
    /// As [`SpaceSaving::snapshot`].
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::Isa;
    /// use trommel_operators::frequent_items::Filter;
    ///
    /// let isa = Isa::selected()?;
    /// let mut filter = Filter::new(isa, 100, 8)?;
    /// filter.observe(&[7_u64, 7, 1][..]);
    /// let again = Filter::<u64>::restore(isa, &filter.snapshot())?;
    /// assert_eq!(again.top(2), filter.top(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        let mut writer = Writer::new(StateKind::Filter, K::NUMBER);
        self.front.write(&mut writer);
        self.back.write(&mut writer);
        writer.finish()
    }

    /// The filter of a snapshot, which answers and continues in the same way, with any instruction
    /// set. The hashes of the filter are new, which changes no answer.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the bytes are no snapshot of a `Filter` of such items, are damaged, or
    /// would need 64 MiB more than 64 times their length.
    pub fn restore(isa: Isa, bytes: &[u8]) -> Result<Self, RestoreError> {
        Self::restore_within(isa, bytes, free_bytes_max(bytes))
    }

    /// The same with another limit of the memory that the filter may take.
    ///
    /// # Errors
    ///
    /// As [`Self::restore`].
    pub fn restore_within(
        isa: Isa,
        bytes: &[u8],
        state_bytes_max: usize,
    ) -> Result<Self, RestoreError> {
        check_bytes(size_of::<Self>() + MISSED_MAX * size_of::<u32>(), state_bytes_max)?;
        let mut reader = Reader::new(bytes, StateKind::Filter, K::NUMBER)?;
        let bins = reader.size("the number of bins", &(1..=BINS_MAX))?;
        let secret = K::secret(random_seed());
        let front = FilterFront::read(&mut reader, isa, bins, secret.clone())?;
        let counters = reader.size("the number of counters", &(1..=COUNTERS_MAX))?;
        let back = SpaceSaving::read(&mut reader, counters, secret, state_bytes_max)?;
        let front = front.complete(&reader, &back)?;
        let filter = Self { front, back, missed: vec![0; MISSED_MAX] };
        check_sums(&reader, filter.iter(), filter.counters(), filter.observed())?;
        reader.finish()?;
        Ok(filter)
    }
}

impl<K: StoredItem> Stored<K> for Filter<K> {
    fn snapshot(&self) -> Vec<u8> {
        Filter::snapshot(self)
    }

    fn restored(&self, state: &[u8], state_bytes_max: usize) -> Result<Self, RestoreError> {
        Self::restore_within(self.front.isa(), state, state_bytes_max)
    }
}
