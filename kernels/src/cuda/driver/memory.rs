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
use crate::memory::Plain;

/// The source of all buffers of one user: a device, and a fixed budget for each kind of memory.
/// Buffers are made at the start and used again; a dropped buffer returns its bytes to the budget.
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
    /// All accesses are relaxed: only the count matters, and it publishes no other memory.
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
        // The budget is taken before the driver is asked, so that two threads cannot both take the
        // last bytes.
        self.device_bytes.take(bytes)?;
        // SAFETY: the memory is not read before it is cleared below.
        let address = sized("cuMemAlloc", bytes, unsafe { result::malloc_sync(bytes) })
            .inspect_err(|_| self.device_bytes.give_back(bytes))?;
        let memory = Arc::clone(self);
        let buffer = DeviceBuffer { address, len, memory, elements: PhantomData };
        // SAFETY: the memory has `bytes` bytes, and no other code knows it yet.
        let cleared = unsafe { result::memset_d8_sync(address, 0, bytes) };
        sized("cuMemsetD8", bytes, cleared)?;
        // Without this wait one of our streams could write to the buffer before it is cleared.
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
        // The call has no flags: write-combined memory would slightly speed up copies to the
        // device, but the host reads such memory very slowly. SAFETY: the memory is not read before
        // it is cleared below.
        let pointer = sized("cuMemHostAlloc", bytes, unsafe { result::malloc_host(bytes, 0) })
            .inspect_err(|_| self.pinned_bytes.give_back(bytes))?;
        // SAFETY: the memory has `bytes` bytes, and nobody else knows it yet.
        unsafe { pointer.cast::<u8>().write_bytes(0, bytes) };
        // SAFETY: the driver has reported success.
        let pointer = unsafe { NonNull::new_unchecked(pointer) };
        Ok(PinnedBuffer { pointer: pointer.cast(), len, memory: Arc::clone(self) })
    }
}

/// The size of a buffer, at least a byte: the driver refuses empty buffers.
fn bytes_of<T>(len: usize) -> usize {
    len.checked_mul(size_of::<T>()).expect("a buffer larger than the address space").max(1)
}

/// An address in the device's memory as a kernel takes it: a pointer, or null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(in crate::cuda) struct DevicePointer<T> {
    address: sys::CUdeviceptr,
    elements: PhantomData<fn() -> T>,
}

impl<T> DevicePointer<T> {
    /// The null pointer.
    pub(in crate::cuda) const NULL: Self = Self { address: 0, elements: PhantomData };

    /// The address of the element at `index`, counted from this address.
    pub(in crate::cuda) const fn at(self, index: u64) -> Self {
        let offset = index * size_of::<T>() as u64;
        Self { address: self.address + offset, elements: PhantomData }
    }

    pub(in crate::cuda) const fn address(self) -> sys::CUdeviceptr {
        self.address
    }
}

/// Elements in the device's memory.
#[derive(Debug)]
pub struct DeviceBuffer<T: Plain> {
    address: sys::CUdeviceptr,
    len: usize,
    memory: Arc<Memory>,
    elements: PhantomData<T>,
}

impl<T: Plain> DeviceBuffer<T> {
    /// The number of elements that fit.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no element fits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies elements to the front of the buffer, and waits until they have arrived.
    ///
    /// # Errors
    ///
    /// If the driver fails.
    ///
    /// # Panics
    ///
    /// If more elements are given than fit.
    pub fn upload(&mut self, elements: &[T]) -> Result<(), DeviceError> {
        let (given, room) = (elements.len(), self.len);
        assert!(given <= room, "{given} elements for a device buffer of {room}");
        self.memory.device.enter()?;
        // SAFETY: the elements fit, and the borrow says that nothing else uses the buffer: work
        // in flight owns its buffers or shares them unchanged.
        let copied = unsafe { result::memcpy_htod_sync(self.address, elements) };
        sized("cuMemcpyHtoD", size_of_val(elements), copied)?;
        synchronize_unbound()
    }

    pub(in crate::cuda) fn pointer(&self) -> DevicePointer<T> {
        DevicePointer { address: self.address, elements: PhantomData }
    }
}

impl<T: Plain> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        let _ = self.memory.device.enter();
        // SAFETY: `device_buffer` allocated the memory, and only this method frees it. Memory that
        // fails to be freed ends with the context.
        let _ = unsafe { result::free_sync(self.address) };
        self.memory.device_bytes.give_back(bytes_of::<T>(self.len));
    }
}

/// Elements in pinned host memory: a slice that the device copies from and to by itself.
#[derive(Debug)]
pub struct PinnedBuffer<T: Plain> {
    pointer: NonNull<T>,
    len: usize,
    memory: Arc<Memory>,
}

impl<T: Plain> PinnedBuffer<T> {
    /// The first element, for copies that the device does: no reference to the elements is made.
    pub(super) fn as_ptr(&self) -> *mut T {
        self.pointer.as_ptr()
    }

    /// The number of elements, without a reference to them.
    pub(super) fn capacity(&self) -> usize {
        self.len
    }
}

// SAFETY: the buffer owns its memory, which is bound to no thread.
unsafe impl<T: Plain> Send for PinnedBuffer<T> {}
// SAFETY: as above; a shared buffer is only read.
unsafe impl<T: Plain> Sync for PinnedBuffer<T> {}

impl<T: Plain> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory has `len` elements, cleared when they were allocated, and is aligned
        // to a page.
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
        // SAFETY: `pinned_buffer` allocated the memory, and only this method frees it. Memory that
        // fails to be freed ends with the process.
        let _ = unsafe { result::free_host(self.pointer.as_ptr().cast()) };
        self.memory.pinned_bytes.give_back(bytes_of::<T>(self.len));
    }
}
