//! The overlap by blocks of tokens, written once over [`Lanes`].
//!
//! A register of the candidate's tokens is compared with a block of the probe's, one broadcast
//! token after the other; then the block that ends with the smaller token gives way to the next
//! one, both when they end alike. Each two blocks meet once, so no token is counted twice:
//!
//! ```text
//! probe        3  5  8 11 | 12 17 20 21 | ..      broadcast one by one
//! candidate    5  8  9 14 | 17 18 ..              a register; lanes 0 and 1 match
//!              11 < 14: the probe goes on
//! ```
//!
//! A register may reach into the sets behind the candidate; their lanes are masked. Only a
//! candidate at the very end of the tokens finishes on the reference.
//!
//! Broadcasting from memory leaves the shuffle port to the comparisons; rotating a register, the
//! usual form, needs it for both.

use super::pairs::Pair;
use super::scalar::Scalar;
use super::{Intersect, REJECTED};
use crate::filter::lanes::{Lanes, Simd};

/// The most tokens of the probe in a block. Larger ones compare more and step less.
const BLOCK_MAX: usize = 8;

/// Tokens of the probe in a full block.
const fn block_max<S: Simd>() -> usize {
    let lanes = <S::U32 as Lanes>::COUNT;
    if lanes < BLOCK_MAX { lanes } else { BLOCK_MAX }
}

/// A merge of blocks on the registers of an instruction set.
#[derive(Clone, Copy)]
pub(super) struct Blocks<S>(pub(super) S);

impl<S: Simd> Intersect for Blocks<S> {
    #[inline(always)]
    fn overlap<const EXACT: bool>(self, pair: Pair<'_>) -> u32 {
        let lanes = <S::U32 as Lanes>::COUNT;
        let (mut probe, mut candidate) = (pair.probe, pair.candidate_on);
        let mut candidate_len = pair.candidate_len;
        let mut overlap = pair.overlap;
        loop {
            if pair.is_lost(overlap, probe.len(), candidate_len) {
                return REJECTED;
            }
            let is_enough = !EXACT && overlap >= pair.required;
            if is_enough || probe.is_empty() || candidate_len == 0 {
                return overlap;
            }
            let Some(register) = candidate.get(..lanes) else {
                let rest = Pair { probe, candidate_on: candidate, candidate_len, overlap, ..pair };
                return Scalar.overlap::<EXACT>(rest);
            };
            let block = &probe[..block_max::<S>().min(probe.len())];
            let valid = lanes.min(candidate_len);
            overlap += self.common(block, register, valid);
            let (left, right) = (block[block.len() - 1], register[valid - 1]);
            if left <= right {
                probe = &probe[block.len()..];
            }
            if right <= left {
                candidate = &candidate[valid..];
                candidate_len -= valid;
            }
        }
    }
}

impl<S: Simd> Blocks<S> {
    /// How many of the first `valid` lanes are in the block.
    #[inline(always)]
    fn common(self, block: &[u32], register: &[u32], valid: usize) -> u32 {
        let register = S::U32::load(self.0, register);
        let is_in_block = |token: u32| register.matches(S::U32::splat(self.0, token));
        let (first, rest) = block.split_first().expect("an empty probe has ended");
        let mut any = is_in_block(*first);
        // A loop of a known length is unrolled.
        if rest.len() == block_max::<S>() - 1 {
            for token in &rest[..block_max::<S>() - 1] {
                any = S::U32::either(any, is_in_block(*token));
            }
        } else {
            for token in rest {
                any = S::U32::either(any, is_in_block(*token));
            }
        }
        (S::U32::bits(any) & (u64::MAX >> (u64::BITS as usize - valid))).count_ones()
    }
}
