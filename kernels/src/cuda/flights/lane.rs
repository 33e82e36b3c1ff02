//! The streams of a pipeline of chunks, and the course of one chunk over them.

use std::hint;
use std::time::{Duration, Instant};

use crate::cuda::driver::{Device, DeviceError, Event, Stream};

/// Longest time for which a thread polls the end of copies before it sleeps: a wake-up takes longer
/// than most copies.
const LOOK_MAX: Duration = Duration::from_micros(500);

/// Streams for copies in, kernels and copies out, so that the three overlap for different chunks.
///
/// Copies whose length the host reads first have a stream of their own. In the stream of all other
/// copies out, these copies would wait for the kernels of all chunks that were submitted meanwhile.
#[derive(Debug)]
pub struct Lane {
    copy_in: Stream,
    kernel: Stream,
    copy_out: Stream,
    landing: Stream,
}

impl Lane {
    /// Four new streams.
    ///
    /// # Errors
    ///
    /// If the driver cannot make a stream.
    pub fn new(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            copy_in: Stream::new(device)?,
            kernel: Stream::new(device)?,
            copy_out: Stream::new(device)?,
            landing: Stream::new(device)?,
        })
    }

    /// The stream of copies to the device. Copies in another stream would take turns with this
    /// stream on the bus, and be late.
    pub(in crate::cuda) fn to_device(&self) -> &Stream {
        &self.copy_in
    }

    /// Blocks until no stream has queued work.
    ///
    /// # Errors
    ///
    /// If any queued work failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        let Self { copy_in, kernel, copy_out, landing } = self;
        // The call waits for all streams, even if the first has failed: the caller frees buffers
        // that any stream may use.
        let ends = [copy_in, kernel, copy_out, landing].map(Stream::synchronize);
        ends.into_iter().collect()
    }
}

/// The times of the three steps of a chunk on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Copies to the device.
    pub copy_in: Duration,
    /// The kernel, and the clearing of its counters.
    pub kernel: Duration,
    /// Copies to the host.
    pub copy_out: Duration,
}

/// The course of a chunk: its three steps, each marked at both ends. The slot's next chunk uses the
/// timeline again.
#[derive(Debug)]
pub struct Timeline {
    copy_in: [Event; 2],
    kernel: [Event; 2],
    copy_out: [Event; 2],
}

impl Timeline {
    /// Six new events.
    ///
    /// # Errors
    ///
    /// If the driver cannot make an event.
    pub fn new(device: &Device) -> Result<Self, DeviceError> {
        let pair = || Ok([Event::new(device)?, Event::new(device)?]);
        Ok(Self { copy_in: pair()?, kernel: pair()?, copy_out: pair()? })
    }

    /// Queues the first step.
    ///
    /// # Errors
    ///
    /// If the driver refuses a part of the step.
    pub fn copy_in(
        &self,
        lane: &Lane,
        queue: impl FnOnce(&Stream) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        step(&self.copy_in, &lane.copy_in, queue)
    }

    /// Queues the second step, which waits for the first.
    ///
    /// # Errors
    ///
    /// If the driver refuses a part of the step.
    pub fn kernel(
        &self,
        lane: &Lane,
        queue: impl FnOnce(&Stream) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        lane.kernel.wait(&self.copy_in[1])?;
        step(&self.kernel, &lane.kernel, queue)
    }

    /// Queues the third step, which waits for the second.
    ///
    /// # Errors
    ///
    /// If the driver refuses a part of the step.
    pub fn copy_out(
        &self,
        lane: &Lane,
        queue: impl FnOnce(&Stream) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        lane.copy_out.wait(&self.kernel[1])?;
        step(&self.copy_out, &lane.copy_out, queue)
    }

    /// Queues further copies to the host when the third step is done; the events of the third step
    /// then mark these copies.
    ///
    /// # Errors
    ///
    /// If the driver refuses a part of the step.
    pub fn landing(
        &self,
        lane: &Lane,
        queue: impl FnOnce(&Stream) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        step(&self.copy_out, &lane.landing, queue)
    }

    /// Whether the third step is done.
    ///
    /// # Errors
    ///
    /// If any step failed.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        self.copy_out[1].is_done()
    }

    /// Blocks until the third step is done.
    ///
    /// # Errors
    ///
    /// If any step failed.
    pub fn wait(&self) -> Result<(), DeviceError> {
        self.copy_out[1].synchronize()
    }

    /// Waits for copies that have begun: polls their end at first, and then sleeps.
    ///
    /// # Errors
    ///
    /// If any step failed.
    pub fn wait_for_copies(&self) -> Result<(), DeviceError> {
        let begin = Instant::now();
        while begin.elapsed() < LOOK_MAX {
            if self.is_done()? {
                return Ok(());
            }
            hint::spin_loop();
        }
        self.wait()
    }

    /// The times of the steps, when the third step is done.
    ///
    /// # Errors
    ///
    /// If the driver does not know a time.
    pub fn times(&self) -> Result<Times, DeviceError> {
        let between = |[begin, end]: &[Event; 2]| end.since(begin);
        Ok(Times {
            copy_in: between(&self.copy_in)?,
            kernel: between(&self.kernel)?,
            copy_out: between(&self.copy_out)?,
        })
    }
}

fn step(
    [begin, end]: &[Event; 2],
    stream: &Stream,
    queue: impl FnOnce(&Stream) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    // Both events are on the step's own stream, so that the wait for the previous step is not
    // timed.
    begin.record(stream)?;
    queue(stream)?;
    end.record(stream)
}
