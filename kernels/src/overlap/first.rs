//! Which matches are the first of their pair.

use super::pairs::{ChunkStore, Entry, Pair, pair_number};
use super::{Intersect, Verification};
use crate::prefetch::prefetch;
use crate::sets::Sets;

/// How many matches ahead the tokens of candidates are asked for.
const AHEAD: usize = 8;

/// How many entries ahead the tokens of probes are asked for.
const ENTRIES_AHEAD: usize = 4;

/// The arguments of [`retain_first`](super::retain_first).
pub(super) struct RetainFirst<'a> {
    pub(super) sets: Sets<'a>,
    pub(super) matches: &'a mut ChunkStore,
}

impl Verification for RetainFirst<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, intersect: impl Intersect) {
        retain(intersect, self);
    }
}

#[inline(always)]
fn retain(intersect: impl Intersect, RetainFirst { sets, matches }: RetainFirst<'_>) {
    let begin_of = |set: u32| sets.offsets()[set as usize] as usize;
    let ChunkStore { entries, candidates, required, starts } = matches;
    let (mut kept, mut entries_kept) = (0, 0);
    for at in 0..entries.len() {
        if let Some(next) = entries.get(at + ENTRIES_AHEAD) {
            prefetch(sets.tokens(), begin_of(next.probe));
        }
        let Entry { probe, begin, end } = entries[at];
        let tokens = sets.set(probe as usize);
        let first = kept;
        for index in begin as usize..end as usize {
            if let Some(&next) = candidates.get(index + AHEAD) {
                prefetch(sets.tokens(), begin_of(next));
                prefetch(sets.tokens(), begin_of(next) + starts[index + AHEAD].candidate as usize);
            }
            let (candidate, start) = (candidates[index], starts[index]);
            (candidates[kept], starts[kept]) = (candidate, start);
            required[kept] = required[index];
            let candidate_on = &sets.tokens()[begin_of(candidate)..];
            let (probe_at, candidate_len) =
                (start.probe as usize - 1, start.candidate as usize - 1);
            let pair = Pair { probe: tokens, candidate_on, candidate_len, required: 0, overlap: 0 };
            kept += usize::from(!intersect.is_met_before(pair, probe_at));
        }
        if kept > first {
            entries[entries_kept] =
                Entry { probe, begin: pair_number(first), end: pair_number(kept) };
            entries_kept += 1;
        }
    }
    entries.truncate(entries_kept);
    matches.resize(kept);
}
