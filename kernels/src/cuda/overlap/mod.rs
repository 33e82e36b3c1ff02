//! Overlaps of candidate pairs on a device: the contract of [`crate::overlap`], a chunk at a time.
//!
//! Sets go to the device once ([`DeviceSets`]); a chunk goes through a [`Slot`]:
//!
//! ```text
//! Slot ──submit──► Flight ──collect──► Slot, with overlaps or a count, and times
//! ```
//!
//! Kernels: `kernels/cuda/overlap.cu`. Each of them returns the same bits as the levels of the
//! processor do.

mod policy;
mod sets;
mod slot;

pub use self::policy::Policy;
pub use self::sets::DeviceSets;
pub use self::slot::{ChunkLimits, Flight, Job, Kept, Slot};

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::device::Device;
use super::error::DeviceError;
use super::module::{Function, Images, Module, ModuleImage, images};

const IMAGES: Images = images!("overlap");

/// A kernel; all give the same answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// A thread answers all pairs of an entry.
    ThreadPerProbe,
    /// A block answers the pairs of an entry, a thread each, with the probe in shared memory.
    BlockPerProbe,
    /// A block answers the pairs of an entry one after the other, by intersect path.
    BlockPerPair,
    /// Eight lanes of a warp answer a pair.
    Lanes8,
    /// Sixteen lanes of a warp answer a pair.
    Lanes16,
    /// A warp answers a pair.
    Lanes32,
    /// As [`Self::Lanes8`], but only pairs that are not ruled out by the signatures of their sets.
    Signed8,
    /// As [`Self::Lanes32`], but only pairs that are not ruled out by the signatures of their sets.
    Signed32,
}

impl Kernel {
    /// All kernels.
    pub const ALL: [Self; 8] = [
        Self::ThreadPerProbe,
        Self::BlockPerProbe,
        Self::BlockPerPair,
        Self::Lanes8,
        Self::Lanes16,
        Self::Lanes32,
        Self::Signed8,
        Self::Signed32,
    ];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThreadPerProbe => "thread_per_probe",
            Self::BlockPerProbe => "block_per_probe",
            Self::BlockPerPair => "block_per_pair",
            Self::Lanes8 => "lanes_8_per_pair",
            Self::Lanes16 => "lanes_16_per_pair",
            Self::Lanes32 => "lanes_32_per_pair",
            Self::Signed8 => "signed_8_per_pair",
            Self::Signed32 => "signed_32_per_pair",
        }
    }

    /// The kernel for sets of this mean size: of those whose speed depends on the number of pairs
    /// and not on their entries, the fastest on an H200 (docs/gpu.md; sizes between 49 and 117 were
    /// not measured).
    #[must_use]
    pub const fn for_mean_size(tokens: usize) -> Self {
        if tokens < 80 { Self::Lanes8 } else { Self::Lanes32 }
    }

    /// The kernel that reads signatures, for sets of this mean size: it has as many lanes.
    #[must_use]
    pub const fn signed_for_mean_size(tokens: usize) -> Self {
        match Self::for_mean_size(tokens) {
            Self::Lanes8 => Self::Signed8,
            _ => Self::Signed32,
        }
    }

    /// Whether it reads the signatures of sets.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::Signed8 | Self::Signed32)
    }

    /// The names of its entry points: verify, count.
    const fn functions(self) -> [&'static str; 2] {
        match self {
            Self::ThreadPerProbe => {
                ["overlap_thread_per_probe_verify", "overlap_thread_per_probe_count"]
            }
            Self::BlockPerProbe => {
                ["overlap_block_per_probe_verify", "overlap_block_per_probe_count"]
            }
            Self::BlockPerPair => ["overlap_block_per_pair_verify", "overlap_block_per_pair_count"],
            Self::Lanes8 => ["overlap_lanes_8_per_pair_verify", "overlap_lanes_8_per_pair_count"],
            Self::Lanes16 => {
                ["overlap_lanes_16_per_pair_verify", "overlap_lanes_16_per_pair_count"]
            }
            Self::Lanes32 => {
                ["overlap_lanes_32_per_pair_verify", "overlap_lanes_32_per_pair_count"]
            }
            Self::Signed8 => {
                ["overlap_signed_8_per_pair_verify", "overlap_signed_8_per_pair_count"]
            }
            Self::Signed32 => {
                ["overlap_signed_32_per_pair_verify", "overlap_signed_32_per_pair_count"]
            }
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// No kernel has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no overlap kernel is named {0:?}")]
pub struct UnknownKernel(String);

impl FromStr for Kernel {
    type Err = UnknownKernel;

    fn from_str(name: &str) -> Result<Self, UnknownKernel> {
        let found = Self::ALL.into_iter().find(|kernel| kernel.name() == name);
        found.ok_or_else(|| UnknownKernel(name.to_owned()))
    }
}

/// What is asked of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The overlap of each pair, as [`crate::overlap::verify`] gives it.
    Overlaps,
    /// How many pairs suffice, as [`crate::overlap::count`] gives it.
    Count,
}

/// The kernels, loaded on a device.
#[derive(Debug)]
pub struct Verifier {
    device: Device,
    image: ModuleImage,
    /// For each kernel, to verify and to count.
    functions: Vec<[Function; 2]>,
}

impl Verifier {
    /// Loads the kernels.
    ///
    /// # Errors
    ///
    /// If the driver refuses them.
    pub fn new(device: &Device) -> Result<Arc<Self>, DeviceError> {
        let module = Module::load(device, &IMAGES)?;
        let functions = Kernel::ALL.map(|kernel| {
            let [verify, count] = kernel.functions().map(|name| module.function(name));
            Ok([verify?, count?])
        });
        let functions = functions.into_iter().collect::<Result<_, DeviceError>>()?;
        Ok(Arc::new(Self { device: device.clone(), image: module.image(), functions }))
    }

    /// What the kernels were loaded from.
    #[must_use]
    pub fn image(&self) -> ModuleImage {
        self.image
    }

    /// The device that has them.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn function(&self, kernel: Kernel, answer: Answer) -> &Function {
        let index = Kernel::ALL.iter().position(|other| *other == kernel).expect("one of all");
        let [verify, count] = &self.functions[index];
        match answer {
            Answer::Overlaps => verify,
            Answer::Count => count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_belong_to_functions() {
        for kernel in Kernel::ALL {
            assert_eq!(kernel.to_string().parse(), Ok(kernel));
            let [verify, count] = kernel.functions();
            assert_eq!(verify, format!("overlap_{kernel}_verify"));
            assert_eq!(count, format!("overlap_{kernel}_count"));
        }
        let error = "warp".parse::<Kernel>().unwrap_err().to_string();
        assert_eq!(error, "no overlap kernel is named \"warp\"");
    }
}
