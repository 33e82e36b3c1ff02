//! The steps of a batch over lists that are anywhere on the device.

use super::index::SegmentArgument;
use super::launch::Policy;
use crate::cuda::driver::DeviceError;
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive};
use crate::inverted::QueryBatch;

/// The answers to a batch: the steps of [`Primitive`], which resident and streamed lists share.
pub(super) trait OverLists: Primitive {
    /// Checks a batch against the limits.
    fn check_batch(limits: Self::Limits, queries: QueryBatch<'_>);

    /// Writes a batch to the host's side of the buffers.
    fn fill_batch(&mut self, queries: QueryBatch<'_>);

    /// Queues the copies of the batch to the device.
    fn send_batch(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError>;

    /// Queues the kernels over the lists of a valid segment.
    fn launch_over(
        &self,
        segment: SegmentArgument,
        policy: &Policy,
        step: &LaunchStep<'_>,
    ) -> Result<(), DeviceError>;

    /// Queues the copies of the answers to the host.
    fn fetch(&self, step: &mut CopyOut<'_>) -> Result<(), DeviceError>;

    /// Reads the extent of the answers.
    fn land_batch(&self, landing: &mut Landing<'_>) -> Result<Self::Answered, DeviceError>;
}
