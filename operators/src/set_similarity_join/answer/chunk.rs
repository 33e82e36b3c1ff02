//! The chunk of a join: candidate pairs or tiles with their sets, or work of the CPU.

use std::sync::Arc;

use arrow_array::RecordBatch;
use trommel_kernels::Isa;
use trommel_kernels::signatures::{Counted, Tiles};

use super::answers::{OverlapAnswer, TilesAnswer};
use crate::set_similarity_join::answer::work::JoinWork;
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::candidates::joined_sets::JoinedSets;
use crate::set_similarity_join::candidates::pairs::{Match, matches};
use crate::set_similarity_join::candidates::tiles::{TileList, TiledSets};
use crate::set_similarity_join::parameters::options::JoinOutput;
use crate::set_similarity_join::plan::verification;
use crate::set_similarity_join::rows::pair_rows::SimilarRows;
use crate::wave::{Estimate, Target, WaveChunk};

/// A chunk of candidates with their sets, the question, and room for the answer.
///
/// If the match buffer overflows, the remaining tiles return unfinished, and the chunk is
/// resubmitted with these tiles.
#[derive(Debug)]
pub(crate) struct JoinChunk {
    content: Content,
    /// Work of the CPU; candidates that the work finds become the content.
    work: Option<JoinWork>,
    pub(crate) output: JoinOutput,
    pub(crate) pairs: CandidateChunk,
    pub(crate) pairs_answer: OverlapAnswer,
    pub(crate) tiles: TileList,
    pub(crate) tiles_answer: TilesAnswer,
    /// Rows of the similar pairs, if a kernel has made rows.
    rows: Vec<RecordBatch>,
    progress: TileProgress,
}

/// Progress of the tiles of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TileProgress {
    /// No tile has been tested.
    New,
    /// No tile has been tested, and the chunk returns from a kernel that has lost its device.
    GivenBack,
    /// Tiles have been tested, or are not to be given back.
    Begun,
}

/// Kind of the candidates, and their sets.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// No candidates. A chunk that returns to prepare keeps no sets alive.
    Empty,
    Pairs(JoinedSets),
    Tiles(Arc<TiledSets>),
}

impl JoinChunk {
    /// An empty chunk for the question `output`.
    pub(crate) fn new(output: JoinOutput) -> Self {
        Self {
            content: Content::Empty,
            work: None,
            output,
            pairs: CandidateChunk::with_bytes(0),
            pairs_answer: OverlapAnswer::default(),
            tiles: TileList::with_bytes(0),
            tiles_answer: TilesAnswer::default(),
            rows: Vec::new(),
            progress: TileProgress::New,
        }
    }

    /// Leaves all tiles unfinished, if no tile has been tested; false if the kernel has to test the
    /// tiles.
    pub(crate) fn give_back(&mut self) -> bool {
        let can_be =
            matches!(self.content, Content::Tiles(_)) && self.progress == TileProgress::New;
        if can_be {
            self.progress = TileProgress::GivenBack;
            self.tiles_answer.counted = Counted::default();
            self.tiles_answer.joined.clear();
            self.tiles_answer.joined.unfinished.extend_from_slice(&self.tiles.tiles);
        }
        can_be
    }

    /// Whether the chunk returns with tiles, and no tile has been tested.
    pub(crate) fn is_given_back(&self) -> bool {
        self.progress == TileProgress::GivenBack
    }

    /// Whether the chunk has been filled with tiles.
    pub(crate) fn has_tiles(&self) -> bool {
        !self.tiles.tiles.is_empty()
    }

    /// Drops tiles that were given back.
    pub(crate) fn drop_tiles(&mut self) {
        self.tiles_answer.joined.clear();
        self.content = Content::Empty;
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// The candidate pairs, to be filled.
    pub(crate) fn pairs_mut(&mut self) -> &mut CandidateChunk {
        &mut self.pairs
    }

    /// The tiles, to be filled.
    pub(crate) fn tiles_mut(&mut self) -> &mut TileList {
        &mut self.tiles
    }

    /// Sets the content: candidate pairs of `sets`.
    pub(crate) fn hold_pairs(&mut self, sets: JoinedSets) {
        self.content = Content::Pairs(sets);
    }

    /// Sets the content: tiles of `sets`.
    pub(crate) fn hold_tiles(&mut self, sets: Arc<TiledSets>) {
        self.content = Content::Tiles(sets);
    }

    /// The tiles with their sets, in the form of the kernels.
    pub(crate) fn tiles_of<'a>(&'a self, sets: &'a TiledSets) -> Tiles<'a> {
        sets.tiles(&self.tiles.tiles, &self.tiles.required)
    }

    /// Number of pairs of finished tiles that passed the test by signatures.
    pub(crate) fn survivors(&self) -> u64 {
        self.tiles_answer.counted.survivors
    }

    /// Sets the content: work of the CPU.
    pub(crate) fn hold_work(&mut self, work: JoinWork) {
        self.work = Some(work);
    }

    /// Does the work of the CPU; false if the chunk has no such work.
    pub(crate) fn run_work(&mut self, isa: Isa) -> bool {
        let Some(work) = &mut self.work else { return false };
        work.run(isa, self.output, &mut self.pairs, &mut self.pairs_answer);
        if let Some(sets) = work.sets() {
            self.content = Content::Pairs(sets.clone());
        }
        true
    }

    /// The work of a returned chunk, to read its counters.
    pub(crate) fn work_mut(&mut self) -> Option<&mut JoinWork> {
        self.work.as_mut()
    }

    /// The work whose answer is that of the CPU.
    fn work_of_cpu(&self) -> Option<&JoinWork> {
        self.work.as_ref().filter(|work| !work.has_found())
    }

    /// Takes out the work if it has been done completely.
    pub(crate) fn take_done_work(&mut self) -> Option<JoinWork> {
        self.work.take_if(|work| !work.has_more())
    }

    /// Number of pairs that were verified.
    pub(crate) fn verified(&self) -> u64 {
        if let Some(JoinWork::Search(search)) = self.work_of_cpu() {
            return search.verified;
        }
        match self.content {
            Content::Empty => 0,
            Content::Pairs(_) => self.pairs.len() as u64,
            Content::Tiles(_) => self.survivors(),
        }
    }

    /// Number of similar pairs, if the question was [`JoinOutput::Count`].
    pub(crate) fn count(&self) -> u64 {
        match self.work_of_cpu() {
            Some(JoinWork::Search(search)) => return search.count,
            Some(JoinWork::Copies(pairs)) => return *pairs,
            _ => {}
        }
        match self.content {
            Content::Empty => 0,
            Content::Pairs(_) => self.pairs_answer.count,
            Content::Tiles(_) => self.tiles_answer.counted.matches,
        }
    }

    /// The similar pairs, if the question was [`JoinOutput::Pairs`].
    pub(crate) fn matches(&self) -> Vec<Match<'_>> {
        match &self.content {
            Content::Empty => Vec::new(),
            Content::Pairs(sets) => {
                matches(sets, &self.pairs, &self.pairs_answer.overlaps).collect()
            }
            Content::Tiles(tiled) => {
                let sets = tiled.sets();
                let matches = self.tiles_answer.joined.matches.iter();
                matches.map(|m| Match::new(sets, m.probe, m.candidate, m.overlap)).collect()
            }
        }
    }

    /// Makes the rows of the similar pairs.
    pub(crate) fn make_rows(&mut self, of_pairs: &SimilarRows) {
        let matches = self.matches();
        let (mut left, mut made) = (&matches[..], Vec::new());
        while !left.is_empty() {
            // COLLECT makes the rows again if there is an error, and reports the error.
            let Ok(rows) = of_pairs.take(&mut left) else { return };
            made.push(rows);
        }
        self.rows = made;
    }

    /// The rows that a kernel has made; none if COLLECT makes the rows.
    pub(crate) fn rows(&self) -> &[RecordBatch] {
        &self.rows
    }

    /// Drops the rows of the last answer.
    pub(crate) fn drop_rows(&mut self) {
        self.rows.clear();
    }

    fn has_unfinished(&self) -> bool {
        if let Some(work) = &self.work {
            return work.has_more();
        }
        matches!(self.content, Content::Tiles(_)) && !self.tiles_answer.joined.unfinished.is_empty()
    }
}

impl WaveChunk for JoinChunk {
    fn items(&self) -> usize {
        match self.content {
            Content::Empty => 0,
            Content::Pairs(_) => self.pairs.len(),
            Content::Tiles(_) => self.tiles.tiles.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self.content {
            Content::Empty => 0,
            Content::Pairs(_) => self.pairs.bytes(),
            Content::Tiles(_) => self.tiles.bytes(),
        }
    }

    fn clear(&mut self, bytes_max: usize) {
        self.content = Content::Empty;
        self.work = None;
        self.rows.clear();
        self.pairs.clear();
        self.pairs.set_bytes(bytes_max);
        self.tiles.clear();
        self.tiles.set_bytes(bytes_max);
        self.tiles_answer.counted = Counted::default();
        self.progress = TileProgress::New;
    }

    fn estimate(&self) -> Estimate {
        if let Some(work) = self.work_of_cpu() {
            return Estimate::on_cpu(work.cpu_ns());
        }
        match &self.content {
            Content::Empty => Estimate::default(),
            Content::Pairs(sets) => verification::of_pairs(sets, self.pairs.len()),
            // The producer has charged all tiles of the join before the first chunk.
            Content::Tiles(tiled) => verification::of_data(tiled.sets()),
        }
    }

    fn target(&self) -> Target {
        // A device does not know how many copies a set stands for.
        let has_copies = match &self.content {
            Content::Pairs(sets) => sets.copies().is_some(),
            Content::Empty | Content::Tiles(_) => false,
        };
        if self.work.is_some() || has_copies { Target::Cpu } else { Target::Cheaper }
    }

    fn may_be_unfinished(&self) -> bool {
        self.work.is_some() || matches!(self.content, Content::Tiles(_))
    }

    fn awaits_device(&self) -> bool {
        self.work.as_ref().is_some_and(JoinWork::has_found)
    }

    fn retain_unfinished(&mut self) -> bool {
        let has_unfinished = self.has_unfinished();
        if let Some(work) = &mut self.work {
            work.forget_found();
        }
        if has_unfinished && self.work.is_none() {
            self.progress = TileProgress::Begun;
            self.tiles.replace(&mut self.tiles_answer.joined.unfinished);
        }
        has_unfinished
    }

    fn release(&mut self) {
        if !self.has_unfinished() {
            self.content = Content::Empty;
        }
    }
}
