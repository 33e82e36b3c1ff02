//! `logfmt`: pairs of keys and values.
//!
//! ```text
//! time=2026-03-01T12:00:00Z level=info msg="it \"works\"" cached
//! ```
//!
//! Blanks separate pairs. A value in quotes has the escapes of JSON, and a key without a value is
//! true. The columns are named by a schema or are the keys of the first lines.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{Field, Fields};
use memchr::memchr;

use super::cells::{Kind, LogColumn};
use super::spans::{Escapes, Mismatch, Span};
use crate::source::read::columns::first::{FirstLines, Look};
use crate::source::read::csv::typed::SeenTexts;
use crate::source::read::json::infer;

/// A line of pairs.
struct Pairs<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Pairs<'a> {
    fn new(line: &'a str) -> Self {
        Self { line, at: 0 }
    }

    /// The next key and its value.
    fn next(&mut self) -> Result<Option<(&'a str, Span)>, Mismatch> {
        let bytes = self.line.as_bytes();
        let is_blank = |byte: &u8| byte.is_ascii_whitespace();
        self.at += bytes[self.at..].iter().take_while(|byte| is_blank(byte)).count();
        if self.at == bytes.len() {
            return Ok(None);
        }
        let begin = self.at;
        let is_key = |byte: &u8| !is_blank(byte) && !matches!(byte, b'=' | b'"');
        let end = begin + bytes[begin..].iter().take_while(|byte| is_key(byte)).count();
        let key = &self.line[begin..end];
        self.at = end;
        match bytes.get(end) {
            Some(b'=') if !key.is_empty() => self.at += 1,
            Some(b'=' | b'"') => {
                let place = end + 1;
                let reason =
                    format!("at byte {place}, a key has no equals sign and no quote in it");
                return Err(Mismatch::new(None, reason));
            }
            _ => return Ok(Some((key, Span::Word("true")))),
        }
        self.value(key).map(|value| Some((key, value)))
    }

    fn value(&mut self, key: &str) -> Result<Span, Mismatch> {
        let bytes = self.line.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            let begin = self.at;
            let is_value = |byte: &&u8| !byte.is_ascii_whitespace();
            self.at += bytes[begin..].iter().take_while(is_value).count();
            return Ok(Span::Plain(begin..self.at));
        }
        let text = self.quoted().ok_or_else(|| {
            Mismatch::new(Some(key), format!("the quote of `{key}` is not closed"))
        })?;
        let is_end = bytes.get(self.at).is_none_or(u8::is_ascii_whitespace);
        if !is_end {
            let reason = format!("the value of `{key}` goes on after its quote");
            return Err(Mismatch::new(Some(key), reason));
        }
        Ok(Span::Escaped(text, Escapes::All))
    }

    /// The text between quotes. The place moves past the closing quote.
    fn quoted(&mut self) -> Option<Range<usize>> {
        let (bytes, begin) = (self.line.as_bytes(), self.at + 1);
        let mut from = begin;
        loop {
            let quote = from + memchr(b'"', &bytes[from..])?;
            let backslashes =
                bytes[begin..quote].iter().rev().take_while(|&&byte| byte == b'\\').count();
            if backslashes.is_multiple_of(2) {
                self.at = quote + 1;
                return Some(begin..quote);
            }
            from = quote + 1;
        }
    }
}

/// The keys that become columns.
#[derive(Debug)]
pub(super) struct Keys {
    columns: Vec<LogColumn>,
    places: HashMap<String, usize>,
}

impl Keys {
    pub(super) fn new(fields: &Fields) -> Self {
        let column = |field: &Arc<Field>| {
            LogColumn::new(field.name(), Kind::Value(field.data_type().clone()))
        };
        let columns: Vec<LogColumn> = fields.iter().map(column).collect();
        let places = (0..).zip(&columns).map(|(place, column)| (column.name.clone(), place));
        Self { places: places.collect(), columns }
    }

    pub(super) fn columns(&self) -> &[LogColumn] {
        &self.columns
    }

    /// Finds the values of a line. The value of a missing key is null; if a key occurs several
    /// times, the last value counts.
    pub(super) fn scan(&self, line: &str, spans: &mut [Span]) -> Result<(), Mismatch> {
        spans.fill(Span::Null);
        let mut pairs = Pairs::new(line);
        while let Some((key, value)) = pairs.next()? {
            if let Some(&place) = self.places.get(key) {
                spans[place] = value;
            }
        }
        Ok(())
    }
}

/// The keys of lines, and the types of their values.
#[derive(Default)]
pub(in super::super) struct FirstKeys {
    names: Vec<String>,
    places: HashMap<String, usize>,
    seen: Vec<SeenTexts>,
}

/// The first lines of pairs.
pub(in super::super) type FirstPairs = FirstLines<FirstKeys>;

impl FirstPairs {
    /// The columns of the lines.
    ///
    /// # Errors
    /// A sentence that says why there are none.
    pub(in super::super) fn columns(&self) -> Result<Fields, String> {
        if self.look.names.is_empty() {
            return Err("none of its first lines has a pair such as `level=info`".to_owned());
        }
        if self.look.names.len() > infer::FIELDS_MAX {
            return Err(format!("its first lines have more than {} keys", infer::FIELDS_MAX));
        }
        let column = |(name, seen): (&String, &SeenTexts)| Field::new(name, seen.data_type(), true);
        Ok(self.look.names.iter().zip(&self.look.seen).map(column).collect())
    }
}

impl Look for FirstKeys {
    fn add(&mut self, line: &str) {
        // The keys before a fault count, too.
        drop(self.add_pairs(line));
    }
}

impl FirstKeys {
    fn add_pairs(&mut self, line: &str) -> Result<(), Mismatch> {
        let (mut pairs, mut room) = (Pairs::new(line), String::new());
        while let Some((key, value)) = pairs.next()? {
            if self.names.len() > infer::FIELDS_MAX {
                break;
            }
            let place = self.places.get(key).copied().unwrap_or_else(|| {
                self.places.insert(key.to_owned(), self.names.len());
                self.names.push(key.to_owned());
                self.seen.push(SeenTexts::default());
                self.names.len() - 1
            });
            let text = value.text(line, &mut room).filter(|text| !matches!(*text, "" | "-"));
            if let Some(text) = text {
                self.seen[place].add(text);
            }
        }
        Ok(())
    }
}
