//! The doorbell: one thread waits for messages, space and queries of all other threads at once.
//!
//! States of the waiter, and the steps between these states (the loom models here and in the module
//! above check them):
//!
//! ```text
//! awake ── answer_door(): is_waiting := true ──► about to wait ── work is there ──► awake (is_waiting := false)
//!                                                  │ no work
//!                                                  ▼
//!                                               parked ── ring(): is_waiting is true, so unpark ──► awake
//! ```
//!
//! The waiter publishes `is_waiting` and *then* looks for work. A ringer publishes work and *then*
//! looks at `is_waiting`. Between the two steps, each side has a sequentially consistent fence, so
//! at least one side sees the other. A ring costs a fence and a load while the thread is awake, and
//! a system call only when the thread is parked.

use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicBool, Ordering, Parker, fence};

/// Lets one thread wait until any other thread wakes it.
#[derive(Debug)]
pub(crate) struct Doorbell {
    is_waiting: CachePadded<AtomicBool>,
    parker: Parker,
}

impl Doorbell {
    /// A doorbell without an owner yet.
    pub(crate) fn new() -> Self {
        Self { is_waiting: CachePadded::new(AtomicBool::new(false)), parker: Parker::new() }
    }

    /// Makes the calling thread the owner, which waits.
    pub(crate) fn own(&self) {
        self.parker.own();
    }

    /// Wakes the owner if the owner waits. The caller must have published its work before.
    pub(crate) fn ring(&self) {
        fence(Ordering::SeqCst);
        // Relaxed: the fences here and in `answer_door` order this load after the publication.
        if self.is_waiting.load(Ordering::Relaxed) {
            self.parker.unpark();
        }
    }

    /// Waits until another thread rings, at most for `timeout`; does not wait if `has_work` returns
    /// true. The wait may end early. Only the owner may call this.
    pub(crate) fn answer_door(&self, has_work: impl FnOnce() -> bool, timeout: Option<Duration>) {
        self.is_waiting.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !has_work() {
            self.parker.park(timeout);
        }
        self.is_waiting.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod model {
    use std::sync::Arc;

    use super::Doorbell;
    use crate::sync::{AtomicBool, Ordering};

    #[test]
    fn no_ring_is_lost() {
        loom::model(|| {
            let bell = Arc::new(Doorbell::new());
            let work = Arc::new(AtomicBool::new(false));
            bell.own();
            let ringer = {
                let (bell, work) = (Arc::clone(&bell), Arc::clone(&work));
                loom::thread::spawn(move || {
                    work.store(true, Ordering::Relaxed);
                    bell.ring();
                })
            };
            while !work.load(Ordering::Relaxed) {
                bell.answer_door(|| work.load(Ordering::Relaxed), None);
            }
            ringer.join().unwrap();
        });
    }
}
