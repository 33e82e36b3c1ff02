//! Failures on a device: the call, its kernel, grid and bytes, and the code.

use std::fmt;

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

/// A failure on a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver refused a call, or reported that work queued earlier has failed.
    #[error("{call}{work} failed: {name} ({code})")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// The work of the call.
        work: Work,
        /// The driver's error code.
        code: u32,
        /// The name of the code.
        name: String,
    },
    /// A buffer does not fit the budget that was fixed at the start.
    #[error("{wanted} B of {kind} memory exceed the budget: {left} B of {budget} B are left")]
    Budget {
        /// The kind of memory.
        kind: MemoryKind,
        /// The size of the buffer.
        wanted: usize,
        /// Bytes left of the budget.
        left: usize,
        /// The total budget.
        budget: usize,
    },
}

/// The consequence of a failure for the remaining work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// There is not enough memory. Smaller pieces may fit.
    OutOfMemory,
    /// The device, or the process's access to it, is gone: no later call will succeed.
    Lost,
    /// A call was wrong or is not possible here.
    Refused,
}

impl DeviceError {
    pub(super) fn driver(call: &'static str, work: Work, error: DriverError) -> Self {
        let code = error.0 as u32;
        let name = error.error_name().map(|name| name.to_string_lossy().into_owned());
        Self::Driver { call, work, code, name: name.unwrap_or_else(|_| "unknown".to_owned()) }
    }

    /// The consequence of the failure for the remaining work.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Budget { .. } => FailureKind::OutOfMemory,
            Self::Driver { code, .. } if *code == CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32 => {
                FailureKind::OutOfMemory
            }
            Self::Driver { code, .. } if LOST.iter().any(|lost| *lost as u32 == *code) => {
                FailureKind::Lost
            }
            Self::Driver { .. } => FailureKind::Refused,
        }
    }
}

/// Codes after which a context answers every call with an error.
const LOST: [CUresult; 16] = [
    CUresult::CUDA_ERROR_DEINITIALIZED,
    CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE,
    CUresult::CUDA_ERROR_INVALID_CONTEXT,
    CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
    CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
    CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
    CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUresult::CUDA_ERROR_ASSERT,
    CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUresult::CUDA_ERROR_INVALID_PC,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
    CUresult::CUDA_ERROR_UNKNOWN,
];

/// The work of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// The call has no further work.
    Plain,
    /// Bytes that are copied, filled or allocated.
    Bytes(usize),
    /// A function or an image of this name.
    Named(&'static str),
    /// A kernel.
    Launch(Launch),
}

impl fmt::Display for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => Ok(()),
            Self::Bytes(bytes) => write!(formatter, " of {bytes} B"),
            Self::Named(name) => write!(formatter, " of {name}"),
            Self::Launch(launch) => write!(formatter, " of {launch}"),
        }
    }
}

/// A launch of a kernel, in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The name of the kernel.
    pub kernel: &'static str,
    /// Blocks of the grid.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
}

impl fmt::Display for Launch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, blocks, threads, shared_bytes } = self;
        write!(
            formatter,
            "{kernel} ({blocks} blocks of {threads} threads, {shared_bytes} B shared)"
        )
    }
}

/// A kind of memory with a budget of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryKind {
    /// The device's own memory.
    Device,
    /// The host's memory, locked in place so that the device copies from and to it by itself.
    Pinned,
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Device => "device",
            Self::Pinned => "pinned",
        })
    }
}

/// Adds the call to a failure.
pub(super) fn check<T>(
    call: &'static str,
    result: Result<T, DriverError>,
) -> Result<T, DeviceError> {
    result.map_err(|error| DeviceError::driver(call, Work::Plain, error))
}

/// Adds the call and its bytes to a failure.
pub(super) fn sized<T>(
    call: &'static str,
    bytes: usize,
    result: Result<T, DriverError>,
) -> Result<T, DeviceError> {
    result.map_err(|error| DeviceError::driver(call, Work::Bytes(bytes), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(work: Work, code: CUresult) -> DeviceError {
        let name = "CUDA_ERROR_X".to_owned();
        DeviceError::Driver { call: "cuX", work, code: code as u32, name }
    }

    #[test]
    fn a_failure_carries_call_kernel_grid_bytes_and_code() {
        let launch = Launch { kernel: "k", blocks: 7, threads: 64, shared_bytes: 512 };
        let failed = CUresult::CUDA_ERROR_LAUNCH_FAILED;
        let shown = driver(Work::Launch(launch), failed).to_string();
        assert_eq!(
            shown,
            "cuX of k (7 blocks of 64 threads, 512 B shared) failed: CUDA_ERROR_X (719)"
        );
        assert_eq!(
            driver(Work::Bytes(9), failed).to_string(),
            "cuX of 9 B failed: CUDA_ERROR_X (719)"
        );
        let kind = MemoryKind::Pinned;
        let budget = DeviceError::Budget { kind, wanted: 9, left: 8, budget: 20 };
        assert_eq!(
            budget.to_string(),
            "9 B of pinned memory exceed the budget: 8 B of 20 B are left"
        );
    }

    #[test]
    fn lost_devices_are_told_from_full_ones_and_refused_calls() {
        let kind = |code| driver(Work::Plain, code).kind();
        assert_eq!(kind(CUresult::CUDA_ERROR_OUT_OF_MEMORY), FailureKind::OutOfMemory);
        assert_eq!(kind(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS), FailureKind::Lost);
        assert_eq!(kind(CUresult::CUDA_ERROR_ECC_UNCORRECTABLE), FailureKind::Lost);
        assert_eq!(kind(CUresult::CUDA_ERROR_INVALID_VALUE), FailureKind::Refused);
    }
}
