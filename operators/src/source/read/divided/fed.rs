//! PREPARE: puts the pieces of work that the reading thread sends into chunks, one piece per chunk.

use trommel_engine::batch::Payload;
use trommel_engine::operator::OperatorError;

use crate::wave::{Filled, Producer, WaveChunk};

/// A chunk that can hold a piece of work.
pub(super) trait FedChunk: WaveChunk {
    /// The piece of work.
    type Work: Send + 'static;

    fn hold(&mut self, work: Self::Work);
}

/// Puts each piece of work into a chunk.
pub(super) struct Prepare<C: FedChunk>(Option<C::Work>);

impl<C: FedChunk> Prepare<C> {
    pub(super) fn new() -> Self {
        Self(None)
    }
}

impl<C: FedChunk> Producer for Prepare<C> {
    type Chunk = C;

    fn take(&mut self, _port: usize, work: Payload) -> Result<(), OperatorError> {
        self.0 = Some(work.into_chunk().into_value());
        Ok(())
    }

    fn fill(&mut self, chunk: &mut C) -> Result<Filled, OperatorError> {
        let Some(work) = self.0.take() else { return Ok(Filled::Nothing) };
        chunk.hold(work);
        Ok(Filled::Chunk)
    }
}
