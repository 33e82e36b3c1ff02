//! Tiles of all pairs of sets, for the kernels of signatures.

use trommel_kernels::sets::{SetStore, Sets};
use trommel_kernels::signatures::{Runs, Tile, Tiles};

use super::cases::{Numbers, narrow};

/// Sets by size, and tiles of all their pairs.
#[derive(Clone, Debug)]
pub(crate) struct TileCase {
    pub(crate) name: String,
    pub(crate) sets: SetStore,
    ends: Vec<u32>,
    pub(crate) tiles: Vec<Tile>,
    pub(crate) required: Vec<u32>,
}

/// The required overlap for a Jaccard similarity of 4/5.
fn required(left: u32, right: u32) -> u32 {
    (4 * (left + right)).div_ceil(9)
}

impl TileCase {
    /// A set of each size, from one of `families` families; tiles of `shape` probes and
    /// candidates.
    pub(crate) fn of_sizes(name: &str, sizes: &[usize], families: u32, shape: [usize; 2]) -> Self {
        let mut numbers = Numbers::new(5);
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable();
        let (mut offsets, mut all_tokens, mut ends) = (vec![0], Vec::new(), Vec::new());
        for (number, &size) in sizes.iter().enumerate() {
            let first = 10_000 * numbers.below(families);
            let tokens = (0..narrow(size)).map(|token| first + 2 * token);
            all_tokens.extend(tokens);
            if let Some(last) = all_tokens.last_mut().filter(|_| size > 0) {
                *last += numbers.below(2);
            }
            offsets.push(narrow(all_tokens.len()));
            if sizes.get(number + 1) != Some(&size) {
                ends.push(narrow(number + 1));
            }
        }
        let (name, sets) = (name.to_owned(), SetStore::new(offsets, all_tokens));
        let mut case = Self { name, sets, ends, tiles: Vec::new(), required: Vec::new() };
        case.cut(shape);
        case
    }

    fn cut(&mut self, [probes, candidates]: [usize; 2]) {
        let Self { sets, ends, tiles, required: rows, .. } = self;
        let size = |end: u32| narrow(sets.as_sets().set(end as usize - 1).len());
        let mut begin = 0;
        for (run, &end) in ends.iter().enumerate() {
            let row = narrow(rows.len());
            rows.extend(ends[..=run].iter().map(|other| required(size(end), size(*other))));
            for probe_begin in (begin..end).step_by(probes) {
                let probe_end = end.min(probe_begin + narrow(probes));
                for candidate_begin in (0..probe_end).step_by(candidates) {
                    let candidate_end = probe_end.min(candidate_begin + narrow(candidates));
                    let resume = candidate_begin;
                    tiles.push(Tile {
                        probe_begin,
                        probe_end,
                        candidate_begin,
                        candidate_end,
                        resume,
                        row,
                    });
                }
            }
            begin = end;
        }
    }

    pub(crate) fn sets(&self) -> Sets<'_> {
        self.sets.as_sets()
    }

    pub(crate) fn runs(&self) -> Runs {
        Runs::new(self.sets(), self.ends.iter().copied())
    }

    pub(crate) fn tiles<'a>(&'a self, runs: &'a Runs, list: &'a [Tile]) -> Tiles<'a> {
        Tiles { sets: self.sets(), runs, tiles: list, required: &self.required }
    }

    /// Room for matches: for all matches, for all but one, and so little room that many rounds are
    /// needed, but not too many.
    pub(crate) fn rooms(&self, matches: usize) -> [usize; 3] {
        let little = if matches > 200 { matches / 12 } else { 1 + matches / 30 };
        [matches.max(1), little, matches.saturating_sub(1).max(1)]
    }
}

/// All cases.
pub(crate) fn all() -> Vec<TileCase> {
    let mut cases = Vec::new();
    for sets in [0, 1, 31, 32, 33, 63, 65, 127, 128, 129] {
        let shape = if sets % 2 == 0 { [128, 1024] } else { [20, 50] };
        cases.push(TileCase::of_sizes(&format!("{sets} sets"), &vec![6; sets], 4, shape));
    }
    let sizes: Vec<usize> =
        (0..90).map(|number| [0, 1, 2, 9, 10, 10, 11, 63, 65, 300][number * 7 % 10]).collect();
    cases.push(TileCase::of_sizes("many sizes", &sizes, 2, [128, 4096]));
    cases.push(TileCase::of_sizes("small tiles of many sizes", &sizes, 2, [3, 37]));
    cases.push(TileCase::of_sizes("skewed", &[3, 4000, 1, 4000, 4001, 40, 700], 1, [128, 128]));
    cases.push(TileCase::of_sizes("equal sets", &[5; 70], 1, [128, 128]));
    cases
}
