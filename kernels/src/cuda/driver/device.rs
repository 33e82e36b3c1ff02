//! The probe, devices and their properties.

#![expect(unsafe_code, reason = "calls of the driver")]

use std::env;
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};

use super::error::{DeviceError, check};

/// The environment variable that switches devices off (`cpu`) or leaves them on (`auto`).
pub const DEVICE_VARIABLE: &str = "TROMMEL_DEVICE";

/// The oldest driver: that of CUDA 12.0, whose PTX the embedded kernels have.
const DRIVER_MIN: i32 = 12_000;

/// The first capability with independently scheduled threads; kernels rely on such threads.
const CAPABILITY_MIN: (u32, u32) = (7, 0);

/// The reason why there is no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoDevice {
    /// Devices are switched off.
    #[error("switched off by {DEVICE_VARIABLE}=cpu")]
    SwitchedOff,
    /// The variable has an unknown value.
    #[error("{DEVICE_VARIABLE} is {value:?}; allowed are \"auto\" and \"cpu\"")]
    UnknownSetting {
        /// The value of the variable.
        value: String,
    },
    /// The program has no kernels for devices.
    #[error("this build has no kernels for GPUs: the cargo feature `cuda-images` is off")]
    NoKernels,
    /// The driver's library cannot be loaded.
    #[error("no NVIDIA driver: libcuda.so.1 cannot be loaded")]
    NoDriver,
    /// The driver is older than the embedded kernels.
    #[error("the NVIDIA driver is too old: it is for CUDA {}.{}, needed is 12.0 (driver 525)", .version / 1000, .version % 1000 / 10)]
    OldDriver {
        /// The driver's CUDA version: 1000 * major + 10 * minor.
        version: i32,
    },
    /// The driver is installed, but shows no device.
    #[error("the NVIDIA driver shows no CUDA device")]
    NoneVisible,
    /// The machine has no device of this number.
    #[error("there is no CUDA device {ordinal}: the driver shows {count}")]
    NoSuchDevice {
        /// The requested number.
        ordinal: usize,
        /// The number of devices.
        count: usize,
    },
    /// The device is older than the embedded kernels.
    #[error("{name} is too old: its compute capability is {}.{}, needed is 7.0", .capability.0, .capability.1)]
    TooOld {
        /// The device.
        name: String,
        /// The capability of the device.
        capability: (u32, u32),
    },
    /// The driver refused a call.
    #[error("{0}")]
    Failed(#[from] DeviceError),
}

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Properties {
    /// The number of the device, from 0.
    pub ordinal: usize,
    /// The vendor's name for the device.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Clock of the multiprocessors in kHz.
    pub clock_khz: u32,
    /// Memory in bytes.
    pub memory_bytes: usize,
    /// Clock of the memory in kHz, which bounds the bandwidth together with the width of its bus.
    pub memory_clock_khz: u32,
    /// Width of the memory's bus in bits.
    pub memory_bus_bits: u32,
    /// The CUDA version of the driver, 1000 * major + 10 * minor.
    pub driver_version: u32,
}

/// Population counts of 32-bit words that a multiprocessor does in a clock, for every capability
/// from 7.0 to 9.0 (*CUDA C++ Programming Guide*, Throughput of Native Arithmetic Instructions).
const POPULATION_COUNTS: u64 = 16;

impl Properties {
    /// Population counts of 32-bit words in a second that the multiprocessors and their clock
    /// allow; zero where the driver does not tell the clock.
    #[must_use]
    pub fn peak_population_counts_per_second(&self) -> u64 {
        u64::from(self.clock_khz) * 1000 * u64::from(self.multiprocessors) * POPULATION_COUNTS
    }

    /// Bytes in a second that the clock and the bus of the memory allow, counting both edges of the
    /// clock; zero where the driver does not tell them.
    #[must_use]
    pub fn peak_bytes_per_second(&self) -> u64 {
        u64::from(self.memory_clock_khz) * 1000 * 2 * u64::from(self.memory_bus_bits / 8)
    }
}

/// A device that is ready. Clones share the device.
#[derive(Clone, Debug)]
pub struct Device {
    context: Arc<Context>,
    properties: Arc<Properties>,
}

/// The primary context of a device, retained.
#[derive(Debug)]
struct Context {
    device: sys::CUdevice,
    context: sys::CUcontext,
}

// SAFETY: the driver's handles may be used from every thread in which the context is current, and
// `Device::enter` makes it so.
unsafe impl Send for Context {}
// SAFETY: as above; the driver locks shared data.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: `Device::open` retained the context, and only this method releases it. A context
        // that fails to be released ends with the process.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

impl Device {
    /// The device of this number, if it exists and can run the kernels.
    ///
    /// # Errors
    ///
    /// [`NoDevice`] says why not. This answer is ordinary: most machines give it, and the call
    /// never panics.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::cuda::Device;
    ///
    /// match Device::probe(0) {
    ///     Ok(device) => println!("{}", device.properties().name),
    ///     Err(reason) => println!("on the CPU: {reason}"),
    /// }
    /// ```
    pub fn probe(ordinal: usize) -> Result<Self, NoDevice> {
        let count = Self::count()?;
        if ordinal >= count {
            return Err(NoDevice::NoSuchDevice { ordinal, count });
        }
        Self::open(ordinal)
    }

    /// Whether this build has the kernels for devices: the cargo feature `cuda-images` is on.
    pub const HAS_KERNELS: bool = cfg!(feature = "cuda-images");

    /// Whether there may be a device: the build has kernels, the driver's library is installed, and
    /// devices are not switched off. This call is cheaper than [`Self::count`], which starts the
    /// driver.
    #[must_use]
    pub fn has_driver() -> bool {
        let is_on = Self::HAS_KERNELS && env::var(DEVICE_VARIABLE).as_deref() != Ok("cpu");
        // SAFETY: loads a library whose initializers are the vendor's.
        is_on && unsafe { sys::is_culib_present() }
    }

    /// The number of devices that the driver shows; at least one.
    ///
    /// # Errors
    ///
    /// As for [`Self::probe`].
    pub fn count() -> Result<usize, NoDevice> {
        match env::var(DEVICE_VARIABLE) {
            Ok(value) if value == "cpu" => return Err(NoDevice::SwitchedOff),
            Ok(value) if value != "auto" && !value.is_empty() => {
                return Err(NoDevice::UnknownSetting { value });
            }
            Ok(_) | Err(_) => {}
        }
        if !Self::HAS_KERNELS {
            return Err(NoDevice::NoKernels);
        }
        // Every other call of the binding panics when the library is missing.
        // SAFETY: loads a library whose initializers are the vendor's.
        if !unsafe { sys::is_culib_present() } {
            return Err(NoDevice::NoDriver);
        }
        let mut version = 0;
        // SAFETY: the call writes one integer, and needs no initialization.
        check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) }.result())?;
        if version < DRIVER_MIN {
            return Err(NoDevice::OldDriver { version });
        }
        // Without a device, `cuInit` itself fails, before there is a count.
        match result::init() {
            Err(DriverError(
                CUresult::CUDA_ERROR_NO_DEVICE | CUresult::CUDA_ERROR_INVALID_DEVICE,
            )) => return Err(NoDevice::NoneVisible),
            initialized => check("cuInit", initialized)?,
        }
        let count = check("cuDeviceGetCount", result::device::get_count())?;
        match usize::try_from(count) {
            Ok(0) | Err(_) => Err(NoDevice::NoneVisible),
            Ok(count) => Ok(count),
        }
    }

    /// Opens a device after [`Self::count`]; `ordinal` is below the count.
    fn open(ordinal: usize) -> Result<Self, NoDevice> {
        let number = i32::try_from(ordinal).expect("below the count, which was one");
        let device = check("cuDeviceGet", result::device::get(number))?;
        let properties = properties(ordinal, device)?;
        if properties.capability < CAPABILITY_MIN {
            let Properties { name, capability, .. } = properties;
            return Err(NoDevice::TooOld { name, capability });
        }
        // SAFETY: the device is one that the driver has just named.
        let context = unsafe { result::primary_ctx::retain(device) };
        let context = check("cuDevicePrimaryCtxRetain", context)?;
        let context = Arc::new(Context { device, context });
        let device = Self { context, properties: Arc::new(properties) };
        device.enter()?;
        Ok(device)
    }

    /// The properties of the device.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Free and total memory of the device in bytes; memory of other processes is not free.
    ///
    /// # Errors
    ///
    /// If the driver does not say.
    pub fn memory_bytes(&self) -> Result<(usize, usize), DeviceError> {
        self.enter()?;
        check("cuMemGetInfo", result::mem_get_info())
    }

    /// Makes the context current in the calling thread, which most calls require.
    pub(super) fn enter(&self) -> Result<(), DeviceError> {
        // SAFETY: the context is retained as long as `self` lives.
        check("cuCtxSetCurrent", unsafe { result::ctx::set_current(self.context.context) })
    }
}

/// Blocks until copies and fills that are bound to no stream have arrived: the driver returns from
/// such a call earlier, and our streams do not wait for its work.
pub(super) fn synchronize_unbound() -> Result<(), DeviceError> {
    // SAFETY: the stream of such work exists as long as a context is current, and the caller's
    // context is.
    let synchronized = unsafe { result::stream::synchronize(result::stream::null()) };
    check("cuStreamSynchronize", synchronized)
}

fn properties(ordinal: usize, device: sys::CUdevice) -> Result<Properties, DeviceError> {
    let attribute = |attribute: Attribute| {
        // SAFETY: the device is one that the driver has just named.
        let value = unsafe { result::device::get_attribute(device, attribute) };
        check("cuDeviceGetAttribute", value).map(|value| u32::try_from(value).unwrap_or(0))
    };
    let capability = (
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    let mut version = 0;
    // SAFETY: writes one integer.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) }.result())?;
    Ok(Properties {
        ordinal,
        name: check("cuDeviceGetName", result::device::get_name(device))?,
        capability,
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        clock_khz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        // SAFETY: as above.
        memory_bytes: check("cuDeviceTotalMem", unsafe { result::device::total_mem(device) })?,
        memory_clock_khz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
        memory_bus_bits: attribute(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
        driver_version: u32::try_from(version).unwrap_or(0),
    })
}

#[cfg(all(test, not(feature = "cuda-images")))]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_kernels_names_the_feature() {
        let said = "this build has no kernels for GPUs: the cargo feature `cuda-images` is off";
        assert_eq!(Device::probe(0).unwrap_err().to_string(), said);
        assert!(!Device::has_driver());
    }
}
