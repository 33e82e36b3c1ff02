//! Tiles: blocks of probes and candidates whose pairs are all tested by signatures.
//!
//! A *run* is the sets of one size and side. The sets of a run are probes; the candidates of a
//! probe are all earlier sets, from the smallest partner size on. Both ranges are cut into tiles,
//! and tiles are packed into chunks:
//!
//! ```text
//!   runs        | size 3 |  size 4   | size 5 |  size 6  | ..
//!   candidates           |<── of size 5 ─────>|            probes: the sets of size 5
//!   tiles                | .. 1024 .. | 1024 |             128 probes each
//! ```
//!
//! The required overlap of a pair depends on its two runs only. So all tiles of a run of probes
//! and a block of candidates share one *row*: a required overlap per run of the block.

use std::sync::{Arc, OnceLock};

use trommel_kernels::Isa;
use trommel_kernels::cuda::signatures::TileLimits;
use trommel_kernels::signatures::{
    Match, PROBES_MAX, Runs, STRIP, Signatures, Tile, Tiles, words_for_mean_size,
};

use super::joined_sets::JoinedSets;
use crate::set_similarity_join::parameters::error::JoinError;
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::budget::Budget;
use crate::shared::sets::{SetCollection, Side};

/// Maximum number of candidates of a tile, hence of required overlaps in a row.
const CANDIDATES_MAX: u32 = 1024;

/// Maximum number of strips of a tile. There is one additional strip if the candidates do not begin
/// with a strip.
const TILE_STRIPS_MAX: usize = (CANDIDATES_MAX / STRIP) as usize + 1;

/// The sets of one size and side.
#[derive(Debug, Clone, Copy)]
struct SetRun {
    size: u32,
    /// Rank of the size.
    rank: usize,
    side: Side,
    begin: u32,
    end: u32,
}

/// The sets of a join with the runs and signatures of their tiles.
#[derive(Debug)]
pub(crate) struct TiledSets {
    sets: JoinedSets,
    collection: Arc<SetCollection>,
    list: Vec<SetRun>,
    runs: Runs,
    words: usize,
    /// Signatures for the CPU; a device computes signatures itself.
    signatures: OnceLock<Signatures>,
}

impl TiledSets {
    /// The sets of `collection` with their runs.
    ///
    /// # Errors
    /// If runs and signatures do not fit the memory.
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let sets = collection.len();
        let words = words_for_mean_size(collection.tokens() / sets.max(1));
        let runs_bytes = sets * size_of::<u32>() + 2 * size_of_val(collection.sizes());
        budget.take("the index", Signatures::bytes(sets, words) + runs_bytes)?;
        let list = runs_of(collection);
        let runs = Runs::new(collection.sets(), list.iter().map(|run| run.end));
        let sets = JoinedSets::Collection(Arc::clone(collection));
        let (collection, signatures) = (Arc::clone(collection), OnceLock::new());
        Ok(Self { sets, collection, list, runs, words, signatures })
    }

    /// The sets that the numbers in tiles refer to.
    pub(crate) fn sets(&self) -> &JoinedSets {
        &self.sets
    }

    /// Words of a signature.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// The signatures. The first call computes the signatures on the level `isa`.
    pub(crate) fn signatures(&self, isa: Isa) -> &Signatures {
        self.signatures.get_or_init(|| Signatures::new(isa, self.collection.sets(), self.words))
    }

    /// Tiles of these sets in the form of the kernels.
    pub(crate) fn tiles<'a>(&'a self, tiles: &'a [Tile], required: &'a [u32]) -> Tiles<'a> {
        Tiles { sets: self.collection.sets(), runs: &self.runs, tiles, required }
    }
}

/// The runs in the order of the sets: the left sets of a size come before the right sets.
fn runs_of(collection: &SetCollection) -> Vec<SetRun> {
    let mut list = Vec::new();
    for (rank, sizes) in collection.sizes().iter().enumerate() {
        let is_left = |set: &u32| collection.side(*set) == Side::Left;
        let left = (sizes.begin..sizes.end).filter(is_left).count();
        let middle = sizes.begin + u32::try_from(left).expect("sets have 32-bit numbers");
        for (side, begin, end) in
            [(Side::Left, sizes.begin, middle), (Side::Right, middle, sizes.end)]
        {
            if begin < end {
                list.push(SetRun { size: sizes.size, rank, side, begin, end });
            }
        }
    }
    list
}

/// Tiles with their rows of required overlaps.
#[derive(Debug, Clone, Default)]
pub(crate) struct TileList {
    pub(crate) tiles: Vec<Tile>,
    pub(crate) required: Vec<u32>,
    strips: usize,
    strips_max: usize,
}

impl TileList {
    /// An empty list of about `bytes`, counting one unfinished tile per strip; at least one tile
    /// fits.
    pub(crate) fn with_bytes(bytes: usize) -> Self {
        Self { strips_max: Self::strips_in(bytes), ..Self::default() }
    }

    /// Limits the list to about `bytes` from now on.
    pub(crate) fn set_bytes(&mut self, bytes: usize) {
        self.strips_max = Self::strips_in(bytes);
    }

    fn strips_in(bytes: usize) -> usize {
        (bytes / size_of::<Tile>()).max(TILE_STRIPS_MAX)
    }

    /// Maximum content of a list of `bytes` bytes, with the number of matches of its answer.
    pub(crate) fn limits(bytes: usize) -> TileLimits {
        let strips = Self::strips_in(bytes);
        let matches = (bytes / size_of::<Match>()).max(1);
        TileLimits { tiles: strips, strips, required: strips + CANDIDATES_MAX as usize, matches }
    }

    /// Replaces the tiles by `tiles`, which use the same rows.
    pub(crate) fn replace(&mut self, tiles: &mut Vec<Tile>) {
        std::mem::swap(&mut self.tiles, tiles);
        tiles.clear();
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.tiles[..]) + size_of_val(&self.required[..])
    }

    /// Number of pairs of the tiles.
    pub(crate) fn pairs(&self) -> u64 {
        self.tiles.iter().map(|tile| tile.pairs()).sum()
    }

    pub(crate) fn clear(&mut self) {
        self.tiles.clear();
        self.required.clear();
        self.strips = 0;
    }

    /// Whether there is no room for another row or for a tile.
    fn is_full(&self) -> bool {
        !self.has_room_for_tile() || self.required.len() > self.strips_max
    }

    fn has_room_for_tile(&self) -> bool {
        self.strips + TILE_STRIPS_MAX <= self.strips_max
    }

    fn push(&mut self, tile: Tile) {
        self.strips += tile.strips() as usize;
        self.tiles.push(tile);
    }
}

/// Cuts the pairs of sets into tiles.
///
/// A tiler walks over runs of probes, for each run over blocks of candidates, and for each block
/// over the probes of the run. The tiler keeps its position between calls.
#[derive(Debug)]
pub(crate) struct Tiler {
    sets: Arc<TiledSets>,
    bounds: Bounds,
    /// By rank: whether the sets of this size are probes.
    ranks: Vec<bool>,
    /// Run of the next probes.
    run: usize,
    /// First run of the partners of the next probes.
    first_partner: usize,
    /// Start of the next block of candidates.
    candidate: u32,
    /// Next probe for the next block of candidates.
    probe: u32,
}

impl Tiler {
    /// A tiler for the probes of the sizes marked in `ranks`, by rank.
    pub(crate) fn new(sets: &Arc<TiledSets>, bounds: Bounds, ranks: Vec<bool>) -> Self {
        let sets = Arc::clone(sets);
        let mut tiler =
            Self { sets, bounds, ranks, run: 0, first_partner: 0, candidate: 0, probe: 0 };
        tiler.begin_run();
        tiler
    }

    pub(crate) fn sets(&self) -> &Arc<TiledSets> {
        &self.sets
    }

    /// Number of pairs of all tiles.
    pub(crate) fn pairs(&self) -> u64 {
        let mut first_partner = 0;
        let list = &self.sets.list;
        let of_run = list.iter().filter(|run| self.ranks[run.rank]).map(|run| {
            let size_min = self.bounds.size_min(run.size);
            while list.get(first_partner).is_some_and(|other| other.size < size_min) {
                first_partner += 1;
            }
            let begin = list.get(first_partner).map_or(run.end, |first| first.begin.min(run.begin));
            let probes = u64::from(run.end - run.begin);
            u64::from(run.begin - begin.min(run.begin)) * probes + probes * (probes - 1) / 2
        });
        of_run.sum()
    }

    /// Adds tiles to `list` until the list is full or no tile is left; false if no tile is left.
    pub(crate) fn fill(&mut self, list: &mut TileList) -> bool {
        let sets = Arc::clone(&self.sets);
        while let Some(&run) = sets.list.get(self.run) {
            while self.candidate < run.end {
                if list.is_full() {
                    return true;
                }
                // Blocks end at multiples of their size, so that tiles begin with a strip.
                let block_end = (self.candidate / CANDIDATES_MAX + 1) * CANDIDATES_MAX;
                if !self.cut(run, block_end.min(run.end), list) {
                    return true;
                }
                self.probe = run.begin;
                self.candidate = block_end;
            }
            self.run += 1;
            self.begin_run();
        }
        false
    }

    /// Moves on to the next run of probes, and to the first candidate of that run.
    fn begin_run(&mut self) {
        let list = &self.sets.list;
        while list.get(self.run).is_some_and(|run| !self.ranks[run.rank]) {
            self.run += 1;
        }
        let Some(run) = list.get(self.run) else { return };
        let size_min = self.bounds.size_min(run.size);
        while list.get(self.first_partner).is_some_and(|other| other.size < size_min) {
            self.first_partner += 1;
        }
        self.probe = run.begin;
        self.candidate = list.get(self.first_partner).map_or(run.end, |first| first.begin);
    }

    /// Adds the tiles of the block of candidates that ends with `candidate_end`, from the next
    /// probe on; false if `list` is full before the last tile.
    fn cut(&mut self, run: SetRun, candidate_end: u32, list: &mut TileList) -> bool {
        let candidate_begin = self.candidate;
        let of_sets = self.sets.runs.of_sets();
        let [first, last] = [candidate_begin, candidate_end - 1].map(|set| of_sets[set as usize]);
        let partner = self.sets.collection.partner_side(run.side);
        let others = &self.sets.list[first as usize..=last as usize];
        // In a join of two inputs, a block can consist of sets of the probes' side only.
        if others.iter().all(|other| other.side != partner) {
            return true;
        }
        // The kernel finds the required overlap at `row` + the run of the candidate. The row
        // begins with the run of the block's first candidate, hence the subtraction, which may
        // wrap.
        let begin = u32::try_from(list.required.len()).expect("lists are below 2^32 bytes");
        let row = begin.wrapping_sub(first);
        list.required.extend(others.iter().map(|other| match other.side == partner {
            true => self.bounds.required(run.size, other.size),
            // More than any overlap: pairs of the same side are never similar.
            false => u32::MAX,
        }));
        while self.probe < run.end {
            let probe_end = run.end.min(self.probe + PROBES_MAX);
            // A probe is compared with the earlier sets. In a tile on the diagonal, the kernel
            // skips the candidates from the probe on.
            let candidate_end = candidate_end.min(probe_end);
            if candidate_begin < candidate_end {
                if !list.has_room_for_tile() {
                    return false;
                }
                let (probe_begin, resume) = (self.probe, candidate_begin);
                let tile =
                    Tile { probe_begin, probe_end, candidate_begin, candidate_end, resume, row };
                list.push(tile);
            }
            self.probe = probe_end;
        }
        true
    }
}
