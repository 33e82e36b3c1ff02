//! The steps of a flight, as a primitive sees them: copies in, kernels, copies out, landing.
//!
//! # Why the steps are safe
//!
//! A copy or a kernel runs after the call that queued it has returned, so its buffers must
//! neither be freed nor touched until it is done. All of that is argued here, once:
//!
//! * A step is made by [`Slot`](super::slot::Slot) alone, while a
//!   [`Flight`](super::flight::Flight) owns the slot. The flight lets go of it only when the device
//!   has: after the last step, or after all streams are idle. The same holds for all else that a
//!   flight keeps.
//! * A primitive gets its buffers as `&self` in each step, so that it can neither free nor
//!   replace one that an earlier step has queued.
//! * Each step waits for the one before it, so that no two of them use a buffer at the same time.
//! * The rest is the contract of [`Primitive`](super::primitive::Primitive): its steps name buffers
//!   of its own slot only, it reads the host's side only when it lands, and its kernels stay within
//!   the buffers that they are given.

#![expect(unsafe_code, reason = "work that a device does while the host goes on")]

use std::ffi::c_void;

use super::lane::{Lane, Timeline};
use crate::cuda::driver::{DeviceError, Event, Functions, Launch, Properties, Stream};
use crate::cuda::mirrored::MirroredBuffer;
use crate::memory::Plain;

/// The first step: copies to the device.
#[derive(Debug)]
pub struct CopyIn<'a> {
    stream: &'a Stream,
    bytes: usize,
}

impl<'a> CopyIn<'a> {
    pub(in crate::cuda) fn new(stream: &'a Stream) -> Self {
        Self { stream, bytes: 0 }
    }

    /// Queues the copy of the elements that a buffer has been filled with.
    pub(in crate::cuda) fn send<T: Plain>(
        &mut self,
        buffer: &MirroredBuffer<T>,
    ) -> Result<(), DeviceError> {
        let len = buffer.filled();
        if len == 0 {
            return Ok(());
        }
        self.bytes += len * size_of::<T>();
        let (host, device) = buffer.sides();
        // SAFETY: the flight keeps the buffer, as argued above.
        unsafe { self.stream.copy_in(host, device, len) }
    }

    /// The bytes that were sent.
    pub(in crate::cuda) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The second step: kernels, and the counters that they need cleared.
#[derive(Debug)]
pub struct LaunchStep<'a> {
    stream: &'a Stream,
    functions: &'a Functions,
}

impl<'a> LaunchStep<'a> {
    pub(in crate::cuda) fn new(stream: &'a Stream, functions: &'a Functions) -> Self {
        Self { stream, functions }
    }

    /// The device, to choose a grid for.
    pub(in crate::cuda) fn device(&self) -> &Properties {
        self.functions.device().properties()
    }

    /// Lets what is queued from now on wait for shared inputs that are under way.
    pub(in crate::cuda) fn wait(&self, event: &Event) -> Result<(), DeviceError> {
        self.stream.wait(event)
    }

    /// Queues filling the device's side of a buffer with zeros.
    pub(in crate::cuda) fn clear<T: Plain>(
        &self,
        buffer: &MirroredBuffer<T>,
    ) -> Result<(), DeviceError> {
        let (_, device) = buffer.sides();
        // SAFETY: the flight keeps the buffer, as argued above.
        unsafe { self.stream.clear(device) }
    }

    /// Queues a kernel.
    pub(in crate::cuda) fn launch(
        &self,
        launch: Launch,
        mut arguments: impl Arguments,
    ) -> Result<(), DeviceError> {
        // SAFETY: by the contract of `Primitive` the arguments match the kernel, which stays
        // within their buffers; the flight keeps the buffers, as argued above.
        arguments.with_pointers(|pointers| unsafe {
            self.functions.launch(self.stream, launch, pointers)
        })
    }
}

/// The third step: copies to the host.
#[derive(Debug)]
pub struct CopyOut<'a> {
    stream: &'a Stream,
    bytes: usize,
}

impl<'a> CopyOut<'a> {
    pub(in crate::cuda) fn new(stream: &'a Stream) -> Self {
        Self { stream, bytes: 0 }
    }

    /// Queues the copy of the first `len` elements of a buffer.
    pub(in crate::cuda) fn fetch<T: Plain>(
        &mut self,
        buffer: &MirroredBuffer<T>,
        len: usize,
    ) -> Result<(), DeviceError> {
        if len == 0 {
            return Ok(());
        }
        self.bytes += len * size_of::<T>();
        let (host, device) = buffer.sides();
        // SAFETY: the flight keeps the buffer, as argued above.
        unsafe { self.stream.copy_out(device, host, len) }
    }

    /// The bytes that were fetched.
    pub(in crate::cuda) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The end of a flight: the third step is done, and the host's side of its buffers may be read.
#[derive(Debug)]
pub struct Landing<'a> {
    lane: &'a Lane,
    timeline: &'a Timeline,
    bytes: usize,
}

impl<'a> Landing<'a> {
    pub(in crate::cuda) fn new(lane: &'a Lane, timeline: &'a Timeline) -> Self {
        Self { lane, timeline, bytes: 0 }
    }

    /// Copies the first `len` elements of a buffer and waits for them: for answers whose length
    /// is not known before the landing.
    pub(in crate::cuda) fn fetch<T: Plain>(
        &mut self,
        buffer: &MirroredBuffer<T>,
        len: usize,
    ) -> Result<(), DeviceError> {
        if len == 0 {
            return Ok(());
        }
        self.timeline.landing(self.lane, |stream| {
            let mut step = CopyOut::new(stream);
            step.fetch(buffer, len)?;
            self.bytes += step.bytes();
            Ok(())
        })?;
        self.timeline.wait_for_copies()
    }

    /// The bytes that were fetched.
    pub(in crate::cuda) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The arguments of a kernel: a tuple of numbers,
/// [`DevicePointer`](crate::cuda::driver::DevicePointer)s and `repr(C)` structs of them.
pub(in crate::cuda) trait Arguments {
    /// Calls `launch` with a pointer to each argument, as the driver takes them.
    fn with_pointers<R>(&mut self, launch: impl FnOnce(&mut [*mut c_void]) -> R) -> R;
}

/// Implements [`Arguments`] for a tuple with elements of these indices and types.
macro_rules! arguments {
    ($($index:tt $type:ident),+) => {
        impl<$($type: Copy),+> Arguments for ($($type,)+) {
            fn with_pointers<R>(&mut self, launch: impl FnOnce(&mut [*mut c_void]) -> R) -> R {
                launch(&mut [$((&raw mut self.$index).cast()),+])
            }
        }
    };
}

arguments!(0 A);
arguments!(0 A, 1 B);
arguments!(0 A, 1 B, 2 C);
arguments!(0 A, 1 B, 2 C, 3 D);
arguments!(0 A, 1 B, 2 C, 3 D, 4 E);
arguments!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F);
arguments!(0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G);
