//! Tiles of pairs, and the strips of their candidates.

/// Sets of a strip.
pub const STRIP: u32 = 32;

/// The maximum number of probes of a tile.
pub const PROBES_MAX: u32 = 128;

/// Probes of one size, and the candidates with which each probe is compared.
///
/// The candidate of a pair has a smaller number than the probe; where the ranges overlap, the pairs
/// are the triangle below the diagonal.
///
/// # Examples
///
/// ```
/// use trommel_kernels::signatures::Tile;
///
/// let tile = Tile { probe_begin: 90, probe_end: 100, candidate_end: 70, ..Tile::default() };
/// assert_eq!((tile.strips(), tile.pairs()), (3, 700));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Tile {
    /// The first probe.
    pub probe_begin: u32,
    /// The end of the probes; there are at most [`PROBES_MAX`] probes, all of one run.
    pub probe_end: u32,
    /// The first candidate.
    pub candidate_begin: u32,
    /// The end of the candidates.
    pub candidate_end: u32,
    /// The first candidate of the first probe; earlier candidates are done. Equal to
    /// `candidate_begin` if no candidate is done.
    pub resume: u32,
    /// The row of required overlaps with these probes: a candidate of run `r` requires
    /// `required[row + r]`. The sum is taken modulo 2^32, so that a row may begin with any run.
    pub row: u32,
}

impl Tile {
    /// The begin and the end of the strip of a candidate, as far as it belongs to the tile.
    fn strip_of(self, candidate: u32) -> (u32, u32) {
        let begin = candidate / STRIP * STRIP;
        (begin.max(self.candidate_begin), begin.saturating_add(STRIP).min(self.candidate_end))
    }

    /// The part of the tile that remains when the strips before `candidate` are done.
    pub(super) fn after(self, candidate: u32) -> Self {
        let candidate_begin = candidate.min(self.candidate_end);
        let resume = self.resume.max(candidate_begin);
        Self { candidate_begin, resume, ..self }
    }

    /// The part of the tile that remains when all strips before the strip of `candidate` are done,
    /// and all pairs of that strip before this probe and candidate: the remaining pairs of the
    /// strip, and the later strips.
    pub(super) fn rest_from(self, probe: u32, candidate: u32) -> impl Iterator<Item = Self> {
        let (begin, end) = self.strip_of(candidate);
        let strip = Self {
            probe_begin: probe,
            candidate_begin: begin,
            candidate_end: end,
            resume: candidate,
            ..self
        };
        let rest = self.after(end);
        [strip, rest].into_iter().filter(|tile| tile.candidate_begin < tile.candidate_end)
    }

    /// The number of strips of candidates that the tile touches.
    #[must_use]
    pub fn strips(self) -> u32 {
        if self.candidate_begin >= self.candidate_end {
            return 0;
        }
        self.candidate_end.div_ceil(STRIP) - self.candidate_begin / STRIP
    }

    /// The number of pairs of the tile; where the ranges overlap, the pairs above the diagonal
    /// count too.
    #[must_use]
    pub fn pairs(self) -> u64 {
        let probes = u64::from(self.probe_end.saturating_sub(self.probe_begin));
        probes * u64::from(self.candidate_end.saturating_sub(self.candidate_begin))
    }
}
