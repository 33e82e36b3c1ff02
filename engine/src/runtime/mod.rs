//! Runs a topology: starts its threads, answers for them, and brings them to an end.
//!
//! This is the only place where threads are made. Each runs one group of parts (see
//! [`crate::placement`]) and waits only for its doorbell; one more waits for the descriptors of
//! all sources (`poller`). The stage loop is in `group`, the next step of a part in `node`, the
//! phases of a run in `shared`, the answers to queries in `serve`.

mod allowance;
mod control;
mod group;
mod inputs;
mod node;
mod outputs;
mod pace;
mod poller;
mod queries;
mod serve;
mod shared;
mod start;
mod step;
#[cfg(test)]
mod tests;
mod tickets;

use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use crossbeam_utils::CachePadded;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use poller::Poller;
pub use queries::{Latest, QueryHandle, Watch};
use shared::{Phase, Shared};

use crate::channel::QueueLimits;
use crate::error::{RunError, RunErrorCause};
use crate::memory::Reservation;
use crate::metrics::{Metrics, PartCounters, StageMetrics, WatchedEdge};
use crate::query::{QueryError, Request};

/// Wait after the operating system has refused to wait for a descriptor.
const RETRY: Duration = Duration::from_millis(50);
/// Time that an aborted run waits for an operator that does not return, before its thread is
/// abandoned.
const ABORT_GRACE: Duration = Duration::from_secs(5);

/// Options for the run of a topology.
///
/// # Examples
/// ```
/// use trommel_engine::channel::QueueLimits;
/// use trommel_engine::runtime::RunOptions;
///
/// let options = RunOptions::new().queue(QueueLimits { batches: 2, ..QueueLimits::default() });
/// assert_eq!(options.queue.bytes, 64 << 20);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunOptions {
    /// Bounds of every queue between threads.
    pub queue: QueueLimits,
}

impl RunOptions {
    /// The defaults: 8 batches and 64 MiB a queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the bounds of every queue between threads.
    #[must_use]
    pub fn queue(mut self, limits: QueueLimits) -> Self {
        self.queue = limits;
        self
    }
}

/// The names and numbers of the parts of a stage.
struct StageNumbers {
    id: String,
    operator: &'static str,
    parts: Vec<(String, Arc<PartCounters>)>,
}

/// One thread of the run.
struct Worker {
    handle: Option<JoinHandle<()>>,
    labels: Vec<(String, &'static str)>,
    current: Arc<CachePadded<AtomicUsize>>,
}

/// Asks, watches and ends a run from any thread. Cheap to clone; may outlive the run.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// # use trommel_engine::graph::Graph;
/// # use trommel_engine::runtime::RunOptions;
/// # let mut graph = Graph::new();
/// # let numbers = graph.add("numbers", Numbers(0, 1_000));
/// # graph.add_after(numbers, "sum", Sum(0));
/// use trommel_engine::runtime::RunPhase;
///
/// let running = graph.build()?.start(RunOptions::new())?;
/// let handle = running.handle();
/// running.join()?;
/// assert_eq!(handle.phase(), RunPhase::Ended);
/// assert_eq!(handle.metrics().stage("sum").unwrap().items_in(), 1_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RunHandle {
    shared: Arc<Shared>,
    queries: QueryHandle,
    stages: Arc<[StageNumbers]>,
    edges: Arc<[WatchedEdge]>,
}

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunPhase {
    /// The sources produce.
    Running,
    /// The sources have been stopped; all items that were taken from the inputs are processed.
    Draining,
    /// As [`Self::Draining`], because no sink needs input any more; no one has asked for it.
    Sated,
    /// Every stage ends at its next batch boundary.
    Aborted,
    /// All threads have ended.
    Ended,
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle")
            .field("stages", &self.queries)
            .field("phase", &self.phase())
            .finish_non_exhaustive()
    }
}

impl RunHandle {
    /// The handle for queries.
    #[must_use]
    pub fn queries(&self) -> &QueryHandle {
        &self.queries
    }

    /// The phase of the run.
    #[must_use]
    pub fn phase(&self) -> RunPhase {
        match self.shared.phase() {
            _ if self.shared.has_ended() => RunPhase::Ended,
            Phase::Running => RunPhase::Running,
            Phase::Draining if self.shared.is_sated() => RunPhase::Sated,
            Phase::Draining => RunPhase::Draining,
            Phase::Aborted => RunPhase::Aborted,
        }
    }

    /// The numbers so far; after the end, also of a run that failed, the totals. The numbers of
    /// different stages are not from the same instant.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        Metrics {
            wall: self.shared.wall(),
            stages: self.stages.iter().map(StageNumbers::read).collect(),
            edges: self.edges.iter().map(WatchedEdge::read).collect(),
        }
    }

    /// Drains the run: sources take no more from their inputs, all items that they took are
    /// processed, and operators finish. Further calls change nothing.
    pub fn stop(&self) {
        self.shared.advance(Phase::Draining);
    }

    /// As [`RunHandle::stop`], and aborts when the pipeline has not drained within `limit`. Of
    /// several limits, the earliest counts.
    pub fn stop_within(&self, limit: Duration) {
        self.shared.set_deadline(limit);
        self.stop();
    }

    /// Lets every sink open the files that grow again by their names, also while no rows come: for
    /// programs that rename logs and then want them closed.
    pub fn reopen(&self) {
        self.shared.reopen();
    }

    /// Ends the run at the next batch boundary of every stage; batches in flight are dropped, and
    /// [`Running::join`] returns an error.
    pub fn abort(&self) {
        self.shared.advance(Phase::Aborted);
    }
}

/// A running pipeline. Dropping it aborts the run without waiting for its end.
pub struct Running {
    workers: Vec<Worker>,
    /// Receives the index of each worker that has ended.
    ended: Receiver<usize>,
    /// Readable when a worker has ended.
    end_event: Arc<OwnedFd>,
    workers_running: usize,
    /// Ends with the last worker.
    poller: Option<Arc<Poller>>,
    /// Memory of the queues; given back when the run is over.
    _memory: Option<Reservation>,
    handle: RunHandle,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("handle", &self.handle)
            .field("workers_running", &self.workers_running)
            .finish_non_exhaustive()
    }
}

impl Running {
    /// Asks `stage` and waits for its answer, which is exact at a batch boundary after this call.
    ///
    /// # Examples
    /// ```
    /// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
    /// # use pipeline::*;
    /// # use trommel_engine::graph::Graph;
    /// # use trommel_engine::runtime::RunOptions;
    /// # let mut graph = Graph::new();
    /// # let numbers = graph.add("numbers", Numbers(0, u64::MAX));
    /// # graph.add_after(numbers, "sum", Sum(0));
    /// use trommel_engine::query::Request;
    ///
    /// let running = graph.build()?.start(RunOptions::new())?;
    /// let answer = running.query("sum", &Request::new("sum"))?;
    /// assert_eq!(answer.num_rows(), 1);
    /// let unknown = running.query("sum", &Request::new("mean")).unwrap_err();
    /// assert_eq!(unknown.to_string(), "the operator has no query `mean`; it answers sum");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such stage, it does not know the request, too many queries wait at it, or it
    /// has finished.
    pub fn query(&self, stage: &str, request: &Request) -> Result<RecordBatch, QueryError> {
        self.handle.queries.query(stage, request)
    }

    /// Registers a standing query, whose last answer can be read at any time without waiting.
    ///
    /// # Examples
    /// ```
    /// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
    /// # use pipeline::*;
    /// # use trommel_engine::graph::Graph;
    /// # use trommel_engine::runtime::RunOptions;
    /// # let mut graph = Graph::new();
    /// # let numbers = graph.add("numbers", Numbers(0, u64::MAX));
    /// # graph.add_after(numbers, "sum", Sum(0));
    /// # use trommel_engine::query::Request;
    /// let running = graph.build()?.start(RunOptions::new())?;
    /// let watch = running.watch("sum", Request::new("sum"))?;
    /// let latest = loop {
    ///     if let Some(latest) = watch.latest() {
    ///         break latest;
    ///     }
    ///     std::thread::yield_now();
    /// };
    /// let answer = latest.answer().expect("the stage knows the request");
    /// println!("{answer:?}, {:?} ago", latest.age());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Running::query`]; for a request that the stage does not know, [`Watch::latest`] has
    /// the error.
    pub fn watch(&self, stage: &str, request: Request) -> Result<Watch, QueryError> {
        self.handle.queries.watch(stage, request)
    }

    /// A handle for other threads, which may outlive this one.
    #[must_use]
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    /// A handle for queries from other threads, which may outlive this one.
    #[must_use]
    pub fn queries(&self) -> QueryHandle {
        self.handle.queries.clone()
    }

    /// See [`RunHandle::metrics`].
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.handle.metrics()
    }

    /// See [`RunHandle::stop`].
    ///
    /// # Examples
    /// ```
    /// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
    /// # use pipeline::*;
    /// # use trommel_engine::graph::Graph;
    /// # use trommel_engine::runtime::RunOptions;
    /// # let mut graph = Graph::new();
    /// # let numbers = graph.add("numbers", Numbers(0, u64::MAX));
    /// # graph.add_after(numbers, "sum", Sum(0));
    /// let running = graph.build()?.start(RunOptions::new())?;
    /// running.stop();
    /// let metrics = running.join()?;
    /// let (sent, summed) = (metrics.stage("numbers").unwrap(), metrics.stage("sum").unwrap());
    /// assert_eq!(sent.items_out(), summed.items_in(), "no item is lost");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop(&self) {
        self.handle.stop();
    }

    /// See [`RunHandle::stop_within`].
    pub fn stop_within(&self, limit: Duration) {
        self.handle.stop_within(limit);
    }

    /// See [`RunHandle::abort`].
    pub fn abort(&self) {
        self.handle.abort();
    }

    /// Waits for the end of the pipeline, at most for `limit`; true if it has ended. The limit of
    /// a [drain](RunHandle::stop_within) holds while a thread waits here, even if no stage returns
    /// from its call.
    ///
    /// # Examples
    /// ```
    /// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
    /// # use pipeline::*;
    /// # use trommel_engine::graph::Graph;
    /// # use trommel_engine::runtime::RunOptions;
    /// # let mut graph = Graph::new();
    /// # let numbers = graph.add("numbers", Numbers(0, 100_000));
    /// # graph.add_after(numbers, "sum", Sum(0));
    /// use std::time::Duration;
    ///
    /// let mut running = graph.build()?.start(RunOptions::new())?;
    /// while !running.wait(Duration::from_millis(1)) {
    ///     println!("{} items", running.metrics().stage("sum").unwrap().items_in());
    /// }
    /// running.join()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(&mut self, limit: Duration) -> bool {
        let until = Instant::now().checked_add(limit);
        while self.workers_running > 0 {
            let deadline = self.handle.shared.keep_deadline();
            let ended = match until.into_iter().chain(deadline).min() {
                Some(until) => self.ended.recv_deadline(until),
                None => self.ended.recv().map_err(RecvTimeoutError::from),
            };
            match ended {
                Ok(worker) => self.note_end(worker),
                Err(_) if until.is_some_and(|until| until <= Instant::now()) => return false,
                Err(_) => {}
            }
        }
        true
    }

    /// As [`Running::wait`], and returns false as soon as `descriptor`, such as the pipe of a
    /// signal handler, is readable or closed by its writer.
    pub fn wait_beside(&mut self, descriptor: BorrowedFd<'_>, limit: Duration) -> bool {
        let until = Instant::now().checked_add(limit);
        loop {
            // Before the channel is read, so that the end of a worker is found in one of the two.
            let _ = rustix::io::read(&self.end_event, &mut [0; 8]);
            while let Ok(worker) = self.ended.try_recv() {
                self.note_end(worker);
            }
            if self.workers_running == 0 {
                return true;
            }
            let deadline = self.handle.shared.keep_deadline();
            let next = until.into_iter().chain(deadline).min();
            let left = next.map(|next| next.saturating_duration_since(Instant::now()));
            // A time that does not fit means no limit.
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut both = [self.end_event.as_fd(), descriptor]
                .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
            match poll(&mut both, timeout.as_ref()) {
                Ok(0) if until.is_some_and(|until| until <= Instant::now()) => return false,
                Ok(_) if !both[1].revents().is_empty() => return false,
                Ok(_) | Err(Errno::INTR) => {}
                // Short of memory: the next call tries again.
                Err(_) => return self.wait(limit.min(RETRY)),
            }
        }
    }

    fn note_end(&mut self, worker: usize) {
        if let Some(handle) = self.workers[worker].handle.take()
            && let Err(payload) = handle.join()
        {
            let (stage, operator) = self.workers[worker].labels[0].clone();
            let cause = RunErrorCause::panicked(&*payload);
            self.handle.shared.fail(RunError { stage, operator, cause });
        }
        self.workers_running -= 1;
        if self.workers_running == 0 {
            self.handle.shared.commit();
            self.handle.shared.end();
            // Ours is the last reference, so this joins the poller's thread.
            self.poller = None;
        }
    }

    /// Waits for the end of the pipeline; returns its numbers.
    ///
    /// # Errors
    /// The first cause of a failure, with its stage; or that the run was aborted before it had
    /// finished.
    pub fn join(mut self) -> Result<Metrics, RunError> {
        while !self.wait(Duration::from_millis(100)) {
            if self.handle.shared.phase() == Phase::Aborted && !self.wait(ABORT_GRACE) {
                let hanging = self.hanging_worker();
                return Err(self.handle.shared.take_first_cause().unwrap_or(hanging));
            }
        }
        match self.handle.shared.take_first_cause() {
            Some(error) => Err(error),
            None => Ok(self.metrics()),
        }
    }

    fn hanging_worker(&self) -> RunError {
        let worker = self.workers.iter().find(|w| w.handle.is_some());
        let worker = worker.expect("a worker has not ended");
        let (stage, operator) = worker.labels[worker.current.load(Ordering::Relaxed)].clone();
        RunError { stage, operator, cause: RunErrorCause::Unresponsive(ABORT_GRACE) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.workers_running > 0 {
            self.abort();
        }
    }
}

impl StageNumbers {
    fn read(&self) -> StageMetrics {
        StageMetrics {
            id: self.id.clone(),
            operator: self.operator,
            parts: self.parts.iter().map(|(name, counters)| counters.read(name)).collect(),
        }
    }
}
