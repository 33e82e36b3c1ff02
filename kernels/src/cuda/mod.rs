//! GPUs: the device layer, and a host launcher for each primitive that has CUDA kernels.
//!
//! The driver is loaded at run time, so that the same binary runs where there is none;
//! [`Device::probe`] is the only door to it and says plainly why there is no device. Kernels are
//! compiled ahead (`cargo xtask cuda`) and embedded. Nothing here starts a thread or chooses a
//! fall-back: a failure says what failed and whether the device is gone, and callers decide.
//!
//! Work goes to a device in chunks, several in flight at once:
//!
//! ```text
//!             copy in ──event──► kernel ──event──► copy out ──event──► collect
//!  stream     1                  2                 3
//!  chunk 3    ▓▓▓▓
//!  chunk 2                       ▓▓▓▓▓▓▓
//!  chunk 1                                         ▓▓▓▓
//! ```
//!
//! A [`Lane`] has the three streams; a slot of a primitive (such as [`overlap::Slot`]) owns the
//! pinned and device buffers of one chunk and the events of its [`Timeline`]. Submitting moves the
//! slot into a flight, which gives it back when the answer is there, so that nothing can touch or
//! free a buffer that the device still uses. All buffers come from a [`Memory`] with a byte
//! budget. Those of slots are made once and used again; only sets that a device does not have yet
//! need new ones.
//!
//! | file | what it holds |
//! |---|---|
//! | `bandwidth` | what copies take |
//! | `both` | a buffer on both sides of the bus |
//! | `device` | the probe, a device and its properties |
//! | `error` | failures, with call, kernel, grid, bytes and code |
//! | `memory` | buffers in device and in pinned memory, and their budgets |
//! | `stream` | streams and events |
//! | `lane` | streams of a pipeline of chunks; what a chunk's three steps took |
//! | `flight` | a chunk on its way, which keeps what the device uses |
//! | `grid` | what all grids have in common |
//! | `module` | embedded images, functions, checked launches |
//! | `overlap` | the launcher of the overlap kernels, with its policy |
//! | `signatures` | the same for the tiles of all pairs |

mod bandwidth;
mod both;
mod device;
mod error;
mod flight;
mod grid;
mod lane;
mod memory;
mod module;
pub mod overlap;
pub mod signatures;
mod stream;

pub use self::bandwidth::CopyTimes;
pub use self::device::{DEVICE_VARIABLE, Device, NoDevice, Properties};
pub use self::error::{DeviceError, FailureKind, Launch, MemoryKind, Work};
pub use self::flight::{Flight, SlotBuffers};
pub use self::lane::{Lane, Timeline, Times};
pub use self::memory::{DeviceBuffer, Memory, PinnedBuffer, Plain};
pub use self::module::ModuleImage;
pub use self::stream::{Event, Stream};
