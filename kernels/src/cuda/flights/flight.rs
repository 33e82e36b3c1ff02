//! A chunk in flight, which owns every buffer that the device may still access.

use std::fmt;
use std::sync::Arc;

use super::kernels::Kernels;
use super::lane::Lane;
use super::primitive::Primitive;
use super::slot::Slot;
use crate::cuda::driver::DeviceError;

/// A chunk in flight. A flight owns its slot and all further data that the device uses, until the
/// device does not use them any more: [`Self::collect`] waits for the last step; a dropped flight
/// waits for all streams and frees the slot.
pub struct Flight<P: Primitive> {
    /// The slot, until the flight is collected.
    slot: Option<Slot<P>>,
    lane: Arc<Lane>,
    kernels: Arc<Kernels<P>>,
    kept: P::Kept,
}

const IN_FLIGHT: &str = "not collected";

impl<P: Primitive> Slot<P> {
    /// Queues a chunk: copies in, the kernel, copies out. The call does not wait for the device.
    ///
    /// # Cost
    ///
    /// The host checks and copies the chunk.
    ///
    /// # Errors
    ///
    /// If the driver refuses a step; the slot is then freed when the device does not use it any
    /// more.
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
        // The flight exists before the first step is queued: when the driver refuses a later step,
        // the drop of the flight waits for the earlier steps.
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

    /// Waits for the answer, and returns the slot with it.
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
            // No work runs any more when this call returns, even if it fails: a stream that reports
            // a failure has stopped.
            let _ = self.lane.synchronize();
        }
    }
}
