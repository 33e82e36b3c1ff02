//! Sets in a device's memory, shared by all chunks that name them.

use std::sync::Arc;

use super::driver::{DeviceBuffer, DeviceError, DevicePointer, Memory};
use crate::Isa;
use crate::sets::{SetStore, Sets, sign_sets};

/// Sets in a device's memory, for all chunks of a join, with or without signatures of the sets.
#[derive(Debug)]
pub struct DeviceSets {
    /// The version of the host's sets.
    version: u64,
    offsets: DeviceBuffer<u32>,
    tokens: DeviceBuffer<u32>,
    len: usize,
    longest: usize,
    signatures: Option<DeviceBuffer<u64>>,
    /// Words of a signature; 0 without signatures.
    words: usize,
}

impl DeviceSets {
    /// Copies sets to the device, and waits until they have arrived.
    ///
    /// # Cost
    ///
    /// As many bytes as the sets have on the host.
    ///
    /// # Errors
    ///
    /// If the sets do not fit, or the driver fails.
    pub fn upload(memory: &Arc<Memory>, sets: &SetStore) -> Result<Arc<Self>, DeviceError> {
        Self::upload_signed(memory, sets, Isa::Scalar, 0)
    }

    /// Copies sets with signatures of `words` words: 1, 2, 4 or 8, or 0 for none. The host makes
    /// the signatures, on the level `isa`.
    ///
    /// # Cost
    ///
    /// In addition, the cost of [`sign_sets`], and 8 B for each word of each set over the bus.
    ///
    /// # Errors
    ///
    /// If the sets and signatures do not fit, or the driver fails.
    ///
    /// # Panics
    ///
    /// If `words` is another number, or the level is not available.
    pub fn upload_signed(
        memory: &Arc<Memory>,
        sets: &SetStore,
        isa: Isa,
        words: usize,
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
            sign_sets(isa, sets.offsets(), sets.tokens(), words, &mut made);
            let mut buffer = memory.device_buffer(made.len())?;
            buffer.upload(&made)?;
            signatures = Some(buffer);
        }
        Ok(Arc::new(Self { version, offsets, tokens, len, longest, signatures, words }))
    }

    /// The bytes of sets in the device's memory, with signatures of `words` words.
    #[must_use]
    pub fn bytes_of(sets: Sets<'_>, words: usize) -> usize {
        let signatures = sets.len() * words * size_of::<u64>();
        size_of_val(sets.offsets()) + size_of_val(sets.tokens()).max(1) + signatures
    }

    /// The number of sets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether these are the sets of this store or of a clone of it.
    #[must_use]
    pub fn is_copy_of(&self, sets: &SetStore) -> bool {
        self.version == sets.version()
    }

    /// The tokens of the longest set.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Words of a signature; 0 without signatures.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    pub(super) fn offsets(&self) -> DevicePointer<u32> {
        self.offsets.pointer()
    }

    pub(super) fn tokens(&self) -> DevicePointer<u32> {
        self.tokens.pointer()
    }

    /// The signatures of all sets; null without signatures.
    pub(super) fn signatures(&self) -> DevicePointer<u64> {
        self.signatures.as_ref().map_or(DevicePointer::NULL, DeviceBuffer::pointer)
    }
}
