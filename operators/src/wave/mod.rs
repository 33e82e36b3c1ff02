//! Waves: chunks of regular work that go through a device, several in flight, or through a CPU.
//!
//! An operator that can use a device has three parts:
//!
//! ```text
//!            chunk               chunk, answered
//!  PREPARE ─────────► WavePart ──────────────────► COLLECT ──► rows
//!     ▲                  │ ▲                          │
//!     └── used chunks ───┘ └────── used chunks ───────┘
//! ```
//!
//! Prepare and collect are the operator's own; the part between them is [`WavePart`], over a
//! [`Kernel`] that knows how to answer a chunk on a CPU and how to send it to a device. While the
//! device works on one chunk, prepare fills the next one and collect reads the one before: that is
//! all there is to the "waves" of Bellas and Gounaris, *Speeding-up the Verification Phase of Set
//! Similarity Joins in the GPGPU paradigm*, 2018, §3.1. Departures from it: several chunks are in
//! flight, and the same parts run without a device.
//!
//! **Budget.** There are as many chunks as [`Wave::chunks`] says, each as large as the operator
//! makes it. They are made once, by [`Buffers`], and travel in circles: collect gives a used chunk
//! back, the wave part passes it on, prepare fills it again and waits when all are under way. So
//! their memory is known at the start. A device gets buffers for a kind of chunks with the first of
//! them, and sets when a chunk first names them.
//!
//! **Waiting.** The wave part does not wait for a device: it says [`Flow::InFlight`] and when it
//! wants to look again, so that its thread does other things or sleeps. It looks shortly before a
//! chunk can have landed, by what the longest step of the last one took, and from then on whenever
//! another sixteenth of its time has passed: a few looks a chunk, and an answer that is found
//! hardly late.
//!
//! **Price.** With [`Device::Auto`], the device is opened for the first chunk that says that it
//! pays ([`WaveChunk::pays_on_device`]); chunks that say no are answered on the CPU.
//!
//! **Failures.** With [`Device::Auto`], a device that cannot be opened, is lost or is full is left
//! for good: the chunks in flight are still whole, and are answered on the CPU like all later
//! ones, in the same order. Counters of the report tell. With [`Device::Cuda`] it is an error.
//!
//! | file | what it holds |
//! |---|---|
//! | `device` | the `device` parameter |
//! | `buffers` | the chunks of prepare |
//! | `part` | the part between prepare and collect |
//! | `ledger` | what the part counts |
//! | `overlap` | the kernel of candidate pairs |
//! | `tiles` | the kernel of tiles of all pairs |
//! | `pair` | two kernels for chunks of two kinds |
//! | `residents` | the sets that a device has |

mod buffers;
mod device;
mod ledger;
mod overlap;
mod pair;
mod part;
mod residents;
#[cfg(test)]
mod tests;
mod tiles;

pub use self::buffers::Buffers;
pub use self::device::{DEVICES_MAX, Device, UnknownDevice};
pub use self::overlap::{OverlapAnswer, OverlapChunk, OverlapFlights, OverlapKernel, PairKernel};
pub use self::pair::{EitherChunk, FlightPair, KernelPair, Which};
pub use self::part::{Wave, WaveError, WavePart};
pub use self::tiles::{TilesAnswer, TilesChunk, TilesFlights, TilesKernel};

#[cfg(doc)]
use trommel_engine::operator::Flow;
pub use trommel_kernels::cuda::Landed;
use trommel_kernels::cuda::{DeviceError, NoDevice};

/// What travels: the input of a kernel, and room for its answer.
pub trait WaveChunk: Send + 'static {
    /// How many items it holds, for the report.
    fn items(&self) -> usize;

    /// How many bytes it holds, for the limits of queues.
    fn bytes(&self) -> usize;

    /// Whether a device pays for this chunk, its opening included as far as it has not been paid
    /// for, by all that the maker of the chunk knows. [`Device::Auto`] asks; a chunk for which it
    /// does not pay is answered on the CPU, when those before it have landed.
    fn pays_on_device(&self) -> bool {
        true
    }
}

/// How chunks are answered. The answer must not depend on where: a chunk may be answered twice, the
/// second time on the CPU.
pub trait Kernel: Send + 'static {
    /// What is answered.
    type Chunk: WaveChunk;
    /// What answers it on a device.
    type OnDevice: OnDevice<Chunk = Self::Chunk>;

    /// Answers a chunk here and now.
    fn run(&mut self, chunk: &mut Self::Chunk);

    /// Opens a device and makes all buffers, or those that no chunk can do without. Called at most
    /// once, before the first chunk is submitted.
    ///
    /// # Errors
    /// If there is no such device, or it has not enough memory.
    fn open(&mut self, ordinal: usize) -> Result<Self::OnDevice, NoDevice>;

    /// Makes what chunks like this one need and [`Kernel::open`] has left out. Called before the
    /// first one for which the device [is not ready](OnDevice::is_ready_for).
    ///
    /// # Errors
    /// As [`Kernel::open`].
    fn make_ready(
        &mut self,
        device: &mut Self::OnDevice,
        chunk: &Self::Chunk,
    ) -> Result<(), NoDevice> {
        let _ = (device, chunk);
        Ok(())
    }
}

/// Chunks in flight over a device, first in, first out. Dropped, it waits for the device.
pub trait OnDevice: Send {
    /// What is answered.
    type Chunk;

    /// Whether there are kernels and buffers for chunks like this one: if not, they are made before
    /// anything else is asked about it.
    fn is_ready_for(&self, chunk: &Self::Chunk) -> bool {
        let _ = chunk;
        true
    }

    /// Whether this chunk can be submitted now; true if nothing is in flight.
    fn has_room(&self, chunk: &Self::Chunk) -> bool;

    /// Sends a chunk on its way and returns at once. Called only if there is room. The input stays
    /// in the chunk, which nobody touches until it has landed.
    ///
    /// # Errors
    /// If the device fails. Nothing is called after any error.
    fn submit(&mut self, chunk: &Self::Chunk) -> Result<(), DeviceError>;

    /// Whether the first chunk in flight has landed.
    ///
    /// # Errors
    /// As [`OnDevice::submit`].
    fn is_done(&mut self) -> Result<bool, DeviceError>;

    /// Writes the answer into the first chunk in flight, which has landed.
    ///
    /// # Errors
    /// As [`OnDevice::submit`].
    fn collect(&mut self, chunk: &mut Self::Chunk) -> Result<Landed, DeviceError>;
}
