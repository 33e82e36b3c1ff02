//! The arguments of a call: chunks of candidates, and where to begin.

use crate::prefetch::prefetch;
use crate::sets::Sets;

/// A probe set and the range of its candidates in the chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Entry {
    /// The number of the probe set.
    pub probe: u32,
    /// The index of its first candidate.
    pub begin: u32,
    /// The index behind its last candidate.
    pub end: u32,
}

/// Where the verification of a pair begins: what a filter has already counted.
///
/// `overlap` of the common tokens are before one of the positions, and all others behind both. This
/// holds behind the first common token, and behind prefixes whose common tokens have been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Start {
    /// Tokens of the probe that are settled.
    pub probe: u32,
    /// Tokens of the candidate that are settled.
    pub candidate: u32,
    /// How many of the settled tokens both sets have.
    pub overlap: u32,
}

/// A part of the candidate pairs of a join.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chunk<'a> {
    /// Entries in the order of their ranges, which follow each other without gaps from 0 to the
    /// number of candidates. A probe may have several entries, and an entry no candidates.
    pub entries: &'a [Entry],
    /// The number of the candidate set of each pair.
    pub candidates: &'a [u32],
    /// The overlap that each pair requires.
    pub required: &'a [u32],
    /// Where each pair begins; all from their first tokens when it is empty.
    pub starts: &'a [Start],
}

/// Room for a chunk, to be filled again and again.
#[derive(Clone, Debug, Default)]
pub struct ChunkStore {
    pub(crate) entries: Vec<Entry>,
    pub(crate) candidates: Vec<u32>,
    pub(crate) required: Vec<u32>,
    pub(crate) starts: Vec<Start>,
}

impl ChunkStore {
    /// An empty chunk, with room for so many pairs.
    #[must_use]
    pub fn with_capacity(pairs: usize) -> Self {
        Self {
            entries: Vec::new(),
            candidates: Vec::with_capacity(pairs),
            required: Vec::with_capacity(pairs),
            starts: Vec::with_capacity(pairs),
        }
    }

    /// Bytes that so many pairs take at most.
    #[must_use]
    pub fn bytes(pairs: usize) -> usize {
        let of_pair = size_of::<Entry>() + 2 * size_of::<u32>() + size_of::<Start>();
        pairs * of_pair
    }

    /// The chunk. Free.
    #[must_use]
    pub fn as_chunk(&self) -> Chunk<'_> {
        Chunk {
            entries: &self.entries,
            candidates: &self.candidates,
            required: &self.required,
            starts: &self.starts,
        }
    }

    /// How many pairs there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    /// Drops all pairs and keeps the room.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.candidates.clear();
        self.required.clear();
        self.starts.clear();
    }

    /// Adds a pair. Pairs of one probe follow each other.
    #[inline(always)]
    pub fn push(&mut self, probe: u32, candidate: u32, required: u32, start: Start) {
        self.candidates.push(candidate);
        self.required.push(required);
        self.starts.push(start);
        let end = pair_number(self.candidates.len());
        match self.entries.last_mut() {
            Some(entry) if entry.probe == probe => entry.end = end,
            _ => self.begin_entry(probe, end),
        }
    }

    /// Begins the entry of a probe with its first pair.
    fn begin_entry(&mut self, probe: u32, end: u32) {
        self.entries.push(Entry { probe, begin: end - 1, end });
    }

    /// Adds what is left of another chunk, but at most so many pairs.
    ///
    /// # Panics
    ///
    /// If the cursor is of another chunk, or this one becomes too long.
    pub fn take(&mut self, other: &Self, cursor: &mut Cursor, pairs_max: usize) {
        let chunk = other.as_chunk();
        let (from, base) = (cursor.pair, self.len());
        let to = chunk.candidates.len().min(from.saturating_add(pairs_max));
        self.candidates.extend_from_slice(&chunk.candidates[from..to]);
        self.required.extend_from_slice(&chunk.required[from..to]);
        self.starts.extend_from_slice(&chunk.starts[from..to]);
        let place = |pair: usize| pair_number(base + pair.clamp(from, to) - from);
        while cursor.pair < to {
            let Entry { probe, begin, end } = chunk.entries[cursor.entry];
            let (begin, end) = (begin as usize, end as usize);
            self.entries.push(Entry { probe, begin: place(begin), end: place(end) });
            cursor.pair = end.min(to);
            cursor.entry += usize::from(end <= to);
        }
    }

    /// Makes it so many pairs long, of which the new ones mean nothing yet.
    pub(crate) fn resize(&mut self, pairs: usize) {
        self.candidates.resize(pairs, 0);
        self.required.resize(pairs, 0);
        self.starts.resize(pairs, Start::default());
    }
}

/// How far a chunk has been handed over that is taken in parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    entry: usize,
    pair: usize,
}

/// The index of a pair, or how many there are.
pub(crate) fn pair_number(pairs: usize) -> u32 {
    u32::try_from(pairs).expect("a chunk has fewer than 2^32 pairs")
}

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
    /// The tokens of the probe that are left.
    pub(super) probe: &'a [u32],
    /// The tokens of the candidate that are left, and those of the sets behind it.
    pub(super) candidate_on: &'a [u32],
    /// How many of those are the candidate's.
    pub(super) candidate_len: usize,
    /// What the pair requires.
    pub(super) required: u32,
    /// What has been counted.
    pub(super) overlap: u32,
}

/// Takes the answers.
pub(super) trait Sink {
    /// Whether it needs the overlap of a pair, or only that it suffices.
    const NEEDS_OVERLAP: bool;
    /// The answer for one pair.
    fn take(&mut self, pair: usize, overlap: u32);
}

impl<'a> Pairs<'a> {
    /// Checks all that the documentation of the type asks for, before it is left to a device.
    ///
    /// # Panics
    ///
    /// If it does not hold.
    pub(crate) fn check(self) {
        self.check_shapes();
        for entry in self.chunk.entries {
            for index in entry.begin as usize..entry.end as usize {
                let _ = self.pair(entry.probe, index);
            }
        }
    }

    /// Checks all but the starts, which [`Self::pair`] checks.
    ///
    /// # Panics
    ///
    /// If it does not hold.
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
            assert!(follows, "entry {index}, {entry:?}, does not go on at candidate {end}");
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

    /// Asks for the tokens of the candidate at `index`, if there is one.
    #[inline(always)]
    pub(super) fn ask_for(self, index: usize) {
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
    /// If its start is outside of the sets, or counts more than is before it.
    #[inline(always)]
    pub(super) fn pair(self, probe: u32, index: usize) -> Pair<'a> {
        let chunk = self.chunk;
        let probe = self.probes.set(probe as usize);
        let candidate = chunk.candidates[index] as usize;
        let candidate_on =
            &self.candidates.tokens()[self.candidates.offsets()[candidate] as usize..];
        let candidate_len = self.candidates.set(candidate).len();
        let required = chunk.required[index];
        let Some(&start) = chunk.starts.get(index) else {
            return Pair { probe, candidate_on, candidate_len, required, overlap: 0 };
        };
        let Start { probe: probe_at, candidate: candidate_at, overlap } = start;
        let left = (
            probe.get(probe_at as usize..),
            candidate_on.get(candidate_at as usize..),
            candidate_len.checked_sub(candidate_at as usize),
        );
        let (Some(probe), Some(candidate_on), Some(candidate_len)) = left else {
            start_is_outside(start, index, probe.len(), candidate_len);
        };
        if overlap > probe_at.min(candidate_at) {
            start_is_outside(start, index, probe.len(), candidate_len);
        }
        Pair { probe, candidate_on, candidate_len, required, overlap }
    }
}

#[cold]
fn start_is_outside(start: Start, pair: usize, probe: usize, candidate: usize) -> ! {
    panic!("{start:?} of pair {pair}, of sets of {probe} and {candidate}")
}

impl<'a> Pair<'a> {
    /// Whether the pair is lost when this many tokens of its sets are left.
    #[inline(always)]
    pub(super) fn is_lost(&self, overlap: u32, probe_left: usize, candidate_left: usize) -> bool {
        u64::from(overlap) + (probe_left.min(candidate_left) as u64) < u64::from(self.required)
    }

    /// The tokens of the candidate that are left.
    #[inline(always)]
    pub(super) fn candidate(&self) -> &'a [u32] {
        &self.candidate_on[..self.candidate_len]
    }
}
