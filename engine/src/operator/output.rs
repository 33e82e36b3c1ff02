//! The output of one call of an operator.

use std::fmt;
use std::time::Instant;

use arrow_array::RecordBatch;

use crate::batch::{Batch, Chunk, Origin, Payload};
use crate::error::OperatorError;

/// Makes a result of an operator permanent.
pub type Commit = Box<dyn FnOnce() -> Result<(), OperatorError> + Send>;

/// The output of one call of an operator: the batches in their order, until the stage loop moves
/// the batches on.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// use trommel_engine::operator::Output;
///
/// let mut out = Output::new();
/// out.send(numbers([1, 2]));
/// out.send_to(1, numbers([3]));
/// out.send(numbers([]));
/// let sent: Vec<_> = out.drain_sent().map(|(port, sent)| (port, sent.items())).collect();
/// assert_eq!(sent, [(0, 2), (1, 1)], "empty batches are not sent");
/// ```
pub struct Output {
    origin: Origin,
    pub(crate) sent: Vec<(usize, Payload)>,
    pub(crate) replies: Vec<Chunk>,
    /// The copies of the next part that payloads are for, each with the number of the payload.
    pub(crate) to_copies: Vec<(usize, usize)>,
    pub(crate) late_failure: Option<OperatorError>,
    pub(crate) commits: Vec<Commit>,
    /// The pieces that a source has begun, each with the number of payloads before.
    pub(crate) begun: Vec<(usize, u64)>,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("sent", &self.sent)
            .field("replies", &self.replies)
            .field("late_failure", &self.late_failure)
            .field("commits", &self.commits.len())
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

impl Default for Output {
    fn default() -> Self {
        Self::new()
    }
}

impl Output {
    /// An empty output, for calling an operator without an engine.
    #[must_use]
    pub fn new() -> Self {
        Self {
            origin: Origin { sequence: 0, entered: Instant::now() },
            sent: Vec::new(),
            replies: Vec::new(),
            late_failure: None,
            commits: Vec::new(),
            begun: Vec::new(),
            to_copies: Vec::new(),
        }
    }

    /// Sends rows to output port 0. Empty batches are not sent.
    pub fn send(&mut self, records: RecordBatch) {
        self.send_to(0, records);
    }

    /// Sends rows to output `port`. Empty batches are not sent.
    pub fn send_to(&mut self, port: usize, records: RecordBatch) {
        if records.num_rows() > 0 {
            self.sent.push((port, Payload::Batch(Batch { records, origin: self.origin })));
        }
    }

    /// Sends a chunk to the next part of the same operator. A chunk without an
    /// [origin](Chunk::with_origin) gets the origin of the batch in hand.
    pub fn send_chunk(&mut self, chunk: Chunk) {
        self.send_chunk_to(0, chunk);
    }

    /// As [`Self::send_chunk`], to one of the [workers](super::Shape::Workers) of the operator.
    pub fn send_chunk_to(&mut self, worker: usize, chunk: Chunk) {
        self.sent.push((worker, Payload::Chunk(chunk.stamped(self.origin))));
    }

    /// Answers the part before this one, which waits for the answer after
    /// [`Flow::AwaitReply`](super::Flow::AwaitReply), or gives a chunk back to that part. With
    /// [workers](super::Shape::Workers), the last part answers the first one.
    pub fn send_reply(&mut self, reply: Chunk) {
        self.replies.push(reply);
    }

    /// Sends a chunk to one of the copies of the next part, numbered from 0, for a part that wants
    /// to reach each copy. The engine deals other chunks to the copies in turn.
    pub fn send_chunk_to_copy(&mut self, copy: usize, chunk: Chunk) {
        self.to_copies.push((self.sent.len(), copy));
        self.send_chunk(chunk);
    }

    /// Reports a failure that the rows do not depend on, such as a state that cannot be saved.
    /// The run goes on to its end, so that no row is lost, and then fails with the first such
    /// error ([`RunErrorCause::Late`](crate::error::RunErrorCause::Late)).
    pub fn fail_late(&mut self, error: OperatorError) {
        self.late_failure.get_or_insert(error);
    }

    /// Takes the error of [`Self::fail_late`], for calling an operator without an engine.
    pub fn take_late_failure(&mut self) -> Option<OperatorError> {
        self.late_failure.take()
    }

    /// Calls `commit` when every stage of the run has ended well, to make a result permanent, such
    /// as to give a file its name. If the run fails or is aborted, `commit` is dropped without a
    /// call. An error of `commit` fails the run; other results are committed all the same.
    pub fn commit_at_end(
        &mut self,
        commit: impl FnOnce() -> Result<(), OperatorError> + Send + 'static,
    ) {
        self.commits.push(Box::new(commit));
    }

    /// Takes the commits of [`Self::commit_at_end`], for calling an operator without an engine.
    pub fn drain_commits(&mut self) -> impl Iterator<Item = Commit> + '_ {
        self.commits.drain(..)
    }

    /// Takes the payloads sent so far, each with its port.
    pub fn drain_sent(&mut self) -> impl Iterator<Item = (usize, Payload)> + '_ {
        self.sent.drain(..)
    }

    /// Begins a piece of the stream, for a [copy of a source](super::Division::Pieces): the
    /// payloads from now on belong to the piece `piece`, up to the next call or the end of the
    /// source. Pieces are numbered from 0 without gaps over all copies, and each copy begins its
    /// pieces in ascending order.
    pub fn begin_piece(&mut self, piece: u64) {
        self.origin.sequence = piece;
        self.begun.push((self.sent.len(), piece));
    }

    /// Takes the pieces begun so far, each with the number of payloads that were sent before, for
    /// calling a source without an engine.
    pub fn drain_begun(&mut self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.begun.drain(..)
    }

    /// Takes the replies written so far.
    pub fn drain_replies(&mut self) -> impl Iterator<Item = Chunk> + '_ {
        self.replies.drain(..)
    }

    /// Sets the origin of payloads that this call sends from now on, for an operator that holds
    /// payloads back. At the beginning of a call, the origin is that of the last payload.
    pub fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }
}
