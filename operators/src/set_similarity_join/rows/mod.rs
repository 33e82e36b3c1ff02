//! COLLECT: rows of similar pairs, or the number of pairs.

pub(crate) mod pair_rows;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::SchemaRef;
use trommel_engine::operator::{Counters, OperatorError, Output};

use self::pair_rows::SimilarRows;
use super::answer::chunk::JoinChunk;
use crate::wave::{Consumer, Taken};

/// Kind of the rows of a join.
#[derive(Debug, Clone)]
pub(crate) enum ResultRows {
    /// One row per pair.
    Pairs(SimilarRows),
    /// One row with the number of pairs; the schema of that row.
    Count(SchemaRef),
}

impl ResultRows {
    /// Columns of the rows.
    pub(crate) fn schema(&self) -> &SchemaRef {
        match self {
            Self::Pairs(rows) => rows.schema(),
            Self::Count(schema) => schema,
        }
    }
}

/// Sends the rows of similar pairs.
pub(crate) struct PairConsumer {
    rows: ResultRows,
    /// Number of pairs of the present chunk that have been sent; of batches, if a kernel has made
    /// the batches.
    sent: usize,
    verified: u64,
    results: u64,
}

impl PairConsumer {
    pub(crate) fn new(rows: ResultRows) -> Self {
        Self { rows, sent: 0, verified: 0, results: 0 }
    }
}

impl Consumer for PairConsumer {
    type Chunk = JoinChunk;

    fn take(&mut self, chunk: &JoinChunk, out: &mut Output) -> Result<Taken, OperatorError> {
        match &self.rows {
            ResultRows::Count(_) => self.results += chunk.count(),
            ResultRows::Pairs(_) if !chunk.rows().is_empty() => {
                let rows = &chunk.rows()[self.sent];
                self.sent += 1;
                self.results += rows.num_rows() as u64;
                out.send(rows.clone());
                if self.sent < chunk.rows().len() {
                    return Ok(Taken::Some);
                }
            }
            ResultRows::Pairs(rows) => {
                let matches = chunk.matches();
                let mut left = &matches[self.sent..];
                let rows = rows.take(&mut left)?;
                self.sent += rows.num_rows();
                self.results += rows.num_rows() as u64;
                out.send(rows);
                if !left.is_empty() {
                    return Ok(Taken::Some);
                }
            }
        }
        self.sent = 0;
        self.verified += chunk.verified();
        Ok(Taken::All)
    }

    fn finish(&mut self, out: &mut Output) -> Result<(), OperatorError> {
        if let ResultRows::Count(schema) = &self.rows {
            let count: ArrayRef = Arc::new(UInt64Array::from(vec![self.results]));
            out.send(RecordBatch::try_new(SchemaRef::clone(schema), vec![count])?);
        }
        Ok(())
    }

    fn counters(&self) -> Counters {
        vec![("verified", self.verified), ("results", self.results)]
    }
}
