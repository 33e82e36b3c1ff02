//! Bytes of rows, for batches of a limited size.

use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericListArray, OffsetSizeTrait};
use arrow_schema::DataType;

/// Adds the bytes of the values of a column to the bytes of each row. A number counts 16
/// bytes.
pub(super) fn add_bytes(column: &dyn Array, bytes: &mut [u64]) {
    match column.data_type() {
        DataType::Utf8 => add_lengths(column.as_string::<i32>().value_offsets(), bytes),
        DataType::LargeUtf8 => add_lengths(column.as_string::<i64>().value_offsets(), bytes),
        DataType::Binary => add_lengths(column.as_binary::<i32>().value_offsets(), bytes),
        DataType::LargeBinary => add_lengths(column.as_binary::<i64>().value_offsets(), bytes),
        DataType::List(_) => add_lists(column.as_list::<i32>(), bytes),
        DataType::LargeList(_) => add_lists(column.as_list::<i64>(), bytes),
        DataType::Map(..) => {
            let map = column.as_map();
            add_parts(map.entries(), map.value_offsets(), bytes);
        }
        DataType::FixedSizeList(_, len) => {
            let list = column.as_fixed_size_list();
            let rows = (0..).take(list.len() + 1);
            let ends: Vec<i64> = rows.map(|row: i64| row * i64::from(*len)).collect();
            add_parts(list.values(), &ends, bytes);
        }
        DataType::Struct(_) => {
            column.as_struct().columns().iter().for_each(|column| add_bytes(column, bytes));
        }
        DataType::FixedSizeBinary(len) => add_each(u64::from(len.unsigned_abs()), bytes),
        // The texts of views and of dictionaries are not copied.
        _ => add_each(16, bytes),
    }
}

fn add_each(more: u64, bytes: &mut [u64]) {
    bytes.iter_mut().for_each(|bytes| *bytes += more);
}

fn add_lengths<O: OffsetSizeTrait>(ends: &[O], bytes: &mut [u64]) {
    for (bytes, ends) in bytes.iter_mut().zip(ends.windows(2)) {
        *bytes += (ends[1] - ends[0]).as_usize() as u64;
    }
}

fn add_lists<O: OffsetSizeTrait>(lists: &GenericListArray<O>, bytes: &mut [u64]) {
    add_parts(lists.values(), lists.value_offsets(), bytes);
}

/// Adds the bytes of parts of `values`, which end at `ends`.
fn add_parts<O: OffsetSizeTrait>(values: &dyn Array, ends: &[O], bytes: &mut [u64]) {
    if let Some(width) = values.data_type().primitive_width() {
        for (bytes, ends) in bytes.iter_mut().zip(ends.windows(2)) {
            *bytes += ((ends[1] - ends[0]).as_usize() * width) as u64;
        }
        return;
    }
    let mut of_values = vec![0; values.len()];
    add_bytes(values, &mut of_values);
    for (bytes, ends) in bytes.iter_mut().zip(ends.windows(2)) {
        *bytes += of_values[ends[0].as_usize()..ends[1].as_usize()].iter().sum::<u64>();
    }
}
