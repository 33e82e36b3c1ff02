//! The kernels that find overlaps: all give the same answers.

use std::fmt;
use std::str::FromStr;

/// A kernel; all give the same answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variant {
    /// A thread answers all pairs of an entry.
    ThreadPerProbe,
    /// A block answers the pairs of an entry, each pair by a thread, with the probe in shared
    /// memory.
    BlockPerProbe,
    /// A block answers the pairs of an entry one after another, by intersect path.
    BlockPerPair,
    /// Eight lanes of a warp answer a pair.
    Lanes8,
    /// Sixteen lanes of a warp answer a pair.
    Lanes16,
    /// A warp answers a pair.
    Lanes32,
    /// As [`Self::Lanes8`], but only pairs that are not ruled out by the signatures of their
    /// sets.
    Signed8,
    /// As [`Self::Lanes32`], but only pairs that are not ruled out by the signatures of their
    /// sets.
    Signed32,
}

/// The entry points of each kernel of [`Variant::ALL`]: verify, count.
pub(super) const FUNCTIONS: [[&str; 2]; Variant::ALL.len()] = [
    ["overlap_thread_per_probe_verify", "overlap_thread_per_probe_count"],
    ["overlap_block_per_probe_verify", "overlap_block_per_probe_count"],
    ["overlap_block_per_pair_verify", "overlap_block_per_pair_count"],
    ["overlap_lanes_8_per_pair_verify", "overlap_lanes_8_per_pair_count"],
    ["overlap_lanes_16_per_pair_verify", "overlap_lanes_16_per_pair_count"],
    ["overlap_lanes_32_per_pair_verify", "overlap_lanes_32_per_pair_count"],
    ["overlap_signed_8_per_pair_verify", "overlap_signed_8_per_pair_count"],
    ["overlap_signed_32_per_pair_verify", "overlap_signed_32_per_pair_count"],
];

impl Variant {
    /// All kernels, in the order of their declaration.
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

    /// The kernel for sets of a mean size of `tokens` tokens: the fastest on an H200 among the
    /// kernels whose speed depends on the number of pairs and not on their entries
    /// (bench/reports/gpu.md; sizes between 49 and 117 were not measured).
    #[must_use]
    pub const fn for_mean_size(tokens: usize) -> Self {
        if tokens < 80 { Self::Lanes8 } else { Self::Lanes32 }
    }

    /// The kernel that reads signatures, for sets of a mean size of `tokens` tokens: it has as many
    /// lanes as [`Self::for_mean_size`].
    #[must_use]
    pub const fn signed_for_mean_size(tokens: usize) -> Self {
        match Self::for_mean_size(tokens) {
            Self::Lanes8 => Self::Signed8,
            _ => Self::Signed32,
        }
    }

    /// Whether the kernel reads the signatures of sets.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::Signed8 | Self::Signed32)
    }

    /// The names of the kernel's entry points: verify, count.
    pub(super) const fn functions(self) -> [&'static str; 2] {
        FUNCTIONS[self as usize]
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A name that no kernel has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown overlap kernel {0:?}; allowed are {names}", names = names())]
pub struct UnknownVariant(String);

fn names() -> String {
    Variant::ALL.map(Variant::name).join(", ")
}

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(name: &str) -> Result<Self, UnknownVariant> {
        let found = Self::ALL.into_iter().find(|variant| variant.name() == name);
        found.ok_or_else(|| UnknownVariant(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_belong_to_functions() {
        for variant in Variant::ALL {
            assert_eq!(variant.to_string().parse(), Ok(variant));
            let [verify, count] = variant.functions();
            assert_eq!(verify, format!("overlap_{variant}_verify"));
            assert_eq!(count, format!("overlap_{variant}_count"));
        }
        let error = "warp".parse::<Variant>().unwrap_err().to_string();
        assert!(error.starts_with("unknown overlap kernel \"warp\"; allowed are thread_per_probe"));
    }
}
