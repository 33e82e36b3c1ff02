//! Two kernels for chunks of two kinds.

use std::collections::VecDeque;

use trommel_kernels::cuda::{Device, DeviceError, NoDevice};

use super::{Kernel, Landed, OnDevice, WaveChunk};

/// Which of two kernels a chunk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The first one.
    First,
    /// The second one.
    Second,
}

/// A chunk that says which of two kernels it is for.
pub trait EitherChunk: WaveChunk {
    /// Which one.
    fn which(&self) -> Which;
}

/// Answers chunks by one of two kernels. Each of them is opened on a device when the first chunk
/// comes that is for it, so that one for which none comes costs nothing. Each has memory of its own
/// there: sets that chunks of both kinds name are sent twice, which takes milliseconds, and have
/// room twice.
#[derive(Debug)]
pub struct KernelPair<A, B> {
    first: A,
    second: B,
}

impl<A, B> KernelPair<A, B> {
    /// Both.
    #[must_use]
    pub fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A, B> Kernel for KernelPair<A, B>
where
    A: Kernel<Chunk: EitherChunk>,
    B: Kernel<Chunk = A::Chunk>,
{
    type Chunk = A::Chunk;
    type OnDevice = FlightPair<A::OnDevice, B::OnDevice>;

    fn run(&mut self, chunk: &mut A::Chunk) {
        match chunk.which() {
            Which::First => self.first.run(chunk),
            Which::Second => self.second.run(chunk),
        }
    }

    fn open(&mut self, ordinal: usize) -> Result<Self::OnDevice, NoDevice> {
        let device = Device::probe(ordinal)?;
        Ok(FlightPair { first: None, second: None, order: VecDeque::new(), device })
    }

    fn make_ready(
        &mut self,
        device: &mut Self::OnDevice,
        chunk: &A::Chunk,
    ) -> Result<(), NoDevice> {
        let ordinal = device.device.properties().ordinal;
        match chunk.which() {
            Which::First => device.first = Some(self.first.open(ordinal)?),
            Which::Second => device.second = Some(self.second.open(ordinal)?),
        }
        Ok(())
    }
}

/// Chunks of two kinds in flight.
#[derive(Debug)]
pub struct FlightPair<A, B> {
    /// Those that a chunk has come for.
    first: Option<A>,
    second: Option<B>,
    /// Of the chunks in flight.
    order: VecDeque<Which>,
    /// Its context is made once, for both.
    device: Device,
}

const MISSING: &str = "it was made ready before";

impl<A, B> OnDevice for FlightPair<A, B>
where
    A: OnDevice<Chunk: EitherChunk>,
    B: OnDevice<Chunk = A::Chunk>,
{
    type Chunk = A::Chunk;

    fn is_ready_for(&self, chunk: &A::Chunk) -> bool {
        match chunk.which() {
            Which::First => self.first.is_some(),
            Which::Second => self.second.is_some(),
        }
    }

    fn has_room(&self, chunk: &A::Chunk) -> bool {
        match chunk.which() {
            Which::First => self.first.as_ref().expect(MISSING).has_room(chunk),
            Which::Second => self.second.as_ref().expect(MISSING).has_room(chunk),
        }
    }

    fn submit(&mut self, chunk: &A::Chunk) -> Result<(), DeviceError> {
        let which = chunk.which();
        match which {
            Which::First => self.first.as_mut().expect(MISSING).submit(chunk),
            Which::Second => self.second.as_mut().expect(MISSING).submit(chunk),
        }?;
        self.order.push_back(which);
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        match self.order.front() {
            None => Ok(false),
            Some(Which::First) => self.first.as_mut().expect(MISSING).is_done(),
            Some(Which::Second) => self.second.as_mut().expect(MISSING).is_done(),
        }
    }

    fn collect(&mut self, chunk: &mut A::Chunk) -> Result<Landed, DeviceError> {
        match self.order.pop_front().expect("it has landed") {
            Which::First => self.first.as_mut().expect(MISSING).collect(chunk),
            Which::Second => self.second.as_mut().expect(MISSING).collect(chunk),
        }
    }
}
