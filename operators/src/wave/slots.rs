//! The memory of a kernel on a device.

use std::sync::Arc;

use trommel_kernels::cuda::{Device, DeviceError, Memory};

/// Slots for so many chunks of so many bytes each, and memory with a budget for them and for
/// `sets_bytes_max` of sets.
///
/// # Errors
/// If the device has not enough memory.
pub(super) fn open_slots<S>(
    device: &Device,
    (slots, chunk_bytes): (usize, usize),
    sets_bytes_max: usize,
    slot: impl Fn(&Arc<Memory>) -> Result<S, DeviceError>,
) -> Result<(Arc<Memory>, Vec<S>), DeviceError> {
    let chunks_bytes = chunk_bytes.saturating_mul(slots);
    let memory = Memory::new(device, chunks_bytes.saturating_add(sets_bytes_max), chunks_bytes);
    let slots = (0..slots).map(|_| slot(&memory)).collect::<Result<_, DeviceError>>()?;
    Ok((memory, slots))
}
