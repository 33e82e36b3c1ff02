//! The device of one operator, opened once, by the part that needs it first.

use std::sync::{Arc, OnceLock};

use trommel_kernels::cuda::{self, NoDevice};

use super::parameter::Device;

/// A device that is opened at most once. Clones share the device: the parts of an operator run on
/// several threads, and the cost model of one part can need the device before the kernel of another
/// part needs it.
///
/// # Examples
/// ```
/// use trommel_operators::wave::{Device, DeviceSession};
///
/// let session = DeviceSession::new(Device::Auto);
/// let place = match session.open() {
///     Ok(device) => format!("{} bytes of device memory", device.memory_bytes()?.1),
///     Err(reason) => format!("the CPU: {reason}"),
/// };
/// println!("candidates are verified with {place}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DeviceSession {
    device: Device,
    opened: Arc<OnceLock<Result<cuda::Device, NoDevice>>>,
    /// Bytes of the device's memory that were free at the first question.
    free: Arc<OnceLock<usize>>,
}

impl DeviceSession {
    /// A session with `device`. The device is not opened yet.
    #[must_use]
    pub fn new(device: Device) -> Self {
        Self { device, opened: Arc::default(), free: Arc::default() }
    }

    /// A session that reports `free` bytes of device memory without opening the device.
    #[cfg(test)]
    pub(crate) fn with_free_bytes(device: Device, free: usize) -> Self {
        Self { free: Arc::new(OnceLock::from(free)), ..Self::new(device) }
    }

    /// The device that the parameter names.
    #[must_use]
    pub(crate) fn device(&self) -> Device {
        self.device
    }

    /// Whether the device is open.
    pub(crate) fn is_open(&self) -> bool {
        self.opened.get().is_some_and(Result::is_ok)
    }

    /// Opens the device, unless an earlier call has tried that. [`Device::Auto`] stands for the
    /// first GPU. Waits while another part opens the device.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn open(&self) -> Result<cuda::Device, NoDevice> {
        let ordinal = match self.device {
            Device::Cuda(ordinal) => ordinal,
            Device::Auto | Device::Cpu => 0,
        };
        self.opened.get_or_init(|| cuda::Device::probe(ordinal)).clone()
    }

    /// The bytes of the device's memory that were free at the first question, so that all parts of
    /// the operator plan with the same number. Opens the device.
    ///
    /// # Errors
    /// If there is no such device, or the device fails.
    pub(crate) fn free_bytes(&self) -> Result<usize, NoDevice> {
        if let Some(free) = self.free.get() {
            return Ok(*free);
        }
        let free = self.open()?.memory_bytes()?.0;
        Ok(*self.free.get_or_init(|| free))
    }
}
