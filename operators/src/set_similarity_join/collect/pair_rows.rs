//! Similar pairs as rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::set_similarity_join::candidates::joined_sets::Partner;
use crate::set_similarity_join::candidates::pairs::{Match, SimilarPair};
use crate::set_similarity_join::similarity::Similarity;
use crate::sets::BATCH_BYTES;

/// Makes rows of pairs.
#[derive(Debug, Clone)]
pub(crate) struct PairRows {
    schema: SchemaRef,
    similarity: Similarity,
}

impl PairRows {
    /// Rows with the columns of both sets, those of the left and those of the right input.
    pub(crate) fn new(similarity: Similarity, carried: [SchemaRef; 2]) -> Self {
        let mut fields = vec![
            Field::new("left", DataType::UInt32, false),
            Field::new("right", DataType::UInt32, false),
            Field::new("overlap", DataType::UInt32, false),
            Field::new("similarity", DataType::Float64, false),
        ];
        for (side, carried) in ["left", "right"].into_iter().zip(carried) {
            fields.extend(carried.fields().iter().map(|field| {
                let name = format!("{side}_{}", field.name());
                Field::new(name, field.data_type().clone(), field.is_nullable())
            }));
        }
        Self { schema: Arc::new(Schema::new(fields)), similarity }
    }

    /// The columns of the rows.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Takes the first of the similar pairs of a chunk, as many as one batch has room for.
    pub(crate) fn take(&self, similar: &mut &[Match<'_>]) -> Result<RecordBatch, ArrowError> {
        let pairs = similar.split_off(..rows_of_batch(similar)).expect("a part of them");
        self.of(pairs)
    }

    fn of(&self, similar: &[Match<'_>]) -> Result<RecordBatch, ArrowError> {
        let pairs: Vec<SimilarPair> =
            similar.iter().map(|found| found.pair(self.similarity)).collect();
        let numbers = |number: fn(&SimilarPair) -> u32| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(pairs.iter().map(number)))
        };
        let similarity = Float64Array::from_iter_values(pairs.iter().map(|pair| pair.similarity));
        let mut columns = vec![
            numbers(|pair| pair.left),
            numbers(|pair| pair.right),
            numbers(|pair| pair.overlap),
            Arc::new(similarity),
        ];
        let (lefts, rights): (Vec<_>, Vec<_>) =
            similar.iter().map(|found| (found.left, found.right)).unzip();
        for partners in [lefts, rights] {
            let Some(first) = partners.first() else {
                return Ok(RecordBatch::new_empty(SchemaRef::clone(&self.schema)));
            };
            // All left sets of a chunk come from one collection and side, and so do all right ones.
            if let Some(carried) = first.carried() {
                columns.extend(carried.take(first.side(), partners.iter().map(|set| set.row()))?);
            }
        }
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns)
    }
}

/// How many of the first pairs carry no more bytes than a batch should have; at least one.
fn rows_of_batch(similar: &[Match<'_>]) -> usize {
    let bytes = |set: Partner<'_>| {
        set.carried().map_or(0, |carried| carried.row_bytes(set.side(), set.row()))
    };
    let mut sum = 0;
    let is_full = |found: &Match<'_>| {
        sum += bytes(found.left) + bytes(found.right);
        sum > BATCH_BYTES
    };
    similar.iter().position(is_full).map_or(similar.len(), |rows| rows.max(1))
}
