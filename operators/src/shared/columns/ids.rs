//! Ids of rows: the values of a column or an expression, or the positions of the rows.
//!
//! Operators name rows by numbers of 32 bits. If ids have this type, the ids are the numbers;
//! positions are numbers, too. Ids of another type are carried with the rows and return in the rows
//! of the output; the numbers are positions then.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, SchemaRef};
use thiserror::Error;
use trommel_engine::error::BindError;
use trommel_engine::operator::{Demand, OperatorError};

use crate::expressions::ColumnInput;
use crate::shared::parameters::Mistakes;
use crate::shared::rejected::Faults;

/// Name of the column of ids, if no column is named.
const ID: &str = "id";

/// A row whose position exceeds 32 bits.
#[derive(Debug, Error)]
#[error("row {row} of input {input} has no position of 32 bits; name a column of ids as `id`")]
struct TooManyRows {
    row: u64,
    /// Number of the input, from 1.
    input: usize,
}

/// The ids of the rows of an input.
#[derive(Debug, Clone)]
pub(crate) struct IdInput {
    /// Number of the input, from 1.
    input: usize,
    column: Option<ColumnInput>,
    /// The type of ids that are carried with the rows.
    carried: Option<DataType>,
    /// Whether rows may have positions beyond 32 bits, because positions are not shown.
    wraps: bool,
    /// Number of rows so far.
    rows: u64,
}

/// The ids of the rows of a batch.
#[derive(Debug, Clone)]
pub(crate) struct RowIds {
    /// A number for each row; null if the id of the row is null.
    pub(crate) numbers: UInt32Array,
    /// Ids of another type, which are carried.
    pub(crate) carried: Option<ArrayRef>,
}

impl IdInput {
    /// The ids `text` of each of `inputs`: a column or an expression. If no ids are named, the
    /// column `id` of each input that has such a column, or else the positions of the rows.
    pub(crate) fn bind(inputs: &[SchemaRef], text: Option<&str>) -> Result<Vec<Self>, BindError> {
        let (mut mistakes, mut bound) = (Mistakes::default(), Vec::with_capacity(inputs.len()));
        for (number, schema) in (1..).zip(inputs) {
            let text = text.or_else(|| schema.column_with_name(ID).map(|_| ID));
            let column = text.map(|text| ColumnInput::bind(schema, text, ID)).transpose();
            bound.extend(mistakes.check(column).map(|column| (number, column)));
        }
        mistakes.none()?;
        let kind = |column: &Option<(ColumnInput, DataType)>| {
            column.as_ref().map_or(DataType::UInt32, |(_, kind)| kind.clone())
        };
        // If one side carries its ids, both sides carry their ids.
        let is_carried = bound.iter().any(|(_, column)| kind(column) != DataType::UInt32);
        let input = |(input, column): (usize, Option<(ColumnInput, DataType)>)| {
            let carried = is_carried.then(|| kind(&column));
            let column = column.map(|(column, _)| column);
            // A carried position is shown, while the position of a row with a carried id is not
            // shown.
            let wraps = carried.is_some() && column.is_some();
            Self { input, column, carried, wraps, rows: 0 }
        };
        Ok(bound.into_iter().map(input).collect())
    }

    /// `demand` with the ids `text`, or with the column `id`, which an input may have.
    pub(crate) fn demand(text: Option<&str>, demand: Demand) -> Demand {
        match text {
            Some(text) => ColumnInput::demand(text, demand),
            None => demand.words([ID]),
        }
    }

    /// Ids that are not in the output: only null ids matter.
    pub(crate) fn unseen(self) -> Self {
        Self { carried: None, wraps: true, ..self }
    }

    /// Whether the ids are positions, because no column has ids.
    pub(crate) fn are_positions(&self) -> bool {
        self.column.is_none()
    }

    /// The field of the ids, if the ids are carried.
    pub(crate) fn carried_field(&self) -> Option<Field> {
        let kind = self.carried.clone()?;
        Some(Field::new(ID, kind, true))
    }

    /// The ids of the next batch. Faults of the ids are noted.
    ///
    /// # Errors
    /// If a position exceeds 32 bits.
    pub(crate) fn of(
        &mut self,
        records: &RecordBatch,
        faults: &mut Faults,
    ) -> Result<RowIds, OperatorError> {
        let column = self.column.as_ref();
        let ids = column.map(|column| faults.values(column, records)).transpose()?;
        if let (Some(ids), Some(column)) = (&ids, column) {
            let nulls = ids.logical_nulls();
            faults.note_nulls(nulls.as_ref(), column.text(records.schema_ref()), "the id");
        }
        if let (Some(ids), None) = (&ids, &self.carried)
            && let Some(numbers) = ids.as_primitive_opt::<UInt32Type>()
        {
            return Ok(RowIds { numbers: numbers.clone(), carried: None });
        }
        let nulls = ids.as_ref().and_then(|ids| ids.logical_nulls());
        let numbers = self.positions(records.num_rows(), nulls)?;
        let carried = self.carried.is_some().then(|| match ids {
            Some(ids) => ids,
            None => Arc::new(numbers.clone()),
        });
        Ok(RowIds { numbers, carried })
    }

    /// Positions of the next `rows` rows.
    fn positions(
        &mut self,
        rows: usize,
        nulls: Option<NullBuffer>,
    ) -> Result<UInt32Array, TooManyRows> {
        let begin = self.rows;
        self.rows += rows as u64;
        if self.rows > 1 << 32 && !self.wraps {
            return Err(TooManyRows { row: 1 << 32, input: self.input });
        }
        let position = |row: u64| u32::try_from(row % (1 << 32)).expect("below 2^32");
        let positions = (begin..self.rows).map(position).collect::<Vec<_>>();
        Ok(UInt32Array::new(positions.into(), nulls))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::StringArray;

    use super::*;
    use crate::shared::rejected::BadRows;

    fn texts() -> RecordBatch {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("c")]));
        RecordBatch::try_from_iter([("key", texts)]).unwrap()
    }

    #[test]
    fn rows_without_ids_are_named_by_their_position() {
        let records = texts();
        let mut input = IdInput::bind(&[records.schema()], None).unwrap().remove(0);
        assert!(input.are_positions() && input.carried_field().is_none());
        for first in [0, 3] {
            let ids = input.of(&records, &mut BadRows::new(None, 1).faults()).unwrap();
            assert_eq!(ids.numbers.values()[..], [first, first + 1, first + 2]);
        }
        input.rows = (1 << 32) - 3;
        assert_eq!(
            input.of(&records, &mut BadRows::new(None, 1).faults()).unwrap().numbers.value(2),
            u32::MAX
        );
        let error =
            input.of(&records, &mut BadRows::new(None, 1).faults()).unwrap_err().to_string();
        let said = "row 4294967296 of input 1 has no position of 32 bits";
        assert_eq!(error, format!("{said}; name a column of ids as `id`"));
        let mut unseen = input.unseen();
        assert_eq!(
            unseen.of(&records, &mut BadRows::new(None, 1).faults()).unwrap().numbers.len(),
            3
        );
    }

    #[test]
    fn ids_of_another_type_are_carried_and_null_where_they_are() {
        let (records, schema) = (texts(), texts().schema());
        let empty = Arc::new(arrow_schema::Schema::empty());
        let mut inputs = IdInput::bind(&[Arc::clone(&schema)], Some("upper(key)")).unwrap();
        let ids = inputs[0].of(&records, &mut BadRows::new(None, 1).faults()).unwrap();
        assert_eq!((ids.numbers.value(2), ids.numbers.null_count()), (2, 1));
        let carried = ids.carried.unwrap();
        assert_eq!(carried.as_string::<i32>().value(2), "C");
        assert!(IdInput::bind(&[schema, empty], Some("key")).is_err());
    }
}
