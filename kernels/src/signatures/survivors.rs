//! Pairs that the signatures have let through, on their way to the overlap.

use super::call::Match;
use crate::Isa;
use crate::overlap::{self, Chunk, Entry, Pairs, REJECTED};
use crate::sets::Sets;

/// Pairs that the signatures have let through, in the order in which they were found: strip by
/// strip, and in a strip by probe.
#[derive(Debug, Default)]
pub struct Survivors {
    entries: Vec<Entry>,
    candidates: Vec<u32>,
    required: Vec<u32>,
    overlaps: Vec<u32>,
}

impl Survivors {
    /// The number of survivors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Whether there is no survivor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    /// The pairs as a chunk for verification, from their first tokens.
    #[must_use]
    pub fn chunk(&self) -> Chunk<'_> {
        let Self { entries, candidates, required, .. } = self;
        Chunk { entries, candidates, required, starts: &[] }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.candidates.clear();
        self.required.clear();
        self.overlaps.clear();
    }

    /// Adds a pair.
    pub(super) fn push(&mut self, probe: u32, candidate: u32, required: u32) {
        self.candidates.push(candidate);
        self.required.push(required);
        let end = u32::try_from(self.candidates.len()).expect("a few thousand");
        match self.entries.last_mut() {
            Some(entry) if entry.probe == probe => entry.end = end,
            _ => self.entries.push(Entry { probe, begin: end - 1, end }),
        }
    }

    fn pairs<'a>(&'a self, sets: Sets<'a>) -> Pairs<'a> {
        Pairs { probes: sets, candidates: sets, chunk: self.chunk() }
    }

    /// Finds the overlaps of all survivors.
    pub(super) fn verify(&mut self, isa: Isa, sets: Sets<'_>) {
        let mut overlaps = std::mem::take(&mut self.overlaps);
        overlaps.resize(self.len(), 0);
        overlap::verify(isa, self.pairs(sets), &mut overlaps);
        self.overlaps = overlaps;
    }

    /// The number of survivors that have their required overlap.
    pub(super) fn count(&self, isa: Isa, sets: Sets<'_>) -> u64 {
        overlap::count(isa, self.pairs(sets))
    }

    /// Adds the survivors that have their required overlap to `matches`, at most `room`. Returns
    /// the number of settled survivors, and the pair that did not fit.
    pub(super) fn take(
        &self,
        room: usize,
        matches: &mut Vec<Match>,
    ) -> (usize, Option<(u32, u32)>) {
        let full = matches.len() + room;
        for &Entry { probe, begin, end } in &self.entries {
            for index in begin as usize..end as usize {
                let (candidate, overlap) = (self.candidates[index], self.overlaps[index]);
                if overlap == REJECTED {
                    continue;
                }
                if matches.len() == full {
                    return (index, Some((probe, candidate)));
                }
                matches.push(Match { probe, candidate, overlap });
            }
        }
        (self.len(), None)
    }
}
