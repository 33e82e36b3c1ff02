//! Comparisons. Floats compare as numbers: both zeros are equal, and NaN is equal to itself and
//! greater than every other number, as in DuckDB.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{ArrayRef, BooleanArray};
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType};

use super::value::Value;

/// Relation of two values of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// As `NotEqual`, but null is an ordinary value.
    Distinct,
    NotDistinct,
}

impl Comparison {
    pub(crate) fn apply(self, left: &Value, right: &Value) -> Result<BooleanArray, ArrowError> {
        let (left, right) = (canonical(left), canonical(right));
        match self {
            Self::Equal => cmp::eq(&left, &right),
            Self::NotEqual => cmp::neq(&left, &right),
            Self::Less => cmp::lt(&left, &right),
            Self::LessOrEqual => cmp::lt_eq(&left, &right),
            Self::Greater => cmp::gt(&left, &right),
            Self::GreaterOrEqual => cmp::gt_eq(&left, &right),
            Self::Distinct => cmp::distinct(&left, &right),
            Self::NotDistinct => cmp::not_distinct(&left, &right),
        }
    }
}

fn canonical(value: &Value) -> Value {
    value.like(canonical_floats(value.array()))
}

/// Floats with one zero and one NaN, since kernels compare the bits of floats.
pub(crate) fn canonical_floats(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let one = |x: f32| if x.is_nan() { f32::NAN } else { x + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(one))
        }
        DataType::Float64 => {
            let one = |x: f64| if x.is_nan() { f64::NAN } else { x + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(one))
        }
        _ => Arc::clone(array),
    }
}
