//! The steps of a flight for a primitive: copies in, kernels, copies out, landing.
//!
//! # Why the steps are safe
//!
//! A copy or a kernel runs after the call that queued it has returned, so its buffers must neither
//! be freed nor touched until the work is done. This list is the whole argument:
//!
//! * Only [`Slot`](super::slot::Slot) makes a step, while a [`Flight`](super::flight::Flight) owns
//!   the slot. The flight releases the slot only when the device does not use it any more: after
//!   the last step, or after all streams are idle. The same holds for all further data that a
//!   flight keeps.
//! * A primitive gets its buffers as `&self` in each step, so that it can neither free nor replace
//!   a buffer that an earlier step has queued.
//! * Each step waits for the previous step, so that no two steps use a buffer at the same time.
//! * The contract of [`Primitive`](super::primitive::Primitive) adds that its steps name buffers of
//!   its own slot only, that it reads the host's side only when it lands, and that its kernels stay
//!   within the buffers of their arguments.

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

    /// Queues the copy of the elements with which a buffer was filled.
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

/// The second step: kernels, and the clearing of their counters.
#[derive(Debug)]
pub struct LaunchStep<'a> {
    stream: &'a Stream,
    functions: &'a Functions,
}

impl<'a> LaunchStep<'a> {
    pub(in crate::cuda) fn new(stream: &'a Stream, functions: &'a Functions) -> Self {
        Self { stream, functions }
    }

    /// The device, for the choice of a grid.
    pub(in crate::cuda) fn device(&self) -> &Properties {
        self.functions.device().properties()
    }

    /// Lets later work of the stream wait for shared inputs that are under way.
    pub(in crate::cuda) fn wait(&self, event: &Event) -> Result<(), DeviceError> {
        self.stream.wait(event)
    }

    /// Queues a fill of the device's side of a buffer with zeros.
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
        // SAFETY: by the contract of `Primitive` the arguments match the kernel, and the kernel
        // stays within their buffers; the flight keeps the buffers, as argued above.
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

    /// Copies the first `len` elements of a buffer, and waits for the copy. This method serves
    /// answers whose length is unknown before the landing.
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
/// [`DevicePointer`](crate::cuda::driver::DevicePointer)s and `repr(C)` structs of both.
pub(in crate::cuda) trait Arguments {
    /// Calls `launch` with a pointer to each argument, the form that the driver takes.
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
