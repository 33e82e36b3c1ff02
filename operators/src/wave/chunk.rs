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

    /// Modelled cost of this chunk on one core and on a device, asked when it has been filled. The
    /// wave divides chunks among kernels by it, and [`Device::Auto`] decides by it.
    ///
    /// The provided method returns a cost of 0, with which `auto` never opens a device.
    ///
    /// [`Device::Auto`]: super::Device::Auto
    fn estimate(&self) -> Estimate {
        Estimate::default()
    }

    /// Where it is to be answered, asked when it has been filled.
    fn target(&self) -> Target {
        Target::Cheaper
    }

    /// Whether collect reads it in its order, asked when it has been filled. Other chunks, such as
    /// work for later chunks, have no rows: they come back as soon as they have been answered, and
    /// rows do not wait for them.
    fn has_rows(&self) -> bool {
        true
    }

    /// Whether the kernel can leave items unfinished, asked when the chunk has been filled.
    /// Prepare ends only after all such chunks have come back.
    fn may_be_unfinished(&self) -> bool {
        false
    }

    /// Keeps only the items that the kernel has left unfinished, because their answers did not
    /// fit the chunk; true if there are any. The chunk is then resubmitted to the kernel.
    fn retain_unfinished(&mut self) -> bool {
        false
    }

    /// Drops data that is shared with other chunks. Called when the answer has been read. Data
    /// that unfinished items need must stay.
    fn release(&mut self) {}
}

/// Where a chunk is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// On the CPU, also with [`Device::Cuda`](super::Device::Cuda).
    Cpu,
    /// On the device, if there still is one: its producer has made it for a device.
    Device,
    /// On the device if that pays, by the [estimate](WaveChunk::estimate); else on the CPU.
    Cheaper,
}

/// A chunk between the parts of an operator.
#[derive(Debug)]
pub(super) struct InWave<C> {
    pub(super) chunk: C,
    /// Whether a device is to answer it: it can, and pays.
    pub(super) device_pays: bool,
    /// Whether prepare waits for it at the end of the stream.
    pub(super) is_awaited: bool,
    /// Number of the kernel that answers it.
    pub(super) worker: usize,
    /// Its part of the work of that kernel, until the CPU has answered it; none on a device.
    pub(super) work: Option<Assignment>,
    /// Its place in the order in which collect reads chunks, from 0; none if it has no rows.
    pub(super) place: Option<u64>,
    /// Whether the CPU has answered it in place of a device, which is not there any more.
    pub(super) has_lost_device: bool,
}

impl<C> InWave<C> {
    pub(super) fn new(chunk: C) -> Self {
        let (device_pays, is_awaited, has_lost_device) = (false, false, false);
        let (worker, work, place) = (0, None, None);
        Self { chunk, device_pays, is_awaited, worker, work, place, has_lost_device }
    }

    /// Moves it to the kernel `worker`, which takes it from another one.
    pub(super) fn move_to(&mut self, worker: usize) {
        self.worker = worker;
        if let Some(work) = &mut self.work {
            work.move_to(worker);
        }
    }
}
