//! Documents of a batch of queries, and its steps over a device.

#![expect(unsafe_code, reason = "a contract with kernels, which nothing checks")]

use std::sync::Arc;

use super::buffers::{COUNT_MAX, QueryBuffers, QueryJob, QueryLimits};
use super::index::{DeviceIndex, SegmentArgument};
use super::launch::{FIND_FUNCTIONS, Policy, launch_offsets};
use super::over_lists::OverLists;
use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Images, Memory, images};
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive, Slot};
use crate::cuda::mirrored::MirroredBuffer;
use crate::inverted::QueryBatch;
use crate::memory::Plain;

/// Words of bits of a unit: `UNIT_GROUPS` of `queries.cuh`.
const HIT_WORDS: usize = 8;

/// The offset of the end of a query whose documents have no room.
const UNFINISHED: u32 = u32::MAX;

/// Units of a query in the list: `Listed` of `queries.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Listed {
    first: u32,
    count: u32,
}

// SAFETY: two `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Listed {}

/// The largest batch of a slot, and the room for its documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentLimits {
    /// Queries, terms and units.
    pub queries: QueryLimits,
    /// Room for documents: at least the length of the shortest list of each query, since a query
    /// is finished as a whole.
    pub documents: usize,
}

impl DocumentLimits {
    /// Number of units of work: the first unit of each query, and the listed units.
    fn works(&self) -> usize {
        self.queries.queries + self.queries.units.max(1)
    }

    /// The bytes of a slot in the device's memory; pinned memory has fewer.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of_queries = self.queries.queries.max(1) * (4 * size_of::<u32>() + size_of::<Listed>());
        let of_works = self.works() * (1 + HIT_WORDS) * size_of::<u32>();
        let of_documents = (1 + self.documents) * size_of::<u32>();
        self.queries.bytes() + of_queries + of_works + of_documents
    }
}

/// The documents of each query of a batch: the buffers of a batch.
///
/// # Shapes
///
/// `queries`: as [`QueryBatch`](crate::inverted::QueryBatch), with any first offset; documents: ids
/// of the first [`finished`](Slot::finished) queries one after another, ascending for each query.
///
/// # Cost
///
/// Over the bus: 4 bytes for each query and 4 for each term to the device, 4 bytes for each query
/// from it, and then exactly 4 for each document. On the device: 36 bytes of memory for each unit.
///
/// # Panics
///
/// [`Slot::submit`] panics if a batch exceeds its limits, or is restricted to a set of documents.
#[derive(Debug)]
pub struct QueryDocuments {
    queries: QueryBuffers,
    found: DeviceBuffer<u32>,
    hits: DeviceBuffer<u32>,
    listed: DeviceBuffer<Listed>,
    tails: DeviceBuffer<u32>,
    totals: DeviceBuffer<u32>,
    offsets: MirroredBuffer<u32>,
    documents: MirroredBuffer<u32>,
}

/// The index of a batch in flight, and the cut into blocks.
#[derive(Debug)]
pub struct DocumentsKept {
    index: Arc<DeviceIndex>,
    policy: Policy,
}

/// The number of finished queries.
#[derive(Debug, Default)]
pub struct DocumentsAnswered {
    queries: usize,
    finished: usize,
}

/// Documents as an argument of kernels: `Documents` of `queries.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct DocumentsArgument {
    hits: DevicePointer<u32>,
    listed: DevicePointer<Listed>,
    tails: DevicePointer<u32>,
    totals: DevicePointer<u32>,
    offsets: DevicePointer<u32>,
    documents: DevicePointer<u32>,
    room: u32,
}

impl QueryDocuments {
    fn argument(&self) -> DocumentsArgument {
        DocumentsArgument {
            hits: self.hits.pointer(),
            listed: self.listed.pointer(),
            tails: self.tails.pointer(),
            totals: self.totals.pointer(),
            offsets: self.offsets.pointer(),
            documents: self.documents.pointer(),
            room: u32::try_from(self.documents.len()).expect("checked when it was made"),
        }
    }
}

// SAFETY: as for `QueryCounts`. Each unit of work has room for its number and its bits, and each
// query for its units, tail, total and offset. Documents are written only for queries whose end is
// within the room, as many as were counted.
unsafe impl Primitive for QueryDocuments {
    const IMAGES: &'static Images = images!("queries");
    const KERNELS: &'static [&'static str] = &FIND_FUNCTIONS;

    type Limits = DocumentLimits;
    type Job<'a> = QueryJob<'a>;
    type Kept = DocumentsKept;
    type Answered = DocumentsAnswered;

    fn bytes(limits: DocumentLimits) -> usize {
        limits.bytes()
    }

    fn allocate(memory: &Arc<Memory>, limits: DocumentLimits) -> Result<Self, DeviceError> {
        let (queries, room) = (limits.queries.queries.max(1), limits.documents);
        assert!(0 < room && room < COUNT_MAX, "room for {room} documents: 1 to {COUNT_MAX}");
        Ok(Self {
            queries: QueryBuffers::new(memory, limits.queries)?,
            found: memory.device_buffer(limits.works())?,
            hits: memory.device_buffer(limits.works() * HIT_WORDS)?,
            listed: memory.device_buffer(queries)?,
            tails: memory.device_buffer(queries)?,
            totals: memory.device_buffer(queries)?,
            offsets: MirroredBuffer::new(memory, queries + 1)?,
            documents: MirroredBuffer::new(memory, room)?,
        })
    }

    fn check(limits: DocumentLimits, job: &QueryJob<'_>) -> DocumentsKept {
        Self::check_batch(limits, job.queries);
        DocumentsKept { index: Arc::clone(job.index), policy: job.policy }
    }

    fn fill(&mut self, job: &QueryJob<'_>) {
        self.fill_batch(job.queries);
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        self.send_batch(step)
    }

    fn launch(&self, kept: &DocumentsKept, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        self.launch_over(kept.index.argument(), &kept.policy, step)
    }

    fn copy_out(&self, _: &DocumentsKept, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        self.fetch(step)
    }

    fn land(
        &self,
        _: &DocumentsKept,
        landing: &mut Landing<'_>,
    ) -> Result<DocumentsAnswered, DeviceError> {
        self.land_batch(landing)
    }
}

impl OverLists for QueryDocuments {
    fn check_batch(limits: DocumentLimits, queries: QueryBatch<'_>) {
        QueryBuffers::check(limits.queries, queries);
    }

    fn fill_batch(&mut self, queries: QueryBatch<'_>) {
        self.queries.fill(queries);
    }

    fn send_batch(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        self.queries.copy_in(step)
    }

    fn launch_over(
        &self,
        segment: SegmentArgument,
        policy: &Policy,
        step: &LaunchStep<'_>,
    ) -> Result<(), DeviceError> {
        let (device, count) = (step.device(), self.queries.queries());
        let queries = self.queries.argument(segment, self.found.pointer());
        let arguments = (queries, self.argument());
        let [first, listed, totals, _, documents] = FIND_FUNCTIONS;
        step.launch(policy.launch_first(first, device, count), arguments)?;
        step.launch(policy.launch_listed(listed, device), arguments)?;
        step.launch(policy.launch_first(totals, device, count), arguments)?;
        step.launch(launch_offsets(device), arguments)?;
        step.launch(policy.launch_listed(documents, device), arguments)
    }

    fn fetch(&self, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        step.fetch(&self.offsets, self.queries.queries() as usize + 1)
    }

    /// Copies the documents when their number is known: the room is often much larger.
    fn land_batch(&self, landing: &mut Landing<'_>) -> Result<DocumentsAnswered, DeviceError> {
        let queries = self.queries.queries() as usize;
        let offsets = &self.offsets.host()[..=queries];
        let finished = offsets.partition_point(|&offset| offset != UNFINISHED) - 1;
        landing.fetch(&self.documents, offsets[finished] as usize)?;
        Ok(DocumentsAnswered { queries, finished })
    }
}

impl DocumentsAnswered {
    /// The number of finished queries.
    pub(super) fn finished(&self) -> usize {
        self.finished
    }
}

impl QueryDocuments {
    /// The begin of the documents of each finished query and the end, and all these documents.
    pub(super) fn all(&self, answer: &DocumentsAnswered) -> (&[u32], &[u32]) {
        if answer.queries == 0 {
            return (&[0], &[]);
        }
        let offsets = &self.offsets.host()[..=answer.finished];
        (offsets, &self.documents.host()[..offsets[answer.finished] as usize])
    }
}

impl Slot<QueryDocuments> {
    /// The number of queries at the front of the last batch whose documents found room. The caller
    /// asks the remaining queries again. At least one query of a batch is finished if the room is
    /// at least the length of the shortest list of the first query.
    #[must_use]
    pub fn finished(&self) -> usize {
        self.answered().1.finished
    }

    /// The documents of a query of the last batch, ascending; `None` if the documents found no
    /// room.
    ///
    /// # Panics
    ///
    /// If there is no such query.
    #[must_use]
    pub fn documents(&self, query: usize) -> Option<&[u32]> {
        let (buffers, answer) = self.answered();
        let queries = answer.queries;
        assert!(query < queries, "query {query} of {queries}");
        let (offsets, documents) = buffers.all(answer);
        let is_finished = query < answer.finished;
        is_finished.then(|| &documents[offsets[query] as usize..offsets[query + 1] as usize])
    }

    /// The begin of the documents of each finished query and the end, and all these documents.
    #[must_use]
    pub fn all_documents(&self) -> (&[u32], &[u32]) {
        let (buffers, answer) = self.answered();
        buffers.all(answer)
    }
}
