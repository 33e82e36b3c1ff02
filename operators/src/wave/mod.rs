//! Waves: chunks of regular work that go through a device, several in flight, or through a CPU.
//!
//! An operator that can use a device has three parts:
//!
//! ```text
//!            chunk                chunk, answered
//!  PREPARE ─────────► KERNEL ──────────────────► COLLECT ──► rows
//!     ▲                │  ▲                         │
//!     └── used chunks ─┘  └────── used chunks ──────┘
//! ```
//!
//! It brings a [`Producer`], which turns input into chunks, a [`Kernel`], which answers a chunk on
//! a CPU or sends it to a device, and a [`Consumer`], which turns answers into rows. [`operator`]
//! makes the parts: buffers, replies, work that comes back unfinished, the price of a device, the
//! fall-back from it, the drain at the end and the counters are written here once.
//!
//! While the device works on one chunk, prepare fills the next one and collect reads the one
//! before: these are the "waves" of Bellas and Gounaris, *Speeding-up the Verification Phase of Set
//! Similarity Joins in the GPGPU paradigm*, 2018, §3.1. Departures from it: several chunks are in
//! flight, and the same parts run without a device.
//!
//! **Budget.** There are [`Wave::chunks`] chunks of about [`Wave::chunk_bytes`] each. They are made
//! once and travel in circles: collect gives a used chunk back, the kernel passes it on, prepare
//! fills it again, and waits while all are in the wave. So their memory is known at the start. A
//! device gets buffers for a kind of chunks with the first of them, and shared data when a chunk
//! first names it.
//!
//! **Waiting.** The kernel part does not wait for a device: it returns [`Flow::InFlight`] and the
//! time of its next look, so that its thread does other things or sleeps. It looks shortly before a
//! chunk can have landed, judged by the longest step of the last chunk, and from then on whenever
//! another sixteenth of that chunk's time has passed: a few looks a chunk, and an answer is found
//! hardly late.
//!
//! **Price.** With [`Device::Auto`], chunks are answered on the CPU until it has spent as much as a
//! device would cost ([`WaveChunk::cost`]); the device is opened for the first chunk after that.
//!
//! **Failures.** With [`Device::Auto`], a device that cannot be opened, is lost or is full is left
//! for good: the chunks in flight are still whole, and are answered on the CPU like all later ones,
//! in the same order. Counters of the report tell. With [`Device::Cuda`] it is an error.
//!
//! | file | contents |
//! |---|---|
//! | `chunk` | chunks and their cost |
//! | `producer`, `kernel`, `consumer` | the three things that an operator brings, and their parts |
//! | `operator`, `limits` | the operator of these parts, and its limits |
//! | `kernel_part` | the part between prepare and collect |
//! | `feeder`, `price` | the chunks of prepare; when a device pays |
//! | `device`, `session` | the `device` parameter; a device that is opened once |
//! | `ledger` | counters of the kernel part |

mod chunk;
mod consumer;
mod device;
mod feeder;
mod kernel;
mod kernel_part;
mod ledger;
mod limits;
mod operator;
mod price;
mod producer;
mod session;
#[cfg(test)]
pub(crate) mod tests;

#[cfg(doc)]
use trommel_engine::operator::Flow;

pub use self::chunk::{Cost, WaveChunk};
pub use self::consumer::{Consumer, Taken};
pub use self::device::{DEVICES_MAX, Device, UnknownDevice};
pub use self::kernel::{Kernel, Landed, OnDevice};
pub use self::kernel_part::WaveError;
pub use self::limits::{CHUNKS_MAX, ChunkBytes, Wave};
pub use self::operator::operator;
pub(crate) use self::price::OPENING_NS;
pub use self::producer::{Filled, Producer};
pub use self::session::DeviceSession;
