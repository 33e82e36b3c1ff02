//! The part of `write` that encodes rows, for a stage with several threads: copies of the part
//! encode batches side by side, and the writer takes the bytes in the order of the batches.

use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{Flow, Operator, OperatorError, Output};

use super::WriteError;
use super::encoding::Encoding;

/// The bytes of some rows.
pub(super) struct EncodedRows {
    pub(super) bytes: Vec<u8>,
    pub(super) rows: u64,
}

/// Encodes each batch on its own.
#[derive(Clone)]
pub(super) struct EncodeRows {
    /// Indices of the input columns to write.
    pub(super) selection: Vec<usize>,
    pub(super) encoding: Encoding,
    /// Name of the target, for errors.
    pub(super) target: String,
    /// Bytes of the last batch: the room that the next one probably needs.
    pub(super) room: usize,
}

impl Operator for EncodeRows {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = input.into_records().project(&self.selection)?;
        let mut bytes = Vec::with_capacity(self.room);
        let target = || self.target.clone();
        self.encoding
            .add(&records, &mut bytes)
            .map_err(|source| WriteError::Encode { path: target(), source })?;
        self.room = bytes.len();
        let (rows, len) = (records.num_rows(), bytes.len());
        out.send_chunk(Chunk::new(EncodedRows { bytes, rows: rows as u64 }, rows, len));
        Ok(Flow::NeedInput)
    }
}
