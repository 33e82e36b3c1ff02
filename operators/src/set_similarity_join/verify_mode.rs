//! The `verify` parameter: by which kernel candidates are verified, and where.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use trommel_kernels::cuda::overlap::Variant;

use super::buckets::Tiling;
use crate::wave::{Device, PairKernel};

/// How candidates are verified. All give the same results; they differ in speed.
///
/// `a`, `b` and `c` are the alternatives of Bellas, Gounaris 2018, §3.3.2. A kernel that is named
/// is used as soon as there is a device, whatever it costs; without a device, and with `device`
/// `auto`, the CPU verifies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum VerifyMode {
    /// On a device, where it pays, 8 lanes of a warp a pair, or 32 where sets are large; else on
    /// the CPU.
    #[default]
    Auto,
    /// On a device, a thread for all candidates of a probe.
    A,
    /// On a device, a block for each probe and a thread for each of its candidates, with the probe
    /// in shared memory.
    B,
    /// On a device, a block for each probe, all its threads for one candidate after the other, by
    /// intersect path in shared memory.
    C,
    /// On a device, of the pairs that signatures of the sets do not rule out; some lanes of a warp
    /// a pair, from the first match on.
    Warp,
    /// On the CPU, although there may be a device.
    Cpu,
}

/// Where and by what candidates are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) device: Device,
    /// The kernel on a device.
    pub(super) kernel: PairKernel,
}

impl Plan {
    /// Whether a device is used from the first candidate on.
    pub(super) fn is_device_wanted(self) -> bool {
        match self.device {
            Device::Cpu => false,
            Device::Auto => self.kernel != PairKernel::BySize,
            Device::Cuda(_) => true,
        }
    }

    /// Whether `auto` may compare all pairs: not if a kernel for candidate pairs is named.
    pub(super) fn tiling(self) -> Tiling {
        match self.device {
            _ if self.kernel != PairKernel::BySize => Tiling::Never,
            Device::Cpu => Tiling::Never,
            Device::Auto => Tiling::IfItPays,
            Device::Cuda(_) => Tiling::Freely,
        }
    }
}

/// `verify` and `device` do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("with `device` \"{device}\" allowed are {allowed}")]
pub(super) struct Misfit {
    device: Device,
    allowed: &'static str,
}

impl VerifyMode {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Auto, Self::A, Self::B, Self::C, Self::Warp, Self::Cpu];

    /// The name in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
            Self::Warp => "warp",
            Self::Cpu => "cpu",
        }
    }

    /// The kernel of a device.
    #[must_use]
    pub const fn kernel(self) -> PairKernel {
        match self {
            Self::Auto | Self::Cpu => PairKernel::BySize,
            Self::A => PairKernel::Named(Variant::ThreadPerProbe),
            Self::B => PairKernel::Named(Variant::BlockPerProbe),
            Self::C => PairKernel::Named(Variant::BlockPerPair),
            Self::Warp => PairKernel::SignedBySize,
        }
    }

    /// What follows from the mode and the device.
    pub(super) fn plan(self, device: Device) -> Result<Plan, Misfit> {
        let kernel = self.kernel();
        let misfit = |allowed| Err(Misfit { device, allowed });
        match (self, device) {
            (Self::Cpu, Device::Cuda(_)) => misfit("\"auto\", \"a\", \"b\", \"c\" and \"warp\""),
            (Self::Cpu, _) => Ok(Plan { device: Device::Cpu, kernel }),
            (_, Device::Cpu) if kernel != PairKernel::BySize => misfit("\"auto\" and \"cpu\""),
            _ => Ok(Plan { device, kernel }),
        }
    }
}
