//! Chunks of strips of sparse rows, and their steps over a device.

#![expect(unsafe_code, reason = "a contract with kernels, which nothing checks")]

use std::sync::Arc;

use super::chunk::COUNT_MAX;
use super::launch::{SPARSE_KERNEL, launch_sparse};
use super::sparse_rows::{SparseArgument, SparseRows};
use super::strip::{STRIP_WIDTH, Strip, strip_width};
use crate::cuda::driver::{DeviceError, DevicePointer, Images, Memory, images};
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive, Slot};
use crate::cuda::mirrored::MirroredBuffer;
use crate::cuda::output::{BoundedOutput, OutputLimits, Written};
use crate::memory::Plain;
use crate::supports::Pair;

// SAFETY: three `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Strip {}

/// The largest chunk of strips that a slot takes, and the room for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPairLimits {
    /// Strips of the chunk.
    pub strips: usize,
    /// Left items of the widest strip of the chunk.
    pub width: u32,
    /// Room for frequent pairs: at least `width`, since a strip is finished as a whole.
    pub pairs: usize,
}

impl RowPairLimits {
    /// The bytes of a slot in the device's memory; a slot takes as many in pinned memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.strips.max(1) * size_of::<Strip>() + self.output().bytes::<Pair, Strip>()
    }

    fn output(&self) -> OutputLimits {
        OutputLimits { matches: self.pairs, units: self.strips, counters: 0 }
    }
}

/// A chunk of strips and the question about it: the pairs with a support of at least `least`.
#[derive(Clone, Debug)]
pub struct RowJob<'a> {
    /// Strips of `rows`, without repetition; strips with most work are best first.
    pub strips: &'a [Strip],
    /// The transactions, on the device.
    pub rows: &'a Arc<SparseRows>,
    /// The least support, at least 1.
    pub least: u32,
}

/// Frequent pairs of strips of sparse rows: the buffers of a chunk.
///
/// # Cost
///
/// An addition for each item that precedes the right item in a transaction, whatever the number of
/// left items; each strip reads all pieces of its right item.
#[derive(Debug)]
pub struct RowPairs {
    strips: MirroredBuffer<Strip>,
    output: BoundedOutput<Pair, Strip>,
    /// Left items of the widest strip of the chunk.
    width: u32,
}

/// The transactions of a chunk in flight, and the question about it.
#[derive(Debug)]
pub struct RowsKept {
    rows: Arc<SparseRows>,
    least: u32,
}

/// The answer in the buffers.
#[derive(Debug, Default)]
pub struct RowsAnswered(Written);

/// The strips as an argument of the kernel: `Strips` of `sparse.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct StripsArgument {
    rows: SparseArgument,
    strips: DevicePointer<Strip>,
    strip_count: u32,
    least: u32,
    lanes: u32,
}

// SAFETY: the arguments are of the kernel's types. The strips have been checked against the rows,
// whose pieces lie within the items of the transactions. The kernel counts only left items of the
// strip, for which the block has shared memory, writes pairs within the room that it is told of,
// and leaves a strip unfinished at most once, for which there is room.
unsafe impl Primitive for RowPairs {
    const IMAGES: &'static Images = images!("sparse");
    const KERNELS: &'static [&'static str] = &[SPARSE_KERNEL];

    type Limits = RowPairLimits;
    type Job<'a> = RowJob<'a>;
    type Kept = RowsKept;
    type Answered = RowsAnswered;

    fn bytes(limits: RowPairLimits) -> usize {
        limits.bytes()
    }

    fn allocate(memory: &Arc<Memory>, limits: RowPairLimits) -> Result<Self, DeviceError> {
        let RowPairLimits { strips, width, pairs } = limits;
        let width_max = strip_width(memory.device().properties()).max(STRIP_WIDTH);
        assert!(width <= width_max, "strips of {width} items; the device counts {width_max}");
        assert!(strips.max(pairs) <= COUNT_MAX, "{limits:?} exceed {COUNT_MAX}");
        assert!(pairs >= width.max(1) as usize, "room for {pairs} pairs; {width} are needed");
        let output = BoundedOutput::new(memory, limits.output())?;
        Ok(Self { strips: MirroredBuffer::new(memory, strips.max(1))?, output, width: 0 })
    }

    /// Checks that the strips are within the limits, and of these rows.
    fn check(limits: RowPairLimits, job: &RowJob<'_>) -> RowsKept {
        let &RowJob { strips, rows, least } = job;
        assert!(least > 0, "the least support is 1");
        let (len, max) = (strips.len(), limits.strips);
        assert!(len <= max, "a chunk of {len} strips exceeds {max}");
        let (items, width) = (rows.items(), limits.width);
        for strip in strips {
            let Strip { right, begin, end } = *strip;
            let is_inside = begin <= end && end <= right && right < items;
            assert!(is_inside, "{strip:?} of {items} items: begin <= end <= right is needed");
            assert!(end - begin <= width, "{strip:?} is wider than {width}");
        }
        RowsKept { rows: Arc::clone(rows), least }
    }

    fn fill(&mut self, job: &RowJob<'_>) {
        self.strips.fill(job.strips);
        self.width = job.strips.iter().map(|strip| strip.end - strip.begin).max().unwrap_or(0);
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        step.send(&self.strips)
    }

    fn launch(&self, kept: &RowsKept, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        let RowsKept { rows, least } = kept;
        self.output.clear(step)?;
        let strip_count = u32::try_from(self.strips.filled()).expect("within the slot's limits");
        let strips = StripsArgument {
            rows: rows.argument(),
            strips: self.strips.pointer(),
            strip_count,
            least: *least,
            lanes: rows.lanes(),
        };
        let launch = launch_sparse(step.device(), strip_count, self.width);
        step.launch(launch, (strips, self.output.argument()))
    }

    fn copy_out(&self, _: &RowsKept, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        self.output.fetch(step)
    }

    fn land(&self, _: &RowsKept, landing: &mut Landing<'_>) -> Result<RowsAnswered, DeviceError> {
        self.output.land(landing).map(RowsAnswered)
    }
}

impl Slot<RowPairs> {
    /// The frequent pairs of the finished strips of the last chunk.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        let (buffers, answer) = self.answered();
        buffers.output.matches(answer.0)
    }

    /// The strips of the last chunk whose pairs did not find room.
    #[must_use]
    pub fn unfinished(&self) -> &[Strip] {
        let (buffers, answer) = self.answered();
        buffers.output.unfinished(answer.0)
    }
}
