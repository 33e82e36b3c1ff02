//! The kernel and the device that follow from the parameters `verify` and `device`.

use thiserror::Error;
use trommel_kernels::cuda::overlap::Variant;

use crate::set_similarity_join::cost::tiling::Tiling;
use crate::set_similarity_join::options::VerifyMode;
use crate::wave::{Device, DeviceSession};

/// Where and by what candidates are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VerifyPlan {
    pub(crate) device: Device,
    /// The kernel on a device.
    pub(crate) kernel: PairKernel,
}

impl VerifyPlan {
    /// Whether a device is used from the first candidate on.
    pub(crate) fn is_device_forced(self) -> bool {
        match self.device {
            Device::Cpu => false,
            Device::Auto => self.kernel != PairKernel::BySize,
            Device::Cuda(_) => true,
        }
    }

    /// Whether `auto` may compare all pairs: not if a kernel for candidate pairs is named.
    pub(crate) fn tiling(self, session: &DeviceSession) -> Tiling {
        match self.device {
            _ if self.kernel != PairKernel::BySize => Tiling::Never,
            Device::Cpu => Tiling::Never,
            Device::Auto => Tiling::IfItPays(session.clone()),
            Device::Cuda(_) => Tiling::Always,
        }
    }
}

/// `verify` does not fit `device`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("`device` \"{device}\" allows only {allowed}")]
pub(crate) struct IncompatibleDevice {
    device: Device,
    allowed: &'static str,
}

/// The kernel of a device that verifies candidate pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PairKernel {
    /// The fastest one for the mean size of the sets.
    #[default]
    BySize,
    /// Of the kernels that read signatures first, the fastest one for the mean size of the sets.
    SignedBySize,
    /// This one.
    Named(Variant),
}

impl PairKernel {
    pub(crate) fn for_mean_size(self, tokens: usize) -> Variant {
        match self {
            Self::BySize => Variant::for_mean_size(tokens),
            Self::SignedBySize => Variant::signed_for_mean_size(tokens),
            Self::Named(kernel) => kernel,
        }
    }

    pub(crate) fn is_signed(self) -> bool {
        match self {
            Self::BySize => false,
            Self::SignedBySize => true,
            Self::Named(kernel) => kernel.is_signed(),
        }
    }
}

impl VerifyMode {
    /// The kernel of a device.
    const fn kernel(self) -> PairKernel {
        match self {
            Self::Auto | Self::Cpu => PairKernel::BySize,
            Self::A => PairKernel::Named(Variant::ThreadPerProbe),
            Self::B => PairKernel::Named(Variant::BlockPerProbe),
            Self::C => PairKernel::Named(Variant::BlockPerPair),
            Self::Warp => PairKernel::SignedBySize,
        }
    }

    /// What follows from the mode and the device.
    pub(crate) fn plan(self, device: Device) -> Result<VerifyPlan, IncompatibleDevice> {
        let kernel = self.kernel();
        let refuse = |allowed| Err(IncompatibleDevice { device, allowed });
        match (self, device) {
            (Self::Cpu, Device::Cuda(_)) => refuse("\"auto\", \"a\", \"b\", \"c\" and \"warp\""),
            (Self::Cpu, _) => Ok(VerifyPlan { device: Device::Cpu, kernel }),
            (_, Device::Cpu) if kernel != PairKernel::BySize => refuse("\"auto\" and \"cpu\""),
            _ => Ok(VerifyPlan { device, kernel }),
        }
    }
}
