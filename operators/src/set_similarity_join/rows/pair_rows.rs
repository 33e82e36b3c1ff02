//! Rows of similar pairs.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};

use crate::set_similarity_join::candidates::pairs::Match;
use crate::set_similarity_join::similarity::Similarity;
use crate::shared::columns::carry::CarriedColumns;
use crate::shared::columns::pairs::PairRows;

/// Makes rows of similar pairs.
#[derive(Debug, Clone)]
pub(crate) struct SimilarRows {
    rows: PairRows,
    similarity: Similarity,
}

impl SimilarRows {
    /// Rows with the carried columns of the left and the right input. A batch has up to
    /// `batch_bytes` bytes of carried columns.
    pub(crate) fn new(
        similarity: Similarity,
        carried: [&CarriedColumns; 2],
        batch_bytes: usize,
    ) -> Self {
        let values = [
            Field::new("overlap", DataType::UInt32, false),
            Field::new("similarity", DataType::Float64, false),
        ];
        Self { rows: PairRows::new(values, carried, batch_bytes), similarity }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        self.rows.schema()
    }

    /// Makes a batch of the first pairs of `matches`, and removes these pairs from `matches`.
    pub(crate) fn take(&self, matches: &mut &[Match<'_>]) -> Result<RecordBatch, ArrowError> {
        let len = self.rows.batch_len(matches.iter().map(Match::sides));
        let pairs = matches.split_off(..len).expect("a part of them");
        let overlaps = UInt32Array::from_iter_values(pairs.iter().map(|found| found.overlap));
        let similarities = pairs.iter().map(|found| found.pair(self.similarity).similarity);
        let values: [ArrayRef; 2] =
            [Arc::new(overlaps), Arc::new(Float64Array::from_iter_values(similarities))];
        self.rows.batch(pairs.iter().map(Match::sides), values)
    }
}
