//! Sets of a program, in the form that joins take.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, GenericListArray, ListArray, OffsetSizeTrait, RecordBatch, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};
use thiserror::Error;

use crate::shared::budget::Budget;
use crate::shared::columns::{SetsBuilder, sets_schema};
use crate::shared::names::ItemNames;

/// Number of ids of 32 bits.
const ID_COUNT: u64 = 1 << 32;

/// Reads sets of numbers or texts, in any order and with duplicates, as sets of strictly ascending
/// numbers with ids. Texts are numbered in the order of their first occurrence, so one reader reads
/// all sets that are to be joined.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::builder::{ListBuilder, StringBuilder};
/// use arrow_array::{Array, ArrayRef, cast::AsArray, types::UInt32Type};
/// use trommel_operators::sets::SetReader;
///
/// let mut sets = ListBuilder::new(StringBuilder::new());
/// sets.append_value(["or", "not", "or"].map(Some));
/// sets.append_value(["not", "be"].map(Some));
/// let sets: ArrayRef = Arc::new(sets.finish());
///
/// let read = SetReader::new().read(0, &sets)?;
/// let second = read.column(1).as_list::<i32>().value(1);
/// assert_eq!(second.as_primitive::<UInt32Type>().values(), &[1, 2], "not, be");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct SetReader {
    /// The numbers of texts; `None` before the first sets of texts.
    texts: Option<ItemNames>,
    has_numbers: bool,
}

impl fmt::Debug for SetReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetReader")
            .field("has_texts", &self.texts.is_some())
            .finish_non_exhaustive()
    }
}

/// Reason why a reader refuses sets.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetReadError {
    /// The column has another type.
    #[error("the sets are {found}; expected lists of whole numbers or of texts")]
    Type {
        /// The type of the column.
        found: DataType,
    },
    /// A token is null.
    #[error("invalid set in row {row}: a token is null")]
    Null {
        /// The row of the column, from 0.
        row: u64,
    },
    /// A token is below 0, or above 2^32 - 1.
    #[error("invalid set in row {row}: {token} is out of range; tokens are 0 to {}", u32::MAX)]
    Range {
        /// The row of the column, from 0.
        row: u64,
        /// The token.
        token: String,
    },
    /// Sets of texts follow sets of numbers, or sets of numbers follow sets of texts.
    #[error("some sets have numbers and others have texts; all sets need tokens of one kind")]
    Mixed,
    /// There are too many sets.
    #[error("row {row} has no id: a join has at most 2^32 sets")]
    Ids {
        /// The number of the first row without an id, over all columns.
        row: u64,
    },
    /// The rows have more elements than offsets of 32 bits can count.
    #[error("lists of {elements} elements in {rows} rows: a batch has at most {}", i32::MAX)]
    Long {
        /// Number of elements.
        elements: usize,
        /// Number of rows.
        rows: usize,
    },
    /// A list does not fit its type.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

impl SetReader {
    /// A reader that has not read any set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a column of lists as a batch of `id` (from `first_id` on) and `set`. A null is read as
    /// an empty set, which is similar to no set. A column of UInt32 is not copied if the column has
    /// no null and all of its sets ascend strictly. After an error, the reader knows the same texts
    /// as before.
    ///
    /// # Errors
    /// If the column has another type or more than 2^31 - 1 tokens, if a token is null or no number
    /// of 32 bits, if there are more than 2^32 sets, or if the reader has read tokens of the other
    /// kind. A column of numbers with a token out of range also counts as read.
    pub fn read(&mut self, first_id: u64, sets: &ArrayRef) -> Result<RecordBatch, SetReadError> {
        let sets = lists(sets)?;
        let end = first_id + sets.len() as u64;
        if end > ID_COUNT {
            return Err(SetReadError::Ids { row: ID_COUNT });
        }
        // The check above makes sure that no id is lost.
        let ids = (first_id..end).filter_map(|id| u32::try_from(id).ok());
        let values = sets.values();
        if let Some(row) = row_of_null(&sets) {
            return Err(SetReadError::Null { row: row as u64 });
        }
        match values.data_type() {
            DataType::UInt32 => {
                self.note_numbers()?;
                let tokens = values.as_primitive::<UInt32Type>().values();
                if sets.null_count() == 0 && ascend(&sets, tokens) {
                    return Ok(unchanged(ids, sets));
                }
                Ok(built(ids, &sets, tokens))
            }
            found if found.is_integer() => {
                self.note_numbers()?;
                let tokens = narrow(&sets)?;
                Ok(built(ids, &sets, &tokens))
            }
            found if is_text(found) => {
                let texts =
                    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8));
                let is_dictionary = matches!(found, DataType::Dictionary(..));
                let texts = cast(values, if is_dictionary { &texts } else { &DataType::Utf8 })?;
                let numbers = self.number(&texts)?;
                Ok(built(ids, &sets, &numbers))
            }
            // The column has empty lists only, in the form that programs without types give such a
            // column.
            DataType::Null => Ok(built(ids, &sets, &[])),
            _ => Err(SetReadError::Type { found: sets.data_type().clone() }),
        }
    }

    fn note_numbers(&mut self) -> Result<(), SetReadError> {
        // The check is first, so that this error leaves the reader unchanged.
        if self.texts.is_some() {
            return Err(SetReadError::Mixed);
        }
        self.has_numbers = true;
        Ok(())
    }

    fn number(&mut self, texts: &ArrayRef) -> Result<Vec<u32>, SetReadError> {
        let (mut numbers, unlimited) = (Vec::new(), Budget::new(usize::MAX));
        self.names()?.number(texts, &mut numbers, unlimited).expect("all texts fit");
        Ok(numbers)
    }

    fn names(&mut self) -> Result<&mut ItemNames, SetReadError> {
        if self.has_numbers {
            return Err(SetReadError::Mixed);
        }
        let texts = || ItemNames::new(&DataType::Utf8).expect("texts have names");
        Ok(self.texts.get_or_insert_with(texts))
    }
}

fn is_text(found: &DataType) -> bool {
    match found {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

/// A column of lists as lists with offsets of 32 bits, without the values of other rows. A part of
/// a longer column therefore costs only the rows of the part.
///
/// # Errors
/// If the column has another type, or its rows have more than 2^31 - 1 values.
pub fn lists(column: &ArrayRef) -> Result<ListArray, SetReadError> {
    match column.data_type() {
        DataType::List(_) => own(column.as_list::<i32>()),
        DataType::LargeList(_) => own(column.as_list::<i64>()),
        DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => {
            let lists = cast(column, &DataType::List(Arc::clone(item)))?;
            own(lists.as_list::<i32>())
        }
        found => Err(SetReadError::Type { found: found.clone() }),
    }
}

fn own<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> Result<ListArray, SetReadError> {
    let (DataType::List(item) | DataType::LargeList(item)) = lists.data_type() else {
        unreachable!("it is a list")
    };
    let offsets = lists.offsets();
    let [first, last] = [offsets[0], offsets[lists.len()]].map(O::as_usize);
    if i32::try_from(last - first).is_err() {
        return Err(SetReadError::Long { elements: last - first, rows: lists.len() });
    }
    let values = lists.values().slice(first, last - first);
    let offsets = OffsetBuffer::from_lengths(offsets.lengths());
    Ok(ListArray::try_new(Arc::clone(item), offsets, values, lists.nulls().cloned())?)
}

/// The range of the tokens of a row. The range of a null is empty.
fn range(sets: &ListArray, row: usize) -> Range<usize> {
    if sets.is_null(row) {
        return 0..0;
    }
    let ends = &sets.value_offsets()[row..=row + 1];
    let end = |end: i32| usize::try_from(end).expect("the offsets of a list are not negative");
    end(ends[0])..end(ends[1])
}

/// The first row with a null token.
fn row_of_null(sets: &ListArray) -> Option<usize> {
    let nulls = sets.values().logical_nulls().filter(|nulls| nulls.null_count() > 0)?;
    (0..sets.len()).find(|&row| range(sets, row).any(|token| nulls.is_null(token)))
}

fn ascend(sets: &ListArray, tokens: &[u32]) -> bool {
    (0..sets.len()).all(|row| tokens[range(sets, row)].is_sorted_by(|left, right| left < right))
}

/// Whole numbers of any other type, as tokens of 32 bits.
fn narrow(sets: &ListArray) -> Result<Vec<u32>, SetReadError> {
    let wide = cast(sets.values(), &DataType::UInt64)?;
    let wide = wide.as_primitive::<UInt64Type>();
    let fits = |token: usize| wide.is_valid(token) && u32::try_from(wide.value(token)).is_ok();
    for row in 0..sets.len() {
        if let Some(token) = range(sets, row).find(|&token| !fits(token)) {
            let shown = cast(&sets.values().slice(token, 1), &DataType::Utf8)?;
            let token = shown.as_string::<i32>().value(0).to_owned();
            return Err(SetReadError::Range { row: row as u64, token });
        }
    }
    // Tokens outside of the rows may have any value.
    Ok(wide.values().iter().map(|&token| u32::try_from(token).unwrap_or(0)).collect())
}

fn unchanged(ids: impl Iterator<Item = u32>, sets: ListArray) -> RecordBatch {
    let schema = sets_schema();
    let DataType::List(item) = schema.field(1).data_type() else { unreachable!("sets are lists") };
    let (_, offsets, tokens, _) = sets.into_parts();
    let sets = ListArray::new(Arc::clone(item), offsets, tokens, None);
    let columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from_iter_values(ids)), Arc::new(sets)];
    RecordBatch::try_new(schema, columns).expect("built to this schema")
}

fn built(ids: impl Iterator<Item = u32>, sets: &ListArray, tokens: &[u32]) -> RecordBatch {
    let mut builder = SetsBuilder::new();
    for (row, id) in ids.enumerate() {
        builder.tokens_mut().extend_from_slice(&tokens[range(sets, row)]);
        builder.close(id);
    }
    builder.take()
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder, UInt32Builder};
    use arrow_array::{LargeListArray, NullArray};
    use arrow_schema::Field;

    use super::*;

    fn numbers(rows: &[&[i64]]) -> ArrayRef {
        let mut sets = ListBuilder::new(Int64Builder::new());
        rows.iter().for_each(|row| sets.append_value(row.iter().map(|&token| Some(token))));
        Arc::new(sets.finish())
    }

    fn texts(rows: &[&[&str]]) -> ArrayRef {
        let mut sets = ListBuilder::new(StringBuilder::new());
        rows.iter().for_each(|row| sets.append_value(row.iter().map(|&token| Some(token))));
        Arc::new(sets.finish())
    }

    fn sets_of(batch: &RecordBatch) -> Vec<(u32, Vec<u32>)> {
        let ids = batch.column(0).as_primitive::<UInt32Type>().values();
        let sets = batch.column(1).as_list::<i32>().iter().flatten();
        let sets = sets.map(|set| set.as_primitive::<UInt32Type>().values().to_vec());
        ids.iter().copied().zip(sets).collect()
    }

    #[test]
    fn numbers_of_any_width_become_ascending_sets() {
        let read = SetReader::new().read(5, &numbers(&[&[9, 3, 9], &[], &[4_294_967_295, 0]]));
        let expected = [(5, vec![3, 9]), (6, vec![]), (7, vec![0, u32::MAX])];
        assert_eq!(sets_of(&read.unwrap()), expected);
        let slice = numbers(&[&[-1], &[7, 2], &[1 << 40]]).slice(1, 1);
        assert_eq!(sets_of(&SetReader::new().read(0, &slice).unwrap()), [(0, vec![2, 7])]);
    }

    #[test]
    fn a_token_that_is_no_number_of_32_bits_is_named_with_its_row() {
        for (token, shown) in [(-3, "-3"), (1 << 32, "4294967296")] {
            let sets = numbers(&[&[1], &[2, token]]);
            let error = SetReader::new().read(10, &sets).unwrap_err().to_string();
            let said = "is out of range; tokens are 0 to 4294967295";
            assert_eq!(error, format!("invalid set in row 1: {shown} {said}"));
        }
    }

    #[test]
    fn lists_far_behind_in_a_long_column_are_read() {
        let values: ArrayRef = Arc::new(NullArray::new((1 << 31) + 1));
        let far = |first: i64| {
            let offsets = OffsetBuffer::new(vec![first, 1 << 31, (1 << 31) + 1].into());
            let item = Arc::new(Field::new_list_field(DataType::Null, true));
            Arc::new(LargeListArray::new(item, offsets, Arc::clone(&values), None)) as ArrayRef
        };
        let read = lists(&far((1 << 31) - 2)).unwrap();
        assert_eq!(read.offsets()[..], [0, 2, 3]);
        assert_eq!(read.values().len(), 3);
        let error = lists(&far(0)).unwrap_err().to_string();
        let said = "in 2 rows: a batch has at most 2147483647";
        assert_eq!(error, format!("lists of 2147483649 elements {said}"));
    }

    #[test]
    fn texts_have_the_same_numbers_in_all_batches_and_forms() {
        let mut reader = SetReader::new();
        let first = reader.read(0, &texts(&[&["b", "a", "b"]])).unwrap();
        let second = texts(&[&["c", "a"]]);
        let large = cast(&second, &DataType::new_large_list(DataType::LargeUtf8, true)).unwrap();
        let keys = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let keys = cast(&second, &DataType::new_list(keys, true)).unwrap();
        assert_eq!(sets_of(&first), [(0, vec![0, 1])]);
        for form in [second, large, keys] {
            assert_eq!(sets_of(&reader.read(1, &form).unwrap()), [(1, vec![1, 2])]);
        }
        let error = reader.read(0, &numbers(&[&[1]])).unwrap_err();
        assert!(matches!(error, SetReadError::Mixed));
        // The reader continues after sets that the reader has refused.
        assert_eq!(sets_of(&reader.read(1, &texts(&[&["c"]])).unwrap()), [(1, vec![2])]);
    }

    #[test]
    fn ascending_sets_are_not_copied_and_nulls_are_empty() {
        let mut sets = ListBuilder::new(UInt32Builder::new());
        sets.append_value([1, 5].map(Some));
        let whole: ArrayRef = Arc::new(sets.finish());
        let read = SetReader::new().read(0, &whole).unwrap();
        let address = |sets: &dyn Array| {
            sets.as_list::<i32>().values().as_primitive::<UInt32Type>().values().as_ptr()
        };
        assert_eq!(address(read.column(1)), address(&whole));

        sets.append_value([1, 5].map(Some));
        sets.append_null();
        let read = SetReader::new().read(0, &(Arc::new(sets.finish()) as ArrayRef)).unwrap();
        assert_eq!(sets_of(&read), [(0, vec![1, 5]), (1, vec![])]);

        sets.append_value([Some(1), None]);
        let error = SetReader::new().read(3, &(Arc::new(sets.finish()) as ArrayRef)).unwrap_err();
        assert_eq!(error.to_string(), "invalid set in row 0: a token is null");
    }

    #[test]
    fn the_last_id_has_32_bits() {
        let sets = numbers(&[&[1], &[2]]);
        SetReader::new().read((1 << 32) - 2, &sets).unwrap();
        let error = SetReader::new().read((1 << 32) - 1, &sets).unwrap_err().to_string();
        assert_eq!(error, "row 4294967296 has no id: a join has at most 2^32 sets");
    }
}
