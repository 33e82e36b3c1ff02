//! Questions about Arrow types.

use arrow_schema::DataType;

/// The type of the values, whatever their encoding.
pub(super) fn plain(found: &DataType) -> &DataType {
    match found {
        DataType::Dictionary(_, value) => plain(value),
        DataType::RunEndEncoded(_, value) => plain(value.data_type()),
        other => other,
    }
}

/// The type of the elements of lists.
pub(super) fn element(found: &DataType) -> Option<&DataType> {
    match found {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item.data_type()),
        _ => None,
    }
}

pub(super) fn is_text(found: &DataType) -> bool {
    matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}
