//! A buffer on both sides of the bus.

#![expect(unsafe_code, reason = "copies that a device does while the host goes on")]

use std::sync::Arc;

use super::error::DeviceError;
use super::memory::{DeviceBuffer, Memory, PinnedBuffer, Plain};
use super::stream::Stream;

/// A buffer in pinned memory and one of the same length on the device.
#[derive(Debug)]
pub(super) struct Both<T: Plain> {
    pub(super) host: PinnedBuffer<T>,
    pub(super) device: DeviceBuffer<T>,
}

impl<T: Plain> Both<T> {
    pub(super) fn new(memory: &Arc<Memory>, len: usize) -> Result<Self, DeviceError> {
        Ok(Self { host: memory.pinned_buffer(len)?, device: memory.device_buffer(len)? })
    }

    /// Fills the front of the host's side.
    pub(super) fn fill(&mut self, elements: &[T]) {
        self.host[..elements.len()].copy_from_slice(elements);
    }

    /// Queues the copy of the front of the host's side.
    ///
    /// # Safety
    ///
    /// As for [`Stream::copy_in`].
    pub(super) unsafe fn send(&mut self, stream: &Stream, len: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller has promised it.
        unsafe { stream.copy_in(&self.host, &mut self.device, len) }
    }

    /// Queues the copy of the front of the device's side.
    ///
    /// # Safety
    ///
    /// As for [`Stream::copy_out`].
    pub(super) unsafe fn fetch(&mut self, stream: &Stream, len: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller has promised it.
        unsafe { stream.copy_out(&self.device, &mut self.host, len) }
    }
}
