//! Membership in a list of constants, by a hash table.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;
use rapidhash::fast::RandomState;

use super::cast::reinterpret;

/// Constants of one type.
#[derive(Debug)]
pub(crate) enum Members {
    Texts { texts: HashSet<Box<str>, RandomState>, has_null: bool },
    Bits { bits: HashSet<u64, RandomState>, has_null: bool },
}

impl Members {
    /// The values of `array`; `None` if values of its type cannot be looked up.
    pub(crate) fn new(array: &ArrayRef) -> Option<Self> {
        let has_null = array.null_count() > 0;
        if *array.data_type() == DataType::Utf8 {
            let texts = array.as_string::<i32>().iter().flatten().map(Box::from).collect();
            return Some(Self::Texts { texts, has_null });
        }
        let bits = bits_of(array)?.iter().flatten().collect();
        Some(Self::Bits { bits, has_null })
    }

    /// Whether each value is a member. The result is null for a null, and also for a value that is
    /// no member if a member is null.
    pub(crate) fn contain(&self, values: &ArrayRef) -> BooleanArray {
        let (found, has_null) = match self {
            Self::Texts { texts, has_null } => {
                let values = values.as_string::<i32>();
                let has = |row: usize| texts.contains(values.value(row));
                (BooleanBuffer::collect_bool(values.len(), has), *has_null)
            }
            Self::Bits { bits, has_null } => {
                let values = bits_of(values).expect("the type of the constants");
                let has = |row: usize| bits.contains(&values.value(row));
                (BooleanBuffer::collect_bool(values.len(), has), *has_null)
            }
        };
        let valid = match (values.logical_nulls(), has_null) {
            (None, false) => return BooleanArray::new(found, None),
            (None, true) => found.clone(),
            (Some(valid), false) => valid.into_inner(),
            (Some(valid), true) => valid.inner() & &found,
        };
        BooleanArray::new(found, Some(valid.into()))
    }
}

/// The bits of numbers and times. Equal values have equal bits.
fn bits_of(values: &ArrayRef) -> Option<UInt64Array> {
    let whole = reinterpret(values)?;
    Some(whole.as_primitive::<Int64Type>().unary(i64::cast_unsigned))
}
