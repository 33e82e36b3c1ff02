//! A node: a part in the group of its thread, with its next step and its calls.

mod gather;
pub(super) mod inputs;
pub(super) mod outputs;
mod pace;
pub(super) mod step;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::{Field, SchemaRef};

use self::inputs::{NodeInputs, Truncated};
use self::outputs::NodeOutputs;
use self::pace::Pace;
use self::step::{GroupState, NodeCall, NodeStep};
use super::poller::Readiness;
use super::queries::control::{MAILBOX_QUERIES_MAX, Ticket};
use super::queries::tickets::Tickets;
use super::shared::Together;
use crate::batch::{Origin, Payload};
use crate::error::{RunError, RunErrorCause, describe_columns};
use crate::graph::PlacedPart;
use crate::metrics::{LatencyRecorder, PartCounters};
use crate::operator::{Body, Ending, Flow, Operator, OperatorError, Output, SourceFlow};
use crate::query::{QueryError, QueryPayload, Request, Response};
use crate::sync::counter::{add, nanoseconds};

/// The phases of a node's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeLife {
    Running,
    /// `finish` has been called, and the operator may have more to write.
    Finishing,
    /// The end markers have been sent.
    Done,
}

pub(super) struct Node {
    /// Id of the stage.
    stage: String,
    /// The same, followed by a slash and the part when the operator has several.
    label: String,
    operator: &'static str,
    body: Body,
    /// The declared columns of each output port, and whether a batch has been compared with them.
    declared: Vec<(SchemaRef, bool)>,
    /// Number of ports for chunks, which come before the ports for rows.
    chunk_ports: usize,
    pub(super) inputs: NodeInputs,
    pub(super) outputs: NodeOutputs,
    pub(super) tickets: Tickets,
    counters: Arc<PartCounters>,
    latency: LatencyRecorder,
    /// Whether the operator has worked since its counters were published.
    is_dirty: bool,
    flow: Flow,
    life: NodeLife,
    /// Origin of the batch in hand; for a source, of the next batch.
    origin: Origin,
    /// The piece of the stream that a source which is a lane works on.
    piece: Option<u64>,
    /// The time that the operator has named for its next call.
    wake_at: Option<Instant>,
    /// Whether an operator takes replies at any time.
    takes_replies: bool,
    /// Whether this is a sink that needed input when the runtime asked last.
    needed_input: bool,
    /// The wait of a source without data, or of a sink without room.
    pace: Pace,
    /// The copies of the same stage, with which the thread of this copy ends.
    together: Option<Arc<Together>>,
}

impl Node {
    pub(super) fn new(placed: PlacedPart, counters: Arc<PartCounters>) -> Self {
        let PlacedPart { stage, label, operator, part, declared, chunk_ports } = placed;
        let takes_replies = match &part.body {
            Body::Source(_) => false,
            Body::Operator(operator) => operator.takes_replies(),
        };
        Self {
            stage,
            label,
            operator,
            body: part.body,
            declared: declared.into_iter().map(|schema| (schema, false)).collect(),
            chunk_ports,
            inputs: NodeInputs::default(),
            outputs: NodeOutputs::default(),
            tickets: Tickets::default(),
            latency: LatencyRecorder::new(Arc::clone(&counters)),
            counters,
            is_dirty: true,
            flow: Flow::NeedInput,
            life: NodeLife::Running,
            origin: Origin { sequence: 0, entered: Instant::now() },
            piece: None,
            wake_at: None,
            takes_replies,
            needed_input: false,
            pace: Pace::default(),
            together: None,
        }
    }

    /// Lets the thread of the node end together with the threads of these copies of its stage.
    pub(super) fn ends_together(&mut self, copies: Arc<Together>) {
        self.together = Some(copies);
    }

    /// Whether the thread of the node is needed for queries to other copies of its stage.
    pub(super) fn is_kept(&self) -> bool {
        self.together.as_ref().is_some_and(|copies| !copies.have_ended())
    }

    /// Id of the stage.
    pub(super) fn stage(&self) -> &str {
        &self.stage
    }

    /// Id of the stage, with the part after a slash when the operator has several.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Name of the operator.
    pub(super) fn operator(&self) -> &'static str {
        self.operator
    }

    /// The failure of this node.
    pub(super) fn error(&self, cause: RunErrorCause) -> RunError {
        RunError { stage: self.label.clone(), operator: self.operator, cause }
    }

    /// The answer to a query when too many queries wait already.
    pub(super) fn busy(&self) -> QueryError {
        QueryError::Busy { stage: self.label.clone(), limit: MAILBOX_QUERIES_MAX }
    }

    /// Number of ports for chunks, which come before the ports for rows.
    pub(super) fn chunk_ports(&self) -> usize {
        self.chunk_ports
    }

    pub(super) fn is_source(&self) -> bool {
        matches!(self.body, Body::Source(_))
    }

    /// Sets the readiness by which a source or a sink waits for its descriptor.
    pub(super) fn set_readiness(&mut self, readiness: Readiness) {
        self.pace.set_readiness(readiness);
    }

    /// Whether the end markers have been sent, or wait for space.
    pub(super) fn is_done(&self) -> bool {
        self.life == NodeLife::Done
    }

    /// Whether the operator has finished, so that the end markers can be sent.
    pub(super) fn is_finished(&self) -> bool {
        self.life == NodeLife::Finishing && self.is_at_boundary()
    }

    /// Whether the operator is between two batches.
    pub(super) fn is_at_boundary(&self) -> bool {
        self.flow == Flow::NeedInput
    }

    /// Whether the state of the operator means something, so that the operator can answer a query.
    pub(super) fn may_be_asked(&self) -> bool {
        self.is_at_boundary()
            || match &self.body {
                Body::Operator(operator) => operator.can_answer(),
                Body::Source(_) => false,
            }
    }

    /// The ending of the streams that the node sends: the ending of its inputs or, for a source,
    /// the stop.
    pub(super) fn ending(&self) -> Ending {
        if self.pace.is_stopping() { Ending::Stopped } else { self.inputs.ending() }
    }

    /// Lets an operator that has not ended open its files again.
    pub(super) fn reopen(&mut self) -> Result<(), RunError> {
        let Body::Operator(operator) = &mut self.body else { return Ok(()) };
        if self.life == NodeLife::Done {
            return Ok(());
        }
        self.is_dirty = true;
        let reopened = operator.reopen();
        self.wake_at = operator.wake_at();
        reopened.map_err(|error| self.error(RunErrorCause::Failed(error)))
    }

    /// Whether the operator has work in the background.
    pub(super) fn has_background(&self) -> bool {
        self.flow == Flow::Background && !self.is_done()
    }

    /// Notes and returns whether this is a sink that needs input now.
    pub(super) fn note_need(&mut self) -> bool {
        self.needed_input = match &self.body {
            Body::Operator(operator) => {
                !self.is_done() && self.outputs.ports() == 0 && operator.needs_input()
            }
            Body::Source(_) => false,
        };
        self.needed_input
    }

    /// Whether this is a sink that has ceased to need input since the runtime asked last.
    pub(super) fn has_lost_need(&mut self) -> bool {
        self.needed_input && !self.note_need()
    }

    /// Whether the node can answer a forwarded query: at a batch boundary, and at the position from
    /// which the query was sent.
    pub(super) fn can_answer(&self, ticket: &Ticket) -> bool {
        ticket.is_due(self.inputs.taken()) && self.may_be_asked()
    }

    /// Whether the node can answer or forward the oldest query of a caller now.
    pub(super) fn can_answer_asked(&self) -> bool {
        self.tickets.can_admit() && self.may_be_asked()
    }

    /// Whether a standing query should be answered again. The last answer comes when the node ends.
    pub(super) fn wants_publishing(&self) -> bool {
        !self.is_done() && self.tickets.has_wanted_watch() && self.may_be_asked()
    }

    /// Names of the queries that the operator knows.
    pub(super) fn queries(&self) -> &'static [&'static str] {
        match &self.body {
            Body::Operator(operator) => operator.queries(),
            Body::Source(_) => &[],
        }
    }

    /// Asks the operator.
    pub(super) fn query(
        &self,
        request: &Request,
        payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        match &self.body {
            Body::Operator(operator) => operator.query(request, payload),
            Body::Source(_) => Err(QueryError::unsupported(request, &[])),
        }
    }

    /// Whether the operator may process a message that was fetched: at a batch boundary, or while
    /// work is in flight and no answer waits for a boundary.
    pub(super) fn may_take(&self, may_answer: bool) -> bool {
        self.is_at_boundary()
            || (self.life == NodeLife::Running
                && !self.tickets.owe_an_answer(self.inputs.taken(), may_answer))
    }

    /// The next step, given that its outputs have space.
    pub(super) fn next_step(&self, group: GroupState) -> NodeStep {
        if self.is_done() {
            return NodeStep::Wait;
        }
        match self.flow {
            Flow::HaveOutput => NodeStep::Now(NodeCall::Resume),
            Flow::AwaitWritable => self.pace.step_after_pause(group, NodeCall::Resume),
            // An end of the input waits too: the operator holds a batch that needs the reply.
            Flow::AwaitReply if self.inputs.has_reply() => NodeStep::Now(NodeCall::Reply),
            Flow::AwaitReply => NodeStep::Wait,
            Flow::NeedInput if self.is_source() => self.pace.next_step(group),
            Flow::NeedInput => self.step_at_boundary(group),
            Flow::InFlight => self.step_in_flight(group),
            Flow::Background => self.step_in_background(group),
        }
    }

    /// At a batch boundary, a reply goes first, since it may bring the buffer for the next output;
    /// then input, which brings on work of its own; then the time that the operator has named.
    fn step_at_boundary(&self, group: GroupState) -> NodeStep {
        if self.takes_returned_reply() {
            return NodeStep::Now(NodeCall::Reply);
        }
        self.input_work().map_or_else(|| self.step_at_wake_time(group), NodeStep::Now)
    }

    /// With work in flight, a chunk that has landed goes first, because it is nearest to the end
    /// of the stream; then a reply; then input, unless a query waits for a batch boundary.
    fn step_in_flight(&self, group: GroupState) -> NodeStep {
        let at_wake_time = self.step_at_wake_time(group);
        if matches!(at_wake_time, NodeStep::Now(_)) {
            return at_wake_time;
        }
        if self.takes_returned_reply() {
            return NodeStep::Now(NodeCall::Reply);
        }
        let input = self.input_work().filter(|_| self.may_take(group.may_answer));
        input.map_or(at_wake_time, NodeStep::Now)
    }

    /// With work in the background, all that is short goes first: a reply, then input, unless a
    /// query waits for a batch boundary. The work itself comes when the thread is idle.
    fn step_in_background(&self, group: GroupState) -> NodeStep {
        if self.takes_returned_reply() {
            return NodeStep::Now(NodeCall::Reply);
        }
        let input = self.input_work().filter(|_| self.may_take(group.may_answer));
        let background = group.is_idle.then_some(NodeCall::Wake);
        input.or(background).map_or_else(|| self.step_at_wake_time(group), NodeStep::Now)
    }

    /// The call at the time that the operator has named, or the wait for that time.
    fn step_at_wake_time(&self, group: GroupState) -> NodeStep {
        NodeStep::at(self.wake_at, group.now, NodeCall::Wake)
    }

    /// Whether a reply waits that the operator takes at any time.
    fn takes_returned_reply(&self) -> bool {
        self.takes_replies && self.inputs.has_reply()
    }

    fn input_work(&self) -> Option<NodeCall> {
        if self.inputs.has_message() {
            Some(NodeCall::Take)
        } else {
            self.inputs.have_ended().then_some(NodeCall::Finish)
        }
    }

    /// Fetches the message that `work` takes; `None` if there is no message after all.
    pub(super) fn fetch(&mut self, work: NodeCall) -> Option<NodeCall> {
        let fetched = match work {
            NodeCall::Take => self.inputs.fetch(),
            NodeCall::Reply => self.inputs.fetch_reply(),
            _ => Ok(true),
        };
        match fetched {
            Ok(is_there) => is_there.then_some(work),
            Err(Truncated) => Some(NodeCall::Truncated),
        }
    }

    /// Does `work`; true if data was processed, so that its latency counts.
    pub(super) fn run(
        &mut self,
        work: NodeCall,
        begin: Instant,
        output: &mut Output,
    ) -> Result<bool, RunError> {
        if work == NodeCall::Truncated {
            return Err(self.error(RunErrorCause::Truncated));
        }
        if self.is_source() {
            return self.produce(work, begin, output).map(|()| false);
        }
        if self.flow == Flow::AwaitWritable {
            self.pace.begin_call(work);
        }
        let is_running = self.life == NodeLife::Running;
        output.set_origin(self.origin);
        let (result, is_data) = match work {
            NodeCall::Take => {
                let Some((port, payload)) = self.take_payload() else { return Ok(false) };
                output.set_origin(self.origin);
                (self.body_operator().process(port, payload, output), true)
            }
            NodeCall::Resume => (self.body_operator().resume(output), is_running),
            NodeCall::Reply => {
                let reply = self.inputs.take_reply();
                (self.body_operator().reply(reply, output), is_running)
            }
            NodeCall::Wake => {
                output.set_origin(Origin { entered: begin, ..self.origin });
                (self.body_operator().wake(begin, output), false)
            }
            NodeCall::Finish => {
                self.life = NodeLife::Finishing;
                (self.body_operator().finish(output), false)
            }
            NodeCall::Produce | NodeCall::StopSource | NodeCall::Truncated => {
                unreachable!("sources produce, and truncation was handled")
            }
        };
        let flow = result.and_then(|flow| self.note_flow(flow));
        self.flow = flow.map_err(|error| self.error(RunErrorCause::Failed(error)))?;
        Ok(is_data)
    }

    /// Takes the payload that was fetched, with its port; `None` for an end marker, of which the
    /// operator is told when it was the last one of its port.
    fn take_payload(&mut self) -> Option<(usize, Payload)> {
        let (port, payload) = self.inputs.take();
        if let Some(payload) = payload {
            self.counters.count_in(payload.items());
            self.origin = payload.origin().unwrap_or(self.origin);
            return Some((port, payload));
        }
        if let Some(ending) = self.inputs.port_ending(port) {
            let operator = self.body_operator();
            operator.port_ended(port, ending);
            self.wake_at = operator.wake_at();
        }
        None
    }

    /// Notes the time or the descriptor that the operator waits for after a call.
    fn note_flow(&mut self, flow: Flow) -> Result<Flow, OperatorError> {
        let Body::Operator(operator) = &self.body else { unreachable!("a source has no flow") };
        self.wake_at = operator.wake_at();
        if flow == Flow::AwaitWritable {
            self.pace.await_room(operator.descriptor(), self.wake_at)?;
        }
        Ok(flow)
    }

    /// The operator of a node that is no source.
    fn body_operator(&mut self) -> &mut dyn Operator {
        match &mut self.body {
            Body::Operator(operator) => &mut **operator,
            Body::Source(_) => unreachable!("a source produces and does nothing else"),
        }
    }

    /// Calls a source, numbers the batches of the call, and notes the time of the next call.
    fn produce(
        &mut self,
        work: NodeCall,
        begin: Instant,
        output: &mut Output,
    ) -> Result<(), RunError> {
        self.pace.begin_call(work);
        let Body::Source(source) = &mut self.body else { unreachable!("operators do not produce") };
        output.set_origin(Origin { entered: begin, ..self.origin });
        let flow =
            if work == NodeCall::StopSource { source.stop(output) } else { source.next(output) };
        self.counters.record_progress(source.progress());
        // A source that takes pieces of a stream numbers its batches by the pieces.
        if output.begun.is_empty() && self.piece.is_none() {
            for (_, payload) in &mut output.sent {
                payload.set_sequence(self.origin.sequence);
                self.origin.sequence += 1;
            }
        } else if let Some(&(_, last)) = output.begun.last() {
            self.origin.sequence = last;
        }
        let paused = flow.and_then(|flow| {
            if flow == SourceFlow::Finished {
                self.life = NodeLife::Finishing;
            }
            Ok(self.pace.pause(flow, &**source)?)
        });
        paused.map_err(|error| self.error(RunErrorCause::Failed(error)))
    }

    /// The piece of the input whose output has been sent to its end, once.
    pub(super) fn take_done(&mut self) -> Option<u64> {
        if self.is_at_boundary() { self.inputs.take_done() } else { None }
    }

    /// Notes that a source begins a piece; returns the piece that ends now.
    pub(super) fn begin_piece(&mut self, piece: u64) -> Option<u64> {
        self.piece.replace(piece)
    }

    /// Ends the last piece of a source.
    pub(super) fn end_piece(&mut self) -> Option<u64> {
        self.piece.take()
    }

    /// Ends the node, before its end markers are sent.
    pub(super) fn end(&mut self) {
        self.life = NodeLife::Done;
        if let Some(copies) = &self.together {
            copies.end_one();
        }
        self.inputs.close_replies();
        self.latency.flush();
        self.publish_counters();
        self.counters.finish();
    }

    /// Sends messages that did not fit before; true if no message is left.
    pub(super) fn flush(&mut self, now: Instant) -> bool {
        self.outputs.flush(now, &self.counters)
    }

    /// Refuses a batch whose columns are not the declared ones, since otherwise the stage that
    /// reads the batch would fail instead. The first batch of each port is checked, and in a build
    /// with debug assertions every batch.
    pub(super) fn check_columns(
        &mut self,
        port: usize,
        records: &RecordBatch,
    ) -> Result<(), RunError> {
        let Some((declared, is_known)) = self.declared.get_mut(port) else { return Ok(()) };
        let is_known = std::mem::replace(is_known, true) && !cfg!(debug_assertions);
        if is_known || Arc::ptr_eq(declared, records.schema_ref()) {
            return Ok(());
        }
        let found = records.schema_ref();
        let same = |(a, b): (&Arc<Field>, &Arc<Field>)| is_same_column(a, b);
        if declared.fields().len() == found.fields().len()
            && declared.fields().iter().zip(found.fields()).all(same)
        {
            return Ok(());
        }
        let (declared, found) = (describe_columns(declared), describe_columns(found));
        Err(self.error(RunErrorCause::Columns { port, declared, found }))
    }

    /// Counts a message that the node sends.
    pub(super) fn count_out(&self, items: usize) {
        self.counters.count_out(items);
    }

    /// Counts the work from `begin` to `now`, and the latency of data that has been processed;
    /// returns nanoseconds.
    pub(super) fn count_work(&mut self, is_data: bool, begin: Instant, now: Instant) -> u64 {
        let busy_ns = nanoseconds(now - begin);
        add(&self.counters.busy_ns, busy_ns);
        self.is_dirty = true;
        if is_data && self.is_at_boundary() {
            self.latency.record(now.saturating_duration_since(self.origin.entered));
        }
        busy_ns
    }

    /// Counts the time that the thread spent waiting, up to `now`.
    pub(super) fn count_wait(&mut self, waited: Duration, now: Instant) {
        if self.outputs.is_stuck() {
            self.outputs.count_wait(now, &self.counters);
        } else if self.flow == Flow::AwaitWritable {
            add(&self.counters.blocked_ns, nanoseconds(waited));
        } else if !self.is_done() {
            add(&self.counters.idle_ns, nanoseconds(waited));
        }
    }

    /// Shows readers the kept latencies.
    pub(super) fn flush_latency(&mut self) {
        self.latency.flush();
    }

    /// Whether the operator has worked since its counters were published.
    pub(super) fn has_news(&self) -> bool {
        self.is_dirty && !self.is_done()
    }

    /// Shows readers the operator's counters.
    pub(super) fn publish_counters(&mut self) {
        self.is_dirty = false;
        match &self.body {
            Body::Source(source) => {
                self.counters.publish(source.counters());
                self.counters.publish_inputs(source.named_inputs());
            }
            Body::Operator(operator) => {
                self.counters.publish(operator.counters());
                self.counters.publish_inputs(operator.named_inputs());
            }
        }
    }
}

/// Whether a batch may have the column `found` where `declared` was promised.
fn is_same_column(declared: &Field, found: &Field) -> bool {
    declared.name() == found.name() && declared.data_type().equals_datatype(found.data_type())
}
