//! The pairs that pass the tests.

use super::levels::BLOCK;
use super::limits::Limits;
use super::lists::POSITION_MAX;
use crate::overlap::{ChunkStore, Entry, Start, pair_number};
use crate::sets::Sets;

/// A posting as a probe, and the end of its hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeHits {
    /// The list.
    pub list: u32,
    /// The probe's place, as in [`Posting`](super::Posting).
    pub place: u32,
    /// The probe, without its side.
    pub probe: u32,
    /// The end of the hits of the probe.
    pub end: u32,
}

/// The hits of a call: the sets that probes found and that passed the block tests.
#[derive(Debug, Default)]
pub struct Hits {
    /// The probes that found sets, in order; the hits of a probe begin at the end of the hits of
    /// the previous probe.
    pub probes: Vec<ProbeHits>,
    /// The sets that were found, without their side; the vector is longer than the number of hits.
    pub sets: Vec<u32>,
    /// The places of the sets, as in [`Posting`](super::Posting).
    pub places: Vec<u32>,
    /// The number of hits.
    pub(super) len: usize,
}

impl Hits {
    /// The maximum number of bytes of `hits` hits.
    #[must_use]
    pub fn bytes(hits: usize) -> usize {
        let room = (hits + BLOCK).next_power_of_two();
        room * 2 * size_of::<u32>() + hits * size_of::<ProbeHits>()
    }

    pub(super) fn clear(&mut self) {
        self.probes.clear();
        self.len = 0;
    }

    /// Makes room for `len` hits and a block, since blocks are stored whole.
    #[inline(always)]
    pub(super) fn make_room(&mut self, len: usize) {
        if self.sets.len().min(self.places.len()) < len + BLOCK {
            self.grow(len + BLOCK);
        }
    }

    #[cold]
    fn grow(&mut self, len: usize) {
        let room = len.next_power_of_two();
        self.sets.resize(room, 0);
        self.places.resize(room, 0);
    }

    /// Writes the hits that pass the test by their own bounds, as pairs that start after the token
    /// of the hit. List `i` is the list of token `token_min + i`.
    ///
    /// # Shapes
    ///
    /// `sets`: the sets that the postings name, by size; `matches`: overwritten.
    ///
    /// # Panics
    ///
    /// If a set or a size does not exist.
    pub fn write_matches(
        &self,
        limits: &Limits,
        sets: Sets<'_>,
        token_min: u32,
        matches: &mut ChunkStore,
    ) {
        matches.clear();
        matches.resize(self.len);
        let (mut begin, mut kept) = (0, 0);
        for hits in &self.probes {
            let end = hits.end as usize;
            let (others, places) = (&self.sets[begin..end], &self.places[begin..end]);
            begin = end;
            let token = token_min + hits.list;
            let position = |place: u32, set: u32| match place & 0xffff {
                POSITION_MAX => position_of(token, sets.set(set as usize)),
                position => position,
            };
            let probe_at = position(hits.place, hits.probe);
            let row = limits.row(hits.place >> 16);
            let left = row.size.saturating_sub(probe_at);
            let of_row = limits.pairs(row);
            let first = kept;
            for (&candidate, &place) in others.iter().zip(places) {
                let limit = &of_row[((place >> 16) - row.rank_min) as usize];
                let candidate_at = position(place, candidate);
                let start = Start { probe: probe_at + 1, candidate: candidate_at + 1, overlap: 1 };
                // The pair is written first, and kept by an increment: there is no branch on the
                // test.
                matches.candidates[kept] = candidate;
                matches.required[kept] = limit.required;
                matches.starts[kept] = start;
                let is_near = candidate_at <= limit.position_max;
                kept += usize::from(is_near && limit.required <= left);
            }
            if kept > first {
                let (begin, end) = (pair_number(first), pair_number(kept));
                matches.entries.push(Entry { probe: hits.probe, begin, end });
            }
        }
        matches.resize(kept);
    }
}

/// The position of a token in a set that has it. Sets of more than 65,535 tokens are rare.
#[cold]
fn position_of(token: u32, set: &[u32]) -> u32 {
    let position = set.binary_search(&token).expect("the set is in the token's list");
    u32::try_from(position).expect("sets have fewer than 2^32 tokens")
}
