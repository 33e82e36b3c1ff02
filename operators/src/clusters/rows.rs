//! The rows of the second input, which leave with their clusters.

use std::cmp::Ordering;
use std::sync::Arc;
use std::vec;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array, new_empty_array};
use arrow_cast::cast;
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_schema::{ArrowError, DataType, SchemaRef, SortOptions};
use arrow_select::concat::concat;
use arrow_select::filter::{filter, filter_record_batch};
use trommel_engine::operator::OperatorError;

use super::Keep;
use crate::expressions::ColumnInput;
use crate::shared::budget::{Budget, BudgetFull, bytes_with};
use crate::shared::columns::ids::IdInput;
use crate::shared::names::ItemNames;
use crate::shared::rejected::Faults;

/// The row of an id that is only in pairs.
const NO_ROW: u32 = u32::MAX;

/// Bytes of an id while rows leave: its place.
const PLACE_BYTES: usize = size_of::<Place>();

/// Columns that the operator reads from the rows.
pub(super) struct RowColumns {
    pub(super) ids: IdInput,
    /// The name of the ids in messages.
    pub(super) id_name: String,
    /// The values by which a row of a cluster stays.
    pub(super) value: Option<ColumnInput>,
    /// Schema of the rows with their clusters.
    pub(super) schema: SchemaRef,
}

/// The rows so far.
pub(super) struct Rows {
    columns: RowColumns,
    batches: Vec<Stored>,
    bytes: usize,
    /// Number of rows.
    len: usize,
    /// The row of each id, by the number of the id.
    row_of: Vec<u32>,
}

/// A batch of rows.
struct Stored {
    records: RecordBatch,
    /// The numbers of the ids.
    numbers: Vec<u32>,
    values: Option<ArrayRef>,
}

impl Stored {
    fn bytes(&self) -> usize {
        let values = self.values.as_ref().map_or(0, |values| values.get_array_memory_size());
        self.records.get_array_memory_size() + size_of_val(&self.numbers[..]) + values
    }
}

/// The ids of a batch, and the values by which a row stays.
pub(super) struct Read {
    pub(super) ids: ArrayRef,
    values: Option<ArrayRef>,
}

impl Rows {
    pub(super) fn new(columns: RowColumns) -> Self {
        Self { columns, batches: Vec::new(), bytes: 0, len: 0, row_of: Vec::new() }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + size_of::<u32>() * self.row_of.capacity()
    }

    /// Reads a batch, and notes the rows that cannot be used. The ids get the type `kind`.
    pub(super) fn read(
        &mut self,
        records: &RecordBatch,
        kind: &DataType,
        faults: &mut Faults,
    ) -> Result<Read, OperatorError> {
        let ids = self.columns.ids.of(records, faults)?;
        let ids = ids.carried.unwrap_or_else(|| Arc::new(ids.numbers));
        let value = self.columns.value.as_ref();
        let values = value.map(|value| faults.values(value, records)).transpose()?;
        Ok(Read { ids: cast(&ids, kind)?, values })
    }

    /// Makes room for the rows of `len` ids.
    pub(super) fn grow(&mut self, len: usize, mut budget: Budget) -> Result<(), BudgetFull> {
        let (known, capacity) = (self.row_of.len(), self.row_of.capacity());
        let bytes = bytes_with(capacity, known, len - known, size_of::<u32>());
        budget.take("the rows of the ids", bytes - size_of::<u32>() * capacity)?;
        self.row_of.resize(len, NO_ROW);
        Ok(())
    }

    /// Notes rows whose id is that of an earlier row. `numbers` has the ids of the rows that could
    /// be used so far.
    pub(super) fn note_copies(
        &mut self,
        numbers: &[u32],
        usable: Option<&BooleanArray>,
        faults: &mut Faults,
    ) {
        let rows = usable.map_or(numbers.len(), Array::len);
        let rows = (0..rows).filter(|&row| usable.is_none_or(|usable| usable.value(row)));
        let mut next = self.len;
        for (row, &number) in rows.zip(numbers) {
            let own = &mut self.row_of[number as usize];
            if *own == NO_ROW {
                *own = u32::try_from(next).expect("a row has a number of 32 bits, as its id has");
                next += 1;
            } else {
                faults.note(row, &self.columns.id_name, "an earlier row has this id");
            }
        }
    }

    /// Keeps the rows that can be used, whose ids have these numbers.
    pub(super) fn keep(
        &mut self,
        records: &RecordBatch,
        numbers: Vec<u32>,
        values: Option<ArrayRef>,
        mut budget: Budget,
    ) -> Result<(), OperatorError> {
        let stored = Stored { records: records.clone(), numbers, values };
        let bytes = stored.bytes();
        budget.take("the rows", bytes)?;
        self.bytes += bytes;
        self.len += records.num_rows();
        self.batches.push(stored);
        Ok(())
    }

    /// The numbers of the ids that have a row.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        let rows = (0_u32..).zip(&self.row_of);
        rows.filter(|(_, row)| **row != NO_ROW).map(|(number, _)| number)
    }

    /// Finds the row of a cluster that stays by its value; none if another rule decides.
    ///
    /// # Errors
    /// If the values do not fit into one array.
    pub(super) fn best(
        &self,
        keep: Keep,
        budget: &mut Budget,
    ) -> Result<Option<Best>, OperatorError> {
        let wins = match keep {
            Keep::Largest => Ordering::Greater,
            Keep::Smallest => Ordering::Less,
            Keep::First | Keep::Last | Keep::Unmatched => return Ok(None),
        };
        let values: Vec<&dyn Array> =
            self.batches.iter().filter_map(|rows| rows.values.as_deref()).collect();
        if values.is_empty() {
            return Ok(None);
        }
        let bytes = values.iter().map(|values| values.get_array_memory_size()).sum();
        budget.take("the values of the rows", bytes)?;
        Ok(Some(Best { compare: comparator(&concat(&values)?, wins)?, wins }))
    }

    /// The rows with the places of their ids, batch by batch.
    pub(super) fn with_places(self, places: Vec<Place>) -> UnsentRows {
        UnsentRows { schema: self.columns.schema, batches: self.batches.into_iter(), places }
    }

    /// Bytes of the places of `ids` ids.
    pub(super) fn places_bytes(ids: usize) -> usize {
        ids * PLACE_BYTES
    }

    /// The number of the row of an id that has one.
    fn row(&self, number: u32) -> usize {
        self.row_of[number as usize] as usize
    }
}

/// The order of values in which a null never wins.
fn comparator(values: &ArrayRef, wins: Ordering) -> Result<DynComparator, ArrowError> {
    let options = SortOptions { descending: false, nulls_first: wins == Ordering::Greater };
    make_comparator(values, values, options)
}

/// Whether values of a type have an order.
pub(super) fn has_order(kind: &DataType) -> bool {
    comparator(&new_empty_array(kind), Ordering::Greater).is_ok()
}

/// The search for the row of a cluster with the best value.
pub(super) struct Best {
    compare: DynComparator,
    wins: Ordering,
}

impl Best {
    /// The first of `members` that no other member surpasses.
    pub(super) fn of(&self, rows: &Rows, members: &[u32]) -> Option<u32> {
        members.iter().copied().reduce(|best, member| {
            let order = (self.compare)(rows.row(member), rows.row(best));
            if order == self.wins { member } else { best }
        })
    }
}

/// What the row of an id says about its cluster.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    /// Number of the smallest id of the cluster.
    pub(super) first: u32,
    pub(super) size: u32,
    pub(super) is_kept: bool,
}

/// Rows that have not been sent.
pub(super) struct UnsentRows {
    schema: SchemaRef,
    batches: vec::IntoIter<Stored>,
    /// The places of the ids, by their numbers.
    places: Vec<Place>,
}

impl UnsentRows {
    /// The next rows; `None` if all rows have been sent.
    pub(super) fn next(&mut self, names: &ItemNames) -> Option<RecordBatch> {
        let Stored { records, numbers, .. } = self.batches.next()?;
        let places = || numbers.iter().map(|&number| self.places[number as usize]);
        let firsts: Vec<u32> = places().map(|place| place.first).collect();
        let mut columns = records.columns().to_vec();
        columns.push(names.column(&firsts));
        columns.push(Arc::new(UInt32Array::from_iter_values(places().map(|place| place.size))));
        columns.push(Arc::new(places().map(|place| Some(place.is_kept)).collect::<BooleanArray>()));
        let rows = RecordBatch::try_new(SchemaRef::clone(&self.schema), columns);
        Some(rows.expect("columns of the schema"))
    }
}

impl Read {
    /// The values of the usable rows.
    pub(super) fn usable_values(
        self,
        usable: Option<&BooleanArray>,
    ) -> Result<Option<ArrayRef>, ArrowError> {
        match (self.values, usable) {
            (Some(values), Some(usable)) => Ok(Some(filter(&values, usable)?)),
            (values, _) => Ok(values),
        }
    }
}

/// The usable rows of a batch.
pub(super) fn usable_rows(
    records: &RecordBatch,
    usable: Option<&BooleanArray>,
) -> Result<RecordBatch, ArrowError> {
    usable.map_or_else(|| Ok(records.clone()), |usable| filter_record_batch(records, usable))
}
