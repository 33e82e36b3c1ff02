//! Sets in a device's memory, with their runs and signatures.

use std::sync::Arc;

use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Memory};
use crate::cuda::sets::DeviceSets;
use crate::sets::SetStore;
use crate::signatures::{Runs, STRIP, Signatures};

/// Sets in a device's memory, with the run and the signature of each set, for all tiles of a join.
#[derive(Debug)]
pub struct SignedSets {
    sets: Arc<DeviceSets>,
    runs: Runs,
    /// The same runs, on the device.
    device_runs: DeviceBuffer<u32>,
    signatures: DeviceBuffer<u64>,
    words: usize,
}

/// The sets as an argument of kernels: `SignedSets` of `signatures.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct SignedSetsArgument {
    offsets: DevicePointer<u32>,
    tokens: DevicePointer<u32>,
    runs: DevicePointer<u32>,
    signatures: DevicePointer<u64>,
}

/// Maximum number of sets: the number of a strip's first set, and of the set after its last set,
/// fit 32 bits.
const SETS_MAX: usize = 1 << 31;

const _: () = assert!(SETS_MAX.is_multiple_of(STRIP as usize));

impl SignedSets {
    /// Sends the runs, and makes room for signatures of `words` words.
    pub(super) fn without_signatures(
        memory: &Arc<Memory>,
        sets: &Arc<DeviceSets>,
        runs: &Runs,
        words: usize,
    ) -> Result<Self, DeviceError> {
        let len = sets.len();
        let known = runs.of_sets().len();
        assert!(len == known, "{len} sets need as many runs, not {known}");
        assert!(len <= SETS_MAX, "{len} sets exceed {SETS_MAX}");
        let mut device_runs = memory.device_buffer(len)?;
        device_runs.upload(runs.of_sets())?;
        let signatures = memory.device_buffer(Signatures::len(len, words))?;
        let (sets, runs) = (Arc::clone(sets), runs.clone());
        Ok(Self { sets, runs, device_runs, signatures, words })
    }

    /// Whether these are the sets of this store or of a clone of it.
    #[must_use]
    pub fn is_copy_of(&self, sets: &SetStore) -> bool {
        self.sets.is_copy_of(sets)
    }

    /// The bytes of runs and signatures of `sets` sets in the device's memory, in addition to the
    /// sets.
    #[must_use]
    pub fn bytes(sets: usize, words: usize) -> usize {
        Signatures::bytes(sets, words) + sets.max(1) * size_of::<u32>()
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.sets.len()).expect("at most 2^31 sets")
    }

    pub(super) fn runs(&self) -> &Runs {
        &self.runs
    }

    pub(super) fn words(&self) -> usize {
        self.words
    }

    pub(super) fn argument(&self) -> SignedSetsArgument {
        SignedSetsArgument {
            offsets: self.sets.offsets(),
            tokens: self.sets.tokens(),
            runs: self.device_runs.pointer(),
            signatures: self.signatures.pointer(),
        }
    }
}

impl SignedSetsArgument {
    /// Offsets, tokens and signatures.
    pub(super) fn to_sign(self) -> (DevicePointer<u32>, DevicePointer<u32>, DevicePointer<u64>) {
        (self.offsets, self.tokens, self.signatures)
    }
}
