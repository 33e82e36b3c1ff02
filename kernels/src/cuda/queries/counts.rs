//! Numbers of documents of a batch of queries, and its steps over a device.

#![expect(unsafe_code, reason = "a contract with kernels, which nothing checks")]

use std::sync::Arc;

use super::buffers::{QueryBuffers, QueryJob, QueryLimits};
use super::index::{DeviceIndex, SegmentArgument};
use super::launch::{COUNT_FUNCTIONS, Policy, Way};
use super::over_lists::OverLists;
use crate::cuda::driver::{DeviceError, Images, Memory, images};
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive, Slot};
use crate::cuda::mirrored::MirroredBuffer;
use crate::inverted::QueryBatch;

/// The number of documents of each query of a batch: the buffers of a batch.
///
/// # Shapes
///
/// `queries`: as [`QueryBatch`](crate::inverted::QueryBatch), with any first offset; counts:
/// `u32[queries]`, in the order of the queries.
///
/// # Cost
///
/// Over the bus: 4 bytes for each query and 4 for each term to the device, and 4 bytes for each
/// query from it, in two copies. On the host: two passes over offsets, and a pass over terms. On
/// the device: as [`count`](crate::inverted::Segment::count), with an id for each lane.
///
/// # Panics
///
/// [`Slot::submit`] panics if a batch exceeds its limits, or is restricted to a set of documents.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use trommel_kernels::cuda::queries::{DeviceIndex, Policy, QueryCounts, QueryJob, QueryLimits};
/// use trommel_kernels::cuda::{Device, Flights};
/// use trommel_kernels::inverted::{QueryBatch, Segment, SegmentBuilder};
///
/// let Ok(device) = Device::probe(0) else { return Ok(()) };
/// let mut builder = SegmentBuilder::new();
/// builder.push(&[0, 1]);
/// builder.push(&[1]);
/// let segment = Segment::new(builder.finish(2))?;
/// let limits = QueryLimits { queries: 100, terms: 400, units: 1000 };
/// let mut flights = Flights::<QueryCounts>::open(&device, 2, limits, 1 << 20)?;
/// let index = DeviceIndex::upload(flights.memory(), &segment)?;
/// let queries = QueryBatch::new(&[0, 2, 3], &[0, 1, 1]);
/// flights.submit(&QueryJob { queries, index: &index, policy: Policy::default() }, 0)?;
/// flights.collect(|slot| assert_eq!(slot.counts(), [1, 2]))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct QueryCounts {
    queries: QueryBuffers,
    counts: MirroredBuffer<u32>,
}

/// The index of a batch in flight, and the way to count.
#[derive(Debug)]
pub struct CountsKept {
    index: Arc<DeviceIndex>,
    policy: Policy,
}

// SAFETY: the arguments are of the kernels' types. Segments are valid, so that lists lie within
// their words; the kernels compare terms with the number of terms. Offsets do not descend and end
// with the number of terms, for which there is room twice. The kernels list units as far as there
// is room, and count one number for each query, for which there is room. The grids have full warps,
// and the shared memory that the kernels use.
unsafe impl Primitive for QueryCounts {
    const IMAGES: &'static Images = images!("queries");
    const KERNELS: &'static [&'static str] = &COUNT_FUNCTIONS;

    type Limits = QueryLimits;
    type Job<'a> = QueryJob<'a>;
    type Kept = CountsKept;
    /// Queries.
    type Answered = usize;

    fn bytes(limits: QueryLimits) -> usize {
        limits.bytes()
    }

    fn allocate(memory: &Arc<Memory>, limits: QueryLimits) -> Result<Self, DeviceError> {
        let queries = QueryBuffers::new(memory, limits)?;
        Ok(Self { queries, counts: MirroredBuffer::new(memory, limits.queries.max(1))? })
    }

    fn check(limits: QueryLimits, job: &QueryJob<'_>) -> CountsKept {
        Self::check_batch(limits, job.queries);
        CountsKept { index: Arc::clone(job.index), policy: job.policy }
    }

    fn fill(&mut self, job: &QueryJob<'_>) {
        self.fill_batch(job.queries);
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        self.send_batch(step)
    }

    fn launch(&self, kept: &CountsKept, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        self.launch_over(kept.index.argument(), &kept.policy, step)
    }

    fn copy_out(&self, _: &CountsKept, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        self.fetch(step)
    }

    fn land(&self, _: &CountsKept, landing: &mut Landing<'_>) -> Result<usize, DeviceError> {
        self.land_batch(landing)
    }
}

impl OverLists for QueryCounts {
    fn check_batch(limits: QueryLimits, queries: QueryBatch<'_>) {
        QueryBuffers::check(limits, queries);
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
        let queries = self.queries.argument(segment, self.counts.pointer());
        match policy.way() {
            Way::Units => {
                let [first, listed, _] = COUNT_FUNCTIONS;
                step.launch(policy.launch_first(first, device, count), (queries,))?;
                step.launch(policy.launch_listed(listed, device), (queries,))
            }
            Way::Blocks => step.launch(policy.launch_blocks(device, count), (queries,)),
        }
    }

    fn fetch(&self, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        step.fetch(&self.counts, self.queries.queries() as usize)
    }

    fn land_batch(&self, _: &mut Landing<'_>) -> Result<usize, DeviceError> {
        Ok(self.queries.queries() as usize)
    }
}

impl QueryCounts {
    /// The number of documents of each of `queries` queries.
    pub(super) fn counts(&self, queries: usize) -> &[u32] {
        &self.counts.host()[..queries]
    }
}

impl Slot<QueryCounts> {
    /// The number of documents of each query of the last batch.
    #[must_use]
    pub fn counts(&self) -> &[u32] {
        let (buffers, queries) = self.answered();
        buffers.counts(*queries)
    }
}
