//! Several chunks in flight over one device, first in, first out.

mod flight;
mod kernels;
mod lane;
mod primitive;
mod slot;
mod steps;

pub use self::flight::Flight;
pub use self::kernels::Kernels;
pub use self::lane::{Lane, Timeline, Times};
pub use self::primitive::Primitive;
pub use self::slot::{Landed, Slot};
pub use self::steps::{CopyIn, CopyOut, Landing, LaunchStep};

use std::collections::VecDeque;
use std::sync::Arc;

use super::driver::{Device, DeviceError, Memory};

/// The chunks of a primitive in flight over a device, first in, first out: kernels, streams, and a
/// fixed number of slots that are made at the start. The drop waits for the device.
#[derive(Debug)]
pub struct Flights<P: Primitive> {
    lane: Arc<Lane>,
    kernels: Arc<Kernels<P>>,
    memory: Arc<Memory>,
    free: Vec<Slot<P>>,
    flying: VecDeque<Flying<P>>,
}

/// A chunk in flight, and the bytes of shared inputs that were sent for it.
#[derive(Debug)]
struct Flying<P: Primitive> {
    flight: Flight<P>,
    shared_bytes: u64,
}

impl<P: Primitive> Flights<P> {
    /// Loads the kernels and makes `slots` slots for chunks up to `limits`. The memory of the slots
    /// has `shared_bytes_max` more bytes on the device, for inputs that chunks share.
    ///
    /// # Errors
    ///
    /// If the device has not enough memory, or the driver fails.
    pub fn open(
        device: &Device,
        slots: usize,
        limits: P::Limits,
        shared_bytes_max: usize,
    ) -> Result<Self, DeviceError> {
        let slot_bytes = P::bytes(limits).saturating_mul(slots);
        let device_bytes = slot_bytes.saturating_add(shared_bytes_max);
        let memory = Memory::new(device, device_bytes, slot_bytes);
        let free = (0..slots).map(|_| Slot::new(&memory, limits)).collect::<Result<_, _>>()?;
        Ok(Self {
            lane: Arc::new(Lane::new(device)?),
            kernels: Kernels::load(device)?,
            memory,
            free,
            flying: VecDeque::with_capacity(slots),
        })
    }

    /// The kernels.
    #[must_use]
    pub fn kernels(&self) -> &Arc<Kernels<P>> {
        &self.kernels
    }

    /// The streams of the chunks, and of copies of inputs that chunks share.
    #[must_use]
    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    /// The memory of the slots, and of inputs that chunks share.
    #[must_use]
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Whether a slot is free for another chunk.
    #[must_use]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Whether no chunk is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flying.is_empty()
    }

    /// Submits a chunk, for which `shared_bytes` bytes of shared inputs have been sent before. The
    /// call does not wait for the device.
    ///
    /// # Errors
    ///
    /// If the driver refuses a step; the slot is then lost.
    ///
    /// # Panics
    ///
    /// If no slot is free, or as [`Slot::submit`].
    pub fn submit(&mut self, job: &P::Job<'_>, shared_bytes: u64) -> Result<(), DeviceError> {
        let slot = self.free.pop().expect("a slot is free");
        let flight = slot.submit(&self.lane, &self.kernels, job)?;
        self.flying.push_back(Flying { flight, shared_bytes });
        Ok(())
    }

    /// Whether the first chunk in flight has landed; false if none is in flight.
    ///
    /// # Errors
    ///
    /// If the device failed.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        self.flying.front().map_or(Ok(false), |flying| flying.flight.is_done())
    }

    /// Waits for the first chunk in flight, lets `read` copy its answer, and frees its slot.
    ///
    /// # Errors
    ///
    /// If the device failed; the slot is then lost.
    ///
    /// # Panics
    ///
    /// If no chunk is in flight.
    pub fn collect(&mut self, read: impl FnOnce(&Slot<P>)) -> Result<Landed, DeviceError> {
        let Flying { flight, shared_bytes } =
            self.flying.pop_front().expect("a chunk is in flight");
        let slot = flight.collect()?;
        read(&slot);
        let mut landed = slot.landed();
        landed.bytes_to_device += shared_bytes;
        self.free.push(slot);
        Ok(landed)
    }
}
