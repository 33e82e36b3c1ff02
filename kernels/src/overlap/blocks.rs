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
//! Where few tokens may be in one set only, there is no need to see which block gives way. Of two
//! sets that have `needed` more tokens in common, at most `probe.len() - needed` of the probe's are
//! alone, and as many of the candidate's. So a common token cannot be further back in one set than
//! in the other by more, and each block of the probe is compared with a fixed window:
//!
//! ```text
//! probe        3  5  8 11 | 12 17 20 21     needed: 7, so 1 and 2 tokens are alone
//! candidate    3  5  8  9  12 14 17 20 21   first block: 0 to 3 + 2; second: 4 - 1 to 7 + 2
//! ```
//!
//! If the sets have fewer in common the window may miss some, and they are rejected either way. A
//! step does not wait for the one before it, as that of a merge does.
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
        let needed = pair.required.saturating_sub(pair.overlap) as usize;
        let alone = (pair.probe.len().checked_sub(needed), pair.candidate_len.checked_sub(needed));
        let (Some(behind), Some(ahead)) = alone else {
            return REJECTED;
        };
        let lanes = <S::U32 as Lanes>::COUNT;
        let width = block_max::<S>() + behind + ahead;
        let room = pair.candidate_on.len();
        if width <= lanes && needed + lanes <= room {
            self.in_windows::<1>(pair, needed, behind)
        } else if width <= 2 * lanes && needed + 2 * lanes <= room {
            self.in_windows::<2>(pair, needed, behind)
        } else {
            self.merged::<EXACT>(pair)
        }
    }

    #[inline(always)]
    fn is_met_before(self, pair: Pair<'_>, probe_at: usize) -> bool {
        let lanes = <S::U32 as Lanes>::COUNT;
        let block_max = block_max::<S>();
        let (register, blocks) = (pair.candidate_on.get(..lanes), pair.probe.get(..2 * block_max));
        match (register, blocks) {
            (Some(register), Some(blocks))
                if pair.candidate_len <= lanes && probe_at <= 2 * block_max =>
            {
                // Tokens from the match on are greater than all before it in the candidate.
                let (block, next) = blocks.split_at(block_max);
                let in_block = |block: &[u32]| {
                    self.common::<1>(|at| block[at], register, pair.candidate_len) > 0
                };
                in_block(block) || (probe_at > block_max && in_block(next))
            }
            _ => {
                let probe = &pair.probe[..probe_at];
                self.merged::<false>(Pair { probe, required: 1, overlap: 0, ..pair }) != REJECTED
            }
        }
    }
}

impl<S: Simd> Blocks<S> {
    /// The overlap if it suffices: `needed` tokens more than are counted, and each of them at most
    /// `behind` further back in the probe, in `WINDOW` registers for each of its blocks.
    #[inline(always)]
    fn in_windows<const WINDOW: usize>(self, pair: Pair<'_>, needed: usize, behind: usize) -> u32 {
        let (lanes, block_max) = (<S::U32 as Lanes>::COUNT, block_max::<S>());
        let (mut common, mut at) = (0, 0);
        while at < pair.probe.len() {
            let block = &pair.probe[at..];
            if common as usize + block.len() < needed {
                return REJECTED;
            }
            let begin = at.saturating_sub(behind);
            let window = &pair.candidate_on[begin..][..WINDOW * lanes];
            let valid = pair.candidate_len.saturating_sub(begin);
            common += match block.get(..block_max) {
                Some(block) => self.common::<WINDOW>(|at| block[at], window, valid),
                None => {
                    let last = block.len() - 1;
                    self.common::<WINDOW>(|at| block[at.min(last)], window, valid)
                }
            };
            at += block_max;
        }
        if (common as usize) < needed { REJECTED } else { pair.overlap + common }
    }

    /// The overlap, or [`REJECTED`], by a merge of blocks.
    #[inline(always)]
    fn merged<const EXACT: bool>(self, pair: Pair<'_>) -> u32 {
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
            let valid = lanes.min(candidate_len);
            let (probe_end, common) = match probe.get(..block_max::<S>()) {
                Some(block) => (block.len(), self.common::<1>(|at| block[at], register, valid)),
                None => {
                    let (last, rest) = (probe.len() - 1, probe);
                    (rest.len(), self.common::<1>(|at| rest[at.min(last)], register, valid))
                }
            };
            overlap += common;
            let (left, right) = (probe[probe_end - 1], register[valid - 1]);
            if left <= right {
                probe = &probe[probe_end..];
            }
            if right <= left {
                candidate = &candidate[valid..];
                candidate_len -= valid;
            }
        }
    }

    /// How many of the first `valid` tokens of a window are in a block of the probe, whose tokens
    /// may come twice.
    #[inline(always)]
    fn common<const WINDOW: usize>(
        self,
        token: impl Fn(usize) -> u32,
        window: &[u32],
        valid: usize,
    ) -> u32 {
        let lanes = <S::U32 as Lanes>::COUNT;
        let mut common = 0;
        for (index, register) in window.chunks_exact(lanes).take(WINDOW).enumerate() {
            let register = S::U32::load(self.0, register);
            let mut any = register.matches(S::U32::splat(self.0, token(0)));
            for at in 1..block_max::<S>() {
                any = S::U32::either(any, register.matches(S::U32::splat(self.0, token(at))));
            }
            let valid = valid.saturating_sub(index * lanes).min(lanes);
            common += (S::U32::bits(any) & !(u64::MAX << valid)).count_ones();
        }
        common
    }
}
