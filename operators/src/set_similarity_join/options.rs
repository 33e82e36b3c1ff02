//! The choices of a join.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a join answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JoinOutput {
    /// A row a pair.
    #[default]
    Pairs,
    /// One row: how many pairs there are.
    Count,
}

/// What a join is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JoinMode {
    /// Similar sets are found.
    #[default]
    Join,
    /// A row of the input passes only if no set that came before it, in the window if there is one,
    /// is similar to its own: whether or not that one has passed.
    Deduplicate,
}

/// How candidates are found. All give the same results; they differ in speed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JoinAlgorithm {
    /// Prefixes, sizes, positions and signatures, sixteen postings at a time: the fastest.
    #[default]
    Auto,
    /// Prefixes and sizes.
    AllPairs,
    /// Prefixes, sizes and positions.
    PpJoin,
    /// The same over groups of sets with equal prefixes.
    GroupJoin,
    /// Signatures of all pairs whose sizes fit, and no index: made for a GPU, where it runs as a
    /// whole; for low thresholds and short sets.
    GpuSignatures,
}

impl JoinAlgorithm {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Auto, Self::AllPairs, Self::PpJoin, Self::GroupJoin, Self::GpuSignatures];

    /// The name in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::AllPairs => "all_pairs",
            Self::PpJoin => "pp_join",
            Self::GroupJoin => "group_join",
            Self::GpuSignatures => "gpu_signatures",
        }
    }
}

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
}
