//! What a call is given.

use std::sync::Arc;

use super::{PROBES_MAX, STRIP, WORDS};
use crate::postings::sign;
use crate::sets::Sets;

/// Probes of one size, and candidates that each of them is compared with.
///
/// A pair has a candidate of a smaller number than the probe; where the ranges overlap, that is the
/// triangle below the diagonal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Tile {
    /// The first probe.
    pub probe_begin: u32,
    /// Behind the last probe; all are of one run, and at most [`PROBES_MAX`].
    pub probe_end: u32,
    /// The first candidate.
    pub candidate_begin: u32,
    /// Behind the last candidate.
    pub candidate_end: u32,
    /// The first candidate of the first probe: those before it are done. Equal to
    /// `candidate_begin` where nothing is.
    pub resume: u32,
    /// Where the required overlaps with these probes are: that with a candidate of run `r` is
    /// `required[row + r]`, the sum taken modulo 2^32, so that a row may begin with any run.
    pub row: u32,
}

impl Tile {
    /// The strip of a candidate, as far as it belongs to the tile: its ends.
    fn strip_of(self, candidate: u32) -> (u32, u32) {
        let begin = candidate / STRIP * STRIP;
        (begin.max(self.candidate_begin), begin.saturating_add(STRIP).min(self.candidate_end))
    }

    /// What is left when the strips before `candidate` are done.
    pub(super) fn behind(self, candidate: u32) -> Self {
        let candidate_begin = candidate.min(self.candidate_end);
        let resume = self.resume.max(candidate_begin);
        Self { candidate_begin, resume, ..self }
    }

    /// What is left when all strips before that of `candidate` are done, and of that one all pairs
    /// before the one of this probe and candidate: the rest of the strip, and the strips behind it.
    pub(super) fn from(self, probe: u32, candidate: u32) -> impl Iterator<Item = Self> {
        let (begin, end) = self.strip_of(candidate);
        let strip = Self {
            probe_begin: probe,
            candidate_begin: begin,
            candidate_end: end,
            resume: candidate,
            ..self
        };
        let rest = self.behind(end);
        [strip, rest].into_iter().filter(|tile| tile.candidate_begin < tile.candidate_end)
    }

    /// How many strips of candidates it touches.
    #[must_use]
    pub fn strips(self) -> u32 {
        if self.candidate_begin >= self.candidate_end {
            return 0;
        }
        self.candidate_end.div_ceil(STRIP) - self.candidate_begin / STRIP
    }

    /// How many pairs it has; where the ranges overlap, those beyond the diagonal included.
    #[must_use]
    pub fn pairs(self) -> u64 {
        let probes = u64::from(self.probe_end.saturating_sub(self.probe_begin));
        probes * u64::from(self.candidate_end.saturating_sub(self.candidate_begin))
    }
}

/// A pair with the overlap that it requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Match {
    /// The probe.
    pub probe: u32,
    /// The set of the smaller number.
    pub candidate: u32,
    /// How many tokens both have.
    pub overlap: u32,
}

/// Sets of the same size that follow each other, numbered: the run of each set. Sets of one size
/// may be several runs. Clones share them.
#[derive(Clone, Debug)]
pub struct Runs {
    of_sets: Arc<[u32]>,
}

impl Runs {
    /// Runs that end at `ends`, the last one with the last set.
    ///
    /// # Panics
    ///
    /// If `ends` does not ascend to the number of sets, or the sets of a run differ in size.
    #[must_use]
    pub fn new(sets: Sets<'_>, ends: impl IntoIterator<Item = u32>) -> Self {
        let mut of_sets = Vec::with_capacity(sets.len());
        for (run, end) in (0..).zip(ends) {
            let begin = of_sets.len();
            let range = begin..end as usize;
            assert!(begin < range.end && range.end <= sets.len(), "run {run} of sets {range:?}");
            let size = |set: usize| sets.set(set).len();
            let is_even = range.clone().all(|set| size(set) == size(begin));
            assert!(is_even, "the sets {range:?} of run {run} differ in size");
            of_sets.resize(range.end, run);
        }
        let (len, sets) = (of_sets.len(), sets.len());
        assert!(len == sets, "the last run ends at set {len} of {sets}");
        Self { of_sets: of_sets.into() }
    }

    /// By set.
    #[must_use]
    pub fn of_sets(&self) -> &[u32] {
        &self.of_sets
    }

    /// Checks that tiles are of sets with these runs, and that there is all that they require.
    ///
    /// # Panics
    ///
    /// If it does not hold.
    pub(crate) fn check(&self, tiles: &[Tile], required: &[u32]) {
        let of_sets = &self.of_sets;
        let sets = of_sets.len();
        for (index, tile) in tiles.iter().enumerate() {
            let (probes, candidates) = (
                tile.probe_begin as usize..tile.probe_end as usize,
                tile.candidate_begin as usize..tile.candidate_end as usize,
            );
            let is_there = |range: &std::ops::Range<usize>| range.start < range.end;
            let fits = is_there(&probes)
                && probes.len() <= PROBES_MAX as usize
                && is_there(&candidates)
                && probes.end.max(candidates.end) <= sets
                && of_sets[probes.start] == of_sets[probes.end - 1];
            assert!(fits, "tile {index} of {sets} sets, {tile:?}");
            let [first, last] = [candidates.start, candidates.end - 1].map(|set| of_sets[set]);
            let row = tile.row.wrapping_add(first) as usize;
            let end = row + (last - first) as usize;
            let known = required.len();
            assert!(end < known, "a required overlap at {end} of {known}, for tile {index}");
        }
    }
}

/// The signatures of sets, laid out in strips: `[set / 32][word][set % 32]`, the last strip filled
/// up with zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signatures {
    words: usize,
    sets: usize,
    bits: Vec<u64>,
}

impl Signatures {
    /// Makes them, of so many words: 1, 2, 4 or 8.
    ///
    /// # Cost
    ///
    /// A multiplication and a store for each token; 8 B a word and set.
    ///
    /// # Panics
    ///
    /// If the number of words is another one.
    #[must_use]
    pub fn new(sets: Sets<'_>, words: usize) -> Self {
        let len = sets.len();
        let mut bits = vec![0; Self::len(len, words)];
        let mut signature = [0; WORDS[WORDS.len() - 1]];
        let strip = STRIP as usize;
        for set in 0..len {
            sign(sets.set(set), &mut signature[..words]);
            for (word, bits_of) in signature[..words].iter().enumerate() {
                bits[(set / strip * words + word) * strip + set % strip] = *bits_of;
            }
        }
        Self { words, sets: len, bits }
    }

    /// How many words those of so many sets are in all.
    pub(crate) fn len(sets: usize, words: usize) -> usize {
        sets.next_multiple_of(STRIP as usize) * words
    }

    /// The bytes that those of so many sets need.
    #[must_use]
    pub fn bytes(sets: usize, words: usize) -> usize {
        Self::len(sets, words) * size_of::<u64>()
    }

    /// Words of a signature.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// All of them, as laid out.
    #[must_use]
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }
}

/// Tiles of the pairs of sets.
///
/// # Shapes
///
/// `runs`: of these sets; tiles: see [`Tile`], their sets below the number of sets and their rows
/// within `required`, for all runs of their candidates.
#[derive(Clone, Copy, Debug)]
pub struct Tiles<'a> {
    /// The sets.
    pub sets: Sets<'a>,
    /// The run of each.
    pub runs: &'a Runs,
    /// What is to be joined.
    pub tiles: &'a [Tile],
    /// Rows of required overlaps, by run. What exceeds the sizes of both sets is met by no pair.
    pub required: &'a [u32],
}

impl Tiles<'_> {
    /// Checks all that the documentation of the type asks for, and that there are signatures of
    /// these sets.
    ///
    /// # Panics
    ///
    /// If it does not hold.
    pub(super) fn check(self, signatures: &Signatures) {
        let (sets, runs, signed) = (self.sets.len(), self.runs.of_sets().len(), signatures.sets);
        assert!(sets == signed, "{sets} sets need as many signatures, not {signed}");
        assert!(sets == runs, "{sets} sets need as many runs, not {runs}");
        self.runs.check(self.tiles, self.required);
    }

    /// The required overlap of the probes of a tile and a candidate.
    #[inline(always)]
    pub(super) fn required(self, tile: Tile, candidate: u32) -> u32 {
        let run = self.runs.of_sets()[candidate as usize];
        self.required[tile.row.wrapping_add(run) as usize]
    }
}
