//! The reference of the overlap: every other level returns the same bits.

use super::{Intersect, REJECTED};
use crate::overlap::pairs::Pair;
use crate::simd::Scalar;

/// A merge, token by token.
impl Intersect for Scalar {
    #[inline(always)]
    fn overlap<const EXACT: bool>(self, pair: Pair<'_>) -> u32 {
        let (mut probe, mut candidate) = (pair.probe(), pair.candidate());
        let mut overlap = pair.overlap;
        loop {
            if pair.is_lost(overlap, probe.len(), candidate.len()) {
                return REJECTED;
            }
            if !EXACT && overlap >= pair.required {
                return overlap;
            }
            let (Some(left), Some(right)) = (probe.first(), candidate.first()) else {
                return overlap;
            };
            // A step has three comparisons and no branch, since the processor cannot predict which
            // side goes on.
            overlap += u32::from(left == right);
            let (left_goes_on, right_goes_on) = (left <= right, right <= left);
            probe = &probe[usize::from(left_goes_on)..];
            candidate = &candidate[usize::from(right_goes_on)..];
        }
    }

    #[inline(always)]
    fn shares_token_before(self, pair: Pair<'_>, probe_at: usize) -> bool {
        self.overlap::<false>(Pair { probe_len: probe_at, required: 1, overlap: 0, ..pair })
            != REJECTED
    }
}
