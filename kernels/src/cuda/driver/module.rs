//! Embedded images, the functions in them, and launches.

#![expect(unsafe_code, reason = "calls of the driver")]

use std::ffi::{CString, c_void};
use std::fmt;

use cudarc::driver::result;
use cudarc::driver::sys;

use super::device::Device;
use super::error::{DeviceError, Launch, Work};
use super::stream::Stream;

/// One source, compiled for all GPUs.
#[derive(Debug)]
pub struct Images {
    /// The source's name without its ending.
    pub(in crate::cuda) name: &'static str,
    pub(in crate::cuda) sm_80: &'static [u8],
    pub(in crate::cuda) sm_90a: &'static [u8],
    pub(in crate::cuda) ptx: &'static [u8],
}

/// Embeds the images of a source, by the source's name.
macro_rules! images {
    ($name:literal) => {
        &$crate::cuda::driver::Images {
            name: $name,
            sm_80: $crate::cuda::driver::image_bytes!($name, ".sm_80.cubin"),
            sm_90a: $crate::cuda::driver::image_bytes!($name, ".sm_90a.cubin"),
            ptx: $crate::cuda::driver::image_bytes!($name, ".compute_70.ptx"),
        }
    };
}
pub(in crate::cuda) use images;

/// The bytes of an image of a source.
#[cfg(feature = "cuda-images")]
macro_rules! image_bytes {
    ($name:literal, $ending:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/cuda/images/", $name, $ending))
    };
}

/// The image has no bytes: without the feature, `Device::count` gives no device that would load it.
#[cfg(not(feature = "cuda-images"))]
macro_rules! image_bytes {
    ($name:literal, $ending:literal) => {
        &[]
    };
}
pub(in crate::cuda) use image_bytes;

/// The form of an image that a device runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModuleImage {
    /// Machine code for capability 8.0, which all devices of 8.x run.
    Sm80,
    /// Machine code for capability 9.0 alone, with instructions that no later capability has.
    Sm90a,
    /// PTX, compiled by the driver.
    Ptx,
}

impl ModuleImage {
    /// Machine code made for the capability, else PTX.
    fn of(capability: (u32, u32)) -> Self {
        match capability {
            (8, _) => Self::Sm80,
            (9, 0) => Self::Sm90a,
            _ => Self::Ptx,
        }
    }
}

impl fmt::Display for ModuleImage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Sm80 => "sm_80",
            Self::Sm90a => "sm_90a",
            Self::Ptx => "PTX",
        })
    }
}

/// Shared memory that every device gives a block without a request.
const SHARED_BYTES_USUAL: u32 = 48 << 10;

/// An image that a device has loaded; the drop unloads the image.
#[derive(Debug)]
struct Module {
    handle: sys::CUmodule,
    device: Device,
}

impl Module {
    fn load(device: &Device, images: &Images, image: ModuleImage) -> Result<Self, DeviceError> {
        device.enter()?;
        let bytes = match image {
            ModuleImage::Sm80 => images.sm_80,
            ModuleImage::Sm90a => images.sm_90a,
            ModuleImage::Ptx => images.ptx,
        };
        // The driver takes PTX as text that ends with a zero byte; it ignores the byte of a
        // cubin.
        let bytes = [bytes, &[0]].concat();
        // SAFETY: the bytes are a whole image from the compiler, and the driver copies them.
        let handle = unsafe { result::module::load_data(bytes.as_ptr().cast::<c_void>()) };
        let named = Work::Named(images.name);
        let handle =
            handle.map_err(|error| DeviceError::driver("cuModuleLoadData", named, error))?;
        Ok(Self { handle, device: device.clone() })
    }

    fn function(&self, name: &'static str) -> Result<sys::CUfunction, DeviceError> {
        self.device.enter()?;
        let c_name = CString::new(name).expect("names of kernels have no zero byte");
        // SAFETY: the module is loaded.
        let handle = unsafe { result::module::get_function(self.handle, c_name) };
        let named = Work::Named(name);
        handle.map_err(|error| DeviceError::driver("cuModuleGetFunction", named, error))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = self.device.enter();
        // SAFETY: `load` loaded the module, and only this method unloads it. A module that fails to
        // be unloaded ends with the context.
        let _ = unsafe { result::module::unload(self.handle) };
    }
}

/// The kernels of an image, by name.
#[derive(Debug)]
pub(in crate::cuda) struct Functions {
    handles: Vec<(&'static str, sys::CUfunction)>,
    image: ModuleImage,
    /// The module of the functions, which live as long as it.
    module: Module,
}

// SAFETY: the driver's handles may be used from every thread in which the context is current, and
// every use enters it.
unsafe impl Send for Functions {}
// SAFETY: as above; neither a module nor its functions change after they are loaded.
unsafe impl Sync for Functions {}

impl Functions {
    /// Loads the image for the device, and the functions of these names.
    pub(in crate::cuda) fn load(
        device: &Device,
        images: &Images,
        names: &[&'static str],
    ) -> Result<Self, DeviceError> {
        let image = ModuleImage::of(device.properties().capability);
        let module = Module::load(device, images, image)?;
        let handles = names.iter().map(|name| Ok((*name, module.function(name)?)));
        Ok(Self { handles: handles.collect::<Result<_, DeviceError>>()?, image, module })
    }

    pub(in crate::cuda) fn image(&self) -> ModuleImage {
        self.image
    }

    pub(in crate::cuda) fn device(&self) -> &Device {
        &self.module.device
    }

    /// Queues a kernel on a stream of its device.
    ///
    /// # Panics
    ///
    /// If no kernel of this name has been loaded.
    ///
    /// # Safety
    ///
    /// - `arguments` point to values of the types of the kernel's parameters, in their order.
    /// - Device memory that the arguments name, in the ranges that the kernel uses, stays allocated
    ///   until the kernel is done; no other work writes to it or reads the kernel's results before
    ///   that.
    /// - The kernel allows the grid.
    pub(in crate::cuda) unsafe fn launch(
        &self,
        stream: &Stream,
        launch: Launch,
        arguments: &mut [*mut c_void],
    ) -> Result<(), DeviceError> {
        let handle = self.handles.iter().find(|(name, _)| *name == launch.kernel);
        let Some((_, handle)) = handle else { panic!("no kernel {} is loaded", launch.kernel) };
        self.module.device.enter()?;
        if launch.shared_bytes > SHARED_BYTES_USUAL {
            allow_shared(*handle, launch)?;
        }
        // SAFETY: the function lives as long as its module, the stream is borrowed, and the
        // caller has promised all further conditions.
        let launched = unsafe {
            result::launch_kernel(
                *handle,
                (launch.blocks, 1, 1),
                (launch.threads, 1, 1),
                launch.shared_bytes,
                stream.handle(),
                arguments,
            )
        };
        launched.map_err(|error| DeviceError::driver("cuLaunchKernel", Work::Launch(launch), error))
    }
}

/// Lets the blocks of a function have more shared memory than the usual maximum.
fn allow_shared(handle: sys::CUfunction, launch: Launch) -> Result<(), DeviceError> {
    let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let bytes = i32::try_from(launch.shared_bytes).expect("shared memory of a block");
    // SAFETY: the caller's module is loaded, and its context is current.
    let allowed = unsafe { result::function::set_function_attribute(handle, attribute, bytes) };
    let named = Work::Named(launch.kernel);
    allowed.map_err(|error| DeviceError::driver("cuFuncSetAttribute", named, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_code_is_chosen_by_capability() {
        assert_eq!(ModuleImage::of((7, 5)), ModuleImage::Ptx);
        assert_eq!(ModuleImage::of((8, 9)), ModuleImage::Sm80);
        assert_eq!(ModuleImage::of((9, 0)), ModuleImage::Sm90a);
        assert_eq!([(9, 1), (10, 0)].map(ModuleImage::of), [ModuleImage::Ptx; 2]);
    }
}
