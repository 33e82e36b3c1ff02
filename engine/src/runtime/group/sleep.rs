//! The sleep of a thread without work: spin, then park until the doorbell rings.
//!
//! A thread calls [`RunningGroup::wait`] when no part has a turn and no query can be answered.
//!
//! ```text
//! wait ──► show_numbers ──► wait_end ──► spin ── has_work ──► next turn
//!                                         │ SPIN is over
//!                                         ▼
//!                                        park ── rung, has_work, or wait_end is reached ──► next turn
//! ```
//!
//! [`RunningGroup::has_work`] lists everything that can end a wait. A thread that publishes such a
//! thing rings the bell afterwards; [`Doorbell`](crate::channel::Doorbell) proves that no such ring
//! is lost between the look and the sleep. Only the credit of another thread has no bell: see
//! [`CREDIT_CHECK`].

use std::hint::spin_loop;
use std::sync::Arc;
use std::time::Instant;

use super::super::node::Node;
use super::super::node::step::NodeStep;
use super::super::shared::Phase;
use super::super::waits::{CREDIT_CHECK, PARK_MAX, SPIN, SPIN_LOOKS_PER_CLOCK};
use super::RunningGroup;

impl RunningGroup {
    /// Waits until the thread is rung, has work, or has reached the end of the wait.
    pub(super) fn wait(&mut self) {
        self.allowance.forgive();
        let begin = Instant::now();
        let publish_at = self.show_numbers(begin);
        let end = self.wait_end(begin, publish_at);
        if !(self.may_spin && self.spin(begin, end)) {
            self.park(end);
        }
        self.now = Instant::now();
        for node in &mut self.nodes {
            node.count_wait(self.now - begin, self.now);
        }
    }

    /// Shows readers the numbers of the last turns before the thread sleeps. Returns the time of
    /// the next publication if counters have to wait for that.
    fn show_numbers(&mut self, now: Instant) -> Option<Instant> {
        for node in &mut self.nodes {
            node.flush_latency();
        }
        let has_news = self.nodes.iter().any(Node::has_news);
        if has_news && now >= self.publish_at {
            self.publish();
            return None;
        }
        has_news.then_some(self.publish_at)
    }

    /// The time at which the thread wakes up if nobody rings.
    fn wait_end(&self, begin: Instant, publish_at: Option<Instant>) -> Instant {
        let deadline = match self.seen_phase {
            Phase::Draining => self.shared.deadline(),
            Phase::Running | Phase::Aborted => None,
        };
        let credit_check = self.waits_for_credit().then(|| begin + CREDIT_CHECK);
        let times = [deadline, publish_at, credit_check, self.next_time()];
        times.into_iter().flatten().fold(begin + PARK_MAX, Instant::min)
    }

    /// Whether a query of a caller waits only for the credit of a thread, for which nobody rings.
    fn waits_for_credit(&self) -> bool {
        self.nodes.iter().any(|node| node.tickets.asked() > 0 && node.may_be_asked())
    }

    /// The earliest time that a source or an operator has named for its next call.
    fn next_time(&self) -> Option<Instant> {
        let steps = (0..self.nodes.len()).map(|index| self.next_step(index, None, true));
        let times = steps.filter_map(|step| match step {
            NodeStep::At(time) => Some(time),
            NodeStep::Now(_) | NodeStep::Wait => None,
        });
        times.min()
    }

    /// Looks for work until [`SPIN`] is over; true as soon as there is work, or at the end of the
    /// wait. Ringers skip the system call meanwhile, because the thread has not said that it parks.
    fn spin(&self, begin: Instant, end: Instant) -> bool {
        loop {
            for _ in 0..SPIN_LOOKS_PER_CLOCK {
                if self.has_work() {
                    return true;
                }
                spin_loop();
            }
            let now = Instant::now();
            if end <= now {
                return true;
            }
            if now.duration_since(begin) > SPIN {
                return false;
            }
        }
    }

    /// Sleeps until the bell rings, at most until `end`. The bell looks for work once more after it
    /// has announced the sleep.
    fn park(&self, end: Instant) {
        let timeout = end.saturating_duration_since(Instant::now());
        let bell = Arc::clone(&self.bell);
        bell.answer_door(|| self.has_work(), Some(timeout));
    }

    /// Whether the thread can do anything: obey a request, read mail, send a kept message, answer a
    /// query, or give a part its turn.
    fn has_work(&self) -> bool {
        let has_requests = self.shared.phase() != self.seen_phase
            || self.shared.reopenings() != self.seen_reopenings;
        if !self.mailbox.is_empty() || has_requests || self.is_finished() {
            return true;
        }
        self.nodes.iter().enumerate().any(|(index, node)| {
            node.outputs.can_flush()
                || node.wants_publishing()
                || node.can_answer_asked()
                || matches!(self.next_step(index, None, true), NodeStep::Now(_))
        })
    }
}
