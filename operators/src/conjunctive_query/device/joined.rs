//! Answers of a device to a batch, joined over the segments of its index.

use trommel_kernels::cuda::queries::{
    QueryCounts, QueryDocuments, QueryJob, Streamed, StreamedJob, StreamedLimits,
};
use trommel_kernels::cuda::{Primitive, Slot};
use trommel_kernels::inverted::FoundDocuments;

use crate::conjunctive_query::answer::chunk::QueryChunk;
use crate::conjunctive_query::data::index::{Index, add_counts};

/// Answers to a batch over the segments that have landed.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    /// Queries that all segments have finished so far.
    pub(crate) finished: usize,
    counts: Vec<u32>,
    /// Documents of each segment, and memory for further segments.
    found: Vec<FoundDocuments>,
}

impl Joined {
    /// Begins a batch of `queries` queries.
    pub(crate) fn begin(&mut self, queries: usize) {
        self.finished = queries;
        self.counts.clear();
        self.counts.resize(queries, 0);
    }

    fn add_documents(&mut self, segment: usize, finished: usize, (ends, ids): (&[u32], &[u32])) {
        self.finished = self.finished.min(finished);
        if self.found.len() <= segment {
            self.found.resize_with(segment + 1, FoundDocuments::default);
        }
        let FoundDocuments { offsets, documents } = &mut self.found[segment];
        offsets.clear();
        offsets.extend(ends.iter().copied().map(u64::from));
        documents.clear();
        documents.extend_from_slice(ids);
    }
}

/// Answers of a device, over segments in its memory or over lists that the flight sends.
pub(crate) trait Answers:
    for<'a> Primitive<Job<'a> = QueryJob<'a>, Limits: Send + Sync>
{
    /// The same answers over lists that the flight sends.
    type Streamed: Primitive<Limits = StreamedLimits<Self::Limits>>
        + for<'a> Primitive<Job<'a> = StreamedJob<'a>>;

    /// Adds the answers of the segment with the number `segment`.
    fn join(slot: &Slot<Self>, segment: usize, joined: &mut Joined);

    /// As [`join`](Self::join), for a flight that sent its lists.
    fn join_streamed(slot: &Slot<Self::Streamed>, segment: usize, joined: &mut Joined);

    /// Writes the answers into the chunk of the batch, and takes the memory of the chunk for the
    /// next batch.
    fn write(index: &Index, joined: &mut Joined, chunk: &mut QueryChunk);
}

impl Answers for QueryCounts {
    type Streamed = Streamed<Self>;

    fn join(slot: &Slot<Self>, _: usize, joined: &mut Joined) {
        add_counts(&mut joined.counts, slot.counts());
    }

    fn join_streamed(slot: &Slot<Streamed<Self>>, _: usize, joined: &mut Joined) {
        add_counts(&mut joined.counts, slot.counts());
    }

    fn write(_: &Index, joined: &mut Joined, chunk: &mut QueryChunk) {
        joined.counts.truncate(joined.finished);
        std::mem::swap(&mut joined.counts, &mut chunk.counts);
    }
}

impl Answers for QueryDocuments {
    type Streamed = Streamed<Self>;

    fn join(slot: &Slot<Self>, segment: usize, joined: &mut Joined) {
        joined.add_documents(segment, slot.finished(), slot.all_documents());
    }

    fn join_streamed(slot: &Slot<Streamed<Self>>, segment: usize, joined: &mut Joined) {
        joined.add_documents(segment, slot.finished(), slot.all_documents());
    }

    fn write(index: &Index, joined: &mut Joined, chunk: &mut QueryChunk) {
        let Joined { finished, found, .. } = joined;
        // One segment is the usual case: nothing is copied.
        match &mut found[..index.len()] {
            [only] => std::mem::swap(only, &mut chunk.found),
            found => index.join(found, *finished, &mut chunk.found),
        }
    }
}
