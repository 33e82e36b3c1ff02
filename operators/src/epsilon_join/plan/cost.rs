//! Costs of a join on the CPU and on a GPU, in nanoseconds. The costs decide between the CPU and
//! the GPU; both find the same pairs.
//!
//! Measured with about one pair for each vector (bench/reports/epsilon-join.md): on cores with
//! AVX-512, and on an H200. The number of pairs is not known before the join; more pairs cost the
//! CPU and the GPU more.

use trommel_kernels::cuda::vectors::Method;

use crate::epsilon_join::parameters::rules::Rules;
use crate::wave::SEND_NS_PER_BYTE;

/// Sizes of a join.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Vectors of the left input.
    pub(crate) left: usize,
    /// Vectors of the right input; `None` if the left vectors are joined with themselves.
    pub(crate) right: Option<usize>,
    pub(crate) dims: usize,
}

impl Shape {
    /// Pairs that a nested loop compares.
    pub(crate) fn pairs(&self) -> u64 {
        let left = self.left as u64;
        match self.right {
            None => left * left.saturating_sub(1) / 2,
            Some(right) => left * right as u64,
        }
    }

    fn vectors(&self) -> f64 {
        (self.left + self.right.unwrap_or(0)) as f64
    }
}

/// Building a directory on a core, for each coordinate of a vector: 110 ns for 8 dimensions, 5.1 us
/// for 384.
const BUILD_NS: f64 = 13.6;
/// Searching a directory on a core, for each coordinate of a vector up to a maximum of coordinates:
/// 340 ns for 8 dimensions, 3.8 us for 384.
const SEARCH_NS: f64 = 43.0;
const SEARCH_DIMS_MAX: f64 = 88.0;
/// Finding principal components, which one kernel does alone, for each dimension up to a maximum:
/// about 0.12 s for 384 dimensions and 0.15 s for 784.
const COMPONENTS_NS: f64 = 3e5;
const COMPONENTS_DIMS_MAX: f64 = 512.0;
/// A pair of a nested loop, and each dimension of the pair: 0.139 ns for 2 dimensions.
const PAIR_NS: f64 = 0.1;
const PAIR_DIM_NS: f64 = 0.02;

/// Dimensions up to which a directory has no components.
const PLAIN_DIMS_MAX: f64 = 16.0;

/// Buffers and launches of a join on a device.
const JOIN_NS: f64 = 2e7;
/// A vector under boxes: 1.0 to 2.4 ns for 8 dimensions.
const BOXED_NS: f64 = 2.4;
/// A pair of vectors under tiles, and each dimension of the pair: 0.24 ps for 64 dimensions, 0.30
/// for 128, 0.77 for 384.
const TILED_NS: f64 = 1.8e-4;
const TILED_DIM_NS: f64 = 1.5e-6;
/// A pair and dimension of a nested loop on a device: 1.6 ps for 8 dimensions.
const LOOP_DIM_NS: f64 = 2e-4;

/// Time of all kernels for a join. The kernels share all work except the search for components. The
/// time for collecting vectors and sending rows is left out, because a device does not change that
/// time.
pub(crate) fn on_cpu(rules: &Rules, shape: &Shape) -> f64 {
    let (pairs, dims) = (shape.pairs() as f64, shape.dims as f64);
    let kernels = rules.kernels as f64;
    if !rules.has_directory(shape.pairs(), shape.dims) {
        return pairs * (PAIR_NS + PAIR_DIM_NS * dims) / kernels;
    }
    let has_components = dims > PLAIN_DIMS_MAX;
    let components =
        if has_components { COMPONENTS_NS * dims.min(COMPONENTS_DIMS_MAX) } else { 0.0 };
    let search = SEARCH_NS * dims.min(SEARCH_DIMS_MAX);
    shape.vectors() * (BUILD_NS * dims + search) / kernels + components
}

/// Time of a device for a join, including the transfer of the vectors to the device.
pub(crate) fn on_device(method: Method, shape: &Shape) -> f64 {
    let (pairs, dims) = (shape.pairs() as f64, shape.dims as f64);
    let work = match method {
        Method::Boxes => shape.vectors() * BOXED_NS,
        Method::Tiles => pairs * (TILED_NS + TILED_DIM_NS * dims),
        _ => pairs * LOOP_DIM_NS * dims,
    };
    let bytes = shape.vectors() * dims * size_of::<f32>() as f64;
    work + bytes * SEND_NS_PER_BYTE + JOIN_NS
}

#[cfg(test)]
mod tests {
    use trommel_kernels::Isa;
    use trommel_kernels::vectors::Epsilon;

    use super::*;
    use crate::epsilon_join::parameters::options::{EpsilonAlgorithm, EpsilonOutput};
    use crate::epsilon_join::parameters::tuning::Tuning;
    use crate::shared::budget::Allowance;
    use crate::wave::OPENING_NS;

    /// Milliseconds of `kernels` cores and of a device for a join of `len` vectors.
    fn milliseconds(kernels: usize, len: usize, dims: usize, method: Method) -> [f64; 2] {
        let rules = Rules {
            epsilon: Epsilon::new(1.0).unwrap(),
            output: EpsilonOutput::Pairs,
            algorithm: EpsilonAlgorithm::Auto,
            isa: Isa::Scalar,
            kernels,
            memory: Allowance::new(0),
            device_memory_max: usize::MAX,
            tuning: Tuning::default(),
        };
        let shape = Shape { left: len, right: None, dims };
        [on_cpu(&rules, &shape), on_device(method, &shape)].map(|ns| (ns / 1e6).floor())
    }

    #[test]
    fn costs_are_about_those_that_were_measured() {
        assert_eq!(milliseconds(1, 1_000_000, 8, Method::Boxes), [452.0, 27.0]);
        assert_eq!(milliseconds(1, 100_000, 384, Method::Tiles), [1_015.0, 49.0]);
        assert_eq!(milliseconds(1, 1_000_000, 128, Method::Tiles), [5_563.0, 291.0]);
        let [cpu, loops] = milliseconds(1, 250_000, 8, Method::NestedLoop);
        assert!(cpu < 120.0 && (70.0..80.0).contains(&loops), "{cpu} {loops}");
    }

    /// None of these joins pays for the 0.4 s that opening a device takes: the cores took up to
    /// 0.35 s more than the device.
    #[test]
    fn sixteen_cores_keep_the_joins_that_do_not_pay() {
        let boxed = [(300_000, 2), (1_000_000, 8), (10_000_000, 8)];
        let tiled = [(100_000, 384), (60_000, 784), (1_000_000, 128), (1_000_000, 64)];
        let boxed = boxed.map(|(len, dims)| (len, dims, Method::Boxes));
        let tiled = tiled.map(|(len, dims)| (len, dims, Method::Tiles));
        for (len, dims, method) in boxed.into_iter().chain(tiled) {
            let [cpu, device] = milliseconds(16, len, dims, method);
            assert!(cpu < device + OPENING_NS / 1e6, "{len} x {dims}: {cpu} {device}");
        }
        let [cpu, device] = milliseconds(1, 1_000_000, 64, Method::Tiles);
        assert!(cpu > device + OPENING_NS / 1e6, "{cpu} {device}");
    }
}
