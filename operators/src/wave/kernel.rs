//! Kernels: how chunks are answered, on a CPU or on a device.

pub use trommel_kernels::cuda::Landed;
use trommel_kernels::cuda::{DeviceError, NoDevice};

use super::chunk::WaveChunk;

/// Answers chunks. The answer must not depend on where: a chunk may be answered twice, the second
/// time on the CPU.
pub trait Kernel: Send + 'static {
    /// Name of its part in plans, reports and errors: a verb.
    const NAME: &'static str;
    /// Type of the chunks.
    type Chunk: WaveChunk;
    /// Chunks in flight on a device.
    type OnDevice: OnDevice<Chunk = Self::Chunk>;

    /// Answers a chunk on the CPU, before it returns.
    fn run(&mut self, chunk: &mut Self::Chunk);

    /// Opens the device and allocates the buffers that chunks like `first` need. Called at most
    /// once, before the first chunk is submitted; `first` is `None` if there is no chunk at all.
    ///
    /// # Errors
    /// If there is no such device, or it has not enough memory.
    fn open(&mut self, first: Option<&Self::Chunk>) -> Result<Self::OnDevice, NoDevice>;
}

/// Chunks in flight on a device, first in, first out. When it is dropped, it waits for the device.
pub trait OnDevice: Send {
    /// Type of the chunks.
    type Chunk;

    /// Whether this chunk can be submitted now; true if nothing is in flight.
    fn has_room(&self, chunk: &Self::Chunk) -> bool;

    /// Starts a chunk and returns at once. Called only if there is room. The input stays in the
    /// chunk, which is not touched until it has landed.
    ///
    /// # Errors
    /// If the device fails. Nothing is called after any error.
    fn submit(&mut self, chunk: &Self::Chunk) -> Result<(), DeviceError>;

    /// Whether the first chunk in flight has landed.
    ///
    /// # Errors
    /// As [`OnDevice::submit`].
    fn is_done(&mut self) -> Result<bool, DeviceError>;

    /// Writes the answer into the first chunk in flight, which has landed.
    ///
    /// # Errors
    /// As [`OnDevice::submit`].
    fn collect(&mut self, chunk: &mut Self::Chunk) -> Result<Landed, DeviceError>;
}
