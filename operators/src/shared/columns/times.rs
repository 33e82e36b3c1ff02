//! Points in time by a format of `strptime`, in expressions and in patterns of logs.

use std::fmt::Write as _;

use chrono::DateTime;
use chrono::format::{Item, Parsed, StrftimeItems, parse};
use memchr::memmem;

const SECOND: i64 = 1_000_000;
/// 2011-11-11 11:11:11 UTC: all parts have two digits.
const SAMPLE: i64 = 1_321_009_871;

/// A format of `strptime`.
#[derive(Debug, Clone)]
pub(crate) struct TimeFormat {
    format: String,
    items: Vec<Item<'static>>,
    has_fraction: bool,
}

impl TimeFormat {
    /// Takes a format apart, in the words of DuckDB and C.
    ///
    /// # Errors
    /// A sentence that names the part that is no format.
    pub(crate) fn new(format: &str) -> Result<Self, String> {
        let (items, has_fraction) = (items(format)?, format.contains("%f"));
        Ok(Self { format: format.to_owned(), items, has_fraction })
    }

    /// The format as it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.format
    }

    /// Whether the times have an offset, and so a zone.
    pub(crate) fn is_zoned(&self) -> bool {
        self.format.contains("%z")
    }

    /// Occurrences of `literal` in a time of this format.
    pub(crate) fn count(&self, literal: &[u8]) -> usize {
        let mut sample = String::new();
        let time = DateTime::from_timestamp(SAMPLE, 0).unwrap_or_default();
        let is_written = write!(sample, "{}", time.format_with_items(self.items.iter())).is_ok();
        if is_written { memmem::find_iter(sample.as_bytes(), literal).count() } else { 0 }
    }

    /// Microseconds since 1970. Parts that the format lacks are taken from 1900-01-01 00:00:00 UTC.
    pub(crate) fn read(&self, text: &str) -> Option<i64> {
        // chrono takes the digits of `%f` for nanoseconds, regardless of their number.
        if self.has_fraction {
            return read_time(&pad_fraction(text), &self.items);
        }
        read_time(text, &self.items)
    }
}

/// The items of a format. `%f` stands for digits of a second; `%n` and `%t` are not the white space
/// that chrono knows.
fn items(format: &str) -> Result<Vec<Item<'static>>, String> {
    let format = format.replace("%f", "%9f").replace("%9f", "\u{0}");
    let mut all = Vec::new();
    for (number, part) in format.split('\u{0}').enumerate() {
        if number > 0 {
            // The format has the point; any number of digits follows.
            all.extend(StrftimeItems::new("%f").map(|item| item.to_owned()));
        }
        for item in StrftimeItems::new(part) {
            if matches!(item, Item::Error) {
                let reason = format!(
                    "{part:?} has a part that is no format; parts are %Y %m %d %H \
                                      %M %S %f %z %b %B %a %A %j %y %I %p and others of strptime"
                );
                return Err(reason);
            }
            all.push(item.to_owned());
        }
    }
    Ok(all)
}

fn read_time(text: &str, items: &[Item<'_>]) -> Option<i64> {
    let mut parsed = Parsed::new();
    parse(&mut parsed, text, items.iter()).ok()?;
    // The century of `%y` ends with 69 in chrono, and with 68 in C and DuckDB.
    if parsed.year_mod_100() == Some(69)
        && parsed.year().is_none()
        && parsed.year_div_100().is_none()
    {
        parsed.set_year(1969).ok()?;
    }
    if parsed.timestamp().is_some() {
        return parsed.to_datetime().ok().map(|time| time.timestamp_micros());
    }
    let has_date = parsed.ordinal().is_some()
        || parsed.week_from_mon().is_some()
        || parsed.week_from_sun().is_some()
        || parsed.isoweek().is_some();
    if !has_date {
        if parsed.year().is_none() && parsed.year_mod_100().is_none() {
            parsed.set_year(1900).ok()?;
        }
        if parsed.month().is_none() {
            parsed.set_month(1).ok()?;
        }
        if parsed.day().is_none() {
            parsed.set_day(1).ok()?;
        }
    }
    let date = parsed.to_naive_date().ok()?;
    if parsed.hour_mod_12().is_none() {
        parsed.set_hour(0).ok()?;
    }
    if parsed.minute().is_none() {
        parsed.set_minute(0).ok()?;
    }
    let time = parsed.to_naive_time().ok()?;
    let offset = parsed.offset().unwrap_or(0);
    let micros = date.and_time(time).and_utc().timestamp_micros();
    micros.checked_sub(i64::from(offset) * SECOND)
}

/// The text with nine digits in its last run of digits after a point.
fn pad_fraction(text: &str) -> String {
    let Some((before, after)) = text.rsplit_once('.') else { return text.to_owned() };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let kept = digits.min(9);
    let zeros = "0".repeat(9 - kept);
    format!("{before}.{}{zeros}{}", &after[..kept], &after[digits..])
}
