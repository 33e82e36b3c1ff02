//! Candidates on their way from the filter to the verification and on to the rows: a chunk of a
//! wave.

use trommel_engine::batch::Chunk;
use trommel_kernels::cuda::overlap::Answer;
use trommel_kernels::overlap::Pairs;

use super::chunk::{CandidateChunk, JoinedSets};
use crate::wave::{OverlapAnswer, OverlapChunk, WaveChunk};

/// A chunk of candidates with the sets that they name, the question, and room for the answer. It
/// travels in circles, and on its way back it has no sets.
#[derive(Debug)]
pub(super) struct Candidates {
    sets: Option<JoinedSets>,
    chunk: CandidateChunk,
    question: Answer,
    answer: OverlapAnswer,
    pays_on_device: bool,
}

impl Candidates {
    /// An empty chunk of which this will be asked.
    pub(super) fn new(question: Answer) -> Self {
        let (chunk, answer) = (CandidateChunk::with_bytes(0), OverlapAnswer::default());
        Self { sets: None, chunk, question, answer, pays_on_device: false }
    }

    /// The pairs, to be filled in.
    pub(super) fn pairs_mut(&mut self) -> &mut CandidateChunk {
        &mut self.chunk
    }

    /// The pairs are there, and name these sets.
    pub(super) fn begin_way(&mut self, sets: JoinedSets, pays_on_device: bool) {
        self.sets = Some(sets);
        self.pays_on_device = pays_on_device;
    }

    /// Lets go of the sets, so that they live no longer than they are needed.
    pub(super) fn release_sets(&mut self) {
        self.sets = None;
    }

    /// How many pairs there are.
    pub(super) fn len(&self) -> usize {
        self.chunk.len()
    }

    /// The pairs, and their overlaps once the chunk is answered.
    pub(super) fn answered(&self) -> (&JoinedSets, &CandidateChunk, &OverlapAnswer) {
        (self.sets(), &self.chunk, &self.answer)
    }

    fn sets(&self) -> &JoinedSets {
        self.sets.as_ref().expect("a chunk under way has its sets")
    }

    /// As a message to another part.
    pub(super) fn into_message(self: Box<Self>) -> Chunk {
        let (items, bytes) = (self.items(), self.bytes());
        Chunk::from_box(self, items, bytes)
    }
}

impl WaveChunk for Candidates {
    fn items(&self) -> usize {
        self.chunk.len()
    }

    fn bytes(&self) -> usize {
        self.chunk.bytes()
    }

    fn pays_on_device(&self) -> bool {
        self.pays_on_device
    }
}

impl OverlapChunk for Candidates {
    fn pairs(&self) -> Pairs<'_> {
        self.chunk.pairs(self.sets())
    }

    fn question(&self) -> Answer {
        self.question
    }

    fn set_versions(&self) -> [u64; 2] {
        let JoinedSets { probes, candidates } = self.sets();
        [probes.version(), candidates.version()]
    }

    fn answer(&mut self) -> &mut OverlapAnswer {
        &mut self.answer
    }
}
