//! Candidate pairs on their way from the filters to the verification.
//!
//! A chunk describes itself: an entry names its probe and the range of its candidates, so a chunk
//! may end after any pair, and a probe's other candidates go on in the next one. Whoever verifies
//! it needs nothing else but the sets.

use trommel_kernels::Isa;
use trommel_kernels::overlap::{self, Chunk, ChunkStore, Cursor, Pairs, REJECTED, Start};

use super::joined_sets::JoinedSets;

/// Bytes of a pair: candidate, required overlap, start.
const PAIR_BYTES: usize = 2 * size_of::<u32>() + size_of::<Start>();

/// The most pairs for which there is room before there are any.
const ROOM_MAX: usize = 1 << 14;

/// Candidate pairs of a join, to be verified.
#[derive(Debug, Clone)]
pub struct CandidateChunk {
    store: ChunkStore,
    pairs_max: usize,
}

impl CandidateChunk {
    /// An empty chunk for about so many bytes of pairs: at least one pair.
    #[must_use]
    pub fn with_bytes(bytes: usize) -> Self {
        let pairs_max = Self::pairs_in(bytes);
        Self { store: ChunkStore::with_capacity(pairs_max.min(ROOM_MAX)), pairs_max }
    }

    /// How many pairs a chunk of so many bytes has room for.
    #[must_use]
    pub fn pairs_in(bytes: usize) -> usize {
        (bytes / PAIR_BYTES).max(1)
    }

    /// Bytes of a chunk with room for `pairs` pairs.
    #[cfg(test)]
    pub(crate) fn bytes_of(pairs: usize) -> usize {
        pairs * PAIR_BYTES
    }

    /// Takes as many bytes of pairs from now on.
    pub(crate) fn set_bytes(&mut self, bytes: usize) {
        self.pairs_max = Self::pairs_in(bytes);
    }

    /// How many pairs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// Bytes of its pairs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.len() * PAIR_BYTES + size_of_val(self.chunk().entries)
    }

    /// Drops all pairs and keeps the room.
    pub fn clear(&mut self) {
        self.store.clear();
    }

    /// The pairs as the kernels want them.
    #[must_use]
    pub fn chunk(&self) -> Chunk<'_> {
        self.store.as_chunk()
    }

    /// The pairs and the sets that they name.
    #[must_use]
    pub fn pairs<'a>(&'a self, sets: &'a JoinedSets) -> Pairs<'a> {
        let (probes, candidates) = (sets.probes().sets(), sets.candidates().sets());
        Pairs { probes, candidates, chunk: self.chunk() }
    }

    /// How many of the pairs are similar.
    #[must_use]
    pub fn count(&self, isa: Isa, sets: &JoinedSets) -> u64 {
        overlap::count(isa, self.pairs(sets))
    }

    /// The overlap of each pair, or `REJECTED`.
    pub(crate) fn verify(&self, isa: Isa, sets: &JoinedSets) -> Vec<u32> {
        let mut overlaps = vec![0; self.len()];
        overlap::verify(isa, self.pairs(sets), &mut overlaps);
        overlaps
    }

    /// The pairs that are similar, as probe, candidate and overlap.
    pub(crate) fn similar(&self, overlaps: &[u32]) -> impl Iterator<Item = (u32, u32, u32)> {
        let chunk = self.chunk();
        chunk.entries.iter().flat_map(move |entry| {
            let pairs = entry.begin as usize..entry.end as usize;
            let pairs = chunk.candidates[pairs.clone()].iter().zip(&overlaps[pairs]);
            let similar = pairs.filter(|&(_, &overlap)| overlap != REJECTED);
            similar.map(|(&candidate, &overlap)| (entry.probe, candidate, overlap))
        })
    }

    /// Whether there is no room for another pair.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.pairs_max
    }

    /// Adds a pair. Pairs of one probe follow each other.
    #[inline(always)]
    pub(crate) fn push(&mut self, probe: u32, candidate: u32, required: u32, start: Start) {
        self.store.push(probe, candidate, required, start);
    }

    /// Adds what is left of other pairs, as far as there is room.
    pub(crate) fn take(&mut self, pairs: &ChunkStore, cursor: &mut Cursor) {
        let room = self.pairs_max.saturating_sub(self.len());
        self.store.take(pairs, cursor, room);
    }
}
