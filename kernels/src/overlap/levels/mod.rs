//! The overlap of one pair, as a trait that each level implements.

mod blocks;
mod broadcast;
mod diagonals;
pub(super) mod scalar;
#[cfg(target_arch = "x86_64")]
mod vp2intersect;

use super::pairs::Pair;

/// The answer of [`verify`](super::verify) for a pair whose overlap is below the required overlap.
pub const REJECTED: u32 = u32::MAX;

/// Answers one pair.
pub(super) trait Intersect: Copy {
    /// The overlap of a pair, or [`REJECTED`]. Unless `EXACT`, the answer may be any number from
    /// the required overlap on, as soon as the overlap has reached the required overlap.
    fn overlap<const EXACT: bool>(self, pair: Pair<'_>) -> u32;

    /// Whether the sets share a token before `probe_at`. All candidate tokens passed here are
    /// smaller than `probe[probe_at]`.
    fn shares_token_before(self, pair: Pair<'_>, probe_at: usize) -> bool;
}
