//! Rows of pairs: the ids `left` and `right`, in the type of the ids of the input, columns of
//! values, and the carried columns of both partners.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};

use crate::shared::columns::carry::{CarriedColumns, CarriedRows};

/// Minimum number of pairs of equal rows at which a join warns.
const COPIES_TOLD: u64 = 100_000_000;

/// Warns of `pairs` pairs of equal `rows`, if there are many such pairs. Each pair will be a row of
/// the output. The call comes before the rows are sent.
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
    /// Carried columns, and the row of the partner in the columns. All pairs of a batch have the
    /// same columns on one side. The first column has the ids, if ids are carried.
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
    /// Whether the first carried column of each side has the ids.
    has_carried_ids: bool,
    batch_bytes: usize,
}

impl PairRows {
    /// Rows with the columns `values` and the carried columns of the left and the right partners. A
    /// batch has up to `batch_bytes` bytes of carried columns.
    pub(crate) fn new(
        values: impl IntoIterator<Item = Field>,
        carried: [&CarriedColumns; 2],
        batch_bytes: usize,
    ) -> Self {
        let sides = ["left", "right"].into_iter().zip(carried);
        let ids = sides.clone().map(|(side, carried)| {
            let kind = carried.id_type().unwrap_or(&DataType::UInt32);
            Field::new(side, kind.clone(), false)
        });
        let mut fields: Vec<Field> = ids.chain(values).collect();
        for (side, carried) in sides {
            fields.extend(carried.others().iter().map(|field: &FieldRef| {
                let name = format!("{side}_{}", field.name());
                Field::new(name, field.data_type().clone(), field.is_nullable())
            }));
        }
        Self {
            schema: Arc::new(Schema::new(fields)),
            has_carried: carried.iter().any(|carried| !carried.is_empty()),
            has_carried_ids: carried.iter().any(|carried| carried.id_type().is_some()),
            batch_bytes,
        }
    }

    /// Columns of the rows.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Number of the first pairs that fit into one batch; at least one, unless there are no pairs.
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
        // Each column has a pass of its own, since pairs are many, and most have no carried
        // columns.
        let lefts = pairs.clone().map(|[left, _]| left);
        let rights = pairs.map(|[_, right]| right);
        let [left, right] = first.map(|side| side.carried);
        let mut of_left = match left {
            Some((rows, _)) => rows.take(lefts.clone().filter_map(|side| Some(side.carried?.1)))?,
            None => Vec::new(),
        };
        let mut of_right = match right {
            Some((rows, _)) => {
                rows.take(rights.clone().filter_map(|side| Some(side.carried?.1)))?
            }
            None => Vec::new(),
        };
        let mut columns: Vec<ArrayRef> = if self.has_carried_ids {
            vec![of_left.remove(0), of_right.remove(0)]
        } else {
            vec![
                Arc::new(UInt32Array::from_iter_values(lefts.map(|side| side.id))),
                Arc::new(UInt32Array::from_iter_values(rights.map(|side| side.id))),
            ]
        };
        columns.extend(values);
        columns.extend(of_left);
        columns.extend(of_right);
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns)
    }
}
