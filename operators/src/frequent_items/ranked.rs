//! Counted items as rows: ranked ones, a single estimate, and items that another thread ranks.

use std::cmp::Reverse;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;

use crate::items::{Column, from_native};
use crate::summary::Counted;

/// Place of the items in [`ranked_schema`].
pub(super) const ITEM: usize = 1;

/// `rank`, `item`, `count`, `error`: the rows of emissions and answers.
pub(super) fn ranked_schema(item: &DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("rank", DataType::UInt32, false),
        Field::new("item", item.clone(), false),
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
        in_schema(schema, K::collect(ranked.clone().map(|counted| counted.item))),
        Arc::new(UInt64Array::from_iter_values(ranked.clone().map(|counted| counted.count))),
        Arc::new(UInt64Array::from_iter_values(ranked.map(|counted| counted.error))),
    ];
    RecordBatch::try_new(SchemaRef::clone(schema), columns).expect("built to this schema")
}

/// Counted items in columns, before they are ranked. The columns are owned, so that another
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

    /// All of them as rows of [`ranked_schema`].
    ///
    /// # Panics
    /// If there are 2^32 or more.
    pub(super) fn rank(self, schema: &SchemaRef) -> RecordBatch {
        let Self { items, counts, errors, .. } = self;
        let column = K::lend(&*items);
        // The counts beside the positions: most comparisons need nothing else.
        let mut order: Vec<(Reverse<u64>, u32)> =
            counts.iter().map(|&count| Reverse(count)).zip(0..).collect();
        order.sort_unstable_by(|left, right| {
            let by_item = || K::compare(column, left.1 as usize, right.1 as usize);
            left.0.cmp(&right.0).then_with(by_item)
        });
        let positions = UInt32Array::from_iter_values(order.iter().map(|&(_, position)| position));
        let errors = positions.values().iter().map(|&position| errors[position as usize]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from_iter_values((1..).zip(&order).map(|(rank, _)| rank))),
            in_schema(schema, take(&items, &positions, None).expect("positions of the column")),
            Arc::new(UInt64Array::from_iter_values(order.iter().map(|(count, _)| count.0))),
            Arc::new(UInt64Array::from_iter_values(errors)),
        ];
        RecordBatch::try_new(SchemaRef::clone(schema), columns).expect("built to this schema")
    }
}

/// Items in the type that the schema has for them.
fn in_schema(schema: &SchemaRef, items: ArrayRef) -> ArrayRef {
    from_native(items, schema.field(ITEM).data_type())
}

/// One row of `item`, `count`, `error`, with the item of a [`ranked_schema`].
pub(super) fn estimate_row<K: Column>(ranked: &SchemaRef, counted: &Counted<K>) -> RecordBatch {
    let schema = Schema::new(vec![
        ranked.field(ITEM).clone(),
        Field::new("count", DataType::UInt64, false),
        Field::new("error", DataType::UInt64, false),
    ]);
    let columns: Vec<ArrayRef> = vec![
        in_schema(ranked, K::collect(std::iter::once(&counted.item))),
        Arc::new(UInt64Array::from(vec![counted.count])),
        Arc::new(UInt64Array::from(vec![counted.error])),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).expect("built to this schema")
}
