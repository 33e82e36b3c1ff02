//! Chunks of candidate pairs, from the filters to the verification.
//!
//! An entry of a chunk has its probe and both ends of its range of candidates. So a chunk can end
//! after any pair: the remaining candidates of the probe follow in the next chunk. The verification
//! of a chunk needs nothing but the sets.

use trommel_kernels::Isa;
use trommel_kernels::overlap::{self, Chunk, ChunkStore, Cursor, Pairs, REJECTED, Start};

use super::joined_sets::JoinedSets;

/// Bytes of a pair: candidate, required overlap, start.
const PAIR_BYTES: usize = 2 * size_of::<u32>() + size_of::<Start>();

/// Maximum number of pairs for which a new chunk allocates memory; a chunk with more pairs grows.
const ROOM_MAX: usize = 1 << 14;

/// A chunk of candidate pairs of a [`SetJoin`](super::super::SetJoin), to be verified.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use trommel_operators::Isa;
/// use trommel_operators::set_similarity_join::{
///     CandidateChunk, JoinAlgorithm, SetCollector, SetJoin, Side, Similarity,
/// };
///
/// let mut sets = SetCollector::new(1 << 20);
/// for id in 0..4 {
///     sets.push(Side::Left, id, &[1, 2, 3 + id])?;
/// }
/// let (sets, isa) = (Arc::new(sets.finish()?), Isa::selected()?);
/// let half = "1/2".parse()?;
/// let mut join = SetJoin::new(&sets, Similarity::Jaccard, half, JoinAlgorithm::AllPairs, isa)?;
///
/// // Room for one pair: the six candidate pairs come in six chunks.
/// let mut chunk = CandidateChunk::with_bytes(1);
/// let mut chunks = 0;
/// while join.next_chunk(&mut chunk) {
///     assert_eq!(chunk.len(), 1);
///     chunks += 1;
/// }
/// assert_eq!(chunks, 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct CandidateChunk {
    store: ChunkStore,
    pairs_max: usize,
}

impl CandidateChunk {
    /// An empty chunk for about `bytes` bytes of pairs, at least one pair.
    #[must_use]
    pub fn with_bytes(bytes: usize) -> Self {
        let pairs_max = Self::pairs_in(bytes);
        Self { store: ChunkStore::with_capacity(pairs_max.min(ROOM_MAX)), pairs_max }
    }

    /// Number of pairs that a chunk of `bytes` bytes has room for, at least 1.
    #[must_use]
    pub fn pairs_in(bytes: usize) -> usize {
        (bytes / PAIR_BYTES).max(1)
    }

    /// Bytes of a chunk with room for `pairs` pairs.
    #[cfg(test)]
    pub(crate) fn bytes_of(pairs: usize) -> usize {
        pairs * PAIR_BYTES
    }

    /// Limits the chunk to about `bytes` bytes of pairs from now on.
    pub(crate) fn set_bytes(&mut self, bytes: usize) {
        self.pairs_max = Self::pairs_in(bytes);
    }

    /// Number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there is no pair.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// Bytes of the pairs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.len() * PAIR_BYTES + size_of_val(self.chunk().entries)
    }

    /// Removes all pairs and keeps the memory.
    pub fn clear(&mut self) {
        self.store.clear();
    }

    /// The pairs in the form of the kernels.
    #[must_use]
    pub fn chunk(&self) -> Chunk<'_> {
        self.store.as_chunk()
    }

    /// The pairs with their `sets`, in the form of the kernels.
    #[must_use]
    pub fn pairs<'a>(&'a self, sets: &'a JoinedSets) -> Pairs<'a> {
        let (probes, candidates) = (sets.probes().sets(), sets.candidates().sets());
        Pairs { probes, candidates, chunk: self.chunk() }
    }

    /// Verifies the pairs and counts the similar pairs. If sets stand for their copies, the count
    /// includes the pairs of copies.
    #[must_use]
    pub fn count(&self, isa: Isa, sets: &JoinedSets) -> u64 {
        let Some(copies) = sets.copies() else { return overlap::count(isa, self.pairs(sets)) };
        let count = |set: u32| u64::from(copies[set as usize]);
        let overlaps = self.verify(isa, sets);
        self.similar(&overlaps).map(|(probe, candidate, _)| count(probe) * count(candidate)).sum()
    }

    /// Verifies the pairs. Per pair: its overlap, or `REJECTED` if the pair is not similar.
    pub(crate) fn verify(&self, isa: Isa, sets: &JoinedSets) -> Vec<u32> {
        let mut overlaps = vec![0; self.len()];
        overlap::verify(isa, self.pairs(sets), &mut overlaps);
        overlaps
    }

    /// The similar pairs, given the `overlaps` of all pairs: probe, candidate and overlap.
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

    /// Adds a pair. All pairs of one probe have to be consecutive.
    #[inline(always)]
    pub(crate) fn push(&mut self, probe: u32, candidate: u32, required: u32, start: Start) {
        self.store.push(probe, candidate, required, start);
    }

    /// Adds the pairs of `pairs` from `cursor` on, as far as there is room, and moves `cursor` on.
    pub(crate) fn take(&mut self, pairs: &ChunkStore, cursor: &mut Cursor) {
        let room = self.pairs_max.saturating_sub(self.len());
        self.store.take(pairs, cursor, room);
    }
}
