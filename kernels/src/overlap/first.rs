//! Which matches are the first of their pair.

use super::pairs::{Pair, Sets};
use super::{Intersect, REJECTED};
use crate::filter::lanes::{Kernel, Simd};
use crate::prefetch::prefetch;

use super::blocks::Blocks;
use super::scalar::Scalar;

/// How many matches ahead the tokens of sets are asked for.
const AHEAD: usize = 8;

/// A common token of two sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// The probe.
    pub probe: u32,
    /// The other set.
    pub candidate: u32,
    /// Where the token is in the probe.
    pub probe_at: u32,
    /// Where it is in the other set.
    pub candidate_at: u32,
    /// The overlap that the pair requires.
    pub required: u32,
}

/// The arguments of [`retain_first`](super::retain_first).
pub(super) struct RetainFirst<'a> {
    pub(super) sets: Sets<'a>,
    pub(super) matches: &'a mut [Match],
}

impl Kernel for RetainFirst<'_> {
    type Output = usize;

    fn scalar(self) -> usize {
        retain(Scalar, self)
    }

    #[inline(always)]
    fn vector<S: Simd>(self, simd: S) -> usize {
        retain(Blocks(simd), self)
    }
}

#[inline(always)]
fn retain(intersect: impl Intersect, RetainFirst { sets, matches }: RetainFirst<'_>) -> usize {
    let begin = |set: u32| sets.offsets()[set as usize] as usize;
    let mut kept = 0;
    for index in 0..matches.len() {
        if let Some(next) = matches.get(index + AHEAD) {
            prefetch(sets.tokens(), begin(next.candidate) + next.candidate_at as usize);
            prefetch(sets.tokens(), begin(next.candidate));
            prefetch(sets.tokens(), begin(next.probe));
        }
        let found = matches[index];
        let Match { probe, candidate, probe_at, candidate_at, .. } = found;
        matches[kept] = found;
        let pair = Pair {
            probe: &sets.set(probe as usize)[..probe_at as usize],
            candidate_on: &sets.tokens()[begin(candidate)..],
            candidate_len: candidate_at as usize,
            required: 1,
            overlap: 0,
        };
        kept += usize::from(intersect.overlap::<false>(pair) == REJECTED);
    }
    kept
}
