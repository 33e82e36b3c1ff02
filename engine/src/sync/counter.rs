//! Numbers that one thread writes and other threads display.

use std::time::Duration;

use super::{AtomicU64, Ordering};

/// Adds `amount` to a number that only the calling thread writes; returns the sum.
pub(crate) fn add(counter: &AtomicU64, amount: u64) -> u64 {
    // Relaxed: the number has one writer, and readers only display it.
    let sum = counter.load(Ordering::Relaxed).wrapping_add(amount);
    counter.store(sum, Ordering::Relaxed);
    sum
}

/// A duration in nanoseconds, for a counter.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
