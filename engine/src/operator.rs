//! The contract of operators: the traits that sources and operators implement, and the form in
//! which they enter a graph.
//!
//! Three steps lead from a configuration to a running stage, each with a type of its own:
//!
//! ```text
//! OperatorSpec ── bind(input schemas) ──► Fragment { parts, output schemas } ── graph, placement ──► stage loop
//! ```
//!
//! A [`Source`] or an [`Operator`] is plain state with methods. It knows no thread, no channel
//! and no neighbour: the stage loop calls it, one call at a time, from one thread, and moves the
//! contents of its [`Output`] on. So it can be tested and used without an engine. An operator
//! without an output port is a sink; nothing else distinguishes it.
//!
//! An operator may consist of several *parts* (filter and counter; prepare, workers, collect). In
//! a [chain](Shape::Chain), each part sends chunks to the next one, replies travel back along the
//! same chain, and queries follow the chunks. With [workers](Shape::Workers), the first part sends
//! each chunk to one of several parts side by side, and the last part, which gets the chunks of
//! all, replies to the first. Rows leave the last part, and those of [early
//! outputs](Fragment::early_outputs) the first. Parts may run on different cores or be fused on
//! one; they cannot tell.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::batch::{Batch, Chunk, Origin, Payload};
pub use crate::claim::{Access, Claim, ClaimConflict, Outputs};
pub use crate::demand::Demand;
use crate::error::BindError;
pub use crate::error::OperatorError;
use crate::memory::MemoryBudget;
use crate::query::{QueryError, QueryPayload, Request, Response};

/// Maximum replies in flight to one part, hence of chunks that an operator may recycle.
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
    /// The input is used up; the operator waits for the next one. This is a batch boundary: queries
    /// are answered.
    NeedInput,
    /// There is more output than one call should write; call [`Operator::resume`] when it has been
    /// passed on.
    HaveOutput,
    /// The next part was asked a question; the next call is [`Operator::reply`] with its answer.
    AwaitReply,
    /// The pipe, terminal or socket that a sink writes to has no room. The next call is
    /// [`Operator::resume`], when [`Operator::descriptor`] is writable or has lost its reader, at
    /// the latest at the time that [`Operator::wake_at`] names. The call may come early. The thread
    /// serves its other parts meanwhile, so a reader that stops holds up nothing but its own rows.
    AwaitWritable,
    /// Work is in flight elsewhere, such as on a device; call [`Operator::wake`] at the time that
    /// [`Operator::wake_at`] names. More input may come before, but this is no batch boundary:
    /// while a query waits for one, the operator gets no input. An operator that returned this
    /// from [`Operator::finish`] has ended when a later call returns [`Flow::NeedInput`].
    InFlight,
    /// As [`Flow::InFlight`], with work that its own thread does: [`Operator::wake`] is also
    /// called when no other part of the thread has work, or has had for half a millisecond since
    /// this work came, and for three times as long as the last such call took. So parts that give
    /// others work come before a part that works for long.
    Background,
}

/// The next call that a source asks the stage loop for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFlow {
    /// Call again as soon as the output has been passed on.
    HaveOutput,
    /// No data at present: call again after this time. Meanwhile queries and `stop` are served.
    Idle(Duration),
    /// No data at present: call again when [`Source::descriptor`] is readable or closed by its
    /// writer, at the latest after this time. The call may come early.
    AwaitReadable(Duration),
    /// The stream has ended.
    Finished,
}

/// How a stream has ended. Of several streams, the greatest ending holds for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// All of the input of its sources came through.
    #[default]
    Whole,
    /// The run was drained before: rows are missing that the input still has, or would have had.
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

/// Makes a result of an operator permanent.
pub type Commit = Box<dyn FnOnce() -> Result<(), OperatorError> + Send>;

/// Named numbers that an operator adds to the run report, such as `skipped` or `candidates`.
///
/// The end of a name may be a unit: reports show `kernel_ns` as `kernel_seconds`, and
/// `overlap_ppm`, a share in millionths, as the fraction `overlap`.
pub type Counters = Vec<(&'static str, u64)>;

/// Inputs of a source or an operator that are named in reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedInputs {
    /// The first inputs or rows that were left out, each with the reason.
    pub left_out: Vec<Arc<str>>,
    /// Byte positions up to which followed inputs have been read.
    pub positions: Vec<(Arc<str>, u64)>,
}

/// Produces batches. Called by one thread; never called again after [`SourceFlow::Finished`] or an
/// error.
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
    /// Writes the next batch, or a few, to `out`; returns after some thousand items. Never sleeps
    /// and never blocks on a pipe, a socket or a terminal: a source without data returns
    /// [`SourceFlow::AwaitReadable`] or [`SourceFlow::Idle`], and the runtime waits.
    ///
    /// # Errors
    /// Any error ends the run and is reported with the stage's id.
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError>;

    /// The run drains: takes nothing more from the input and sends the items that were taken from
    /// it. Called instead of [`Source::next`] until it returns [`SourceFlow::Finished`]. The
    /// provided method is right for a source that keeps nothing back between two calls.
    ///
    /// # Errors
    /// As [`Source::next`].
    fn stop(&mut self, _out: &mut Output) -> Result<SourceFlow, OperatorError> {
        Ok(SourceFlow::Finished)
    }

    /// The descriptor that [`SourceFlow::AwaitReadable`] refers to. Asked right after that was
    /// returned; the descriptor stays open until the next call of the source.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Its progress. Called once a batch.
    fn progress(&self) -> Progress {
        Progress::default()
    }

    /// Numbers for metrics and the run report. Called a few times a second while the source works,
    /// at its end, and after a failure.
    fn counters(&self) -> Counters {
        Counters::new()
    }

    /// Inputs for metrics and the run report, some hundreds at most. Called when
    /// [`Source::counters`] is.
    fn named_inputs(&self) -> NamedInputs {
        NamedInputs::default()
    }
}

/// Transforms batches, or, without an output port, consumes them. Called by one thread, one call at
/// a time.
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

    /// Goes on after [`Flow::HaveOutput`] or [`Flow::AwaitWritable`].
    ///
    /// # Errors
    /// As [`Operator::process`].
    ///
    /// # Panics
    /// The provided method panics: an operator that returns one of the two implements it.
    fn resume(&mut self, _out: &mut Output) -> Result<Flow, OperatorError> {
        unreachable!("this operator never returns Flow::HaveOutput or Flow::AwaitWritable")
    }

    /// The descriptor that [`Flow::AwaitWritable`] refers to; `None` if only the time of
    /// [`Operator::wake_at`] ends the wait. Asked right after the flow was returned; the descriptor
    /// stays open until the next call of the operator.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Takes the next part's answer after [`Flow::AwaitReply`], or at any time if it [takes
    /// replies](Operator::takes_replies).
    ///
    /// # Errors
    /// As [`Operator::process`].
    ///
    /// # Panics
    /// The provided method panics: an operator that returns [`Flow::AwaitReply`] or takes replies
    /// implements it.
    fn reply(&mut self, _reply: Chunk, _out: &mut Output) -> Result<Flow, OperatorError> {
        unreachable!("this operator never returns Flow::AwaitReply and takes no replies")
    }

    /// Whether replies are taken at any time, not only after [`Flow::AwaitReply`]: for a part
    /// that recycles chunks or passes them back through the chain. Replies that come when the
    /// part takes none wait until it does, and are dropped when it has ended.
    fn takes_replies(&self) -> bool {
        false
    }

    /// All inputs of `port` have ended; others may go on. Called once for each port, before
    /// [`Operator::finish`]. An operator that has work to do then is [woken](Operator::wake_at).
    /// One that keeps what it has seen, such as a state, keeps the `ending` with it.
    fn port_ended(&mut self, _port: usize, _ending: Ending) {}

    /// All inputs have ended: writes the rest of the output. Called once; only `resume`, `reply`,
    /// `query` and `snapshot` follow, and `wake` after [`Flow::InFlight`].
    ///
    /// # Errors
    /// As [`Operator::process`].
    fn finish(&mut self, _out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(Flow::NeedInput)
    }

    /// Time of the next call of [`Operator::wake`] without input, such as the end of a window.
    /// Asked after every call that may change it.
    fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// Called at the time that [`Operator::wake_at`] named, when no input waits or work is [in
    /// flight](Flow::InFlight), and for work in the [background](Flow::Background). `now` is the
    /// present time. The output counts as entered now.
    ///
    /// # Errors
    /// As [`Operator::process`].
    fn wake(&mut self, _now: Instant, _out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(Flow::NeedInput)
    }

    /// The state as bytes, in a versioned format of the operator; `None` if it has no state, or
    /// if the state is in several parts. Called at a batch boundary.
    fn snapshot(&self) -> Option<Vec<u8>> {
        None
    }

    /// Replaces its state by a snapshot of an operator with the same parameters. Called before
    /// any input has come. Bytes are untrusted: for any bytes, the answer is an error or a state
    /// that the operator can go on with.
    ///
    /// # Errors
    /// If the bytes are no valid state. The provided method answers that the operator keeps none.
    fn restore(&mut self, _state: &[u8]) -> Result<(), OperatorError> {
        Err(Box::new(NoState))
    }

    /// Adds the snapshot of an operator with the same parameters over another stream to its
    /// state, as if both streams had come here; for operators whose state is a summary.
    ///
    /// # Errors
    /// As [`Operator::restore`].
    fn merge(&mut self, _state: &[u8]) -> Result<(), OperatorError> {
        Err(Box::new(NoState))
    }

    /// Answers `request` from the present state, or adds to `payload` and forwards it to the next
    /// part. Called at a batch boundary; `payload` comes from the part before this one. Must not
    /// change the results of the operator.
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

    /// Names of the queries that [`Operator::query`] knows; of the first part of an operator, which
    /// gets all of them. Asked once, before the run.
    fn queries(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether queries can be answered although the last call returned another flow than
    /// [`Flow::NeedInput`]: the input is used up, or the state means something between two rows of
    /// it, and what is left of the call only waits to leave. So a query does not wait behind a full
    /// channel. Asked while a query waits.
    fn can_answer(&self) -> bool {
        false
    }

    /// Whether a sink still needs input; false for one that drops all rows, such as a sink whose
    /// reader has gone. When the last sink that needed input has ended or needs no more, the run
    /// drains. Asked of operators without an output port, at the start and after every call; the
    /// rows of other operators are always needed.
    fn needs_input(&self) -> bool {
        true
    }

    /// Opens the files that grow again by their names, which other programs may have given to new
    /// ones, as for a rotation of logs. Called when the program asks for it
    /// ([`RunHandle::reopen`](crate::runtime::RunHandle::reopen)), between two other calls, until
    /// the operator has ended.
    ///
    /// # Errors
    /// As [`Operator::process`].
    fn reopen(&mut self) -> Result<(), OperatorError> {
        Ok(())
    }

    /// The device that its work may go to besides its own thread, in words for the plan. Asked
    /// when the plan is shown.
    fn device(&self) -> Option<String> {
        None
    }

    /// Numbers for metrics and the run report. Called a few times a second while the operator
    /// works, at its end, and after a failure.
    fn counters(&self) -> Counters {
        Counters::new()
    }

    /// Rows, or inputs of a part after a source, that are named in the run report. Called like
    /// [`Operator::counters`].
    fn named_inputs(&self) -> NamedInputs {
        NamedInputs::default()
    }
}

/// The operator keeps no state that could be restored or merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operator keeps no state that could be restored or merged")]
pub struct NoState;

/// The output of an operator: collects the batches of one call, in order, until the stage loop
/// moves them on.
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
    pub(crate) late_failure: Option<OperatorError>,
    pub(crate) commits: Vec<Commit>,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("sent", &self.sent)
            .field("replies", &self.replies)
            .field("late_failure", &self.late_failure)
            .field("commits", &self.commits.len())
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

    /// Sends a chunk to the next part of the same operator. Unless it has an
    /// [origin](Chunk::with_origin), it comes from the batch in hand.
    pub fn send_chunk(&mut self, chunk: Chunk) {
        self.send_chunk_to(0, chunk);
    }

    /// As [`Self::send_chunk`], to one of the [workers](Shape::Workers) of the operator.
    pub fn send_chunk_to(&mut self, worker: usize, chunk: Chunk) {
        self.sent.push((worker, Payload::Chunk(chunk.stamped(self.origin))));
    }

    /// Answers the part before this one, which waits for it after [`Flow::AwaitReply`], or gives
    /// a chunk back to it. With [workers](Shape::Workers), the last part answers the first one.
    pub fn send_reply(&mut self, reply: Chunk) {
        self.replies.push(reply);
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

    /// Calls `commit` when every stage of the run has ended well, to make a result permanent,
    /// such as to give a file its name. If the run fails or is aborted, `commit` is dropped
    /// without being called. Its error fails the run; other results are committed all the same.
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

    /// Takes the replies written so far.
    pub fn drain_replies(&mut self) -> impl Iterator<Item = Chunk> + '_ {
        self.replies.drain(..)
    }

    /// Sets the origin of payloads that are sent from now on in this call, for an operator that
    /// holds payloads back. Before a call, it is the origin of the last payload.
    pub fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }
}

/// Amount of work of a part, for the placement of parts on cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Fused with its neighbour.
    Light,
    /// A core of its own if the heavy parts leave one; else as if it were light.
    Moderate,
    /// A core of its own while there are cores.
    Heavy,
    /// One of several parts that share work: a core of its own while there are cores, or else one
    /// with as few others as possible.
    Worker,
}

/// The code of a part.
pub enum Body {
    /// Produces.
    Source(Box<dyn Source>),
    /// Transforms or consumes.
    Operator(Box<dyn Operator>),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source(_) => "Source",
            Self::Operator(_) => "Operator",
        })
    }
}

/// One of the parts that an operator consists of.
#[derive(Debug)]
pub struct Part {
    /// Name within the operator, such as `filter`; empty for the only part.
    pub name: Cow<'static, str>,
    /// Its amount of work.
    pub load: Load,
    /// Its code.
    pub body: Body,
}

/// The way of chunks between the parts of an operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shape {
    /// Each part sends chunks to the next one and replies to the one before it. Queries follow
    /// the chunks.
    #[default]
    Chain,
    /// The parts between the first and the last one stand side by side. The first one sends a
    /// chunk [to one of them](Output::send_chunk_to), each of them sends chunks to the last one,
    /// which replies to the first. Chunks of different workers come in any order. Queries are
    /// answered by the first part. A [source](Fragment::fed_by) may come before the first part: the
    /// source sends chunks to the first part and gets no replies.
    Workers,
}

/// An operator that is bound to its inputs, ready to be placed and run.
#[derive(Debug)]
pub struct Fragment {
    /// The parts; external inputs enter the first. Never empty.
    pub parts: Vec<Part>,
    /// The way of chunks between them.
    pub shape: Shape,
    /// Schema of each output port; none for a sink. Rows leave the last part.
    pub outputs: Vec<SchemaRef>,
    /// Number of output ports, the last ones of `outputs`, whose rows leave the first part.
    pub early_outputs: usize,
    /// Things outside of the pipeline that it reads and writes.
    pub claims: Vec<Claim>,
    /// Whether a later run of the same source reads this run's input once more, from its beginning.
    pub rereads: bool,
}

impl Fragment {
    /// A chain of parts that claims nothing.
    #[must_use]
    pub fn new(parts: Vec<Part>, outputs: Vec<SchemaRef>) -> Self {
        let (early_outputs, claims, rereads) = (0, Vec::new(), false);
        Self { parts, shape: Shape::Chain, outputs, early_outputs, claims, rereads }
    }

    /// Parts of which all but the first and the last one are [workers](Shape::Workers), and that
    /// claim nothing.
    ///
    /// # Panics
    /// If there are fewer than three.
    #[must_use]
    pub fn with_workers(parts: Vec<Part>, outputs: Vec<SchemaRef>) -> Self {
        assert!(parts.len() > 2, "a worker stands between two parts");
        Self { shape: Shape::Workers, ..Self::new(parts, outputs) }
    }

    /// Puts a source before the parts of an operator with workers: its chunks enter the first one.
    ///
    /// # Panics
    /// If the parts are no workers.
    #[must_use]
    pub fn fed_by(mut self, name: &'static str, load: Load, source: impl Source + 'static) -> Self {
        assert_eq!(self.shape, Shape::Workers, "a source feeds workers");
        let body = Body::Source(Box::new(source));
        self.parts.insert(0, Part { name: Cow::Borrowed(name), load, body });
        self
    }

    /// A source with one output port.
    pub fn source(load: Load, source: impl Source + 'static, output: SchemaRef) -> Self {
        let body = Body::Source(Box::new(source));
        Self::new(vec![Part { name: Cow::Borrowed(""), load, body }], vec![output])
    }

    /// An operator of one part with the given output ports.
    pub fn operator(
        load: Load,
        operator: impl Operator + 'static,
        outputs: Vec<SchemaRef>,
    ) -> Self {
        let body = Body::Operator(Box::new(operator));
        Self::new(vec![Part { name: Cow::Borrowed(""), load, body }], outputs)
    }

    /// Adds output ports whose rows leave the first part, such as rows that it cannot use. The part
    /// [sends](Output::send_to) them by their numbers among all ports.
    #[must_use]
    pub fn with_early_outputs(mut self, outputs: impl IntoIterator<Item = SchemaRef>) -> Self {
        let before = self.outputs.len();
        self.outputs.extend(outputs);
        self.early_outputs += self.outputs.len() - before;
        self
    }

    /// Claims things outside of the pipeline for this stage.
    #[must_use]
    pub fn claiming(mut self, claims: impl IntoIterator<Item = Claim>) -> Self {
        self.claims.extend(claims);
        self
    }

    /// Says that a later run reads this run's input once more, from its beginning.
    #[must_use]
    pub fn rereading(mut self) -> Self {
        self.rereads = true;
        self
    }
}

/// The surroundings of a stage when it is bound.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BindContext {
    /// Number of cores that the stage was given by name.
    pub cores: usize,
    /// Number of threads that the parts of the stage can have: one for each core that it was given
    /// by name, or else for each core of the process, if parts do not share one thread.
    pub threads: usize,
    /// The memory that the stages of the pipeline share. State that grows with the stream
    /// reserves here.
    pub memory: MemoryBudget,
    /// The things that the run writes. All claims are in it when the run starts.
    pub outputs: Outputs,
    /// Whether a source of its input [reads it again](Fragment::rereads) in a later run: a state
    /// that a later run goes on with would have everything twice.
    pub rereads: bool,
    /// The part of its first output that later stages look at.
    pub demand: Demand,
}

impl BindContext {
    /// A stage that was given `cores` cores by name, with a thread for each of them or one, and
    /// half of the memory of the process.
    #[must_use]
    pub fn new(cores: usize) -> Self {
        let (memory, outputs) = (MemoryBudget::of_process(), Outputs::default());
        let (rereads, demand) = (false, Demand::all());
        Self { cores, threads: cores.max(1), memory, outputs, rereads, demand }
    }

    /// Sets the number of threads that the parts of the stage can have.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Gives the stage this budget.
    #[must_use]
    pub fn memory(mut self, budget: MemoryBudget) -> Self {
        self.memory = budget;
        self
    }

    /// Says whether a source of its input reads it again in a later run.
    #[must_use]
    pub fn rereads(mut self, rereads: bool) -> Self {
        self.rereads = rereads;
        self
    }

    /// Says what later stages look at.
    #[must_use]
    pub fn demand(mut self, demand: Demand) -> Self {
        self.demand = demand;
        self
    }

    /// Gives the stage these outputs of the run.
    #[must_use]
    pub fn outputs(mut self, outputs: Outputs) -> Self {
        self.outputs = outputs;
        self
    }
}

/// A configured operator that does not know its inputs yet. Graphs are built from these.
pub trait OperatorSpec: Send {
    /// The operator's name in configurations, such as `frequent_items`.
    fn operator(&self) -> &'static str;

    /// Number of input ports: `0..=0` for a source, `1..=usize::MAX` for any number. An operator
    /// with exactly one port accepts several inputs of the same schema and sees their batches as
    /// they come, and one port is what an operator has unless it says otherwise.
    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
    }

    /// Names of its output ports, if it has several: a configuration reads one as `stage.port`, and
    /// a first one without a name as `stage`.
    fn output_ports(&self) -> &'static [&'static str] {
        &[]
    }

    /// Sends the rows that it cannot use to its output `rejected`, unless it was told to do
    /// something else with them. Whether it has this output now. Called before anything else, for a
    /// pipeline that collects the rejected rows of all stages.
    fn reject(&mut self) -> bool {
        false
    }

    /// The part of the rows at input `port` that it looks at, where later stages look at this
    /// part of its first output; the provided method answers all of them. Called before
    /// [`OperatorSpec::bind`].
    fn demand(&self, _port: usize, _output: &Demand) -> Demand {
        Demand::all()
    }

    /// Whether it reads standard input, which a process has once.
    fn reads_stdin(&self) -> bool {
        false
    }

    /// Checks the input schemas (one a port) and builds the operator.
    ///
    /// # Errors
    /// If a column is missing or has the wrong type, or a parameter does not fit the inputs or the
    /// machine.
    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError>;
}
