//! The threshold of a join, the exact distance, and its bounds in real numbers.
//!
//! A pair joins if its [`square`] is at most [`Epsilon::square`], the greatest number whose root,
//! rounded to float64, is at most epsilon. So a pair joins if its reported distance is at most
//! epsilon, and it joins by an epsilon of that distance. Both squares are numbers of float64, so
//! all levels decide alike; filters work with real distances and need bounds on the real distance
//! of a pair. With `u = 2^-53`: a difference of two float32 is rounded once in float64, its square
//! once, and each of at most 4,096 sums once. Nothing underflows, as a difference is zero or at
//! least 2^-149, and nothing overflows. So the computed square is the real one times `1 + d` with
//! `|d| <= 4099 u < 2^-40`, and
//!
//! - a pair that joins has a real distance of at most [`Epsilon::reach`];
//! - a pair with a real distance of at most [`Epsilon::core`] joins.

/// Relative width of the band in which only the computed square decides: twice the error above,
/// which leaves room for the roundings of the bounds themselves.
const BAND: f64 = 1.0 / (1_u64 << 40) as f64;

/// The greatest distance of a pair that joins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epsilon {
    value: f64,
    square: f64,
}

impl Epsilon {
    /// A threshold; none if `value` is negative, infinite or not a number.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::vectors::Epsilon;
    ///
    /// let square = Epsilon::new(0.5).unwrap().square();
    /// assert!(square.sqrt() <= 0.5 && square.next_up().sqrt() > 0.5);
    /// assert_eq!(Epsilon::new(-0.5), None);
    /// ```
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (value.is_finite() && value >= 0.0).then(|| Self { value, square: greatest_square(value) })
    }

    /// The distance.
    #[must_use]
    pub fn value(self) -> f64 {
        self.value
    }

    /// The square that [`square`] is compared with.
    #[must_use]
    pub fn square(self) -> f64 {
        self.square
    }

    /// A distance that no pair that joins exceeds, in real numbers.
    pub(super) fn reach(self) -> f64 {
        self.square.sqrt() * (1.0 + BAND)
    }

    /// A distance up to which all pairs join, in real numbers.
    pub(super) fn core(self) -> f64 {
        self.square.sqrt() * (1.0 - BAND)
    }
}

/// The greatest number whose root is at most `value`. That number is a few roundings above the
/// square of `value`.
fn greatest_square(value: f64) -> f64 {
    let mut square = (value * value).min(f64::MAX);
    while square.sqrt() > value {
        square = square.next_down();
    }
    while square.next_up().sqrt() <= value {
        square = square.next_up();
    }
    square
}

/// The square of the distance of two vectors: the sum in float64, in the order of the dimensions,
/// of the squared differences, each operation rounded.
///
/// # Examples
///
/// ```
/// use trommel_kernels::vectors::square;
///
/// assert_eq!(square(&[0.0, 0.0], &[3.0, 4.0]), 25.0);
/// ```
#[must_use]
#[inline(always)]
pub fn square(left: &[f32], right: &[f32]) -> f64 {
    left.iter().zip(right).fold(0.0, |sum, (&left, &right)| {
        let difference = f64::from(left) - f64::from(right);
        sum + difference * difference
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_as_epsilon_reaches_its_own_square() {
        let squares = (1..2_000_u32).map(|n| f64::from(n) * 0.000_37);
        let far = [0.0, 2.0_f64.powi(-298), 1e-290, 25.0, 1.9e81, f64::MAX];
        for square in squares.chain(far) {
            let distance = square.sqrt();
            let epsilon = Epsilon::new(distance).unwrap();
            assert!(square <= epsilon.square(), "{square}");
            assert!(epsilon.square().sqrt() <= distance, "{square}");
            let less = Epsilon::new(distance.next_down()).map(Epsilon::square);
            assert!(less.is_none_or(|less| less < square), "{square}");
        }
    }
}
