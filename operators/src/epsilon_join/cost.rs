//! Costs of a join on the CPU and on a GPU, in nanoseconds. They decide between the two, whose
//! pairs are the same.
//!
//! Measured with about one pair for each vector (docs/epsilon-join.md): on cores with AVX-512, and
//! on an H200. The number of pairs is not known before; joins with more of them cost both more.

use trommel_kernels::cuda::vectors::Method;

use super::rules::Rules;

/// Sizes of a join.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Vectors of the left input.
    pub(super) left: usize,
    /// Vectors of the right one; `None` if the left vectors are joined with themselves.
    pub(super) right: Option<usize>,
    pub(super) dims: usize,
}

impl Shape {
    /// Pairs that a nested loop compares.
    pub(super) fn pairs(&self) -> u64 {
        let left = self.left as u64;
        match self.right {
            None => left * left.saturating_sub(1) / 2,
            Some(right) => left * right as u64,
        }
    }

    fn vectors(&self) -> u64 {
        (self.left + self.right.unwrap_or(0)) as u64
    }

    fn numbers(&self) -> u64 {
        self.vectors() * self.dims as u64
    }
}

/// Picoseconds of a CPU for a number of a vector, to build a directory: 110 ns for 8 dimensions,
/// 5.1 us for 384.
const BUILD_PS: u64 = 13_600;
/// Picoseconds to search a directory, for each of the dimensions of a vector up to a maximum: 340
/// ns for 8 dimensions, 3.8 us for 384.
const SEARCH_PS: u64 = 43_000;
const SEARCH_DIMS_MAX: u64 = 88;
/// Picoseconds of a pair of a nested loop: 139 for 2 dimensions. Products of more are added.
const PAIR_PS: u64 = 100;
const PAIR_DIMS_PS: u64 = 20;

/// Bytes of a nanosecond from pageable memory to a device (docs/gpu.md, *The whole way*).
const SENT_BYTES: u64 = 6;
/// Nanoseconds of buffers and launches.
const JOIN_NS: u64 = 20_000_000;
/// Picoseconds of a vector under boxes: 1.0 to 2.4 ns for 8 dimensions.
const BOXED_PS: u64 = 2_400;
/// Attoseconds of a pair of vectors under tiles, and more of them for each dimension: 0.24 ps for
/// 64 dimensions, 0.30 for 128, 0.77 for 384.
const TILED_AS: u64 = 180_000;
const TILED_DIMS_AS: u64 = 1_500;
/// Attoseconds of a pair and dimension of a nested loop on a device: 1.6 ps for 8 dimensions.
const LOOP_DIMS_AS: u64 = 200_000;

/// Time of all kernels for a join, who share all of the work.
pub(super) fn on_cpu(rules: &Rules, shape: &Shape) -> u64 {
    let (pairs, dims) = (u128::from(shape.pairs()), shape.dims as u64);
    let kernels = rules.kernels as u128;
    let picoseconds = if rules.has_directory(shape.pairs(), shape.dims) {
        let search = u128::from(SEARCH_PS * dims.min(SEARCH_DIMS_MAX));
        u128::from(shape.vectors()) * (u128::from(BUILD_PS * dims) + search) / kernels
    } else {
        pairs * u128::from(PAIR_PS + PAIR_DIMS_PS * dims) / kernels
    };
    u64::try_from(picoseconds / 1_000).unwrap_or(u64::MAX)
}

/// Time of a device for a join, with the way of the vectors there.
pub(super) fn on_device(method: Method, shape: &Shape) -> u64 {
    let (pairs, dims) = (u128::from(shape.pairs()), shape.dims as u64);
    let work = match method {
        Method::Boxes => u128::from(shape.vectors() * BOXED_PS / 1_000),
        Method::Tiles => pairs * u128::from(TILED_AS + TILED_DIMS_AS * dims) / 1_000_000_000,
        _ => pairs * u128::from(LOOP_DIMS_AS * dims) / 1_000_000_000,
    };
    let sent = shape.numbers().saturating_mul(size_of::<f32>() as u64) / SENT_BYTES;
    u64::try_from(work).unwrap_or(u64::MAX).saturating_add(sent).saturating_add(JOIN_NS)
}

#[cfg(test)]
mod tests {
    use trommel_kernels::Isa;
    use trommel_kernels::vectors::Epsilon;

    use super::*;
    use crate::epsilon_join::options::{EpsilonAlgorithm, EpsilonOutput};
    use crate::epsilon_join::tuning::Tuning;

    /// Milliseconds of a core and of a device for a join of `len` vectors.
    fn milliseconds(len: usize, dims: usize, method: Method) -> [u64; 2] {
        let rules = Rules {
            epsilon: Epsilon::new(1.0).unwrap(),
            output: EpsilonOutput::Pairs,
            algorithm: EpsilonAlgorithm::Auto,
            isa: Isa::Scalar,
            kernels: 1,
            memory_max: 0,
            tuning: Tuning::default(),
        };
        let shape = Shape { left: len, right: None, dims };
        [on_cpu(&rules, &shape), on_device(method, &shape)].map(|ns| ns / 1_000_000)
    }

    #[test]
    fn costs_are_about_those_that_were_measured() {
        assert_eq!(milliseconds(1_000_000, 8, Method::Boxes), [452, 27]);
        assert_eq!(milliseconds(100_000, 384, Method::Tiles), [900, 49]);
        assert_eq!(milliseconds(1_000_000, 128, Method::Tiles), [5_524, 291]);
        let [cpu, loops] = milliseconds(250_000, 8, Method::NestedLoop);
        assert!(cpu < 120 && (70..80).contains(&loops), "{cpu} {loops}");
    }
}
