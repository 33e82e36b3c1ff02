//! Messages of syslog: RFC 5424 with a version, RFC 3164 without one.
//!
//! ```text
//! <165>1 2026-03-01T12:00:00Z host app 123 ID47 [a b="c"] text
//! <34>Mar  1 12:00:00 host app[123]: text
//! ```
//!
//! The lines of a log file have no priority, and may have times of RFC 3339.

use std::ops::Range;

use arrow_schema::DataType;
use memchr::memchr;

use super::cells::{Kind, LogColumn};
use super::spans::{Mismatch, Span};

/// Maximum value of a priority: facility 23, severity 7.
const PRIORITY_MAX: u8 = 191;
/// Characters of a time such as `Mar  1 12:00:00`.
const TIME_CHARS: usize = 15;

/// Places of the columns.
const FACILITY: usize = 0;
const SEVERITY: usize = 1;
const TIME: usize = 2;
const HOST: usize = 3;
const APP: usize = 4;
const PID: usize = 5;
const MESSAGE_ID: usize = 6;
const DATA: usize = 7;
const MESSAGE: usize = 8;

/// Numbers as texts, for the columns `facility` and `severity`.
const NUMBERS: [&str; 24] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16",
    "17", "18", "19", "20", "21", "22", "23",
];

pub(super) fn columns() -> Vec<LogColumn> {
    let number = || Kind::Value(DataType::UInt8);
    let text = || Kind::Value(DataType::Utf8);
    vec![
        LogColumn::new("facility", number()),
        LogColumn::new("severity", number()),
        LogColumn::new("time", Kind::SyslogTime),
        LogColumn::new("host", text()),
        LogColumn::new("app", text()),
        LogColumn::new("pid", text()),
        LogColumn::new("message_id", text()),
        LogColumn::new("data", text()),
        LogColumn::new("message", text()),
    ]
}

/// Finds the values of a message.
pub(super) fn scan(record: &str, spans: &mut [Span]) -> Result<(), Mismatch> {
    spans.fill(Span::Null);
    let mut rest = Rest { record, at: 0 };
    let has_priority = record.starts_with('<');
    if has_priority {
        let priority = rest.priority().ok_or_else(|| {
            Mismatch::new(Some("facility"), "a priority is a number from 0 to 191, such as `<34>`")
        })?;
        spans[FACILITY] = Span::Word(NUMBERS[usize::from(priority / 8)]);
        spans[SEVERITY] = Span::Word(NUMBERS[usize::from(priority % 8)]);
    }
    match has_priority && rest.version() {
        true => of_5424(&mut rest, spans),
        false => of_3164(&mut rest, spans),
    }
}

/// The part of a message that has not been parsed.
struct Rest<'a> {
    record: &'a str,
    at: usize,
}

impl<'a> Rest<'a> {
    fn text(&self) -> &'a str {
        &self.record[self.at..]
    }

    fn priority(&mut self) -> Option<u8> {
        let end = self.text().find('>').filter(|end| (2..=4).contains(end))?;
        let digits = &self.text()[1..end];
        let number = digits.parse().ok().filter(|number| *number <= PRIORITY_MAX)?;
        self.at += end + 1;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(number)
    }

    /// Passes over a version; false if there is no version.
    fn version(&mut self) -> bool {
        let digits = self.text().bytes().take_while(u8::is_ascii_digit).count();
        let is_version = (1..=3).contains(&digits) && self.text()[digits..].starts_with(' ');
        self.at += if is_version { digits + 1 } else { 0 };
        is_version
    }

    /// The word up to the next blank or the end. The place moves past the blank.
    fn word(&mut self) -> Range<usize> {
        let bytes = self.text().len();
        let end = memchr(b' ', self.text().as_bytes());
        let word = self.at..self.at + end.unwrap_or(bytes);
        self.at = word.end + usize::from(end.is_some());
        word
    }

    /// The elements of structured data. The place moves past the blank that follows.
    fn data(&mut self) -> Option<Range<usize>> {
        let (begin, text) = (self.at, self.text().as_bytes());
        let (mut is_open, mut is_quoted, mut is_escaped) = (false, false, false);
        let mut end = text.len();
        for (place, &byte) in text.iter().enumerate() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if is_quoted => is_escaped = true,
                b'"' if is_open => is_quoted = !is_quoted,
                b'[' if !is_open => is_open = true,
                b']' if !is_quoted => is_open = false,
                b' ' if !is_open => {
                    end = place;
                    break;
                }
                _ if !is_open => return None,
                _ => {}
            }
        }
        self.at = begin + (end + 1).min(text.len());
        (!is_open).then_some(begin..begin + end)
    }

    /// A text that is null if it is `-`.
    fn span(&self, text: Range<usize>) -> Span {
        if &self.record[text.clone()] == "-" { Span::Null } else { Span::Plain(text) }
    }
}

fn of_5424(rest: &mut Rest<'_>, spans: &mut [Span]) -> Result<(), Mismatch> {
    let names = [(TIME, "time"), (HOST, "host"), (APP, "app"), (PID, "pid")];
    for (place, name) in names.into_iter().chain([(MESSAGE_ID, "message_id")]) {
        let word = rest.word();
        if word.is_empty() {
            let reason =
                format!("there is no `{name}`; a header has `-` for one that is not known");
            return Err(Mismatch::new(Some(name), reason));
        }
        spans[place] = rest.span(word);
    }
    if rest.text().starts_with('-') {
        rest.word();
    } else {
        let data = rest.data().filter(|data| !data.is_empty()).ok_or_else(|| {
            let reason = "structured data are `-` or elements such as `[id name=\"value\"]`";
            Mismatch::new(Some("data"), reason)
        })?;
        spans[DATA] = Span::Plain(data);
    }
    // A message in UTF-8 may begin with a byte order mark.
    rest.at += if rest.text().starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    if !rest.text().is_empty() {
        spans[MESSAGE] = Span::Plain(rest.at..rest.record.len());
    }
    Ok(())
}

fn of_3164(rest: &mut Rest<'_>, spans: &mut [Span]) -> Result<(), Mismatch> {
    let begin = rest.at;
    let is_dated = rest.text().starts_with(|first: char| first.is_ascii_digit());
    if is_dated {
        spans[TIME] = Span::Plain(rest.word());
    } else {
        // A time may have a fraction after its fixed length.
        let end = rest.text().get(TIME_CHARS..).map(|after| after.find(' ').unwrap_or(after.len()));
        let Some(end) = end else {
            let reason = "it begins with no time such as `Mar  1 12:00:00`";
            return Err(Mismatch::new(Some("time"), reason));
        };
        let end = begin + TIME_CHARS + end;
        spans[TIME] = Span::Plain(begin..end);
        rest.at = (end + 1).min(rest.record.len());
    }
    let host = rest.word();
    if host.is_empty() {
        return Err(Mismatch::new(Some("host"), "there is no `host` after `time`"));
    }
    spans[HOST] = Span::Plain(host);
    tag(rest, spans);
    spans[MESSAGE] = Span::Plain(rest.at..rest.record.len());
    Ok(())
}

/// Takes the name of a program, such as `app[123]: ` or `app: `, off the message, if the message
/// has one.
fn tag(rest: &mut Rest<'_>, spans: &mut [Span]) {
    let (begin, text) = (rest.at, rest.text());
    let Some(end) = text.find([' ', '[', ':']).filter(|&end| end > 0) else { return };
    let (app, after) = text.split_at(end);
    let pid = after.strip_prefix('[').and_then(|after| {
        let pid = after.find(']')?;
        (!after[..pid].contains(' ')).then_some(pid)
    });
    let after_pid = pid.map_or(end, |pid| end + pid + "[]".len());
    if !text[after_pid..].starts_with(':') {
        return;
    }
    spans[APP] = Span::Plain(begin..begin + app.len());
    spans[PID] = pid.map_or(Span::Null, |pid| Span::Plain(begin + end + 1..begin + end + 1 + pid));
    let colon = after_pid + 1;
    let blank = usize::from(text[colon..].starts_with(' '));
    rest.at = begin + colon + blank;
}
