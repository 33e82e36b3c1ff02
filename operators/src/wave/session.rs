//! The device of one operator, opened once by whichever part needs it first.

use std::sync::{Arc, OnceLock};

use trommel_kernels::cuda::{self, NoDevice};

use super::device::Device;

/// A device that is opened at most once. Copies share it: the parts of an operator run on several
/// threads, and one of them may have to know whether there is a device before another uses it.
#[derive(Clone, Debug)]
pub struct DeviceSession {
    device: Device,
    opened: Arc<OnceLock<Result<cuda::Device, NoDevice>>>,
}

impl DeviceSession {
    /// A session with the device that `device` names, not opened yet.
    #[must_use]
    pub fn new(device: Device) -> Self {
        Self { device, opened: Arc::default() }
    }

    /// Opens the device, unless that has been tried before; [`Device::Auto`] is the first one.
    /// Waits while another part opens it.
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
}
