//! The question of a join, with bounds for the filters.
//!
//! # Bounds in float32
//!
//! Let s be the true sum of the squares of n differences, and u = 2^-24. A match has a float64 sum
//! of at most `limit`. Each of the n terms and sums is rounded by a factor of at least 1 - 2^-53,
//! so s <= limit (1 + (n + 3) 2^-52).
//!
//! * `reach` is at least the root of this bound, rounded up to float32. Rounding to nearest is
//!   monotone, so a difference of at most `reach` is also at most `reach` when computed.
//! * A kernel sums in float32, with a rounding for each difference and a rounding for each `fma`. A
//!   term is rounded by at most (1 + u)^2 before its sum and all sums by (1 + u)^n, in either
//!   direction, and a square that underflows by at most 2^-150 in addition. So the result is at
//!   most s (1 + u)^(n + 2) + n 2^-150 <= s (1 + (n + 8) 2^-23) + 2^-120 for n <= 4,096: this is
//!   `bound`, rounded up. A difference that overflows is infinite, and larger than each finite
//!   bound, as it should be.

use super::DIMS_MAX;
use crate::vectors::Epsilon;

/// Bound of the roundings of a float64 sum, as a share of the sum.
const FLOAT64_SLACK: f64 = 1e-9;
/// The least float32 bound: above the sum of all roundings of tiny squares.
const TINY: f64 = 1.0 / (1_u128 << 120) as f64;

/// The kind of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The pairs.
    Pairs,
    /// The number of pairs.
    Count,
    /// The number of pairs of each vector.
    Partners,
}

/// The question as an argument of kernels: `Question` of `vectors.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Question {
    pub(super) limit: f64,
    pub(super) reach: f32,
    pub(super) bound: f32,
    is_self: u32,
    answer: u32,
}

impl Question {
    /// The pairs of vectors of `dims` dimensions that are at most `epsilon` apart.
    ///
    /// # Panics
    ///
    /// If `epsilon` is negative or no number.
    pub(super) fn new(epsilon: f64, dims: usize, is_self: bool, answer: Answer) -> Self {
        assert!(epsilon >= 0.0, "epsilon is {epsilon}; needed is a number of at least 0");
        // An infinite epsilon joins all pairs.
        let limit = Epsilon::new(epsilon).map_or(f64::INFINITY, Epsilon::square);
        let dims = u32::try_from(dims.min(DIMS_MAX)).expect("at most 4,096");
        let slack = f64::from(dims + 8) / f64::from(1_u32 << 23);
        let answer = match answer {
            Answer::Pairs => 0,
            Answer::Count => 1,
            Answer::Partners => 2,
        };
        Self {
            limit,
            reach: at_least(limit.sqrt() * (1.0 + FLOAT64_SLACK)),
            bound: at_least(limit * (1.0 + FLOAT64_SLACK + slack) + TINY),
            is_self: u32::from(is_self),
            answer,
        }
    }

    pub(super) fn is_self(&self) -> bool {
        self.is_self != 0
    }
}

/// The least float32 that is not below a number.
#[expect(clippy::cast_possible_truncation, reason = "rounded up afterwards")]
fn at_least(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) < value { nearest.next_up() } else { nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_not_below_epsilon() {
        for exponent in -200..200 {
            for digits in [1.0, 1.1, 1.999_999, 1.234_567_890_123] {
                let epsilon = digits * 2_f64.powi(exponent);
                let question = Question::new(epsilon, 3, true, Answer::Pairs);
                assert!(f64::from(question.reach) >= question.limit.sqrt());
                assert!(f64::from(question.bound) > question.limit);
            }
        }
        let nothing = Question::new(0.0, 1, false, Answer::Count);
        assert_eq!((nothing.reach, nothing.limit, nothing.is_self()), (0.0, 0.0, false));
        assert!(nothing.bound > 0.0);
        assert_eq!(Question::new(f64::INFINITY, 1, true, Answer::Pairs).reach, f32::INFINITY);
    }

    #[test]
    #[should_panic(expected = "epsilon is NaN")]
    fn an_epsilon_that_is_no_number_is_refused() {
        Question::new(f64::NAN, 1, true, Answer::Pairs);
    }
}
