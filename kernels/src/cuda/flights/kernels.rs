//! The kernels of a primitive, loaded on a device.

#![expect(unsafe_code, reason = "a kernel outside of a flight")]

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::primitive::Primitive;
use super::steps::Arguments;
use crate::cuda::driver::{Device, DeviceError, Functions, Launch, ModuleImage, Stream};

/// The kernels of a primitive, loaded on a device.
pub struct Kernels<P> {
    functions: Functions,
    primitive: PhantomData<fn(P)>,
}

impl<P> fmt::Debug for Kernels<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Kernels").field(&self.functions).finish()
    }
}

impl<P: Primitive> Kernels<P> {
    /// Loads the kernels.
    ///
    /// # Errors
    ///
    /// If the driver refuses the image or a kernel.
    pub fn load(device: &Device) -> Result<Arc<Self>, DeviceError> {
        let functions = Functions::load(device, P::IMAGES, P::KERNELS)?;
        Ok(Arc::new(Self { functions, primitive: PhantomData }))
    }

    /// The form of the image from which the kernels were loaded.
    #[must_use]
    pub fn image(&self) -> ModuleImage {
        self.functions.image()
    }

    /// The device that has loaded the kernels.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.functions.device()
    }

    pub(super) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Queues a kernel outside of a flight.
    ///
    /// # Safety
    ///
    /// As for [`Functions::launch`].
    pub(in crate::cuda) unsafe fn queue(
        &self,
        stream: &Stream,
        launch: Launch,
        mut arguments: impl Arguments,
    ) -> Result<(), DeviceError> {
        arguments.with_pointers(|pointers| {
            // SAFETY: the caller has promised it.
            unsafe { self.functions.launch(stream, launch, pointers) }
        })
    }

    /// Runs a kernel outside of a flight, and waits until it is done.
    ///
    /// # Safety
    ///
    /// As for [`Functions::launch`], until the call returns.
    pub(in crate::cuda) unsafe fn run(
        &self,
        launch: Launch,
        arguments: impl Arguments,
    ) -> Result<(), DeviceError> {
        let stream = Stream::new(self.device())?;
        // SAFETY: the caller has promised it.
        unsafe { self.queue(&stream, launch, arguments) }?;
        stream.synchronize()
    }
}
