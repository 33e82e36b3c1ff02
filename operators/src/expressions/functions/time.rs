//! Functions of dates and points in time. Points in time count microseconds; points in time with a
//! zone are taken apart in UTC.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_array::{ArrayRef, Float64Array, Int64Array, TimestampMicrosecondArray};
use arrow_schema::{DataType, TimeUnit};
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};

use super::super::error::{Reason, shorten};
use super::{Argument, Bound, Refusal, constant_text, text_type};
use crate::expressions::compile::types::{is_number, is_time};
use crate::expressions::evaluate::value::{Texts, Value};
use crate::shared::columns::{TimeFormat, timestamp};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Part of a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    /// Day of the week from 0, a Sunday.
    Dow,
    /// Day of the week from 1, a Monday.
    Isodow,
    /// Day of the year from 1.
    Doy,
    /// Seconds since 1970.
    Epoch,
    Isoyear,
}

const UNITS: &[(&str, Unit)] = &[
    ("microsecond", Unit::Microsecond),
    ("millisecond", Unit::Millisecond),
    ("second", Unit::Second),
    ("minute", Unit::Minute),
    ("hour", Unit::Hour),
    ("day", Unit::Day),
    ("week", Unit::Week),
    ("month", Unit::Month),
    ("quarter", Unit::Quarter),
    ("year", Unit::Year),
    ("decade", Unit::Decade),
    ("century", Unit::Century),
    ("dow", Unit::Dow),
    ("isodow", Unit::Isodow),
    ("doy", Unit::Doy),
    ("epoch", Unit::Epoch),
    ("isoyear", Unit::Isoyear),
];

/// Number of units that can cut a point in time: the first units of the table.
const CUTTING: usize = 12;

fn unit(arguments: &[Argument<'_>], known: &[(&str, Unit)]) -> Result<Unit, Refusal> {
    let name = constant_text(arguments, 0)?.unwrap_or_default().to_lowercase();
    let singular = name.strip_suffix('s').unwrap_or(&name);
    let found = known.iter().find(|(unit, _)| *unit == name || *unit == singular);
    found.map(|(_, unit)| *unit).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Refusal::new(0, format!("expected one of {}", names.join(", ")))
    })
}

/// The form in which an argument is taken apart: microseconds, with the zone of the argument.
fn point_type(arguments: &[Argument<'_>], number: usize) -> Result<DataType, Refusal> {
    match arguments[number].data_type {
        DataType::Timestamp(_, zone) => {
            Ok(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        found if is_time(found) || *found == DataType::Null => Ok(timestamp(None)),
        found => {
            Err(Refusal::new(number, format!("expected a point in time, and this is {found}")))
        }
    }
}

fn points(value: &Value) -> &TimestampMicrosecondArray {
    value.array().as_primitive::<TimestampMicrosecondType>()
}

pub(super) fn to_timestamp(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let found = arguments[0].data_type;
    if !is_number(found) && *found != DataType::Null {
        return Err(Refusal::new(0, format!("expected seconds as a number, and this is {found}")));
    }
    let work = |values: &[Value], _: usize| {
        let seconds = values[0].array().as_primitive::<Float64Type>();
        let made = seconds.iter().map(|seconds| match seconds {
            None => Ok(None),
            Some(seconds) => {
                let micros = (seconds * 1e6).round_ties_even();
                // The range of chrono, which takes points in time apart.
                if micros.abs() > 8.2e18 || micros.is_nan() {
                    return Err(format!("{seconds} seconds since 1970 are no point in time"));
                }
                #[expect(clippy::cast_possible_truncation, reason = "compared with the range")]
                Ok(Some(micros as i64))
            }
        });
        let made = made.collect::<Result<TimestampMicrosecondArray, Reason>>()?;
        Ok(Arc::new(made.with_timezone("UTC")) as ArrayRef)
    };
    Ok(Bound::new(vec![DataType::Float64], timestamp(Some("UTC")), 2, work).failing())
}

pub(super) fn strptime(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let types = vec![text_type(arguments, 0)?, text_type(arguments, 1)?];
    let format = constant_text(arguments, 1)?.map(TimeFormat::new).transpose();
    let format = format.map_err(|reason| Refusal::new(1, reason))?;
    let is_zoned = format.as_ref().is_some_and(TimeFormat::is_zoned);
    let work = move |values: &[Value], rows: usize| {
        let texts = Texts::new(&values[0]);
        let read = (0..rows).map(|row| {
            let (Some(format), Some(text)) = (&format, texts.get(row)) else { return Ok(None) };
            let read = format.read(text);
            read.map(Some).ok_or_else(|| {
                let format = format.as_str();
                format!("{:?} is no time of the format {format:?}", shorten(text))
            })
        });
        let read = read.collect::<Result<TimestampMicrosecondArray, Reason>>()?;
        let read = if is_zoned { read.with_timezone("UTC") } else { read };
        Ok(Arc::new(read) as ArrayRef)
    };
    let zone = is_zoned.then_some("UTC");
    Ok(Bound::new(types, timestamp(zone), 60, work).failing())
}

pub(super) fn date_trunc(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let unit = unit(arguments, &UNITS[..CUTTING])?;
    let kind = point_type(arguments, 1)?;
    let work = move |values: &[Value], _: usize| {
        let points = points(&values[1]);
        let cut = |micros: i64| {
            truncated(micros, unit).ok_or_else(|| "this point in time is out of range".to_owned())
        };
        let cut: Result<TimestampMicrosecondArray, Reason> = points.try_unary(cut);
        Ok(Arc::new(cut?.with_timezone_opt(points.timezone())) as ArrayRef)
    };
    Ok(Bound::new(vec![DataType::Utf8, kind.clone()], kind, 4, work).failing())
}

/// Beginning of the unit that contains a point in time.
fn truncated(micros: i64, unit: Unit) -> Option<i64> {
    let cut = |unit: i64| Some(micros - micros.rem_euclid(unit));
    let date = || Some(DateTime::<Utc>::from_timestamp_micros(micros)?.date_naive());
    let begin = |year: i32, month: u32| {
        let date = NaiveDate::from_ymd_opt(year, month, 1)?;
        Some(date.and_time(NaiveTime::MIN).and_utc().timestamp_micros())
    };
    match unit {
        Unit::Microsecond => Some(micros),
        Unit::Millisecond => cut(1_000),
        Unit::Second => cut(SECOND),
        Unit::Minute => cut(60 * SECOND),
        Unit::Hour => cut(3_600 * SECOND),
        Unit::Day => cut(DAY),
        // 1970-01-01 was a Thursday, three days after a Monday.
        Unit::Week => micros.checked_sub((micros + 3 * DAY).rem_euclid(7 * DAY)),
        Unit::Month => date().and_then(|date| begin(date.year(), date.month())),
        Unit::Quarter => date().and_then(|date| begin(date.year(), date.month0() / 3 * 3 + 1)),
        Unit::Decade => date().and_then(|date| begin(date.year().div_euclid(10) * 10, 1)),
        Unit::Century => date().and_then(|date| begin(date.year().div_euclid(100) * 100, 1)),
        _ => date().and_then(|date| begin(date.year(), 1)),
    }
}

pub(super) fn date_part(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let unit = unit(arguments, UNITS)?;
    let types = vec![DataType::Utf8, point_type(arguments, 1)?];
    if unit == Unit::Epoch {
        let work = |values: &[Value], _: usize| {
            #[expect(clippy::cast_precision_loss, reason = "seconds are a float, as in DuckDB")]
            let seconds = |micros: i64| micros as f64 / 1e6;
            let seconds: Float64Array = points(&values[1]).unary(seconds);
            Ok(Arc::new(seconds) as ArrayRef)
        };
        return Ok(Bound::new(types, DataType::Float64, 2, work));
    }
    let work = move |values: &[Value], _: usize| {
        let part = |micros: i64| {
            let time = DateTime::<Utc>::from_timestamp_micros(micros);
            time.map(|time| part_of(time.naive_utc(), unit))
                .ok_or_else(|| "this point in time is out of range".to_owned())
        };
        let parts: Result<Int64Array, Reason> = points(&values[1]).try_unary(part);
        Ok(Arc::new(parts?) as ArrayRef)
    };
    Ok(Bound::new(types, DataType::Int64, 6, work).failing())
}

fn part_of(time: NaiveDateTime, unit: Unit) -> i64 {
    let micros = || i64::from(time.second()) * SECOND + i64::from(time.nanosecond() / 1_000);
    match unit {
        Unit::Microsecond => micros(),
        Unit::Millisecond => micros() / 1_000,
        Unit::Second => i64::from(time.second()),
        Unit::Minute => i64::from(time.minute()),
        Unit::Hour => i64::from(time.hour()),
        Unit::Day => i64::from(time.day()),
        Unit::Week => i64::from(time.iso_week().week()),
        Unit::Month => i64::from(time.month()),
        Unit::Quarter => i64::from(time.quarter()),
        Unit::Year => i64::from(time.year()),
        Unit::Decade => i64::from(time.year().div_euclid(10)),
        Unit::Century => i64::from((time.year() - 1).div_euclid(100) + 1),
        Unit::Dow => i64::from(time.weekday().num_days_from_sunday()),
        Unit::Isodow => i64::from(time.weekday().number_from_monday()),
        Unit::Doy => i64::from(time.ordinal()),
        Unit::Epoch => time.and_utc().timestamp(),
        Unit::Isoyear => i64::from(time.iso_week().year()),
    }
}

/// The present time, read once for all rows of a batch.
pub(super) fn now(_: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let work = |_: &[Value], rows: usize| {
        let now = Utc::now().timestamp_micros();
        let now = TimestampMicrosecondArray::from_value(now, rows).with_timezone("UTC");
        Ok(Arc::new(now) as ArrayRef)
    };
    let mut bound = Bound::new(Vec::new(), timestamp(Some("UTC")), 1, work);
    bound.function.is_fixed = false;
    Ok(bound)
}
