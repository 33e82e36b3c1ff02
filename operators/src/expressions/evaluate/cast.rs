//! Conversions between types, as DuckDB makes them: a number that does not fit is an error, floats
//! are rounded to the nearest even integer, texts may have blanks around them.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float32Array, Int64Array, PrimitiveArray, StringArray,
    TimestampMicrosecondArray,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, TimeUnit};
use chrono::DateTime;

use super::compare::canonical_floats;
use crate::expressions::compile::types::{is_float, is_integer, is_text, is_time};
use crate::expressions::error::{Reason, said, shorten};

/// A conversion to a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cast {
    pub(crate) to: DataType,
    /// A value that cannot be converted becomes null.
    pub(crate) is_try: bool,
}

impl Cast {
    pub(crate) fn apply(&self, values: &ArrayRef) -> Result<ArrayRef, Reason> {
        let from = values.data_type();
        match &self.to {
            to if from == to => Ok(Arc::clone(values)),
            DataType::Utf8 if is_float(from) => Ok(floats_to_texts(values)),
            DataType::Utf8 if is_time(from) => times_to_texts(values),
            DataType::Boolean if *from == DataType::Utf8 => self.texts_to_booleans(values),
            to if *from == DataType::Utf8 && is_integer(to) => self.texts_to_integers(values),
            to @ DataType::Timestamp(..) if *from == DataType::Utf8 => {
                self.kernel(&self.times(values)?, to)
            }
            to if *from == DataType::Utf8 => self.kernel(&trimmed(values), to),
            to if is_float(from) && is_integer(to) => self.floats_to_integers(values),
            DataType::Float32 => self.to_float32(values),
            to => self.in_time(self.kernel(values, to)?),
        }
    }

    fn kernel(&self, values: &ArrayRef, to: &DataType) -> Result<ArrayRef, Reason> {
        let options = CastOptions { safe: self.is_try, ..CastOptions::default() };
        cast_with_options(values, to, &options).map_err(|error| said(&error))
    }

    /// Converts texts of points in time to the form of the kernel: with seconds from 0 to 59.
    fn times(&self, values: &ArrayRef) -> Result<ArrayRef, Reason> {
        let texts = values.as_string::<i32>();
        let mut times = StringBuilder::with_capacity(texts.len(), texts.value_data().len());
        for text in texts {
            let Some(text) = text.map(str::trim) else {
                times.append_null();
                continue;
            };
            match text.get(16..).filter(|_| has_minutes(text.as_bytes())) {
                Some(rest) if rest.is_empty() || rest.starts_with(['+', '-', 'Z', 'z', ' ']) => {
                    times.append_value(format!("{}:00{rest}", &text[..16]));
                }
                // The kernel takes second 60 for the next minute.
                Some(rest) if rest.starts_with(":60") => {
                    times.append_option(self.or_refuse(None::<String>, text)?);
                }
                _ => times.append_value(text),
            }
        }
        Ok(Arc::new(times.finish()))
    }

    /// Converts to Float32. Numbers that are too large for the type are refused.
    fn to_float32(&self, values: &ArrayRef) -> Result<ArrayRef, Reason> {
        let wide = self.kernel(values, &DataType::Float64)?;
        let narrow = self.kernel(values, &DataType::Float32)?;
        let (wide, narrow) =
            (wide.as_primitive::<Float64Type>(), narrow.as_primitive::<Float32Type>());
        let value = |(wide, narrow): (Option<f64>, Option<f32>)| match (wide, narrow) {
            (Some(wide), Some(narrow)) if wide.is_finite() && narrow.is_infinite() => {
                self.or_refuse(None, &wide.to_string())
            }
            (_, narrow) => Ok(narrow),
        };
        let values = wide.iter().zip(narrow).map(value);
        Ok(Arc::new(values.collect::<Result<Float32Array, Reason>>()?))
    }

    /// The values, if all values are points in time that can be written.
    fn in_time(&self, values: ArrayRef) -> Result<ArrayRef, Reason> {
        let DataType::Timestamp(TimeUnit::Microsecond, zone) = values.data_type() else {
            return Ok(values);
        };
        let times = values.as_primitive::<TimestampMicrosecondType>();
        let is_known = |micros: i64| DateTime::from_timestamp_micros(micros).is_some();
        if times.iter().flatten().all(is_known) {
            return Ok(values);
        }
        let value = |micros: Option<i64>| match micros {
            Some(micros) if !is_known(micros) => self.or_refuse(None, &micros.to_string()),
            micros => Ok(micros),
        };
        let kept =
            times.iter().map(value).collect::<Result<TimestampMicrosecondArray, Reason>>()?;
        Ok(Arc::new(kept.with_timezone_opt(zone.clone())))
    }

    fn texts_to_booleans(&self, values: &ArrayRef) -> Result<ArrayRef, Reason> {
        let truth = |text: &str| {
            let text = text.trim();
            let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
            if is(&["true", "t", "1", "yes", "y"]) {
                Some(true)
            } else if is(&["false", "f", "0", "no", "n"]) {
                Some(false)
            } else {
                None
            }
        };
        let values = values.as_string::<i32>().iter().map(|text| match text {
            None => Ok(None),
            Some(text) => self.or_refuse(truth(text), text),
        });
        Ok(Arc::new(values.collect::<Result<BooleanArray, Reason>>()?))
    }

    fn texts_to_integers(&self, values: &ArrayRef) -> Result<ArrayRef, Reason> {
        let texts = values.as_string::<i32>();
        // Integers of 64 bits fit into an i128, in which all ranges are compared.
        integers(&self.to, texts.len(), |row, from, to| {
            if texts.is_null(row) {
                return Ok(None);
            }
            let text = texts.value(row);
            self.or_refuse(parse_integer(text).filter(|value| (from..=to).contains(value)), text)
        })
    }

    fn floats_to_integers(&self, values: &ArrayRef) -> Result<ArrayRef, Reason> {
        let wide = arrow_cast::cast(values, &DataType::Float64).expect("floats become wider");
        let wide = wide.as_primitive::<Float64Type>();
        integers(&self.to, wide.len(), |row, from, to| {
            if wide.is_null(row) {
                return Ok(None);
            }
            let value = wide.value(row);
            let whole = whole(value.round_ties_even());
            self.or_refuse(whole.filter(|whole| (from..=to).contains(whole)), &value.to_string())
        })
    }

    /// The value. If there is no value, a `try_cast` gives null and a `cast` an error.
    fn or_refuse<T>(&self, value: Option<T>, from: &str) -> Result<Option<T>, Reason> {
        if value.is_some() || self.is_try {
            return Ok(value);
        }
        Err(format!("{:?} is no {}", shorten(from), self.to))
    }
}

/// The integer of a float without a fraction, if the float is well within the range of an i128.
fn whole(value: f64) -> Option<i128> {
    let fits = value.abs() < 1e30;
    #[expect(clippy::cast_possible_truncation, reason = "it is below 10^30")]
    fits.then_some(value as i128)
}

/// The integer that a text names; a text with a fraction or an exponent is rounded.
fn parse_integer(text: &str) -> Option<i128> {
    let text = text.trim();
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let is_decimal =
        text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
    text.parse::<f64>().ok().filter(|_| is_decimal).and_then(|value| whole(value.round()))
}

/// An array of the integer type `to`. `value` gives the value of a row from the row, the least and
/// the greatest value of the type.
fn integers(
    to: &DataType,
    rows: usize,
    value: impl Fn(usize, i128, i128) -> Result<Option<i128>, Reason>,
) -> Result<ArrayRef, Reason> {
    fn collect<T: ArrowPrimitiveType>(
        rows: usize,
        range: (i128, i128),
        value: impl Fn(usize, i128, i128) -> Result<Option<i128>, Reason>,
    ) -> Result<ArrayRef, Reason>
    where
        T::Native: TryFrom<i128>,
    {
        let values = (0..rows).map(|row| {
            let value = value(row, range.0, range.1)?;
            Ok(value.map(|value| {
                T::Native::try_from(value).ok().expect("the value was compared with the range")
            }))
        });
        Ok(Arc::new(values.collect::<Result<PrimitiveArray<T>, Reason>>()?))
    }
    macro_rules! of {
        ($kind:ty, $native:ty) => {
            collect::<$kind>(rows, (i128::from(<$native>::MIN), i128::from(<$native>::MAX)), value)
        };
    }
    match to {
        DataType::Int8 => of!(Int8Type, i8),
        DataType::Int16 => of!(Int16Type, i16),
        DataType::Int32 => of!(Int32Type, i32),
        DataType::Int64 => of!(Int64Type, i64),
        DataType::UInt8 => of!(UInt8Type, u8),
        DataType::UInt16 => of!(UInt16Type, u16),
        DataType::UInt32 => of!(UInt32Type, u32),
        _ => of!(UInt64Type, u64),
    }
}

fn trimmed(values: &ArrayRef) -> ArrayRef {
    let texts = values.as_string::<i32>();
    Arc::new(texts.iter().map(|text| text.map(str::trim)).collect::<StringArray>())
}

/// Whether a text begins as `2024-01-31 10:00` does.
fn has_minutes(text: &[u8]) -> bool {
    let form = b"0000-00-00 00:00";
    text.len() >= form.len()
        && text.iter().zip(form).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b' ' => matches!(byte, b' ' | b'T' | b't'),
            form => byte == form,
        })
}

/// Floats as the shortest decimals from which a reader gets the same floats, such as `1.0` and
/// `1e+20`.
fn floats_to_texts(values: &ArrayRef) -> ArrayRef {
    let mut texts = StringBuilder::new();
    let mut text = String::new();
    let mut add = |digits: Option<String>| match digits {
        None => texts.append_null(),
        Some(digits) => {
            write_float(&mut text, &digits);
            texts.append_value(&text);
        }
    };
    if *values.data_type() == DataType::Float32 {
        values.as_primitive::<Float32Type>().iter().for_each(|x| add(x.map(|x| format!("{x:e}"))));
    } else {
        let wide = arrow_cast::cast(values, &DataType::Float64).expect("floats become wider");
        wide.as_primitive::<Float64Type>().iter().for_each(|x| add(x.map(|x| format!("{x:e}"))));
    }
    Arc::new(texts.finish())
}

/// Writes a float from its scientific form, such as `-1.25e3`.
fn write_float(text: &mut String, scientific: &str) {
    text.clear();
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        text.push_str(match scientific {
            "NaN" => "nan",
            other => other,
        });
        return;
    };
    let exponent: i32 = exponent.parse().expect("Rust writes a number");
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits = mantissa.replace('.', "");
    text.push_str(sign);
    let point = usize::try_from(exponent + 1);
    match point {
        Ok(point @ 1..=16) if point < digits.len() => {
            text.push_str(&digits[..point]);
            text.push('.');
            text.push_str(&digits[point..]);
        }
        Ok(point @ 1..=16) => {
            text.push_str(&digits);
            text.extend(std::iter::repeat_n('0', point - digits.len()));
            text.push_str(".0");
        }
        _ if (-5..0).contains(&exponent) => {
            text.push_str("0.");
            text.extend(std::iter::repeat_n('0', exponent.unsigned_abs() as usize - 1));
            text.push_str(&digits);
        }
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            write!(text, "{mantissa}e{sign}{:02}", exponent.unsigned_abs()).expect("a String");
        }
    }
}

/// Dates and points in time, such as `2024-01-02 03:04:05.5` and `2024-01-02 03:04:05+00`.
fn times_to_texts(values: &ArrayRef) -> Result<ArrayRef, Reason> {
    let is_zoned = matches!(values.data_type(), DataType::Timestamp(_, Some(_)));
    let is_date = *values.data_type() == DataType::Date32;
    let plain = match values.data_type() {
        // A point in time is taken apart in UTC.
        DataType::Timestamp(unit, Some(_)) => {
            let utc = DataType::Timestamp(*unit, Some("UTC".into()));
            let utc = arrow_cast::cast(values, &utc).map_err(|error| said(&error))?;
            arrow_cast::cast(&utc, &DataType::Timestamp(*unit, None))
        }
        _ => Ok(Arc::clone(values)),
    };
    let plain = plain.map_err(|error| said(&error))?;
    let texts = arrow_cast::cast(&plain, &DataType::Utf8).map_err(|error| said(&error))?;
    if is_date {
        return Ok(texts);
    }
    let zone = if is_zoned { "+00" } else { "" };
    let text = |text: &str| {
        let text = text.replace('T', " ");
        let text = match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.'),
            false => &text,
        };
        format!("{text}{zone}")
    };
    let texts = texts.as_string::<i32>().iter().map(|found| found.map(text));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

/// Integers of 64 bits that are equal exactly if two values are equal; `None` for other types.
pub(crate) fn reinterpret(values: &ArrayRef) -> Option<ArrayRef> {
    let kind = values.data_type();
    let whole: Int64Array = match kind {
        DataType::UInt64 => values.as_primitive::<UInt64Type>().unary(u64::cast_signed),
        DataType::Float32 | DataType::Float64 => {
            let floats = canonical_floats(values);
            let wide = arrow_cast::cast(&floats, &DataType::Float64).ok()?;
            wide.as_primitive::<Float64Type>().unary(|x| x.to_bits().cast_signed())
        }
        _ if is_integer(kind) || is_time(kind) || *kind == DataType::Boolean => {
            let whole = arrow_cast::cast(values, &DataType::Int64).ok()?;
            whole.as_primitive::<Int64Type>().clone()
        }
        _ => return None,
    };
    Some(Arc::new(whole))
}

/// Whether a cast between the types exists.
pub(crate) fn exists(from: &DataType, to: &DataType) -> bool {
    from == to
        || (is_text(from) && *to == DataType::Boolean)
        || arrow_cast::can_cast_types(from, to)
}
