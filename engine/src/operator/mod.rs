//! The contract of operators: the traits that sources and operators implement, and the form in
//! which an operator enters a graph.
//!
//! Three steps lead from a configuration to a running stage. Each step has a type of its own:
//!
//! ```text
//! OperatorSpec ── bind(input schemas) ──► Fragment { parts, output schemas } ── graph, placement ──► stage loop
//! ```
//!
//! A [`Source`] or an [`Operator`] is plain state with methods. An operator knows no thread, no
//! channel and no neighbour: the stage loop makes one call at a time, from one thread, and moves
//! the contents of the [`Output`] on. So an operator can be tested and used without an engine. An
//! operator without an output port is a sink; nothing else distinguishes a sink.
//!
//! An operator may consist of several *parts* (filter and counter; prepare, workers, collect). In a
//! [chain](Shape::Chain), each part sends chunks to the next part, replies travel back along the
//! same chain, and queries follow the chunks. With [workers](Shape::Workers), the first part sends
//! each chunk to one of several parts side by side. The last part gets the chunks of all workers
//! and replies to the first part. Rows leave the last part; rows of [early
//! outputs](Fragment::early_outputs) leave the first part. Parts may run on different cores or
//! share one thread, and cannot tell the difference.
//!
//! One part of an operator may run in several copies, if the operator says how its work is
//! [divided](Division).

pub(crate) mod claim;
mod demand;
pub(crate) mod division;
mod fragment;
mod output;
mod spec;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::claim::{Access, Claim, ClaimConflict, Outputs};
pub use self::demand::Demand;
pub use self::division::Division;
pub(crate) use self::fragment::Copies;
pub use self::fragment::{Body, Fragment, Load, Part, Shape};
pub use self::output::{Commit, Output};
pub use self::spec::{BindContext, OperatorSpec};
use crate::batch::{Chunk, Payload};
pub use crate::error::OperatorError;
use crate::query::{QueryError, QueryPayload, Request, Response};

/// Maximum replies in flight to one part, and so the maximum number of chunks that an operator may
/// recycle.
pub const REPLIES_IN_FLIGHT_MAX: usize = 256;

/// The next call that an operator asks the stage loop for.
///
/// # Examples
/// ```
/// use trommel_engine::batch::Payload;
/// use trommel_engine::operator::{Flow, Operator, OperatorError, Output};
///
/// /// Sends one row a call, so that a large batch is not copied at once.
/// struct Rows(Option<arrow_array::RecordBatch>);
///
/// impl Operator for Rows {
///     fn process(
///         &mut self,
///         _port: usize,
///         input: Payload,
///         out: &mut Output,
///     ) -> Result<Flow, OperatorError> {
///         self.0 = Some(input.into_records());
///         self.resume(out)
///     }
///
///     fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
///         let Some(records) = self.0.take() else { return Ok(Flow::NeedInput) };
///         out.send(records.slice(0, 1));
///         if records.num_rows() == 1 {
///             return Ok(Flow::NeedInput);
///         }
///         self.0 = Some(records.slice(1, records.num_rows() - 1));
///         Ok(Flow::HaveOutput)
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The input is used up, and the operator waits for more. This is a batch boundary: queries are
    /// answered here.
    NeedInput,
    /// There is more output than one call should write. The next call is [`Operator::resume`], when
    /// the output of this call has left.
    HaveOutput,
    /// The operator has asked the next part a question. The next call is [`Operator::reply`] with
    /// the answer; input and its end wait for that.
    AwaitReply,
    /// The pipe, terminal or socket that a sink writes to has no room. The next call is
    /// [`Operator::resume`], when [`Operator::descriptor`] is writable or has lost its reader, at
    /// the latest at the time that [`Operator::wake_at`] names. The call may come early. The thread
    /// serves its other parts meanwhile, so a reader that stops holds up nothing but its own rows.
    AwaitWritable,
    /// Work is in flight elsewhere, such as on a device. [`Operator::wake`] is called at the time
    /// that [`Operator::wake_at`] names. More input may come before that time, but the operator is
    /// at no batch boundary: while a query waits for one, the operator gets no input. An operator
    /// that returned this from [`Operator::finish`] has ended when a later call returns
    /// [`Flow::NeedInput`].
    InFlight,
    /// As [`Flow::InFlight`], with work that takes long and that the operator's own thread does.
    /// [`Operator::wake`] is also called when no other part of the thread has work. A part that has
    /// waited for half a millisecond, or for three times the duration of the last such call,
    /// whichever is longer, is called although other parts have work. So parts whose output other
    /// threads wait for go first.
    Background,
}

/// The next call that a source asks the stage loop for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFlow {
    /// The next call comes as soon as the output has been passed on.
    HaveOutput,
    /// There is no data at present. The next call comes after this time; meanwhile the thread
    /// serves queries and `stop`.
    Idle(Duration),
    /// There is no data at present. The next call comes when [`Source::descriptor`] is readable or
    /// closed by its writer, at the latest after this time. The call may come early.
    AwaitReadable(Duration),
    /// The stream has ended.
    Finished,
}

/// The way in which a stream has ended. The greatest ending of several streams holds for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// All input of the sources came through.
    #[default]
    Whole,
    /// The run was drained before the end of the input: rows are missing that the input still has,
    /// or would have had.
    Stopped,
}

/// Progress of a source, for progress bars and reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read so far, before decompression.
    pub bytes: u64,
    /// Bytes in all, if known.
    pub bytes_total: Option<u64>,
}

/// Named numbers that an operator adds to the run report, such as `skipped` or `candidates`.
///
/// The end of a name may be a unit. Reports show `kernel_ns` as `kernel_seconds`, and
/// `overlap_ppm`, a share in millionths, as the fraction `overlap`.
pub type Counters = Vec<(&'static str, u64)>;

/// Inputs or rows of a source or an operator that reports name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedInputs {
    /// The first inputs or rows that were left out, each with the reason.
    pub left_out: Vec<Arc<str>>,
    /// Byte positions up to which followed inputs have been read.
    pub positions: Vec<(Arc<str>, u64)>,
}

/// Produces batches. One thread calls a source, and makes no call after [`SourceFlow::Finished`] or
/// an error.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// use trommel_engine::operator::{Output, Source, SourceFlow};
///
/// let mut source = Numbers(0, 150);
/// let mut out = Output::new();
/// assert_eq!(source.next(&mut out)?, SourceFlow::HaveOutput);
/// assert_eq!(source.next(&mut out)?, SourceFlow::Finished);
/// let rows: usize = out.drain_sent().map(|(_, sent)| sent.items()).sum();
/// assert_eq!(rows, 150);
/// # Ok::<(), trommel_engine::operator::OperatorError>(())
/// ```
pub trait Source: Send {
    /// Writes the next batch, or a few batches, to `out`; returns after some thousand items. A
    /// source never sleeps and never blocks on a pipe, a socket or a terminal: a source without
    /// data returns [`SourceFlow::AwaitReadable`] or [`SourceFlow::Idle`], and the runtime waits.
    ///
    /// # Errors
    /// Any error ends the run and is reported with the stage's id.
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError>;

    /// Sends the items that were already taken from the input, and takes no more: the run drains.
    /// The runtime calls this instead of [`Source::next`] until the answer is
    /// [`SourceFlow::Finished`]. The provided method is right for a source that keeps nothing back
    /// between two calls.
    ///
    /// # Errors
    /// As [`Source::next`].
    fn stop(&mut self, _out: &mut Output) -> Result<SourceFlow, OperatorError> {
        Ok(SourceFlow::Finished)
    }

    /// The descriptor that [`SourceFlow::AwaitReadable`] refers to. The runtime asks right after
    /// that flow was returned. The descriptor stays open until the next call of the source.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The progress of the source. The runtime asks after each call of [`Source::next`].
    fn progress(&self) -> Progress {
        Progress::default()
    }

    /// Numbers for metrics and the run report. The runtime asks a few times a second while the
    /// source works, at the end of the source, and after a failure.
    fn counters(&self) -> Counters {
        Counters::new()
    }

    /// Inputs that metrics and the run report name, some hundreds at most. The runtime asks
    /// together with [`Source::counters`].
    fn named_inputs(&self) -> NamedInputs {
        NamedInputs::default()
    }
}

/// Transforms batches; an operator without an output port consumes batches. One thread calls an
/// operator, and makes one call at a time.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// use std::time::Instant;
/// use trommel_engine::batch::{Batch, Origin, Payload};
/// use trommel_engine::operator::{Flow, Operator, Output};
/// use trommel_engine::query::Request;
///
/// // Called by hand, as the stage loop does it.
/// let mut sum = Sum(0);
/// let mut out = Output::new();
/// let origin = Origin { sequence: 0, entered: Instant::now() };
/// let batch = Batch { records: numbers(0..10), origin };
/// assert_eq!(sum.process(0, Payload::Batch(batch), &mut out)?, Flow::NeedInput);
/// let answer = sum.query(&Request::new("sum"), None)?.compute()?;
/// assert_eq!(answer, numbers([45]));
/// # Ok::<(), trommel_engine::operator::OperatorError>(())
/// ```
pub trait Operator: Send {
    /// Takes one batch (or chunk) that arrived at input `port`.
    ///
    /// # Errors
    /// Any error ends the run and is reported with the stage's id.
    fn process(
        &mut self,
        port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError>;

    /// Tells a part how many copies there are of the part of its operator that may be
    /// [copied](Fragment::divided). The call comes once, before the run.
    fn is_beside(&mut self, _copies: usize) {}

    /// Tells the operator that other copies of it get batches of the same stream, so that the
    /// operator does not know the positions of its rows. The call comes once, before the run.
    fn is_copied(&mut self) {}

    /// Goes on after [`Flow::HaveOutput`] or [`Flow::AwaitWritable`].
    ///
    /// # Errors
    /// As [`Operator::process`].
    ///
    /// # Panics
    /// The provided method panics: an operator that returns one of these flows implements the
    /// method.
    fn resume(&mut self, _out: &mut Output) -> Result<Flow, OperatorError> {
        unreachable!("this operator never returns Flow::HaveOutput or Flow::AwaitWritable")
    }

    /// The descriptor that [`Flow::AwaitWritable`] refers to; `None` if only the time of
    /// [`Operator::wake_at`] ends the wait. The runtime asks right after the flow was returned. The
    /// descriptor stays open until the next call of the operator.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Takes the next part's answer after [`Flow::AwaitReply`], or at any time if the operator
    /// [takes replies](Operator::takes_replies).
    ///
    /// # Errors
    /// As [`Operator::process`].
    ///
    /// # Panics
    /// The provided method panics: an operator that returns [`Flow::AwaitReply`] or takes replies
    /// implements the method.
    fn reply(&mut self, _reply: Chunk, _out: &mut Output) -> Result<Flow, OperatorError> {
        unreachable!("this operator never returns Flow::AwaitReply and takes no replies")
    }

    /// Whether the operator takes replies at any time, not only after [`Flow::AwaitReply`]: for a
    /// part that recycles chunks or passes chunks back through the chain. A reply waits while the
    /// part takes none, and is dropped when the part has ended.
    fn takes_replies(&self) -> bool {
        false
    }

    /// Tells the operator that all inputs of `port` have ended; inputs of other ports may go on.
    /// The runtime calls this once for each port, before [`Operator::finish`]. An operator that has
    /// work to do then names a time for that work ([`Operator::wake_at`]). An operator that keeps a
    /// state of its input keeps the `ending` with the state.
    fn port_ended(&mut self, _port: usize, _ending: Ending) {}

    /// Writes the rest of the output: all inputs have ended. The runtime calls this once. Only
    /// `resume`, `reply`, `query` and `snapshot` follow, and `wake` after [`Flow::InFlight`] or
    /// [`Flow::Background`].
    ///
    /// # Errors
    /// As [`Operator::process`].
    fn finish(&mut self, _out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(Flow::NeedInput)
    }

    /// Time of the next call of [`Operator::wake`] without input, such as the end of a window. The
    /// runtime asks after every call that may change the time.
    fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// Works without input: at the time that [`Operator::wake_at`] named, when no input waits or
    /// work is [in flight](Flow::InFlight), or in the [background](Flow::Background). `now` is the
    /// present time. The output counts as entered now.
    ///
    /// # Errors
    /// As [`Operator::process`].
    fn wake(&mut self, _now: Instant, _out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(Flow::NeedInput)
    }

    /// The state as bytes, in a versioned format of the operator; `None` if the operator has no
    /// state, or if the state is in several parts. The call comes at a batch boundary.
    fn snapshot(&self) -> Option<Vec<u8>> {
        None
    }

    /// Replaces the state by a snapshot of an operator with the same parameters. The call comes
    /// before any input. The bytes are untrusted: for any bytes, the answer is an error or a state
    /// with which the operator can go on.
    ///
    /// # Errors
    /// If the bytes are no valid state. The provided method answers that the operator keeps no
    /// state.
    fn restore(&mut self, _state: &[u8]) -> Result<(), OperatorError> {
        Err(Box::new(NoState))
    }

    /// Adds the snapshot of an operator with the same parameters over another stream to the state.
    /// The result is the state of both streams. For operators whose state is a summary.
    ///
    /// # Errors
    /// As [`Operator::restore`].
    fn merge(&mut self, _state: &[u8]) -> Result<(), OperatorError> {
        Err(Box::new(NoState))
    }

    /// Answers `request` from the present state, or adds to `payload` and forwards the query to the
    /// next part. The call comes at a batch boundary; `payload` comes from the part before this
    /// one. A query must not change the results of the operator.
    ///
    /// # Errors
    /// The provided method answers that the operator has no such query.
    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        Err(QueryError::unsupported(request, &[]))
    }

    /// Names of the queries that [`Operator::query`] of the first part knows; the first part gets
    /// all queries of an operator. The runtime asks once, before the run.
    fn queries(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether the operator can answer queries although the last call returned another flow than
    /// [`Flow::NeedInput`]. This is so if the input is used up, or the state means something
    /// between two rows of the input, and the rest of the output only waits to leave. So a query
    /// does not wait behind a full channel. The runtime asks while a query waits.
    fn can_answer(&self) -> bool {
        false
    }

    /// Whether a sink still needs input; false for a sink that drops all rows, such as a sink whose
    /// reader has gone. When the last sink that needed input has ended or needs no more, the run
    /// drains. The runtime asks operators without an output port, at the start and after every
    /// call; the rows of other operators are always needed.
    fn needs_input(&self) -> bool {
        true
    }

    /// Opens files that grow again, by their names, which other programs may have given to new
    /// files, as a rotation of logs does. The call comes when the program asks for it
    /// ([`RunHandle::reopen`](crate::runtime::RunHandle::reopen)), between two other calls, until
    /// the operator has ended.
    ///
    /// # Errors
    /// As [`Operator::process`].
    fn reopen(&mut self) -> Result<(), OperatorError> {
        Ok(())
    }

    /// The device that may do work of the operator besides its own thread, in words for the plan.
    /// The runtime asks when the plan is shown.
    fn device(&self) -> Option<String> {
        None
    }

    /// Numbers for metrics and the run report. The runtime asks a few times a second while the
    /// operator works, at the end of the operator, and after a failure.
    fn counters(&self) -> Counters {
        Counters::new()
    }

    /// Rows, or inputs of a part after a source, that the run report names. The runtime asks
    /// together with [`Operator::counters`].
    fn named_inputs(&self) -> NamedInputs {
        NamedInputs::default()
    }
}

/// The operator keeps no state that could be restored or merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operator keeps no state that could be restored or merged")]
pub struct NoState;
