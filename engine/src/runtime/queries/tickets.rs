//! The queries that wait at a node.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::allowance::Allowance;
use super::control::{Join, MAILBOX_QUERIES_MAX, Pass, Ticket, WatchSlot};
use crate::channel::Doorbell;

/// Maximum number of queries that the first part of a stage has forwarded and that have no answer
/// yet.
const UNDER_WAY_MAX: usize = 16;

/// A copy, and the number of its messages from which it has forwarded a query.
pub(crate) type CopyPosition = (usize, u64);

/// The queries that wait at one node.
#[derive(Default)]
pub(crate) struct Tickets {
    /// Forwarded queries that wait for a batch boundary or for their position.
    held: Vec<Ticket>,
    /// Queries whose data come from several copies, in order; each with the copies that have
    /// forwarded the query, and the positions of these copies.
    joins: VecDeque<(Arc<Join>, Vec<CopyPosition>)>,
    /// Queries of callers, in order.
    asked: VecDeque<Ticket>,
    /// Standing queries.
    watches: Vec<Arc<WatchSlot>>,
    /// Number of forwarded queries that later parts have not answered yet.
    under_way: Arc<AtomicUsize>,
    /// The allowances of the other threads on which later parts run.
    later_allowances: Vec<Arc<Allowance>>,
}

impl Tickets {
    /// Sets the allowances of the other threads on which later parts run.
    pub(crate) fn set_later_allowances(&mut self, allowances: Vec<Arc<Allowance>>) {
        self.later_allowances = allowances;
    }

    /// Number of callers that wait.
    pub(crate) fn asked(&self) -> usize {
        self.asked.len()
    }

    /// Adds the query of a caller. When too many queries wait, those whose callers have left make
    /// room. If no caller has left, the query is returned.
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

    /// Keeps a forwarded query. When too many wait, the query is returned.
    pub(crate) fn hold(&mut self, ticket: Ticket) -> Result<(), Ticket> {
        if self.held.len() >= MAILBOX_QUERIES_MAX {
            return Err(ticket);
        }
        self.held.push(ticket);
        Ok(())
    }

    /// Notes that a copy has forwarded a query.
    pub(crate) fn join(&mut self, join: &Arc<Join>, copy: CopyPosition) {
        match self.joins.iter_mut().find(|(known, _)| Arc::ptr_eq(known, join)) {
            Some((_, copies)) => copies.push(copy),
            None => self.joins.push_back((Arc::clone(join), vec![copy])),
        }
    }

    /// Whether a query waits for the data of copies.
    pub(crate) fn has_joins(&self) -> bool {
        !self.joins.is_empty()
    }

    /// Whether all copies have sent their data for the oldest such query.
    pub(crate) fn has_complete_join(&self) -> bool {
        self.joins.front().is_some_and(|(join, _)| join.is_complete())
    }

    /// Takes the first query whose data come from several copies, and has failed.
    pub(crate) fn take_failed_join(&mut self) -> Option<Vec<CopyPosition>> {
        let failed = self.joins.iter().position(|(join, _)| join.has_failed())?;
        self.joins.remove(failed).map(|(_, copies)| copies)
    }

    /// Takes the oldest query whose data come from several copies, with the copies.
    pub(crate) fn take_first_join(&mut self) -> Option<(Arc<Join>, Vec<CopyPosition>)> {
        self.joins.pop_front()
    }

    /// Whether a forwarded query waits.
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes the forwarded queries.
    pub(crate) fn take_held(&mut self) -> Vec<Ticket> {
        mem::take(&mut self.held)
    }

    /// Whether an answer waits only for a batch boundary, after `taken` messages. With
    /// `may_answer`, callers and readers of standing queries count, too.
    pub(crate) fn owe_an_answer(&self, taken: u64, may_answer: bool) -> bool {
        self.held.iter().any(|held| held.is_due(taken))
            || (may_answer && (!self.asked.is_empty() || self.has_wanted_watch()))
    }

    /// Whether a caller's query waits and later parts have credit for it.
    pub(crate) fn can_admit(&self) -> bool {
        // Relaxed: the number is a limit and publishes no data.
        !self.asked.is_empty()
            && self.under_way.load(Ordering::Relaxed) < UNDER_WAY_MAX
            && self.later_allowances.iter().all(|allowance| allowance.is_open())
    }

    /// Counts a forwarded query until the returned pass is dropped, which rings `bell`.
    pub(crate) fn pass(&self, bell: &Arc<Doorbell>) -> Pass {
        Pass::new(&self.under_way, bell)
    }

    /// Adds a standing query, and drops standing queries without a reader.
    pub(crate) fn add_watch(&mut self, slot: Arc<WatchSlot>) {
        // The list has one reference: a slot without another reference has lost its reader.
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
