//! Batches that send their lists: the index stays on the host.

#![expect(unsafe_code, reason = "a contract with kernels, which nothing checks")]

use std::sync::Arc;

use super::counts::QueryCounts;
use super::documents::QueryDocuments;
use super::index::SegmentArgument;
use super::launch::Policy;
use super::over_lists::OverLists;
use crate::cuda::driver::{DeviceError, Images, Memory};
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive, Slot};
use crate::cuda::mirrored::MirroredBuffer;
use crate::inverted::NamedLists;

/// The largest batch of a slot, and the room for its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamedLimits<L> {
    /// The limits of the batch.
    pub batch: L,
    /// Words of the segment of the batch's lists.
    pub words: usize,
}

/// A batch of queries and the lists that it names.
#[derive(Clone, Copy, Debug)]
pub struct StreamedJob<'a> {
    /// The lists, and the queries with numbers of lists in place of terms.
    pub lists: NamedLists<'a>,
    /// The way to count.
    pub policy: Policy,
}

/// The buffers of a batch, with room for the lists that it names: for an index that is larger than
/// the device's memory.
///
/// The lists go to the device in the layout of a segment, without repetition, so that the kernels
/// are the same as for a resident segment. `Q` has the answers: [`QueryCounts`] or
/// [`QueryDocuments`].
///
/// # Shapes
///
/// `lists`: as [`NamedLists`](crate::inverted::NamedLists); answers: as `Q`, for the queries whose
/// lists are named.
///
/// # Cost
///
/// On the host: a copy of the lists to pinned memory. Over the bus: the words of the lists and the
/// table, 16 bytes for each list, in addition to the bytes of `Q`. On the device: as `Q`.
///
/// # Panics
///
/// [`Slot::submit`] panics if the lists have more words than the slot, or as `Q` says.
///
/// # Examples
///
/// ```
/// use trommel_kernels::cuda::queries::{
///     Policy, QueryCounts, QueryLimits, Streamed, StreamedJob, StreamedLimits,
/// };
/// use trommel_kernels::cuda::{Device, Flights};
/// use trommel_kernels::inverted::{ListNamer, QueryBatch, Segment, SegmentBuilder};
///
/// let Ok(device) = Device::probe(0) else { return Ok(()) };
/// let mut builder = SegmentBuilder::new();
/// builder.push(&[0, 1]);
/// builder.push(&[1]);
/// let segment = Segment::new(builder.finish(2))?;
/// let batch = QueryLimits { queries: 100, terms: 400, units: 1000 };
/// let limits = StreamedLimits { batch, words: 1 << 10 };
/// let mut flights = Flights::<Streamed<QueryCounts>>::open(&device, 2, limits, 0)?;
/// let mut namer = ListNamer::new();
/// let queries = QueryBatch::new(&[0, 2, 3], &[0, 1, 1]);
/// let lists = namer.name(&segment, queries, limits.words);
/// assert_eq!(lists.queries().len(), 2, "all lists have room");
/// flights.submit(&StreamedJob { lists, policy: Policy::default() }, 0)?;
/// flights.collect(|slot| assert_eq!(slot.counts(), [1, 2]))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Streamed<Q> {
    lists: MirroredBuffer<u32>,
    answers: Q,
}

/// The shape of the lists of a batch in flight, and the way to count.
#[derive(Debug)]
pub struct StreamedKept {
    documents: u32,
    terms: u32,
    policy: Policy,
}

// SAFETY: as for `Q`. The lists are a valid segment, since they are copied from a segment, in a
// buffer of the slot that has room for all their words.
unsafe impl<Q: OverLists> Primitive for Streamed<Q> {
    const IMAGES: &'static Images = Q::IMAGES;
    const KERNELS: &'static [&'static str] = Q::KERNELS;

    type Limits = StreamedLimits<Q::Limits>;
    type Job<'a> = StreamedJob<'a>;
    type Kept = StreamedKept;
    type Answered = Q::Answered;

    fn bytes(limits: Self::Limits) -> usize {
        let lists = limits.words.saturating_mul(size_of::<u32>());
        Q::bytes(limits.batch).saturating_add(lists)
    }

    fn allocate(memory: &Arc<Memory>, limits: Self::Limits) -> Result<Self, DeviceError> {
        let lists = MirroredBuffer::new(memory, limits.words)?;
        Ok(Self { lists, answers: Q::allocate(memory, limits.batch)? })
    }

    fn check(limits: Self::Limits, job: &StreamedJob<'_>) -> StreamedKept {
        let (words, max) = (job.lists.words(), limits.words);
        assert!(words <= max, "lists of {words} words exceed {max}");
        Q::check_batch(limits.batch, job.lists.queries());
        let (documents, terms) = job.lists.shape();
        StreamedKept { documents, terms, policy: job.policy }
    }

    fn fill(&mut self, job: &StreamedJob<'_>) {
        self.lists.fill_from(job.lists.words(), |words| job.lists.write(words));
        self.answers.fill_batch(job.lists.queries());
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        step.send(&self.lists)?;
        self.answers.send_batch(step)
    }

    fn launch(&self, kept: &StreamedKept, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        let StreamedKept { documents, terms, policy } = kept;
        let segment = SegmentArgument::new(self.lists.pointer(), *documents, *terms);
        self.answers.launch_over(segment, policy, step)
    }

    fn copy_out(&self, _: &StreamedKept, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        self.answers.fetch(step)
    }

    fn land(
        &self,
        _: &StreamedKept,
        landing: &mut Landing<'_>,
    ) -> Result<Self::Answered, DeviceError> {
        self.answers.land_batch(landing)
    }
}

impl Slot<Streamed<QueryCounts>> {
    /// The number of documents of each query of the last batch.
    #[must_use]
    pub fn counts(&self) -> &[u32] {
        let (buffers, queries) = self.answered();
        buffers.answers.counts(*queries)
    }
}

impl Slot<Streamed<QueryDocuments>> {
    /// As [`finished`](Slot::<QueryDocuments>::finished) over resident lists.
    #[must_use]
    pub fn finished(&self) -> usize {
        self.answered().1.finished()
    }

    /// The begin of the documents of each finished query and the end, and all these documents.
    #[must_use]
    pub fn all_documents(&self) -> (&[u32], &[u32]) {
        let (buffers, answer) = self.answered();
        buffers.answers.all(answer)
    }
}
