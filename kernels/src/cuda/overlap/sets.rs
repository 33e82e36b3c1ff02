//! Sets in a device's memory.

use std::sync::Arc;

use crate::Isa;
use crate::cuda::error::DeviceError;
use crate::cuda::memory::{DeviceBuffer, Memory};
use crate::postings;
use crate::sets::{SetStore, Sets};

/// Sets that a device has, for all chunks of a join.
#[derive(Debug)]
pub struct DeviceSets {
    /// Of the host's sets.
    version: u64,
    pub(in crate::cuda) offsets: DeviceBuffer<u32>,
    pub(in crate::cuda) tokens: DeviceBuffer<u32>,
    pub(super) len: usize,
    pub(super) longest: usize,
    pub(super) signatures: Option<DeviceBuffer<u64>>,
    /// Words of each of them.
    pub(super) words: usize,
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
    pub fn upload(memory: &Arc<Memory>, sets: &SetStore) -> Result<Arc<Self>, DeviceError> {
        Self::upload_signed(memory, sets, (Isa::Scalar, 0))
    }

    /// The same with signatures of so many words: 1, 2, 4 or 8, or 0 for none. The host makes them,
    /// on this level.
    ///
    /// # Cost
    ///
    /// In addition, what [`postings::sign_sets`] takes, and 8 B a word and set.
    ///
    /// # Errors
    ///
    /// If they do not fit, or the driver fails.
    ///
    /// # Panics
    ///
    /// If the number of words is another one, or the level is not available.
    pub fn upload_signed(
        memory: &Arc<Memory>,
        sets: &SetStore,
        (isa, words): (Isa, usize),
    ) -> Result<Arc<Self>, DeviceError> {
        let (version, sets) = (sets.version(), sets.as_sets());
        let mut offsets = memory.device_buffer(sets.offsets().len())?;
        offsets.upload(sets.offsets())?;
        let mut tokens = memory.device_buffer(sets.tokens().len())?;
        tokens.upload(sets.tokens())?;
        let longest = sets.offsets().windows(2).map(|ends| ends[1] - ends[0]).max();
        let longest = longest.unwrap_or(0) as usize;
        let len = sets.len();
        let mut signatures = None;
        if words > 0 {
            let mut made = vec![0; len * words];
            postings::sign_sets(isa, sets.offsets(), sets.tokens(), words, &mut made);
            let mut buffer = memory.device_buffer(made.len())?;
            buffer.upload(&made)?;
            signatures = Some(buffer);
        }
        Ok(Arc::new(Self { version, offsets, tokens, len, longest, signatures, words }))
    }

    /// What sets take of the device's memory, with signatures of so many words.
    #[must_use]
    pub fn bytes_of(sets: Sets<'_>, words: usize) -> usize {
        let signatures = sets.len() * words * size_of::<u64>();
        size_of_val(sets.offsets()) + size_of_val(sets.tokens()).max(1) + signatures
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

    /// Whether they are those of this store, or of a clone of it.
    #[must_use]
    pub fn are_of(&self, sets: &SetStore) -> bool {
        self.version == sets.version()
    }
}
