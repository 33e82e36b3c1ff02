//! Sets in a device's memory.

use std::sync::Arc;

use crate::cuda::error::DeviceError;
use crate::cuda::memory::{DeviceBuffer, Memory};
use crate::overlap::{SetStore, Sets};
use crate::postings;

/// The longest signature.
const WORDS_MAX: usize = 8;

/// The signatures of all sets, one after the other.
fn signatures_of(sets: Sets<'_>, words: usize) -> Vec<u64> {
    let mut signatures = vec![0; sets.len() * words];
    for (set, signature) in signatures.chunks_exact_mut(words).enumerate() {
        postings::sign(sets.set(set), signature);
    }
    signatures
}

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
        Self::upload_signed(memory, sets, 0)
    }

    /// The same with signatures of so many words: 1, 2, 4 or 8, or 0 for none.
    ///
    /// # Cost
    ///
    /// In addition, a multiplication for each token, and 8 B a word and set.
    ///
    /// # Errors
    ///
    /// If they do not fit, or the driver fails.
    ///
    /// # Panics
    ///
    /// If the number of words is another one.
    pub fn upload_signed(
        memory: &Arc<Memory>,
        sets: &SetStore,
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
            let mut buffer = memory.device_buffer(len * words)?;
            buffer.upload(&signatures_of(sets, words))?;
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

    /// Words of a signature, about four bits for each token of a set of this mean size: 1 to 8.
    #[must_use]
    pub const fn words_for_mean_size(tokens: usize) -> usize {
        let words = tokens.saturating_mul(4).div_ceil(u64::BITS as usize).next_power_of_two();
        if words > WORDS_MAX { WORDS_MAX } else { words }
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
