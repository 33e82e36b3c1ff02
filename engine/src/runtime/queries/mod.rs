//! The callers' side of queries: a question to a stage, and the reading of a standing answer.
//!
//! [`crate::query`] describes the way of a query and the time of its answer.

pub(super) mod allowance;
pub(super) mod control;
pub(super) mod tickets;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;

use self::control::{Address, Answered, CopyAnswer, Published, PublishedAnswer, WatchSlot};
use crate::channel::oneshot::RecvError;
use crate::query::{QueryError, Request, Share};
use crate::sync::lock;

/// A handle that asks the stages of one run. A clone is cheap, and may go to another thread.
#[derive(Clone)]
pub struct QueryHandle {
    stages: Arc<[QueriedStage]>,
}

/// A stage as its callers see it.
pub(super) struct QueriedStage {
    pub(super) id: String,
    /// The first part, or all its copies.
    pub(super) copies: Vec<Address>,
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
        let copies = self.copies(stage)?;
        let waiting = copies[0].enter();
        let until = Instant::now().checked_add(limit);
        // All copies are asked before the first answer is awaited.
        let answers: Vec<_> = copies.iter().map(|copy| copy.ask(request.clone())).collect();
        let stage = || stage.to_owned();
        let mut shares = Vec::new();
        for answer in answers {
            let left = until.map_or(limit, |until| until.saturating_duration_since(Instant::now()));
            // One of several callers waits for the answers of the other callers, too. If all of
            // them spun, the spinning would take the time of the stages.
            match answer.recv(left, waiting.is_alone) {
                Ok(Ok(CopyAnswer::Share(share))) => shares.push(share),
                Ok(Ok(CopyAnswer::Whole(compute))) => return compute(),
                Ok(Err(error)) => return Err(error),
                Err(RecvError::Closed) => return Err(QueryError::Finished { stage: stage() }),
                Err(RecvError::TimedOut) => {
                    return Err(QueryError::TimedOut { stage: stage(), limit });
                }
            }
        }
        Share::combine(&shares)
    }

    /// Registers a standing query at `stage`. A program can then read the last answer without
    /// waiting.
    ///
    /// # Errors
    /// As [`QueryHandle::query`]; for a request that the stage does not know, [`Watch::latest`]
    /// has the error.
    pub fn watch(&self, stage: &str, request: Request) -> Result<Watch, QueryError> {
        let mut copies = Vec::new();
        for address in self.copies(stage)? {
            let slot = Arc::new(WatchSlot::new(request.clone()));
            address.send_watch(Arc::clone(&slot))?;
            copies.push((slot, address.clone()));
        }
        Ok(Watch { copies, combined: Mutex::default() })
    }

    /// Names of the queries that `stage` knows; no names if there is no such stage.
    #[must_use]
    pub fn names(&self, stage: &str) -> &'static [&'static str] {
        self.find(stage).map_or(&[], |stage| stage.queries)
    }

    /// The addresses of the copies of the stage that are asked; at least one.
    pub(super) fn copies(&self, stage: &str) -> Result<&[Address], QueryError> {
        self.find(stage).map(|stage| &stage.copies[..]).ok_or_else(|| QueryError::UnknownStage {
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
    answer: Arc<Answered>,
    at: Instant,
}

impl Latest {
    /// The answer.
    ///
    /// # Errors
    /// The operator's error, such as that for an unknown request.
    pub fn answer(&self) -> Result<&RecordBatch, &QueryError> {
        self.answer.as_ref().as_ref()
    }

    /// Time since the answer was published; if the copies of a divided stage published their shares
    /// at different times, since the first of them.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.at.elapsed()
    }
}

/// A standing query. The stage renews the answer at the batch boundary after each reading, and once
/// more when the stage ends. The stage does not renew an unread answer.
pub struct Watch {
    /// The slot of each copy of the stage that is asked.
    copies: Vec<(Arc<WatchSlot>, Address)>,
    /// The last answer of several copies, with the shares that it was made of.
    combined: Mutex<Option<(Vec<Arc<Published>>, Latest)>>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = self.copies.first().map(|(slot, _)| &slot.request);
        f.debug_struct("Watch").field("request", &request).finish_non_exhaustive()
    }
}

impl Watch {
    /// The last published answer, without waiting; `None` before the first answer. The calling
    /// thread combines the shares of a divided stage.
    #[must_use]
    pub fn latest(&self) -> Option<Latest> {
        let load = |(slot, _): &(Arc<WatchSlot>, _)| slot.published.load_full();
        let published: Option<Vec<Arc<Published>>> = self.copies.iter().map(load).collect();
        for (slot, address) in &self.copies {
            slot.request_refresh();
            address.ring();
        }
        published.map(|published| self.combine(published))
    }

    fn combine(&self, published: Vec<Arc<Published>>) -> Latest {
        let mut combined = lock(&self.combined);
        if let Some((of, latest)) = &*combined
            && of.iter().zip(&published).all(|(old, new)| Arc::ptr_eq(old, new))
        {
            return latest.clone();
        }
        let at = published.iter().map(|published| published.at).min().expect("a stage has a copy");
        let mut shares = Vec::new();
        for copy in &published {
            match &copy.answer {
                PublishedAnswer::Share(share) => shares.push(share.clone()),
                PublishedAnswer::Whole(answer) => return Latest { answer: Arc::clone(answer), at },
            }
        }
        let latest = Latest { answer: Arc::new(Share::combine(&shares)), at };
        *combined = Some((published, latest.clone()));
        latest
    }
}
