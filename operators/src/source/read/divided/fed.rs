//! PREPARE: puts the blocks that the reading thread sends into chunks, one block per chunk.

use trommel_engine::batch::Payload;
use trommel_engine::operator::OperatorError;

use super::block::Block;
use super::parse::ParseChunk;
use crate::wave::{Filled, Producer};

/// Puts each block into a chunk.
pub(super) struct Prepare(Option<Block>);

impl Prepare {
    pub(super) fn new() -> Self {
        Self(None)
    }
}

impl Producer for Prepare {
    type Chunk = ParseChunk;

    fn take(&mut self, _port: usize, work: Payload) -> Result<(), OperatorError> {
        self.0 = Some(work.into_chunk().into_value());
        Ok(())
    }

    fn fill(&mut self, chunk: &mut ParseChunk) -> Result<Filled, OperatorError> {
        let Some(block) = self.0.take() else { return Ok(Filled::Nothing) };
        chunk.hold(block);
        Ok(Filled::Chunk)
    }
}
