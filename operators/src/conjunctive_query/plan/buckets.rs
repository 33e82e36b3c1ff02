//! Buckets of queries whose shortest lists have similar lengths: the semi-sort of the paper (§III),
//! for queries that arrive one after the other.
//!
//! Bucket 0 holds the queries without answers; bucket `i` holds the queries whose shortest list has
//! `4^(i - 1)` to `4^i - 1` documents. The queries of a bucket take similar times, so a short query
//! does not wait for a long query that arrived with it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::queries::{Origin, QueryBlock};
use crate::conjunctive_query::data::index::Index;

/// Number of buckets, enough for lists of 2^32 documents.
const BUCKETS: usize = 18;

/// Number of terms at which a bucket is full, so that offsets stay small.
const TERMS_MAX: usize = 1 << 22;

/// The rules by which buckets are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BucketRules {
    /// Queries of a full bucket.
    pub(crate) queries: usize,
    /// Time within which a query waits and is answered.
    pub(crate) deadline: Duration,
    /// Documents that a full bucket may find.
    pub(crate) answer_documents: u64,
}

/// Queries that wait to be answered over the same index.
#[derive(Debug)]
pub(crate) struct Buckets {
    rules: BucketRules,
    index: Arc<Index>,
    buckets: [QueryBlock; BUCKETS],
    /// Number of queries in all buckets.
    len: usize,
    /// The bucket that is full, if there is one. The full bucket is sent before the next query is
    /// added.
    full: Option<usize>,
    /// Terms of a query within a segment.
    local: Vec<u32>,
}

impl Buckets {
    pub(crate) fn new(rules: BucketRules) -> Self {
        let buckets = std::array::from_fn(|_| QueryBlock::default());
        Self { rules, index: Arc::default(), buckets, len: 0, full: None, local: Vec::new() }
    }

    pub(crate) fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// Whether queries over `index` may be added: no query over another index waits.
    pub(crate) fn may_switch_to(&self, index: &Arc<Index>) -> bool {
        self.len == 0 || Arc::ptr_eq(&self.index, index)
    }

    /// Switches to the index of the queries that are added next.
    pub(crate) fn switch_to(&mut self, index: &Arc<Index>) {
        if !Arc::ptr_eq(&self.index, index) {
            self.index = Arc::clone(index);
        }
    }

    /// Adds a query.
    pub(crate) fn push(&mut self, origin: &Origin, row: usize, terms: &[u32]) {
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

    pub(crate) fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Whether no query waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The time at which a bucket is due: the deadline of its oldest query, minus the modelled time
    /// of the bucket's answers.
    fn due(&self, bucket: &QueryBlock) -> Option<Instant> {
        let left = self.rules.deadline.saturating_sub(Duration::from_nanos(bucket.cost_ns));
        Some(bucket.oldest()? + left)
    }

    /// The time at which the first bucket is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.buckets.iter().filter_map(|bucket| self.due(bucket)).min()
    }

    /// Moves the queries of the full bucket, or of the bucket that is due first, to `block`, which
    /// is empty. With `all`, each bucket counts as due.
    pub(crate) fn take(&mut self, now: Instant, all: bool, block: &mut QueryBlock) -> bool {
        let place = self.full.take().or_else(|| {
            let due = self.buckets.iter().map(|bucket| self.due(bucket));
            let due = due.enumerate().filter_map(|(place, due)| Some((due?, place)));
            due.min().filter(|(due, _)| all || *due <= now).map(|(_, place)| place)
        });
        // The swap gives the memory of the chunk to the bucket.
        let Some(place) = place else { return false };
        std::mem::swap(&mut self.buckets[place], block);
        self.len -= block.len();
        true
    }

    /// Moves the queries of further buckets to `block` as far as there is room, in the order in
    /// which the buckets are due. This is for a device: its units of work are alike in all buckets,
    /// and one batch is cheaper than several batches.
    pub(crate) fn top_up(&mut self, block: &mut QueryBlock) {
        let due = |place: usize| Some((self.due(&self.buckets[place])?, place));
        let mut places: Vec<_> = (0..BUCKETS).filter_map(due).collect();
        places.sort_unstable();
        let BucketRules { queries, answer_documents, .. } = self.rules;
        for (_, place) in places {
            let bucket = &mut self.buckets[place];
            let has_room = block.len() + bucket.len() <= queries
                && block.answers_max.saturating_add(bucket.answers_max) <= answer_documents
                && block.terms_len() + bucket.terms_len() <= TERMS_MAX;
            if has_room {
                self.len -= bucket.len();
                block.append(bucket);
                // If this bucket was the full bucket, it has left now.
                self.full = self.full.filter(|&full| full != place);
            }
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.buckets.iter().map(QueryBlock::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatch;
    use arrow_schema::Schema;

    use super::*;
    use crate::conjunctive_query::data::segments::{DocumentBlock, SegmentFactory};
    use crate::shared::names::block::ItemBlock;

    /// Term `t` is in 4^t documents, so that each term has a bucket of its own.
    fn index() -> Arc<Index> {
        let (mut terms, mut ends) = (Vec::new(), Vec::new());
        for document in 0..256_u32 {
            terms.extend((0..5).filter(|&term| document < 4_u32.pow(term)));
            ends.push(terms.len());
        }
        let terms = ItemBlock::of(terms);
        let block = &mut DocumentBlock { terms, ends, ..DocumentBlock::default() };
        Arc::new(Index::new([Arc::new(SegmentFactory::default().build(block))]))
    }

    fn origin(number: u64) -> Origin {
        let carried = RecordBatch::new_empty(Arc::new(Schema::empty()));
        Origin { number, first: 0, entered: Instant::now(), carried }
    }

    /// The terms and the origins of all queries.
    fn queries(block: &QueryBlock) -> Vec<(Vec<u32>, u64, u32)> {
        let terms = block.terms();
        let ends = terms.offsets.windows(2);
        let terms = ends.map(|end| terms.terms[end[0] as usize..end[1] as usize].to_vec());
        let rows = block.rows().iter();
        let rows = rows.map(|&(origin, row)| (block.origins()[origin as usize].number, row));
        terms.zip(rows).map(|(terms, (origin, row))| (terms, origin, row)).collect()
    }

    #[test]
    fn a_batch_for_a_device_has_the_queries_of_all_buckets_that_have_room() {
        let deadline = Duration::from_secs(60);
        let rules = BucketRules { queries: 10, deadline, answer_documents: 300 };
        let mut buckets = Buckets::new(rules);
        buckets.switch_to(&index());
        let origins = [origin(0), origin(1)];
        // One query with an answer of 256 documents, three queries of 64 documents, and two queries
        // of 1 document, from two batches.
        let asked = [(4, 0), (3, 0), (0, 1), (3, 1), (0, 0), (3, 0)];
        for (row, (term, from)) in asked.into_iter().enumerate() {
            buckets.push(&origins[from], row, &[term, 4]);
        }
        let mut block = QueryBlock::default();
        assert!(buckets.take(Instant::now(), true, &mut block));
        let first = queries(&block);
        buckets.top_up(&mut block);
        let all = queries(&block);
        assert_eq!(all[..first.len()], first, "the bucket that was due stays in front");
        assert!(all.len() > first.len() && block.answers_max <= 300);
        let shortest = all.iter().map(|(terms, ..)| 4_u64.pow(terms[0]));
        assert_eq!(block.answers_max, shortest.sum::<u64>());
        // The remaining queries fit into the next batch.
        let mut rest = QueryBlock::default();
        assert!(buckets.take(Instant::now(), true, &mut rest));
        buckets.top_up(&mut rest);
        assert!(buckets.is_empty());
        let mut found: Vec<_> = all.into_iter().chain(queries(&rest)).collect();
        found.sort_unstable_by_key(|(_, _, row)| *row);
        let expected = (0..).zip(asked);
        let expected = expected.map(|(row, (term, from))| (vec![term, 4], from as u64, row));
        assert!(found.into_iter().eq(expected));
    }
}
