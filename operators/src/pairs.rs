//! Rows of pairs: the ids `left` and `right`, columns of values, and the carried columns of both.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};

use crate::carry::CarriedRows;

/// Pairs of equal rows of which a join warns.
const COPIES_TOLD: u64 = 100_000_000;

/// Warns of `pairs` pairs of equal `rows`, each of which will be a row of the output, if they are
/// many. Called before they are sent.
pub(crate) fn warn_of_copies(pairs: u64, rows: &str) {
    if pairs >= COPIES_TOLD {
        tracing::warn!(
            "equal {rows} make {pairs} pairs, each of which is a row; `output` \"count\" counts them"
        );
    }
}

/// One partner of a pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairSide<'a> {
    pub(crate) id: u32,
    /// Carried columns, and the partner's row there. All pairs of a batch have the same columns
    /// on one side.
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
    has_carried: bool,
    batch_bytes: usize,
}

impl PairRows {
    /// Rows with the columns `values` and the carried columns of the left and the right partners.
    /// A batch has up to `batch_bytes` of these.
    pub(crate) fn new(
        values: impl IntoIterator<Item = Field>,
        carried: [SchemaRef; 2],
        batch_bytes: usize,
    ) -> Self {
        let id = |name| Field::new(name, DataType::UInt32, false);
        let has_carried = carried.iter().any(|carried| !carried.fields().is_empty());
        let mut fields = vec![id("left"), id("right")];
        fields.extend(values);
        for (side, carried) in ["left", "right"].into_iter().zip(carried) {
            fields.extend(carried.fields().iter().map(|field: &FieldRef| {
                let name = format!("{side}_{}", field.name());
                Field::new(name, field.data_type().clone(), field.is_nullable())
            }));
        }
        Self { schema: Arc::new(Schema::new(fields)), has_carried, batch_bytes }
    }

    /// Columns of the rows.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Number of the first pairs that fit one batch; at least one, unless there are no pairs.
    pub(crate) fn batch_len<'a>(
        &self,
        pairs: impl ExactSizeIterator<Item = [PairSide<'a>; 2]>,
    ) -> usize {
        let len = pairs.len();
        if !self.has_carried {
            return len;
        }
        let mut sum = 0;
        let is_full = |[left, right]: [PairSide<'a>; 2]| {
            sum += left.carried_bytes() + right.carried_bytes();
            sum > self.batch_bytes
        };
        let mut pairs = pairs;
        pairs.position(is_full).map_or(len, |rows| rows.max(1))
    }

    /// A batch of `pairs` with their columns `values`.
    pub(crate) fn batch<'a>(
        &self,
        pairs: impl Iterator<Item = [PairSide<'a>; 2]> + Clone,
        values: impl IntoIterator<Item = ArrayRef>,
    ) -> Result<RecordBatch, ArrowError> {
        let Some(first) = pairs.clone().next() else {
            return Ok(RecordBatch::new_empty(SchemaRef::clone(&self.schema)));
        };
        // A pass for each column: pairs are many, and most have no carried columns.
        let lefts = pairs.clone().map(|[left, _]| left);
        let rights = pairs.map(|[_, right]| right);
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from_iter_values(lefts.clone().map(|side| side.id))),
            Arc::new(UInt32Array::from_iter_values(rights.clone().map(|side| side.id))),
        ];
        columns.extend(values);
        let [left, right] = first.map(|side| side.carried);
        if let Some((rows, _)) = left {
            columns.extend(rows.take(lefts.filter_map(|side| Some(side.carried?.1)))?);
        }
        if let Some((rows, _)) = right {
            columns.extend(rows.take(rights.filter_map(|side| Some(side.carried?.1)))?);
        }
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns)
    }
}
