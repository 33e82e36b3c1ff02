//! Failures of a device that end a run.

use trommel_kernels::cuda::{DeviceError, NoDevice};

use super::parameter::Device;

/// Error of a device that ends the run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaveError {
    /// The device cannot be used.
    #[error("`device` is \"{device}\", but {reason}")]
    NoDevice {
        /// Value of the parameter.
        device: Device,
        /// Reason.
        reason: NoDevice,
    },
    /// The device failed in the middle of the stream.
    #[error("`device` is \"{device}\", and it failed: {reason}")]
    Failed {
        /// Value of the parameter.
        device: Device,
        /// Call that failed.
        reason: DeviceError,
    },
}
