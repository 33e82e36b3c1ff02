//! Rows of the stream that have been looked up, and leave in batches of a limited size.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::ArrowError;
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take;

use super::LookupMode;
use super::plan::Plan;
use super::sizes::add_bytes;
use super::table::{BYTES_PER_CALL, Lists, NO_ROW, Rows, Table};
use crate::shared::parameters::BATCH_ITEMS;

/// Rows of a batch of the stream that have not left.
pub(super) struct Unsent {
    records: RecordBatch,
    partners: Partners,
}

/// The rows of the table for the rows of the stream.
enum Partners {
    /// The rows leave as they are, if there are rows.
    Without,
    /// A row of the table for each row of the stream, of which some have left.
    One { rows: Vec<u32>, sent: usize },
    /// All rows of the table with the key of a row of the stream.
    All(Expansion),
}

/// The rows of the stream, once for each partner.
struct Expansion {
    /// The number of the key of each row.
    keys: Vec<u32>,
    /// Bytes of each row.
    sizes: Vec<u64>,
    /// The row and the place among its partners that leave next.
    row: usize,
    place: usize,
}

impl Unsent {
    /// The rows of a batch, whose keys have these numbers.
    pub(super) fn new(
        records: RecordBatch,
        numbers: &[u32],
        table: &Table,
        mode: LookupMode,
    ) -> Result<Self, ArrowError> {
        let is_chosen = |row: usize| (numbers[row] == NO_ROW) == (mode == LookupMode::Anti);
        let chosen = match mode {
            LookupMode::Left => None,
            LookupMode::Inner | LookupMode::Anti | LookupMode::Semi => {
                Some(BooleanBuffer::collect_bool(numbers.len(), is_chosen))
            }
        };
        let chosen = chosen.filter(|chosen| chosen.count_set_bits() < numbers.len());
        let records = match &chosen {
            None => records,
            Some(chosen) => {
                filter_record_batch(&records, &BooleanArray::new(chosen.clone(), None))?
            }
        };
        if !mode.adds_columns() {
            return Ok(Self { records, partners: Partners::Without });
        }
        let is_left = |row: usize| chosen.as_ref().is_none_or(|chosen| chosen.value(row));
        let numbers = (0..numbers.len()).filter(|&row| is_left(row)).map(|row| numbers[row]);
        let partners = match &table.rows {
            Rows::One(row_of) => {
                let row_of = |key: u32| if key == NO_ROW { NO_ROW } else { row_of[key as usize] };
                Partners::One { rows: numbers.map(row_of).collect(), sent: 0 }
            }
            Rows::Lists(_) => {
                let keys: Vec<u32> = numbers.collect();
                let mut sizes = vec![0; keys.len()];
                records.columns().iter().for_each(|column| add_bytes(column, &mut sizes));
                Partners::All(Expansion { keys, sizes, row: 0, place: 0 })
            }
        };
        Ok(Self { records, partners })
    }

    /// Whether all rows have left.
    pub(super) fn is_sent(&self) -> bool {
        match &self.partners {
            Partners::Without => self.records.num_rows() == 0,
            Partners::One { rows, sent } => *sent == rows.len(),
            Partners::All(Expansion { keys, row, .. }) => *row == keys.len(),
        }
    }

    /// The next rows.
    pub(super) fn next(&mut self, table: &Table, plan: &Plan) -> Result<RecordBatch, ArrowError> {
        let (mut columns, added) = match &mut self.partners {
            Partners::Without => {
                let rest = self.records.slice(self.records.num_rows(), 0);
                return Ok(std::mem::replace(&mut self.records, rest));
            }
            Partners::One { rows, sent } => {
                let begin = *sent;
                let len = table.fitting(&rows[begin..]);
                *sent += len;
                let records = self.records.slice(begin, len);
                (records.columns().to_vec(), table.take(&rows[begin..begin + len])?)
            }
            Partners::All(expansion) => {
                let Rows::Lists(lists) = &table.rows else { unreachable!("keys have lists") };
                let (rows, partners) = expansion.next(table, lists);
                let rows = UInt32Array::from(rows);
                let take = |column: &ArrayRef| take(column, &rows, None);
                let columns = self.records.columns().iter().map(take);
                (columns.collect::<Result<_, _>>()?, table.take(&partners)?)
            }
        };
        columns.extend(added);
        RecordBatch::try_new(Arc::clone(&plan.schema), columns)
    }
}

impl Expansion {
    /// The next rows of the stream, and their partners.
    fn next(&mut self, table: &Table, lists: &Lists) -> (Vec<u32>, Vec<u32>) {
        let (mut rows, mut partners) = (Vec::new(), Vec::new());
        let mut left = BYTES_PER_CALL;
        while let Some(&key) = self.keys.get(self.row) {
            let found = if key == NO_ROW { &[NO_ROW] } else { lists.of(key) };
            let row = u32::try_from(self.row).expect("a batch has fewer rows than 2^32");
            for &partner in &found[self.place..] {
                let bytes = self.sizes[self.row].saturating_add(table.bytes_of(partner));
                // Each batch has at least one row, so that each call advances.
                if !rows.is_empty() && (rows.len() == BATCH_ITEMS || bytes > left) {
                    return (rows, partners);
                }
                left = left.saturating_sub(bytes);
                rows.push(row);
                partners.push(partner);
                self.place += 1;
            }
            (self.row, self.place) = (self.row + 1, 0);
        }
        (rows, partners)
    }
}
