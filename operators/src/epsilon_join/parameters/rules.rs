//! Parameters of a join, checked.

use trommel_kernels::Isa;
use trommel_kernels::vectors::{Algorithm, Epsilon};

use super::options::{EpsilonAlgorithm, EpsilonOutput};
use super::tuning::Tuning;
use crate::shared::budget::Allowance;

/// Parameters of a join.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) epsilon: Epsilon,
    pub(crate) output: EpsilonOutput,
    pub(crate) algorithm: EpsilonAlgorithm,
    pub(crate) isa: Isa,
    /// Number of kernels that search side by side.
    pub(crate) kernels: usize,
    pub(crate) memory: Allowance,
    /// Maximum bytes of vectors in the memory of a device.
    pub(crate) device_memory_max: usize,
    pub(crate) tuning: Tuning,
}

impl Rules {
    /// Whether equal vectors may be joined once, because the output does not list each pair.
    pub(crate) fn may_join_copies_once(&self) -> bool {
        self.output != EpsilonOutput::Pairs
    }

    /// Whether vectors of `dims` coordinates are put into directories, to compare `pairs` pairs.
    pub(crate) fn has_directory(&self, pairs: u64, dims: usize) -> bool {
        match self.algorithm {
            EpsilonAlgorithm::Auto => Algorithm::choose(pairs, dims) == Algorithm::Directory,
            EpsilonAlgorithm::NestedLoop => false,
            EpsilonAlgorithm::Directory => true,
        }
    }
}
