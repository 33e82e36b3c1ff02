//! An in-flight chunk. It owns every buffer that the device may still access.

use std::fmt;
use std::sync::Arc;

use super::kernels::Kernels;
use super::lane::Lane;
use super::primitive::Primitive;
use super::slot::Slot;
use crate::cuda::driver::DeviceError;

/// An in-flight chunk. It owns its slot and all else that the device uses until the device has
/// let go of them: [`Self::collect`] waits for the last step; a dropped flight waits for all
/// streams and frees the slot.
pub struct Flight<P: Primitive> {
    /// There until it is collected.
    slot: Option<Slot<P>>,
    lane: Arc<Lane>,
    kernels: Arc<Kernels<P>>,
    kept: P::Kept,
}

const IN_FLIGHT: &str = "not collected";

impl<P: Primitive> Slot<P> {
    /// Queues a chunk: copies in, the kernel, copies out. Returns at once.
    ///
    /// # Cost
    ///
    /// On the host a check and a copy of the chunk.
    ///
    /// # Errors
    ///
    /// If the driver refuses any of it; the slot is then freed when the device has let go of it.
    ///
    /// # Panics
    ///
    /// If the chunk exceeds the slot's limits or breaks its own contract.
    pub fn submit(
        mut self,
        lane: &Arc<Lane>,
        kernels: &Arc<Kernels<P>>,
        job: &P::Job<'_>,
    ) -> Result<Flight<P>, DeviceError> {
        let kept = self.prepare(job);
        let (lane, kernels) = (Arc::clone(lane), Arc::clone(kernels));
        // The flight is there before the first step is queued: when a later step is refused, its
        // drop waits for the earlier ones.
        let mut flight = Flight { slot: Some(self), lane, kernels, kept };
        let Flight { slot, lane, kernels, kept } = &mut flight;
        slot.as_mut().expect(IN_FLIGHT).queue(kept, lane, kernels.functions())?;
        Ok(flight)
    }
}

impl<P: Primitive> Flight<P> {
    /// Whether [`Self::collect`] would return without waiting for a kernel.
    ///
    /// # Errors
    ///
    /// If the device failed.
    ///
    /// # Panics
    ///
    /// Never: the slot is there until the flight is consumed.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        self.slot.as_ref().expect(IN_FLIGHT).is_done()
    }

    /// Waits for the answer and gives the slot back with it.
    ///
    /// # Errors
    ///
    /// If the device failed; the slot is then freed.
    ///
    /// # Panics
    ///
    /// Never: the slot is there until the flight is consumed.
    pub fn collect(mut self) -> Result<Slot<P>, DeviceError> {
        self.slot.as_mut().expect(IN_FLIGHT).land(&self.kept, &self.lane)?;
        Ok(self.slot.take().expect(IN_FLIGHT))
    }
}

impl<P: Primitive> fmt::Debug for Flight<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slot, lane, kernels, kept } = self;
        let mut shown = formatter.debug_struct("Flight");
        shown.field("slot", slot).field("lane", lane).field("kernels", kernels);
        shown.field("kept", kept).finish()
    }
}

impl<P: Primitive> Drop for Flight<P> {
    fn drop(&mut self) {
        if self.slot.is_some() {
            // Nothing runs any more when this returns, even if it fails: a stream that reports a
            // failure has stopped.
            let _ = self.lane.synchronize();
        }
    }
}
