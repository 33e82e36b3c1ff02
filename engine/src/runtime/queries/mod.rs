//! The callers' side of queries: a question to a stage, and the reading of a standing answer.
//!
//! [`crate::query`] describes the way of a query and the time of its answer.

pub(super) mod allowance;
pub(super) mod control;
pub(super) mod tickets;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;

use self::control::{Address, Published, WatchSlot};
use crate::channel::oneshot::RecvError;
use crate::query::{QueryError, Request};

/// A handle that asks the stages of one run. A clone is cheap, and may go to another thread.
#[derive(Clone)]
pub struct QueryHandle {
    stages: Arc<[QueriedStage]>,
}

/// A stage as its callers see it.
pub(super) struct QueriedStage {
    pub(super) id: String,
    pub(super) address: Address,
    pub(super) queries: &'static [&'static str],
}

impl fmt::Debug for QueryHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.stages.iter().map(|stage| &stage.id)).finish()
    }
}

impl QueryHandle {
    pub(super) fn new(stages: Vec<QueriedStage>) -> Self {
        Self { stages: stages.into() }
    }

    /// Asks `stage` and waits for the answer: the state at a batch boundary after this call. The
    /// wait is as long as the present call of the stage's operator. A sink whose reader has stopped
    /// can make the wait long.
    ///
    /// # Errors
    /// If there is no such stage, the stage does not know the request, too many queries wait at the
    /// stage, or the stage has finished.
    pub fn query(&self, stage: &str, request: &Request) -> Result<RecordBatch, QueryError> {
        self.query_within(stage, request, Duration::MAX)
    }

    /// As [`QueryHandle::query`], but gives up after `limit`. A query that was given up before its
    /// answer is dropped without being computed.
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
    /// use std::time::Duration;
    /// use trommel_engine::query::Request;
    ///
    /// let running = graph.build()?.start(RunOptions::new())?;
    /// let queries = running.queries();
    /// let answer = queries.query_within("sum", &Request::new("sum"), Duration::from_secs(10))?;
    /// assert_eq!(answer.num_rows(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`QueryHandle::query`], and [`QueryError::TimedOut`].
    pub fn query_within(
        &self,
        stage: &str,
        request: &Request,
        limit: Duration,
    ) -> Result<RecordBatch, QueryError> {
        let address = self.address(stage)?;
        let waiting = address.enter();
        let answer = address.ask(request.clone());
        let stage = || stage.to_owned();
        // One of several callers waits for the answers of the other callers, too. If all of them
        // spun, the spinning would take the time of the stages.
        match answer.recv(limit, waiting.is_alone) {
            Ok(answer) => answer.and_then(|compute| compute()),
            Err(RecvError::Closed) => Err(QueryError::Finished { stage: stage() }),
            Err(RecvError::TimedOut) => Err(QueryError::TimedOut { stage: stage(), limit }),
        }
    }

    /// Registers a standing query at `stage`. A program can then read the last answer without
    /// waiting.
    ///
    /// # Errors
    /// As [`QueryHandle::query`]; for a request that the stage does not know, [`Watch::latest`]
    /// has the error.
    pub fn watch(&self, stage: &str, request: Request) -> Result<Watch, QueryError> {
        let address = self.address(stage)?.clone();
        let slot = Arc::new(WatchSlot::new(request));
        address.send_watch(Arc::clone(&slot))?;
        Ok(Watch { slot, address })
    }

    /// Names of the queries that `stage` knows; no names if there is no such stage.
    #[must_use]
    pub fn names(&self, stage: &str) -> &'static [&'static str] {
        self.find(stage).map_or(&[], |stage| stage.queries)
    }

    pub(super) fn address(&self, stage: &str) -> Result<&Address, QueryError> {
        self.find(stage).map(|stage| &stage.address).ok_or_else(|| QueryError::UnknownStage {
            stage: stage.to_owned(),
            available: self.stages.iter().map(|stage| stage.id.clone()).collect(),
        })
    }

    fn find(&self, id: &str) -> Option<&QueriedStage> {
        self.stages.iter().find(|stage| stage.id == id)
    }
}

/// A published answer and its age.
#[derive(Debug, Clone)]
pub struct Latest {
    published: Arc<Published>,
}

impl Latest {
    /// The answer.
    ///
    /// # Errors
    /// The operator's error, such as that for an unknown request.
    pub fn answer(&self) -> Result<&RecordBatch, &QueryError> {
        self.published.answer.as_ref()
    }

    /// Time since the answer was published.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.published.at.elapsed()
    }
}

/// A standing query. The stage renews the answer at the batch boundary after each reading, and once
/// more when the stage ends. The stage does not renew an unread answer.
pub struct Watch {
    slot: Arc<WatchSlot>,
    address: Address,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("request", &self.slot.request).finish_non_exhaustive()
    }
}

impl Watch {
    /// The last published answer, without waiting; `None` before the first answer.
    #[must_use]
    pub fn latest(&self) -> Option<Latest> {
        let published = self.slot.published.load_full();
        self.slot.request_refresh();
        self.address.ring();
        published.map(|published| Latest { published })
    }
}
