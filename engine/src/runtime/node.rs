//! A part at its place in a thread's group: its inputs and outputs, and what it could do next.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::allowance::Allowance;
use super::control::{Address, Ticket, WatchSlot};
use super::poller::Readiness;
use crate::batch::{Chunk, Origin, Payload};
use crate::channel::{EdgeReceiver, EdgeSender, Message, Taken};
use crate::counter::{add, nanoseconds};
use crate::error::{RunError, RunErrorCause};
use crate::graph::PlacedPart;
use crate::metrics::{LatencyRecorder, PartCounters};
use crate::operator::{Body, Flow, SourceFlow};

/// Queries that the first part of a stage sends on before one of them is answered.
const UNDER_WAY_MAX: usize = 16;
/// Pause of a source that waits for a descriptor which cannot be waited for, such as that of a
/// regular file.
const UNWATCHABLE: Duration = Duration::from_millis(1);

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
    /// Ask the source for what it has taken: the run drains.
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

/// A source that has nothing at present.
#[derive(Debug, Clone, Copy)]
struct Pause {
    /// When to call it at the latest; `None` if never.
    until: Option<Instant>,
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
    /// Those of them that are in the same group, the most downstream one first.
    pub(super) local_targets: Vec<usize>,
    /// Whether it is a sink that needed input when it was asked last.
    pub(super) needed_input: bool,
    /// Whether something that it sent waits for space in a queue.
    pub(super) is_stuck: bool,
    /// Since when, or since when it is not counted yet.
    stuck_since: Option<Instant>,
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
    /// When an operator wants to be called.
    pub(super) wake_at: Option<Instant>,
    /// Of a source without data; `None` if it is to be called.
    pause: Option<Pause>,
    /// What a source without data waits for.
    readiness: Option<Readiness>,
    /// Whether a source has been asked to stop.
    pub(super) is_stopping: bool,
    /// Of the batch in hand; of the next batch, for a source.
    pub(super) origin: Origin,
    /// Messages taken so far, end markers included: the position that forwarded queries refer to.
    pub(super) taken: u64,
    /// Queries from the part before that wait for a batch boundary or for their position.
    pub(super) held: Vec<Ticket>,
    /// Queries of callers, in order.
    pub(super) asked: VecDeque<Ticket>,
    /// Queries that later parts have not answered yet.
    pub(super) under_way: Arc<AtomicUsize>,
    /// The allowances of the other threads that later parts run on.
    pub(super) later_allowances: Vec<Arc<Allowance>>,
    pub(super) watches: Vec<Arc<WatchSlot>>,
    /// Worked since its own numbers were published.
    pub(super) is_dirty: bool,
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
            needed_input: false,
            is_stuck: false,
            stuck_since: None,
            next_part: None,
            replies: VecDeque::new(),
            reply_input: None,
            reply_output: None,
            flow: Flow::NeedInput,
            life: Life::Running,
            wake_at: None,
            pause: None,
            readiness: None,
            is_stopping: false,
            origin: Origin { sequence: 0, entered: Instant::now() },
            taken: 0,
            held: Vec::new(),
            asked: VecDeque::new(),
            under_way: Arc::default(),
            later_allowances: Vec::new(),
            watches: Vec::new(),
            is_dirty: true,
        }
    }

    /// Lets a source wait for its descriptor here.
    pub(super) fn set_readiness(&mut self, readiness: Readiness) {
        self.readiness = Some(readiness);
    }

    pub(super) fn is_source(&self) -> bool {
        matches!(self.body, Body::Source(_))
    }

    /// Whether this is a sink that still has a use for input.
    pub(super) fn needs_input(&self) -> bool {
        match &self.body {
            Body::Operator(operator) => {
                self.life != Life::Done && self.outputs.is_empty() && operator.needs_input()
            }
            Body::Source(_) => false,
        }
    }

    /// Notes whether it needs input now.
    pub(super) fn note_need(&mut self) -> bool {
        self.needed_input = self.needs_input();
        self.needed_input
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
            self.local_targets.sort_unstable_by_key(|&target| Reverse(target));
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

    /// Whether an answer waits for a batch boundary, of those that may be given now.
    fn owes_an_answer(&self, may_answer: bool) -> bool {
        self.held.iter().any(|held| held.after.is_none_or(|after| self.taken >= after))
            || (may_answer
                && (!self.asked.is_empty() || self.watches.iter().any(|slot| slot.is_wanted())))
    }

    /// Whether input may come while work is in flight.
    pub(super) fn may_take_in_flight(&self, may_answer: bool) -> bool {
        self.life == Life::Running && !self.owes_an_answer(may_answer)
    }

    /// Whether the oldest query of a caller can be answered or sent on now.
    pub(super) fn can_answer_asked(&self) -> bool {
        !self.asked.is_empty()
            && self.is_at_boundary()
            && self.under_way.load(Ordering::Relaxed) < UNDER_WAY_MAX
            && self.later_allowances.iter().all(|allowance| allowance.is_open())
    }

    /// Whether a standing query should be answered again. The last answer is given when the node
    /// ends.
    pub(super) fn wants_publishing(&self) -> bool {
        self.life != Life::Done
            && self.is_at_boundary()
            && self.watches.iter().any(|slot| slot.is_wanted())
    }

    /// Notes when the source is to be called again.
    ///
    /// # Errors
    /// If the operating system refuses to wait for its descriptor.
    pub(super) fn pause(&mut self, flow: SourceFlow) -> Result<(), RunError> {
        let after = |wait| Some(Pause { until: Instant::now().checked_add(wait) });
        self.pause = match flow {
            SourceFlow::HaveOutput | SourceFlow::Finished => None,
            SourceFlow::Idle(wait) => after(wait),
            SourceFlow::AwaitReadable(wait) => {
                let is_watched =
                    self.watch().map_err(|e| self.error(RunErrorCause::Failed(e.into())))?;
                let wait = if is_watched { wait } else { wait.min(UNWATCHABLE) };
                after(wait)
            }
        };
        Ok(())
    }

    fn watch(&mut self) -> io::Result<bool> {
        let Body::Source(source) = &self.body else { unreachable!("only sources pause") };
        let descriptor = source.descriptor();
        let descriptor =
            descriptor.expect("a source that returns `AwaitReadable` names a descriptor");
        let readiness = self.readiness.as_mut().expect("every source of a run has one");
        readiness.watch(descriptor)
    }

    /// The source is about to be called.
    pub(super) fn end_pause(&mut self) {
        self.pause = None;
        if let Some(readiness) = &mut self.readiness {
            readiness.unwatch();
        }
    }

    fn is_paused(&self, now: Option<Instant>) -> bool {
        let Some(pause) = self.pause else { return false };
        let is_over = pause.until.zip(now).is_some_and(|(until, now)| until <= now);
        !is_over && !self.readiness.as_ref().is_some_and(Readiness::is_ready)
    }

    /// When it could do something though nothing arrives, given that its outputs have space.
    pub(super) fn wake_time(&self) -> Option<Instant> {
        match (self.life, self.flow) {
            (Life::Done, _) | (_, Flow::HaveOutput | Flow::AwaitReply) => None,
            (_, Flow::NeedInput | Flow::InFlight) => match self.pause {
                Some(pause) => pause.until,
                None => self.wake_at,
            },
        }
    }

    /// Notes that something waits for space.
    pub(super) fn stick(&mut self, now: Instant) {
        self.is_stuck = true;
        self.stuck_since.get_or_insert(now);
    }

    /// Sends what did not fit before; true when nothing is left.
    pub(super) fn flush(&mut self, now: Instant) -> bool {
        let mut is_stuck = false;
        for target in self.outputs.iter_mut().flatten().chain(&mut self.reply_output) {
            if let Target::Remote(edge) = target {
                is_stuck |= !edge.flush();
            }
        }
        if !is_stuck {
            self.count_blocked(now);
            self.stuck_since = None;
        }
        self.is_stuck = is_stuck;
        !is_stuck
    }

    /// Counts the time for which it was stuck, up to `now`.
    fn count_blocked(&mut self, now: Instant) {
        if let Some(since) = self.stuck_since.replace(now) {
            add(&self.counters.blocked_ns, nanoseconds(now.saturating_duration_since(since)));
        }
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

    /// The next piece of work, given that its outputs have space. Without `now`, no work that only
    /// a time brings.
    pub(super) fn next_step(&self, group: View) -> Option<Work> {
        let is_due = group.now.zip(self.wake_at).is_some_and(|(now, at)| at <= now);
        match (self.life, self.flow) {
            (Life::Done, _) => None,
            (_, Flow::HaveOutput) => Some(Work::Resume),
            (_, Flow::AwaitReply) => self.has_reply().then_some(Work::Reply),
            (_, Flow::NeedInput) if self.is_source() => self.source_step(group),
            (_, Flow::NeedInput) => {
                let step = self.returned_step().or_else(|| self.input_step());
                step.or_else(|| is_due.then_some(Work::Wake))
            }
            // The chunk that has landed is nearest to the end of the stream.
            (_, Flow::InFlight) if is_due => Some(Work::Wake),
            (_, Flow::InFlight) => self.returned_step().or_else(|| {
                let may_take = self.may_take_in_flight(group.may_answer);
                if may_take { self.input_step() } else { None }
            }),
        }
    }

    fn source_step(&self, group: View) -> Option<Work> {
        let begins_to_stop = group.is_draining && !self.is_stopping;
        if !begins_to_stop && self.is_paused(group.now) {
            return None;
        }
        Some(if group.is_draining { Work::StopSource } else { Work::Produce })
    }

    fn input_step(&self) -> Option<Work> {
        let is_ready = |input: &Input| !input.has_ended && input.edge.is_ready();
        if !self.inbox.is_empty() || self.inputs.iter().any(is_ready) {
            Some(Work::Take)
        } else {
            (self.open_inputs == 0).then_some(Work::Finish)
        }
    }

    /// A reply, for a part that takes them at any time.
    fn returned_step(&self) -> Option<Work> {
        (self.takes_replies && self.has_reply()).then_some(Work::Reply)
    }

    fn has_reply(&self) -> bool {
        !self.replies.is_empty() || self.reply_input.as_ref().is_some_and(EdgeReceiver::is_ready)
    }

    /// Finds the next piece of work as [`Self::next_step`] does, and fetches from an edge what it
    /// needs.
    pub(super) fn find_work(&mut self, group: View) -> Option<Work> {
        match self.next_step(group)? {
            Work::Take if self.inbox.is_empty() => self.fetch_input(),
            Work::Reply if self.replies.is_empty() => self.fetch_reply(),
            step => Some(step),
        }
    }

    fn fetch_reply(&mut self) -> Option<Work> {
        match self.reply_input.as_ref()?.take() {
            Taken::Message(Message::Payload(Payload::Chunk(reply))) => {
                self.replies.push_back(reply);
                Some(Work::Reply)
            }
            Taken::Nothing => None,
            Taken::Message(_) | Taken::Truncated => Some(Work::Truncated),
        }
    }

    /// Takes a message from the next of its inputs that has one, in turn.
    fn fetch_input(&mut self) -> Option<Work> {
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
        None
    }

    /// Ends the way of replies when the part has ended.
    pub(super) fn close_replies(&mut self) {
        self.replies.clear();
        if let Some(edge) = self.reply_input.take() {
            edge.close();
        }
    }

    /// Counts the time that its thread spent waiting, up to `now`.
    pub(super) fn count_wait(&mut self, waited: Duration, now: Instant) {
        if self.is_stuck {
            self.count_blocked(now);
            for target in self.outputs.iter_mut().flatten().chain(&mut self.reply_output) {
                if let Target::Remote(edge) = target {
                    edge.count_blocked();
                }
            }
        } else if self.life != Life::Done {
            add(&self.counters.idle_ns, nanoseconds(waited));
        }
    }

    /// Shows readers the operator's own numbers.
    pub(super) fn publish_counters(&mut self) {
        self.is_dirty = false;
        match &self.body {
            Body::Source(source) => {
                self.counters.publish(source.counters());
                self.counters.publish_inputs(source.named_inputs());
            }
            Body::Operator(operator) => self.counters.publish(operator.counters()),
        }
    }
}

/// What a node needs to know of its group to find its next work.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub(super) is_draining: bool,
    /// Whether callers and readers of standing queries may be answered now.
    pub(super) may_answer: bool,
    /// `None` to leave out work that only a time brings.
    pub(super) now: Option<Instant>,
}
