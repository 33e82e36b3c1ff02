//! Waves: chunks of regular work, several in flight on a device, or one after the other on a CPU.
//!
//! An operator that can use a device has three parts:
//!
//! ```text
//!            chunk              chunk, answered
//!  PREPARE ─────────► KERNEL ────────────────► COLLECT ──► rows
//!     ▲                                           │
//!     └──────────────── used chunks ──────────────┘
//! ```
//!
//! The operator brings a [`Producer`] that turns input into chunks, a [`Kernel`] that answers a
//! chunk on a CPU or sends the chunk to a device, and a [`Consumer`] that turns answers into rows.
//! [`operator`] makes the parts. This module has the code that all such operators share: buffers,
//! replies, chunks that the kernel leaves unfinished, the price of a device, the fall-back to the
//! CPU, the drain at the end and the counters.
//!
//! While the device works on one chunk, prepare fills the next chunk and collect reads the previous
//! chunk. This is the "wave" scheme of Bellas and Gounaris, *Speeding-up the Verification Phase of
//! Set Similarity Joins in the GPGPU paradigm*, 2018, §3.1. Departures from the paper: several
//! chunks are in flight, and the same parts run without a device.
//!
//! **Budget.** There are [`Wave::chunks`] chunks of about [`Wave::chunk_bytes`] each, so the memory
//! of all chunks is known at the start. A chunk is made once and used again and again: collect
//! returns a used chunk, and prepare refills that chunk. Prepare waits while all chunks are in the
//! wave. A device allocates the buffers for a kind of chunk when the first chunk of that kind
//! arrives, and receives shared data when a chunk first needs that data.
//!
//! **Several kernels.** [`parallel`] makes an operator whose chunks are answered by several kernel
//! parts side by side. Each kernel part has a core of its own while there are enough cores:
//!
//! ```text
//!             ┌► KERNEL   ─┐
//!  PREPARE ───┼► KERNEL 2 ─┼──► COLLECT ──► rows
//!     ▲       └► KERNEL 3 ─┘        │
//!     └───────── used chunks ───────┘
//! ```
//!
//! Prepare chooses the kernel with the least modelled work left, so a slow kernel gets fewer
//! chunks. A kernel without chunks takes chunks that wait for other kernels. Collect reads chunks
//! in the order in which prepare has sent them, so rows do not depend on the number of kernels;
//! chunks [without rows](WaveChunk::has_rows) hold up no other chunk. A kernel works in the
//! [background](Flow::Background) of its thread: prepare and collect may share that thread, and run
//! first because the other kernels wait for their chunks. Meanwhile all kernels answer the chunks
//! for the [CPU](Target::Cpu).
//!
//! **Several devices.** The first device belongs to the first kernel, the second device to the
//! second kernel, and so on. Prepare sends a chunk for a device to the kernel whose device has the
//! least modelled work left, and a device that is about to have nothing to do takes chunks that
//! wait for another device. So a chunk goes to the device that is free first. Each device has its
//! own copy of shared data.
//!
//! **Waiting.** The kernel part does not wait for a device: the part returns [`Flow::InFlight`] and
//! the time of its next look at the device, and the thread does other work or sleeps. The first
//! look comes shortly before the chunk can have landed, judged by the longest step of the last
//! chunk; each further look comes when another sixteenth of the chunk's time has passed. So a chunk
//! costs a few looks, and an answer waits only a short time.
//!
//! **Choice.** With [`Device::Auto`], the CPU answers chunks until a device would have saved as
//! much time as the device costs, by the [estimates](WaveChunk::estimate) of the chunks. The next
//! chunk opens the device. A further device is taken when the device would have saved as much time
//! as its opening and its data cost.
//!
//! **Failures.** With [`Device::Auto`], a device that cannot be opened, is lost or is full is not
//! used again. The chunks in flight still have their input, so the CPU answers these chunks and all
//! later chunks, in the same order; several kernels share this work. A kernel may [return such a
//! chunk](Kernel::give_back) without an answer, so that prepare makes another plan. Counters of the
//! report show the failure. If one of several devices fails, its chunks return to prepare without
//! an answer, keep their places, and go to another device. If `device` names GPUs, the failure of
//! the last device is an error.
//!
//! # Examples
//!
//! An operator that squares numbers, with a kernel for the CPU only:
//!
//! ```
//! # use std::sync::Arc;
//! # use arrow_array::cast::AsArray;
//! # use arrow_array::types::UInt32Type;
//! # use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
//! # use arrow_schema::SchemaRef;
//! # use trommel_engine::batch::Payload;
//! # use trommel_engine::error::BindError;
//! # use trommel_engine::graph::Graph;
//! # use trommel_engine::operator::{BindContext, Fragment, OperatorError, OperatorSpec, Output};
//! # use trommel_engine::runtime::RunOptions;
//! # use trommel_kernels::cuda::NoDevice;
//! use trommel_operators::wave::{
//!     self, Consumer, Device, DeviceSession, Filled, Kernel, NoFlights, Producer, Taken, Wave,
//!     WaveChunk,
//! };
//! use trommel_operators::{Collect, Memory};
//!
//! /// Numbers, and after the kernel their squares.
//! #[derive(Default)]
//! struct Numbers(Vec<u32>);
//!
//! impl WaveChunk for Numbers {
//!     fn items(&self) -> usize {
//!         self.0.len()
//!     }
//!     fn bytes(&self) -> usize {
//!         size_of_val(&self.0[..])
//!     }
//!     fn clear(&mut self, _bytes_max: usize) {
//!         self.0.clear();
//!     }
//! }
//!
//! /// PREPARE: three numbers per chunk.
//! #[derive(Default)]
//! struct Cut(Vec<u32>);
//!
//! impl Producer for Cut {
//!     type Chunk = Numbers;
//!
//!     fn take(&mut self, _port: usize, batch: Payload) -> Result<(), OperatorError> {
//!         let records = batch.into_records();
//!         self.0.extend(records.column(0).as_primitive::<UInt32Type>().values());
//!         Ok(())
//!     }
//!
//!     fn fill(&mut self, chunk: &mut Numbers) -> Result<Filled, OperatorError> {
//!         chunk.0.extend(self.0.drain(..self.0.len().min(3)));
//!         Ok(if chunk.0.is_empty() { Filled::Nothing } else { Filled::Chunk })
//!     }
//! }
//!
//! /// KERNEL: squares, on the CPU.
//! struct Square;
//!
//! impl Kernel for Square {
//!     const NAME: &'static str = "square";
//!     type Chunk = Numbers;
//!     type OnDevice = NoFlights<Numbers>;
//!
//!     fn run(&mut self, chunk: &mut Numbers) {
//!         chunk.0.iter_mut().for_each(|number| *number *= *number);
//!     }
//!
//!     fn open(
//!         &mut self,
//!         _device: &DeviceSession,
//!         _first: Option<&Numbers>,
//!     ) -> Result<NoFlights<Numbers>, NoDevice> {
//!         Err(NoDevice::NoDriver)
//!     }
//! }
//!
//! /// COLLECT: a batch per chunk.
//! struct Rows(SchemaRef);
//!
//! impl Consumer for Rows {
//!     type Chunk = Numbers;
//!
//!     fn take(&mut self, chunk: &Numbers, out: &mut Output) -> Result<Taken, OperatorError> {
//!         let column: ArrayRef = Arc::new(UInt32Array::from(chunk.0.clone()));
//!         out.send(RecordBatch::try_new(Arc::clone(&self.0), vec![column])?);
//!         Ok(Taken::All)
//!     }
//! }
//!
//! /// The operator as a stage of a graph.
//! struct Squares;
//!
//! impl OperatorSpec for Squares {
//!     fn operator(&self) -> &'static str {
//!         "squares"
//!     }
//!
//!     fn bind(self: Box<Self>, inputs: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
//!         let (rows, wave) = (Rows(Arc::clone(&inputs[0])), Wave::new(Device::Auto, 4, 1 << 10));
//!         Ok(wave::operator(Cut::default(), Square, rows, Numbers::default, wave, inputs.to_vec()))
//!     }
//! }
//!
//! let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(1..=5));
//! let numbers = RecordBatch::try_from_iter([("n", numbers)])?;
//! let mut graph = Graph::new();
//! let numbers = graph.add("numbers", Memory::new(numbers.schema(), vec![numbers]));
//! let squares = graph.add_after(numbers, "squares", Squares);
//! let (sink, rows) = Collect::new();
//! graph.add_after(squares, "rows", sink);
//! graph.build()?.run(RunOptions::new())?;
//! let chunks: Vec<RecordBatch> = rows.batches();
//! assert_eq!(chunks.len(), 2);
//! assert_eq!(chunks[1].column(0).as_primitive::<UInt32Type>().values()[..], [16, 25]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | folder or file | contents |
//! |---|---|
//! | `chunk` | chunks, and where they are answered |
//! | `producer`, `kernel`, `consumer` | the traits of an operator; PREPARE and COLLECT |
//! | `operator`, `limits` | the operator of these parts, and its limits |
//! | `parts` | KERNEL, the part between them; chunks on their way; counters |
//! | `device` | the parameter `device`, the choice between a device and the CPU, and data that stays on a device |
//! | `round` | rounds of tasks that workers do side by side |

mod chunk;
mod consumer;
mod device;
mod kernel;
mod limits;
mod operator;
mod parts;
mod producer;
mod round;
#[cfg(test)]
pub(crate) mod tests;

#[cfg(doc)]
use trommel_engine::operator::Flow;

pub use self::chunk::{Target, WaveChunk};
pub use self::consumer::{Consumer, Taken};
pub(crate) use self::device::choice::{Access, DeviceChoice, OPENING_NS, SEND_NS_PER_BYTE, whole};
pub use self::device::choice::{DevicePrice, Estimate};
pub use self::device::error::WaveError;
pub use self::device::parameter::{DEVICES_MAX, Device, DeviceList, InvalidDevice};
pub(crate) use self::device::resident::{Resident, Wanted};
pub use self::device::session::DeviceSession;
pub use self::kernel::{Kernel, Landed, NoFlights, OnDevice};
pub use self::limits::{CHUNKS_MAX, ChunkBytes, KERNELS_MAX, Wave};
pub use self::operator::{operator, parallel};
pub use self::producer::{Filled, Producer};
pub(crate) use self::round::{Numbered, Round};
