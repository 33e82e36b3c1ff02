//! A window over a stream: panes, each with a summary of its own, that merge.
//!
//! ```text
//!              ┌ pane ┬ pane ┬ pane ┬ live ┐
//! ─────────────┴──────┴──────┴──────┴──────┴──►   a pane ends: the oldest leaves, a new one lives
//!               older, as suffixes   newer
//! ```
//!
//! A summary cannot forget an item, so a window that slides forgets whole panes. A window of one
//! pane tumbles.
//!
//! # Guarantees
//!
//! Those of a summary whose stream is the window: merging keeps them ([`merge`](super::merge)).
//! What the window says is the sum of two summaries, that of the ended panes and the live one
//! ([`combine`]), so up to 2 k items are monitored.
//!
//! # Cost
//!
//! Three merges a pane, whatever their number: the ended panes are kept as two stacks. `older`
//! holds the panes of one stack merged from the newest on, so that the oldest leaves when the last
//! element does; `newer` holds the panes that ended since, and their merge. When `older` is used
//! up, it is made of `newer`. (The technique is folklore: a queue of two stacks.) Memory: at most
//! panes + 3 summaries.

use super::contract::Summary;
use super::counted::Counted;
use super::merge::combine;
use crate::items::Item;

/// Summaries of a window that consists of panes.
#[derive(Debug)]
pub(crate) struct Panes<S> {
    live: S,
    /// Ended panes that belong to the window.
    ended_max: usize,
    older: Vec<S>,
    newer: Vec<S>,
    newer_merged: Option<S>,
    /// Of all ended panes of the window.
    ended: Option<S>,
}

impl<S> Panes<S> {
    /// Summaries there are at most, for so many panes.
    pub(crate) fn summaries_max(panes: usize) -> usize {
        if panes == 1 { 2 } else { panes + 3 }
    }

    /// A window of so many panes, at least 1, with an empty summary in the first.
    pub(crate) fn new(empty: S, panes: usize) -> Self {
        Self {
            live: empty,
            ended_max: panes - 1,
            older: Vec::new(),
            newer: Vec::new(),
            newer_merged: None,
            ended: None,
        }
    }

    /// The pane that takes what arrives.
    pub(crate) fn live(&mut self) -> &mut S {
        &mut self.live
    }

    /// Ends the live pane.
    pub(crate) fn turn<K: Item>(&mut self)
    where
        S: Summary<K>,
    {
        let empty = self.live.to_empty();
        let ended = std::mem::replace(&mut self.live, empty);
        if self.ended_max == 0 {
            return;
        }
        self.newer_merged = merged(self.newer_merged.take(), Some(&ended));
        self.newer.push(ended);
        if self.older.len() + self.newer.len() > self.ended_max {
            if self.older.is_empty() {
                self.turn_over();
            }
            self.older.pop();
        }
        self.ended = merged(self.older.last().cloned(), self.newer_merged.as_ref());
    }

    fn turn_over<K: Item>(&mut self)
    where
        S: Summary<K>,
    {
        self.newer_merged = None;
        while let Some(pane) = self.newer.pop() {
            let suffix = merged(Some(pane), self.older.last());
            self.older.extend(suffix);
        }
    }

    /// The monitored items of the window, in no particular order.
    pub(crate) fn counted<K: Item>(&self) -> Vec<Counted<K>>
    where
        S: Summary<K>,
    {
        match &self.ended {
            Some(ended) => combine(ended, &self.live),
            None => self.live.iter().map(|counted| counted.cloned()).collect(),
        }
    }

    /// N of the window.
    pub(crate) fn observed<K: Item>(&self) -> u64
    where
        S: Summary<K>,
    {
        let ended = self.ended.as_ref().map_or(0, S::observed);
        ended.saturating_add(self.live.observed())
    }

    /// The most that an unmonitored item can have been seen in the window.
    pub(crate) fn count_min<K: Item>(&self) -> u64
    where
        S: Summary<K>,
    {
        self.ended.as_ref().map_or(0, S::count_min).saturating_add(self.live.count_min())
    }

    /// Bytes of all summaries.
    pub(crate) fn state_bytes<K: Item>(&self) -> usize
    where
        S: Summary<K>,
    {
        let ended = self.newer_merged.iter().chain(&self.ended);
        let all = self.older.iter().chain(&self.newer).chain(ended).chain([&self.live]);
        all.map(S::state_bytes).sum()
    }
}

/// One summary of both, if there is any.
fn merged<K: Item, S: Summary<K>>(left: Option<S>, right: Option<&S>) -> Option<S> {
    match (left, right) {
        (Some(mut left), Some(right)) => {
            left.merge(right).expect("the panes of a window are alike");
            Some(left)
        }
        (left, right) => left.or_else(|| right.cloned()),
    }
}
