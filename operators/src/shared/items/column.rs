//! Items in Arrow columns.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, StringArray, UInt32Array, UInt64Array};
use arrow_schema::DataType;
use serde_json::Value;

use super::item::Items;
use super::stored::StoredItem;
use super::text::Text;
use crate::shared::names::long;

/// An item type that has a column type.
pub(crate) trait Column: StoredItem {
    /// The column type of the items.
    const TYPE: DataType;
    /// A batch of items, as the column lends the batch.
    type Batch: Items<Self> + ?Sized;

    /// The items of a column of this type.
    fn lend(column: &dyn Array) -> &Self::Batch;
    /// Bytes of the item in a column.
    fn column_bytes(&self) -> usize {
        size_of::<Self>()
    }
    /// A column of items.
    fn collect<'a>(items: impl Iterator<Item = &'a Self>) -> ArrayRef;
    /// The order of two items of a column.
    fn compare(column: &Self::Batch, left: usize, right: usize) -> Ordering;
    /// A column of the items with these codes; `None` if a code is not its item.
    fn from_codes(codes: Vec<Self::Code>) -> Option<ArrayRef>;
    /// The item that a query names; `None` if the value is of another type.
    fn from_json(value: &Value) -> Option<Self>;
    /// Whether this item is `item`, or the name that is kept for `item`.
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
