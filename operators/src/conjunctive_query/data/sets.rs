//! The sets of a batch, documents or queries, and the names of documents.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, ListArray, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use thiserror::Error;
use trommel_engine::operator::OperatorError;

use super::index::DOCUMENTS_MAX;
use crate::expressions::ColumnInput;
use crate::shared::rejected::Faults;

/// A document cannot be taken.
#[derive(Debug, Error)]
pub(crate) enum DocumentError {
    #[error("invalid document {0}: its name is null")]
    NullName(u32),
    #[error("too many documents: an index has at most {DOCUMENTS_MAX}")]
    TooMany,
}

/// The sets of a batch: the values of all sets, and the begin and the end of each set.
pub(crate) struct Sets {
    pub(crate) values: ArrayRef,
    ends: Vec<usize>,
    nulls: Option<arrow_buffer::NullBuffer>,
}

impl Sets {
    /// The sets of a batch.
    pub(crate) fn new(sets: &ListArray) -> Self {
        let offset = |&end: &i32| usize::try_from(end).expect("offsets are not negative");
        let mut ends: Vec<usize> = sets.value_offsets().iter().map(offset).collect();
        let (begin, end) = (ends[0], ends[sets.len()]);
        ends.iter_mut().for_each(|place| *place -= begin);
        // A batch may be a slice of a larger batch, and then has all values of that batch.
        let values = sets.values().slice(begin, end - begin);
        Self { values, ends, nulls: sets.nulls().cloned() }
    }

    /// Number of sets.
    pub(crate) fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// Whether the set of a row is null.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The place of the set of a row in the values; a null may have a place.
    pub(crate) fn place(&self, row: usize) -> std::ops::Range<usize> {
        self.ends[row]..self.ends[row + 1]
    }

    /// The place of a set in the values; a null is empty.
    pub(crate) fn range(&self, row: usize) -> std::ops::Range<usize> {
        let end = self.ends[row + 1];
        if self.is_null(row) { end..end } else { self.ends[row]..end }
    }
}

/// The names of documents, numbered from `first` on. The name of a document with a fault is empty.
pub(crate) fn names_of(
    records: &RecordBatch,
    names: &ColumnInput,
    first: u32,
    faults: &mut Faults,
) -> Result<LargeStringArray, OperatorError> {
    let column = names.text(records.schema_ref());
    let names = cast(&faults.values(names, records)?, &DataType::LargeUtf8)?;
    faults.note_nulls(names.nulls(), column, "the name");
    let names = names.as_string::<i64>();
    let nameless = |&row: &usize| names.is_null(row) && !faults.has(row);
    if let Some(row) = (0..names.len()).find(nameless) {
        let row = u32::try_from(row).expect("documents have numbers of 32 bits");
        return Err(DocumentError::NullName(first + row).into());
    }
    Ok(LargeStringArray::from_iter_values(names.iter().map(Option::unwrap_or_default)))
}
