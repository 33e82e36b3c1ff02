//! Streams, which run queued work in order, and events, which mark places in streams.

#![expect(unsafe_code, reason = "calls of the driver")]

use std::time::Duration;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUresult};

use super::device::Device;
use super::error::{DeviceError, check, sized};
use super::memory::{DeviceBuffer, PinnedBuffer};
use crate::memory::Plain;

/// A queue of copies and kernels.
#[derive(Debug)]
pub struct Stream {
    handle: sys::CUstream,
    device: Device,
}

// SAFETY: the driver's handles may be used from every thread in which the context is current, and
// every method enters it.
unsafe impl Send for Stream {}
// SAFETY: as above; the driver locks a stream.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream that waits for no other stream.
    ///
    /// # Errors
    ///
    /// If the driver cannot make a stream.
    pub fn new(device: &Device) -> Result<Self, DeviceError> {
        device.enter()?;
        let handle = result::stream::create(result::stream::StreamKind::NonBlocking);
        Ok(Self { handle: check("cuStreamCreate", handle)?, device: device.clone() })
    }

    /// Blocks until all queued work is done.
    ///
    /// # Errors
    ///
    /// If any queued work failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.device.enter()?;
        // SAFETY: the stream is alive.
        check("cuStreamSynchronize", unsafe { result::stream::synchronize(self.handle) })
    }

    /// Lets work queued from now on wait for an event.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn wait(&self, event: &Event) -> Result<(), DeviceError> {
        self.device.enter()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: stream and event are alive.
        let waits = unsafe { result::stream::wait_event(self.handle, event.handle, flags) };
        check("cuStreamWaitEvent", waits)
    }

    pub(super) fn handle(&self) -> sys::CUstream {
        self.handle
    }

    /// Queues a copy of the first `len` elements to the device.
    ///
    /// # Safety
    ///
    /// Until the copy is done, neither buffer is freed, no other work writes to either buffer, and
    /// no other work reads the device buffer.
    pub(in crate::cuda) unsafe fn copy_in<T: Plain>(
        &self,
        from: &PinnedBuffer<T>,
        to: &DeviceBuffer<T>,
        len: usize,
    ) -> Result<(), DeviceError> {
        assert!(len <= to.len(), "{len} elements for a device buffer of {}", to.len());
        let from = &from[..len];
        self.device.enter()?;
        let target = to.pointer().address();
        // SAFETY: both have room for `len` elements, and stay as the caller has promised.
        let copied = unsafe { result::memcpy_htod_async(target, from, self.handle) };
        sized("cuMemcpyHtoDAsync", size_of_val(from), copied)
    }

    /// Queues a copy of elements to a buffer, from its element `at` on.
    ///
    /// # Safety
    ///
    /// Until the copy is done, neither the elements nor the buffer are freed, no code writes to the
    /// elements, and no other work writes to their places in the buffer or reads these places.
    pub(in crate::cuda) unsafe fn copy_slice<T: Plain>(
        &self,
        from: &[T],
        to: &DeviceBuffer<T>,
        at: usize,
    ) -> Result<(), DeviceError> {
        let (len, room) = (from.len(), to.len());
        assert!(
            at <= room && len <= room - at,
            "{len} elements from {at} on in a buffer of {room}"
        );
        if len == 0 {
            return Ok(());
        }
        self.device.enter()?;
        let target = to.pointer().at(at as u64).address();
        // SAFETY: both have room for the elements, and stay as the caller has promised.
        let copied = unsafe { result::memcpy_htod_async(target, from, self.handle) };
        sized("cuMemcpyHtoDAsync", size_of_val(from), copied)
    }

    /// Queues a copy of the first `len` elements to the host.
    ///
    /// # Safety
    ///
    /// Until the copy is done, neither buffer is freed, no other work writes to either buffer, and
    /// no code reads the pinned buffer.
    pub(in crate::cuda) unsafe fn copy_out<T: Plain>(
        &self,
        from: &DeviceBuffer<T>,
        to: &PinnedBuffer<T>,
        len: usize,
    ) -> Result<(), DeviceError> {
        assert!(len <= from.len(), "{len} elements of a device buffer of {}", from.len());
        assert!(len <= to.capacity(), "{len} elements for a pinned buffer of {}", to.capacity());
        self.device.enter()?;
        let (source, target) = (from.pointer().address(), to.as_ptr().cast());
        let bytes = len * size_of::<T>();
        // SAFETY: both have room for `len` elements, and stay as the caller has promised.
        let code = unsafe { sys::cuMemcpyDtoHAsync_v2(target, source, bytes, self.handle) };
        sized("cuMemcpyDtoHAsync", bytes, code.result())
    }

    /// Queues a copy of the first `len` elements within the device.
    ///
    /// # Safety
    ///
    /// Until the copy is done, neither buffer is freed, no other work writes to either buffer, and
    /// no other work reads the target.
    pub(super) unsafe fn copy_within<T: Plain>(
        &self,
        from: &DeviceBuffer<T>,
        to: &DeviceBuffer<T>,
        len: usize,
    ) -> Result<(), DeviceError> {
        assert!(len <= from.len().min(to.len()), "{len} elements for buffers of fewer");
        self.device.enter()?;
        let bytes = len * size_of::<T>();
        let [source, target] = [from, to].map(|buffer| buffer.pointer().address());
        // SAFETY: both have room for `len` elements, and stay as the caller has promised.
        let copied = unsafe { result::memcpy_dtod_async(target, source, bytes, self.handle) };
        sized("cuMemcpyDtoDAsync", bytes, copied)
    }

    /// Queues a fill of a buffer with zero bytes.
    ///
    /// # Safety
    ///
    /// Until the fill is done, the buffer is not freed, and no other work writes to it or reads it.
    pub(in crate::cuda) unsafe fn clear<T: Plain>(
        &self,
        buffer: &DeviceBuffer<T>,
    ) -> Result<(), DeviceError> {
        self.device.enter()?;
        let bytes = buffer.len() * size_of::<T>();
        let address = buffer.pointer().address();
        // SAFETY: the buffer has `bytes` bytes, and stays as the caller has promised; zeros are a
        // value of every `Plain` type.
        let cleared = unsafe { result::memset_d8_async(address, 0, bytes, self.handle) };
        sized("cuMemsetD8Async", bytes, cleared)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.device.enter();
        // SAFETY: `new` made the stream, and only this method destroys it. A stream that fails to
        // be destroyed ends with its context.
        let _ = unsafe { result::stream::destroy(self.handle) };
    }
}

/// A place in a stream, with its time.
#[derive(Debug)]
pub struct Event {
    handle: sys::CUevent,
    device: Device,
}

// SAFETY: the driver's handles may be used from every thread in which the context is current, and
// every method enters it.
unsafe impl Send for Event {}
// SAFETY: as above; the driver locks an event.
unsafe impl Sync for Event {}

impl Event {
    /// An event that marks no work yet. A thread that waits for the event sleeps.
    ///
    /// # Errors
    ///
    /// If the driver cannot make an event.
    pub fn new(device: &Device) -> Result<Self, DeviceError> {
        device.enter()?;
        let handle = result::event::create(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC);
        Ok(Self { handle: check("cuEventCreate", handle)?, device: device.clone() })
    }

    /// Marks the end of all work that is queued on a stream now.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn record(&self, stream: &Stream) -> Result<(), DeviceError> {
        self.device.enter()?;
        // SAFETY: event and stream are alive.
        check("cuEventRecord", unsafe { result::event::record(self.handle, stream.handle) })
    }

    /// Whether all marked work is done; true for an event that marks no work.
    ///
    /// # Errors
    ///
    /// If any marked work failed.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        self.device.enter()?;
        // SAFETY: the event is alive.
        match unsafe { result::event::query(self.handle) } {
            Err(DriverError(CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            done => check("cuEventQuery", done).map(|()| true),
        }
    }

    /// Blocks until all marked work is done.
    ///
    /// # Errors
    ///
    /// If any marked work failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.device.enter()?;
        // SAFETY: the event is alive.
        check("cuEventSynchronize", unsafe { result::event::synchronize(self.handle) })
    }

    /// The time from an earlier event to this event; the work of both is done.
    ///
    /// # Errors
    ///
    /// If an event marks no work, or its work is not done.
    pub fn since(&self, earlier: &Self) -> Result<Duration, DeviceError> {
        self.device.enter()?;
        // SAFETY: both events are alive.
        let elapsed = unsafe { result::event::elapsed(earlier.handle, self.handle) };
        let milliseconds = check("cuEventElapsedTime", elapsed)?;
        Ok(Duration::try_from_secs_f32(milliseconds / 1e3).unwrap_or_default())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = self.device.enter();
        // SAFETY: `new` made the event, and only this method destroys it. An event that fails to be
        // destroyed ends with its context.
        let _ = unsafe { result::event::destroy(self.handle) };
    }
}
