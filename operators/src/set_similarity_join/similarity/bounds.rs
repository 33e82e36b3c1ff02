//! Bounds that follow from a similarity, a threshold and two sizes, in whole numbers.
//!
//! For sets of a and b tokens with o common tokens, and the threshold t = n / d:
//!
//! | similarity | at least t if | required overlap |
//! |---|---|---|
//! | Jaccard | o / (a + b - o) >= t | ceil(n (a + b) / (n + d)) |
//! | cosine | o / sqrt(a b) >= t | ceil(sqrt(n² a b / d²)) |
//! | Dice | 2 o / (a + b) >= t | ceil(n (a + b) / (2 d)) |
//! | overlap | o >= t | n (d is 1) |
//!
//! The required overlap grows with both sizes. The bounds on the size of a partner and the prefix
//! lengths follow from the required overlap: if two sets have the required overlap, the first a -
//! required + 1 tokens of one set and the first b - required + 1 tokens of the other set have a
//! token in common (Mann, Augsten, Bouros, PVLDB 9(9), 2016, §2).
//!
//! The published programs compute these bounds in floating point and lose pairs at the threshold:
//! for sizes that add up to 63 or 126 at 0.8, and to 19 or 38 at 0.9.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::set_similarity_join::parameters::error::JoinError;
use crate::set_similarity_join::similarity::Threshold;

/// Similarity of two sets. An empty set is similar to no set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Similarity {
    /// Common tokens as a share of all different tokens of both sets.
    #[default]
    Jaccard,
    /// Common tokens as a share of the geometric mean of the sizes.
    Cosine,
    /// Common tokens as a share of the mean of the sizes.
    Dice,
    /// Number of common tokens; the threshold is a number of tokens, too.
    Overlap,
}

impl Similarity {
    /// The similarity of sets of `left` and `right` tokens with `overlap` common tokens.
    ///
    /// # Examples
    /// ```
    /// use trommel_operators::set_similarity_join::Similarity;
    ///
    /// // 3 common tokens of sets of 3 and 5 tokens.
    /// assert_eq!(Similarity::Jaccard.of(3, 3, 5), 0.6);
    /// assert_eq!(Similarity::Dice.of(3, 3, 5), 0.75);
    /// assert_eq!(Similarity::Overlap.of(3, 3, 5), 3.0);
    /// ```
    #[must_use]
    pub fn of(self, overlap: u32, left: u32, right: u32) -> f64 {
        let (overlap, left, right) = (f64::from(overlap), f64::from(left), f64::from(right));
        match self {
            Self::Jaccard => overlap / (left + right - overlap),
            Self::Cosine => overlap / (left * right).sqrt(),
            Self::Dice => 2.0 * overlap / (left + right),
            Self::Overlap => overlap,
        }
    }
}

/// A similarity and its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    similarity: Similarity,
    numerator: u128,
    denominator: u128,
}

impl Bounds {
    /// The bounds of `similarity` at `threshold`.
    ///
    /// # Errors
    /// If no similarity can reach `threshold`, or if the threshold of an overlap is not a whole
    /// number.
    pub(crate) fn new(similarity: Similarity, threshold: Threshold) -> Result<Self, JoinError> {
        let (numerator, denominator) = (threshold.numerator(), threshold.denominator());
        match similarity {
            Similarity::Overlap if denominator > 1 => Err(JoinError::NotWhole { threshold }),
            Similarity::Overlap => Ok(()),
            _ if numerator > denominator => Err(JoinError::OutOfReach { threshold }),
            _ => Ok(()),
        }?;
        let (numerator, denominator) = (numerator.into(), denominator.into());
        Ok(Self { similarity, numerator, denominator })
    }

    /// Required overlap: the least overlap of similar sets of `a` and `b` tokens. Above the
    /// smaller size if no overlap suffices.
    pub(crate) fn required(self, a: u32, b: u32) -> u32 {
        let (n, d) = (self.numerator, self.denominator);
        let (a, b) = (u128::from(a), u128::from(b));
        let required = match self.similarity {
            Similarity::Jaccard => (n * (a + b)).div_ceil(n + d),
            Similarity::Dice => (n * (a + b)).div_ceil(2 * d),
            // Four numbers below 2^32 multiply to less than 2^128.
            Similarity::Cosine => sqrt_ceil((n * n * a * b).div_ceil(d * d)),
            Similarity::Overlap => n,
        };
        u32::try_from(required).expect("at most the larger size, or a 32-bit threshold")
    }

    /// Smallest size of a set that can be similar to a set of `size` tokens.
    pub(crate) fn size_min(self, size: u32) -> u32 {
        let (n, d, size) = (self.numerator, self.denominator, u128::from(size));
        let least = match self.similarity {
            Similarity::Jaccard => (n * size).div_ceil(d),
            Similarity::Dice => (n * size).div_ceil(2 * d - n),
            Similarity::Cosine => (n * n * size).div_ceil(d * d),
            Similarity::Overlap => n,
        };
        u32::try_from(least).expect("at most the size, or a 32-bit threshold").max(1)
    }

    /// Prefix length by which a set of `size` tokens is looked up: enough to find all similar
    /// sets up to its own size.
    pub(crate) fn probe_prefix(self, size: u32) -> u32 {
        self.prefix(size, self.size_min(size))
    }

    /// Prefix length by which a set of `size` tokens is indexed: enough to be found by all
    /// similar sets from its own size on.
    pub(crate) fn index_prefix(self, size: u32) -> u32 {
        self.prefix(size, size)
    }

    /// Prefix length of a set of `size` tokens for partners of `partner` tokens: similar sets
    /// share a token within their prefixes. 0 if the sets cannot be similar.
    fn prefix(self, size: u32, partner: u32) -> u32 {
        let required = self.required(size, partner);
        if size == 0 || required > size { 0 } else { size - required + 1 }
    }
}

/// The least number with a square of at least `square`.
fn sqrt_ceil(square: u128) -> u128 {
    let root = square.isqrt();
    root + u128::from(root * root < square)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::oracle::{Question, SIMILARITIES};

    fn bounds(similarity: Similarity, n: u32, d: u32) -> Bounds {
        Bounds::new(similarity, Threshold::new(n, d).unwrap()).unwrap()
    }

    fn is_similar(similarity: Similarity, n: u32, d: u32, o: u32, a: u32, b: u32) -> bool {
        let [o, a, b] = [o, a, b].map(|number| number as usize);
        Question { similarity, numerator: n, denominator: d }.is_similar(o, a, b)
    }

    fn check(similarity: Similarity, n: u32, d: u32, a: u32, b: u32) {
        let bounds = bounds(similarity, n, d);
        let required = bounds.required(a, b);
        let least = (0..=a.min(b)).find(|&o| is_similar(similarity, n, d, o, a, b));
        let shown = format!("{similarity:?} {n}/{d} of {a} and {b}");
        assert_eq!((required <= a.min(b)).then_some(required), least, "{shown}");
        let can_be = least.is_some_and(|o| o > 0);
        if b <= a {
            assert_eq!(b >= bounds.size_min(a), can_be, "{shown}: size");
        }
        if can_be && b <= a {
            let least = least.unwrap();
            assert!(bounds.probe_prefix(a) > a - least, "{shown}: probing prefix");
            assert!(bounds.index_prefix(b) > b - least, "{shown}: indexing prefix");
        }
    }

    #[test]
    fn bounds_are_those_of_the_definitions_for_all_small_sizes() {
        for similarity in SIMILARITIES {
            for percent in [1, 33, 50, 60, 70, 75, 80, 85, 90, 95, 99, 100] {
                let (n, d) =
                    if similarity == Similarity::Overlap { (percent, 1) } else { (percent, 100) };
                for a in 1..=70 {
                    (1..=70).for_each(|b| check(similarity, n, d, a, b));
                }
            }
        }
    }

    #[test]
    fn sums_on_the_border_are_exact() {
        // For these sums, the exact bound is a whole number, and floating point makes the bound
        // larger.
        for (percent, sum, required) in
            [(80, 63, 28), (80, 126, 56), (90, 19, 9), (90, 38, 18), (50, 3, 1), (75, 7, 3)]
        {
            let bounds = bounds(Similarity::Jaccard, percent, 100);
            for a in 1..sum {
                assert_eq!(bounds.required(a, sum - a), required, "{percent}: {a} of {sum}");
                check(Similarity::Jaccard, percent, 100, a, sum - a);
            }
        }
    }

    #[test]
    fn prefixes_are_no_longer_than_needed() {
        let bounds = bounds(Similarity::Jaccard, 4, 5);
        assert_eq!((bounds.probe_prefix(10), bounds.index_prefix(10)), (3, 2));
        assert_eq!((bounds.probe_prefix(0), bounds.index_prefix(0)), (0, 0));
        let of_five = |size| {
            let bounds = Bounds::new(Similarity::Overlap, Threshold::new(5, 1).unwrap()).unwrap();
            (bounds.probe_prefix(size), bounds.index_prefix(size))
        };
        assert_eq!(of_five(4), (0, 0));
        assert_eq!(of_five(7), (3, 3));
    }

    #[test]
    fn thresholds_out_of_reach_are_refused() {
        let threshold = |n, d| Threshold::new(n, d).unwrap();
        let refused = |similarity, n, d| Bounds::new(similarity, threshold(n, d)).unwrap_err();
        assert!(refused(Similarity::Jaccard, 6, 5).to_string().contains("at most 1"));
        assert!(refused(Similarity::Overlap, 5, 2).to_string().contains("a whole number"));
        assert!(Bounds::new(Similarity::Overlap, threshold(10, 2)).is_ok());
    }

    proptest! {
        #[test]
        fn nothing_overflows_and_the_required_overlap_is_the_least(
            index in 0..3_usize,
            n in 1..=u32::MAX,
            d in 1..=u32::MAX,
            a in 1..=u32::MAX,
            b in 1..=u32::MAX,
        ) {
            let (n, d) = (n.min(d), n.max(d));
            let similarity = SIMILARITIES[index];
            let bounds = bounds(similarity, n, d);
            let required = bounds.required(a, b);
            let smaller = a.min(b);
            if required <= smaller {
                prop_assert!(is_similar(similarity, n, d, required, a, b));
            }
            let less = (required - 1).min(smaller);
            prop_assert!(required <= less || !is_similar(similarity, n, d, less, a, b));
            prop_assert_eq!(smaller >= bounds.size_min(a.max(b)), required <= smaller);
            prop_assert!(bounds.probe_prefix(a) >= bounds.index_prefix(a));
        }
    }
}
