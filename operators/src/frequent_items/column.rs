//! Items in Arrow columns: how a batch lends them, and how counted ones become rows.

use std::cmp::{Ordering, Reverse};
use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;
use serde_json::Value;

use super::{Counted, Items, StoredItem, Text};
use crate::long;

/// An item type that has a column type.
pub(crate) trait Column: StoredItem {
    /// Its column type.
    const TYPE: DataType;
    /// A batch of items as the column lends it.
    type Batch: Items<Self> + ?Sized;

    /// The items of a column of this type.
    fn lend(column: &dyn Array) -> &Self::Batch;
    /// Bytes that it takes in a column.
    fn column_bytes(&self) -> usize {
        size_of::<Self>()
    }
    /// A column of items.
    fn collect<'a>(items: impl Iterator<Item = &'a Self>) -> ArrayRef;
    /// How two items of a column are ordered.
    fn compare(column: &Self::Batch, left: usize, right: usize) -> Ordering;
    /// A column of the items with these codes, if a code is its item.
    fn from_codes(codes: Vec<Self::Code>) -> Option<ArrayRef>;
    /// The item that a query names, if it is of this type.
    fn from_json(value: &Value) -> Option<Self>;
    /// Whether this is `item`, or the name that is kept for it.
    fn stands_for(&self, item: &Self) -> bool {
        self == item
    }
}

impl Column for u32 {
    const TYPE: DataType = DataType::UInt32;
    type Batch = [u32];

    fn lend(column: &dyn Array) -> &[u32] {
        column.as_primitive::<UInt32Type>().values()
    }

    fn collect<'a>(items: impl Iterator<Item = &'a u32>) -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(items.copied()))
    }

    fn compare(column: &[u32], left: usize, right: usize) -> Ordering {
        column[left].cmp(&column[right])
    }

    fn from_codes(codes: Vec<u32>) -> Option<ArrayRef> {
        Some(Arc::new(UInt32Array::from(codes)))
    }

    fn from_json(value: &Value) -> Option<u32> {
        value.as_u64()?.try_into().ok()
    }
}

impl Column for u64 {
    const TYPE: DataType = DataType::UInt64;
    type Batch = [u64];

    fn lend(column: &dyn Array) -> &[u64] {
        column.as_primitive::<UInt64Type>().values()
    }

    fn collect<'a>(items: impl Iterator<Item = &'a u64>) -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(items.copied()))
    }

    fn compare(column: &[u64], left: usize, right: usize) -> Ordering {
        column[left].cmp(&column[right])
    }

    fn from_codes(codes: Vec<u64>) -> Option<ArrayRef> {
        Some(Arc::new(UInt64Array::from(codes)))
    }

    fn from_json(value: &Value) -> Option<u64> {
        value.as_u64()
    }
}

impl Column for Text {
    const TYPE: DataType = DataType::Utf8;
    type Batch = StringArray;

    fn lend(column: &dyn Array) -> &StringArray {
        column.as_string()
    }

    fn column_bytes(&self) -> usize {
        self.len()
    }

    fn collect<'a>(items: impl Iterator<Item = &'a Text>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(items.map(|text| &**text)))
    }

    fn compare(column: &StringArray, left: usize, right: usize) -> Ordering {
        column.value(left).cmp(column.value(right))
    }

    fn from_codes(_: Vec<u64>) -> Option<ArrayRef> {
        None
    }

    fn from_json(value: &Value) -> Option<Text> {
        value.as_str().map(Text::from)
    }

    fn stands_for(&self, item: &Text) -> bool {
        self == item || long::stands_for(self, item)
    }
}

/// `rank`, `item`, `count`, `error`: what the operator emits and answers.
pub(super) fn ranked_schema(item: DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("rank", DataType::UInt32, false),
        Field::new("item", item, false),
        Field::new("count", DataType::UInt64, false),
        Field::new("error", DataType::UInt64, false),
    ]))
}

/// Rows of [`ranked_schema`] for items in the order of their ranks, the first of which is given.
/// Their text is less than 2 GiB.
pub(super) fn ranked_rows<'a, K: Column>(
    schema: &SchemaRef,
    first: u32,
    ranked: impl Iterator<Item = Counted<&'a K>> + Clone,
) -> RecordBatch {
    let ranks = (first..).zip(ranked.clone()).map(|(rank, _)| rank);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt32Array::from_iter_values(ranks)),
        K::collect(ranked.clone().map(|counted| counted.item)),
        Arc::new(UInt64Array::from_iter_values(ranked.clone().map(|counted| counted.count))),
        Arc::new(UInt64Array::from_iter_values(ranked.map(|counted| counted.error))),
    ];
    RecordBatch::try_new(SchemaRef::clone(schema), columns).expect("built to this schema")
}

/// Counted items in columns, before they are ranked. They own what they hold, so that another
/// thread can rank them.
pub(super) struct Unranked<K> {
    items: ArrayRef,
    counts: Vec<u64>,
    errors: Vec<u64>,
    item: PhantomData<K>,
}

impl<K: Column> Unranked<K> {
    /// Copies `counted`, less than 2 GiB of text.
    pub(super) fn new(counted: &[Counted<&K>]) -> Self {
        Self {
            items: K::collect(counted.iter().map(|counted| counted.item)),
            counts: counted.iter().map(|counted| counted.count).collect(),
            errors: counted.iter().map(|counted| counted.error).collect(),
            item: PhantomData,
        }
    }

    /// The first `n` of them as rows of [`ranked_schema`].
    ///
    /// # Panics
    /// If there are 2^32 or more.
    pub(super) fn rank(self, schema: &SchemaRef, n: usize) -> RecordBatch {
        let Self { items, counts, errors, .. } = self;
        let column = K::lend(&*items);
        // The counts beside the positions: most comparisons need nothing else.
        let mut order: Vec<(Reverse<u64>, u32)> =
            counts.iter().map(|&count| Reverse(count)).zip(0..).collect();
        order.sort_unstable_by(|left, right| {
            let by_item = || K::compare(column, left.1 as usize, right.1 as usize);
            left.0.cmp(&right.0).then_with(by_item)
        });
        order.truncate(n);
        let positions = UInt32Array::from_iter_values(order.iter().map(|&(_, position)| position));
        let errors = positions.values().iter().map(|&position| errors[position as usize]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from_iter_values((1..).zip(&order).map(|(rank, _)| rank))),
            take(&items, &positions, None).expect("positions of the column"),
            Arc::new(UInt64Array::from_iter_values(order.iter().map(|(count, _)| count.0))),
            Arc::new(UInt64Array::from_iter_values(errors)),
        ];
        RecordBatch::try_new(SchemaRef::clone(schema), columns).expect("built to this schema")
    }
}

/// One row of `item`, `count`, `error`.
pub(super) fn estimate_row<K: Column>(counted: &Counted<K>) -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("item", K::TYPE, false),
        Field::new("count", DataType::UInt64, false),
        Field::new("error", DataType::UInt64, false),
    ]);
    let columns: Vec<ArrayRef> = vec![
        K::collect(std::iter::once(&counted.item)),
        Arc::new(UInt64Array::from(vec![counted.count])),
        Arc::new(UInt64Array::from(vec![counted.error])),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).expect("built to this schema")
}
