//! Enumerated parameters of a join.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Output of a join.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JoinOutput {
    /// One row per pair.
    #[default]
    Pairs,
    /// One row with the number of pairs.
    Count,
}

/// Mode of a join.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JoinMode {
    /// Find the pairs of similar sets.
    #[default]
    Join,
    /// Pass the rows of the input whose set is similar to no earlier set of the window. Sets of
    /// dropped rows count as earlier sets, too.
    Deduplicate,
}

/// Algorithm that finds candidate pairs. All give the same results at different speeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JoinAlgorithm {
    /// The fastest for these sets, by a cost model: prefix, size, positional and signature filters,
    /// on sixteen postings at a time; signatures of all pairs; or PPJoin.
    #[default]
    Auto,
    /// Prefix and size filters (AllPairs).
    AllPairs,
    /// Prefix, size and positional filters (PPJoin).
    PpJoin,
    /// PPJoin that tests signatures, too (bitmap filter).
    PpJoinBitmap,
    /// PPJoin over groups of sets with equal prefixes (GroupJoin).
    GroupJoin,
    /// No index: all pairs whose sizes fit are tested by signatures. Made for a GPU, where it
    /// runs as a whole; for low thresholds and short sets.
    GpuSignatures,
}

impl JoinAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 6] = [
        Self::Auto,
        Self::AllPairs,
        Self::PpJoin,
        Self::PpJoinBitmap,
        Self::GroupJoin,
        Self::GpuSignatures,
    ];

    /// Name in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::AllPairs => "all_pairs",
            Self::PpJoin => "pp_join",
            Self::PpJoinBitmap => "pp_join_bitmap",
            Self::GroupJoin => "group_join",
            Self::GpuSignatures => "gpu_signatures",
        }
    }
}

/// Kernel that verifies candidate pairs. All give the same results at different speeds.
///
/// `a`, `b` and `c` are the alternatives of Bellas, Gounaris 2018, §3.3.2. A kernel that is named
/// is used from the first candidate on, without a comparison of costs. If there is no device and
/// `device` is `auto`, the CPU verifies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum VerifyMode {
    /// Device, if it pays: 8 lanes of a warp per pair, or 32 if sets are large. Else the CPU.
    #[default]
    Auto,
    /// Device: one thread per probe, for all its candidates.
    A,
    /// Device: one block per probe with the probe in shared memory, one thread per candidate.
    B,
    /// Device: one block per probe, all threads for one candidate after the other, by intersect
    /// path in shared memory.
    C,
    /// Device: signatures rule pairs out, then some lanes of a warp verify each other pair from
    /// its first match on.
    Warp,
    /// CPU, even if there is a device.
    Cpu,
}

impl VerifyMode {
    /// All modes.
    pub const ALL: [Self; 6] = [Self::Auto, Self::A, Self::B, Self::C, Self::Warp, Self::Cpu];

    /// Name in configurations.
    ///
    /// # Examples
    /// ```
    /// use trommel_operators::set_similarity_join::VerifyMode;
    ///
    /// let names = VerifyMode::ALL.map(VerifyMode::name);
    /// assert_eq!(names, ["auto", "a", "b", "c", "warp", "cpu"]);
    /// ```
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
