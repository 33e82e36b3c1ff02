//! KERNEL: makes vectors ready and searches them.

use trommel_kernels::Isa;
use trommel_kernels::cuda::NoDevice;

use super::chunk::EpsilonChunk;
use crate::epsilon_join::device::flights::{JoinFlights, OpenFlights};
use crate::wave::{DeviceSession, Kernel};

/// Answers chunks on the CPU, and blocks of a join on a device.
pub(crate) struct EpsilonKernel {
    isa: Isa,
    /// Number of this kernel, from 0.
    number: usize,
    /// The device, if there may be one.
    device: Option<OpenFlights>,
}

impl EpsilonKernel {
    pub(crate) fn new(isa: Isa, number: usize, device: Option<OpenFlights>) -> Self {
        Self { isa, number, device }
    }
}

impl Kernel for EpsilonKernel {
    const NAME: &'static str = "search";
    type Chunk = EpsilonChunk;
    type OnDevice = JoinFlights;

    fn run(&mut self, chunk: &mut EpsilonChunk) {
        chunk.run(self.isa, self.number);
    }

    fn open(
        &mut self,
        device: &DeviceSession,
        _: Option<&EpsilonChunk>,
    ) -> Result<JoinFlights, NoDevice> {
        self.device.as_ref().map_or(Err(NoDevice::NoDriver), |open| open.open(device))
    }
}
