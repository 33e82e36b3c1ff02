//! Buckets of queries whose shortest lists have similar lengths: the semi-sort of the paper (§III),
//! for queries that arrive one after the other.
//!
//! Bucket 0 holds the queries without answers, bucket `i` those whose shortest list has
//! `4^(i - 1)` to `4^i - 1` documents. The queries of a bucket take similar times, so a short one
//! does not wait for a long one that came with it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::index::Index;
use super::queries::{Origin, QueryBlock};

/// Buckets up to lists of 2^32 documents.
const BUCKETS: usize = 18;

/// Terms of the queries of a bucket that is sent, so that offsets stay small.
const TERMS_MAX: usize = 1 << 22;

/// The rules by which buckets are sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct BucketRules {
    /// Queries of a full bucket.
    pub(super) queries: usize,
    /// Time that a query waits and is answered in.
    pub(super) deadline: Duration,
    /// Documents that a full bucket may find.
    pub(super) answer_documents: u64,
}

/// Queries that wait to be answered over the same index.
#[derive(Debug)]
pub(super) struct Buckets {
    rules: BucketRules,
    index: Arc<Index>,
    buckets: [QueryBlock; BUCKETS],
    /// Number of queries in all buckets.
    len: usize,
    /// The bucket that is full, if there is one: it is sent before the next query is added.
    full: Option<usize>,
    /// Terms of a query within a segment.
    local: Vec<u32>,
}

impl Buckets {
    pub(super) fn new(rules: BucketRules) -> Self {
        let buckets = std::array::from_fn(|_| QueryBlock::default());
        Self { rules, index: Arc::default(), buckets, len: 0, full: None, local: Vec::new() }
    }

    pub(super) fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// Whether queries over `index` may be added: there are none over another one.
    pub(super) fn may_switch_to(&self, index: &Arc<Index>) -> bool {
        self.len == 0 || Arc::ptr_eq(&self.index, index)
    }

    /// Switches to the index of the queries that are added next.
    pub(super) fn switch_to(&mut self, index: &Arc<Index>) {
        if !Arc::ptr_eq(&self.index, index) {
            self.index = Arc::clone(index);
        }
    }

    /// Adds a query.
    pub(super) fn push(&mut self, origin: &Origin, row: usize, terms: &[u32]) {
        let (shortest, cost_ns) = self.index.price(terms, &mut self.local);
        let place = shortest.checked_ilog(4).map_or(0, |power| power as usize + 1);
        let bucket = &mut self.buckets[place];
        bucket.push(origin, row, terms, (shortest, cost_ns));
        self.len += 1;
        if bucket.len() >= self.rules.queries
            || bucket.answers_max >= self.rules.answer_documents
            || bucket.terms_len() >= TERMS_MAX
        {
            self.full = Some(place);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Whether no query waits.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The time at which a bucket is due: the deadline of its oldest query, less the time that its
    /// answers take.
    fn due(&self, bucket: &QueryBlock) -> Option<Instant> {
        let left = self.rules.deadline.saturating_sub(Duration::from_nanos(bucket.cost_ns));
        Some(bucket.oldest()? + left)
    }

    /// The time at which the first bucket is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.buckets.iter().filter_map(|bucket| self.due(bucket)).min()
    }

    /// Moves the queries of the full bucket, or of the one that is due first, to `block`, which is
    /// empty. With `all`, each bucket is due.
    pub(super) fn take(&mut self, now: Instant, all: bool, block: &mut QueryBlock) -> bool {
        let place = self.full.take().or_else(|| {
            let due = self.buckets.iter().map(|bucket| self.due(bucket));
            let due = due.enumerate().filter_map(|(place, due)| Some((due?, place)));
            due.min().filter(|(due, _)| all || *due <= now).map(|(_, place)| place)
        });
        // The memory of the chunk becomes that of the bucket.
        let Some(place) = place else { return false };
        std::mem::swap(&mut self.buckets[place], block);
        self.len -= block.len();
        true
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.buckets.iter().map(QueryBlock::bytes).sum()
    }
}
