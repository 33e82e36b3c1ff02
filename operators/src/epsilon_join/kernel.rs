//! KERNEL: makes vectors ready and searches them.

use trommel_kernels::Isa;
use trommel_kernels::cuda::{DeviceError, NoDevice};

use super::chunk::EpsilonChunk;
use crate::wave::{Kernel, Landed, OnDevice};

/// Answers chunks on the CPU.
pub(super) struct EpsilonKernel {
    isa: Isa,
    /// Its number among the kernels.
    number: usize,
}

impl EpsilonKernel {
    pub(super) fn new(isa: Isa, number: usize) -> Self {
        Self { isa, number }
    }
}

impl Kernel for EpsilonKernel {
    const NAME: &'static str = "search";
    type Chunk = EpsilonChunk;
    type OnDevice = NoFlights;

    fn run(&mut self, chunk: &mut EpsilonChunk) {
        chunk.run(self.isa, self.number);
    }

    fn open(&mut self, _: Option<&EpsilonChunk>) -> Result<NoFlights, NoDevice> {
        Err(NoDevice::NoDriver)
    }
}

/// Chunks in flight on a device, of which there are none: this type has no value.
pub(super) enum NoFlights {}

impl OnDevice for NoFlights {
    type Chunk = EpsilonChunk;

    fn has_room(&self, _: &EpsilonChunk) -> bool {
        match *self {}
    }

    fn submit(&mut self, _: &EpsilonChunk) -> Result<(), DeviceError> {
        match *self {}
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        match *self {}
    }

    fn collect(&mut self, _: &mut EpsilonChunk) -> Result<Landed, DeviceError> {
        match *self {}
    }
}
