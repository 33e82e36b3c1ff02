//! Functions of numbers, and of values of any type.

use std::sync::Arc;

use arrow_arith::boolean::is_null;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, UInt64Array};
use arrow_schema::DataType;
use arrow_select::zip::zip;
use rapidhash::v3::rapidhash_v3;

use super::super::error::{Reason, said};
use super::{Argument, Bound, Refusal, constant_integer, met};
use crate::expressions::compile::types::{is_float, is_integer, is_number};
use crate::expressions::evaluate::cast::reinterpret;
use crate::expressions::evaluate::compare::Comparison;
use crate::expressions::evaluate::value::Value;

/// Decimal digits of the greatest number of 64 bits.
const DIGITS_MAX: u32 = 19;
/// Multiplier that mixes the hashes of several values: 2^64 divided by the golden ratio.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The type of 64 bits in which a function computes an argument.
fn wide(arguments: &[Argument<'_>]) -> Result<DataType, Refusal> {
    match arguments[0].data_type {
        DataType::UInt64 => Ok(DataType::UInt64),
        DataType::Float32 => Ok(DataType::Float32),
        found if is_integer(found) || *found == DataType::Null => Ok(DataType::Int64),
        found if is_number(found) => Ok(DataType::Float64),
        found => Err(Refusal::new(0, format!("expected a number, and this is {found}"))),
    }
}

/// Applies a function to floats; integers stay unchanged.
fn floats(array: &ArrayRef, value: impl Fn(f64) -> f64) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            #[expect(clippy::cast_possible_truncation, reason = "the result is a float32, too")]
            let value = |x: f32| value(f64::from(x)) as f32;
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(value))
        }
        DataType::Float64 => {
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(value))
        }
        _ => Arc::clone(array),
    }
}

pub(super) fn abs(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let kind = wide(arguments)?;
    let work = |values: &[Value], _: usize| {
        let array = values[0].array();
        if *array.data_type() != DataType::Int64 {
            return Ok(floats(array, f64::abs));
        }
        let whole = array.as_primitive::<Int64Type>();
        let absolute: Result<Int64Array, Reason> = whole.try_unary(|value| {
            value.checked_abs().ok_or_else(|| "the result does not fit 64 bits".to_owned())
        });
        Ok(Arc::new(absolute?) as ArrayRef)
    };
    Ok(Bound::new(vec![kind.clone()], kind, 1, work).failing())
}

pub(super) fn round(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let kind = wide(arguments)?;
    let digits = constant_integer(arguments, 1)?.unwrap_or(0);
    let mut types = vec![kind.clone()];
    types.extend((arguments.len() > 1).then_some(DataType::Int64));
    let work = move |values: &[Value], _: usize| {
        let array = values[0].array();
        match array.data_type() {
            DataType::Int64 => {
                let whole = array.as_primitive::<Int64Type>();
                let round = |value: i64| round_whole(i128::from(value), digits);
                let rounded: Result<Int64Array, Reason> =
                    whole.try_unary(|value| i64::try_from(round(value)).map_err(|_| no_room()));
                Ok(Arc::new(rounded?) as ArrayRef)
            }
            DataType::UInt64 => {
                let whole = array.as_primitive::<UInt64Type>();
                let round = |value: u64| round_whole(i128::from(value), digits);
                let rounded: Result<UInt64Array, Reason> =
                    whole.try_unary(|value| u64::try_from(round(value)).map_err(|_| no_room()));
                Ok(Arc::new(rounded?) as ArrayRef)
            }
            _ => Ok(floats(array, |value| round_float(value, digits))),
        }
    };
    let bound = Bound::new(types, kind.clone(), 2, work);
    Ok(if is_float(&kind) { bound } else { bound.failing() })
}

fn no_room() -> Reason {
    "the result does not fit 64 bits".to_owned()
}

/// Rounds an integer to a number of digits after the point, which has an effect only if negative;
/// halves are rounded away from zero.
fn round_whole(value: i128, digits: i64) -> i128 {
    let Ok(zeros) = u32::try_from(-digits) else { return value };
    if zeros > DIGITS_MAX {
        return 0;
    }
    let unit = 10_i128.pow(zeros);
    let (quotient, rest) = (value / unit, value % unit);
    let up = i128::from(rest.abs() * 2 >= unit && zeros > 0) * value.signum();
    (quotient + up) * unit
}

fn round_float(value: f64, digits: i64) -> f64 {
    let power = i32::try_from(digits.clamp(-400, 400)).expect("clamped");
    if power < 0 {
        let unit = 10_f64.powi(-power);
        let rounded = (value / unit).round() * unit;
        return if rounded.is_finite() { rounded } else { 0.0 };
    }
    let unit = 10_f64.powi(power);
    let rounded = (value * unit).round() / unit;
    if rounded.is_finite() { rounded } else { value }
}

/// A function that rounds a number to a whole float.
fn rounding(arguments: &[Argument<'_>], value: fn(f64) -> f64) -> Result<Bound, Refusal> {
    let kind = match wide(arguments)? {
        DataType::Float32 => DataType::Float32,
        _ => DataType::Float64,
    };
    let work = move |values: &[Value], _: usize| Ok(floats(values[0].array(), value));
    Ok(Bound::new(vec![kind.clone()], kind, 1, work))
}

pub(super) fn floor(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    rounding(arguments, f64::floor)
}

pub(super) fn ceil(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    rounding(arguments, f64::ceil)
}

pub(super) fn greatest(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    extreme(arguments, Comparison::Greater)
}

pub(super) fn least(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    extreme(arguments, Comparison::Less)
}

/// The value for which `comparison` with each other value is true; nulls are left out.
fn extreme(arguments: &[Argument<'_>], comparison: Comparison) -> Result<Bound, Refusal> {
    let kind = met(arguments)?;
    if kind.is_nested() {
        return Err(Refusal::new(0, format!("values of type {kind} are not compared")));
    }
    let work = move |values: &[Value], rows: usize| {
        let mut best = values[0].clone().into_array(rows);
        for value in &values[1..] {
            let next = value.clone().into_array(rows);
            if *next.data_type() == DataType::Null {
                continue;
            }
            let (of_best, of_next) =
                (Value::Rows(Arc::clone(&best)), Value::Rows(Arc::clone(&next)));
            let better = comparison.apply(&of_next, &of_best).map_err(|error| said(&error))?;
            let missing = is_null(&best).map_err(|error| said(&error))?;
            // A comparison with null is null, and null counts as false here.
            let is_better = match better.null_count() {
                0 => better,
                _ => arrow_select::filter::prep_null_mask_filter(&better),
            };
            let takes = arrow_arith::boolean::or(&is_better, &missing);
            let takes = takes.map_err(|error| said(&error))?;
            best = zip(&takes, &next, &best).map_err(|error| said(&error))?;
        }
        Ok(best)
    };
    Ok(Bound::new(vec![kind.clone(); arguments.len()], kind, 4, work))
}

/// A number of 64 bits that is the same for equal values, in each run and on each machine.
pub(super) fn hash(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let mut types = Vec::with_capacity(arguments.len());
    for (number, argument) in arguments.iter().enumerate() {
        types.push(match argument.data_type {
            DataType::UInt64 => DataType::UInt64,
            found if is_integer(found) => DataType::Int64,
            DataType::Float32 => DataType::Float64,
            found if found.is_nested() => {
                let reason = format!("values of type {found} are not hashed");
                return Err(Refusal::new(number, reason));
            }
            found => found.clone(),
        });
    }
    let work = |values: &[Value], rows: usize| {
        let mut hashes = vec![0_u64; rows];
        for value in values {
            let array = value.array();
            let whole = reinterpret(array);
            let whole = whole.as_ref().map(|whole| whole.as_primitive::<Int64Type>());
            let texts = match &whole {
                Some(_) => None,
                None => {
                    let texts = arrow_cast::cast(array, &DataType::Utf8);
                    Some(texts.map_err(|error| said(&error))?)
                }
            };
            let texts = texts.as_ref().map(|texts| texts.as_string::<i32>());
            // An untyped null has no physical null buffer.
            let nulls = array.logical_nulls();
            let is_null = |place| nulls.as_ref().is_some_and(|nulls| nulls.is_null(place));
            for (row, hash) in hashes.iter_mut().enumerate() {
                let place = value.place(row);
                let of_value = match (whole, texts) {
                    _ if is_null(place) => 0,
                    (Some(whole), _) => rapidhash_v3(&whole.value(place).to_le_bytes()),
                    (None, Some(texts)) => rapidhash_v3(texts.value(place).as_bytes()),
                    (None, None) => unreachable!("a value is a number or written as text"),
                };
                *hash = (hash.rotate_left(23) ^ of_value).wrapping_mul(ODD);
            }
        }
        Ok(Arc::new(UInt64Array::from(hashes)) as ArrayRef)
    };
    Ok(Bound::new(types, DataType::UInt64, 6, work))
}
