//! The sum of each chunk of numbers on a device: the smallest [`Primitive`], as an example and as a
//! test of the device layer. No operator uses this primitive, so the linker leaves it out of
//! programs.

#![expect(unsafe_code, reason = "a contract with a kernel, which nothing checks")]

use std::sync::Arc;

use super::driver::{DeviceError, Images, Memory, images};
use super::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive, Slot};
use super::grid::{Grid, WARP};
use super::mirrored::MirroredBuffer;

const GRID: Grid = Grid::new(128, 64);

/// `sums[i]` is the sum of `values[i * len..(i + 1) * len]`; the last chunk may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The numbers.
    pub values: &'a [u32],
    /// Numbers of a chunk, at least 1; with `values.len()` added, at most 2^31.
    pub len: u32,
}

/// The buffers of a job; its limit is a number of values.
#[derive(Debug)]
pub struct ChunkSum {
    values: MirroredBuffer<u32>,
    sums: MirroredBuffer<u64>,
}

// SAFETY: the arguments are of the kernel's types. The kernel reads `values` numbers, all of which
// were sent, and writes a sum for each chunk; a chunk has at least one number, and there is room
// for as many sums. The grid has full warps.
unsafe impl Primitive for ChunkSum {
    const IMAGES: &'static Images = images!("chunk_sum");
    const KERNELS: &'static [&'static str] = &["chunk_sum"];

    type Limits = usize;
    type Job<'a> = Job<'a>;
    /// Values of the job, values of a chunk, chunks.
    type Kept = [u32; 3];
    /// Chunks.
    type Answered = usize;

    fn bytes(values: usize) -> usize {
        values.max(1) * (size_of::<u32>() + size_of::<u64>())
    }

    fn allocate(memory: &Arc<Memory>, values: usize) -> Result<Self, DeviceError> {
        let [values, sums] = [values.max(1); 2];
        let values = MirroredBuffer::new(memory, values)?;
        Ok(Self { values, sums: MirroredBuffer::new(memory, sums)? })
    }

    fn check(values_max: usize, &Job { values, len }: &Job<'_>) -> [u32; 3] {
        let count = values.len();
        assert!(count <= values_max, "{count} values in buffers of {values_max}");
        let fits = len > 0 && count + len as usize <= 1 << 31;
        let values = u32::try_from(count).ok().filter(|_| fits);
        let values = values.unwrap_or_else(|| panic!("{count} values in chunks of {len}"));
        [values, len, values.div_ceil(len)]
    }

    fn fill(&mut self, job: &Job<'_>) {
        self.values.fill(job.values);
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        step.send(&self.values)
    }

    fn launch(&self, kept: &[u32; 3], step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        let [values, len, chunks] = *kept;
        let blocks = chunks.div_ceil(GRID.threads() / WARP);
        let launch = GRID.launch("chunk_sum", step.device(), blocks, 0);
        step.launch(launch, (self.values.pointer(), values, len, self.sums.pointer()))
    }

    fn copy_out(&self, kept: &[u32; 3], step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        step.fetch(&self.sums, kept[2] as usize)
    }

    fn land(&self, kept: &[u32; 3], _: &mut Landing<'_>) -> Result<usize, DeviceError> {
        Ok(kept[2] as usize)
    }
}

impl Slot<ChunkSum> {
    /// The sums of the last job.
    #[must_use]
    pub fn sums(&self) -> &[u64] {
        let (buffers, chunks) = self.answered();
        &buffers.sums.host()[..*chunks]
    }
}
