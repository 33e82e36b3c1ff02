//! The stage loop: all work of one thread.
//!
//! A thread runs a group of parts and gives them turns. In its turn a part does one piece of
//! work, one call of its operator. Then the parts that got messages from it process them, the
//! most downstream ones first, and then the parts that got messages from these. After that the
//! next part has its turn. So every source and input of a thread that has data gets the same
//! number of turns, and at most the output of one call of each part waits inside the group. Work
//! in the background has its turn when no part has other work, or when it has waited for long.
//!
//! A part whose output did not fit pauses until it fits: back-pressure stops parts, not threads.
//! When no part of the thread can go on, the thread waits on its doorbell; since the graph has no
//! cycle, some part of the run always can.
//!
//! The mailbox is read after an input has been taken and before it is processed. So a query that
//! a part forwarded before it sent a chunk is seen before that chunk is processed (see
//! [`crate::query`]). The answers are in `serve`.

use std::collections::VecDeque;
use std::hint::spin_loop;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use super::allowance::Allowance;
use super::control::Control;
use super::node::Node;
use super::outputs::LocalInput;
use super::shared::{Phase, Shared};
use super::step::{Step, View, Work};
use crate::batch::{Chunk, Payload};
use crate::channel::{Doorbell, Mailbox, Message};
use crate::error::{RunError, RunErrorCause};
use crate::operator::Output;

/// Time that a thread spins before it parks: about the cost of waking it.
const SPIN: Duration = Duration::from_micros(50);
/// Rounds of a spinning thread between two readings of the clock.
const LOOKS_PER_CLOCK: u32 = 64;
/// Time between two publications of the operators' own numbers.
const PUBLISHING: Duration = Duration::from_millis(100);
/// Longest wait, after which its time is counted and the thread waits again.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Longest wait of work in the background for other work of its thread, after short work.
const BACKGROUND_WAIT: Duration = Duration::from_micros(500);
/// After longer work, the wait is this many times as long as that. So other work, which gives
/// other threads work, has most of the time.
const BACKGROUND_WAITS: u32 = 3;
/// Time between two checks of queries that wait for the allowance of another thread.
const ALLOWANCE_LOOK: Duration = Duration::from_micros(500);

pub(super) struct RunningGroup {
    pub(super) nodes: Vec<Node>,
    pub(super) mailbox: Mailbox<Control>,
    pub(super) bell: Arc<Doorbell>,
    pub(super) shared: Arc<Shared>,
    /// Whether there is a core for each thread of the run.
    pub(super) may_spin: bool,
    /// The node at work, to name the stage of a panic or a hang.
    pub(super) current: Arc<CachePadded<AtomicUsize>>,
    pub(super) allowance: Arc<Allowance>,
    /// The node whose turn was last.
    turn: usize,
    /// The nodes that process the messages of one turn, each after the node that sent them.
    line: Vec<usize>,
    output: Output,
    pub(super) now: Instant,
    pub(super) seen_phase: Phase,
    /// Requests to open files again that were obeyed.
    seen_reopenings: usize,
    pub(super) mail: VecDeque<Control>,
    pub(super) has_watches: bool,
    /// Queries of callers that wait, at all nodes.
    pub(super) asked: usize,
    /// The node whose callers were served last.
    pub(super) served: usize,
    /// Time of the next publication of the operators' own numbers.
    publish_at: Instant,
    /// Time at which work in the background is done before other work, if there is such work.
    background_at: Option<Instant>,
    /// How long work in the background waits for other work.
    background_wait: Duration,
    /// The node that worked in the background last.
    background_turn: usize,
}

impl RunningGroup {
    pub(super) fn new(
        nodes: Vec<Node>,
        mailbox: Mailbox<Control>,
        bell: Arc<Doorbell>,
        shared: Arc<Shared>,
        allowance: Arc<Allowance>,
    ) -> Self {
        let now = Instant::now();
        Self {
            nodes,
            mailbox,
            bell,
            shared,
            may_spin: false,
            current: Arc::default(),
            allowance,
            turn: 0,
            line: Vec::new(),
            output: Output::new(),
            now,
            seen_phase: Phase::Running,
            seen_reopenings: 0,
            mail: VecDeque::new(),
            has_watches: false,
            asked: 0,
            served: 0,
            publish_at: now,
            background_at: None,
            background_wait: BACKGROUND_WAIT,
            background_turn: 0,
        }
    }

    /// Runs until every part has ended, or the run is aborted.
    pub(super) fn run(&mut self) -> Result<(), RunError> {
        self.bell.own();
        loop {
            self.look_at_phase()?;
            self.look_at_reopenings()?;
            if self.take_turn()? {
                continue;
            }
            self.serve_mailbox();
            if self.is_finished() {
                self.answer_last();
                return Ok(());
            }
            if !self.answer_at_leisure() {
                self.wait();
            }
        }
    }

    fn is_finished(&self) -> bool {
        self.nodes.iter().all(|node| node.is_done() && !node.outputs.is_stuck())
    }

    fn look_at_phase(&mut self) -> Result<(), RunError> {
        self.shared.keep_deadline();
        self.seen_phase = self.shared.phase();
        if self.seen_phase == Phase::Aborted
            && let Some(node) = self.nodes.iter().find(|node| !node.is_done())
        {
            return Err(node.error(RunErrorCause::Aborted));
        }
        Ok(())
    }

    fn look_at_reopenings(&mut self) -> Result<(), RunError> {
        let requested = self.shared.reopenings();
        if mem::replace(&mut self.seen_reopenings, requested) != requested {
            for (index, node) in self.nodes.iter_mut().enumerate() {
                // Relaxed: only read to name the stage of a hang or a panic.
                self.current.store(index, Ordering::Relaxed);
                node.reopen()?;
            }
        }
        Ok(())
    }

    /// Gives the next part that has work its turn; false if there is none. Work in the background
    /// comes last, or when it has waited for long.
    fn take_turn(&mut self) -> Result<bool, RunError> {
        let is_late = self.background_at.is_some_and(|at| at <= self.now);
        if is_late && self.work_in_background()? {
            return Ok(true);
        }
        for _ in 0..self.nodes.len() {
            // Downwards, so that of parts with work the downstream ones come first.
            self.turn = self.turn.checked_sub(1).unwrap_or(self.nodes.len() - 1);
            if let Some(work) = self.find_work(self.turn, false) {
                self.perform(self.turn, work)?;
                self.follow(self.turn)?;
                self.note_background();
                return Ok(true);
            }
        }
        self.work_in_background()
    }

    /// Work in the background waits from the turn on that brought it: the turns after that may give
    /// other threads work, too.
    fn note_background(&mut self) {
        let late = self.now + self.background_wait;
        let has_some = self.nodes.iter().any(Node::has_background);
        self.background_at = has_some.then(|| self.background_at.unwrap_or(late));
    }

    /// Lets a part work in the background; false if there is none with such work.
    fn work_in_background(&mut self) -> Result<bool, RunError> {
        let (nodes, last, begin) = (self.nodes.len(), self.background_turn, self.now);
        let mut has_worked = false;
        for index in (1..=nodes).map(|step| (last + step) % nodes) {
            // Its next step may be to take input, which comes after the work then.
            if self.nodes[index].has_background() && self.find_work(index, true).is_some() {
                self.background_turn = index;
                self.perform(index, Work::Wake)?;
                self.follow(index)?;
                has_worked = true;
                break;
            }
        }
        self.background_wait = (BACKGROUND_WAITS * (self.now - begin)).max(BACKGROUND_WAIT);
        self.background_at = None;
        self.note_background();
        Ok(has_worked)
    }

    /// The next step of a node, if no other one has work when the group `is_idle`; without `now`,
    /// the time that it waits for.
    fn next_step(&self, index: usize, now: Option<Instant>, is_idle: bool) -> Step {
        if self.nodes[index].outputs.is_stuck() || self.has_unread_output(index) {
            return Step::Wait;
        }
        self.nodes[index].next_step(View {
            is_draining: self.seen_phase >= Phase::Draining,
            may_answer: self.allowance.is_open(),
            is_idle,
            now,
        })
    }

    /// The work of a node now, whose message has been fetched.
    fn find_work(&mut self, index: usize, is_idle: bool) -> Option<Work> {
        self.nodes[index].flush(self.now);
        match self.next_step(index, Some(self.now), is_idle) {
            Step::Now(work) => self.nodes[index].fetch(work),
            Step::At(_) | Step::Wait => None,
        }
    }

    /// Processes the messages that a node has sent to others of this group, and the messages that
    /// these send. Only messages are followed: an operator with more output than one call should
    /// write goes on in its own turn.
    fn follow(&mut self, index: usize) -> Result<(), RunError> {
        self.line.push(index);
        while let Some(&index) = self.line.last() {
            if let Some(target) = self.next_reader(index) {
                self.look_at_phase()?;
                self.perform(target, Work::Take)?;
                self.line.push(target);
            } else {
                self.line.pop();
            }
        }
        Ok(())
    }

    /// The most downstream node of this group that has a message from `index` and can process it.
    fn next_reader(&mut self, index: usize) -> Option<usize> {
        for position in 0..self.nodes[index].outputs.local_nodes().len() {
            let target = self.nodes[index].outputs.local_nodes()[position];
            let has_message = self.nodes[target].inputs.has_local_message();
            if has_message && self.find_work(target, false) == Some(Work::Take) {
                return Some(target);
            }
        }
        None
    }

    /// Whether a reader of the node in this group still has messages of it.
    fn has_unread_output(&self, index: usize) -> bool {
        let targets = self.nodes[index].outputs.local_nodes();
        targets.iter().any(|&target| self.nodes[target].inputs.has_local_message())
    }

    fn perform(&mut self, index: usize, work: Work) -> Result<(), RunError> {
        self.serve_mailbox();
        self.answer_asked();
        // The mailbox may have had a query that was forwarded before the message; it waits for
        // the work in flight, and so does the message.
        if work == Work::Take && !self.nodes[index].may_take(self.allowance.is_open()) {
            return Ok(());
        }
        // Relaxed: only read to name the stage of a hang or, on the same thread, of a panic.
        self.current.store(index, Ordering::Relaxed);
        let begin = self.now;
        let node = &mut self.nodes[index];
        let is_data = node.run(work, begin, &mut self.output)?;
        self.now = Instant::now();
        self.allowance.earn(node.count_work(is_data, begin, self.now));
        self.pass_on(index)?;
        if self.nodes[index].is_finished() {
            self.end(index);
        }
        if self.nodes[index].has_lost_need() {
            self.shared.release_sink();
        }
        self.serve_held(index);
        self.serve_watches(index);
        if self.now >= self.publish_at {
            self.publish();
        }
        Ok(())
    }

    /// Shows readers the numbers of the operators that have worked since the last time.
    fn publish(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| node.has_news()) {
            node.publish_counters();
        }
        self.publish_at = self.now + PUBLISHING;
    }

    /// Shows readers the last numbers of the operators after a failure.
    pub(super) fn publish_last(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| !node.is_done()) {
            node.flush_latency();
            // An operator that has panicked may panic again; its last numbers stay then.
            let _ = catch_unwind(AssertUnwindSafe(|| node.publish_counters()));
        }
    }

    /// Moves the operator's output to its consumers.
    fn pass_on(&mut self, index: usize) -> Result<(), RunError> {
        let mut sent = mem::take(&mut self.output.sent);
        for (mut port, payload) in sent.drain(..) {
            if let Payload::Batch(batch) = &payload {
                self.nodes[index].check_columns(port, &batch.records)?;
                // Ports for chunks come first; a part that sends both numbers each kind from 0.
                port += self.nodes[index].chunk_ports();
            }
            self.nodes[index].count_out(payload.items());
            self.send(index, port, payload);
        }
        self.output.sent = sent;
        let mut replies = mem::take(&mut self.output.replies);
        for reply in replies.drain(..) {
            self.send_reply(index, reply);
        }
        self.output.replies = replies;
        for commit in self.output.commits.drain(..) {
            let node = &self.nodes[index];
            self.shared.commit_at_end(node.label().to_owned(), node.operator(), commit);
        }
        if let Some(error) = self.output.late_failure.take() {
            self.shared.fail_late(self.nodes[index].error(RunErrorCause::Late(error)));
        }
        Ok(())
    }

    /// Gives `payload` to every consumer of an output port.
    fn send(&mut self, index: usize, port: usize, payload: Payload) {
        for other in 1..self.nodes[index].outputs.consumers(port) {
            let shared = payload.share().expect("chunks have one consumer: the next part");
            self.deliver(index, port, other, Message::Payload(shared));
        }
        self.deliver(index, port, 0, Message::Payload(payload));
    }

    fn deliver(&mut self, index: usize, port: usize, consumer: usize, message: Message) {
        match self.nodes[index].outputs.pass_locally(port, consumer) {
            Some(LocalInput { node, port }) => self.nodes[node].inputs.receive(port, message),
            None => self.nodes[index].outputs.send(port, consumer, message, self.now),
        }
    }

    fn send_reply(&mut self, index: usize, reply: Chunk) {
        match self.nodes[index].outputs.local_part_before() {
            Some(node) if self.nodes[node].is_done() => {}
            Some(node) => self.nodes[node].inputs.receive_reply(reply),
            None => self.nodes[index].outputs.send_reply(reply, self.now),
        }
    }

    /// Sends the end markers of a node that has finished.
    fn end(&mut self, index: usize) {
        // Before the end markers, so that later parts still run when a forwarded query reaches
        // them.
        self.publish_watches(index);
        self.nodes[index].end();
        let ending = self.nodes[index].ending();
        for port in 0..self.nodes[index].outputs.ports() {
            for consumer in 0..self.nodes[index].outputs.consumers(port) {
                self.deliver(index, port, consumer, Message::End(ending));
            }
        }
    }

    /// Waits for work, until rung or until a time that a node waits for.
    fn wait(&mut self) {
        self.allowance.forgive();
        let begin = Instant::now();
        for node in &mut self.nodes {
            node.flush_latency();
        }
        let has_news = self.nodes.iter().any(Node::has_news);
        if has_news && begin >= self.publish_at {
            self.publish();
        }
        let publish_at = (has_news && begin < self.publish_at).then_some(self.publish_at);
        let look = begin + WAIT_MAX;
        let until = self.wake_time().into_iter().chain(publish_at).chain([look]).min();
        if !(self.may_spin && self.spin(begin, until)) {
            let timeout = until.map(|at| at.saturating_duration_since(Instant::now()));
            let bell = Arc::clone(&self.bell);
            bell.answer_door(|| self.is_ready(), timeout);
        }
        self.now = Instant::now();
        for node in &mut self.nodes {
            node.count_wait(self.now - begin, self.now);
        }
    }

    /// End of the wait if no one rings: the time of a source or an operator, the deadline of a
    /// drain, or the next check of another thread's credit for queries.
    fn wake_time(&self) -> Option<Instant> {
        let deadline = match self.seen_phase {
            Phase::Draining => self.shared.deadline(),
            Phase::Running | Phase::Aborted => None,
        };
        let waits_for_credit =
            self.nodes.iter().any(|node| node.tickets.asked() > 0 && node.may_be_asked());
        let look = waits_for_credit.then(|| Instant::now() + ALLOWANCE_LOOK);
        let steps = (0..self.nodes.len()).map(|index| self.next_step(index, None, true));
        let times = steps.filter_map(|step| match step {
            Step::At(time) => Some(time),
            Step::Now(_) | Step::Wait => None,
        });
        times.chain(deadline).chain(look).min()
    }

    /// Spins for a while; true as soon as there is work.
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
        let has_requests = self.shared.phase() != self.seen_phase
            || self.shared.reopenings() != self.seen_reopenings;
        if !self.mailbox.is_empty() || has_requests {
            return true;
        }
        self.nodes.iter().enumerate().any(|(index, node)| {
            node.outputs.can_flush()
                || node.wants_publishing()
                || node.can_answer_asked()
                || matches!(self.next_step(index, None, true), Step::Now(_))
        })
    }
}
