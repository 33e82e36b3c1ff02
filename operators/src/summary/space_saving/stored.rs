//! SpaceSaving in a snapshot.

use super::SpaceSaving;
use crate::shared::items::{Item, StoredItem};
use crate::shared::names::secret::random_seed;
use crate::shared::state::{Reader, RestoreError, StateKind, Writer, check_bytes, free_bytes_max};
use crate::summary::capacity::COUNTERS_MAX;
use crate::summary::contract::Stored;
use crate::summary::counted::Counted;
use crate::summary::index::ItemIndex;
use crate::summary::min_queue::MinQueue;

/// A count and an error; items take more.
const COUNTER_BYTES: usize = 16;

impl<K: StoredItem> SpaceSaving<K> {
    /// Everything that the future of the summary depends on, as bytes.
    ///
    /// # Cost
    ///
    /// O(k log k); 16 bytes a counter and the item, and up to 36 for the order of replacement.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_operators::frequent_items::SpaceSaving;
    ///
    /// let mut summary = SpaceSaving::new(100)?;
    /// summary.observe(&[7_u32, 7, 1][..]);
    /// let again = SpaceSaving::<u32>::restore(&summary.snapshot())?;
    /// assert_eq!(again.top(2), summary.top(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        let mut writer = Writer::new(StateKind::SpaceSaving, K::NUMBER);
        self.write(&mut writer);
        writer.finish()
    }

    /// The summary of a snapshot, which answers and continues in the same way. The hashes of the
    /// summary are new, which changes no answer.
    ///
    /// # Errors
    ///
    /// [`RestoreError`] if the bytes are no snapshot of a `SpaceSaving` of such items, are damaged,
    /// or would need 64 MiB more than 64 times their length.
    pub fn restore(bytes: &[u8]) -> Result<Self, RestoreError> {
        Self::restore_within(bytes, free_bytes_max(bytes))
    }

    /// The same with another limit of the memory that the summary may take.
    ///
    /// # Errors
    ///
    /// As [`Self::restore`].
    pub fn restore_within(bytes: &[u8], state_bytes_max: usize) -> Result<Self, RestoreError> {
        let mut reader = Reader::new(bytes, StateKind::SpaceSaving, K::NUMBER)?;
        let counters = reader.size("the number of counters", &(1..=COUNTERS_MAX))?;
        let secret = K::secret(random_seed());
        let summary = Self::read(&mut reader, counters, secret, state_bytes_max)?;
        check_sums(&reader, summary.iter(), summary.counters, summary.observed)?;
        reader.finish()?;
        Ok(summary)
    }

    pub(in crate::summary) fn write(&self, writer: &mut Writer) {
        writer.len(self.counters);
        writer.u64(self.observed);
        writer.len(self.index.len());
        self.iter().for_each(|counted| counted.write(writer));
        self.min_queue.write(writer);
    }

    /// Reads all fields after the number of counters; the codes get this secret.
    pub(in crate::summary) fn read(
        reader: &mut Reader<'_>,
        counters: usize,
        secret: K::Secret,
        state_bytes_max: usize,
    ) -> Result<Self, RestoreError> {
        check_bytes(Self::bytes_max(counters), state_bytes_max)?;
        let observed = reader.u64("the weight")?;
        let len = reader.len("the number of items", counters, COUNTER_BYTES)?;
        let counted: Vec<_> =
            (0..len).map(|_| Counted::<K>::read(reader)).collect::<Result<_, _>>()?;
        reader.check_distinct(counted.iter().map(|counted| &counted.item))?;
        let mut summary = Self::from_counted(counters, secret, observed, counted);
        summary.min_queue = MinQueue::read(reader, &summary.counts, counters)?;
        Ok(summary)
    }
}

impl<K: StoredItem> Stored<K> for SpaceSaving<K> {
    fn snapshot(&self) -> Vec<u8> {
        SpaceSaving::snapshot(self)
    }

    fn restored(&self, state: &[u8], state_bytes_max: usize) -> Result<Self, RestoreError> {
        Self::restore_within(state, state_bytes_max)
    }
}

impl<K: Item> SpaceSaving<K> {
    /// The most memory that a summary takes, strings left out.
    pub(crate) fn bytes_max(counters: usize) -> usize {
        size_of::<Self>()
            + ItemIndex::<K>::bytes(counters)
            + counters * 2 * size_of::<u64>()
            + MinQueue::bytes_max(counters)
    }
}

/// Refuses counts that sum to more than the weight, and errors above their bound; as long as
/// nothing has saturated, no stream leads there.
pub(in crate::summary) fn check_sums<'a, K: Item>(
    reader: &Reader<'_>,
    counted: impl Iterator<Item = Counted<&'a K>>,
    counters: usize,
    observed: u64,
) -> Result<(), RestoreError> {
    let error_max = if observed == u64::MAX { observed } else { observed / counters as u64 };
    let mut sum = 0_u128;
    for counted in counted {
        sum += u128::from(counted.count);
        reader.check("an error", counted.error, &(0..=error_max))?;
    }
    if sum > observed.into() && observed != u64::MAX {
        let expected = format_args!("at most the weight, {observed}").to_string();
        return Err(reader.refuse("the sum of the counts", sum, expected));
    }
    Ok(())
}
