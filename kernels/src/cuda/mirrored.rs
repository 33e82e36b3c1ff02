//! A buffer on both sides of the bus.

use std::sync::Arc;

use super::driver::{DeviceBuffer, DeviceError, DevicePointer, Memory, PinnedBuffer};
use crate::memory::Plain;

/// A buffer in pinned memory, and a buffer of the same length on the device.
///
/// The host fills its side before a flight, and reads it after the flight has landed. In between
/// only the device uses the two sides.
#[derive(Debug)]
pub(super) struct MirroredBuffer<T: Plain> {
    host: PinnedBuffer<T>,
    device: DeviceBuffer<T>,
    /// Elements at the front of the host's side that go to the device.
    filled: usize,
}

impl<T: Plain> MirroredBuffer<T> {
    pub(super) fn new(memory: &Arc<Memory>, len: usize) -> Result<Self, DeviceError> {
        let (host, device) = (memory.pinned_buffer(len)?, memory.device_buffer(len)?);
        Ok(Self { host, device, filled: 0 })
    }

    /// Fills the front of the host's side.
    ///
    /// # Panics
    ///
    /// If more elements are given than fit.
    pub(super) fn fill(&mut self, elements: &[T]) {
        self.host[..elements.len()].copy_from_slice(elements);
        self.filled = elements.len();
    }

    /// Lets `write` fill `len` elements at the front of the host's side.
    ///
    /// # Panics
    ///
    /// If the elements do not fit.
    pub(super) fn fill_from(&mut self, len: usize, write: impl FnOnce(&mut [T])) {
        write(&mut self.host[..len]);
        self.filled = len;
    }

    /// The number of elements of the last [`Self::fill`].
    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    /// The number of elements of each side.
    pub(super) fn len(&self) -> usize {
        self.device.len()
    }

    /// The device's side, as an argument of kernels.
    pub(super) fn pointer(&self) -> DevicePointer<T> {
        self.device.pointer()
    }

    /// The host's side. A caller must not read it while the device may write to it.
    pub(super) fn host(&self) -> &[T] {
        &self.host
    }

    /// Both sides, for copies that the device does: no reference to an element is made.
    pub(super) fn sides(&self) -> (&PinnedBuffer<T>, &DeviceBuffer<T>) {
        (&self.host, &self.device)
    }
}
