//! Numbers of documents by the plain algorithm of the paper, for comparison.

#![expect(unsafe_code, reason = "a contract with kernels, which nothing checks")]

use std::sync::Arc;

use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Images, Memory, images};
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive, Slot};
use crate::cuda::mirrored::MirroredBuffer;
use crate::cuda::queries::buffers::{COUNT_MAX, QueryBuffers, QueryJob, QueryLimits};
use crate::cuda::queries::index::DeviceIndex;
use crate::cuda::queries::launch::{Policy, SERIAL_FUNCTIONS, SERIAL_IDS, launch_alone};

/// The largest batch of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SerialLimits {
    /// Queries.
    pub queries: usize,
    /// Terms of all queries.
    pub terms: usize,
    /// Ids of the longest list.
    pub ids: usize,
}

impl SerialLimits {
    fn queries(&self) -> QueryLimits {
        QueryLimits { queries: self.queries, terms: self.terms, units: 0 }
    }

    fn tiles(&self) -> usize {
        self.ids.div_ceil(SERIAL_IDS)
    }
}

/// The number of documents of each query of a batch, one query after another: the plain algorithm
/// of the paper (§III, end), for comparison.
///
/// All blocks of the device intersect the two shortest lists of a query, with a thread for each id;
/// then they intersect the result with the next list, and so on. Each step is a search, a scan and
/// a compaction, in kernels of their own. In the paper's serial model a query goes to the device
/// when the answer to the previous query has returned: batches of one query on one slot.
///
/// Departures: our scan, over blocks of 256 threads, replaces the scan of a library; a warp orders
/// the lists of a query.
///
/// # Shapes
///
/// As [`QueryCounts`](crate::cuda::queries::QueryCounts), over an index of plain lists
/// ([`DeviceIndex::upload_plain`]).
///
/// # Cost
///
/// Over the bus: as [`QueryCounts`](crate::cuda::queries::QueryCounts). On the device: a binary
/// search for each id that remains before a step, four launches for the first step of a query and
/// three for each further step.
///
/// # Panics
///
/// [`Slot::submit`] panics if a batch exceeds its limits, or the lists are not plain.
#[derive(Debug)]
pub struct SerialCounts {
    queries: QueryBuffers,
    counts: MirroredBuffer<u32>,
    /// Ids before a step and after it, in turn.
    ids: [DeviceBuffer<u32>; 2],
    sums: DeviceBuffer<u32>,
    tiles: DeviceBuffer<u32>,
    lefts: DeviceBuffer<u32>,
}

/// The index of a batch in flight, the number of terms of each query, and the cut into blocks.
#[derive(Debug)]
pub struct SerialKept {
    index: Arc<DeviceIndex>,
    terms: Vec<u32>,
    policy: Policy,
}

/// The remaining ids as an argument of kernels: `Serial` of `serial.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct SerialArgument {
    from: DevicePointer<u32>,
    to: DevicePointer<u32>,
    sums: DevicePointer<u32>,
    tiles: DevicePointer<u32>,
    lefts: DevicePointer<u32>,
}

impl SerialCounts {
    /// The arguments of a step; the first step is 1.
    fn argument(&self, step: u32) -> SerialArgument {
        let [even, odd] = &self.ids;
        let (from, to) = if step.is_multiple_of(2) { (odd, even) } else { (even, odd) };
        SerialArgument {
            from: from.pointer(),
            to: to.pointer(),
            sums: self.sums.pointer(),
            tiles: self.tiles.pointer(),
            lefts: self.lefts.pointer(),
        }
    }
}

// SAFETY: as for `QueryCounts`. No list has more ids than there is room for, so that each id has a
// place before a step, a place after it, and a sum, and each tile of ids has a sum. There are as
// many steps as terms, and each step has a number of ids.
unsafe impl Primitive for SerialCounts {
    const IMAGES: &'static Images = images!("serial");
    const KERNELS: &'static [&'static str] = &SERIAL_FUNCTIONS;

    type Limits = SerialLimits;
    type Job<'a> = QueryJob<'a>;
    type Kept = SerialKept;
    /// Queries.
    type Answered = usize;

    fn bytes(limits: SerialLimits) -> usize {
        let words = limits.queries.max(1) + 3 * limits.ids + limits.tiles() + limits.terms + 1;
        limits.queries().bytes() + words * size_of::<u32>()
    }

    fn allocate(memory: &Arc<Memory>, limits: SerialLimits) -> Result<Self, DeviceError> {
        let SerialLimits { queries, terms, ids } = limits;
        assert!(ids < COUNT_MAX, "{limits:?}: each is below {COUNT_MAX}");
        Ok(Self {
            queries: QueryBuffers::new(memory, limits.queries())?,
            counts: MirroredBuffer::new(memory, queries.max(1))?,
            ids: [memory.device_buffer(ids)?, memory.device_buffer(ids)?],
            sums: memory.device_buffer(ids)?,
            tiles: memory.device_buffer(limits.tiles())?,
            lefts: memory.device_buffer(terms + 1)?,
        })
    }

    fn check(limits: SerialLimits, job: &QueryJob<'_>) -> SerialKept {
        QueryBuffers::check(limits.queries(), job.queries);
        let (longest, room) = (job.index.longest() as usize, limits.ids);
        assert!(job.index.is_plain(), "the lists are not plain");
        assert!(longest <= room, "a list of {longest} ids exceeds {room}");
        let (offsets, _) = job.queries.parts();
        let terms = offsets.windows(2).map(|ends| ends[1] - ends[0]).collect();
        SerialKept { index: Arc::clone(job.index), terms, policy: job.policy }
    }

    fn fill(&mut self, job: &QueryJob<'_>) {
        self.queries.fill(job.queries);
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        self.queries.copy_in(step)
    }

    fn launch(&self, kept: &SerialKept, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        let SerialKept { index, terms, policy } = kept;
        let queries = self.queries.argument(index.argument(), self.counts.pointer());
        let [begin, search, scan, compact] = SERIAL_FUNCTIONS;
        let device = step.device();
        for (query, &terms) in (0_u32..).zip(terms) {
            step.launch(launch_alone(begin, device), (queries, self.argument(1), query))?;
            for list in 1..terms {
                let arguments = (queries, self.argument(list), query, list);
                step.launch(policy.launch_ids(search, device, index.longest()), arguments)?;
                step.launch(launch_alone(scan, device), arguments)?;
                step.launch(policy.launch_ids(compact, device, index.longest()), arguments)?;
            }
        }
        Ok(())
    }

    fn copy_out(&self, _: &SerialKept, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        step.fetch(&self.counts, self.queries.queries() as usize)
    }

    fn land(&self, _: &SerialKept, _: &mut Landing<'_>) -> Result<usize, DeviceError> {
        Ok(self.queries.queries() as usize)
    }
}

impl Slot<SerialCounts> {
    /// The number of documents of each query of the last batch.
    #[must_use]
    pub fn counts(&self) -> &[u32] {
        let (buffers, queries) = self.answered();
        &buffers.counts.host()[..*queries]
    }
}
