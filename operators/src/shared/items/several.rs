//! Several columns as one item: a text with the values of a row, one after the other.
//!
//! ```text
//! host     path    status
//! "a.org"  "/x"    404      ──►  a.org␀␀/x␀␀00000194
//! ```
//!
//! Integers have as many hexadecimal digits as their type. A text ends with two zero bytes, and a
//! one follows each zero byte inside of a text. Therefore the texts of two rows are equal only if
//! all values are equal, and rows are ordered by the first column, then by the second.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, FieldRef};

use super::external::{from_native, native_type};

/// The end of a text, and the form of a zero byte inside of a text.
const END: &str = "\0\0";
const ZERO: &str = "\0\u{1}";

/// The rows of `columns`, whose values are in the types in which items are counted. A row with a
/// null is null.
pub(crate) fn pack(columns: &[ArrayRef]) -> StringArray {
    let rows = columns.first().map_or(0, |column| column.len());
    let mut packed = StringBuilder::new();
    let mut text = String::new();
    for row in 0..rows {
        if columns.iter().any(|column| column.is_null(row)) {
            packed.append_null();
            continue;
        }
        text.clear();
        columns.iter().for_each(|column| push(&mut text, column, row));
        packed.append_value(&text);
    }
    packed.finish()
}

/// Appends a value.
fn push(text: &mut String, column: &ArrayRef, row: usize) {
    let written = match column.data_type() {
        DataType::UInt32 => write!(text, "{:08x}", column.as_primitive::<UInt32Type>().value(row)),
        DataType::UInt64 => write!(text, "{:016x}", column.as_primitive::<UInt64Type>().value(row)),
        _ => {
            let mut parts = column.as_string::<i32>().value(row).split('\0');
            text.push_str(parts.next().unwrap_or_default());
            for part in parts {
                text.push_str(ZERO);
                text.push_str(part);
            }
            text.push_str(END);
            Ok(())
        }
    };
    written.expect("a string has room");
}

/// The columns of [packed](pack) rows, in the types that `fields` have in results.
///
/// # Panics
/// If the rows were not packed from columns of these types.
pub(crate) fn unpack(packed: &StringArray, fields: &[FieldRef]) -> Vec<ArrayRef> {
    let mut rest: Vec<&str> = packed.iter().map(|text| text.expect("items are not null")).collect();
    let column = |field: &FieldRef| {
        let kind = field.data_type();
        let native: ArrayRef = match native_type(kind) {
            Some(DataType::UInt32) => Arc::new(UInt32Array::from_iter_values(
                rest.iter_mut().map(|text| u32::try_from(number(text, 8)).expect("32 bits")),
            )),
            Some(DataType::UInt64) => Arc::new(UInt64Array::from_iter_values(
                rest.iter_mut().map(|text| number(text, 16)),
            )),
            _ => Arc::new(StringArray::from_iter_values(rest.iter_mut().map(text))),
        };
        from_native(native, kind)
    };
    fields.iter().map(column).collect()
}

/// Takes a number of `digits` digits from the front of the text.
fn number(text: &mut &str, digits: usize) -> u64 {
    let (number, rest) = text.split_at(digits);
    *text = rest;
    u64::from_str_radix(number, 16).expect("digits of a number")
}

/// Takes a text from the front of the packed text.
fn text(packed: &mut &str) -> String {
    let mut taken = String::new();
    loop {
        let (part, rest) = packed.split_once('\0').expect("a text has an end");
        taken.push_str(part);
        let is_end = rest.starts_with('\0');
        *packed = &rest[1..];
        if is_end {
            return taken;
        }
        taken.push('\0');
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int16Array, LargeStringArray, TimestampMicrosecondArray};
    use arrow_schema::Field;

    use super::*;
    use crate::shared::items::to_native;

    #[test]
    fn rows_come_back_and_differ_where_a_value_does() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(LargeStringArray::from(vec!["a", "a\0", "", "a\0\u{1}", "ab", "\0\0"])),
            Arc::new(Int16Array::from(vec![-1, 2, i16::MIN, 2, 0, 7])),
            Arc::new(StringArray::from(vec!["", "\0b", "ö\0", "b", "", "x"])),
            Arc::new(TimestampMicrosecondArray::from(vec![-5, 0, 1 << 60, 7, 7, 7])),
        ];
        let native: Vec<ArrayRef> =
            columns.iter().map(|column| to_native(column).unwrap()).collect();
        let packed = pack(&native);
        let distinct: std::collections::HashSet<_> = packed.iter().collect();
        assert_eq!(distinct.len(), 6);
        let field =
            |column: &ArrayRef| Arc::new(Field::new("x", column.data_type().clone(), false));
        let fields: Vec<FieldRef> = columns.iter().map(field).collect();
        assert_eq!(unpack(&packed, &fields), columns);
        // Rows are ordered by the first column, then by the second.
        assert!(packed.value(0) < packed.value(1) && packed.value(1) < packed.value(3));
        assert!(packed.value(3) < packed.value(4));
        let nulls: ArrayRef = Arc::new(UInt32Array::from(vec![Some(1), None]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![None, Some("b")]));
        assert_eq!(pack(&[nulls, texts]).null_count(), 2);
    }
}
