//! What the filter hands to the verification and on to the rows: a chunk of a wave, of candidate
//! pairs or of tiles.

use std::sync::Arc;

use trommel_engine::batch::Chunk;
use trommel_kernels::cuda::{overlap, signatures};
use trommel_kernels::overlap::Chunk as PairChunk;
use trommel_kernels::sets::SetStore;
use trommel_kernels::signatures::{Signatures, Tiles};

use super::chunk::{CandidateChunk, JoinedSets};
use super::join::{Partner, SetJoin, partners};
use super::operator::JoinOutput;
use super::tile_join::{TileList, TiledSets};
use crate::wave::{
    EitherChunk, OverlapAnswer, OverlapChunk, TilesAnswer, TilesChunk, WaveChunk, Which,
};

/// A chunk of candidates with the sets that they name, the question, and room for the answer. It
/// travels in circles, and on its way back it has no sets.
///
/// Of tiles, those for whose matches there was no room are unfinished when the chunk comes home,
/// and it goes on its way again.
#[derive(Debug)]
pub(super) struct Candidates {
    sets: Option<JoinedSets>,
    chunk: CandidateChunk,
    answer: OverlapAnswer,
    /// Whether it holds candidate pairs, or tiles.
    kind: Which,
    /// What tiles are tested by, if it holds any.
    tiled: Option<Arc<TiledSets>>,
    tiles: TileList,
    tiles_answer: TilesAnswer,
    output: JoinOutput,
    pays_on_device: bool,
}

const FILLED: &str = "a chunk under way has its sets";

impl Candidates {
    /// An empty chunk of which this will be asked.
    pub(super) fn new(output: JoinOutput) -> Self {
        Self {
            sets: None,
            chunk: CandidateChunk::with_bytes(0),
            answer: OverlapAnswer::default(),
            kind: Which::First,
            tiled: None,
            tiles: TileList::with_bytes(0),
            tiles_answer: TilesAnswer::default(),
            output,
            pays_on_device: false,
        }
    }

    /// Makes room for candidates of about so many bytes, in place of what it holds.
    pub(super) fn empty(&mut self, bytes: usize) {
        self.kind = Which::First;
        self.chunk.clear();
        self.chunk.set_bytes(bytes);
        self.tiles.set_bytes(bytes);
    }

    /// Takes the next tiles or candidates of a join; false if there are none.
    pub(super) fn fill(&mut self, join: &mut SetJoin) -> bool {
        self.tiled = join.next_tiles(&mut self.tiles);
        if self.tiled.is_some() {
            self.kind = Which::Second;
            return true;
        }
        join.next_chunk(&mut self.chunk)
    }

    /// The pairs, to be filled in.
    pub(super) fn pairs_mut(&mut self) -> &mut CandidateChunk {
        &mut self.chunk
    }

    /// What it holds names these sets.
    pub(super) fn begin_way(&mut self, sets: JoinedSets, pays_on_device: bool) {
        self.sets = Some(sets);
        self.pays_on_device = pays_on_device;
    }

    /// Takes up what is unfinished, if anything is.
    pub(super) fn take_up(&mut self) -> bool {
        let is_unfinished = self.is_unfinished();
        if is_unfinished {
            self.tiles.replace(&mut self.tiles_answer.joined.unfinished);
        }
        is_unfinished
    }

    fn is_unfinished(&self) -> bool {
        self.kind == Which::Second && !self.tiles_answer.joined.unfinished.is_empty()
    }

    /// Lets go of the sets, so that they live no longer than they are needed.
    pub(super) fn release_sets(&mut self) {
        if !self.is_unfinished() {
            self.sets = None;
            self.tiled = None;
        }
    }

    /// How many pairs there are to be verified, if that is known before.
    pub(super) fn len(&self) -> usize {
        self.of_kind(|pairs| pairs.chunk.len(), |_| 0)
    }

    /// Of the tiles that are done: how many pairs the signatures let through.
    pub(super) fn survivors(&self) -> u64 {
        self.of_kind(|_| 0, |tiles| tiles.tiles_answer.counted.survivors)
    }

    /// How many pairs were verified.
    pub(super) fn verified(&self) -> u64 {
        self.len() as u64 + self.survivors()
    }

    /// How many pairs are similar, if that was asked.
    pub(super) fn count(&self) -> u64 {
        self.of_kind(|pairs| pairs.answer.count, |tiles| tiles.tiles_answer.counted.matches)
    }

    /// The similar pairs, if they were asked for: the left set, the right one, and their overlap.
    pub(super) fn similar(&self) -> Vec<(Partner<'_>, Partner<'_>, u32)> {
        let sets = self.joined();
        if self.kind == Which::First {
            let similar = self.chunk.similar(&self.answer.overlaps);
            return similar.map(|pair| partners(sets, pair)).collect();
        }
        let matches = self.tiles_answer.joined.matches.iter();
        matches.map(|pair| partners(sets, (pair.probe, pair.candidate, pair.overlap))).collect()
    }

    fn of_kind<T>(&self, pairs: impl FnOnce(&Self) -> T, tiles: impl FnOnce(&Self) -> T) -> T {
        match self.kind {
            Which::First => pairs(self),
            Which::Second => tiles(self),
        }
    }

    fn joined(&self) -> &JoinedSets {
        self.sets.as_ref().expect(FILLED)
    }

    fn tiled(&self) -> &TiledSets {
        self.tiled.as_ref().expect(FILLED)
    }

    /// As a message to another part.
    pub(super) fn into_message(self: Box<Self>) -> Chunk {
        let (items, bytes) = (self.items(), self.bytes());
        Chunk::from_box(self, items, bytes)
    }
}

impl WaveChunk for Candidates {
    fn items(&self) -> usize {
        self.of_kind(|pairs| pairs.chunk.len(), |tiles| tiles.tiles.tiles.len())
    }

    fn bytes(&self) -> usize {
        self.of_kind(|pairs| pairs.chunk.bytes(), |tiles| tiles.tiles.bytes())
    }

    fn pays_on_device(&self) -> bool {
        self.pays_on_device
    }
}

impl EitherChunk for Candidates {
    fn which(&self) -> Which {
        self.kind
    }
}

impl OverlapChunk for Candidates {
    fn pairs(&self) -> PairChunk<'_> {
        self.chunk.chunk()
    }

    fn sets(&self) -> [&SetStore; 2] {
        let JoinedSets { probes, candidates } = self.joined();
        [probes.store(), candidates.store()]
    }

    fn question(&self) -> overlap::Answer {
        match self.output {
            JoinOutput::Pairs => overlap::Answer::Overlaps,
            JoinOutput::Count => overlap::Answer::Count,
        }
    }

    fn answer(&mut self) -> &mut OverlapAnswer {
        &mut self.answer
    }
}

impl TilesChunk for Candidates {
    fn tiles(&self) -> Tiles<'_> {
        self.tiled().tiles(&self.tiles.tiles, &self.tiles.required)
    }

    fn sets(&self) -> &SetStore {
        self.joined().probes.store()
    }

    fn signatures(&self) -> &Signatures {
        self.tiled().signatures()
    }

    fn words(&self) -> usize {
        self.tiled().words()
    }

    fn question(&self) -> signatures::Answer {
        match self.output {
            JoinOutput::Pairs => signatures::Answer::Matches,
            JoinOutput::Count => signatures::Answer::Count,
        }
    }

    fn answer(&mut self) -> &mut TilesAnswer {
        &mut self.tiles_answer
    }
}
