//! A part at its place in a thread's group: its inputs and outputs, and what it could do next.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::control::{Address, Ticket, WatchSlot};
use crate::batch::{Chunk, Origin, Payload};
use crate::channel::{EdgeReceiver, EdgeSender, Message, Taken};
use crate::error::{RunError, RunErrorCause};
use crate::graph::PlacedPart;
use crate::metrics::{LatencyRecorder, PartCounters};
use crate::operator::{Body, Flow};

/// Where an output goes.
pub(super) enum Target {
    /// To input `port` of a node of the same group, `pushed` messages so far.
    Local { node: usize, port: usize, pushed: u64 },
    /// To another thread.
    Remote(EdgeSender),
}

/// An input from another thread.
pub(super) struct Input {
    pub(super) port: usize,
    pub(super) edge: EdgeReceiver,
    pub(super) has_ended: bool,
}

/// Where the life of a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Running,
    /// `finish` has been called and may have more to write.
    Finishing,
    /// Its end markers have been sent.
    Done,
}

/// What a node could do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Ask the source for more.
    Produce,
    /// End the source: the run drains.
    StopSource,
    /// Process the first message of the inbox.
    Take,
    Resume,
    /// Process the first of the replies.
    Reply,
    /// The time has come that the operator named.
    Wake,
    Finish,
    /// An input closed without its end.
    Truncated,
}

pub(super) struct Node {
    /// Id of the stage.
    pub(super) stage: String,
    /// The same, with the part behind a slash when the operator has several.
    pub(super) label: String,
    pub(super) operator: &'static str,
    pub(super) body: Body,
    pub(super) counters: Arc<PartCounters>,
    pub(super) latency: LatencyRecorder,
    /// Messages to process next: from nodes of the same group, or one from an input edge.
    pub(super) inbox: VecDeque<(usize, Message)>,
    pub(super) inputs: Vec<Input>,
    next_input: usize,
    /// Inputs, local or remote, that have not ended.
    pub(super) open_inputs: usize,
    /// The consumers of each output port.
    pub(super) outputs: Vec<Vec<Target>>,
    /// Those of them that are in the same group.
    pub(super) local_targets: Vec<usize>,
    /// Whether something that it sent waits for space in a queue.
    pub(super) is_stuck: bool,
    /// The address of the next part of the operator, if that is on another thread.
    pub(super) next_part: Option<Address>,
    /// Replies to process next, and the edge they come from when the next part is elsewhere.
    pub(super) replies: VecDeque<Chunk>,
    pub(super) reply_input: Option<EdgeReceiver>,
    /// Whether replies are taken at any time.
    takes_replies: bool,
    /// Where replies to the part before go.
    pub(super) reply_output: Option<Target>,
    pub(super) flow: Flow,
    pub(super) life: Life,
    /// A source that is idle until then, or an operator that wants to be called then.
    pub(super) wake_at: Option<Instant>,
    /// Of the batch in hand; of the next batch, for a source.
    pub(super) origin: Origin,
    /// Messages taken so far, end markers included: the position that forwarded queries refer to.
    pub(super) taken: u64,
    /// Queries that wait for a batch boundary or for their position.
    pub(super) held: Vec<Ticket>,
    pub(super) watches: Vec<Arc<WatchSlot>>,
}

impl Node {
    pub(super) fn new(placed: PlacedPart, counters: Arc<PartCounters>) -> Self {
        let PlacedPart { stage, label, operator, part } = placed;
        let takes_replies = match &part.body {
            Body::Source(_) => false,
            Body::Operator(operator) => operator.takes_replies(),
        };
        Self {
            stage,
            label,
            operator,
            body: part.body,
            takes_replies,
            latency: LatencyRecorder::new(Arc::clone(&counters)),
            counters,
            inbox: VecDeque::new(),
            inputs: Vec::new(),
            next_input: 0,
            open_inputs: 0,
            outputs: Vec::new(),
            local_targets: Vec::new(),
            is_stuck: false,
            next_part: None,
            replies: VecDeque::new(),
            reply_input: None,
            reply_output: None,
            flow: Flow::NeedInput,
            life: Life::Running,
            wake_at: None,
            origin: Origin { sequence: 0, entered: Instant::now() },
            taken: 0,
            held: Vec::new(),
            watches: Vec::new(),
        }
    }

    pub(super) fn error(&self, cause: RunErrorCause) -> RunError {
        RunError { stage: self.label.clone(), operator: self.operator, cause }
    }

    /// Adds a consumer to output `port`.
    pub(super) fn add_target(&mut self, port: usize, target: Target) {
        if self.outputs.len() <= port {
            self.outputs.resize_with(port + 1, Vec::new);
        }
        if let Target::Local { node, .. } = target {
            self.local_targets.push(node);
        }
        self.outputs[port].push(target);
    }

    /// Whether the operator is between two batches, so that its state means something.
    pub(super) fn is_at_boundary(&self) -> bool {
        self.flow == Flow::NeedInput
    }

    /// Whether the query's time has come: a batch boundary, and the position that it was sent from.
    pub(super) fn can_answer(&self, ticket: &Ticket) -> bool {
        self.is_at_boundary() && ticket.after.is_none_or(|after| self.taken >= after)
    }

    /// Whether a query would be answered now, if this were a batch boundary.
    fn owes_an_answer(&self) -> bool {
        self.watches.iter().any(|slot| slot.is_wanted())
            || self.held.iter().any(|held| held.after.is_none_or(|after| self.taken >= after))
    }

    /// Whether input may come while work is in flight.
    fn may_take_in_flight(&self) -> bool {
        self.life == Life::Running && !self.owes_an_answer()
    }

    /// Whether the time has come that the operator named.
    fn is_due(&self, now: Instant) -> bool {
        self.wake_at.is_some_and(|at| at <= now)
    }

    /// When it could do something though nothing arrives, given that its outputs have space.
    pub(super) fn wake_time(&self) -> Option<Instant> {
        match (self.life, self.flow) {
            (Life::Done, _) | (_, Flow::HaveOutput | Flow::AwaitReply) => None,
            (_, Flow::NeedInput | Flow::InFlight) => self.wake_at,
        }
    }

    /// Whether a standing query should be answered again. The last answer is given when the node
    /// ends.
    pub(super) fn wants_publishing(&self) -> bool {
        self.life != Life::Done
            && self.is_at_boundary()
            && self.watches.iter().any(|slot| slot.is_wanted())
    }

    /// Sends what did not fit before; true when nothing is left.
    pub(super) fn flush(&mut self) -> bool {
        self.is_stuck = false;
        for target in self.outputs.iter_mut().flatten().chain(&mut self.reply_output) {
            if let Target::Remote(edge) = target {
                self.is_stuck |= !edge.flush();
            }
        }
        !self.is_stuck
    }

    fn remote_edges(&self) -> impl Iterator<Item = &EdgeSender> {
        self.outputs.iter().flatten().chain(&self.reply_output).filter_map(|target| match target {
            Target::Remote(edge) => Some(edge),
            Target::Local { .. } => None,
        })
    }

    /// Whether a queue that was full has space again.
    pub(super) fn can_flush(&self) -> bool {
        self.is_stuck && self.remote_edges().any(|edge| edge.is_blocked() && edge.has_space())
    }

    /// Finds the next piece of work, given that its outputs have space, and fetches what it needs
    /// from an edge.
    pub(super) fn find_work(&mut self, is_draining: bool, now: Instant) -> Option<Work> {
        match (self.life, self.flow, &self.body) {
            (Life::Done, ..) => None,
            (_, Flow::HaveOutput, _) => Some(Work::Resume),
            (_, Flow::AwaitReply, _) => self.find_reply(),
            (Life::Running, Flow::NeedInput, Body::Source(_)) if is_draining => {
                Some(Work::StopSource)
            }
            (_, Flow::NeedInput, Body::Source(_)) => {
                self.wake_at.is_none_or(|at| at <= now).then_some(Work::Produce)
            }
            (_, Flow::NeedInput, Body::Operator(_)) => {
                let is_due = self.is_due(now);
                self.find_returned()
                    .or_else(|| self.find_input())
                    .or_else(|| is_due.then_some(Work::Wake))
            }
            // What has landed is nearest to the end of the stream.
            (_, Flow::InFlight, _) if self.is_due(now) => Some(Work::Wake),
            (_, Flow::InFlight, _) => self
                .find_returned()
                .or_else(|| if self.may_take_in_flight() { self.find_input() } else { None }),
        }
    }

    /// Whether [`Node::find_work`] would find something, apart from what a time brings.
    pub(super) fn has_work(&self, is_draining: bool) -> bool {
        match (self.life, self.flow, &self.body) {
            (Life::Done, ..) => false,
            (_, Flow::HaveOutput, _) => true,
            (_, Flow::AwaitReply, _) => self.has_reply(),
            (_, Flow::NeedInput, Body::Source(_)) => is_draining || self.wake_at.is_none(),
            (_, Flow::NeedInput, Body::Operator(_)) => self.has_returned() || self.has_input(),
            (_, Flow::InFlight, _) => {
                self.has_returned() || (self.may_take_in_flight() && self.has_input())
            }
        }
    }

    fn has_input(&self) -> bool {
        !self.inbox.is_empty()
            || self.open_inputs == 0
            || self.inputs.iter().any(|i| !i.has_ended && i.edge.is_ready())
    }

    fn has_reply(&self) -> bool {
        !self.replies.is_empty() || self.reply_input.as_ref().is_some_and(EdgeReceiver::is_ready)
    }

    fn has_returned(&self) -> bool {
        self.takes_replies && self.has_reply()
    }

    /// A reply, for a part that takes them at any time.
    fn find_returned(&mut self) -> Option<Work> {
        if self.takes_replies { self.find_reply() } else { None }
    }

    fn find_reply(&mut self) -> Option<Work> {
        if !self.replies.is_empty() {
            return Some(Work::Reply);
        }
        match self.reply_input.as_ref()?.take() {
            Taken::Message(Message::Payload(Payload::Chunk(reply))) => {
                self.replies.push_back(reply);
                Some(Work::Reply)
            }
            Taken::Nothing => None,
            Taken::Message(_) | Taken::Truncated => Some(Work::Truncated),
        }
    }

    fn find_input(&mut self) -> Option<Work> {
        if !self.inbox.is_empty() {
            return Some(Work::Take);
        }
        let inputs = self.inputs.len();
        for _ in 0..inputs {
            let input = &mut self.inputs[self.next_input];
            self.next_input = (self.next_input + 1) % inputs;
            if input.has_ended {
                continue;
            }
            match input.edge.take() {
                Taken::Message(message) => {
                    input.has_ended = matches!(message, Message::End);
                    self.inbox.push_back((input.port, message));
                    return Some(Work::Take);
                }
                Taken::Nothing => {}
                Taken::Truncated => return Some(Work::Truncated),
            }
        }
        (self.open_inputs == 0).then_some(Work::Finish)
    }

    /// Ends the way of replies when the part has ended.
    pub(super) fn close_replies(&mut self) {
        self.replies.clear();
        if let Some(edge) = self.reply_input.take() {
            edge.close();
        }
    }

    /// Lets an idle source be called again when its time has come.
    pub(super) fn wake_source(&mut self, now: Instant) {
        if let Body::Source(_) = self.body {
            self.wake_at = self.wake_at.filter(|&at| at > now);
        }
    }

    /// Time its thread spent waiting.
    pub(super) fn count_wait(&self, waited: Duration) {
        if self.life == Life::Done {
            return;
        }
        let counter =
            if self.is_stuck { &self.counters.blocked_ns } else { &self.counters.idle_ns };
        crate::channel::add(counter, crate::metrics::nanoseconds(waited));
    }
}
