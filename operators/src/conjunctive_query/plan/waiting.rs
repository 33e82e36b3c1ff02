//! Queries that have arrived, before they are in buckets: each batch waits for its index.

use std::collections::VecDeque;
use std::sync::Arc;

use super::buckets::Buckets;
use super::queries::Origin;
use crate::conjunctive_query::data::index::Index;
use crate::conjunctive_query::data::sets::Sets;
use crate::shared::names::ItemNames;

/// A batch of queries.
pub(crate) struct Arrived {
    pub(crate) origin: Origin,
    pub(crate) sets: Sets,
    /// Whether a null is a query, without terms.
    pub(crate) has_null_queries: bool,
    /// Bytes of the batch.
    pub(crate) bytes: usize,
    /// Number of documents over which the queries are answered; `None` for all documents.
    pub(crate) documents: Option<u32>,
    /// The index of these documents, once that index exists.
    pub(crate) index: Option<Arc<Index>>,
}

/// The batch whose queries are put in buckets.
struct Current {
    arrived: Arrived,
    index: Arc<Index>,
    /// The next row.
    row: usize,
    /// Numbers of the terms of all rows.
    terms: Vec<u32>,
}

/// Batches of queries, in the order of arrival.
#[derive(Default)]
pub(crate) struct WaitingQueries {
    arrived: VecDeque<Arrived>,
    /// Bytes of the batches in `arrived`.
    bytes: usize,
    current: Option<Current>,
}

impl WaitingQueries {
    pub(crate) fn push(&mut self, arrived: Arrived) {
        self.bytes += arrived.bytes;
        self.arrived.push_back(arrived);
    }

    /// Number of batches that have no query in a bucket.
    pub(crate) fn len(&self) -> usize {
        self.arrived.len()
    }

    /// Bytes of the batches that have no query in a bucket.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the index of the first batch exists.
    pub(crate) fn is_ready(&self) -> bool {
        self.arrived.front().is_some_and(|arrived| arrived.index.is_some())
    }

    /// Gives `index` to the queries over all documents.
    pub(crate) fn attach_whole(&mut self, index: &Arc<Index>) {
        let waiting = self.arrived.iter_mut().filter(|arrived| arrived.documents.is_none());
        waiting.for_each(|arrived| arrived.index = Some(Arc::clone(index)));
    }

    /// Gives `index` to the queries that asked for its documents.
    pub(crate) fn attach(&mut self, index: &Arc<Index>) {
        for arrived in &mut self.arrived {
            if arrived.index.is_none() && arrived.documents == Some(index.documents()) {
                arrived.index = Some(Arc::clone(index));
            }
        }
    }

    /// Puts queries in buckets until a bucket is full, or until no query is left.
    pub(crate) fn fill(&mut self, buckets: &mut Buckets, names: &ItemNames) {
        while !buckets.is_full() {
            if self.current.is_none() && !self.begin(buckets, names) {
                return;
            }
            let Some(Current { arrived, index, row, terms }) = &mut self.current else { return };
            buckets.switch_to(index);
            while *row < arrived.sets.len() && !buckets.is_full() {
                // A rejected query keeps its number, but gets no answer.
                if arrived.has_null_queries || !arrived.sets.is_null(*row) {
                    buckets.push(&arrived.origin, *row, &terms[arrived.sets.range(*row)]);
                }
                *row += 1;
            }
            if *row == arrived.sets.len() {
                self.current = None;
            }
        }
    }

    /// Begins the next batch, if its index exists and the buckets have no query over another index.
    fn begin(&mut self, buckets: &Buckets, names: &ItemNames) -> bool {
        let index = self.arrived.front().and_then(|arrived| arrived.index.as_ref());
        let Some(index) = index.filter(|index| buckets.may_switch_to(index)).cloned() else {
            return false;
        };
        let Some(arrived) = self.arrived.pop_front() else { return false };
        self.bytes -= arrived.bytes;
        // Terms are looked up late, because documents that arrived after the queries may have
        // brought these terms.
        let mut terms = Vec::new();
        names.find(&arrived.sets.values, &mut terms);
        self.current = Some(Current { arrived, index, row: 0, terms });
        true
    }
}
