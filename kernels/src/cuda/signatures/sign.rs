//! The signatures of sets, made by a device.

#![expect(unsafe_code, reason = "a kernel writes the signatures")]

use std::sync::Arc;

use super::launch::{Task, function, launch_sets};
use super::signed::SignedSets;
use super::tiles::TileJoin;
use crate::cuda::driver::{DeviceError, Memory};
use crate::cuda::flights::Kernels;
use crate::cuda::sets::DeviceSets;
use crate::signatures::Runs;

impl SignedSets {
    /// Sends the runs of sets that the device has, makes signatures of `words` words on the device
    /// (1, 2, 4 or 8), and waits for the signatures.
    ///
    /// # Cost
    ///
    /// 4 B for each set over the bus; the kernel reads each token once.
    ///
    /// # Errors
    ///
    /// If runs and signatures do not fit, or the driver fails.
    ///
    /// # Panics
    ///
    /// If the numbers of runs and of sets differ, or there are more than 2^31 sets.
    pub fn new(
        memory: &Arc<Memory>,
        kernels: &Kernels<TileJoin>,
        sets: &Arc<DeviceSets>,
        runs: &Runs,
        words: usize,
    ) -> Result<Arc<Self>, DeviceError> {
        let signed = Self::without_signatures(memory, sets, runs, words)?;
        let device = kernels.device().properties();
        let launch = launch_sets(function(Task::Sign, words), device, signed.len());
        let (offsets, tokens, signatures) = signed.argument().to_sign();
        // SAFETY: the arguments are of the kernel's types; there are offsets for all sets, and
        // room for the words of all strips; no other code knows the signatures, and all buffers
        // stay until the kernel is done, since the call waits for it.
        unsafe { kernels.run(launch, (offsets, tokens, signed.len(), signatures)) }?;
        Ok(Arc::new(signed))
    }
}
