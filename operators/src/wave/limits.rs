//! Limits of a wave.

use trommel_engine::placement::parallelism;

use super::device::choice::DevicePrice;
use super::device::parameter::{DEVICES_MAX, Device};
use super::device::session::DeviceSession;

/// Devices and limits of a wave.
///
/// # Examples
/// ```
/// use trommel_operators::wave::{Device, Wave};
///
/// // Up to three chunks in flight, while one is filled and one is read.
/// let wave = Wave::new(Device::Auto, 5, 1 << 18);
/// assert_eq!((wave.chunks, wave.chunk_bytes.on_device), (5, 1 << 18));
/// ```
#[derive(Clone, Debug)]
pub struct Wave {
    /// Devices of the kernels: the first device belongs to the first kernel, and so on.
    pub session: DeviceSession,
    /// Price of a device, for the choice of [`Device::Auto`].
    pub device_price: DevicePrice,
    /// Number of chunks, 1 to [`CHUNKS_MAX`]: the chunks in flight, one that is filled and one
    /// that is read.
    pub chunks: usize,
    /// Size of a chunk in bytes.
    pub chunk_bytes: ChunkBytes,
}

/// Size of a chunk in bytes, on the CPU and on a device. A chunk should stay in the cache of a
/// CPU, and fill all multiprocessors of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkBytes {
    /// Bytes of a chunk for the CPU.
    pub on_cpu: usize,
    /// Bytes of a chunk for a device.
    pub on_device: usize,
}

/// Maximum number of chunks of a wave.
pub const CHUNKS_MAX: usize = trommel_engine::operator::REPLIES_IN_FLIGHT_MAX;

/// Maximum number of kernels of an operator.
pub const KERNELS_MAX: usize = (CHUNKS_MAX - ENDS) / CHUNKS_OF_KERNEL;

/// A chunk that is filled and one that is read.
const ENDS: usize = 2;

/// Chunks of each kernel if there are several kernels: one chunk that is answered, one chunk that
/// waits, and two chunks on their way through collect and prepare, which may share threads with
/// kernels at work.
const CHUNKS_OF_KERNEL: usize = 4;

const _: () = assert!(DEVICES_MAX <= KERNELS_MAX);

impl Wave {
    /// The number of kernels of a stage that names `cores` cores, at most [`KERNELS_MAX`]: one for
    /// each of them, or for each core of the machine if the stage names none, and at least one for
    /// each GPU that `device` asks for.
    #[must_use]
    pub fn kernels(device: Device, cores: usize) -> usize {
        let kernels = if cores == 0 { parallelism() } else { cores };
        let devices = if device.is_required() { device.ordinals().len() } else { 1 };
        kernels.max(devices).min(KERNELS_MAX)
    }

    /// The number of chunks that keeps `kernels` kernels busy. Each kernel may have `in_flight`
    /// chunks on a device, at most four if there are several kernels.
    ///
    /// # Panics
    /// If there are more than [`KERNELS_MAX`].
    #[must_use]
    pub fn chunks_of(kernels: usize, in_flight: usize) -> usize {
        assert!(kernels <= KERNELS_MAX, "{kernels} kernels; at most {KERNELS_MAX} are allowed");
        let on_cpu = if kernels > 1 { CHUNKS_OF_KERNEL * kernels } else { 2 };
        ENDS + on_cpu.max(in_flight.min(CHUNKS_MAX - ENDS))
    }

    /// A wave of `chunks` chunks of about `chunk_bytes` bytes each, on a [`Device`] or on the
    /// devices of a session that the operator shares.
    #[must_use]
    pub fn new(session: impl Into<DeviceSession>, chunks: usize, chunk_bytes: usize) -> Self {
        Self {
            session: session.into(),
            device_price: DevicePrice::MEASURED,
            chunks,
            chunk_bytes: ChunkBytes { on_cpu: chunk_bytes, on_device: chunk_bytes },
        }
    }
}
