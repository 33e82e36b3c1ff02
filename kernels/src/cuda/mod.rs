//! GPUs: the device layer, and a host launcher for each primitive that has CUDA kernels.
//!
//! The driver is loaded at run time, so that the same binary runs on machines without a driver;
//! [`Device::probe`] is the only way to it, and says plainly why there is no device. Kernels are
//! compiled ahead (`cargo xtask cuda`) and embedded. This layer starts no thread and chooses no
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
//! and the events of its [`Timeline`]. A submission moves the slot into a [`Flight`], and the
//! flight returns the slot with the answer, so that no code can touch or free a buffer that the
//! device still uses. [`Flights`] has several slots and takes the flights in order. All buffers
//! come from a [`Memory`] with a byte budget. The buffers of slots are made once and reused; only
//! inputs that several chunks share, such as [`DeviceSets`], need new buffers.
//!
//! None of these types knows a primitive. A primitive implements [`Primitive`]: its kernels by
//! name, its buffers, the arguments of a launch, and how an answer is read. [`chunk_sum`] is the
//! smallest primitive.
//!
//! | file | contents |
//! |---|---|
//! | `driver` | the probe, devices, failures (`error`), buffers with their budgets (`memory`), streams and events (`stream`), images and the functions in them (`module`), the speed of plain copies (`bandwidth`) |
//! | `flights` | the code that all primitives share: the contract of a primitive (`primitive`), its `kernels`, the buffers of a chunk (`slot`), a chunk under way (`flight`), the streams and times of a pipeline of chunks (`lane`), copies and launches for a primitive (`steps`) |
//! | `mirrored`, `output` | a buffer on both sides of the bus; answers of unknown number in a buffer of fixed room |
//! | `grid` | the cut of a launch into blocks |
//! | `sets` | sets in a device's memory |
//! | `overlap`, `queries`, `signatures`, `supports`, `vectors`, `chunk_sum` | the primitives |

#[doc(hidden)]
pub mod chunk_sum;
mod driver;
mod flights;
mod grid;
mod mirrored;
mod output;
pub mod overlap;
pub mod queries;
mod sets;
pub mod signatures;
pub mod supports;
pub mod vectors;

pub use self::driver::{
    CopyTimes, DEVICE_VARIABLE, Device, DeviceBuffer, DeviceError, Event, FailureKind, Images,
    Launch, Memory, MemoryKind, ModuleImage, NoDevice, PinnedBuffer, Properties, Stream, Work,
};
pub use self::flights::{
    CopyIn, CopyOut, Flight, Flights, Kernels, Landed, Landing, Lane, LaunchStep, Primitive, Slot,
    Timeline, Times,
};
pub use self::grid::Grid;
pub use self::sets::DeviceSets;
pub use crate::memory::Plain;
