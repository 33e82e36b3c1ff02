//! The table after its end.

use arrow_array::{ArrayRef, UInt32Array, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::ArrowError;
use arrow_select::take::take;

use super::plan::Plan;
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::groups::{Groups, NO_GROUP};

/// The place of a row where there is no row.
pub(super) const NO_ROW: u32 = NO_GROUP;
/// Maximum bytes of rows that are sent at once; a single row may have more bytes.
pub(super) const BYTES_PER_CALL: u64 = 16 << 20;

const LISTS: &str = "the table";

/// All rows of the table.
pub(super) struct Table {
    pub(super) keys: Groups,
    pub(super) rows: Rows,
    pub(super) columns: Vec<ArrayRef>,
    /// Bytes of each row, if rows are large.
    pub(super) sizes: Option<Vec<u64>>,
}

/// The rows of keys, by the numbers of the keys.
pub(super) enum Rows {
    /// One row of each key.
    One(Vec<u32>),
    Lists(Lists),
}

/// All rows of each key, in the order of the table.
pub(super) struct Lists {
    /// The end of the rows of each key.
    ends: Vec<u32>,
    rows: Vec<u32>,
}

impl Lists {
    /// The lists of `keys` keys, of which `key_of` names the key of each row.
    pub(super) fn new(
        key_of: &[u32],
        keys: usize,
        budget: &mut Budget,
    ) -> Result<Self, BudgetFull> {
        let (mut ends, mut rows) = (Vec::new(), Vec::new());
        budget.grow(LISTS, &mut ends, keys)?;
        budget.grow(LISTS, &mut rows, key_of.len())?;
        ends.resize(keys, 0_u32);
        let with_key = || (0_u32..).zip(key_of).filter(|(_, key)| **key != NO_ROW);
        with_key().for_each(|(_, &key)| ends[key as usize] += 1);
        let mut sum = 0;
        for end in &mut ends {
            // The end is the beginning until the rows are put in.
            sum += std::mem::replace(end, sum);
        }
        rows.resize(sum as usize, 0);
        for (row, &key) in with_key() {
            let end = &mut ends[key as usize];
            rows[*end as usize] = row;
            *end += 1;
        }
        Ok(Self { ends, rows })
    }

    /// The lists, or the rows if each key has one row.
    pub(super) fn into_rows(self, budget: &mut Budget) -> Rows {
        if self.rows.len() > self.ends.len() {
            return Rows::Lists(self);
        }
        budget.give_back(self.ends.capacity() * size_of::<u32>());
        Rows::One(self.rows)
    }

    /// The rows of a key.
    pub(super) fn of(&self, key: u32) -> &[u32] {
        let begin = (key as usize).checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[begin as usize..self.ends[key as usize] as usize]
    }
}

impl Table {
    /// The number of the key of each row of columns of keys, or [`NO_ROW`] where the table does not
    /// have the key.
    pub(super) fn find(
        &mut self,
        plan: &Plan,
        keys: &[ArrayRef],
        numbers: &mut Vec<u32>,
    ) -> Result<(), ArrowError> {
        let rows = keys[0].len();
        self.keys.find(&plan.encoder.encode(&plan.with_types(keys)?, rows)?, numbers);
        Ok(())
    }

    /// The number of the first rows of `partners` that fit into a batch.
    pub(super) fn fitting(&self, partners: &[u32]) -> usize {
        let Some(sizes) = &self.sizes else { return partners.len() };
        let mut left = BYTES_PER_CALL;
        let fits = |(place, &row): (usize, &u32)| {
            let bytes = if row == NO_ROW { 0 } else { sizes[row as usize] };
            let fits = place == 0 || bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        };
        partners.iter().enumerate().map(fits).take_while(|fits| *fits).count()
    }

    /// Bytes of a row that has many bytes.
    pub(super) fn bytes_of(&self, row: u32) -> u64 {
        match &self.sizes {
            Some(sizes) if row != NO_ROW => sizes[row as usize],
            _ => 0,
        }
    }

    /// The columns of these rows, with nulls where there is no row.
    pub(super) fn take(&self, rows: &[u32]) -> Result<Vec<ArrayRef>, ArrowError> {
        let has_row = |place: usize| rows[place] != NO_ROW;
        let found = BooleanBuffer::collect_bool(rows.len(), has_row);
        let found = NullBuffer::new(found);
        if found.null_count() == rows.len() {
            let nulls = |column: &ArrayRef| new_null_array(column.data_type(), rows.len());
            return Ok(self.columns.iter().map(nulls).collect());
        }
        let places = match found.null_count() {
            0 => UInt32Array::from(rows.to_vec()),
            _ => {
                // A place with a null is read in some of the loops, so that it is within the table.
                let places = rows.iter().map(|&row| if row == NO_ROW { 0 } else { row });
                UInt32Array::new(places.collect(), Some(found))
            }
        };
        self.columns.iter().map(|column| take(column, &places, None)).collect()
    }
}
