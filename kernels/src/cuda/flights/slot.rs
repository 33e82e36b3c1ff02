//! The buffers and events of one chunk at a time.

use std::fmt;
use std::sync::Arc;

use super::lane::{Lane, Timeline, Times};
use super::primitive::Primitive;
use super::steps::{CopyIn, CopyOut, Landing, LaunchStep};
use crate::cuda::driver::{DeviceError, Functions, Memory};

/// The buffers and events of one chunk of a primitive. A slot is made once and serves chunk after
/// chunk; after a flight it holds the answer.
pub struct Slot<P: Primitive> {
    limits: P::Limits,
    buffers: P,
    timeline: Timeline,
    answer: P::Answered,
    landed: Landed,
}

/// The cost of a chunk that has landed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Landed {
    /// Times of the steps of the chunk.
    pub times: Times,
    /// Bytes copied to the device, including shared inputs that were sent for this chunk.
    pub bytes_to_device: u64,
    /// Bytes copied to the host.
    pub bytes_from_device: u64,
}

impl<P: Primitive> fmt::Debug for Slot<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limits, buffers, timeline, answer, landed } = self;
        let mut shown = formatter.debug_struct("Slot");
        shown.field("limits", limits).field("buffers", buffers).field("timeline", timeline);
        shown.field("answer", answer).field("landed", landed).finish()
    }
}

impl<P: Primitive> Slot<P> {
    /// Buffers for chunks up to `limits`.
    ///
    /// # Errors
    ///
    /// If the buffers do not fit the budgets, or the driver fails.
    ///
    /// # Panics
    ///
    /// If the kernels cannot number the elements of such a chunk.
    pub fn new(memory: &Arc<Memory>, limits: P::Limits) -> Result<Self, DeviceError> {
        let buffers = P::allocate(memory, limits)?;
        let timeline = Timeline::new(memory.device())?;
        Ok(Self {
            limits,
            buffers,
            timeline,
            answer: P::Answered::default(),
            landed: Landed::default(),
        })
    }

    /// The cost of the last chunk.
    #[must_use]
    pub fn landed(&self) -> Landed {
        self.landed
    }

    /// The time that the steps of the last chunk took.
    #[must_use]
    pub fn times(&self) -> Times {
        self.landed.times
    }

    /// The buffers with the answer to the last chunk, and its extent.
    pub(in crate::cuda) fn answered(&self) -> (&P, &P::Answered) {
        (&self.buffers, &self.answer)
    }

    /// Checks a job, forgets the last answer, and fills the host's side of the buffers.
    pub(super) fn prepare(&mut self, job: &P::Job<'_>) -> P::Kept {
        let kept = P::check(self.limits, job);
        (self.answer, self.landed) = (P::Answered::default(), Landed::default());
        self.buffers.fill(job);
        kept
    }

    /// Queues the three steps, for a flight that keeps the slot and `kept`.
    pub(super) fn queue(
        &mut self,
        kept: &P::Kept,
        lane: &Lane,
        functions: &Functions,
    ) -> Result<(), DeviceError> {
        let Self { buffers, timeline, landed, .. } = self;
        timeline.copy_in(lane, |stream| {
            let mut step = CopyIn::new(stream);
            buffers.copy_in(&mut step)?;
            landed.bytes_to_device += step.bytes() as u64;
            Ok(())
        })?;
        // Each step runs on a stream of its own, and waits for the event at the end of the previous
        // step.
        timeline
            .kernel(lane, |stream| buffers.launch(kept, &LaunchStep::new(stream, functions)))?;
        timeline.copy_out(lane, |stream| {
            let mut step = CopyOut::new(stream);
            buffers.copy_out(kept, &mut step)?;
            landed.bytes_from_device += step.bytes() as u64;
            Ok(())
        })
    }

    /// Whether the last step is done.
    pub(super) fn is_done(&self) -> Result<bool, DeviceError> {
        self.timeline.is_done()
    }

    /// Waits for the last step and takes the answer.
    pub(super) fn land(&mut self, kept: &P::Kept, lane: &Lane) -> Result<(), DeviceError> {
        // The times are read before the landing, whose copies mark the same events again.
        self.timeline.wait()?;
        self.landed.times = self.timeline.times()?;
        let mut landing = Landing::new(lane, &self.timeline);
        self.answer = self.buffers.land(kept, &mut landing)?;
        self.landed.bytes_from_device += landing.bytes() as u64;
        Ok(())
    }
}
