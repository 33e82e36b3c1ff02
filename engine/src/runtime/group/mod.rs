//! The stage loop: all work of one thread.
//!
//! A thread runs a group of parts and gives the parts turns. A turn is one call of one operator,
//! and then the calls that process the messages of the turn: the most downstream reader first,
//! then the readers of its messages. So each source and each input that has data gets the same
//! number of turns, and at most the output of one call of each part waits inside the group.
//!
//! A part whose output did not fit pauses until the output fits: back-pressure stops parts, not
//! threads. A thread none of whose parts can go on waits on its doorbell. The graph has no cycle,
//! so some part of the run can always go on.
//!
//! The mailbox is read after a message has been fetched and before the message is processed. A
//! query that a part forwards is in the mailbox before the next chunk of the part is in the edge.
//! So the thread sees the query before the thread processes that chunk (see [`crate::query`]).
//!
//! `docs/reference/stage-loop.md` goes through the states and the races step by step.
//!
//! | file | contents |
//! |---|---|
//! | `background` | the turns of work that takes long |
//! | `delivery` | the way of an output to its consumers |
//! | `serve` | queries and their answers |
//! | `sleep` | the wait for work |

mod background;
mod delivery;
mod serve;
mod sleep;

use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crossbeam_utils::CachePadded;

use self::background::BackgroundTurns;
use super::node::Node;
use super::node::step::{GroupState, NodeCall, NodeStep};
use super::queries::allowance::Allowance;
use super::queries::control::Control;
use super::shared::{Phase, Shared};
use super::waits::PUBLISHING;
use crate::channel::{Doorbell, Mailbox};
use crate::error::{RunError, RunErrorCause};
use crate::operator::Output;

/// The parts of one thread, and the state of their loop.
pub(super) struct RunningGroup {
    pub(super) nodes: Vec<Node>,
    pub(super) mailbox: Mailbox<Control>,
    pub(super) bell: Arc<Doorbell>,
    pub(super) shared: Arc<Shared>,
    /// Whether each thread of the run has a core, so that the thread may spin.
    pub(super) may_spin: bool,
    /// Index of the node at work, to name the stage of a panic or a hang.
    pub(super) current: Arc<CachePadded<AtomicUsize>>,
    pub(super) allowance: Arc<Allowance>,
    /// The node whose turn was last.
    turn: usize,
    /// The path of the present turn through the group: each node has processed, or is about to
    /// process, a message of the node before it in the path.
    path: Vec<usize>,
    output: Output,
    pub(super) now: Instant,
    pub(super) seen_phase: Phase,
    /// Number of requests to open files again that the thread has obeyed.
    seen_reopenings: usize,
    pub(super) mail: VecDeque<Control>,
    pub(super) has_watches: bool,
    /// Number of queries of callers that wait at all nodes.
    pub(super) asked: usize,
    /// The node whose callers were served last.
    pub(super) served: usize,
    /// Time of the next publication of the operators' own numbers.
    publish_at: Instant,
    background: BackgroundTurns,
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
            path: Vec::new(),
            output: Output::new(),
            now,
            seen_phase: Phase::Running,
            seen_reopenings: 0,
            mail: VecDeque::new(),
            has_watches: false,
            asked: 0,
            served: 0,
            publish_at: now,
            background: BackgroundTurns::new(),
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
            && (self.seen_phase == Phase::Aborted || !self.nodes.iter().any(Node::is_kept))
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

    /// Gives one part its turn; false if no part has work. Background work comes last, unless it is
    /// late.
    fn take_turn(&mut self) -> Result<bool, RunError> {
        if self.background.is_late(self.now) && self.take_background_turn()? {
            return Ok(true);
        }
        Ok(self.take_foreground_turn()? || self.take_background_turn()?)
    }

    /// Gives the next part that has foreground work its turn; false if no part has such work.
    fn take_foreground_turn(&mut self) -> Result<bool, RunError> {
        for _ in 0..self.nodes.len() {
            // Turns go upstream, so that among parts with work a downstream part comes first.
            self.turn = self.turn.checked_sub(1).unwrap_or(self.nodes.len() - 1);
            if let Some(work) = self.find_work(self.turn, false) {
                self.perform(self.turn, work)?;
                self.follow(self.turn)?;
                self.note_background();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next step of a node. `is_idle`: whether no other node has work, so that this one may
    /// work in the background. Without `now`, the answer is the time that the node waits for.
    fn next_step(&self, index: usize, now: Option<Instant>, is_idle: bool) -> NodeStep {
        if self.nodes[index].outputs.is_stuck() || self.has_unread_output(index) {
            return NodeStep::Wait;
        }
        self.nodes[index].next_step(GroupState {
            is_draining: self.seen_phase >= Phase::Draining,
            may_answer: self.allowance.is_open(),
            is_idle,
            now,
        })
    }

    /// The work that a node can do now. The message of the work, if any, has been fetched.
    fn find_work(&mut self, index: usize, is_idle: bool) -> Option<NodeCall> {
        self.nodes[index].flush(self.now);
        match self.next_step(index, Some(self.now), is_idle) {
            NodeStep::Now(work) => self.nodes[index].fetch(work),
            NodeStep::At(_) | NodeStep::Wait => None,
        }
    }

    /// Lets the readers of a node in this group process its messages, and the readers of those
    /// nodes, and so on. Only messages are followed: an operator that has more output than one call
    /// should write goes on in its own turn.
    fn follow(&mut self, index: usize) -> Result<(), RunError> {
        self.path.push(index);
        while let Some(&index) = self.path.last() {
            if let Some(target) = self.next_reader(index) {
                self.look_at_phase()?;
                self.perform(target, NodeCall::Take)?;
                self.path.push(target);
            } else {
                self.path.pop();
            }
        }
        Ok(())
    }

    /// The most downstream node of this group that has a message from `index` and can process the
    /// message.
    fn next_reader(&mut self, index: usize) -> Option<usize> {
        for position in 0..self.nodes[index].outputs.local_nodes().len() {
            let target = self.nodes[index].outputs.local_nodes()[position];
            let has_message = self.nodes[target].inputs.has_local_message();
            if has_message && self.find_work(target, false) == Some(NodeCall::Take) {
                return Some(target);
            }
        }
        None
    }

    /// Whether a reader of the node in this group still has messages to process.
    fn has_unread_output(&self, index: usize) -> bool {
        let mut inputs = self.nodes[index].outputs.local_inputs();
        inputs.any(|input| self.nodes[input.node].inputs.has_unread(input.lane))
    }

    fn perform(&mut self, index: usize, work: NodeCall) -> Result<(), RunError> {
        self.serve_mailbox();
        self.answer_asked();
        // The mailbox may have held a query that was forwarded before the message. The query waits
        // for the work in flight, and the message stays behind the query.
        if work == NodeCall::Take && !self.nodes[index].may_take(self.allowance.is_open()) {
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
        if let Some(piece) = self.nodes[index].take_done() {
            self.send_done(index, piece);
        }
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

    /// Shows readers the counters of the operators that have worked since the last publication.
    fn publish(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| node.has_news()) {
            node.publish_counters();
        }
        self.publish_at = self.now + PUBLISHING;
    }

    /// Shows readers the last counters of the operators after a failure.
    pub(super) fn publish_last(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| !node.is_done()) {
            node.flush_latency();
            // An operator that has panicked may panic again; then its last publication stays.
            let _ = catch_unwind(AssertUnwindSafe(|| node.publish_counters()));
        }
    }
}
