//! Items of types that are not counted as such: each value stands for one number or text.
//!
//! | type | counted as |
//! |---|---|
//! | integers of up to 32 bits, booleans, dates, float32 | u32 of the same bits |
//! | integers of 64 bits, points in time, durations, float64 | u64 of the same bits |
//! | texts of all layouts | text |
//!
//! Zeros are one item, and so are all NaN.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float32Array, Float64Array, Int32Array, Int64Array};
use arrow_array::{UInt32Array, UInt64Array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};

/// The form in which values of a type are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CountedForm {
    /// The values themselves.
    Native,
    /// The values as i32, by a cast that keeps each value.
    Narrow,
    Wide,
    Float32,
    Float64,
    Text,
}

fn form(kind: &DataType) -> Option<CountedForm> {
    use DataType as T;
    Some(match kind {
        T::UInt32 | T::UInt64 | T::Utf8 => CountedForm::Native,
        T::Int8 | T::Int16 | T::Int32 | T::UInt8 | T::UInt16 | T::Boolean => CountedForm::Narrow,
        T::Date32 | T::Time32(_) => CountedForm::Narrow,
        T::Int64 | T::Date64 | T::Time64(_) | T::Timestamp(..) | T::Duration(_) => {
            CountedForm::Wide
        }
        T::Float16 | T::Float32 => CountedForm::Float32,
        T::Float64 => CountedForm::Float64,
        T::LargeUtf8 | T::Utf8View => CountedForm::Text,
        _ => return None,
    })
}

/// The type of results for items of the type `kind`: the type of the values of a dictionary, or
/// `kind` itself.
pub(crate) fn result_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::RunEndEncoded(_, values) => values.data_type().clone(),
        other => other.clone(),
    }
}

/// The type in which items of a [result type](result_type) are counted; `None` if such items are
/// not counted.
pub(crate) fn native_type(kind: &DataType) -> Option<DataType> {
    Some(match form(kind)? {
        CountedForm::Native => kind.clone(),
        CountedForm::Narrow | CountedForm::Float32 => DataType::UInt32,
        CountedForm::Wide | CountedForm::Float64 => DataType::UInt64,
        CountedForm::Text => DataType::Utf8,
    })
}

/// Items in the type in which items are counted.
///
/// # Errors
/// If a text has more than 2 GiB.
pub(crate) fn to_native(items: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let kind = result_type(items.data_type());
    let items = if kind == *items.data_type() { Arc::clone(items) } else { cast(items, &kind)? };
    Ok(match form(&kind) {
        Some(CountedForm::Narrow) => {
            let whole = cast(&items, &DataType::Int32)?;
            let whole = whole.as_primitive::<Int32Type>();
            Arc::new(UInt32Array::new(
                whole.values().inner().clone().into(),
                whole.nulls().cloned(),
            ))
        }
        Some(CountedForm::Wide) => {
            let whole = cast(&items, &DataType::Int64)?;
            let whole = whole.as_primitive::<Int64Type>();
            Arc::new(UInt64Array::new(
                whole.values().inner().clone().into(),
                whole.nulls().cloned(),
            ))
        }
        Some(CountedForm::Float32) => {
            let floats = cast(&items, &DataType::Float32)?;
            let one = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { (x + 0.0).to_bits() };
            let bits: UInt32Array = floats.as_primitive::<Float32Type>().unary(one);
            Arc::new(bits)
        }
        Some(CountedForm::Float64) => {
            let one = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { (x + 0.0).to_bits() };
            let bits: UInt64Array = items.as_primitive::<Float64Type>().unary(one);
            Arc::new(bits)
        }
        Some(CountedForm::Text) => cast(&items, &DataType::Utf8)?,
        Some(CountedForm::Native) | None => items,
    })
}

/// Counted items, converted back to their own type.
///
/// # Panics
/// If the items were not made from this type.
pub(crate) fn from_native(items: ArrayRef, kind: &DataType) -> ArrayRef {
    let whole: ArrayRef = match form(kind) {
        Some(CountedForm::Narrow) => {
            let items = items.as_primitive::<arrow_array::types::UInt32Type>();
            Arc::new(Int32Array::new(items.values().inner().clone().into(), items.nulls().cloned()))
        }
        Some(CountedForm::Wide) => {
            let items = items.as_primitive::<arrow_array::types::UInt64Type>();
            Arc::new(Int64Array::new(items.values().inner().clone().into(), items.nulls().cloned()))
        }
        Some(CountedForm::Float32) => {
            let items = items.as_primitive::<arrow_array::types::UInt32Type>();
            let floats: Float32Array = items.unary(f32::from_bits);
            Arc::new(floats)
        }
        Some(CountedForm::Float64) => {
            let items = items.as_primitive::<arrow_array::types::UInt64Type>();
            let floats: Float64Array = items.unary(f64::from_bits);
            Arc::new(floats)
        }
        Some(CountedForm::Text) | Some(CountedForm::Native) | None => items,
    };
    if whole.data_type() == kind { whole } else { cast(&whole, kind).expect("a value of the type") }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int16Type;
    use arrow_array::{
        BooleanArray, Date32Array, DictionaryArray, Int16Array, LargeStringArray, StringViewArray,
        TimestampMicrosecondArray, UInt8Array,
    };

    use super::*;

    #[test]
    fn items_of_each_type_come_back() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int16Array::from(vec![Some(-1), None, Some(i16::MIN), Some(i16::MAX)])),
            Arc::new(UInt8Array::from(vec![0, 255])),
            Arc::new(Int32Array::from(vec![i32::MIN, i32::MAX])),
            Arc::new(Int64Array::from(vec![i64::MIN, -1, i64::MAX])),
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
            Arc::new(Date32Array::from(vec![-1, 19_000])),
            Arc::new(TimestampMicrosecondArray::from(vec![-5, 7]).with_timezone("UTC")),
            Arc::new(Float32Array::from(vec![1.5, f32::INFINITY, -2.0])),
            Arc::new(Float64Array::from(vec![1.5, f64::NEG_INFINITY, 1e-300])),
            Arc::new(LargeStringArray::from(vec!["a", "bc"])),
            Arc::new(StringViewArray::from(vec!["a", "a text that is longer than twelve"])),
            Arc::new(UInt64Array::from(vec![0, u64::MAX])),
        ];
        for column in columns {
            let kind = result_type(column.data_type());
            let native = to_native(&column).unwrap();
            assert_eq!(Some(native.data_type()), native_type(&kind).as_ref(), "{kind}");
            assert_eq!(from_native(native, &kind).as_ref(), column.as_ref(), "{kind}");
        }
    }

    #[test]
    fn equal_floats_and_texts_of_a_dictionary_are_one_item() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN]));
        let native = to_native(&floats).unwrap();
        let bits = native.as_primitive::<arrow_array::types::UInt64Type>().values().to_vec();
        assert!(bits[0] == bits[1] && bits[2] == bits[3] && bits[0] != bits[2]);
        let words: DictionaryArray<Int16Type> = ["a", "b", "a"].into_iter().collect();
        let words: ArrayRef = Arc::new(words);
        assert_eq!(result_type(words.data_type()), DataType::Utf8);
        let native = to_native(&words).unwrap();
        assert_eq!(native.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["a", "b", "a"]);
        assert!(native_type(&DataType::Binary).is_none());
    }
}
