//! The arguments of a call, and their checks.

use super::chunk::{Chunk, Start};
use crate::sets::Sets;
use crate::simd::prefetch;

/// The sets of a join and a chunk of its candidate pairs.
///
/// # Shapes
///
/// `chunk.required`: as many as `chunk.candidates`, and `chunk.starts` too unless it is empty;
/// entries as [`Chunk::entries`] says; set numbers below the number of sets, starts within their
/// sets and with an overlap of at most the settled tokens. Fewer than 2^32 pairs.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// The sets that entries name.
    pub probes: Sets<'a>,
    /// The sets that candidates name.
    pub candidates: Sets<'a>,
    /// The pairs.
    pub chunk: Chunk<'a>,
}

/// One pair, from where its verification begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    /// The remaining tokens of the probe, and the tokens of the sets after it.
    pub(super) probe_on: &'a [u32],
    /// The number of remaining tokens of the probe.
    pub(super) probe_len: usize,
    /// The remaining tokens of the candidate, and the tokens of the sets after it.
    pub(super) candidate_on: &'a [u32],
    /// The number of remaining tokens of the candidate.
    pub(super) candidate_len: usize,
    /// The required overlap.
    pub(super) required: u32,
    /// The overlap counted so far.
    pub(super) overlap: u32,
}

/// For each set of a pair the number of tokens that the other set may lack.
#[derive(Clone, Copy)]
pub(super) struct Alone {
    pub(super) probe: usize,
    pub(super) candidate: usize,
}

impl<'a> Pairs<'a> {
    /// Checks the shapes that the type documents, before a device relies on them.
    ///
    /// # Panics
    ///
    /// If a shape is not as documented.
    pub(crate) fn check(self) {
        self.check_shapes();
        // Sets are checked where they are made, so only starts remain to be checked.
        let Chunk { entries, candidates, starts, .. } = self.chunk;
        if starts.is_empty() {
            return;
        }
        for entry in entries {
            let range = entry.begin as usize..entry.end as usize;
            let probe = self.probes.set(entry.probe as usize).len();
            let starts = candidates[range.clone()].iter().zip(&starts[range.clone()]);
            // An entry costs one branch; a wrong start is searched again for the message.
            let are_within = starts.fold(true, |are_within, (&candidate, start)| {
                let candidate = self.candidates.set(candidate as usize).len();
                are_within & start.is_within(probe, candidate)
            });
            if !are_within {
                range.for_each(|index| _ = self.pair(entry.probe, index));
            }
        }
    }

    /// Checks the shapes except starts, which [`Self::pair`] checks.
    ///
    /// # Panics
    ///
    /// If a shape is not as documented.
    pub(super) fn check_shapes(self) {
        let Chunk { entries, candidates, required, starts } = self.chunk;
        let pairs = candidates.len();
        assert!(u32::try_from(pairs).is_ok(), "{pairs} pairs are too many for a chunk");
        let len = required.len();
        assert!(len == pairs, "{pairs} candidates need as many required overlaps, not {len}");
        let len = starts.len();
        assert!(len == 0 || len == pairs, "{pairs} candidates need as many starts, not {len}");
        let mut end = 0;
        for (index, entry) in entries.iter().enumerate() {
            let follows = entry.begin == end && entry.end >= entry.begin;
            assert!(follows, "entry {index}, {entry:?}, does not begin at candidate {end}");
            let (probe, sets) = (entry.probe, self.probes.len());
            assert!((probe as usize) < sets, "probe {probe} of {sets} sets in entry {index}");
            end = entry.end;
        }
        assert!(end as usize == pairs, "the entries end at {end} of {pairs} candidates");
        if let Some(greatest) = candidates.iter().max() {
            let sets = self.candidates.len();
            assert!((*greatest as usize) < sets, "candidate {greatest} of {sets} sets");
        }
    }

    /// Prefetches the tokens of the candidate at `index`, if there is one.
    #[inline(always)]
    pub(super) fn prefetch_candidate(self, index: usize) {
        if let Some(&candidate) = self.chunk.candidates.get(index) {
            let settled = self.chunk.starts.get(index).map_or(0, |start| start.candidate);
            let begin = self.candidates.offsets()[candidate as usize] + settled;
            prefetch(self.candidates.tokens(), begin as usize);
        }
    }

    /// The pair of a probe and the candidate at `index`.
    ///
    /// # Panics
    ///
    /// If its start is outside of the sets, or its overlap exceeds the settled tokens.
    #[inline(always)]
    pub(super) fn pair(self, probe: u32, index: usize) -> Pair<'a> {
        let chunk = self.chunk;
        let probe = probe as usize;
        let probe_on = &self.probes.tokens()[self.probes.offsets()[probe] as usize..];
        let probe_len = self.probes.set(probe).len();
        let candidate = chunk.candidates[index] as usize;
        let candidate_on =
            &self.candidates.tokens()[self.candidates.offsets()[candidate] as usize..];
        let candidate_len = self.candidates.set(candidate).len();
        let required = chunk.required[index];
        let Some(&start) = chunk.starts.get(index) else {
            return Pair { probe_on, probe_len, candidate_on, candidate_len, required, overlap: 0 };
        };
        let Start { probe: probe_at, candidate: candidate_at, overlap } = start;
        let left = (
            probe_on.get(probe_at as usize..),
            probe_len.checked_sub(probe_at as usize),
            candidate_on.get(candidate_at as usize..),
            candidate_len.checked_sub(candidate_at as usize),
        );
        // Each pair is checked: a device, or a level that reads whole registers, must not read
        // outside of the tokens.
        let (Some(probe_on), Some(probe_len), Some(candidate_on), Some(candidate_len)) = left
        else {
            start_is_outside(start, index, probe_len, candidate_len);
        };
        if overlap > probe_at.min(candidate_at) {
            start_is_outside(start, index, probe_len, candidate_len);
        }
        Pair { probe_on, probe_len, candidate_on, candidate_len, required, overlap }
    }
}

// The message is outside of the loop, so that each check is a comparison and a jump.
#[cold]
fn start_is_outside(start: Start, pair: usize, probe: usize, candidate: usize) -> ! {
    panic!("{start:?} of pair {pair}, of sets of {probe} and {candidate}")
}

impl<'a> Pair<'a> {
    /// Whether the remaining tokens cannot give the required overlap.
    #[inline(always)]
    pub(super) fn is_lost(&self, overlap: u32, probe_left: usize, candidate_left: usize) -> bool {
        // The sum has 64 bits: a required overlap of `u32::MAX` rejects every pair.
        u64::from(overlap) + (probe_left.min(candidate_left) as u64) < u64::from(self.required)
    }

    /// The tokens that may be in one set only, if `needed` remaining tokens must be common; `None`
    /// if fewer remain.
    #[inline(always)]
    pub(super) fn alone(&self, needed: usize) -> Option<Alone> {
        let probe = self.probe_len.checked_sub(needed)?;
        Some(Alone { probe, candidate: self.candidate_len.checked_sub(needed)? })
    }

    /// The remaining tokens of the probe.
    #[inline(always)]
    pub(super) fn probe(&self) -> &'a [u32] {
        &self.probe_on[..self.probe_len]
    }

    /// The remaining tokens of the candidate.
    #[inline(always)]
    pub(super) fn candidate(&self) -> &'a [u32] {
        &self.candidate_on[..self.candidate_len]
    }
}
