//! Output of the operator: rows in batches of bounded size, and its state at the end.
//!
//! A summary of text can hold more bytes than a column of text, whose offsets have 31 bits, and
//! more bytes than one call of an operator should write. So the ranked items wait here, and each
//! call sends a part of the items.

use std::fmt::Debug;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use trommel_engine::operator::{Ending, Flow, OperatorError, Output};

use super::ranked::{item_type, ranked_rows};
use crate::shared::items::Column;
use crate::shared::state::{SnapshotFile, Stamp};
use crate::summary::Counted;

/// Maximum number of rows that are sent at once.
pub(crate) const ROWS_PER_CALL: usize = 8192;
/// Maximum bytes of items that are sent at once; a single item may have more bytes.
const BYTES_PER_CALL: usize = 16 << 20;

/// Ranked items that are still to be sent.
#[derive(Debug)]
pub(crate) struct Rows<K> {
    left: std::vec::IntoIter<Counted<K>>,
    /// Rank of the next item.
    rank: u32,
}

impl<K> Default for Rows<K> {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl<K> Rows<K> {
    /// Items in the order of their ranks, from 1.
    pub(crate) fn new(ranked: Vec<Counted<K>>) -> Self {
        Self { left: ranked.into_iter(), rank: 1 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.len() == 0
    }
}

impl<K: Column> Rows<K> {
    /// The next rows, of [`ranked_schema`](super::ranked::ranked_schema), as far as `budget`
    /// allows; `None` if no row is left or `budget` is used up.
    pub(crate) fn next_batch(
        &mut self,
        schema: &SchemaRef,
        budget: &mut Budget,
    ) -> Option<RecordBatch> {
        let left = self.left.as_slice();
        let count = left.iter().take_while(|counted| budget.admits(&counted.item)).count();
        if count == 0 {
            return None;
        }
        let rows = ranked_rows(schema, self.rank, left[..count].iter().map(Counted::as_ref));
        self.left.by_ref().take(count).for_each(drop);
        self.rank = self.rank.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        Some(rows)
    }
}

/// Rows and bytes that one call may still send.
#[derive(Debug)]
pub(crate) struct Budget {
    rows: usize,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { rows: ROWS_PER_CALL, bytes: BYTES_PER_CALL }
    }

    /// Takes an item, if there is room for the item or the item is the first of the call.
    fn admits<K: Column>(&mut self, item: &K) -> bool {
        let bytes = item.column_bytes();
        let is_first = self.rows == ROWS_PER_CALL;
        if self.rows == 0 || (bytes > self.bytes && !is_first) {
            return false;
        }
        self.rows -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
        true
    }
}

/// The name of the counted things, which a state contains, and the file for the state, if there is
/// a file.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    pub(crate) label: String,
    pub(crate) file: Option<SnapshotFile>,
}

/// Rows on their way out, and the file for the state. The file is written before the last rows, so
/// a slow reader or an abort of the run does not lose the state.
///
/// If the state cannot be written, all rows are still sent, and the run fails at its end.
#[derive(Debug)]
pub(crate) struct Outbox<K> {
    schema: SchemaRef,
    rows: Rows<K>,
    saving: Saving,
    is_checked: bool,
    has_ended: bool,
}

impl<K: Column> Outbox<K> {
    pub(crate) fn new(schema: SchemaRef, saving: Saving) -> Self {
        Self { schema, rows: Rows::default(), saving, is_checked: false, has_ended: false }
    }

    /// Adds the name of the counted things to a state that a query asks for while the input goes
    /// on.
    pub(crate) fn labelled(&self, mut state: Vec<u8>) -> Vec<u8> {
        let label = self.saving.label.clone();
        Stamp { label, ..Stamp::default() }.put_on(&mut state);
        state
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Type of the items in results.
    pub(crate) fn item_type(&self) -> DataType {
        item_type(&self.schema)
    }

    /// Makes sure, before the first item, that the state can be written.
    pub(crate) fn check(&mut self) -> Result<(), OperatorError> {
        if !self.is_checked {
            self.is_checked = true;
            self.saving.file.as_ref().map_or(Ok(()), SnapshotFile::probe)?;
        }
        Ok(())
    }

    /// Notes how the input ended.
    pub(crate) fn input_ended(&mut self, ending: Ending) {
        if let Some(file) = &mut self.saving.file {
            file.input_ended(ending);
        }
    }

    /// Whether rows of an emission wait to leave.
    pub(crate) fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Takes the rows of an emission. All rows of the previous emission have been sent.
    pub(crate) fn put(&mut self, ranked: Vec<Counted<K>>) {
        debug_assert!(self.rows.is_empty(), "rows of an emission leave before the next one");
        self.rows = Rows::new(ranked);
    }

    /// Takes the last rows of the stream.
    pub(crate) fn put_last(&mut self, ranked: Vec<Counted<K>>) {
        self.put(ranked);
        self.has_ended = true;
    }

    /// Writes `state` if the stream has ended, and sends the next rows.
    pub(crate) fn advance(
        &mut self,
        out: &mut Output,
        state: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Flow {
        if self.has_ended
            && let Some(file) = self.saving.file.take()
            && let Some(state) = state()
            && let Err(error) = file.write(state)
        {
            out.fail_late(error.into());
        }
        if let Some(rows) = self.rows.next_batch(&self.schema, &mut Budget::new()) {
            out.send(rows);
        }
        if self.rows.is_empty() { Flow::NeedInput } else { Flow::HaveOutput }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::frequent_items::rows::ranked::ranked_schema;
    use crate::shared::items::Text;

    fn counted(texts: impl IntoIterator<Item = String>) -> Vec<Counted<Text>> {
        let counted = |text: String| Counted { item: Text::from(&*text), count: 1, error: 0 };
        texts.into_iter().map(counted).collect()
    }

    /// Rows and bytes of each batch.
    fn batches(ranked: Vec<Counted<Text>>) -> Vec<(usize, usize)> {
        let schema = ranked_schema(&Text::TYPE);
        let mut rows = Rows::new(ranked);
        let mut ranks = 0;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next_batch(&schema, &mut Budget::new()) {
            use arrow_array::cast::AsArray;
            use arrow_array::types::UInt32Type;
            for rank in batch.column(0).as_primitive::<UInt32Type>().values() {
                ranks += 1;
                assert_eq!(*rank, ranks);
            }
            let texts = Arc::clone(batch.column(1));
            batches.push((batch.num_rows(), texts.as_string::<i32>().value_data().len()));
        }
        assert!(rows.is_empty());
        batches
    }

    #[test]
    fn batches_are_bounded_in_rows_and_bytes() {
        assert_eq!(batches(Vec::new()), []);
        let many = batches(counted((0..20_000).map(|i| i.to_string())));
        assert_eq!(many.iter().map(|batch| batch.0).collect::<Vec<_>>(), [8192, 8192, 3616]);
        let mebibyte = || "x".repeat(1 << 20);
        let long = batches(counted((0..40).map(|_| mebibyte())));
        assert_eq!(long, [(16, 16 << 20), (16, 16 << 20), (8, 8 << 20)]);
        let longer = || "y".repeat(17 << 20);
        let alone = batches(counted([mebibyte(), longer(), longer(), mebibyte()]));
        assert_eq!(alone, [(1, 1 << 20), (1, 17 << 20), (1, 17 << 20), (1, 1 << 20)]);
    }
}
