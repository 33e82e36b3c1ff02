//! The sets of a batch, documents or queries, and the names of documents.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, RecordBatch};
use thiserror::Error;

use super::index::DOCUMENTS_MAX;

/// A term of a set is null.
#[derive(Debug, Error)]
#[error("invalid {what} {number}: a term is null")]
pub(super) struct NullTerm {
    /// `document` or `query`.
    what: &'static str,
    /// Position in the stream, from 0.
    number: u64,
}

/// A document cannot be taken.
#[derive(Debug, Error)]
pub(super) enum DocumentError {
    #[error("invalid document {0}: its name is null")]
    NullName(u32),
    #[error("too many documents: an index has at most {DOCUMENTS_MAX}")]
    TooMany,
}

/// The sets of a batch: the values of all of them, and where each begins and ends.
pub(super) struct Sets {
    pub(super) values: ArrayRef,
    ends: Vec<usize>,
    nulls: Option<arrow_buffer::NullBuffer>,
}

impl Sets {
    /// The sets of the column with the index `column`, a list. `first` is the number of the first
    /// row, for errors.
    pub(super) fn new(
        records: &RecordBatch,
        column: usize,
        what: &'static str,
        first: u64,
    ) -> Result<Self, NullTerm> {
        let sets = records.column(column).as_list::<i32>();
        let offset = |&end: &i32| usize::try_from(end).expect("offsets are not negative");
        let mut ends: Vec<usize> = sets.value_offsets().iter().map(offset).collect();
        let (begin, end) = (ends[0], ends[records.num_rows()]);
        ends.iter_mut().for_each(|place| *place -= begin);
        // A batch may be a part of a larger one, whose values it has.
        let values = sets.values().slice(begin, end - begin);
        let sets = Self { values, ends, nulls: sets.nulls().cloned() };
        sets.check(what, first)?;
        Ok(sets)
    }

    fn check(&self, what: &'static str, first: u64) -> Result<(), NullTerm> {
        if self.values.logical_null_count() == 0 {
            return Ok(());
        }
        for (row, number) in (0..self.len()).zip(first..) {
            let range = self.range(row);
            if self.values.slice(range.start, range.len()).logical_null_count() > 0 {
                return Err(NullTerm { what, number });
            }
        }
        Ok(())
    }

    /// Number of sets.
    pub(super) fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// Whether the set of a row is null.
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The place of a set in the values; a null is empty.
    pub(super) fn range(&self, row: usize) -> std::ops::Range<usize> {
        let end = self.ends[row + 1];
        if self.is_null(row) { end..end } else { self.ends[row]..end }
    }
}

/// The names of documents, the first of which has the number `first`.
pub(super) fn names_of(
    records: &RecordBatch,
    column: usize,
    first: u32,
) -> Result<LargeStringArray, DocumentError> {
    let names = records.column(column).as_string::<i32>();
    if let Some(row) = (0..).zip(names).find_map(|(row, name)| name.is_none().then_some(row)) {
        return Err(DocumentError::NullName(first + row));
    }
    Ok(LargeStringArray::from_iter_values(names.iter().flatten()))
}
