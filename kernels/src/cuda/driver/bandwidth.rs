//! The speed of plain copies over the bus and within the device's memory: the ceilings of all other
//! work.

#![expect(unsafe_code, reason = "copies that a device does while the host goes on")]

use std::time::Duration;

use super::device::Device;
use super::error::DeviceError;
use super::memory::Memory;
use super::stream::{Event, Stream};

/// The times of copies of the same bytes; each is the best of several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyTimes {
    /// Bytes copied.
    pub bytes: usize,
    /// From pinned memory to the device.
    pub host_to_device: Duration,
    /// From the device to pinned memory.
    pub device_to_host: Duration,
    /// Within the device, which reads and writes each byte.
    pub device_to_device: Duration,
}

impl CopyTimes {
    /// Copies `bytes` in each direction `rounds` times, after one copy to warm up, and checks that
    /// the bytes arrive.
    ///
    /// # Errors
    ///
    /// If the device has less than twice the bytes, the host cannot pin as many, or the driver
    /// fails.
    ///
    /// # Panics
    ///
    /// If other bytes arrive than were sent.
    pub fn measure(device: &Device, bytes: usize, rounds: usize) -> Result<Self, DeviceError> {
        let len = bytes.div_ceil(size_of::<u64>()).max(1);
        let bytes = len * size_of::<u64>();
        let memory = Memory::new(device, 2 * bytes, 2 * bytes);
        let mut sent = memory.pinned_buffer::<u64>(len)?;
        for (number, word) in (1..).zip(sent.iter_mut()) {
            *word = number;
        }
        let received = memory.pinned_buffer::<u64>(len)?;
        let here = memory.device_buffer::<u64>(len)?;
        let there = memory.device_buffer::<u64>(len)?;
        let clock = Clock {
            stream: Stream::new(device)?,
            begin: Event::new(device)?,
            end: Event::new(device)?,
        };
        // SAFETY of the three: `best` waits for each copy before it goes on or returns.
        let host_to_device = clock.best(rounds, |stream| {
            // SAFETY: as above.
            unsafe { stream.copy_in(&sent, &here, len) }
        })?;
        let device_to_device = clock.best(rounds, |stream| {
            // SAFETY: as above.
            unsafe { stream.copy_within(&here, &there, len) }
        })?;
        let device_to_host = clock.best(rounds, |stream| {
            // SAFETY: as above.
            unsafe { stream.copy_out(&there, &received, len) }
        })?;
        assert!(sent[..] == received[..], "{bytes} B did not arrive as they were sent");
        Ok(Self { bytes, host_to_device, device_to_host, device_to_device })
    }
}

struct Clock {
    stream: Stream,
    begin: Event,
    end: Event,
}

impl Clock {
    /// The shortest time of `rounds` runs of the copy that `queue` queues, after one run that does
    /// not count. No copy runs any more when the method returns.
    fn best(
        &self,
        rounds: usize,
        mut queue: impl FnMut(&Stream) -> Result<(), DeviceError>,
    ) -> Result<Duration, DeviceError> {
        let mut best = Duration::MAX;
        for round in 0..=rounds {
            self.begin.record(&self.stream)?;
            let queued = queue(&self.stream).and_then(|()| self.end.record(&self.stream));
            self.stream.synchronize()?;
            queued?;
            if round > 0 {
                best = best.min(self.end.since(&self.begin)?);
            }
        }
        Ok(best)
    }
}
