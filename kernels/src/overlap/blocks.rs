//! The overlap by blocks of tokens, written once over [`Meet`].
//!
//! A register of the candidate's tokens meets a block of the probe's; then the block that ends with
//! the smaller token gives way to the next one, both when they end alike. Each two blocks meet
//! once, so no token is counted twice:
//!
//! ```text
//! probe        3  5  8 11 | 12 17 20 21 | ..      a block
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

use super::pairs::Pair;
use super::scalar::Scalar;
use super::{Intersect, REJECTED};

/// How a block of the probe meets a register of the candidate.
pub(super) trait Meet: Copy {
    /// Tokens of a register.
    const LANES: usize;
    /// The most tokens of the probe in a block.
    const BLOCK: usize;

    /// How many of the first `valid` tokens of a window of so many registers are in a block, which
    /// is not empty. Both ascend strictly.
    fn common<const WINDOW: usize>(self, block: &[u32], window: &[u32], valid: usize) -> u32;
}

/// A merge of blocks.
#[derive(Clone, Copy)]
pub(super) struct Blocks<M>(pub(super) M);

impl<M: Meet> Intersect for Blocks<M> {
    #[inline(always)]
    fn overlap<const EXACT: bool>(self, pair: Pair<'_>) -> u32 {
        let needed = pair.required.saturating_sub(pair.overlap) as usize;
        let alone = (pair.probe.len().checked_sub(needed), pair.candidate_len.checked_sub(needed));
        let (Some(behind), Some(ahead)) = alone else {
            return REJECTED;
        };
        // What of the candidate a block can meet, from where its window begins.
        let width = (M::BLOCK + behind + ahead).min(pair.candidate_len);
        let room = pair.candidate_on.len();
        if width <= M::LANES && needed + M::LANES <= room {
            self.in_windows::<1>(pair, needed, behind)
        } else if width <= 2 * M::LANES && needed + 2 * M::LANES <= room {
            self.in_windows::<2>(pair, needed, behind)
        } else {
            self.merged::<EXACT>(pair)
        }
    }

    #[inline(always)]
    fn is_met_before(self, pair: Pair<'_>, probe_at: usize) -> bool {
        match pair.candidate_on.get(..M::LANES) {
            Some(register) if pair.candidate_len <= M::LANES && probe_at <= 2 * M::BLOCK => {
                // Tokens from the match on are greater than all before it in the candidate.
                self.is_in(pair.probe, register, pair.candidate_len)
                    || (probe_at > M::BLOCK
                        && self.is_in(&pair.probe[M::BLOCK..], register, pair.candidate_len))
            }
            _ => {
                let probe = &pair.probe[..probe_at];
                self.merged::<false>(Pair { probe, required: 1, overlap: 0, ..pair }) != REJECTED
            }
        }
    }
}

impl<M: Meet> Blocks<M> {
    /// Whether one of the first `valid` tokens of a register is in the first block of the probe.
    #[inline(always)]
    fn is_in(self, probe: &[u32], register: &[u32], valid: usize) -> bool {
        self.0.common::<1>(&probe[..probe.len().min(M::BLOCK)], register, valid) > 0
    }

    /// The overlap if it suffices: `needed` tokens more than are counted, and each of them at most
    /// `behind` further back in the probe, in `WINDOW` registers for each of its blocks.
    #[inline(always)]
    fn in_windows<const WINDOW: usize>(self, pair: Pair<'_>, needed: usize, behind: usize) -> u32 {
        let (mut common, mut at) = (0, 0);
        while at < pair.probe.len() {
            let rest = &pair.probe[at..];
            if common as usize + rest.len() < needed {
                return REJECTED;
            }
            let begin = at.saturating_sub(behind);
            let window = &pair.candidate_on[begin..][..WINDOW * M::LANES];
            let valid = pair.candidate_len.saturating_sub(begin);
            let block = &rest[..rest.len().min(M::BLOCK)];
            common += self.0.common::<WINDOW>(block, window, valid);
            at += M::BLOCK;
        }
        if (common as usize) < needed { REJECTED } else { pair.overlap + common }
    }

    /// The overlap, or [`REJECTED`], by a merge of blocks.
    #[inline(always)]
    fn merged<const EXACT: bool>(self, pair: Pair<'_>) -> u32 {
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
            let Some(register) = candidate.get(..M::LANES) else {
                let rest = Pair { probe, candidate_on: candidate, candidate_len, overlap, ..pair };
                return Scalar.overlap::<EXACT>(rest);
            };
            let valid = M::LANES.min(candidate_len);
            let block = &probe[..probe.len().min(M::BLOCK)];
            overlap += self.0.common::<1>(block, register, valid);
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
