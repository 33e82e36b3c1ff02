//! Types in which two operands meet.

use std::sync::Arc;

use arrow_schema::{DataType, TimeUnit};

/// Decimal that has all integers of 64 bits.
pub(crate) const WIDE: DataType = DataType::Decimal128(38, 0);

pub(crate) fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

pub(crate) fn is_number(kind: &DataType) -> bool {
    kind.is_numeric()
}

pub(crate) fn is_integer(kind: &DataType) -> bool {
    kind.is_integer()
}

pub(crate) fn is_float(kind: &DataType) -> bool {
    kind.is_floating()
}

fn is_decimal(kind: &DataType) -> bool {
    kind.is_decimal()
}

pub(crate) fn is_time(kind: &DataType) -> bool {
    matches!(kind, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
}

/// The type in which expressions compute with a column: texts, lists and numbers have one form
/// each. `None` if the column already has this form.
pub(crate) fn plain(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::LargeUtf8 | DataType::Utf8View => Some(DataType::Utf8),
        DataType::Dictionary(_, values) => {
            Some(plain(values).unwrap_or_else(|| values.as_ref().clone()))
        }
        DataType::RunEndEncoded(_, values) => {
            Some(plain(values.data_type()).unwrap_or_else(|| values.data_type().clone()))
        }
        DataType::Float16 => Some(DataType::Float32),
        DataType::Date64 => Some(DataType::Timestamp(TimeUnit::Millisecond, None)),
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(DataType::List(Arc::clone(item)))
        }
        DataType::LargeBinary | DataType::BinaryView => Some(DataType::Binary),
        _ => None,
    }
}

/// Bits of an integer type, and whether the type has a sign.
fn bits(kind: &DataType) -> (u8, bool) {
    match kind {
        DataType::Int8 => (8, true),
        DataType::Int16 => (16, true),
        DataType::Int32 => (32, true),
        DataType::UInt8 => (8, false),
        DataType::UInt16 => (16, false),
        DataType::UInt32 => (32, false),
        DataType::UInt64 => (64, false),
        _ => (64, true),
    }
}

fn integer(bits: u8, is_signed: bool) -> DataType {
    match (bits, is_signed) {
        (8, true) => DataType::Int8,
        (16, true) => DataType::Int16,
        (32, true) => DataType::Int32,
        (64, true) => DataType::Int64,
        (8, false) => DataType::UInt8,
        (16, false) => DataType::UInt16,
        (32, false) => DataType::UInt32,
        (64, false) => DataType::UInt64,
        _ => WIDE,
    }
}

/// The least integer type that has all values of both types.
fn common_integer(left: &DataType, right: &DataType) -> DataType {
    let ((left_bits, left_signed), (right_bits, right_signed)) = (bits(left), bits(right));
    if left_signed == right_signed {
        return integer(left_bits.max(right_bits), left_signed);
    }
    let (signed, unsigned) =
        if left_signed { (left_bits, right_bits) } else { (right_bits, left_bits) };
    integer(signed.max(unsigned.saturating_mul(2)), true)
}

/// The type in which an arithmetic operator computes with integers.
pub(crate) fn computed_integer(left: &DataType, right: &DataType) -> DataType {
    match common_integer(left, right) {
        DataType::UInt64 => DataType::UInt64,
        WIDE => WIDE,
        _ => DataType::Int64,
    }
}

/// The type in which values of two numeric types are compared and combined.
pub(crate) fn common_number(left: &DataType, right: &DataType) -> DataType {
    match (left, right) {
        _ if left == right => left.clone(),
        _ if is_integer(left) && is_integer(right) => common_integer(left, right),
        _ if is_float(left) || is_float(right) => {
            let is_single = |kind: &DataType| *kind == DataType::Float32 || is_integer(kind);
            if is_single(left) && is_single(right) { DataType::Float32 } else { DataType::Float64 }
        }
        _ => {
            let scale = scale_of(left).max(scale_of(right));
            DataType::Decimal128(38, scale)
        }
    }
}

fn scale_of(kind: &DataType) -> i8 {
    match kind {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        _ => 0,
    }
}

/// The finer of two units.
fn finer(left: TimeUnit, right: TimeUnit) -> TimeUnit {
    let rank = |unit: TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    };
    if rank(left) > rank(right) { left } else { right }
}

/// The type in which values of both types are compared or stand in one column; `None` if the types
/// only meet after an explicit cast.
pub(crate) fn common(left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType::{Date32, List, Null, Timestamp};
    match (left, right) {
        _ if left == right => Some(left.clone()),
        (Null, other) | (other, Null) => Some(other.clone()),
        _ if is_number(left) && is_number(right) => Some(common_number(left, right)),
        (Date32, Timestamp(unit, zone)) | (Timestamp(unit, zone), Date32) => {
            Some(Timestamp(*unit, zone.clone()))
        }
        (Timestamp(left, left_zone), Timestamp(right, right_zone)) => {
            let zone = left_zone.clone().or_else(|| right_zone.clone());
            Some(Timestamp(finer(*left, *right), zone))
        }
        (List(left), List(right)) => {
            let item = common(left.data_type(), right.data_type())?;
            Some(DataType::new_list(item, true))
        }
        _ => None,
    }
}

/// Whether a conversion keeps each value.
pub(crate) fn keeps_all(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        _ if from == to => true,
        (DataType::Null, _) => true,
        _ if is_integer(from) && is_integer(to) => common_integer(from, to) == *to,
        _ if is_integer(from) => is_float(to) || *to == WIDE,
        _ if is_float(from) => *to == DataType::Float64 || *from == DataType::Float16,
        _ if is_decimal(from) => is_float(to),
        _ if is_text(from) => is_text(to),
        _ => false,
    }
}
