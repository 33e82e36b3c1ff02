//! The sets of an input: a column or an expression, a list of integers or of texts.
//!
//! ```text
//! batch ──► lists ──────────────► numbers ─────────────────► sets
//!           of the items, as      of 32 bits: the items      ascending, without duplicates
//!           they are counted,     themselves, or those of
//!           without nulls         a dictionary of all inputs
//! ```
//!
//! Lists of UInt32 that ascend pass without a copy.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, UInt32Array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use arrow_select::filter::filter;
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::OperatorError;

use super::reader::lists;
use crate::expressions::ColumnInput;
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::columns::{SetsBuilder, are_ascending, check_dictionaries};
use crate::shared::items::{result_type, to_native};
use crate::shared::names::ItemNames;
use crate::shared::parameters::{Mistakes, refuse};
use crate::shared::rejected::{BadRows, Faults};

/// Types of sets, for messages.
const EXPECTED: &str = "a list of integers or of texts";

/// The sets of an input.
#[derive(Debug, Clone)]
pub(crate) struct SetInput {
    column: ColumnInput,
    /// Type of the items in results, which is the same for all inputs of a stage.
    item: DataType,
}

impl SetInput {
    /// The sets `text` of each of `inputs`: a column or an expression. Errors name the parameter
    /// `set`.
    ///
    /// # Errors
    /// If an input has no such column, or its type is no list of integers or texts; if one input
    /// has texts and another input has numbers; or if two dictionaries have numbered the tokens.
    pub(crate) fn bind(inputs: &[SchemaRef], text: &str) -> Result<Vec<Self>, BindError> {
        let bind = |schema| {
            let (column, found) = ColumnInput::bind(schema, text, "set")?;
            let Some(item) = item_type(&found) else {
                let column = text.to_owned();
                return Err(
                    BindErrorKind::ColumnType { column, found, expected: EXPECTED }.at("set")
                );
            };
            Ok((column, item))
        };
        let mut mistakes = Mistakes::default();
        let bound = inputs.iter().filter_map(|schema| mistakes.check(bind(schema)));
        let bound: Vec<(ColumnInput, DataType)> = bound.collect();
        mistakes.none()?;
        let columns = inputs.iter().zip(&bound);
        check_dictionaries(
            columns.filter_map(|(schema, (column, _))| Some((schema, column.column()?))),
        )?;
        let mut item = bound[0].1.clone();
        for (_, other) in &bound[1..] {
            item = common_type(&item, other).ok_or_else(|| {
                let value = format!("sets of {item} and of {other}");
                refuse(
                    "set",
                    value,
                    "both inputs need items of one kind: cast one of the lists, as in `ids::i64[]`",
                )
            })?;
        }
        Ok(bound.into_iter().map(|(column, _)| Self { column, item: item.clone() }).collect())
    }

    /// Type of the items in results: texts, or the type of the integers.
    pub(crate) fn item_type(&self) -> &DataType {
        &self.item
    }

    /// The sets of a batch: lists of items, in the type in which items are counted, without nulls,
    /// in any order. Faults are noted. A row with a fault may have any set.
    ///
    /// # Errors
    /// If the lists have more than 2^31 - 1 items.
    pub(crate) fn of(
        &self,
        records: &RecordBatch,
        faults: &mut Faults,
    ) -> Result<ListArray, OperatorError> {
        let column = faults.values(&self.column, records)?;
        let name = self.column.text(records.schema_ref());
        faults.note_nulls(column.logical_nulls().as_ref(), name, "the set");
        if let Some(sets) = column.as_list_opt::<i32>()
            && self.item == DataType::UInt32
            && *sets.values().data_type() == DataType::UInt32
            && sets.values().null_count() == 0
        {
            return Ok(sets.clone());
        }
        let sets = lists(&column)?;
        note_null_items(&sets, name, faults);
        let sets = without_null_items(sets)?;
        let (_, offsets, items, nulls) = sets.into_parts();
        let items = self.native(&items)?;
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        Ok(ListArray::try_new(field, offsets, items, nulls)?)
    }

    /// As [`Self::of`], for an operator that reads only the sets of `input`. The rows that `bad`
    /// takes become nulls.
    ///
    /// # Errors
    /// As [`Self::of`], or if a row has a fault that ends the run.
    pub(crate) fn usable(
        &self,
        input: usize,
        records: &RecordBatch,
        bad: &mut BadRows,
    ) -> Result<ListArray, OperatorError> {
        let mut faults = bad.faults();
        let sets = self.of(records, &mut faults)?;
        bad.settle(input, records, &faults)?;
        Ok(hide(sets, &faults))
    }

    /// Items in the type in which items are counted. Texts of a dictionary stay in the dictionary.
    fn native(&self, items: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        if let (DataType::Dictionary(..), DataType::Utf8) = (items.data_type(), &self.item) {
            let keys = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8));
            return cast(items, &keys);
        }
        let items = cast(items, &self.item)?;
        to_native(&items)
    }
}

/// The type in results of the items of lists of the type `list`; `None` if the type is no type of
/// sets.
fn item_type(list: &DataType) -> Option<DataType> {
    let (DataType::List(item)
    | DataType::LargeList(item)
    | DataType::ListView(item)
    | DataType::LargeListView(item)
    | DataType::FixedSizeList(item, _)) = list
    else {
        return None;
    };
    match result_type(item.data_type()) {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(DataType::Utf8),
        integer if integer.is_integer() => Some(integer),
        _ => None,
    }
}

/// A type that has the items of both types; `None` if no type has both.
fn common_type(one: &DataType, other: &DataType) -> Option<DataType> {
    let has = |kind| *one == kind || *other == kind;
    let both = |is: fn(&DataType) -> bool| is(one) && is(other);
    if one == other {
        return Some(one.clone());
    }
    if both(DataType::is_unsigned_integer) {
        return Some(if has(DataType::UInt64) { DataType::UInt64 } else { DataType::UInt32 });
    }
    // No integer type of 64 bits has the values of both UInt64 and a type with negative numbers.
    if !both(DataType::is_integer) || has(DataType::UInt64) {
        return None;
    }
    let is_wide = has(DataType::Int64) || has(DataType::UInt32);
    Some(if is_wide { DataType::Int64 } else { DataType::Int32 })
}

/// `sets`, with nulls in the rows that have a fault.
pub(crate) fn hide(sets: ListArray, faults: &Faults) -> ListArray {
    if faults.are_none() { sets } else { faults.hide(&sets).as_list::<i32>().clone() }
}

/// Notes the rows with a null item, if a null is a fault.
fn note_null_items(sets: &ListArray, name: &str, faults: &mut Faults) {
    let nulls = sets.values().logical_nulls().filter(|nulls| nulls.null_count() > 0);
    let Some(nulls) = nulls.filter(|_| faults.have_nulls()) else { return };
    for (row, ends) in sets.value_offsets().windows(2).enumerate() {
        let [begin, end] = [place(ends[0]), place(ends[1])];
        if sets.is_valid(row) && nulls.slice(begin, end - begin).null_count() > 0 {
            faults.note(row, name, "an item of the set is null");
        }
    }
}

/// Lists without null items.
fn without_null_items(sets: ListArray) -> Result<ListArray, ArrowError> {
    let Some(valid) = sets.values().logical_nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Ok(sets);
    };
    let valid = valid.into_inner();
    // Number of valid items before each end.
    let mut before = 0;
    let lengths = sets.value_offsets().windows(2).map(|ends| {
        let [begin, end] = [ends[0], ends[1]].map(|end| end.unsigned_abs() as usize);
        valid.slice(begin, end - begin).count_set_bits()
    });
    let ends = std::iter::once(0).chain(lengths.map(|length| {
        before += length;
        i32::try_from(before).expect("no more items than before")
    }));
    let offsets = OffsetBuffer::new(ends.collect::<ScalarBuffer<i32>>());
    let items = filter(sets.values(), &valid.into())?;
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    ListArray::try_new(field, offsets, items, sets.nulls().cloned())
}

/// Numbers of 32 bits for the items of sets. Equal items of all inputs have equal numbers.
pub(crate) enum TokenNumbers {
    /// Each item is its own number.
    Own,
    Named(Box<ItemNames>),
}

impl TokenNumbers {
    /// Numbers for the items of the type `item`.
    pub(crate) fn new(item: &DataType) -> Self {
        let is_own = item.is_integer() && item.primitive_width() <= Some(size_of::<u32>());
        if is_own {
            return Self::Own;
        }
        Self::Named(Box::new(ItemNames::new(item).expect("items of sets have names")))
    }

    /// The sets with the numbers of their items. All other memory in use has been taken from
    /// `budget`.
    ///
    /// # Errors
    /// If new items do not fit into the memory.
    pub(crate) fn number(
        &mut self,
        sets: ListArray,
        budget: Budget,
    ) -> Result<ListArray, BudgetFull> {
        let Self::Named(names) = self else { return Ok(sets) };
        let mut tokens = Vec::new();
        names.number(sets.values(), &mut tokens, budget)?;
        let (_, offsets, _, nulls) = sets.into_parts();
        let field = Arc::new(Field::new_list_field(DataType::UInt32, true));
        Ok(ListArray::new(field, offsets, Arc::new(UInt32Array::from(tokens)), nulls))
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Own => 0,
            Self::Named(names) => names.bytes(),
        }
    }
}

/// The sets of a batch, with an id for each row.
#[derive(Debug, Clone)]
pub(crate) struct SetBatch {
    ids: UInt32Array,
    /// Lists of UInt32.
    sets: ListArray,
}

impl SetBatch {
    /// Sets of numbers, and an id for each.
    pub(crate) fn new(ids: UInt32Array, sets: ListArray) -> Self {
        Self { ids, sets }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Number of tokens of all rows, including the tokens of null rows and duplicates.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens_of(0..self.len())
    }

    /// The sets in ascending order and without duplicates. Sets that have this form are not copied.
    pub(crate) fn ascending(self) -> Self {
        let offsets = self.sets.value_offsets();
        let [first, last] = [offsets[0], offsets[self.len()]].map(place);
        let tokens = &self.sets.values().as_primitive::<UInt32Type>().values()[first..last];
        if are_ascending(offsets.iter().map(|&end| place(end) - first), tokens) {
            return self;
        }
        let mut builder = SetsBuilder::new();
        for row in 0..self.len() {
            let ends = if self.sets.is_null(row) { [first; 2] } else { self.ends(row) };
            builder.tokens_mut().extend_from_slice(&tokens[ends[0] - first..ends[1] - first]);
            builder.close(0);
        }
        let built = builder.take();
        let (field, offsets, tokens, _) = built.column(1).as_list::<i32>().clone().into_parts();
        let sets = ListArray::new(field, offsets, tokens, self.sets.nulls().cloned());
        Self { ids: self.ids, sets }
    }

    fn ends(&self, row: usize) -> [usize; 2] {
        let ends = &self.sets.value_offsets()[row..=row + 1];
        [place(ends[0]), place(ends[1])]
    }

    /// Number of tokens of consecutive rows, including the tokens behind null rows.
    pub(crate) fn tokens_of(&self, rows: Range<usize>) -> usize {
        let [begin, end] = [rows.start, rows.end].map(|row| self.sets.value_offsets()[row]);
        place(end - begin)
    }

    fn all_tokens(&self) -> &[u32] {
        self.sets.values().as_primitive::<UInt32Type>().values()
    }

    /// Ids, offsets and tokens of all rows, if no row is null and each row has at least `size_min`
    /// tokens; `size_min` is at least one.
    pub(crate) fn whole(&self, size_min: usize) -> Option<(&[u32], &[i32], &[u32])> {
        let Self { ids, sets } = self;
        if ids.null_count() + sets.null_count() > 0 {
            return None;
        }
        let offsets = sets.value_offsets();
        let sizes = offsets.windows(2).map(|ends| ends[1] - ends[0]);
        let smallest = sizes.min().and_then(|size| usize::try_from(size).ok())?;
        (smallest >= size_min.max(1)).then(|| (&ids.values()[..], offsets, self.all_tokens()))
    }

    /// Id and tokens of a row; `None` if the id or the set is null.
    pub(crate) fn get(&self, row: usize) -> Option<(u32, &[u32])> {
        if self.ids.is_null(row) || self.sets.is_null(row) {
            return None;
        }
        let [begin, end] = self.ends(row);
        Some((self.ids.value(row), &self.all_tokens()[begin..end]))
    }
}

/// A place among the tokens.
fn place(offset: i32) -> usize {
    usize::try_from(offset).expect("the offsets of a list are not negative")
}
