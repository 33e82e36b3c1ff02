//! The owner of a run, who waits for the end of all threads.

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

use super::RunHandle;
use super::poller::Poller;
use super::queries::{QueryHandle, Watch};
use super::shared::Phase;
use super::waits::{ABORT_GRACE, JOIN_CHECK, POLL_RETRY};
use crate::error::{RunError, RunErrorCause};
use crate::memory::Reservation;
use crate::metrics::Metrics;
use crate::query::{QueryError, Request};

/// One thread of the run.
pub(super) struct Worker {
    pub(super) handle: Option<JoinHandle<()>>,
    pub(super) labels: Vec<(String, &'static str)>,
    pub(super) current: Arc<CachePadded<AtomicUsize>>,
}

/// A running pipeline. The drop of this value aborts the run without waiting for the end.
pub struct Running {
    pub(super) workers: Vec<Worker>,
    /// The channel of the indices of workers that have ended.
    pub(super) ended: Receiver<usize>,
    /// A descriptor that is readable when a worker has ended.
    pub(super) end_event: Arc<OwnedFd>,
    pub(super) workers_running: usize,
    /// The poller, which ends with the last worker.
    pub(super) poller: Option<Arc<Poller>>,
    /// Memory of the queues, until the run is over.
    pub(super) _memory: Option<Reservation>,
    pub(super) handle: RunHandle,
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
    /// Asks `stage` and waits for the answer, which is exact at a batch boundary after this call.
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
    /// If there is no such stage, the stage does not know the request, too many queries wait at the
    /// stage, or the stage has finished.
    pub fn query(&self, stage: &str, request: &Request) -> Result<RecordBatch, QueryError> {
        self.handle.queries.query(stage, request)
    }

    /// Registers a standing query, whose last answer a program can read at any time without
    /// waiting.
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

    /// A handle for other threads, which may outlive the run.
    #[must_use]
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    /// A handle for queries from other threads, which may outlive the run.
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

    /// Waits for the end of the pipeline, at most for `limit`; true if the pipeline has ended. The
    /// limit of a [drain](RunHandle::stop_within) holds while a thread waits here, even if no stage
    /// returns from its call.
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
            // The event is reset before the channel is read, so that one of the two shows the end
            // of a worker.
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
                // The system is short of memory: the next call tries again.
                Err(_) => return self.wait(limit.min(POLL_RETRY)),
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
            // This is the last reference, so the assignment joins the poller's thread.
            self.poller = None;
        }
    }

    /// Waits for the end of the pipeline; returns the numbers of the run.
    ///
    /// # Errors
    /// The first cause of a failure, with its stage, or the abort of the run before its end.
    pub fn join(mut self) -> Result<Metrics, RunError> {
        while !self.wait(JOIN_CHECK) {
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
