//! Sets in a device's memory, with their signatures.

#![expect(unsafe_code, reason = "a kernel writes the signatures")]

use std::ffi::c_void;
use std::sync::Arc;

use super::{Joiner, Policy, Step};
use crate::cuda::error::DeviceError;
use crate::cuda::memory::{DeviceBuffer, Memory};
use crate::cuda::overlap::DeviceSets;
use crate::cuda::stream::Stream;
use crate::sets::SetStore;
use crate::signatures::{Runs, STRIP, Signatures};

/// Sets that a device has, with the run and the signature of each, for all tiles of a join.
#[derive(Debug)]
pub struct SignedSets {
    pub(super) sets: Arc<DeviceSets>,
    /// The same ones here and there.
    pub(super) runs: Runs,
    pub(super) runs_there: DeviceBuffer<u32>,
    pub(super) signatures: DeviceBuffer<u64>,
    pub(super) words: usize,
}

/// Sets of a join are fewer, so that no number of a strip overflows.
const SETS_MAX: usize = 1 << 31;

impl SignedSets {
    /// Sends the runs of sets that the device has, makes signatures of so many words there (1, 2, 4
    /// or 8), and waits for them.
    ///
    /// # Cost
    ///
    /// 4 B a set over the bus; the kernel reads each token once.
    ///
    /// # Errors
    ///
    /// If they do not fit, or the driver fails.
    ///
    /// # Panics
    ///
    /// If there are not as many runs as sets, or more than 2^31 sets.
    pub fn new(
        memory: &Arc<Memory>,
        joiner: &Joiner,
        sets: &Arc<DeviceSets>,
        runs: &Runs,
        words: usize,
    ) -> Result<Arc<Self>, DeviceError> {
        let len = sets.len();
        let known = runs.of_sets().len();
        assert!(len == known, "{len} sets need as many runs, not {known}");
        assert!(len <= SETS_MAX, "{len} sets are beyond {SETS_MAX}");
        let mut buffer = memory.device_buffer(len)?;
        buffer.upload(runs.of_sets())?;
        let signatures = memory.device_buffer(Signatures::len(len, words))?;
        let (sets, runs) = (Arc::clone(sets), runs.clone());
        let signed = Self { sets, runs, runs_there: buffer, signatures, words };
        signed.sign(joiner)?;
        Ok(Arc::new(signed))
    }

    /// Whether they are those of this store, or of a clone of it.
    #[must_use]
    pub fn are_of(&self, sets: &SetStore) -> bool {
        self.sets.are_of(sets)
    }

    /// What they take of the device's memory, for so many sets, in addition to the sets.
    #[must_use]
    pub fn bytes(sets: usize, words: usize) -> usize {
        Signatures::bytes(sets, words) + sets.max(1) * size_of::<u32>()
    }

    fn sign(&self, joiner: &Joiner) -> Result<(), DeviceError> {
        let function = joiner.function(self.words, Step::Sign);
        let stream = Stream::new(joiner.device())?;
        let mut set_count = u32::try_from(self.sets.len()).expect("at most 2^31 sets");
        let mut pointers =
            [self.sets.offsets.pointer(), self.sets.tokens.pointer(), self.signatures.pointer()];
        let [offsets, tokens, signatures] = &mut pointers;
        let mut arguments: [*mut c_void; 4] = [
            (&raw mut *offsets).cast(),
            (&raw mut *tokens).cast(),
            (&raw mut set_count).cast(),
            (&raw mut *signatures).cast(),
        ];
        let device = joiner.device().properties();
        let launch = Policy::default().launch_sets(function.name(), device, set_count);
        // SAFETY: the arguments are of the kernel's types; there are offsets for all sets, and for
        // the words of all strips there is room; nobody else knows the signatures, and all buffers
        // stay until the stream is done, which is waited for.
        unsafe { function.launch(&stream, launch, &mut arguments) }?;
        stream.synchronize()
    }
}

const _: () = assert!(SETS_MAX.is_multiple_of(STRIP as usize));
