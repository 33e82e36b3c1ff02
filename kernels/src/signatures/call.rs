//! The arguments of a call, and its matches.

use super::runs::Runs;
use super::signed::Signatures;
use super::tile::Tile;
use crate::sets::Sets;

/// A pair that has its required overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Match {
    /// The probe.
    pub probe: u32,
    /// The candidate, which has the smaller number.
    pub candidate: u32,
    /// The number of common tokens.
    pub overlap: u32,
}

/// Tiles of the pairs of sets.
///
/// # Shapes
///
/// `runs`: the runs of these sets; tiles: see [`Tile`]; the sets of tiles are below the number of
/// sets, and their rows are within `required`, for all runs of their candidates.
#[derive(Clone, Copy, Debug)]
pub struct Tiles<'a> {
    /// The sets.
    pub sets: Sets<'a>,
    /// The run of each set.
    pub runs: &'a Runs,
    /// The pairs to be joined.
    pub tiles: &'a [Tile],
    /// Rows of required overlaps, by run. No pair reaches an overlap that exceeds the size of a
    /// set.
    pub required: &'a [u32],
}

impl Tiles<'_> {
    /// Checks the shapes that the type documents, and that the signatures are of these sets.
    ///
    /// # Panics
    ///
    /// If a shape is not as documented.
    pub(super) fn check(self, signatures: &Signatures) {
        let (sets, runs, signed) = (self.sets.len(), self.runs.of_sets().len(), signatures.sets());
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
