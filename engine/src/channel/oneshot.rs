//! One value from one thread to another that waits for it.
//!
//! The waiter looks at a single flag, so that while it spins the giver's core keeps the rest of the
//! slot to itself; a bounded channel of one costs both of them several cache misses more. The value
//! is published before the flag, and the flag before the wake-up, whose token cannot be lost.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::sync::lock;

/// How long a taker looks before it parks: longer than a parked giver takes to wake up, so that
/// only one of the two has to be woken.
const LOOK: Duration = Duration::from_micros(200);
/// Looks before the taker offers its core to whoever else could run there, perhaps the giver.
const LOOKS_PER_YIELD: usize = 256;

struct Slot<T> {
    value: Mutex<Option<T>>,
    taker: Thread,
    /// Given or given up: nothing changes any more.
    is_settled: CachePadded<AtomicBool>,
}

impl<T> Slot<T> {
    fn take(&self) -> Result<T, NotGiven> {
        let mut value = lock(&self.value);
        value.take().ok_or(NotGiven::GivenUp)
    }

    fn is_settled(&self) -> bool {
        // Acquire: pairs with the release in the giver's drop, so the value is there.
        self.is_settled.load(Ordering::Acquire)
    }
}

/// Gives the value, or gives up by being dropped.
pub(crate) struct Giver<T>(Arc<Slot<T>>);

/// Waits for the value; stays on the thread that made it.
pub(crate) struct Taker<T>(Arc<Slot<T>>);

/// Why there is no value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotGiven {
    /// The giver was dropped.
    GivenUp,
    /// Not yet.
    TimedOut,
}

/// A slot for one value that the calling thread waits for.
pub(crate) fn oneshot<T>() -> (Giver<T>, Taker<T>) {
    let slot = Arc::new(Slot {
        value: Mutex::new(None),
        taker: thread::current(),
        is_settled: CachePadded::new(AtomicBool::new(false)),
    });
    (Giver(Arc::clone(&slot)), Taker(slot))
}

impl<T> Giver<T> {
    /// Whether somebody still waits for the value.
    pub(crate) fn is_wanted(&self) -> bool {
        // The taker holds the other reference.
        Arc::strong_count(&self.0) > 1
    }

    pub(crate) fn give(self, value: T) {
        *lock(&self.0.value) = Some(value);
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        self.0.is_settled.store(true, Ordering::Release);
        self.0.taker.unpark();
    }
}

impl<T> Taker<T> {
    /// Waits for the value, at most for `limit`. With `may_spin` it looks for it for a while before
    /// it parks.
    pub(crate) fn take(&self, limit: Duration, may_spin: bool) -> Result<T, NotGiven> {
        let start = Instant::now();
        while may_spin && start.elapsed() < LOOK.min(limit) {
            for _ in 0..LOOKS_PER_YIELD {
                if self.0.is_settled() {
                    return self.0.take();
                }
                spin_loop();
            }
            thread::yield_now();
        }
        while !self.0.is_settled() {
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(NotGiven::TimedOut);
            }
            thread::park_timeout(left);
        }
        self.0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reaches_a_taker_that_waits_and_one_that_comes_late() {
        let pauses = [Duration::ZERO, Duration::from_millis(5)];
        for (pause, may_spin) in pauses.into_iter().flat_map(|p| [(p, false), (p, true)]) {
            let (giver, taker) = oneshot();
            let thread = thread::Builder::new()
                .spawn(move || {
                    thread::park_timeout(pause);
                    giver.give("gold");
                })
                .unwrap();
            assert_eq!(taker.take(Duration::MAX, may_spin), Ok("gold"));
            thread.join().unwrap();
        }
        let (giver, taker) = oneshot();
        giver.give(7);
        assert_eq!(taker.take(Duration::ZERO, true), Ok(7));
    }

    #[test]
    fn a_giver_that_is_dropped_and_one_that_is_late_are_told_apart() {
        let (giver, taker) = oneshot::<u32>();
        assert!(giver.is_wanted());
        assert_eq!(taker.take(Duration::from_millis(1), false), Err(NotGiven::TimedOut));
        drop(giver);
        assert_eq!(taker.take(Duration::MAX, true), Err(NotGiven::GivenUp));
    }

    #[test]
    fn a_giver_knows_that_nobody_waits() {
        let (giver, taker) = oneshot::<u32>();
        drop(taker);
        assert!(!giver.is_wanted());
    }
}
