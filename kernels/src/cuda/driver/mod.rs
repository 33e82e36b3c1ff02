//! The driver: devices, their memory, streams and events, and the images that devices load.
//!
//! All calls of the driver are in this folder. Each of its types owns a handle of the driver.

pub(super) mod bandwidth;
pub(super) mod device;
pub(super) mod error;
pub(super) mod memory;
pub(super) mod module;
pub(super) mod stream;
