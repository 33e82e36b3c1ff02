//! Kernels: the answer of a chunk, on a CPU or on a device.

use std::convert::Infallible;
use std::marker::PhantomData;

use trommel_engine::operator::Load;
pub use trommel_kernels::cuda::Landed;
use trommel_kernels::cuda::{DeviceError, NoDevice};

use super::chunk::WaveChunk;
use super::device::session::DeviceSession;

/// Answers chunks. The answer must be the same on the CPU and on a device: a chunk whose device
/// fails is answered again on the CPU.
pub trait Kernel: Send + 'static {
    /// Name of the kernel's part in plans, reports and errors; a verb.
    const NAME: &'static str;
    /// Type of the chunks.
    type Chunk: WaveChunk;
    /// Chunks in flight on a device.
    type OnDevice: OnDevice<Chunk = Self::Chunk>;

    /// Load of the kernel's part, for the placement on cores.
    fn load(&self) -> Load {
        Load::Heavy
    }

    /// Answers `chunk` on the CPU before it returns.
    fn run(&mut self, chunk: &mut Self::Chunk);

    /// Returns `chunk` without an answer, if the chunk was made for a device that is missing and
    /// the producer may have a better plan for the CPU; true if the chunk is returned.
    ///
    /// All items of the chunk become unfinished. [`Producer::landed`](super::Producer::landed)
    /// reads the chunk first: if that method leaves the items in the chunk, the chunk is
    /// resubmitted and answered on the CPU.
    fn give_back(&mut self, _chunk: &mut Self::Chunk) -> bool {
        false
    }

    /// Opens `device`, which belongs to this kernel, and allocates buffers for chunks like `first`.
    /// Called at most once, before the first chunk is submitted. `first` is `None` if no chunk for
    /// the device has come yet.
    ///
    /// # Errors
    /// If there is no such device, or if the memory of the device does not suffice.
    fn open(
        &mut self,
        device: &DeviceSession,
        first: Option<&Self::Chunk>,
    ) -> Result<Self::OnDevice, NoDevice>;
}

/// Chunks in flight on a device, first in, first out. Dropping this value waits for the device.
pub trait OnDevice: Send {
    /// Type of the chunks.
    type Chunk;

    /// Whether `chunk` can be submitted now. Must be true if nothing is in flight.
    fn has_room(&self, chunk: &Self::Chunk) -> bool;

    /// Starts `chunk` and returns at once. Called only if there is room. The chunk keeps its input,
    /// and nothing touches the chunk until the chunk has landed.
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

/// The chunks in flight of a kernel that has no device. This type has no value.
#[derive(Debug)]
pub struct NoFlights<C>(Infallible, PhantomData<fn() -> C>);

impl<C> OnDevice for NoFlights<C> {
    type Chunk = C;

    fn has_room(&self, _: &C) -> bool {
        match self.0 {}
    }

    fn submit(&mut self, _: &C) -> Result<(), DeviceError> {
        match self.0 {}
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        match self.0 {}
    }

    fn collect(&mut self, _: &mut C) -> Result<Landed, DeviceError> {
        match self.0 {}
    }
}

impl<D: OnDevice + ?Sized> OnDevice for Box<D> {
    type Chunk = D::Chunk;

    fn has_room(&self, chunk: &Self::Chunk) -> bool {
        (**self).has_room(chunk)
    }

    fn submit(&mut self, chunk: &Self::Chunk) -> Result<(), DeviceError> {
        (**self).submit(chunk)
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        (**self).is_done()
    }

    fn collect(&mut self, chunk: &mut Self::Chunk) -> Result<Landed, DeviceError> {
        (**self).collect(chunk)
    }
}
