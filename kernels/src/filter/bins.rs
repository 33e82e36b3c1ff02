//! Bins, and the answer of a call.

/// The maximum number of bins of a filter.
pub const BINS_MAX: usize = 64;

/// The answer of [`locate`](super::locate) for an item that is in no bin.
pub const NO_LANE: u8 = 64;

// A search for the lowest bit of zero gives `NO_LANE`.
const _: () = assert!(NO_LANE as usize == BINS_MAX && NO_LANE as u32 == 0_u64.trailing_zeros());

/// The bins of a filter: distinct keys and the count of each.
#[derive(Debug)]
pub struct Bins<'a, K> {
    /// The keys, pairwise distinct, at most [`BINS_MAX`].
    pub keys: &'a [K],
    /// The count of each key, as many as keys; calls add to it.
    pub counts: &'a mut [u64],
}

impl<K> Bins<'_, K> {
    pub(super) fn check(&self) {
        let (keys, counts) = (self.keys.len(), self.counts.len());
        assert!(keys <= BINS_MAX, "a filter has at most {BINS_MAX} bins, not {keys}");
        assert!(keys == counts, "a filter of {keys} bins needs as many counts, not {counts}");
    }
}

/// The progress of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Absorbed {
    /// Items consumed from the front of the batch.
    pub consumed: usize,
    /// Consumed items that are in no bin: the number of positions that were written.
    pub missed: usize,
    /// The weight of the missed items, saturating; equal to `missed` for items without weights.
    pub missed_weight: u64,
}
