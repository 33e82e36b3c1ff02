//! Values inside texts of JSON. A text is read up to the value. Parts outside of the path are
//! skipped and not kept.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::DataType;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::super::error::{Reason, shorten};
use super::{Argument, Bound, Refusal, constant_text, texts};
use crate::expressions::evaluate::value::{Texts, Value};

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Key(String),
    /// Place in an array, from 0; a negative place counts from the end.
    Index(i64),
}

/// The steps of a path: `$.a.b[0]`, `$."a.b"`, `/a/0`, or a key alone; `None` for an empty text.
fn path(text: &str) -> Option<Vec<PathStep>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    if let Some(rest) = text.strip_prefix('/') {
        let step = |part: &str| match part.parse() {
            Ok(index) => PathStep::Index(index),
            Err(_) => PathStep::Key(part.replace("~1", "/").replace("~0", "~")),
        };
        return Some(rest.split('/').map(step).collect());
    }
    let Some(mut rest) = text.strip_prefix('$') else {
        return Some(vec![PathStep::Key(text.to_owned())]);
    };
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix(".\"") {
            let (key, after) = quoted.split_once('"')?;
            steps.push(PathStep::Key(key.to_owned()));
            rest = after;
        } else if let Some(plain) = rest.strip_prefix('.') {
            let end = plain.find(['.', '[']).unwrap_or(plain.len());
            if end == 0 || plain[..end].contains('*') {
                return None;
            }
            steps.push(PathStep::Key(plain[..end].to_owned()));
            rest = &plain[end..];
        } else {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(PathStep::Index(index.trim().trim_start_matches('#').parse().ok()?));
            rest = after;
        }
    }
    Some(steps)
}

pub(super) fn extract_string(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let steps = match constant_text(arguments, 1)? {
        None => None,
        Some(text) => Some(path(text).ok_or_else(|| {
            Refusal::new(1, "a path is such as `$.key[0].\"other key\"`, `/key/0` or `key`")
        })?),
    };
    let work = move |values: &[Value], rows: usize| {
        let texts = Texts::new(&values[0]);
        let found = (0..rows).map(|row| {
            let (Some(steps), Some(text)) = (&steps, texts.get(row)) else { return Ok(None) };
            find(text, steps)
        });
        Ok(Arc::new(found.collect::<Result<StringArray, Reason>>()?) as ArrayRef)
    };
    Ok(Bound::new(texts(arguments, 2)?, DataType::Utf8, 80, work).failing())
}

/// The value at a path as a text: the content of a string, or JSON. `None` for null and for a
/// missing value.
fn find(text: &str, steps: &[PathStep]) -> Result<Option<String>, Reason> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let found = Walk(steps).deserialize(&mut reader).and_then(|found| {
        reader.end()?;
        Ok(found)
    });
    let wrong = |error: serde_json::Error| format!("{:?} is no JSON: {error}", shorten(text));
    let Some(raw) = found.map_err(wrong)? else { return Ok(None) };
    let raw = raw.get();
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str(raw).map(Some).map_err(wrong),
        Some(b'n') => Ok(None),
        _ => Ok(Some(without_space(raw))),
    }
}

/// JSON without white space between its parts.
fn without_space(raw: &str) -> String {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let keep = |char: &char| {
        let kept = is_quoted || !char.is_ascii_whitespace();
        if *char == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = is_quoted && *char == '\\' && !is_escaped;
        kept
    };
    raw.chars().filter(keep).collect()
}

/// Follows the remaining steps of a path.
struct Walk<'a>(&'a [PathStep]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<Box<RawValue>>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            return serde::Deserialize::deserialize(reader).map(Some);
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Option<Box<RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (step, rest) = self.0.split_first().expect("a walk without steps reads the value");
        let mut found = None;
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            let is_it = matches!(step, PathStep::Key(wanted) if *wanted == key);
            if is_it && found.is_none() {
                found = Some(map.next_value_seed(Walk(rest))?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found.flatten())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let (step, rest) = self.0.split_first().expect("a walk without steps reads the value");
        let PathStep::Index(index) = *step else {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(None);
        };
        if let Ok(index) = usize::try_from(index) {
            for _ in 0..index {
                if seq.next_element::<IgnoredAny>()?.is_none() {
                    return Ok(None);
                }
            }
            let found = seq.next_element_seed(Walk(rest))?.flatten();
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(found);
        }
        let back = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
        let mut last = std::collections::VecDeque::new();
        while let Some(found) = seq.next_element_seed(Walk(rest))? {
            last.push_back(found);
            if last.len() > back {
                last.pop_front();
            }
        }
        Ok(if last.len() == back { last.pop_front().flatten() } else { None })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}
