//! A channel for one value, to a thread that waits for it.
//!
//! The receiver reads a single flag. So while the receiver spins, the sender's core keeps the cache
//! line of the value; a bounded channel of capacity one costs both threads several cache misses
//! more. The value is published before the flag, and the flag before the wake-up, whose token
//! cannot be lost.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::sync::lock;

/// Time that a receiver spins before it parks: longer than a parked sender takes to wake up, so
/// that only one of the two has to be woken.
const LOOK: Duration = Duration::from_micros(200);
/// Reads of the flag between two yields of the core. The sender may need the core.
const LOOKS_PER_YIELD: usize = 256;

struct Handover<T> {
    value: Mutex<Option<T>>,
    receiver: Thread,
    /// Whether the value has been sent or the sender dropped.
    is_settled: CachePadded<AtomicBool>,
}

impl<T> Handover<T> {
    fn take(&self) -> Result<T, RecvError> {
        let mut value = lock(&self.value);
        value.take().ok_or(RecvError::Closed)
    }

    fn is_settled(&self) -> bool {
        // Acquire: pairs with the release in the sender's drop, so the value is there.
        self.is_settled.load(Ordering::Acquire)
    }
}

/// The sending end. A sender that is dropped without a value closes the channel.
pub(crate) struct Sender<T>(Arc<Handover<T>>);

/// The receiving end, which stays on the thread that made the channel.
pub(crate) struct Receiver<T>(Arc<Handover<T>>);

/// The reason why there is no value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RecvError {
    /// The sender was dropped.
    Closed,
    /// No value came in time.
    TimedOut,
}

/// A channel for one value, which the calling thread receives.
pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let handover = Arc::new(Handover {
        value: Mutex::new(None),
        receiver: thread::current(),
        is_settled: CachePadded::new(AtomicBool::new(false)),
    });
    (Sender(Arc::clone(&handover)), Receiver(handover))
}

impl<T> Sender<T> {
    /// Whether the receiver still exists.
    pub(crate) fn is_wanted(&self) -> bool {
        // The receiver holds the other reference.
        Arc::strong_count(&self.0) > 1
    }

    pub(crate) fn send(self, value: T) {
        *lock(&self.0.value) = Some(value);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.is_settled.store(true, Ordering::Release);
        self.0.receiver.unpark();
    }
}

impl<T> Receiver<T> {
    /// Waits for the value, at most for `limit`. With `may_spin`, the receiver spins for a while
    /// before it parks.
    pub(crate) fn recv(&self, limit: Duration, may_spin: bool) -> Result<T, RecvError> {
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
                return Err(RecvError::TimedOut);
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
    fn a_value_reaches_a_receiver_that_waits_and_one_that_comes_late() {
        let pauses = [Duration::ZERO, Duration::from_millis(5)];
        for (pause, may_spin) in pauses.into_iter().flat_map(|p| [(p, false), (p, true)]) {
            let (sender, receiver) = channel();
            let thread = thread::Builder::new()
                .spawn(move || {
                    thread::park_timeout(pause);
                    sender.send("gold");
                })
                .unwrap();
            assert_eq!(receiver.recv(Duration::MAX, may_spin), Ok("gold"));
            thread.join().unwrap();
        }
        let (sender, receiver) = channel();
        sender.send(7);
        assert_eq!(receiver.recv(Duration::ZERO, true), Ok(7));
    }

    #[test]
    fn a_sender_that_is_dropped_and_one_that_is_late_are_told_apart() {
        let (sender, receiver) = channel::<u32>();
        assert!(sender.is_wanted());
        assert_eq!(receiver.recv(Duration::from_millis(1), false), Err(RecvError::TimedOut));
        drop(sender);
        assert_eq!(receiver.recv(Duration::MAX, true), Err(RecvError::Closed));
    }

    #[test]
    fn a_sender_knows_that_nobody_waits() {
        let (sender, receiver) = channel::<u32>();
        drop(receiver);
        assert!(!sender.is_wanted());
    }
}
