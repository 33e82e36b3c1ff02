//! Tiles on a CPU, for `gpu_signatures` and for sizes that `auto` joins so: all pairs whose sizes
//! fit are tested by signatures, in [tiles](crate::set_similarity_join::candidates), by the
//! kernels of [`signatures`]. There is no index.

use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::overlap::Start;
use trommel_kernels::signatures::{self, Survivors, Tile};

use super::{Find, JoinCounters};
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::candidates::tiles::{TileList, TiledSets, Tiler};
use crate::set_similarity_join::parameters::error::JoinError;
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::budget::Budget;
use crate::shared::sets::SetCollection;

/// Bytes of a list of tiles that is tested in one call.
const TESTED_BYTES: usize = 1 << 14;

/// Finds the candidates of tiles on the CPU.
pub(crate) struct TileJoin {
    tiler: Tiler,
    isa: Isa,
    list: TileList,
    unfinished: Vec<Tile>,
    /// Pairs that passed the test; the next pair has the number `next` and belongs to the entry
    /// `entry`.
    survivors: Survivors,
    entry: usize,
    next: u32,
    /// Whether the list holds the last tiles.
    is_last: bool,
}

impl TileJoin {
    /// The tiles of the probes whose sizes are `true` in `ranks`.
    ///
    /// # Errors
    /// If the signatures do not fit the memory.
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        ranks: Vec<bool>,
        isa: Isa,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let sets = Arc::new(TiledSets::new(collection, budget)?);
        Ok(Self {
            tiler: Tiler::new(&sets, bounds, ranks),
            isa,
            list: TileList::with_bytes(TESTED_BYTES),
            unfinished: Vec::new(),
            survivors: Survivors::default(),
            entry: 0,
            next: 0,
            is_last: false,
        })
    }

    /// Adds the survivors to `chunk`; false if the chunk is full before the last survivor.
    fn emit(&mut self, chunk: &mut CandidateChunk) -> bool {
        let survivors = self.survivors.chunk();
        while let Some(entry) = survivors.entries.get(self.entry) {
            while self.next < entry.end {
                if chunk.is_full() {
                    return false;
                }
                let index = self.next as usize;
                let (candidate, required) =
                    (survivors.candidates[index], survivors.required[index]);
                chunk.push(entry.probe, candidate, required, Start::default());
                self.next += 1;
            }
            self.entry += 1;
        }
        true
    }

    /// Tests the next tiles, or the tiles for whose survivors there was no room.
    fn test_tiles(&mut self, counters: &mut JoinCounters) {
        let Self { tiler, isa, list, unfinished, survivors, is_last, .. } = self;
        if unfinished.is_empty() {
            list.clear();
            *is_last = !tiler.fill(list);
            counters.postings += list.pairs();
        } else {
            list.replace(unfinished);
        }
        let sets = tiler.sets();
        let tiles = sets.tiles(&list.tiles, &list.required);
        signatures::test_tiles(*isa, sets.signatures(*isa), tiles, survivors, unfinished);
        let found = survivors.len() as u64;
        counters.pre_candidates += found;
        counters.candidates += found;
        (self.entry, self.next) = (0, 0);
    }
}

impl Find for TileJoin {
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool {
        loop {
            if !self.emit(chunk) {
                return true;
            }
            if self.is_last && self.unfinished.is_empty() {
                return false;
            }
            self.test_tiles(counters);
        }
    }
}
