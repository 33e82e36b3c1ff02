//! Columns of a pattern, and the points in time that only logs have.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::TimestampMicrosecondBuilder;
use arrow_schema::{DataType, Field};
use chrono::{Datelike as _, Days, NaiveDate, NaiveTime, Utc};

use crate::shared::columns::{TimeFormat, timestamp, type_name};
use crate::source::read::columns::values::microseconds;
use crate::source::read::csv::typed::{Cells, cells};

/// Years in which a day without a year is looked for: within eight years there is a 29th of
/// February.
const YEARS: i32 = 8;

/// Column of a pattern.
#[derive(Debug, Clone)]
pub(super) struct LogColumn {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// Values of a column.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Value(DataType),
    Time(TimeFormat),
    /// A time of RFC 3164, which has no year, or one of RFC 3339.
    SyslogTime,
}

impl LogColumn {
    pub(super) fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind }
    }

    pub(super) fn field(&self) -> Field {
        Field::new(&self.name, self.kind.data_type(), true)
    }
}

impl Kind {
    fn data_type(&self) -> DataType {
        match self {
            Self::Value(kind) => kind.clone(),
            Self::Time(format) => timestamp(format.is_zoned().then_some("UTC")),
            Self::SyslogTime => timestamp(Some("UTC")),
        }
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Value(DataType::Utf8))
    }

    /// The kind of values, as messages name it.
    pub(super) fn described(&self) -> String {
        match self {
            Self::Value(kind) => type_name(kind),
            Self::Time(format) => format!("a time of the format `{}`", format.as_str()),
            Self::SyslogTime => {
                "a time such as `Mar  1 12:00:00` or `2026-03-01T12:00:00Z`".to_owned()
            }
        }
    }

    /// The cells that parse values of this kind; `None` if no text has such values.
    pub(super) fn cells(&self) -> Option<Box<dyn Cells>> {
        let parse: Parse = match self {
            Self::Value(kind) => return cells(kind),
            Self::Time(format) => Parse::Format(format.clone()),
            Self::SyslogTime => Parse::Syslog { today: None },
        };
        let values = TimestampMicrosecondBuilder::new().with_data_type(self.data_type());
        Some(Box::new(Times { parse, values, text: String::new(), last: None, is_null: true }))
    }
}

#[derive(Debug)]
enum Parse {
    Format(TimeFormat),
    /// The day on which the first row of a batch was read.
    Syslog {
        today: Option<NaiveDate>,
    },
}

impl Parse {
    fn read(&mut self, text: &str) -> Option<i64> {
        match self {
            Self::Format(format) => format.read(text),
            Self::Syslog { today } => {
                let today = *today.get_or_insert_with(|| Utc::now().date_naive());
                without_year(text, today).or_else(|| microseconds(text))
            }
        }
    }
}

struct Times {
    parse: Parse,
    values: TimestampMicrosecondBuilder,
    /// The last text and its value, since consecutive lines of a busy log have the same second.
    text: String,
    last: Option<i64>,
    /// The value of the next row is null.
    is_null: bool,
}

impl Cells for Times {
    fn parse(&mut self, field: Option<&str>) -> bool {
        self.is_null = field.is_none();
        let Some(text) = field else { return true };
        if self.last.is_none() || self.text != text {
            self.last = self.parse.read(text);
            self.text.clear();
            self.text.push_str(text);
        }
        self.last.is_some()
    }

    fn add(&mut self) {
        self.values.append_option(self.last.filter(|_| !self.is_null));
    }

    fn take(&mut self) -> ArrayRef {
        if let Parse::Syslog { today } = &mut self.parse {
            // A followed file may be read for years, so the next batch reads the clock again.
            *today = None;
            self.last = None;
        }
        Arc::new(self.values.finish())
    }
}

/// Microseconds of a time of RFC 3164, in UTC. The year is the last one in which the time is not
/// after tomorrow.
fn without_year(text: &str, today: NaiveDate) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_ascii_whitespace();
    let name = words.next()?;
    let month = (1..).zip(MONTHS).find(|(_, month)| *month == name)?.0;
    let day = words.next()?.parse().ok()?;
    let time: NaiveTime = words.next()?.parse().ok()?;
    if words.next().is_some() {
        return None;
    }
    let tomorrow = today.checked_add_days(Days::new(1))?;
    let years = (0..=YEARS).map(|ago| tomorrow.year() - ago);
    let dates = years.filter_map(|year| NaiveDate::from_ymd_opt(year, month, day));
    let date = dates.into_iter().find(|date| *date <= tomorrow)?;
    Some(date.and_time(time).and_utc().timestamp_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_year_is_in_the_last_year_that_has_it() {
        let day = |year, month, day| NaiveDate::from_ymd_opt(year, month, day).unwrap();
        for (text, today, expected) in [
            ("Mar  1 12:00:00", day(2026, 3, 1), "2026-03-01T12:00:00Z"),
            ("Dec 31 23:59:59", day(2026, 1, 1), "2025-12-31T23:59:59Z"),
            // The clock of another machine or another time zone may be a day ahead.
            ("Jan  1 00:00:00", day(2025, 12, 31), "2026-01-01T00:00:00Z"),
            ("Jan  2 00:00:00", day(2025, 12, 31), "2025-01-02T00:00:00Z"),
            ("Feb 29 06:07:08.25", day(2027, 6, 1), "2024-02-29T06:07:08.25Z"),
            ("Feb 29 06:07:08", day(2103, 6, 1), "2096-02-29T06:07:08Z"),
        ] {
            assert_eq!(without_year(text, today), microseconds(expected), "{text} on {today}");
        }
        for text in ["", "Mar", "Mar 1", "Mär 1 12:00:00", "Feb 30 12:00:00", "Mar 1 25:00:00"] {
            assert_eq!(without_year(text, day(2026, 3, 1)), None, "{text}");
        }
    }
}
