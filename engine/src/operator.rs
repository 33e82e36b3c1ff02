//! What an operator is: the traits that sources and operators implement, and the form in which they
//! enter a graph.
//!
//! Three steps lead from a configuration to a running stage, each with a type of its own:
//!
//! ```text
//! OperatorSpec ── bind(input schemas) ──► Fragment { parts, output schemas } ── graph, placement ──► stage loop
//! ```
//!
//! A [`Source`] or an [`Operator`] is plain state with methods. It knows no thread, no channel and
//! no neighbour: the stage loop calls it, one call at a time, from one thread, and moves what it
//! wrote to its [`Output`]. So it can be tested and used without an engine. An operator with no
//! output port is a sink; nothing else sets it apart.
//!
//! An operator may consist of several *parts* (filter and counter; prepare, device, collect). Parts
//! form a chain: each sends chunks to the next one, replies travel back along the same chain, and
//! queries follow the chunks. Parts may sit on different cores or be fused on one; they cannot
//! tell.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::batch::{Batch, Chunk, Origin, Payload};
use crate::error::BindError;
pub use crate::error::OperatorError;
use crate::memory::MemoryBudget;
use crate::query::{QueryError, QueryPayload, Request, Response};

/// How many chunks may be on their way back to a part at once: an operator that uses chunks again
/// has at most so many of them.
pub const REPLIES_IN_FLIGHT_MAX: usize = 16;

/// What the stage loop should do with an operator next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The input is used up; the operator waits for the next one. This is a batch boundary: queries
    /// are answered.
    NeedInput,
    /// There is more output than one call should write; call [`Operator::resume`] when it has been
    /// passed on.
    HaveOutput,
    /// The next part was asked something; call [`Operator::reply`] with its answer, and nothing
    /// else before.
    AwaitReply,
    /// Work that was taken is under way elsewhere, such as on a device; call [`Operator::wake`] at
    /// the time that [`Operator::wake_at`] names. More input may come before, but this is no batch
    /// boundary: while a query waits for one, no input does. An operator that returned this from
    /// [`Operator::finish`] has ended when a later call returns [`Flow::NeedInput`].
    InFlight,
}

/// What the stage loop should do with a source next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFlow {
    /// Call again as soon as the output has been passed on.
    HaveOutput,
    /// Nothing at present: call again after this time. Meanwhile queries and `stop` are served.
    Idle(Duration),
    /// Nothing at present: call again when [`Source::descriptor`] is readable or closed by its
    /// writer, at the latest after this time. The call may come early.
    AwaitReadable(Duration),
    /// The stream has ended.
    Finished,
}

/// How far a source has come, for progress bars and reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read so far, before decompression.
    pub bytes: u64,
    /// Bytes there are in all, when that is known.
    pub bytes_total: Option<u64>,
}

/// Makes a result of an operator permanent.
pub type Commit = Box<dyn FnOnce() -> Result<(), OperatorError> + Send>;

/// Named numbers that an operator adds to the run report, such as `skipped` or `candidates`.
///
/// The end of a name may be a unit: reports show `kernel_ns` as `kernel_seconds`, and
/// `overlap_ppm`, a share in millionths, as the fraction `overlap`.
pub type Counters = Vec<(&'static str, u64)>;

/// Inputs of a source that a report names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedInputs {
    /// Those that were left out, each with the reason; the first ones only.
    pub left_out: Vec<Arc<str>>,
    /// Bytes up to which the inputs that are followed have been read.
    pub positions: Vec<(Arc<str>, u64)>,
}

/// Produces batches. Called by one thread; never called again after [`SourceFlow::Finished`] or an
/// error.
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

    /// How far it has come. Called once a batch.
    fn progress(&self) -> Progress {
        Progress::default()
    }

    /// Numbers for metrics and the run report. Called a few times a second while the source works,
    /// at its end, and after a failure.
    fn counters(&self) -> Counters {
        Counters::new()
    }

    /// Inputs for metrics and the run report, some hundreds at most. Called as
    /// [`Source::counters`].
    fn named_inputs(&self) -> NamedInputs {
        NamedInputs::default()
    }
}

/// Transforms batches, or, without an output port, consumes them. Called by one thread, one call at
/// a time.
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

    /// Goes on after [`Flow::HaveOutput`].
    ///
    /// # Errors
    /// As [`Operator::process`].
    ///
    /// # Panics
    /// The provided method panics: an operator that returns [`Flow::HaveOutput`] implements it.
    fn resume(&mut self, _out: &mut Output) -> Result<Flow, OperatorError> {
        unreachable!("this operator never returns Flow::HaveOutput")
    }

    /// Takes the next part's answer after [`Flow::AwaitReply`], or whenever there is one if it
    /// [takes replies](Operator::takes_replies).
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

    /// Whether replies are to be taken at any time, not only after [`Flow::AwaitReply`]: for a part
    /// that passes on what comes back through the chain, such as buffers to be used again. Replies
    /// that come when the part takes none wait until it does, and are dropped when it has ended.
    fn takes_replies(&self) -> bool {
        false
    }

    /// All inputs have ended: writes what is left. Called once; nothing follows but `resume`,
    /// `reply`, `query` and `snapshot`, and `wake` after [`Flow::InFlight`].
    ///
    /// # Errors
    /// As [`Operator::process`].
    fn finish(&mut self, _out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(Flow::NeedInput)
    }

    /// When [`Operator::wake`] should be called although no input has come, such as the end of a
    /// window. Asked after every call that may change it.
    fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// The time that [`Operator::wake_at`] named has come, and no input waits unless something is
    /// [in flight](Flow::InFlight). `now` is that time or later. What is sent has entered now.
    ///
    /// # Errors
    /// As [`Operator::process`].
    fn wake(&mut self, _now: Instant, _out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(Flow::NeedInput)
    }

    /// The state as bytes, in a versioned format of the operator's own; `None` if there is none, or
    /// if it is in several parts. Called at a batch boundary.
    fn snapshot(&self) -> Option<Vec<u8>> {
        None
    }

    /// Takes over the state that an operator with the same parameters wrote down, in place of its
    /// own. Called before any input has come. Bytes may come from anywhere: whatever they are, the
    /// answer is an error or a state that the operator can go on with.
    ///
    /// # Errors
    /// If the bytes are no such state. The provided method answers that the operator keeps none.
    fn restore(&mut self, _state: &[u8]) -> Result<(), OperatorError> {
        Err(Box::new(NoState))
    }

    /// Adds the state that an operator with the same parameters wrote down about another stream to
    /// its own, as if both streams had come here; for operators whose state is a summary.
    ///
    /// # Errors
    /// As [`Operator::restore`].
    fn merge(&mut self, _state: &[u8]) -> Result<(), OperatorError> {
        Err(Box::new(NoState))
    }

    /// Answers `request` from the present state, or adds to `payload` and sends it on to the next
    /// part. Called at a batch boundary; `payload` is what the part before this one sent on. Must
    /// not change what the operator computes.
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

    /// Whether a sink still has a use for input; false for one that drops everything, such as a
    /// sink whose reader has gone. When the last sink that needed input has ended or needs none any
    /// more, the run drains. Asked of operators without an output port, at the start and after
    /// every call; the rows of other operators are always needed.
    fn needs_input(&self) -> bool {
        true
    }

    /// Where its work may go on besides its own thread, in words for the plan, such as the name of
    /// a device. Asked when the plan is shown.
    fn device(&self) -> Option<String> {
        None
    }

    /// Numbers for metrics and the run report. Called a few times a second while the operator
    /// works, at its end, and after a failure.
    fn counters(&self) -> Counters {
        Counters::new()
    }
}

/// The operator keeps no state that could be restored or merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operator keeps no state that could be restored or merged")]
pub struct NoState;

/// Where an operator writes: collects the batches of one call, in order, until the stage loop moves
/// them on.
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
        self.sent.push((0, Payload::Chunk(chunk.stamped(self.origin))));
    }

    /// Answers the part before this one, which waits for it after [`Flow::AwaitReply`], or gives
    /// something back to it.
    pub fn send_reply(&mut self, reply: Chunk) {
        self.replies.push(reply);
    }

    /// Says that the operator could not do something that its rows do not depend on, such as saving
    /// its state. The run goes on to its end, so that no row is lost, and then fails with the first
    /// such error ([`RunErrorCause::Late`](crate::error::RunErrorCause::Late)).
    pub fn fail_late(&mut self, error: OperatorError) {
        self.late_failure.get_or_insert(error);
    }

    /// Takes the error of [`Self::fail_late`], for calling an operator without an engine.
    pub fn take_late_failure(&mut self) -> Option<OperatorError> {
        self.late_failure.take()
    }

    /// Lets `commit` make a result permanent when every stage of the run has ended well, such as
    /// give a file its name. If the run fails or is aborted, `commit` is dropped without being
    /// called. Its error fails the run; other results are committed all the same.
    pub fn commit_at_end(
        &mut self,
        commit: impl FnOnce() -> Result<(), OperatorError> + Send + 'static,
    ) {
        self.commits.push(Box::new(commit));
    }

    /// Takes what is to be called when the run has ended well, for calling an operator without an
    /// engine.
    pub fn drain_commits(&mut self) -> impl Iterator<Item = Commit> + '_ {
        self.commits.drain(..)
    }

    /// Takes what was sent so far, with the port of each.
    pub fn drain_sent(&mut self) -> impl Iterator<Item = (usize, Payload)> + '_ {
        self.sent.drain(..)
    }

    /// Takes the replies written so far.
    pub fn drain_replies(&mut self) -> impl Iterator<Item = Chunk> + '_ {
        self.replies.drain(..)
    }

    /// What is sent from now on comes from `origin`.
    pub(crate) fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }
}

/// How much work a part does, for the placement of parts on cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Fused with its neighbour.
    Light,
    /// A core of its own while there are cores.
    Heavy,
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

/// One link of the chain that an operator consists of.
#[derive(Debug)]
pub struct Part {
    /// Name within the operator, such as `filter`; empty for the only part.
    pub name: Cow<'static, str>,
    /// How much work it does.
    pub load: Load,
    /// Its code.
    pub body: Body,
}

/// An operator that is bound to its inputs, ready to be placed and run.
#[derive(Debug)]
pub struct Fragment {
    /// The chain of parts; external inputs enter the first, external outputs leave the last. Never
    /// empty.
    pub parts: Vec<Part>,
    /// Schema of each output port; none for a sink.
    pub outputs: Vec<SchemaRef>,
    /// What it writes to outside of the pipeline; no two stages may claim the same.
    pub claims: Vec<Claim>,
}

/// Something outside of the pipeline that only one stage may have, such as the file that it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// Equal for two claims to the same thing, however it was named.
    pub key: Vec<u8>,
    /// Its name in messages.
    pub name: String,
    /// The parameter that names it.
    pub parameter: &'static str,
}

impl Claim {
    /// A claim to the thing that `key` stands for, which `parameter` names.
    #[must_use]
    pub fn new(key: Vec<u8>, name: impl Into<String>, parameter: &'static str) -> Self {
        Self { key, name: name.into(), parameter }
    }
}

impl Fragment {
    /// A chain of parts that claims nothing.
    #[must_use]
    pub fn new(parts: Vec<Part>, outputs: Vec<SchemaRef>) -> Self {
        Self { parts, outputs, claims: Vec::new() }
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

    /// Claims things for this stage alone.
    #[must_use]
    pub fn claiming(mut self, claims: impl IntoIterator<Item = Claim>) -> Self {
        self.claims.extend(claims);
        self
    }
}

/// What a stage's surroundings ask of it when it is bound.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BindContext {
    /// How many cores the stage was given by name; 0 when it was given none.
    pub cores: usize,
    /// The memory that the stages of the pipeline share. What grows with the stream reserves here.
    pub memory: MemoryBudget,
}

impl BindContext {
    /// A stage that was given `cores` cores by name, and half of the memory of the process.
    #[must_use]
    pub fn new(cores: usize) -> Self {
        Self { cores, memory: MemoryBudget::of_process() }
    }

    /// Gives the stage this budget.
    #[must_use]
    pub fn memory(mut self, budget: MemoryBudget) -> Self {
        self.memory = budget;
        self
    }
}

/// A configured operator that does not know its inputs yet. This is what a graph is built from.
pub trait OperatorSpec: Send {
    /// The operator's name in configurations, such as `frequent_items`.
    fn operator(&self) -> &'static str;

    /// How many input ports it takes: `0..=0` for a source. An operator with exactly one port
    /// accepts several inputs of the same schema and sees their batches as they come.
    fn input_ports(&self) -> RangeInclusive<usize>;

    /// Names of its output ports, if it has several: a configuration reads one as `stage.port`.
    fn output_ports(&self) -> &'static [&'static str] {
        &[]
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
