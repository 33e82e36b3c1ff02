//! Limits of a wave.

use super::device::Device;

/// Limits of a wave, and its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wave {
    /// Device of the kernel.
    pub device: Device,
    /// Whether a device is used for the first chunk on, although [`Device::Auto`] leaves the
    /// choice; always true for [`Device::Cuda`].
    pub is_device_forced: bool,
    /// Number of chunks: those in flight, one that is filled and one that is read. At least 1 and
    /// at most [`CHUNKS_MAX`].
    pub chunks: usize,
    /// Size of a chunk.
    pub chunk_bytes: ChunkBytes,
}

/// Size of a chunk in bytes, by where it will be answered. A CPU wants chunks that stay in its
/// cache, a device chunks that fill all its multiprocessors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkBytes {
    /// For the CPU.
    pub on_cpu: usize,
    /// For a device.
    pub on_device: usize,
}

/// The most chunks of a wave.
pub const CHUNKS_MAX: usize = trommel_engine::operator::REPLIES_IN_FLIGHT_MAX;

impl Wave {
    /// A wave of `chunks` chunks of about `chunk_bytes` bytes each.
    #[must_use]
    pub fn new(device: Device, chunks: usize, chunk_bytes: usize) -> Self {
        Self {
            device,
            is_device_forced: matches!(device, Device::Cuda(_)),
            chunks,
            chunk_bytes: ChunkBytes { on_cpu: chunk_bytes, on_device: chunk_bytes },
        }
    }
}
