//! Literals.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, StringArray, UInt64Array,
};
use sqlparser::ast::Value;

/// A literal as an array of one value; `None` for a form that expressions do not have.
pub(crate) fn array(value: &Value) -> Option<ArrayRef> {
    Some(match value {
        Value::Number(digits, _) => number(digits)?,
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
            Arc::new(StringArray::from(vec![text.as_str()]))
        }
        Value::DollarQuotedString(quoted) => {
            Arc::new(StringArray::from(vec![quoted.value.as_str()]))
        }
        Value::Boolean(value) => Arc::new(BooleanArray::from(vec![*value])),
        Value::Null => Arc::new(NullArray::new(1)),
        _ => return None,
    })
}

/// An integer of 64 bits if the number fits, else a float.
fn number(digits: &str) -> Option<ArrayRef> {
    let plain = digits.replace('_', "");
    if let Ok(value) = plain.parse::<i64>() {
        return Some(Arc::new(Int64Array::from(vec![value])));
    }
    if let Ok(value) = plain.parse::<u64>() {
        return Some(Arc::new(UInt64Array::from(vec![value])));
    }
    plain.parse::<f64>().ok().map(|value| -> ArrayRef { Arc::new(Float64Array::from(vec![value])) })
}
