//! Rows of pairs: the ids `left` and `right`, columns of values, and columns that go along with
//! either of them.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};

use crate::carry::CarriedRows;

/// One of two partners.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairSide<'a> {
    pub(crate) id: u32,
    /// The columns that go along, and its row of them. All pairs of a batch have the same ones on
    /// this side.
    pub(crate) carried: Option<(&'a CarriedRows, u32)>,
}

impl PairSide<'_> {
    fn carried_bytes(&self) -> usize {
        self.carried.map_or(0, |(rows, row)| rows.row_bytes(row))
    }
}

/// Makes rows of pairs.
#[derive(Debug, Clone)]
pub(crate) struct PairRows {
    schema: SchemaRef,
    batch_bytes: usize,
}

impl PairRows {
    /// Rows with `values`, and the columns that go along with the left and with the right
    /// partners. A batch holds up to `batch_bytes` of these.
    pub(crate) fn new(
        values: impl IntoIterator<Item = Field>,
        carried: [SchemaRef; 2],
        batch_bytes: usize,
    ) -> Self {
        let id = |name| Field::new(name, DataType::UInt32, false);
        let mut fields = vec![id("left"), id("right")];
        fields.extend(values);
        for (side, carried) in ["left", "right"].into_iter().zip(carried) {
            fields.extend(carried.fields().iter().map(|field: &FieldRef| {
                let name = format!("{side}_{}", field.name());
                Field::new(name, field.data_type().clone(), field.is_nullable())
            }));
        }
        Self { schema: Arc::new(Schema::new(fields)), batch_bytes }
    }

    /// Columns of the rows.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Number of the first pairs that one batch has room for; at least one if there are any.
    pub(crate) fn batch_len<'a>(
        &self,
        pairs: impl ExactSizeIterator<Item = [PairSide<'a>; 2]>,
    ) -> usize {
        let len = pairs.len();
        let mut sum = 0;
        let is_full = |[left, right]: [PairSide<'a>; 2]| {
            sum += left.carried_bytes() + right.carried_bytes();
            sum > self.batch_bytes
        };
        let mut pairs = pairs;
        pairs.position(is_full).map_or(len, |rows| rows.max(1))
    }

    /// A batch of `pairs` with the columns of their `values`.
    pub(crate) fn batch<'a>(
        &self,
        pairs: impl Iterator<Item = [PairSide<'a>; 2]>,
        values: impl IntoIterator<Item = ArrayRef>,
    ) -> Result<RecordBatch, ArrowError> {
        let (lefts, rights): (Vec<_>, Vec<_>) = pairs.map(|[left, right]| (left, right)).unzip();
        if lefts.is_empty() {
            return Ok(RecordBatch::new_empty(SchemaRef::clone(&self.schema)));
        }
        let ids = |sides: &[PairSide<'_>]| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(sides.iter().map(|side| side.id)))
        };
        let mut columns = vec![ids(&lefts), ids(&rights)];
        columns.extend(values);
        for sides in [lefts, rights] {
            if let Some((rows, _)) = sides[0].carried {
                columns.extend(rows.take(sides.iter().filter_map(|side| Some(side.carried?.1)))?);
            }
        }
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns)
    }
}
