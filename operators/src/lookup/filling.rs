//! The table before its end.

use std::mem;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, new_empty_array};
use arrow_buffer::NullBuffer;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use arrow_select::concat::concat;
use arrow_select::filter::filter;
use thiserror::Error;
use trommel_engine::operator::{OperatorError, Output};

use super::Duplicates;
use super::plan::Plan;
use super::sizes::add_bytes;
use super::table::{BYTES_PER_CALL, Lists, NO_ROW, Rows, Table};
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::groups::{Groups, GroupsFull};
use crate::shared::parameters::BATCH_ITEMS;
use crate::shared::rejected::{BadRows, PORT};

const TABLE: &str = "the table";
/// Maximum number of rows of the table.
const ROWS_MAX: usize = NO_ROW as usize;
/// Maximum bytes of a column whose offsets have 32 bits.
const COLUMN_BYTES_MAX: usize = i32::MAX as usize;
/// Maximum characters of a key in a message.
const KEY_CHARS_MAX: usize = 200;

/// The table has a key twice.
#[derive(Debug, Error)]
#[error(
    "row {row} of input 2: the key {key} is also the key of row {earlier}; `duplicates` can be \
     \"first\", \"last\" or \"all\""
)]
struct DuplicateKey {
    row: usize,
    earlier: usize,
    key: String,
}

/// The table has too many rows, or too many bytes in a column.
#[derive(Debug, Error)]
enum TableFull {
    #[error("the table has more than {ROWS_MAX} rows")]
    Rows,
    #[error(
        "the column `{column}` of the table has more than {COLUMN_BYTES_MAX} bytes; a `cast` to \
         another type, or fewer rows, make the column smaller"
    )]
    Column { column: String },
}

/// A column of the table, by batches.
#[derive(Debug, Default)]
struct Batches {
    arrays: Vec<ArrayRef>,
    /// Bytes that have been taken from the budget.
    bytes: usize,
}

/// The rows of the table so far.
pub(super) struct Filling {
    plan: Arc<Plan>,
    keys: Groups,
    /// Number of rows.
    len: usize,
    /// The row of each key, by the number of the key; empty if all rows count.
    row_of: Vec<u32>,
    /// The number of the key of each row, if all rows count.
    key_of: Vec<u32>,
    columns: Vec<Batches>,
    /// The numbers of the keys of a batch.
    numbers: Vec<u32>,
}

impl Filling {
    /// A table without rows.
    pub(super) fn new(plan: &Arc<Plan>) -> Self {
        Self {
            keys: Groups::new(&plan.encoder, plan.hash.clone()),
            len: 0,
            row_of: Vec::new(),
            key_of: Vec::new(),
            columns: plan.added.iter().map(|_| Batches::default()).collect(),
            numbers: Vec::new(),
            plan: Arc::clone(plan),
        }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a batch of rows.
    pub(super) fn add(
        &mut self,
        records: &RecordBatch,
        bad: &mut BadRows,
        budget: &mut Budget,
        out: &mut Output,
    ) -> Result<(), OperatorError> {
        let mut faults = bad.faults();
        let keys = self.plan.keys_of(1, records, &mut faults)?;
        let added = self.plan.added.iter().map(|added| faults.evaluate(added, records));
        let added = added.collect::<Result<Vec<ArrayRef>, _>>()?;
        bad.settle(1, records, &faults)?;
        bad.take_rejected().into_iter().for_each(|rows| out.send_to(PORT, rows));
        if self.len + records.num_rows() > ROWS_MAX {
            return Err(TableFull::Rows.into());
        }
        // A row with a null in its key keeps its number, and no key has the row.
        let usable = faults.usable(records.num_rows());
        let usable = usable.map(|usable| NullBuffer::new(usable.into_parts().0));
        let usable = keys.iter().fold(usable, |usable, key| {
            NullBuffer::union(usable.as_ref(), key.logical_nulls().as_ref())
        });
        let usable = usable.filter(|usable| usable.null_count() > 0);
        self.number(&keys, usable.as_ref(), records.num_rows(), budget)?;
        self.note_rows(&keys, usable.as_ref(), budget)?;
        for (column, array) in self.columns.iter_mut().zip(added) {
            let bytes = array.get_array_memory_size();
            budget.take(TABLE, bytes)?;
            budget.grow(TABLE, &mut column.arrays, 1)?;
            column.bytes += bytes;
            column.arrays.push(array);
        }
        self.len += records.num_rows();
        Ok(())
    }

    /// Numbers the keys of the usable rows.
    fn number(
        &mut self,
        keys: &[ArrayRef],
        usable: Option<&NullBuffer>,
        rows: usize,
        budget: &mut Budget,
    ) -> Result<(), OperatorError> {
        let mut keys = self.plan.with_types(keys)?;
        if let Some(usable) = usable {
            let usable = BooleanArray::new(usable.inner().clone(), None);
            keys = keys.iter().map(|key| filter(key, &usable)).collect::<Result<_, _>>()?;
        }
        let rows = usable.map_or(rows, |usable| usable.len() - usable.null_count());
        let keys = self.plan.encoder.encode(&keys, rows)?;
        self.keys.number(&keys, &mut self.numbers, budget).map_err(|full| match full {
            GroupsFull::Memory { full, .. } => BudgetFull { what: TABLE, ..full }.into(),
            GroupsFull::Number => OperatorError::from(TableFull::Rows),
        })
    }

    /// Notes the rows of the keys of a batch.
    fn note_rows(
        &mut self,
        keys: &[ArrayRef],
        usable: Option<&NullBuffer>,
        budget: &mut Budget,
    ) -> Result<(), OperatorError> {
        let rows = keys[0].len();
        let is_usable = |row: &usize| usable.is_none_or(|usable| usable.is_valid(*row));
        let number = |row: usize| u32::try_from(self.len + row).expect("below the most rows");
        let rows_of_numbers = (0..rows).filter(is_usable).zip(&self.numbers);
        if self.plan.duplicates == Duplicates::All {
            budget.grow(TABLE, &mut self.key_of, rows)?;
            let before = self.key_of.len();
            self.key_of.resize(before + rows, NO_ROW);
            rows_of_numbers.for_each(|(row, &key)| self.key_of[before + row] = key);
            return Ok(());
        }
        let more = self.keys.len() - self.row_of.len();
        budget.grow(TABLE, &mut self.row_of, more)?;
        for (row, &key) in rows_of_numbers {
            match self.row_of.get_mut(key as usize) {
                // Keys have numbers in the order of their first rows.
                None => self.row_of.push(number(row)),
                Some(earlier) => match self.plan.duplicates {
                    Duplicates::Last => *earlier = number(row),
                    Duplicates::First | Duplicates::All => {}
                    Duplicates::Fail => {
                        let earlier = *earlier as usize + 1;
                        let key = shown(keys, row)?;
                        let row = self.len + row + 1;
                        return Err(DuplicateKey { row, earlier, key }.into());
                    }
                },
            }
        }
        Ok(())
    }

    /// The whole table.
    pub(super) fn end(mut self, budget: &mut Budget) -> Result<Table, OperatorError> {
        let mut columns = Vec::with_capacity(self.columns.len());
        let batches = mem::take(&mut self.columns);
        for (batches, added) in batches.into_iter().zip(&self.plan.added) {
            columns.push(joined(batches, added.data_type(), added.text(), budget)?);
        }
        let sizes = self.sizes(&columns, budget)?;
        let rows = match self.plan.duplicates {
            Duplicates::All => Lists::new(&self.key_of, self.keys.len(), budget)?.into_rows(budget),
            _ => Rows::One(self.row_of),
        };
        budget.give_back(self.key_of.capacity() * size_of::<u32>());
        Ok(Table { keys: self.keys, rows, columns, sizes })
    }

    /// The bytes of each row, if a batch of the largest row has too many bytes.
    fn sizes(
        &self,
        columns: &[ArrayRef],
        budget: &mut Budget,
    ) -> Result<Option<Vec<u64>>, BudgetFull> {
        if columns.is_empty() {
            return Ok(None);
        }
        let bytes = self.len * size_of::<u64>();
        budget.take(TABLE, bytes)?;
        let mut sizes = vec![0; self.len];
        columns.iter().for_each(|column| add_bytes(column, &mut sizes));
        let largest = sizes.iter().copied().max().unwrap_or(0);
        if largest.saturating_mul(BATCH_ITEMS as u64) > BYTES_PER_CALL {
            return Ok(Some(sizes));
        }
        budget.give_back(bytes);
        Ok(None)
    }
}

/// A column as one array.
fn joined(
    batches: Batches,
    kind: &DataType,
    name: &str,
    budget: &mut Budget,
) -> Result<ArrayRef, OperatorError> {
    let Batches { arrays, bytes } = batches;
    let bytes = bytes + arrays.capacity() * size_of::<ArrayRef>();
    let needed = arrays.iter().map(|array| array.to_data().get_slice_memory_size());
    let needed = needed.sum::<Result<usize, _>>()?;
    let has_offsets =
        matches!(kind, DataType::Utf8 | DataType::Binary | DataType::List(_) | DataType::Map(..));
    if has_offsets && needed > COLUMN_BYTES_MAX {
        return Err(TableFull::Column { column: name.to_owned() }.into());
    }
    let arrays: Vec<&dyn Array> = arrays.iter().map(|array| &**array).collect();
    let column = match &arrays[..] {
        [] => new_empty_array(kind),
        arrays => {
            budget.reserve(TABLE, needed)?;
            concat(arrays)?
        }
    };
    budget.give_back(bytes);
    budget.take(TABLE, column.get_array_memory_size())?;
    Ok(column)
}

/// The key of a row, for a message.
fn shown(keys: &[ArrayRef], row: usize) -> Result<String, OperatorError> {
    let options = FormatOptions::new();
    let mut parts = Vec::with_capacity(keys.len());
    for key in keys {
        let text = ArrayFormatter::try_new(key, &options)?.value(row).to_string();
        let end = text.char_indices().nth(KEY_CHARS_MAX).map_or(text.len(), |(end, _)| end);
        parts.push(format!("`{}{}`", &text[..end], if end < text.len() { "…" } else { "" }));
    }
    Ok(parts.join(", "))
}
