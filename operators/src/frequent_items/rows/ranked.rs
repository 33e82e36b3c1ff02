//! Counted items as rows: ranked ones, a single estimate, and items that another thread ranks.

use std::cmp::Reverse;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;

use crate::shared::items::{Column, from_native, unpack};
use crate::summary::Counted;

/// Place of the items in [`ranked_schema`].
const ITEM: usize = 1;

/// Columns after the items in [`ranked_schema`].
const AFTER: usize = 2;

/// `rank`, `item` or the columns of items, `count`, `error`: the rows of emissions and answers.
pub(crate) fn ranked_schema(item: &DataType) -> SchemaRef {
    let mut fields = vec![Arc::new(Field::new("rank", DataType::UInt32, false))];
    match item {
        DataType::Struct(several) => fields.extend(several.iter().cloned()),
        one => fields.push(Arc::new(Field::new("item", one.clone(), false))),
    }
    fields
        .extend(["count", "error"].map(|name| Arc::new(Field::new(name, DataType::UInt64, false))));
    Arc::new(Schema::new(fields))
}

/// The columns of items in a [`ranked_schema`].
fn item_fields(ranked: &SchemaRef) -> &[FieldRef] {
    let fields = ranked.fields();
    &fields[ITEM..fields.len() - AFTER]
}

/// Type of the items of a [`ranked_schema`]: a struct if the items have several columns.
pub(crate) fn item_type(ranked: &SchemaRef) -> DataType {
    match item_fields(ranked) {
        [one] => one.data_type().clone(),
        several => DataType::Struct(several.into()),
    }
}

/// Rows of [`ranked_schema`] for items in the order of their ranks, from the rank `first` on. The
/// items have less than 2 GiB of text.
pub(crate) fn ranked_rows<'a, K: Column>(
    schema: &SchemaRef,
    first: u32,
    ranked: impl Iterator<Item = Counted<&'a K>> + Clone,
) -> RecordBatch {
    let ranks = (first..).zip(ranked.clone()).map(|(rank, _)| rank);
    let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from_iter_values(ranks))];
    columns.extend(in_schema(schema, K::collect(ranked.clone().map(|counted| counted.item))));
    let counts = UInt64Array::from_iter_values(ranked.clone().map(|counted| counted.count));
    let errors = UInt64Array::from_iter_values(ranked.map(|counted| counted.error));
    columns.extend([counts, errors].map(|column| Arc::new(column) as ArrayRef));
    RecordBatch::try_new(SchemaRef::clone(schema), columns).expect("built to this schema")
}

/// Counted items in columns, before they are ranked. The columns are owned, so that another
/// thread can rank them.
pub(crate) struct Unranked<K> {
    items: ArrayRef,
    counts: Vec<u64>,
    errors: Vec<u64>,
    item: PhantomData<K>,
}

impl<K: Column> Unranked<K> {
    /// Copies `counted`, which has less than 2 GiB of text.
    pub(crate) fn new(counted: &[Counted<&K>]) -> Self {
        Self {
            items: K::collect(counted.iter().map(|counted| counted.item)),
            counts: counted.iter().map(|counted| counted.count).collect(),
            errors: counted.iter().map(|counted| counted.error).collect(),
            item: PhantomData,
        }
    }

    /// All items as rows of [`ranked_schema`].
    ///
    /// # Panics
    /// If there are 2^32 items or more.
    pub(crate) fn rank(self, schema: &SchemaRef) -> RecordBatch {
        let Self { items, counts, errors, .. } = self;
        let column = K::lend(&*items);
        // The counts are next to the positions, because most comparisons need only the counts.
        let mut order: Vec<(Reverse<u64>, u32)> =
            counts.iter().map(|&count| Reverse(count)).zip(0..).collect();
        order.sort_unstable_by(|left, right| {
            let by_item = || K::compare(column, left.1 as usize, right.1 as usize);
            left.0.cmp(&right.0).then_with(by_item)
        });
        let positions = UInt32Array::from_iter_values(order.iter().map(|&(_, position)| position));
        let errors = positions.values().iter().map(|&position| errors[position as usize]);
        let ranks = UInt32Array::from_iter_values((1..).zip(&order).map(|(rank, _)| rank));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(ranks)];
        let items = take(&items, &positions, None).expect("positions of the column");
        columns.extend(in_schema(schema, items));
        let counts = UInt64Array::from_iter_values(order.iter().map(|(count, _)| count.0));
        let errors = UInt64Array::from_iter_values(errors);
        columns.extend([counts, errors].map(|column| Arc::new(column) as ArrayRef));
        RecordBatch::try_new(SchemaRef::clone(schema), columns).expect("built to this schema")
    }
}

/// Items in the columns that the schema has for items.
fn in_schema(schema: &SchemaRef, items: ArrayRef) -> Vec<ArrayRef> {
    match item_fields(schema) {
        [one] => vec![from_native(items, one.data_type())],
        several => unpack(items.as_string(), several),
    }
}

/// One row of the item, `count` and `error`, with the columns of a [`ranked_schema`].
pub(crate) fn estimate_row<K: Column>(ranked: &SchemaRef, counted: &Counted<K>) -> RecordBatch {
    let schema = Schema::new(ranked.fields()[ITEM..].to_vec());
    let mut columns = in_schema(ranked, K::collect(std::iter::once(&counted.item)));
    let numbers = [counted.count, counted.error];
    columns.extend(numbers.map(|number| Arc::new(UInt64Array::from(vec![number])) as ArrayRef));
    RecordBatch::try_new(Arc::new(schema), columns).expect("built to this schema")
}
