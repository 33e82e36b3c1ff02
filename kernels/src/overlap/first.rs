//! The filter for matches that are the first of their pair.

use super::chunk::{ChunkStore, Entry, pair_number};
use super::levels::Intersect;
use super::pairs::Pair;
use crate::sets::Sets;
use crate::simd::{RunOn, prefetch};

/// Number of matches between the current match and the match whose candidate is prefetched.
const AHEAD: usize = 8;

/// Number of entries between the current entry and the entry whose probe is prefetched.
const ENTRIES_AHEAD: usize = 4;

/// The arguments of [`retain_first`](super::retain_first).
pub(super) struct RetainFirst<'a> {
    pub(super) sets: Sets<'a>,
    pub(super) matches: &'a mut ChunkStore,
}

impl<L: Intersect> RunOn<L> for RetainFirst<'_> {
    #[inline(always)]
    fn run_on(self, level: L) {
        let Self { sets, matches } = self;
        let begin_of = |set: u32| sets.offsets()[set as usize] as usize;
        let ChunkStore { entries, candidates, required, starts } = matches;
        let (mut kept, mut entries_kept) = (0, 0);
        for at in 0..entries.len() {
            if let Some(next) = entries.get(at + ENTRIES_AHEAD) {
                prefetch(sets.tokens(), begin_of(next.probe));
            }
            let Entry { probe, begin, end } = entries[at];
            let probe_on = &sets.tokens()[begin_of(probe)..];
            let probe_len = sets.set(probe as usize).len();
            let first = kept;
            for index in begin as usize..end as usize {
                // The first tokens of the candidate and the tokens around the match may be in
                // different cache lines.
                if let Some(&next) = candidates.get(index + AHEAD) {
                    let begin = begin_of(next);
                    prefetch(sets.tokens(), begin);
                    prefetch(sets.tokens(), begin + starts[index + AHEAD].candidate as usize);
                }
                // The match is written first, and kept by an increment: there is no branch on the
                // answer.
                let (candidate, start) = (candidates[index], starts[index]);
                (candidates[kept], starts[kept]) = (candidate, start);
                required[kept] = required[index];
                let candidate_on = &sets.tokens()[begin_of(candidate)..];
                // A start is past the match, so the match itself is one before it.
                let probe_at = start.probe as usize - 1;
                let candidate_len = start.candidate as usize - 1;
                let pair = Pair {
                    probe_on,
                    probe_len,
                    candidate_on,
                    candidate_len,
                    required: 0,
                    overlap: 0,
                };
                kept += usize::from(!level.shares_token_before(pair, probe_at));
            }
            if kept > first {
                let (begin, end) = (pair_number(first), pair_number(kept));
                entries[entries_kept] = Entry { probe, begin, end };
                entries_kept += 1;
            }
        }
        entries.truncate(entries_kept);
        matches.resize(kept);
    }
}
