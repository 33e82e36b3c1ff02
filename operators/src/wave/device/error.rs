//! Failures of a device that end a run.

use trommel_kernels::cuda::{DeviceError, NoDevice};

use super::parameter::Device;

/// The subject of an error.
fn failed(device: Device) -> &'static str {
    match device {
        Device::CudaAll | Device::CudaList(_) => "the last device",
        Device::Auto | Device::Cpu | Device::Cuda(_) => "it",
    }
}

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
    /// The device, or the last one of several devices, failed in the middle of the stream.
    #[error("`device` is \"{device}\", and {} failed: {reason}", failed(*device))]
    Failed {
        /// Value of the parameter.
        device: Device,
        /// Call that failed.
        reason: DeviceError,
    },
}
