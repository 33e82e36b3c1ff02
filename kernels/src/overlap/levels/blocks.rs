//! The overlap by blocks of tokens, written once over [`BlockIntersect`].
//!
//! A register of the candidate's tokens meets a block of the probe's tokens. Then the side with the
//! smaller last token takes its next tokens; both sides do if their last tokens are equal. Any two
//! blocks meet at most once, so no token is counted twice:
//!
//! ```text
//! probe        3  5  8 11 | 12 17 20 21 | ..      a block
//! candidate    5  8  9 14 | 17 18 ..              a register; lanes 0 and 1 match
//!              11 < 14: the probe goes on
//! ```
//!
//! If few tokens can be in one set only, the loop need not decide which side goes on: the positions
//! of a common token in the two sets differ by few. Sets of a few registers are then compared by
//! [diagonals](super::diagonals). In longer sets, each block of the probe is compared with a fixed
//! window:
//!
//! ```text
//! probe        3  5  8 11 | 12 17 20 21     needed: 7, so 1 and 2 tokens are unmatched
//! candidate    3  5  8  9  12 14 17 20 21   first block: 0 to 3 + 2; second: 4 - 1 to 7 + 2
//! ```
//!
//! If the sets have fewer tokens in common, the window may miss some of these tokens, but the pair
//! is rejected in any case. A step does not wait for the previous step, as a step of a merge does.
//!
//! A register may reach into the sets after the candidate; the lanes of these sets are masked. Only
//! a candidate at the very end of the tokens finishes on the reference.

use super::{Intersect, REJECTED};
use crate::overlap::pairs::{Alone, Pair};
use crate::simd::Scalar;

/// A level that intersects a block of the probe with registers of the candidate.
pub(super) trait BlockIntersect: Copy {
    /// Tokens of a register.
    const LANES: usize;
    /// The maximum number of tokens of the probe in a block.
    const BLOCK: usize;

    /// The number of tokens, among the first `valid` tokens of a window of `WINDOW` registers, that
    /// are in a block. The block is not empty, and both ascend strictly.
    fn common<const WINDOW: usize>(self, block: &[u32], window: &[u32], valid: usize) -> u32;

    /// The overlap of a pair by [diagonals](super::diagonals); `None` if the pair needs blocks.
    fn on_diagonals<const EXACT: bool>(
        self,
        pair: Pair<'_>,
        needed: usize,
        alone: Alone,
    ) -> Option<u32>;
}

impl<B: BlockIntersect> Intersect for B {
    #[inline(always)]
    fn overlap<const EXACT: bool>(self, pair: Pair<'_>) -> u32 {
        let needed = pair.required.saturating_sub(pair.overlap) as usize;
        let Some(alone) = pair.alone(needed) else { return REJECTED };
        if let Some(overlap) = self.on_diagonals::<EXACT>(pair, needed, alone) {
            return overlap;
        }
        // The tokens of the candidate that a block can share, from the beginning of its window.
        let width = (B::BLOCK + alone.probe + alone.candidate).min(pair.candidate_len);
        // The last window begins before `needed`, and must lie within the tokens.
        let room = pair.candidate_on.len();
        if width <= B::LANES && needed + B::LANES <= room {
            in_windows::<B, 1>(self, pair, needed, alone.probe)
        } else if width <= 2 * B::LANES && needed + 2 * B::LANES <= room {
            in_windows::<B, 2>(self, pair, needed, alone.probe)
        } else {
            merge::<B, EXACT>(self, pair)
        }
    }

    #[inline(always)]
    fn shares_token_before(self, pair: Pair<'_>, probe_at: usize) -> bool {
        match pair.candidate_on.get(..B::LANES) {
            // Most candidates fit a register, and most matches are near the beginning of the
            // probe: two comparisons, without the loop of the merge.
            Some(register) if pair.candidate_len <= B::LANES && probe_at <= 2 * B::BLOCK => {
                // Tokens of the probe from the match on are greater than all candidate tokens here,
                // so whole blocks find no further common token.
                is_in_first_block(self, pair.probe(), register, pair.candidate_len)
                    || (probe_at > B::BLOCK
                        && is_in_first_block(
                            self,
                            &pair.probe()[B::BLOCK..],
                            register,
                            pair.candidate_len,
                        ))
            }
            _ => {
                let pair = Pair { probe_len: probe_at, required: 1, overlap: 0, ..pair };
                merge::<B, false>(self, pair) != REJECTED
            }
        }
    }
}

/// Whether one of the first `valid` tokens of a register is in the first block of the probe.
#[inline(always)]
fn is_in_first_block<B: BlockIntersect>(
    level: B,
    probe: &[u32],
    register: &[u32],
    valid: usize,
) -> bool {
    level.common::<1>(&probe[..probe.len().min(B::BLOCK)], register, valid) > 0
}

/// The overlap of a pair that needs `needed` more common tokens, if it suffices. A common token is
/// at most `probe_alone` positions further on in the probe than in the candidate, and a window of
/// `WINDOW` registers holds all tokens that a block can share.
#[inline(always)]
fn in_windows<B: BlockIntersect, const WINDOW: usize>(
    level: B,
    pair: Pair<'_>,
    needed: usize,
    probe_alone: usize,
) -> u32 {
    let (probe, mut common, mut at) = (pair.probe(), 0, 0);
    while at < probe.len() {
        let rest = &probe[at..];
        if common as usize + rest.len() < needed {
            return REJECTED;
        }
        // No value here depends on the comparison of the previous step, so steps overlap in the
        // processor.
        let begin = at.saturating_sub(probe_alone);
        let window = &pair.candidate_on[begin..][..WINDOW * B::LANES];
        let valid = pair.candidate_len.saturating_sub(begin);
        let block = &rest[..rest.len().min(B::BLOCK)];
        common += level.common::<WINDOW>(block, window, valid);
        at += B::BLOCK;
    }
    if (common as usize) < needed { REJECTED } else { pair.overlap + common }
}

/// The overlap, or [`REJECTED`], by a merge of blocks.
#[inline(always)]
fn merge<B: BlockIntersect, const EXACT: bool>(level: B, pair: Pair<'_>) -> u32 {
    let (mut probe, mut candidate) = (pair.probe(), pair.candidate_on);
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
        let Some(register) = candidate.get(..B::LANES) else {
            // A register would reach past the end of all tokens.
            let (probe_on, probe_len) = (probe, probe.len());
            let candidate_on = candidate;
            let rest = Pair { probe_on, probe_len, candidate_on, candidate_len, overlap, ..pair };
            return Scalar.overlap::<EXACT>(rest);
        };
        let valid = B::LANES.min(candidate_len);
        let block = &probe[..probe.len().min(B::BLOCK)];
        overlap += level.common::<1>(block, register, valid);
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
