//! Sets in a device's memory.

use std::sync::Arc;

use crate::cuda::error::DeviceError;
use crate::cuda::memory::{DeviceBuffer, Memory};
use crate::overlap::Sets;

/// Sets that a device has, for all chunks of a join.
#[derive(Debug)]
pub struct DeviceSets {
    pub(in crate::cuda) offsets: DeviceBuffer<u32>,
    pub(in crate::cuda) tokens: DeviceBuffer<u32>,
    pub(super) len: usize,
    pub(super) longest: usize,
}

impl DeviceSets {
    /// Copies sets to the device and waits until they are there.
    ///
    /// # Cost
    ///
    /// As many bytes as the sets have on the host.
    ///
    /// # Errors
    ///
    /// If they do not fit, or the driver fails.
    pub fn upload(memory: &Arc<Memory>, sets: Sets<'_>) -> Result<Arc<Self>, DeviceError> {
        let mut offsets = memory.device_buffer(sets.offsets().len())?;
        offsets.upload(sets.offsets())?;
        let mut tokens = memory.device_buffer(sets.tokens().len())?;
        tokens.upload(sets.tokens())?;
        let longest = sets.offsets().windows(2).map(|ends| ends[1] - ends[0]).max();
        let longest = longest.unwrap_or(0) as usize;
        Ok(Arc::new(Self { offsets, tokens, len: sets.len(), longest }))
    }

    /// What sets take of the device's memory.
    #[must_use]
    pub fn bytes_of(sets: Sets<'_>) -> usize {
        size_of_val(sets.offsets()) + size_of_val(sets.tokens()).max(1)
    }

    /// How many sets there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether these could be the same sets: as many of them, with as many tokens.
    pub(in crate::cuda) fn is_like(&self, sets: Sets<'_>) -> bool {
        self.len == sets.len() && self.tokens.len() == sets.tokens().len()
    }
}
