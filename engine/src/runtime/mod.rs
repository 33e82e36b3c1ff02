//! Runs a topology: starts its threads, answers for them, and brings them to an end.
//!
//! This is the only place where threads are made. Each thread runs one group of parts (see
//! [`crate::placement`]) and waits only for its doorbell. One more thread waits for the descriptors
//! of all sources and sinks.
//!
//! | module | contents |
//! |---|---|
//! | `start` | makes nodes of a topology, connects them, and starts the threads |
//! | `group` | the stage loop of one thread |
//! | `node` | a part in its group: its inputs, its outputs, and its next step |
//! | `queries` | queries on their way, and the callers' handles |
//! | `poller` | the thread that waits for descriptors |
//! | `shared` | the phase of a run and the cause of its failure |
//! | `running` | the owner of a run, who waits for its end |
//! | `waits` | the length of each wait, with its reason |

mod group;
mod node;
mod poller;
mod queries;
mod running;
mod shared;
mod start;
#[cfg(test)]
mod tests;
mod waits;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use self::queries::{Latest, QueryHandle, Watch};
pub use self::running::Running;
use self::shared::{Phase, Shared};
use crate::channel::QueueLimits;
use crate::metrics::{Metrics, PartCounters, StageMetrics, WatchedEdge};

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

/// The counters of the parts of a stage, with the names of the parts.
struct StageNumbers {
    id: String,
    operator: &'static str,
    parts: Vec<(String, Arc<PartCounters>)>,
    /// The parts that do work side by side, or one part.
    beside: Range<usize>,
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
    /// The sources have been stopped; the run still processes all items that were taken from the
    /// inputs.
    Draining,
    /// The run drains because no sink needs input any more; nobody has asked for the drain.
    Sated,
    /// Every thread ends after its present call.
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

    /// The numbers so far. After the end, also of a run that failed, the numbers are totals.
    /// Numbers of different stages are not from the same instant.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        Metrics {
            wall: self.shared.wall(),
            stages: self.stages.iter().map(StageNumbers::read).collect(),
            edges: self.edges.iter().map(WatchedEdge::read).collect(),
        }
    }

    /// Drains the run: the sources take no more from their inputs, the stages process all items
    /// that were taken, and the operators finish. Further calls change nothing.
    pub fn stop(&self) {
        self.shared.advance(Phase::Draining);
    }

    /// As [`RunHandle::stop`], and aborts when the pipeline has not drained within `limit`. The
    /// earliest of several limits counts.
    pub fn stop_within(&self, limit: Duration) {
        self.shared.set_deadline(limit);
        self.stop();
    }

    /// Lets every sink open its growing files again, by their names, also while no rows come: for
    /// programs that rename logs and then want the old files closed.
    pub fn reopen(&self) {
        self.shared.reopen();
    }

    /// Ends the run after the present call of every stage. Batches in flight are dropped, and
    /// [`Running::join`] returns an error.
    pub fn abort(&self) {
        self.shared.advance(Phase::Aborted);
    }
}

impl StageNumbers {
    fn read(&self) -> StageMetrics {
        let parts = self.parts.iter().map(|(name, counters)| counters.read(name)).collect();
        StageMetrics::new(self.id.clone(), self.operator, parts, self.beside.clone())
    }
}
