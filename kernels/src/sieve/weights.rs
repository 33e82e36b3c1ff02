//! The sum of the weights of a batch.

use crate::Isa;
use crate::simd::{Base, RunOn, WEIGHT_END, WEIGHTS_MAX, bits_of, dispatch};

/// The sum of weights, saturating.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sieve::sum_of_weights;
///
/// let isa = Isa::selected()?;
/// assert_eq!(sum_of_weights(isa, &[1, 20, 300]), 321);
/// assert_eq!(sum_of_weights(isa, &[u64::MAX, 7]), u64::MAX);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
///
/// Reads each weight once, with two operations for each register; 1,024 weights of which one is
/// 2^54 or more take a scalar loop.
///
/// # Panics
///
/// If `isa` is not available.
#[must_use]
pub fn sum_of_weights(isa: Isa, weights: &[u64]) -> u64 {
    dispatch::<Base, _>(isa, Sum(weights))
}

struct Sum<'a>(&'a [u64]);

/// All levels share this loop, which compiles to the vector instructions of each level.
impl<L> RunOn<L, u64> for Sum<'_> {
    #[inline(always)]
    fn run_on(self, _: L) -> u64 {
        self.0.chunks(WEIGHTS_MAX).fold(0, |sum: u64, block| {
            sum.saturating_add(if bits_of(block) < WEIGHT_END {
                block.iter().sum()
            } else {
                block.iter().fold(0, |sum, &weight| sum.saturating_add(weight))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_are_those_of_large_integers(
            len in prop_oneof![0..70_usize, 1_020..1_030_usize, 2_040..2_060_usize],
            shift in 0..64_u32,
            seed: u64,
        ) {
            let weight = |step| super::super::split_mix(seed, step) >> shift;
            let weights: Vec<u64> = (0..len as u64).map(weight).collect();
            let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
            for isa in Isa::available() {
                let expected = u64::try_from(sum).unwrap_or(u64::MAX);
                prop_assert_eq!(sum_of_weights(isa, &weights), expected, "{}", isa);
            }
        }
    }
}
