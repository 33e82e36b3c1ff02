//! Parameters of a join, checked.

use trommel_kernels::Isa;
use trommel_kernels::vectors::Epsilon;

use super::options::EpsilonOutput;
use super::tuning::Tuning;

/// Parameters of a join.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) epsilon: Epsilon,
    pub(super) output: EpsilonOutput,
    /// Whether vectors are put into directories.
    pub(super) has_directory: bool,
    pub(super) isa: Isa,
    /// Number of kernels that search side by side.
    pub(super) kernels: usize,
    pub(super) memory_max: usize,
    pub(super) tuning: Tuning,
}
