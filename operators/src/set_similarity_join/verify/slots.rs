//! Memory on a device for chunks in flight.

use std::sync::Arc;

use trommel_kernels::cuda::{Device, DeviceError, Memory};

/// Limits on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceLimits {
    /// Chunks in flight at once.
    pub(super) slots: usize,
    /// Bytes of the sets that are kept there.
    pub(super) sets_bytes_max: usize,
}

/// A slot of `chunk_bytes` for each chunk in flight, and memory with a budget for them and for the
/// sets.
///
/// # Errors
/// If the device has not enough memory.
pub(super) fn open_slots<S>(
    device: &Device,
    limits: DeviceLimits,
    chunk_bytes: usize,
    slot: impl Fn(&Arc<Memory>) -> Result<S, DeviceError>,
) -> Result<(Arc<Memory>, Vec<S>), DeviceError> {
    let chunks_bytes = chunk_bytes.saturating_mul(limits.slots);
    let bytes = chunks_bytes.saturating_add(limits.sets_bytes_max);
    let memory = Memory::new(device, bytes, chunks_bytes);
    let slots = (0..limits.slots).map(|_| slot(&memory)).collect::<Result<_, DeviceError>>()?;
    Ok((memory, slots))
}
