//! The primitives of a device that answer batches of queries.

use std::sync::Arc;

use trommel_kernels::cuda::queries::{
    DeviceIndex, DocumentLimits, Policy, QueryCounts, QueryDocuments, QueryJob, QueryLimits,
    SerialCounts, SerialLimits, Streamed, StreamedJob, StreamedLimits,
};
use trommel_kernels::cuda::{Primitive, Slot};
use trommel_kernels::inverted::{ListNamer, QueryBatch};

use crate::conjunctive_query::workload::{Answers, Workload};

/// Batches in flight.
pub(crate) const SLOTS: usize = 3;

/// A way of asking: an index on the device, and a policy.
pub(crate) struct Asked<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) index: &'a Arc<DeviceIndex>,
    pub(crate) policy: Policy,
    pub(crate) rounds: usize,
}

/// A primitive that answers queries.
pub(crate) trait Ask: Primitive {
    /// The name in the table.
    const NAME: &'static str;

    /// Whether answers are documents, whose sums are checked, too.
    const HAS_DOCUMENTS: bool = false;

    /// Batches of a pass: at most, and at least when they are measured in a row.
    const BATCHES: [usize; 2] = [1000, 16 * SLOTS];

    fn limits(workload: &Workload, batch: usize) -> Self::Limits;

    /// A batch as the primitive takes it.
    fn job<'a>(
        asked: &Asked<'a>,
        namer: &'a mut ListNamer,
        queries: QueryBatch<'a>,
    ) -> Self::Job<'a>;

    /// Adds the answers of a batch.
    fn read(slot: &Slot<Self>, answers: &mut Answers);

    /// Whether they are all right for the queries from `begin` on.
    fn are_right(workload: &Workload, begin: usize, answers: &Answers) -> bool {
        let end = begin + answers.counts.len();
        answers.counts == workload.right.counts[begin..end]
            && (!Self::HAS_DOCUMENTS || answers.sums == workload.right.sums[begin..end])
    }
}

impl<'a> Asked<'a> {
    /// A batch over the index on the device.
    fn resident(&self, queries: QueryBatch<'a>) -> QueryJob<'a> {
        QueryJob { queries, index: self.index, policy: self.policy }
    }

    /// A batch with its lists.
    fn streamed(&self, namer: &'a mut ListNamer, queries: QueryBatch<'a>) -> StreamedJob<'a> {
        let lists = namer.name(&self.workload.segment, queries, usize::MAX);
        StreamedJob { lists, policy: self.policy }
    }
}

/// The largest number of `of` over all batches.
fn most(workload: &Workload, batch: usize, of: impl Fn(usize, usize) -> usize) -> usize {
    let begins = (0..workload.queries()).step_by(batch);
    begins.map(|begin| of(begin, workload.queries().min(begin + batch))).max().unwrap_or(0)
}

/// Ids of the longest list, at least 1.
fn longest(workload: &Workload) -> usize {
    workload.lists.iter().map(Vec::len).max().unwrap_or(0).max(1)
}

fn query_limits(workload: &Workload, batch: usize) -> QueryLimits {
    let terms =
        |begin: usize, end: usize| (workload.offsets[end] - workload.offsets[begin]) as usize;
    QueryLimits {
        queries: batch,
        terms: most(workload, batch, terms),
        units: most(workload, batch, |begin, end| workload.units(begin, end)),
    }
}

/// Words of the lists of the largest batch that is sent.
fn list_words(workload: &Workload, batch: usize, batches: usize) -> usize {
    let mut namer = ListNamer::new();
    let begins = (0..workload.queries()).step_by(batch).take(batches);
    let words = begins.map(|begin| {
        let queries = workload.batch(begin, workload.queries().min(begin + batch));
        namer.name(&workload.segment, queries, usize::MAX).words()
    });
    words.max().unwrap_or(0).max(1)
}

/// A batch that brings its lists along is large: few of them fill the bus.
const STREAMED_BATCHES: [usize; 2] = [12; 2];

impl Ask for QueryCounts {
    const NAME: &'static str = "count";

    fn limits(workload: &Workload, batch: usize) -> QueryLimits {
        query_limits(workload, batch)
    }

    fn job<'a>(asked: &Asked<'a>, _: &'a mut ListNamer, queries: QueryBatch<'a>) -> QueryJob<'a> {
        asked.resident(queries)
    }

    fn read(slot: &Slot<Self>, answers: &mut Answers) {
        answers.counts.extend_from_slice(slot.counts());
    }
}

impl Ask for QueryDocuments {
    const NAME: &'static str = "documents";
    const HAS_DOCUMENTS: bool = true;

    fn limits(workload: &Workload, batch: usize) -> DocumentLimits {
        let documents = most(workload, batch, |begin, end| workload.documents(begin, end));
        let queries = query_limits(workload, batch);
        DocumentLimits { queries, documents: documents.max(longest(workload)) }
    }

    fn job<'a>(asked: &Asked<'a>, _: &'a mut ListNamer, queries: QueryBatch<'a>) -> QueryJob<'a> {
        asked.resident(queries)
    }

    fn read(slot: &Slot<Self>, answers: &mut Answers) {
        let documents = (0..slot.finished()).map(|query| slot.documents(query));
        documents.for_each(|documents| answers.push(documents.expect("it is finished")));
    }
}

impl Ask for Streamed<QueryCounts> {
    const NAME: &'static str = "count";
    const BATCHES: [usize; 2] = STREAMED_BATCHES;

    fn limits(workload: &Workload, batch: usize) -> StreamedLimits<QueryLimits> {
        let words = list_words(workload, batch, STREAMED_BATCHES[0]);
        StreamedLimits { batch: QueryCounts::limits(workload, batch), words }
    }

    fn job<'a>(
        asked: &Asked<'a>,
        namer: &'a mut ListNamer,
        queries: QueryBatch<'a>,
    ) -> StreamedJob<'a> {
        asked.streamed(namer, queries)
    }

    fn read(slot: &Slot<Self>, answers: &mut Answers) {
        answers.counts.extend_from_slice(slot.counts());
    }
}

impl Ask for Streamed<QueryDocuments> {
    const NAME: &'static str = "documents";
    const HAS_DOCUMENTS: bool = true;
    const BATCHES: [usize; 2] = STREAMED_BATCHES;

    fn limits(workload: &Workload, batch: usize) -> StreamedLimits<DocumentLimits> {
        let words = list_words(workload, batch, STREAMED_BATCHES[0]);
        StreamedLimits { batch: QueryDocuments::limits(workload, batch), words }
    }

    fn job<'a>(
        asked: &Asked<'a>,
        namer: &'a mut ListNamer,
        queries: QueryBatch<'a>,
    ) -> StreamedJob<'a> {
        asked.streamed(namer, queries)
    }

    fn read(slot: &Slot<Self>, answers: &mut Answers) {
        let (offsets, documents) = slot.all_documents();
        for ends in offsets.windows(2) {
            answers.push(&documents[ends[0] as usize..ends[1] as usize]);
        }
    }
}

impl Ask for SerialCounts {
    const NAME: &'static str = "count";

    fn limits(workload: &Workload, batch: usize) -> SerialLimits {
        let QueryLimits { queries, terms, .. } = query_limits(workload, batch);
        SerialLimits { queries, terms, ids: longest(workload) }
    }

    fn job<'a>(asked: &Asked<'a>, _: &'a mut ListNamer, queries: QueryBatch<'a>) -> QueryJob<'a> {
        asked.resident(queries)
    }

    fn read(slot: &Slot<Self>, answers: &mut Answers) {
        answers.counts.extend_from_slice(slot.counts());
    }
}
