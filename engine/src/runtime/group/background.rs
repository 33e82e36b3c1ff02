//! Work in the background: its turns, and its wait for the other work of its thread.
//!
//! A part with [`Flow::Background`](crate::operator::Flow::Background) has work that takes long.
//! Foreground work goes first, because other threads may wait for its output. Foreground work that
//! never pauses would keep background work off for ever. So background work becomes *late* after a
//! wait, and late work goes before one foreground turn.

use std::time::{Duration, Instant};

use super::super::node::Node;
use super::super::node::step::NodeCall;
use super::super::waits::{BACKGROUND_WAIT_FACTOR, BACKGROUND_WAIT_MIN};
use super::RunningGroup;
use crate::error::RunError;

/// The turns of the background work of one group.
pub(super) struct BackgroundTurns {
    /// Time from which on background work goes before foreground work; `None` if no part has
    /// background work.
    late_at: Option<Instant>,
    /// Wait of background work before it is late.
    wait: Duration,
    /// Index of the node that worked in the background last.
    last: usize,
}

impl BackgroundTurns {
    pub(super) fn new() -> Self {
        Self { late_at: None, wait: BACKGROUND_WAIT_MIN, last: 0 }
    }

    /// Whether background work has waited for its whole wait.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.late_at.is_some_and(|late_at| late_at <= now)
    }

    /// Notes whether a part has background work. The wait begins with the turn that brought the
    /// work and goes on through later turns.
    fn note(&mut self, has_work: bool, now: Instant) {
        let late_at = self.late_at.unwrap_or(now + self.wait);
        self.late_at = has_work.then_some(late_at);
    }

    /// Ends a background turn that took `duration`. The next wait begins.
    fn end_turn(&mut self, duration: Duration) {
        self.wait = (BACKGROUND_WAIT_FACTOR * duration).max(BACKGROUND_WAIT_MIN);
        self.late_at = None;
    }
}

impl RunningGroup {
    /// Notes whether the last turn has brought background work or has ended it.
    pub(super) fn note_background(&mut self) {
        let has_work = self.nodes.iter().any(Node::has_background);
        self.background.note(has_work, self.now);
    }

    /// Gives one part a turn in the background; false if no part can work there now.
    pub(super) fn take_background_turn(&mut self) -> Result<bool, RunError> {
        let begin = self.now;
        let worker = self.next_background_node();
        if let Some(index) = worker {
            self.background.last = index;
            self.perform(index, NodeCall::Wake)?;
            self.follow(index)?;
        }
        self.background.end_turn(self.now - begin);
        self.note_background();
        Ok(worker.is_some())
    }

    /// The next node, in turn, that can work in the background.
    fn next_background_node(&mut self) -> Option<usize> {
        let (nodes, last) = (self.nodes.len(), self.background.last);
        // A node whose next step is another one, such as to take a message, can work in the
        // background, too: that step follows in a foreground turn.
        (1..=nodes).map(|step| (last + step) % nodes).find(|&index| {
            self.nodes[index].has_background() && self.find_work(index, true).is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_work_waits_for_three_times_its_last_call_and_half_a_millisecond_at_least() {
        let (start, long) = (Instant::now(), Duration::from_millis(10));
        let mut turns = BackgroundTurns::new();
        assert!(!turns.is_late(start + long), "there is no work");
        for (call, wait) in [
            (Duration::ZERO, Duration::from_micros(500)),
            (Duration::from_micros(160), Duration::from_micros(500)),
            (long, 3 * long),
        ] {
            turns.end_turn(call);
            turns.note(true, start);
            // A later turn that leaves work, too, does not restart the wait.
            turns.note(true, start + wait / 2);
            assert!(!turns.is_late(start + wait - Duration::from_nanos(1)), "after {call:?}");
            assert!(turns.is_late(start + wait), "after {call:?}");
        }
        turns.note(false, start);
        assert!(!turns.is_late(start + 10 * long), "the work was done");
    }
}
