//! Parameters of a join, checked.

use trommel_kernels::Isa;
use trommel_kernels::vectors::{Algorithm, Epsilon};

use super::options::{EpsilonAlgorithm, EpsilonOutput};
use super::tuning::Tuning;
use crate::budget::Allowance;

/// Parameters of a join.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) epsilon: Epsilon,
    pub(super) output: EpsilonOutput,
    pub(super) algorithm: EpsilonAlgorithm,
    pub(super) isa: Isa,
    /// Number of kernels that search side by side.
    pub(super) kernels: usize,
    pub(super) memory: Allowance,
    /// Maximum bytes of vectors in the memory of a device.
    pub(super) device_memory_max: usize,
    pub(super) tuning: Tuning,
}

impl Rules {
    /// Whether equal vectors may be joined once, since each pair is not asked for.
    pub(super) fn may_join_copies_once(&self) -> bool {
        self.output != EpsilonOutput::Pairs
    }

    /// Whether vectors of `dims` coordinates are put into directories, to compare `pairs` pairs.
    pub(super) fn has_directory(&self, pairs: u64, dims: usize) -> bool {
        match self.algorithm {
            EpsilonAlgorithm::Auto => Algorithm::choose(pairs, dims) == Algorithm::Directory,
            EpsilonAlgorithm::NestedLoop => false,
            EpsilonAlgorithm::Directory => true,
        }
    }
}
