//! Costs of a join on the CPU and on a GPU, in nanoseconds. They decide between the two, whose
//! pairs are the same.
//!
//! Measured with about one pair for each vector (bench/reports/epsilon-join.md): on cores with
//! AVX-512, and on an H200. The number of pairs is not known before; joins with more of them cost
//! both more.

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
/// Nanoseconds of the one kernel that finds principal components, for each dimension up to a
/// maximum: about 0.12 s for 384 dimensions and 0.15 s for 784.
const COMPONENTS_NS: u64 = 300_000;
const COMPONENTS_DIMS_MAX: u64 = 512;
/// Picoseconds of a pair of a nested loop: 139 for 2 dimensions. Products of more are added.
const PAIR_PS: u64 = 100;
const PAIR_DIMS_PS: u64 = 20;

/// Dimensions up to which a directory has no components.
const PLAIN_DIMS_MAX: u64 = 16;

/// Bytes of a nanosecond from pageable memory to a device (bench/reports/gpu.md, *The whole way*).
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

/// Time of all kernels for a join, who share all of the work but the search for components. The
/// time to collect vectors and to send rows is left out, as a device does not change it.
pub(super) fn on_cpu(rules: &Rules, shape: &Shape) -> u64 {
    let (pairs, dims) = (u128::from(shape.pairs()), shape.dims as u64);
    let kernels = rules.kernels as u128;
    let has_components = rules.has_directory(shape.pairs(), shape.dims) && dims > PLAIN_DIMS_MAX;
    let components = COMPONENTS_NS * dims.min(COMPONENTS_DIMS_MAX) * u64::from(has_components);
    let picoseconds = if rules.has_directory(shape.pairs(), shape.dims) {
        let search = u128::from(SEARCH_PS * dims.min(SEARCH_DIMS_MAX));
        u128::from(shape.vectors()) * (u128::from(BUILD_PS * dims) + search) / kernels
    } else {
        pairs * u128::from(PAIR_PS + PAIR_DIMS_PS * dims) / kernels
    };
    u64::try_from(picoseconds / 1_000).unwrap_or(u64::MAX).saturating_add(components)
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
    use crate::budget::Allowance;
    use crate::epsilon_join::options::{EpsilonAlgorithm, EpsilonOutput};
    use crate::epsilon_join::tuning::Tuning;
    use crate::wave::OPENING_NS;

    /// Milliseconds of `kernels` cores and of a device for a join of `len` vectors.
    fn milliseconds(kernels: usize, len: usize, dims: usize, method: Method) -> [u64; 2] {
        let rules = Rules {
            epsilon: Epsilon::new(1.0).unwrap(),
            output: EpsilonOutput::Pairs,
            algorithm: EpsilonAlgorithm::Auto,
            isa: Isa::Scalar,
            kernels,
            memory: Allowance::new(0),
            tuning: Tuning::default(),
        };
        let shape = Shape { left: len, right: None, dims };
        [on_cpu(&rules, &shape), on_device(method, &shape)].map(|ns| ns / 1_000_000)
    }

    #[test]
    fn costs_are_about_those_that_were_measured() {
        assert_eq!(milliseconds(1, 1_000_000, 8, Method::Boxes), [452, 27]);
        assert_eq!(milliseconds(1, 100_000, 384, Method::Tiles), [1_015, 49]);
        assert_eq!(milliseconds(1, 1_000_000, 128, Method::Tiles), [5_563, 291]);
        let [cpu, loops] = milliseconds(1, 250_000, 8, Method::NestedLoop);
        assert!(cpu < 120 && (70..80).contains(&loops), "{cpu} {loops}");
    }

    /// None of these pays for 0.4 s to open a device: the cores took up to 0.35 s more than it.
    #[test]
    fn sixteen_cores_keep_the_joins_that_do_not_pay() {
        let boxed = [(300_000, 2), (1_000_000, 8), (10_000_000, 8)];
        let tiled = [(100_000, 384), (60_000, 784), (1_000_000, 128), (1_000_000, 64)];
        let boxed = boxed.map(|(len, dims)| (len, dims, Method::Boxes));
        let tiled = tiled.map(|(len, dims)| (len, dims, Method::Tiles));
        for (len, dims, method) in boxed.into_iter().chain(tiled) {
            let [cpu, device] = milliseconds(16, len, dims, method);
            assert!(cpu < device + OPENING_NS / 1_000_000, "{len} x {dims}: {cpu} {device}");
        }
        let [cpu, device] = milliseconds(1, 1_000_000, 64, Method::Tiles);
        assert!(cpu > device + OPENING_NS / 1_000_000, "{cpu} {device}");
    }
}
