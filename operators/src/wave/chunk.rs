//! Chunks of work, and the places where they are answered.

use super::device::choice::Estimate;
use super::parts::workers::Assignment;

/// A chunk of regular work: the input of a kernel, and memory for its answer.
///
/// Chunks are made once and used again and again: [`clear`](Self::clear) empties a used chunk
/// before it is refilled.
pub trait WaveChunk: Send + 'static {
    /// Number of items, for the report.
    fn items(&self) -> usize;

    /// Size in bytes, for the limits of queues.
    fn bytes(&self) -> usize;

    /// Removes all items, and limits the chunk to about `bytes_max` bytes from now on. Allocated
    /// memory is kept.
    fn clear(&mut self, bytes_max: usize);

    /// Modelled cost of this chunk on one core and on a device, asked when the chunk has been
    /// filled. By this cost, the wave divides chunks among kernels, and [`Device::Auto`] decides.
    ///
    /// The provided method returns a cost of 0, with which `auto` never opens a device.
    ///
    /// [`Device::Auto`]: super::Device::Auto
    fn estimate(&self) -> Estimate {
        Estimate::default()
    }

    /// The place where the chunk is to be answered, asked when the chunk has been filled.
    fn target(&self) -> Target {
        Target::Cheaper
    }

    /// Whether collect reads the chunk in the order of the stream, asked when the chunk has been
    /// filled. Other chunks, such as work for later chunks, have no rows: such a chunk returns to
    /// prepare as soon as it has been answered, and no row waits for such a chunk.
    fn has_rows(&self) -> bool {
        true
    }

    /// Whether the kernel can leave items unfinished, asked when the chunk has been filled. Prepare
    /// ends only after all such chunks have returned.
    fn may_be_unfinished(&self) -> bool {
        false
    }

    /// Whether the CPU has made the input of the answer, and a device is to give the answer, asked
    /// when a kernel has run the chunk on the CPU. The chunk keeps its place. A kernel runs the
    /// chunk again if no device is left, and the answer is then that of the CPU.
    fn awaits_device(&self) -> bool {
        false
    }

    /// Keeps only the items that the kernel has left unfinished, because the answers did not fit
    /// the chunk; true if any item is left. The chunk is then resubmitted to the kernel.
    fn retain_unfinished(&mut self) -> bool {
        false
    }

    /// Drops data that is shared with other chunks. Called when the answer has been read. Data
    /// that unfinished items need must stay.
    fn release(&mut self) {}
}

/// The place where a chunk is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// On the CPU, also with [`Device::Cuda`](super::Device::Cuda).
    Cpu,
    /// On the device, if there still is one: the producer has made the chunk for a device.
    Device,
    /// On the device if that pays, by the [estimate](WaveChunk::estimate); else on the CPU.
    Cheaper,
}

/// A chunk between the parts of an operator.
#[derive(Debug)]
pub(super) struct InWave<C> {
    pub(super) chunk: C,
    /// Whether a device is to answer the chunk, because the device can and pays.
    pub(super) device_pays: bool,
    /// Whether prepare waits for the chunk at the end of the stream.
    pub(super) is_awaited: bool,
    /// Number of the kernel that answers the chunk.
    pub(super) worker: usize,
    /// The chunk's share of the modelled work of that kernel or of its device, until the chunk has
    /// been answered.
    pub(super) work: Option<Assignment>,
    /// Place in the order in which collect reads chunks, from 0; none if the chunk has no rows.
    pub(super) place: Option<u64>,
    /// Whether the CPU has handled the chunk in place of a device that is lost.
    pub(super) has_lost_device: bool,
    /// Whether a device is to answer the chunk, because the device of the chunk was lost, or
    /// because the CPU has made the input of the answer. The chunk keeps its place.
    pub(super) is_undone: bool,
}

impl<C> InWave<C> {
    pub(super) fn new(chunk: C) -> Self {
        Self {
            chunk,
            device_pays: false,
            is_awaited: false,
            worker: 0,
            work: None,
            place: None,
            has_lost_device: false,
            is_undone: false,
        }
    }

    /// Moves the chunk to the kernel `worker`, which takes the chunk from another kernel.
    pub(super) fn move_to(&mut self, worker: usize) {
        self.worker = worker;
        if let Some(work) = &mut self.work {
            work.move_to(worker);
        }
    }
}
