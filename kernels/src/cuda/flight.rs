//! A chunk on its way over a device: what no buffer may be touched or freed without.

use std::sync::Arc;

use super::error::DeviceError;
use super::lane::{Lane, Timeline, Times};

/// The buffers of a chunk. A primitive's slot; callers only name it.
pub trait SlotBuffers: Sized {
    /// What the device needs besides the buffers until it is done, and what was asked.
    type Kept;

    /// The course of the chunk.
    fn timeline(&self) -> &Timeline;

    /// Takes the answer, when the last step is done and took these times.
    ///
    /// # Errors
    ///
    /// If the device fails at what is fetched only now.
    fn land(&mut self, kept: &Self::Kept, lane: &Lane, times: Times) -> Result<(), DeviceError>;
}

/// A chunk on its way. It owns its slot and all else that the device uses, until the device has let
/// go of them: [`Self::collect`] waits for the last step, and dropped, it waits for all streams and
/// frees the slot.
#[derive(Debug)]
pub struct Flight<S: SlotBuffers> {
    /// There until it is collected.
    slot: Option<S>,
    lane: Arc<Lane>,
    kept: S::Kept,
}

const FLYING: &str = "not collected";

impl<S: SlotBuffers> Flight<S> {
    /// Queues the steps of a chunk, which wait for each other, so that no two of them use a buffer
    /// at a time.
    ///
    /// # Errors
    ///
    /// If the driver refuses any of it; the slot is then freed, when the device has let go of it.
    pub(super) fn begin(
        slot: S,
        lane: &Arc<Lane>,
        kept: S::Kept,
        queue: impl FnOnce(&mut S, &S::Kept, &Lane) -> Result<(), DeviceError>,
    ) -> Result<Self, DeviceError> {
        let mut flight = Self { slot: Some(slot), lane: Arc::clone(lane), kept };
        let Self { slot, lane, kept } = &mut flight;
        queue(slot.as_mut().expect(FLYING), kept, lane)?;
        Ok(flight)
    }

    /// Whether [`Self::collect`] would not wait, but for what is fetched only then.
    ///
    /// # Errors
    ///
    /// If the device failed.
    ///
    /// # Panics
    ///
    /// Never: the slot is there until the flight is consumed.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        self.slot.as_ref().expect(FLYING).timeline().is_done()
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
    pub fn collect(mut self) -> Result<S, DeviceError> {
        let Self { slot, lane, kept } = &mut self;
        let landing = slot.as_mut().expect(FLYING);
        landing.timeline().wait()?;
        let times = landing.timeline().times()?;
        landing.land(kept, lane, times)?;
        Ok(self.slot.take().expect(FLYING))
    }
}

impl<S: SlotBuffers> Drop for Flight<S> {
    fn drop(&mut self) {
        if self.slot.is_some() {
            // Whatever failed, nothing runs any more when this returns: a stream that reports a
            // failure has stopped.
            let _ = self.lane.synchronize();
        }
    }
}
