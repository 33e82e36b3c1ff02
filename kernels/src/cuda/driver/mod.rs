//! The driver: devices, their memory, streams and events, and the images that devices load.
//!
//! All calls of the driver are in this folder. Each of its types owns a handle of the driver.

mod bandwidth;
mod device;
mod error;
mod memory;
mod module;
mod stream;

pub use self::bandwidth::CopyTimes;
pub use self::device::{DEVICE_VARIABLE, Device, NoDevice, Properties};
pub use self::error::{DeviceError, FailureKind, Launch, MemoryKind, Work};
pub(super) use self::memory::DevicePointer;
pub use self::memory::{DeviceBuffer, Memory, PinnedBuffer};
pub(super) use self::module::{Functions, image_bytes, images};
pub use self::module::{Images, ModuleImage};
pub use self::stream::{Event, Stream};
