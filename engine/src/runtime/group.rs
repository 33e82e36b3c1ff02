//! The stage loop: everything that one thread does.
//!
//! A thread runs a group of parts. It looks for the most downstream part that can do something,
//! does it, hands the output on, and looks again; so what has been produced is consumed before more
//! is produced, and a burst is bounded by what one call of an operator writes. A part whose output
//! did not fit does nothing until it does: back-pressure stops parts, not threads, and since the
//! graph has no cycle some part can always go on. When no part can, the thread waits on its
//! doorbell.
//!
//! Queries are looked for after an input has been taken and before it is processed. So a query that
//! a part sent on before it sent a chunk is seen before that chunk is processed (see
//! [`crate::query`]).

use std::hint::spin_loop;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::control::{AnswerTo, Control, MAILBOX_QUERIES_MAX, Ticket};
use super::node::{Life, Node, Target, Work};
use super::shared::{Phase, Shared};
use crate::batch::{Chunk, Origin, Payload};
use crate::channel::{Doorbell, Mailbox, Message, add};
use crate::error::{RunError, RunErrorCause};
use crate::metrics::nanoseconds;
use crate::operator::{Body, OperatorError, Output, SourceFlow};
use crate::query::{QueryError, Response};

/// How long a thread with a core of its own looks for work before it parks: about what waking it
/// would cost.
const SPIN: Duration = Duration::from_micros(50);
/// Looks between two readings of the clock while spinning.
const LOOKS_PER_CLOCK: u32 = 64;

pub(super) struct Group {
    pub(super) nodes: Vec<Node>,
    pub(super) mailbox: Mailbox<Control>,
    pub(super) bell: Arc<Doorbell>,
    pub(super) shared: Arc<Shared>,
    /// Whether the thread has a core for itself.
    pub(super) may_spin: bool,
    /// The node at work, for whoever has to say which one panicked or hangs.
    pub(super) current: Arc<AtomicUsize>,
    output: Output,
    now: Instant,
    seen_phase: Phase,
    has_watches: bool,
}

impl Group {
    pub(super) fn new(
        nodes: Vec<Node>,
        mailbox: Mailbox<Control>,
        bell: Arc<Doorbell>,
        shared: Arc<Shared>,
        may_spin: bool,
    ) -> Self {
        Self {
            nodes,
            mailbox,
            bell,
            shared,
            may_spin,
            current: Arc::new(AtomicUsize::new(0)),
            output: Output::new(),
            now: Instant::now(),
            seen_phase: Phase::Running,
            has_watches: false,
        }
    }

    /// Runs until every part has ended, or the run is aborted.
    pub(super) fn run(&mut self) -> Result<(), RunError> {
        self.bell.own();
        loop {
            self.look_at_phase()?;
            if self.step()? {
                continue;
            }
            self.serve_mailbox();
            if self.is_finished() {
                return Ok(());
            }
            self.wait();
        }
    }

    fn is_finished(&self) -> bool {
        self.nodes.iter().all(|node| node.life == Life::Done && !node.is_stuck)
    }

    fn look_at_phase(&mut self) -> Result<(), RunError> {
        self.seen_phase = self.shared.phase();
        if self.seen_phase == Phase::Draining
            && self.shared.deadline().is_some_and(|deadline| deadline <= Instant::now())
        {
            self.shared.advance(Phase::Aborted);
            self.seen_phase = Phase::Aborted;
        }
        if self.seen_phase == Phase::Aborted
            && let Some(node) = self.nodes.iter().find(|node| node.life != Life::Done)
        {
            return Err(node.error(RunErrorCause::Aborted));
        }
        Ok(())
    }

    /// Does one piece of work, and what follows from it in a chain of nodes; false if there was
    /// none.
    fn step(&mut self) -> Result<bool, RunError> {
        for index in (0..self.nodes.len()).rev() {
            if let Some(work) = self.find_work(index) {
                self.perform(index, work)?;
                self.follow_chain(index)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn find_work(&mut self, index: usize) -> Option<Work> {
        if self.nodes[index].is_stuck && !self.nodes[index].flush() {
            return None;
        }
        if self.has_unread_output(index) {
            return None;
        }
        self.nodes[index].find_work(self.seen_phase >= Phase::Draining, self.now)
    }

    /// While a node has one consumer in this group and sent it something, that is the most
    /// downstream work: found without a search.
    fn follow_chain(&mut self, mut index: usize) -> Result<(), RunError> {
        while let &[target] = self.nodes[index].local_targets.as_slice()
            && !self.nodes[target].inbox.is_empty()
            && let Some(work) = self.find_work(target)
        {
            self.perform(target, work)?;
            index = target;
        }
        Ok(())
    }

    /// Whether a reader of the node in this group has not taken everything yet.
    fn has_unread_output(&self, index: usize) -> bool {
        let targets = &self.nodes[index].local_targets;
        targets.iter().any(|&target| !self.nodes[target].inbox.is_empty())
    }

    fn perform(&mut self, index: usize, work: Work) -> Result<(), RunError> {
        self.serve_mailbox();
        // Relaxed: only read to name the culprit of a hang or, on the same thread, of a panic.
        self.current.store(index, Ordering::Relaxed);
        let begin = self.now;
        let node = &mut self.nodes[index];
        let is_data = run_work(node, work, begin, &mut self.output)?;
        self.now = Instant::now();
        add(&node.counters.busy_ns, nanoseconds(self.now - begin));
        if is_data && node.is_at_boundary() {
            node.latency.record(self.now.saturating_duration_since(node.origin.entered));
        }
        self.pass_on(index);
        let node = &self.nodes[index];
        if node.life == Life::Finishing && node.is_at_boundary() {
            self.end(index);
        }
        self.serve_held(index);
        self.serve_watches(index);
        Ok(())
    }

    /// Moves what the operator wrote to its consumers.
    fn pass_on(&mut self, index: usize) {
        let mut sent = mem::take(&mut self.output.sent);
        for (port, payload) in sent.drain(..) {
            self.nodes[index].counters.count_out(payload.items());
            self.send(index, port, payload);
        }
        self.output.sent = sent;
        let mut replies = mem::take(&mut self.output.replies);
        for reply in replies.drain(..) {
            self.send_reply(index, reply);
        }
        self.output.replies = replies;
    }

    /// Gives `payload` to every consumer of an output port.
    fn send(&mut self, index: usize, port: usize, payload: Payload) {
        for other in 1..self.nodes[index].outputs[port].len() {
            let shared = payload.share().expect("chunks have one consumer: the next part");
            self.deliver(index, port, other, Message::Payload(shared));
        }
        self.deliver(index, port, 0, Message::Payload(payload));
    }

    fn deliver(&mut self, index: usize, port: usize, consumer: usize, message: Message) {
        let node = &mut self.nodes[index];
        match &mut node.outputs[port][consumer] {
            Target::Remote(edge) => node.is_stuck |= !edge.push(message),
            Target::Local { node, port, pushed } => {
                *pushed += 1;
                let (node, port) = (*node, *port);
                self.nodes[node].inbox.push_back((port, message));
            }
        }
    }

    fn send_reply(&mut self, index: usize, reply: Chunk) {
        let node = &mut self.nodes[index];
        match &mut node.reply_output {
            Some(Target::Remote(edge)) => {
                node.is_stuck |= !edge.push(Message::Payload(Payload::Chunk(reply)));
            }
            Some(Target::Local { node, .. }) => {
                let node = *node;
                if self.nodes[node].life != Life::Done {
                    self.nodes[node].replies.push_back(reply);
                }
            }
            None => panic!(
                "`{}` sent a reply, but is its operator's first part",
                self.nodes[index].label
            ),
        }
    }

    /// Sends the end markers of a node that has finished.
    fn end(&mut self, index: usize) {
        for slot in &self.nodes[index].watches {
            slot.want();
        }
        // Before the end markers, so that the parts behind still run when such a query reaches
        // them.
        self.serve_watches(index);
        let node = &mut self.nodes[index];
        node.life = Life::Done;
        node.wake_at = None;
        node.close_replies();
        let counters = match &node.body {
            Body::Source(source) => source.counters(),
            Body::Operator(operator) => operator.counters(),
        };
        node.latency.flush();
        node.counters.finish(counters);
        for port in 0..self.nodes[index].outputs.len() {
            for consumer in 0..self.nodes[index].outputs[port].len() {
                self.deliver(index, port, consumer, Message::End);
            }
        }
    }

    fn serve_mailbox(&mut self) {
        if self.mailbox.is_empty() && !self.has_watches {
            return;
        }
        while let Some(control) = self.mailbox.take() {
            match control {
                Control::Query { part, ticket } => self.accept(part, ticket),
                Control::Watch { part, slot } => {
                    // One reference is ours: a slot without another has lost its reader.
                    self.nodes[part].watches.retain(|slot| Arc::strong_count(slot) > 1);
                    self.nodes[part].watches.push(slot);
                    self.has_watches = true;
                }
            }
        }
        if self.has_watches {
            for index in 0..self.nodes.len() {
                self.serve_watches(index);
            }
        }
    }

    /// Answers a query now, or keeps it until its time has come.
    fn accept(&mut self, index: usize, ticket: Ticket) {
        let node = &mut self.nodes[index];
        if node.can_answer(&ticket) {
            self.answer(index, ticket);
        } else if node.held.len() < MAILBOX_QUERIES_MAX {
            node.held.push(ticket);
        } else {
            let (stage, limit) = (node.label.clone(), MAILBOX_QUERIES_MAX);
            ticket.answer_to.give(Err(QueryError::Busy { stage, limit }));
        }
    }

    fn serve_held(&mut self, index: usize) {
        if self.nodes[index].held.is_empty() || !self.nodes[index].is_at_boundary() {
            return;
        }
        for ticket in mem::take(&mut self.nodes[index].held) {
            self.accept(index, ticket);
        }
    }

    /// Renews the standing answers that were read since the last time.
    fn serve_watches(&mut self, index: usize) {
        if !self.nodes[index].wants_publishing() {
            return;
        }
        for position in 0..self.nodes[index].watches.len() {
            let slot = Arc::clone(&self.nodes[index].watches[position]);
            if slot.take_wish() {
                let request = slot.request.clone();
                let answer_to = AnswerTo::Watch(slot);
                self.answer(index, Ticket { request, carried: None, after: None, answer_to });
            }
        }
    }

    fn answer(&mut self, index: usize, ticket: Ticket) {
        let Ticket { request, carried, answer_to, .. } = ticket;
        let response = match &self.nodes[index].body {
            Body::Operator(operator) => operator.query(&request, carried),
            Body::Source(_) => Err(QueryError::unsupported(&request, &[])),
        };
        let carried = match response {
            Ok(Response::Forward(carried)) => Some(carried),
            Ok(Response::Answer(rows)) => return answer_to.give(Ok(Box::new(|| rows))),
            Ok(Response::Compute(computation)) => return answer_to.give(Ok(computation)),
            Err(error) => return answer_to.give(Err(error)),
        };
        match &self.nodes[index].outputs[0][0] {
            Target::Remote(edge) => {
                let after = Some(edge.pushed());
                let next = self.nodes[index].next_part.as_ref();
                next.expect("only a part with a successor forwards a query").send_query(Ticket {
                    request,
                    carried,
                    after,
                    answer_to,
                });
            }
            Target::Local { node, pushed, .. } => {
                let (next, after) = (*node, Some(*pushed));
                self.accept(next, Ticket { request, carried, after, answer_to });
            }
        }
    }

    /// Waits for anything that could give a node work.
    fn wait(&mut self) {
        for node in &mut self.nodes {
            node.latency.flush();
        }
        let begin = Instant::now();
        let until = self.wake_time();
        if !(self.may_spin && self.spin(begin, until)) {
            let timeout = until.map(|at| at.saturating_duration_since(Instant::now()));
            let bell = Arc::clone(&self.bell);
            bell.answer_door(|| self.is_ready(), timeout);
        }
        self.now = Instant::now();
        for node in &mut self.nodes {
            node.count_wait(self.now - begin);
            node.wake_source(self.now);
        }
    }

    /// When the wait must end though nobody rings: a source becomes active, an operator wants to be
    /// called, or the deadline of a drain passes.
    fn wake_time(&self) -> Option<Instant> {
        let deadline = match self.seen_phase {
            Phase::Draining => self.shared.deadline(),
            Phase::Running | Phase::Aborted => None,
        };
        // A node that waits for space, or for its reader, is not called before it is rung for.
        let nodes = self.nodes.iter().enumerate();
        let free = nodes.filter(|&(index, node)| !node.is_stuck && !self.has_unread_output(index));
        free.filter_map(|(_, node)| node.wake_time()).chain(deadline).min()
    }

    /// Looks for work for a while; true if there is some.
    fn spin(&self, begin: Instant, until: Option<Instant>) -> bool {
        loop {
            for _ in 0..LOOKS_PER_CLOCK {
                if self.is_ready() {
                    return true;
                }
                spin_loop();
            }
            let now = Instant::now();
            if until.is_some_and(|at| at <= now) {
                return true;
            }
            if now.duration_since(begin) > SPIN {
                return false;
            }
        }
    }

    fn is_ready(&self) -> bool {
        if !self.mailbox.is_empty() || self.shared.phase() != self.seen_phase {
            return true;
        }
        let is_draining = self.seen_phase >= Phase::Draining;
        self.nodes.iter().enumerate().any(|(index, node)| {
            node.can_flush()
                || node.wants_publishing()
                || (!node.is_stuck && !self.has_unread_output(index) && node.has_work(is_draining))
        })
    }
}

/// Does `work` at `node`; true if data was processed, so that its latency counts.
fn run_work(
    node: &mut Node,
    work: Work,
    begin: Instant,
    output: &mut Output,
) -> Result<bool, RunError> {
    if work == Work::Truncated {
        return Err(node.error(RunErrorCause::Truncated));
    }
    let is_running = node.life == Life::Running;
    let (result, is_data) = match &mut node.body {
        Body::Source(source) => {
            output.set_origin(Origin { entered: begin, ..node.origin });
            let flow = match work {
                Work::StopSource => source.stop(output),
                _ => source.next(output),
            };
            node.counters.record_progress(source.progress());
            return produced(node, flow, output).map(|()| false);
        }
        Body::Operator(operator) => match work {
            Work::Take => {
                node.taken += 1;
                let (port, message) = node.inbox.pop_front().expect("it was found there");
                let Message::Payload(payload) = message else {
                    node.open_inputs -= 1;
                    return Ok(false);
                };
                node.counters.count_in(payload.items());
                if let Some(origin) = payload.origin() {
                    node.origin = origin;
                }
                output.set_origin(node.origin);
                (operator.process(port, payload, output), true)
            }
            Work::Resume => {
                output.set_origin(node.origin);
                (operator.resume(output), is_running)
            }
            Work::Reply => {
                output.set_origin(node.origin);
                let reply = node.replies.pop_front().expect("it was found there");
                (operator.reply(reply, output), is_running)
            }
            Work::Wake => {
                output.set_origin(Origin { entered: begin, ..node.origin });
                (operator.wake(begin, output), false)
            }
            Work::Finish => {
                node.life = Life::Finishing;
                output.set_origin(node.origin);
                (operator.finish(output), false)
            }
            Work::Produce | Work::StopSource | Work::Truncated => {
                unreachable!("sources produce, and truncation was handled")
            }
        },
    };
    node.flow = result.map_err(|error| node.error(RunErrorCause::Failed(error)))?;
    if let Body::Operator(operator) = &node.body {
        node.wake_at = operator.wake_at();
    }
    Ok(is_data)
}

/// Numbers the batches that a source sent, and notes when to call it again.
fn produced(
    node: &mut Node,
    flow: Result<SourceFlow, OperatorError>,
    output: &mut Output,
) -> Result<(), RunError> {
    for (_, payload) in &mut output.sent {
        payload.set_sequence(node.origin.sequence);
        node.origin.sequence += 1;
    }
    match flow.map_err(|error| node.error(RunErrorCause::Failed(error)))? {
        SourceFlow::HaveOutput => node.wake_at = None,
        SourceFlow::Idle(wait) => node.wake_at = Some(Instant::now() + wait),
        SourceFlow::AwaitReadable(_) => {
            node.wake_at = Some(Instant::now() + Duration::from_millis(2));
        }
        SourceFlow::Finished => node.life = Life::Finishing,
    }
    Ok(())
}
