//! Chunks of candidate pairs, borrowed or owned.

/// A probe set and the range of its candidates in the chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Entry {
    /// The number of the probe set.
    pub probe: u32,
    /// The index of its first candidate.
    pub begin: u32,
    /// The index after its last candidate.
    pub end: u32,
}

/// The beginning of the verification of a pair, past the tokens that a filter has counted.
///
/// `overlap` common tokens are before at least one of the two positions, and all further common
/// tokens are after both. This condition holds past the first common token, and past prefixes whose
/// common tokens have been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Start {
    /// Tokens of the probe that are settled.
    pub probe: u32,
    /// Tokens of the candidate that are settled.
    pub candidate: u32,
    /// Common tokens among the settled tokens.
    pub overlap: u32,
}

impl Start {
    /// Whether the start is within sets of these numbers of tokens.
    #[inline(always)]
    pub(super) fn is_within(self, probe: usize, candidate: usize) -> bool {
        (self.probe as usize <= probe)
            & (self.candidate as usize <= candidate)
            & (self.overlap <= self.probe.min(self.candidate))
    }
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
    /// The beginning of each pair; empty if all pairs begin with their first tokens.
    pub starts: &'a [Start],
}

/// Room for a chunk, which is filled again and again.
///
/// # Examples
///
/// ```
/// use trommel_kernels::overlap::{ChunkStore, Cursor, Start};
///
/// let mut chunk = ChunkStore::with_capacity(3);
/// for candidate in 0..3 {
///     chunk.push(7, candidate, 2, Start::default());
/// }
/// assert_eq!(chunk.as_chunk().entries.len(), 1, "pairs of one probe share an entry");
///
/// let (mut part, mut cursor) = (ChunkStore::default(), Cursor::default());
/// part.take(&chunk, &mut cursor, 2);
/// assert_eq!(part.as_chunk().candidates, [0, 1]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ChunkStore {
    pub(crate) entries: Vec<Entry>,
    pub(crate) candidates: Vec<u32>,
    pub(crate) required: Vec<u32>,
    pub(crate) starts: Vec<Start>,
}

impl ChunkStore {
    /// An empty chunk, with room for `pairs` pairs.
    #[must_use]
    pub fn with_capacity(pairs: usize) -> Self {
        Self {
            entries: Vec::new(),
            candidates: Vec::with_capacity(pairs),
            required: Vec::with_capacity(pairs),
            starts: Vec::with_capacity(pairs),
        }
    }

    /// The maximum number of bytes of `pairs` pairs.
    #[must_use]
    pub fn bytes(pairs: usize) -> usize {
        let of_pair = size_of::<Entry>() + 2 * size_of::<u32>() + size_of::<Start>();
        pairs * of_pair
    }

    /// The chunk. The call costs nothing.
    #[must_use]
    pub fn as_chunk(&self) -> Chunk<'_> {
        Chunk {
            entries: &self.entries,
            candidates: &self.candidates,
            required: &self.required,
            starts: &self.starts,
        }
    }

    /// The number of pairs.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Whether there is no pair.
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

    /// Adds the pairs of another chunk from the cursor on, at most `pairs_max`.
    ///
    /// # Panics
    ///
    /// If the cursor is of another chunk, or this chunk becomes too long.
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

    /// Changes the length to `pairs` pairs; new pairs have no meaning yet.
    pub(crate) fn resize(&mut self, pairs: usize) {
        self.candidates.resize(pairs, 0);
        self.required.resize(pairs, 0);
        self.starts.resize(pairs, Start::default());
    }
}

/// The position in a chunk that is taken in parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    entry: usize,
    pair: usize,
}

/// The index of a pair, or the number of pairs.
pub(crate) fn pair_number(pairs: usize) -> u32 {
    u32::try_from(pairs).expect("a chunk has fewer than 2^32 pairs")
}
