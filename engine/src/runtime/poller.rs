//! The poller: one thread that waits for the descriptors of all sources and sinks of a run.
//!
//! A source without data, or a sink without room, names a descriptor. Its thread registers the
//! descriptor here and goes on with other work, or parks. When the descriptor is readable or
//! writable, or the other end hangs up, the poller marks the node and rings the bell of the node's
//! thread. The thread of the poller starts with the first registration and costs nothing while no
//! descriptor changes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token, Waker};

use crate::channel::Doorbell;
use crate::sync::lock;

/// The token of the waker, which ends the thread. The tokens of nodes count from 0.
const END: Token = Token(usize::MAX);
/// Maximum number of events that one call of the operating system returns.
const EVENTS: usize = 64;

/// Whether the descriptor of a node has become ready, and the bell of the node's thread.
struct ReadySignal {
    is_ready: AtomicBool,
    bell: Arc<Doorbell>,
}

/// The poller of a run.
pub(super) struct Poller {
    signals: Arc<[ReadySignal]>,
    thread: Mutex<Option<PollerThread>>,
}

struct PollerThread {
    registry: Registry,
    waker: Waker,
    handle: JoinHandle<()>,
}

impl Poller {
    /// A poller for nodes. `bells` has the bell of the thread of each node.
    pub(super) fn new(bells: impl IntoIterator<Item = Arc<Doorbell>>) -> Arc<Self> {
        let signal = |bell| ReadySignal { is_ready: AtomicBool::new(false), bell };
        let signals = bells.into_iter().map(signal).collect();
        Arc::new(Self { signals, thread: Mutex::new(None) })
    }

    fn register(&self, index: usize, descriptor: RawFd, interest: Interest) -> io::Result<()> {
        let mut thread = lock(&self.thread);
        let thread = match &mut *thread {
            Some(thread) => thread,
            empty => empty.insert(start(Arc::clone(&self.signals))?),
        };
        if thread.handle.is_finished() {
            return Err(io::Error::other("the thread that waits for descriptors has failed"));
        }
        thread.registry.register(&mut SourceFd(&descriptor), Token(index), interest)
    }

    fn deregister(&self, descriptor: RawFd) {
        let thread = lock(&self.thread);
        if let Some(thread) = &*thread {
            // This fails only if the node has closed the descriptor, which ended the registration.
            let _ = thread.registry.deregister(&mut SourceFd(&descriptor));
        }
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(PollerThread { waker, handle, .. }) = thread
            && waker.wake().is_ok()
        {
            // The panic hook has reported a panic of that thread, and no node waits any more.
            let _ = handle.join();
        }
    }
}

fn start(signals: Arc<[ReadySignal]>) -> io::Result<PollerThread> {
    let poll = Poll::new()?;
    let registry = poll.registry().try_clone()?;
    let waker = Waker::new(&registry, END)?;
    let run = move || {
        if let Err(error) = poll_until_end(poll, &signals) {
            tracing::error!(%error, "cannot wait for descriptors");
            // The nodes learn of the failure when they register again.
            signals.iter().for_each(ReadySignal::set);
        }
    };
    let handle = thread::Builder::new().name("trommel poller".to_owned()).spawn(run)?;
    Ok(PollerThread { registry, waker, handle })
}

fn poll_until_end(mut poll: Poll, signals: &[ReadySignal]) -> io::Result<()> {
    let mut events = Events::with_capacity(EVENTS);
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result?,
        }
        for event in &events {
            match event.token() {
                END => return Ok(()),
                Token(node) => signals[node].set(),
            }
        }
    }
}

impl ReadySignal {
    fn set(&self) {
        // Relaxed: the mark carries no data, and the doorbell orders the mark against a wait.
        self.is_ready.store(true, Ordering::Relaxed);
        self.bell.ring();
    }
}

/// The descriptor that one node waits for.
pub(super) struct Readiness {
    poller: Arc<Poller>,
    index: usize,
    watched: Option<RawFd>,
}

impl Readiness {
    /// The readiness of the node with this index among the bells of `poller`.
    pub(super) fn new(poller: &Arc<Poller>, index: usize) -> Self {
        Self { poller: Arc::clone(poller), index, watched: None }
    }

    /// Waits for `descriptor` from now on; false if the descriptor never blocks, such as that of a
    /// regular file.
    pub(super) fn watch(
        &mut self,
        descriptor: BorrowedFd<'_>,
        interest: Interest,
    ) -> io::Result<bool> {
        self.unwatch();
        let descriptor = descriptor.as_raw_fd();
        self.signal().is_ready.store(false, Ordering::Relaxed);
        match self.poller.register(self.index, descriptor, interest) {
            Ok(()) => {
                self.watched = Some(descriptor);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the watched descriptor has become ready.
    pub(super) fn is_ready(&self) -> bool {
        self.watched.is_some() && self.signal().is_ready.load(Ordering::Relaxed)
    }

    /// Ends the wait. The descriptor is still open.
    pub(super) fn unwatch(&mut self) {
        if let Some(descriptor) = self.watched.take() {
            self.poller.deregister(descriptor);
        }
    }

    fn signal(&self) -> &ReadySignal {
        &self.poller.signals[self.index]
    }
}
