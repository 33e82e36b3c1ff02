//! GPUs: the device layer, and a host launcher for each primitive that has CUDA kernels.
//!
//! The driver is loaded at run time, so that the same binary runs where there is none;
//! [`Device::probe`] is the only door to it and says plainly why there is no device. Kernels are
//! compiled ahead (`cargo xtask cuda`) and embedded. Nothing here starts a thread or chooses a
//! fall-back: a failure names the call and tells whether the device is gone, and callers decide.
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
//! A [`Lane`] has the streams; a [`Slot`] owns the pinned and device buffers of one chunk
//! and the events of its [`Timeline`]. Submitting moves the slot into a [`Flight`], which gives
//! it back when the answer is there, so that nothing can touch or free a buffer that the device
//! still uses. [`Flights`] has several slots and takes the flights in order. All buffers come
//! from a [`Memory`] with a byte budget. The buffers of slots are made once and reused; only
//! inputs that several chunks share, such as [`DeviceSets`], need new ones.
//!
//! None of that knows a primitive. A primitive implements [`Primitive`]: its kernels by name, its
//! buffers, the arguments of a launch, and how an answer is read. [`chunk_sum`] is the smallest.
//!
//! | file | contents |
//! |---|---|
//! | `error` | failures, with call, kernel, grid, bytes and code |
//! | `device` | the probe, a device and its properties |
//! | `memory` | buffers in device and in pinned memory, and their budgets |
//! | `mirrored` | a buffer on both sides of the bus |
//! | `stream`, `lane` | streams and events; the streams of a pipeline of chunks and its times |
//! | `module` | embedded images and the functions in them |
//! | `grid` | the cut of a launch into blocks |
//! | `steps` | copies and launches as a primitive sees them, and why they are safe |
//! | `primitive` | the contract of a primitive |
//! | `kernels`, `slot`, `flight`, `flights` | the same for all primitives: kernels, buffers, a chunk under way, several |
//! | `output` | answers of unknown number in a buffer of fixed room |
//! | `sets` | sets in a device's memory |
//! | `bandwidth` | the speed of plain copies |
//! | `overlap`, `queries`, `signatures`, `supports`, `vectors`, `chunk_sum` | the primitives |

mod bandwidth;
#[doc(hidden)]
pub mod chunk_sum;
mod device;
mod error;
mod flight;
mod flights;
mod grid;
mod kernels;
mod lane;
mod memory;
mod mirrored;
mod module;
mod output;
pub mod overlap;
mod primitive;
pub mod queries;
mod sets;
pub mod signatures;
mod slot;
mod steps;
mod stream;
pub mod supports;
pub mod vectors;

pub use self::bandwidth::CopyTimes;
pub use self::device::{DEVICE_VARIABLE, Device, NoDevice, Properties};
pub use self::error::{DeviceError, FailureKind, Launch, MemoryKind, Work};
pub use self::flight::Flight;
pub use self::flights::Flights;
pub use self::grid::Grid;
pub use self::kernels::Kernels;
pub use self::lane::{Lane, Timeline, Times};
pub use self::memory::{DeviceBuffer, Memory, PinnedBuffer};
pub use self::module::{Images, ModuleImage};
pub use self::primitive::Primitive;
pub use self::sets::DeviceSets;
pub use self::slot::{Landed, Slot};
pub use self::steps::{CopyIn, CopyOut, Landing, LaunchStep};
pub use self::stream::{Event, Stream};
