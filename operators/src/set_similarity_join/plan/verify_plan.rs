//! Device and kernel of the verification, from the parameters `verify` and `device`.

use thiserror::Error;
use trommel_kernels::cuda::overlap::Variant;

use crate::set_similarity_join::parameters::options::VerifyMode;
use crate::set_similarity_join::plan::tiling::Tiling;
use crate::wave::{Device, DeviceChoice, DevicePrice, DeviceSession};

/// Device and kernel of the verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VerifyPlan {
    pub(crate) device: Device,
    /// Kernel for a device, if a device is used.
    pub(crate) kernel: PairKernel,
}

impl VerifyPlan {
    /// Whether a device is used from the first candidate on, at any cost.
    pub(crate) fn is_device_asked_for(self) -> bool {
        let is_auto = self.device == Device::Auto;
        self.device.is_required() || is_auto && self.device_price() == DevicePrice::FREE
    }

    /// The price of the device. A parameter that names a kernel of a device asks for the device at
    /// any cost, so the price is then 0.
    pub(crate) fn device_price(self) -> DevicePrice {
        match self.kernel {
            PairKernel::BySize => DevicePrice::MEASURED,
            PairKernel::SignedBySize | PairKernel::Named(_) => DevicePrice::FREE,
        }
    }

    /// The rule by which `auto` tests all pairs of some sizes on a device. If a parameter names a
    /// kernel for candidate pairs, the rule never does.
    pub(crate) fn tiling(self, session: &DeviceSession) -> Tiling {
        match self.kernel {
            PairKernel::BySize => {
                Tiling::of(DeviceChoice::new(session.clone(), self.device_price()))
            }
            PairKernel::SignedBySize | PairKernel::Named(_) => Tiling::never(),
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

/// Choice of the kernel that verifies candidate pairs on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PairKernel {
    /// The fastest kernel for the mean size of the sets.
    #[default]
    BySize,
    /// The fastest kernel that tests signatures first, for the mean size of the sets.
    SignedBySize,
    /// A named kernel.
    Named(Variant),
}

impl PairKernel {
    /// The kernel for sets of `tokens` tokens on average.
    pub(crate) fn for_mean_size(self, tokens: usize) -> Variant {
        match self {
            Self::BySize => Variant::for_mean_size(tokens),
            Self::SignedBySize => Variant::signed_for_mean_size(tokens),
            Self::Named(kernel) => kernel,
        }
    }

    /// Whether the kernel reads signatures.
    pub(crate) fn is_signed(self) -> bool {
        match self {
            Self::BySize => false,
            Self::SignedBySize => true,
            Self::Named(kernel) => kernel.is_signed(),
        }
    }
}

impl VerifyMode {
    /// Kernel for a device, if a device is used.
    const fn kernel(self) -> PairKernel {
        match self {
            Self::Auto | Self::Cpu => PairKernel::BySize,
            Self::A => PairKernel::Named(Variant::ThreadPerProbe),
            Self::B => PairKernel::Named(Variant::BlockPerProbe),
            Self::C => PairKernel::Named(Variant::BlockPerPair),
            Self::Warp => PairKernel::SignedBySize,
        }
    }

    /// The plan for this mode and `device`.
    ///
    /// # Errors
    /// If the mode and the device exclude each other.
    pub(crate) fn plan(self, device: Device) -> Result<VerifyPlan, IncompatibleDevice> {
        let kernel = self.kernel();
        let refuse = |allowed| Err(IncompatibleDevice { device, allowed });
        match (self, device) {
            (Self::Cpu, device) if device.is_required() => {
                refuse("\"auto\", \"a\", \"b\", \"c\" and \"warp\"")
            }
            (Self::Cpu, _) => Ok(VerifyPlan { device: Device::Cpu, kernel }),
            (_, Device::Cpu) if kernel != PairKernel::BySize => refuse("\"auto\" and \"cpu\""),
            _ => Ok(VerifyPlan { device, kernel }),
        }
    }
}
