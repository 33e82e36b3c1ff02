//! Buffers in device memory and in pinned host memory, within byte budgets.

#![expect(unsafe_code, reason = "calls of the driver, and memory that it gives out")]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cudarc::driver::result;
use cudarc::driver::sys;

use super::device::{Device, synchronize_unbound};
use super::error::{DeviceError, MemoryKind, sized};

/// What buffers hold: numbers and structs of numbers.
///
/// # Safety
///
/// The type has no padding and no invalid values, and kernels know it by the same layout.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: a number.
unsafe impl Plain for u32 {}
// SAFETY: a number.
unsafe impl Plain for u64 {}

/// Where buffers of one user come from: a device, and a budget for each kind of memory, fixed when
/// it is made. Buffers are made at the start and used again and again; when they are dropped, their
/// bytes go back to the budget.
#[derive(Debug)]
pub struct Memory {
    device: Device,
    device_bytes: Budget,
    pinned_bytes: Budget,
}

#[derive(Debug)]
struct Budget {
    kind: MemoryKind,
    bytes: usize,
    /// A count that orders nothing else: relaxed everywhere.
    used: AtomicUsize,
}

impl Budget {
    fn new(kind: MemoryKind, bytes: usize) -> Self {
        Self { kind, bytes, used: AtomicUsize::new(0) }
    }

    fn take(&self, wanted: usize) -> Result<(), DeviceError> {
        let within = |used: usize| used.checked_add(wanted).filter(|used| *used <= self.bytes);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within) {
            Ok(_) => Ok(()),
            Err(used) => {
                let left = self.bytes.saturating_sub(used);
                Err(DeviceError::Budget { kind: self.kind, wanted, left, budget: self.bytes })
            }
        }
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Memory {
    /// Budgets on a device.
    #[must_use]
    pub fn new(device: &Device, device_bytes: usize, pinned_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            device: device.clone(),
            device_bytes: Budget::new(MemoryKind::Device, device_bytes),
            pinned_bytes: Budget::new(MemoryKind::Pinned, pinned_bytes),
        })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes in use, of the device's memory and of pinned memory.
    #[must_use]
    pub fn used_bytes(&self) -> (usize, usize) {
        let [device, pinned] = [&self.device_bytes, &self.pinned_bytes]
            .map(|budget| budget.used.load(Ordering::Relaxed));
        (device, pinned)
    }

    /// A buffer of `len` zeros in the device's memory.
    ///
    /// # Errors
    ///
    /// If the budget or the device has not enough left.
    pub fn device_buffer<T: Plain>(
        self: &Arc<Self>,
        len: usize,
    ) -> Result<DeviceBuffer<T>, DeviceError> {
        let bytes = bytes_of::<T>(len);
        self.device.enter()?;
        self.device_bytes.take(bytes)?;
        // SAFETY: what is in the memory is not read before it is cleared below.
        let pointer = sized("cuMemAlloc", bytes, unsafe { result::malloc_sync(bytes) })
            .inspect_err(|_| self.device_bytes.give_back(bytes))?;
        let memory = Arc::clone(self);
        let buffer = DeviceBuffer { pointer, len, memory, elements: PhantomData };
        // SAFETY: the memory has so many bytes, and nobody else knows it yet.
        let cleared = unsafe { result::memset_d8_sync(pointer, 0, bytes) };
        sized("cuMemsetD8", bytes, cleared)?;
        synchronize_unbound()?;
        Ok(buffer)
    }

    /// A buffer of `len` zeros in pinned memory.
    ///
    /// # Errors
    ///
    /// If the budget or the host has not enough left.
    pub fn pinned_buffer<T: Plain>(
        self: &Arc<Self>,
        len: usize,
    ) -> Result<PinnedBuffer<T>, DeviceError> {
        let bytes = bytes_of::<T>(len);
        self.device.enter()?;
        self.pinned_bytes.take(bytes)?;
        // No flags: write-combined memory, a flag that copies to the device could use, is read back
        // very slowly.
        // SAFETY: what is in the memory is not read before it is cleared below.
        let pointer = sized("cuMemHostAlloc", bytes, unsafe { result::malloc_host(bytes, 0) })
            .inspect_err(|_| self.pinned_bytes.give_back(bytes))?;
        // SAFETY: the memory has so many bytes, and nobody else knows it yet.
        unsafe { pointer.cast::<u8>().write_bytes(0, bytes) };
        // SAFETY: the driver has reported success.
        let pointer = unsafe { NonNull::new_unchecked(pointer) };
        Ok(PinnedBuffer { pointer: pointer.cast(), len, memory: Arc::clone(self) })
    }
}

/// The size of a buffer; the driver refuses empty ones.
fn bytes_of<T>(len: usize) -> usize {
    len.checked_mul(size_of::<T>()).expect("a buffer larger than the address space").max(1)
}

/// Elements in the device's memory.
#[derive(Debug)]
pub struct DeviceBuffer<T: Plain> {
    pointer: sys::CUdeviceptr,
    len: usize,
    memory: Arc<Memory>,
    elements: PhantomData<T>,
}

impl<T: Plain> DeviceBuffer<T> {
    /// How many elements it has room for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has room for none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies elements to its front and waits until they are there.
    ///
    /// # Errors
    ///
    /// If the driver fails.
    ///
    /// # Panics
    ///
    /// If there are more than it has room for.
    pub fn upload(&mut self, elements: &[T]) -> Result<(), DeviceError> {
        assert!(elements.len() <= self.len, "{} for {}", elements.len(), self.len);
        self.memory.device.enter()?;
        // SAFETY: the memory has room for them, and the borrow says that nothing else uses it: work
        // in flight owns its buffers or shares them unchanged.
        let copied = unsafe { result::memcpy_htod_sync(self.pointer, elements) };
        sized("cuMemcpyHtoD", size_of_val(elements), copied)?;
        synchronize_unbound()
    }

    pub(super) fn pointer(&self) -> sys::CUdeviceptr {
        self.pointer
    }
}

impl<T: Plain> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        let _ = self.memory.device.enter();
        // SAFETY: allocated by `device_buffer`, freed here alone. What fails to be freed ends with
        // the context.
        let _ = unsafe { result::free_sync(self.pointer) };
        self.memory.device_bytes.give_back(bytes_of::<T>(self.len));
    }
}

/// Elements in pinned host memory: a slice that the device can copy from and to by itself.
#[derive(Debug)]
pub struct PinnedBuffer<T: Plain> {
    pointer: NonNull<T>,
    len: usize,
    memory: Arc<Memory>,
}

// SAFETY: it owns its memory, which is bound to no thread.
unsafe impl<T: Plain> Send for PinnedBuffer<T> {}
// SAFETY: as above; shared, it is only read.
unsafe impl<T: Plain> Sync for PinnedBuffer<T> {}

impl<T: Plain> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements, cleared when they were allocated, aligned to a page.
        unsafe { slice::from_raw_parts(self.pointer.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is the only one.
        unsafe { slice::from_raw_parts_mut(self.pointer.as_ptr(), self.len) }
    }
}

impl<T: Plain> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        let _ = self.memory.device.enter();
        // SAFETY: allocated by `pinned_buffer`, freed here alone. What fails to be freed ends
        // with the process.
        let _ = unsafe { result::free_host(self.pointer.as_ptr().cast()) };
        self.memory.pinned_bytes.give_back(bytes_of::<T>(self.len));
    }
}
