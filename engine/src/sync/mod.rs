//! The synchronisation primitives of the engine's own protocols: the doorbell, the edges and the
//! locks. For the model checker, primitives of loom replace those of the doorbell and the edges.
//! crossbeam-channel knows nothing of loom, so a small queue takes its place there.

pub(crate) mod counter;

use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(not(loom))]
pub(crate) use crossbeam_channel::{Receiver, Sender, bounded};
#[cfg(not(loom))]
pub(crate) use parker::Parker;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use model::{Parker, Receiver, Sender, bounded};

/// Locks `mutex`, even if another thread panicked with the lock: the data under the engine's locks
/// is valid between any two statements.
#[cfg(not(thread_sanitizer))]
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As above. The standard library was compiled without ThreadSanitizer. The sanitizer does not see
/// the library's waits for a lock and would report the guarded data as racy.
#[cfg(thread_sanitizer)]
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    use std::sync::TryLockError;
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(error)) => return PoisonError::into_inner(error),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}

#[cfg(not(loom))]
mod parker {
    use std::sync::OnceLock;
    use std::thread::{self, Thread};
    use std::time::Duration;

    /// Puts one thread, its owner, to sleep until another thread wakes the owner. A wake-up before
    /// the sleep is not lost.
    #[derive(Debug, Default)]
    pub(crate) struct Parker {
        owner: OnceLock<Thread>,
    }

    impl Parker {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        /// Makes the calling thread the owner, if there is no owner.
        pub(crate) fn own(&self) {
            let _first_owner_stays = self.owner.set(thread::current());
        }

        pub(crate) fn park(&self, timeout: Option<Duration>) {
            match timeout {
                Some(timeout) => thread::park_timeout(timeout),
                None => thread::park(),
            }
        }

        pub(crate) fn unpark(&self) {
            if let Some(owner) = self.owner.get() {
                owner.unpark();
            }
        }
    }
}

#[cfg(loom)]
mod model {
    use std::collections::VecDeque;

    use std::time::Duration;

    use crossbeam_channel::{TryRecvError, TrySendError};
    use loom::sync::{Arc, Condvar, Mutex};

    /// Parking as the standard library documents it: `unpark` leaves a token, and `park` takes the
    /// token.
    #[derive(Debug)]
    pub(crate) struct Parker(Mutex<bool>, Condvar);

    impl Parker {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(false), Condvar::new())
        }

        pub(crate) fn own(&self) {}

        pub(crate) fn park(&self, _timeout: Option<Duration>) {
            let mut token = self.0.lock().expect("no model panics with the lock");
            while !*token {
                token = self.1.wait(token).expect("no model panics with the lock");
            }
            *token = false;
        }

        pub(crate) fn unpark(&self) {
            *self.0.lock().expect("no model panics with the lock") = true;
            self.1.notify_one();
        }
    }

    /// A bounded queue whose ends never close.
    pub(crate) struct Sender<T>(Arc<Mutex<VecDeque<T>>>, usize);
    pub(crate) struct Receiver<T>(Arc<Mutex<VecDeque<T>>>);

    pub(crate) fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        let queue = Arc::new(Mutex::new(VecDeque::new()));
        (Sender(Arc::clone(&queue), capacity), Receiver(queue))
    }

    impl<T> Sender<T> {
        pub(crate) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
            let mut queue = self.0.lock().expect("no model panics with the lock");
            if queue.len() == self.1 {
                return Err(TrySendError::Full(value));
            }
            queue.push_back(value);
            Ok(())
        }
    }

    impl<T> Receiver<T> {
        pub(crate) fn try_recv(&self) -> Result<T, TryRecvError> {
            let mut queue = self.0.lock().expect("no model panics with the lock");
            queue.pop_front().ok_or(TryRecvError::Empty)
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.0.lock().expect("no model panics with the lock").is_empty()
        }
    }
}
