//! Sets of one size that follow each other.

use std::ops::Range;
use std::sync::Arc;

use super::tile::{PROBES_MAX, Tile};
use crate::sets::Sets;

/// The number of the run of each set; a run is sets of one size that follow each other. Sets of the
/// same size may be several runs. Clones share the numbers.
///
/// # Examples
///
/// ```
/// use trommel_kernels::sets::Sets;
/// use trommel_kernels::signatures::Runs;
///
/// let sets = Sets::new(&[0, 1, 2, 4], &[5, 8, 5, 8]);
/// assert_eq!(Runs::new(sets, [2, 3]).of_sets(), [0, 0, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct Runs {
    of_sets: Arc<[u32]>,
}

impl Runs {
    /// Runs that end at `ends`; the last run ends with the last set.
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

    /// The run of each set.
    #[must_use]
    pub fn of_sets(&self) -> &[u32] {
        &self.of_sets
    }

    /// Checks that tiles are of sets with these runs, and that all required overlaps of the tiles
    /// exist.
    ///
    /// # Panics
    ///
    /// If a tile is of other sets, or an overlap is missing.
    pub(crate) fn check(&self, tiles: &[Tile], required: &[u32]) {
        let of_sets = &self.of_sets;
        let sets = of_sets.len();
        for (index, tile) in tiles.iter().enumerate() {
            let (probes, candidates) = (
                tile.probe_begin as usize..tile.probe_end as usize,
                tile.candidate_begin as usize..tile.candidate_end as usize,
            );
            let is_there = |range: &Range<usize>| range.start < range.end;
            let fits = is_there(&probes)
                && probes.len() <= PROBES_MAX as usize
                && is_there(&candidates)
                && probes.end.max(candidates.end) <= sets
                && of_sets[probes.start] == of_sets[probes.end - 1];
            assert!(fits, "tile {index} has no place in {sets} sets with these runs: {tile:?}");
            let [first, last] = [candidates.start, candidates.end - 1].map(|set| of_sets[set]);
            let row = tile.row.wrapping_add(first) as usize;
            let end = row + (last - first) as usize;
            let known = required.len();
            assert!(end < known, "a required overlap at {end} of {known}, for tile {index}");
        }
    }
}
