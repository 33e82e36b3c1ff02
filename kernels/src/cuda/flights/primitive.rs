//! The contract between a primitive with CUDA kernels and the device layer.

#![expect(unsafe_code, reason = "nothing checks arguments against kernels")]

use std::fmt;
use std::sync::Arc;

use super::steps::{CopyIn, CopyOut, Landing, LaunchStep};
use crate::cuda::driver::{DeviceError, Images, Memory};

/// A primitive with CUDA kernels: the buffers of one chunk, and the steps of the chunk.
///
/// The device layer has the code that all primitives share: [`Kernels`](crate::cuda::Kernels) loads
/// the kernels, a [`Slot`](crate::cuda::Slot) owns the buffers, a [`Flight`](crate::cuda::Flight)
/// takes the buffers over the device, and [`Flights`](crate::cuda::Flights) has several flights
/// under way.
///
/// ```text
///  allocate ──► check ──► fill ──► copy_in ──► launch ──► copy_out ──► land ──► (check ..)
///    once       job       host      queued      queued     queued      answer
/// ```
///
/// The smallest example is [`chunk_sum`](crate::cuda::chunk_sum).
///
/// # Safety
///
/// A device checks no argument. For each job that [`Self::check`] lets pass,
///
/// - [`Self::launch`] gives each kernel arguments of the types of its parameters, in their order,
///   and a grid and shared memory that the kernel allows;
/// - the kernels read only buffers of `self` and of [`Self::Kept`], within their lengths, and
///   write only buffers of `self`;
/// - the steps name only buffers of `self`, and the host's side of a buffer is read only in
///   [`Self::land`] and later.
pub unsafe trait Primitive: Sized + fmt::Debug + Send + 'static {
    /// The images of the primitive's source.
    const IMAGES: &'static Images;

    /// The names of the kernels in the images.
    const KERNELS: &'static [&'static str];

    /// The size of the largest chunk.
    type Limits: Copy + fmt::Debug;

    /// A chunk and the question about it, in the form of a caller.
    type Job<'a>;

    /// The shared inputs that the device needs until the flight is done, and the question.
    type Kept: fmt::Debug + Send;

    /// The extent of the answer in the buffers; the default is the extent of no answer.
    type Answered: fmt::Debug + Default + Send;

    /// The bytes that buffers for `limits` take in the device's memory; they take as many in pinned
    /// memory.
    fn bytes(limits: Self::Limits) -> usize;

    /// Makes the buffers of chunks up to `limits`.
    ///
    /// # Errors
    ///
    /// If the buffers do not fit the budgets, or the driver fails.
    ///
    /// # Panics
    ///
    /// If the kernels cannot number the elements of such a chunk.
    fn allocate(memory: &Arc<Memory>, limits: Self::Limits) -> Result<Self, DeviceError>;

    /// Checks all properties on which the kernels rely.
    ///
    /// # Panics
    ///
    /// If the job exceeds `limits` or breaks its own contract.
    fn check(limits: Self::Limits, job: &Self::Job<'_>) -> Self::Kept;

    /// Writes the chunk to the host's side of the buffers. No step is queued before the chunk is
    /// written, so that the device does not wait for the host between two copies.
    fn fill(&mut self, job: &Self::Job<'_>);

    /// Queues the copies of the chunk to the device.
    ///
    /// # Errors
    ///
    /// If the driver refuses a copy.
    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError>;

    /// Queues the kernel.
    ///
    /// # Errors
    ///
    /// If the driver refuses the launch.
    fn launch(&self, kept: &Self::Kept, step: &LaunchStep<'_>) -> Result<(), DeviceError>;

    /// Queues the copies of the answer to the host.
    ///
    /// # Errors
    ///
    /// If the driver refuses a copy.
    fn copy_out(&self, kept: &Self::Kept, step: &mut CopyOut<'_>) -> Result<(), DeviceError>;

    /// Reads the extent of the answer, and fetches elements whose number was unknown before.
    ///
    /// # Errors
    ///
    /// If the driver fails.
    fn land(
        &self,
        kept: &Self::Kept,
        landing: &mut Landing<'_>,
    ) -> Result<Self::Answered, DeviceError>;
}
