//! The queries that wait at a node.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::allowance::Allowance;
use super::control::{MAILBOX_QUERIES_MAX, Pass, Ticket, WatchSlot};
use crate::channel::Doorbell;

/// Queries that the first part of a stage forwards before one of them is answered.
const UNDER_WAY_MAX: usize = 16;

/// The queries that wait at one node.
#[derive(Default)]
pub(crate) struct Tickets {
    /// Forwarded queries, which wait for a batch boundary or for their position.
    held: Vec<Ticket>,
    /// Queries of callers, in order.
    asked: VecDeque<Ticket>,
    /// Standing queries.
    watches: Vec<Arc<WatchSlot>>,
    /// Number of queries that later parts have not answered yet.
    under_way: Arc<AtomicUsize>,
    /// The allowances of the other threads that later parts run on.
    later_allowances: Vec<Arc<Allowance>>,
}

impl Tickets {
    /// Sets the allowances of the other threads that later parts run on.
    pub(crate) fn set_later_allowances(&mut self, allowances: Vec<Arc<Allowance>>) {
        self.later_allowances = allowances;
    }

    /// Number of callers that wait.
    pub(crate) fn asked(&self) -> usize {
        self.asked.len()
    }

    /// Adds the query of a caller. When too many wait, queries whose callers have left make room;
    /// if there is none, the query is returned.
    pub(crate) fn ask(&mut self, ticket: Ticket) -> Result<(), Ticket> {
        if self.asked.len() >= MAILBOX_QUERIES_MAX {
            self.asked.retain(Ticket::is_wanted);
        }
        if self.asked.len() >= MAILBOX_QUERIES_MAX {
            return Err(ticket);
        }
        self.asked.push_back(ticket);
        Ok(())
    }

    /// Takes the oldest query of a caller.
    pub(crate) fn next_asked(&mut self) -> Option<Ticket> {
        self.asked.pop_front()
    }

    /// Keeps a forwarded query; when too many wait, it is returned.
    pub(crate) fn hold(&mut self, ticket: Ticket) -> Result<(), Ticket> {
        if self.held.len() >= MAILBOX_QUERIES_MAX {
            return Err(ticket);
        }
        self.held.push(ticket);
        Ok(())
    }

    /// Whether a forwarded query waits.
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes the forwarded queries.
    pub(crate) fn take_held(&mut self) -> Vec<Ticket> {
        mem::take(&mut self.held)
    }

    /// Whether an answer waits only for a batch boundary, after `taken` messages. Callers and
    /// readers of standing queries count if `may_answer`.
    pub(crate) fn owe_an_answer(&self, taken: u64, may_answer: bool) -> bool {
        self.held.iter().any(|held| held.is_due(taken))
            || (may_answer && (!self.asked.is_empty() || self.has_wanted_watch()))
    }

    /// Whether later parts have time for a query of a caller, of which there is one.
    pub(crate) fn can_admit(&self) -> bool {
        // Relaxed: a limit that publishes no data.
        !self.asked.is_empty()
            && self.under_way.load(Ordering::Relaxed) < UNDER_WAY_MAX
            && self.later_allowances.iter().all(|allowance| allowance.is_open())
    }

    /// Counts a forwarded query until the result is dropped, which rings `bell`.
    pub(crate) fn pass(&self, bell: &Arc<Doorbell>) -> Pass {
        Pass::new(&self.under_way, bell)
    }

    /// Adds a standing query, and drops the ones without a reader.
    pub(crate) fn add_watch(&mut self, slot: Arc<WatchSlot>) {
        // One reference is ours: a slot without another has lost its reader.
        self.watches.retain(|slot| Arc::strong_count(slot) > 1);
        self.watches.push(slot);
    }

    /// Whether a standing query was read since its last answer.
    pub(crate) fn has_wanted_watch(&self) -> bool {
        self.watches.iter().any(|slot| slot.is_wanted())
    }

    /// The standing queries.
    pub(crate) fn watches(&self) -> &[Arc<WatchSlot>] {
        &self.watches
    }

    /// Drops the standing queries.
    pub(crate) fn clear_watches(&mut self) {
        self.watches.clear();
    }
}
