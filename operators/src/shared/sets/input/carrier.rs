//! Carried columns during the collection of the sets.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

use crate::shared::columns::carry::CarriedRows;
use crate::shared::sets::error::SetError;
use crate::shared::sets::side::Side;

/// Collects the ids and the carried columns of input rows, per side.
#[derive(Debug)]
pub(crate) struct Carrier {
    schemas: [SchemaRef; 2],
    rows: [Vec<RecordBatch>; 2],
    ids: [Vec<u32>; 2],
}

impl Carrier {
    /// A carrier for columns with the schemas of the left and the right input. A self-join passes
    /// the same schema twice.
    pub(crate) fn new(schemas: [SchemaRef; 2]) -> Self {
        Self { schemas, rows: [Vec::new(), Vec::new()], ids: [Vec::new(), Vec::new()] }
    }

    /// Adds the columns of a batch, and returns their bytes. Afterwards each row of the batch must
    /// get a [number](Self::number_rows).
    pub(crate) fn add(&mut self, side: Side, rows: RecordBatch) -> usize {
        let bytes = rows.get_array_memory_size();
        self.rows[side.index()].push(rows);
        bytes
    }

    /// Notes the ids of the next rows of `side`, and returns the number of the first row.
    ///
    /// # Errors
    /// If a number exceeds 32 bits.
    pub(crate) fn number_rows(&mut self, side: Side, rows: &[u32]) -> Result<u32, SetError> {
        let ids = &mut self.ids[side.index()];
        let first = u32::try_from(ids.len()).map_err(|_| SetError::TooManyRows)?;
        if ids.len() as u64 + rows.len() as u64 > 1 << 32 {
            return Err(SetError::TooManyRows);
        }
        ids.extend_from_slice(rows);
        Ok(first)
    }

    /// For each side, the ids of all rows, and their columns in batches of `batch_bytes` bytes.
    pub(crate) fn finish(
        self,
        batch_bytes: usize,
    ) -> Result<([Vec<u32>; 2], [CarriedRows; 2]), ArrowError> {
        let Self { schemas, rows: [left, right], ids } = self;
        let left = CarriedRows::new(&schemas[0], left, batch_bytes)?;
        Ok((ids, [left, CarriedRows::new(&schemas[1], right, batch_bytes)?]))
    }
}
