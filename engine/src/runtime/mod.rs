//! Runs a topology: starts its threads, answers for them while they run, and brings them to an end.
//!
//! This is the only place where threads are made. Each runs one group of parts (see
//! [`crate::placement`]) and never waits for anything but its doorbell. How a run ends is in
//! `shared`, what a thread does in `group`.

mod control;
mod group;
mod node;
mod shared;
mod start;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use crossbeam_channel::{Receiver, RecvTimeoutError};

#[cfg(test)]
use control::MAILBOX_QUERIES_MAX;
pub(crate) use control::{Address, AnswerTo, Published, Ticket, WatchSlot};
use shared::{Phase, Shared};

use crate::channel::QueueLimits;
use crate::error::{RunError, RunErrorCause};
use crate::graph::Topology;
use crate::metrics::{Metrics, PartCounters, StageMetrics, WatchedEdge};
use crate::query::{QueryError, QueryHandle, Request, Watch};

/// How long an aborted run waits for an operator that does not return, before its thread is left
/// behind.
const ABORT_GRACE: Duration = Duration::from_secs(5);

/// How to run a topology.
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

impl Topology {
    /// Starts the threads of this pipeline.
    ///
    /// # Errors
    /// If the operating system refuses a thread; those already started are ended.
    pub fn start(self, options: RunOptions) -> Result<Running, RunError> {
        start::start(self, options)
    }

    /// Runs this pipeline to its end.
    ///
    /// # Errors
    /// The first cause, if it does not get there.
    pub fn run(self, options: RunOptions) -> Result<Metrics, RunError> {
        self.start(options)?.join()
    }
}

/// What names the parts of a stage and holds their numbers.
struct StageNumbers {
    id: String,
    operator: &'static str,
    parts: Vec<(String, Arc<PartCounters>)>,
}

/// One thread of the run.
struct Worker {
    handle: Option<JoinHandle<()>>,
    labels: Vec<(String, &'static str)>,
    current: Arc<AtomicUsize>,
}

/// A pipeline at work. Dropping it aborts the run without waiting for it.
pub struct Running {
    workers: Vec<Worker>,
    /// Receives the index of each worker that has ended.
    ended: Receiver<usize>,
    workers_running: usize,
    shared: Arc<Shared>,
    queries: QueryHandle,
    stages: Vec<StageNumbers>,
    edges: Vec<WatchedEdge>,
    ended_at: Option<Instant>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("stages", &self.queries)
            .field("workers_running", &self.workers_running)
            .finish_non_exhaustive()
    }
}

impl Running {
    /// Asks `stage` and waits for its answer, which is exact at a batch boundary after this call.
    ///
    /// # Errors
    /// If there is no such stage, it does not know the request, too many queries wait at it, or it
    /// has finished.
    pub fn query(&self, stage: &str, request: &Request) -> Result<RecordBatch, QueryError> {
        self.queries.query(stage, request)
    }

    /// Registers a standing query, whose last answer can be read at any time without waiting.
    ///
    /// # Errors
    /// As [`Running::query`]; that the stage does not know the request is said by
    /// [`Watch::latest`].
    pub fn watch(&self, stage: &str, request: Request) -> Result<Watch, QueryError> {
        self.queries.watch(stage, request)
    }

    /// A handle for queries from other threads, which may outlive this one.
    #[must_use]
    pub fn queries(&self) -> QueryHandle {
        self.queries.clone()
    }

    /// What has been counted so far. The numbers of different stages are not from the same instant.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let until = self.ended_at.unwrap_or_else(Instant::now);
        Metrics {
            wall: until.duration_since(self.shared.started()),
            stages: self.stages.iter().map(StageNumbers::read).collect(),
            edges: self.edges.iter().map(WatchedEdge::read).collect(),
        }
    }

    /// Ends the sources; what is in flight is processed and operators finish. A second call aborts.
    pub fn stop(&self) {
        let next = match self.shared.phase() {
            Phase::Running => Phase::Draining,
            Phase::Draining | Phase::Aborted => Phase::Aborted,
        };
        self.shared.advance(next);
    }

    /// As [`Running::stop`], and aborts when the pipeline has not drained within `limit`.
    pub fn stop_within(&self, limit: Duration) {
        self.shared.set_deadline(limit);
        self.stop();
    }

    /// Ends the run at the next batch boundary of every stage; what is in flight is dropped, and
    /// [`Running::join`] says so.
    pub fn abort(&self) {
        self.shared.advance(Phase::Aborted);
    }

    /// Waits until the pipeline has ended, at most for `limit`; true when it has.
    pub fn wait(&mut self, limit: Duration) -> bool {
        let until = Instant::now().checked_add(limit);
        while self.workers_running > 0 {
            let ended = match until {
                Some(until) => self.ended.recv_deadline(until),
                None => self.ended.recv().map_err(RecvTimeoutError::from),
            };
            match ended {
                Ok(worker) => self.note_end(worker),
                Err(_) => return false,
            }
        }
        true
    }

    fn note_end(&mut self, worker: usize) {
        if let Some(handle) = self.workers[worker].handle.take()
            && let Err(payload) = handle.join()
        {
            let (stage, operator) = self.workers[worker].labels[0].clone();
            let cause = RunErrorCause::panicked(&*payload);
            self.shared.fail(RunError { stage, operator, cause });
        }
        self.workers_running -= 1;
        if self.workers_running == 0 {
            self.ended_at = Some(Instant::now());
        }
    }

    /// Waits for the end of the pipeline and says what it counted.
    ///
    /// # Errors
    /// The first cause of a failure, with its stage; or that the run was aborted before it had
    /// finished.
    pub fn join(mut self) -> Result<Metrics, RunError> {
        while !self.wait(Duration::from_millis(100)) {
            if self.shared.phase() == Phase::Aborted && !self.wait(ABORT_GRACE) {
                let hanging = self.hanging_worker();
                return Err(self.shared.take_first_cause().unwrap_or(hanging));
            }
        }
        match self.shared.take_first_cause() {
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
