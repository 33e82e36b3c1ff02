//! Functions of texts. Positions and lengths count characters.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use arrow_string::like;

use super::super::error::{Reason, said};
use super::{Argument, Bound, Refusal, integer_type, texts};
use crate::expressions::evaluate::value::{Texts, Value};

/// Maximum bytes of a text that a function makes from other texts.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// Maximum bytes of a column of texts that a function makes.
const COLUMN_BYTES_MAX: usize = 256 << 20;

/// A column of texts that a function makes from other texts, and that may be much longer. Each text
/// is measured before memory is used.
#[derive(Default)]
pub(super) struct LimitedTexts {
    builder: StringBuilder,
    text: String,
}

impl LimitedTexts {
    pub(super) fn add_null(&mut self) {
        self.builder.append_null();
    }

    /// Adds the text of these pieces.
    pub(super) fn add<'a>(
        &mut self,
        mut pieces: impl Iterator<Item = &'a str>,
    ) -> Result<(), Reason> {
        self.text.clear();
        let before = self.builder.values_slice().len();
        pieces.try_for_each(|piece| {
            let bytes = self.text.len() + piece.len();
            if bytes > TEXT_BYTES_MAX {
                return Err(format!("the text has more than {TEXT_BYTES_MAX} bytes"));
            }
            if before + bytes > COLUMN_BYTES_MAX {
                return Err(format!(
                    "the texts of a batch have more than {COLUMN_BYTES_MAX} bytes; let `read` make \
                     smaller ones (`batch`)"
                ));
            }
            self.text.push_str(piece);
            Ok(())
        })?;
        self.builder.append_value(&self.text);
        Ok(())
    }

    pub(super) fn finish(mut self) -> ArrayRef {
        Arc::new(self.builder.finish())
    }
}

/// A function of one text.
fn of_text(
    arguments: &[Argument<'_>],
    cost: u32,
    work: impl Fn(&StringArray) -> ArrayRef + Send + Sync + 'static,
) -> Result<Bound, Refusal> {
    let call = move |values: &[Value], _: usize| Ok(work(values[0].array().as_string()));
    Ok(Bound::new(texts(arguments, 1)?, DataType::Utf8, cost, call))
}

pub(super) fn lower(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    of_text(arguments, 6, |texts| with_case(texts, <[u8]>::make_ascii_lowercase, lower_char))
}

pub(super) fn upper(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    of_text(arguments, 6, |texts| with_case(texts, <[u8]>::make_ascii_uppercase, upper_char))
}

/// The case of a character, if the result is one character: a text keeps its number of characters.
fn lower_char(char: char) -> char {
    let mut lower = char.to_lowercase();
    lower.next().unwrap_or(char)
}

fn upper_char(char: char) -> char {
    let mut upper = char.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) => upper,
        _ if char == 'ß' => 'ẞ',
        _ => char,
    }
}

fn with_case(texts: &StringArray, ascii: fn(&mut [u8]), other: fn(char) -> char) -> ArrayRef {
    let (offsets, values, nulls) = texts.clone().into_parts();
    if values.is_ascii() {
        let mut bytes = values.to_vec();
        ascii(&mut bytes);
        let changed = StringArray::try_new(offsets, Buffer::from_vec(bytes), nulls);
        return Arc::new(changed.expect("characters of ASCII stay such"));
    }
    map(&StringArray::new(offsets, values, nulls), |text, to| to.extend(text.chars().map(other)))
}

/// Writes a new text for each text; null stays null.
fn map(texts: &StringArray, write: impl Fn(&str, &mut String)) -> ArrayRef {
    let mut builder = StringBuilder::with_capacity(texts.len(), texts.value_data().len());
    let mut written = String::new();
    for text in texts {
        match text {
            None => builder.append_null(),
            Some(text) => {
                written.clear();
                write(text, &mut written);
                builder.append_value(&written);
            }
        }
    }
    Arc::new(builder.finish())
}

/// The separators of Unicode (Zs), which `trim` removes by default.
fn is_space(char: char) -> bool {
    matches!(
        char,
        ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// Removes characters from both ends, or from one end.
fn trimming(arguments: &[Argument<'_>], left: bool, right: bool) -> Result<Bound, Refusal> {
    let cut = move |text: &str, is_cut: &dyn Fn(char) -> bool| {
        let text = if left { text.trim_start_matches(is_cut) } else { text };
        let text = if right { text.trim_end_matches(is_cut) } else { text };
        (text.as_ptr().addr(), text.len())
    };
    let work = move |values: &[Value], rows: usize| {
        let texts = Texts::new(&values[0]);
        let cuts = values.get(1).map(Texts::new);
        each(rows, |row| {
            let text = texts.get(row)?;
            let (begin, len) = match &cuts {
                None => cut(text, &is_space),
                Some(cuts) => {
                    let cuts = cuts.get(row)?;
                    cut(text, &|char| cuts.contains(char))
                }
            };
            let begin = begin - text.as_ptr().addr();
            Some(&text[begin..begin + len])
        })
    };
    Ok(Bound::new(texts(arguments, 2)?, DataType::Utf8, 6, work))
}

/// A column of the texts of `rows` rows.
fn each<'a>(rows: usize, text: impl Fn(usize) -> Option<&'a str>) -> Result<ArrayRef, Reason> {
    Ok(Arc::new((0..rows).map(text).collect::<StringArray>()))
}

pub(super) fn trim(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    trimming(arguments, true, true)
}

pub(super) fn ltrim(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    trimming(arguments, true, false)
}

pub(super) fn rtrim(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    trimming(arguments, false, true)
}

/// Integers of a value, row by row.
struct Integers<'a> {
    array: &'a arrow_array::Int64Array,
    value: &'a Value,
}

impl<'a> Integers<'a> {
    fn new(value: &'a Value) -> Self {
        Self { array: value.array().as_primitive::<Int64Type>(), value }
    }

    fn get(&self, row: usize) -> Option<i64> {
        let place = self.value.place(row);
        self.array.is_valid(place).then(|| self.array.value(place))
    }
}

pub(super) fn substr(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let mut types = texts(arguments, 1)?;
    for number in 1..arguments.len() {
        types.push(integer_type(arguments, number)?);
    }
    let work = |values: &[Value], rows: usize| {
        let (texts, begins) = (Texts::new(&values[0]), Integers::new(&values[1]));
        let lengths = values.get(2).map(Integers::new);
        each(rows, |row| {
            let (text, begin) = (texts.get(row)?, begins.get(row)?);
            let length = match &lengths {
                None => None,
                Some(lengths) => Some(lengths.get(row)?),
            };
            Some(part(text, begin, length))
        })
    };
    Ok(Bound::new(types, DataType::Utf8, 8, work))
}

/// `length` characters from `begin` on. `begin` counts from 1, or from the end if negative; a
/// negative length goes back.
fn part(text: &str, begin: i64, length: Option<i64>) -> &str {
    let size = if text.is_ascii() { text.len() } else { text.chars().count() };
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let first = if begin < 0 { size.saturating_add(begin) } else { begin - 1 };
    let (from, to) = match length {
        None => (first, size),
        Some(length) if length >= 0 => (first, first.saturating_add(length)),
        Some(length) => (first.saturating_add(length), first),
    };
    let place = |at: i64| {
        let at = usize::try_from(at.clamp(0, size)).unwrap_or(0);
        if text.is_ascii() {
            return at;
        }
        text.char_indices().nth(at).map_or(text.len(), |(place, _)| place)
    };
    let (from, to) = (place(from), place(to));
    &text[from..to.max(from)]
}

pub(super) fn split_part(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let mut types = texts(arguments, 2)?;
    types.push(integer_type(arguments, 2)?);
    let work = |values: &[Value], rows: usize| {
        let (texts, separators) = (Texts::new(&values[0]), Texts::new(&values[1]));
        let numbers = Integers::new(&values[2]);
        each(rows, |row| {
            let (text, separator) = (texts.get(row)?, separators.get(row)?);
            Some(piece(text, separator, numbers.get(row)?).unwrap_or(""))
        })
    };
    Ok(Bound::new(types, DataType::Utf8, 8, work))
}

/// The piece with this number, from 1, or from the end if negative. An empty separator separates
/// characters.
fn piece<'a>(text: &'a str, separator: &str, number: i64) -> Option<&'a str> {
    let skipped = usize::try_from(number.checked_abs()?.checked_sub(1)?).ok()?;
    if separator.is_empty() {
        let (begin, char) = if number > 0 {
            text.char_indices().nth(skipped)?
        } else {
            text.char_indices().rev().nth(skipped)?
        };
        return text.get(begin..begin + char.len_utf8());
    }
    if number > 0 {
        return text.split(separator).nth(skipped);
    }
    // Separators are found from the beginning, even if pieces are counted from the end.
    let pieces = text.split(separator).count();
    text.split(separator).nth(pieces.checked_sub(skipped + 1)?)
}

pub(super) fn replace(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let work = |values: &[Value], rows: usize| {
        let (texts, from, to) =
            (Texts::new(&values[0]), Texts::new(&values[1]), Texts::new(&values[2]));
        let mut replaced = LimitedTexts::default();
        for row in 0..rows {
            let (Some(text), Some(from), Some(to)) = (texts.get(row), from.get(row), to.get(row))
            else {
                replaced.add_null();
                continue;
            };
            if from.is_empty() {
                replaced.add([text].into_iter())?;
            } else {
                let pieces = text.split(from);
                let between = std::iter::once("").chain(std::iter::repeat(to));
                replaced.add(between.zip(pieces).flat_map(|(to, piece)| [to, piece]))?;
            }
        }
        Ok(replaced.finish())
    };
    Ok(Bound::new(texts(arguments, 3)?, DataType::Utf8, 10, work).failing())
}

pub(super) fn starts_with(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let work = |values: &[Value], _: usize| {
        let found = like::starts_with(&values[0], &values[1]).map_err(|error| said(&error))?;
        Ok(Arc::new(found) as ArrayRef)
    };
    Ok(Bound::new(texts(arguments, 2)?, DataType::Boolean, 4, work))
}

pub(super) fn ends_with(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let work = |values: &[Value], _: usize| {
        let found = like::ends_with(&values[0], &values[1]).map_err(|error| said(&error))?;
        Ok(Arc::new(found) as ArrayRef)
    };
    Ok(Bound::new(texts(arguments, 2)?, DataType::Boolean, 4, work))
}

pub(super) fn contains(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let work = |values: &[Value], _: usize| {
        let found = like::contains(&values[0], &values[1]).map_err(|error| said(&error))?;
        Ok(Arc::new(found) as ArrayRef)
    };
    Ok(Bound::new(texts(arguments, 2)?, DataType::Boolean, 6, work))
}

/// Concatenates values as texts, and leaves out nulls.
pub(super) fn concat(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    written(arguments, false)
}

/// Concatenates two texts; null if one text is null.
pub(super) fn joined(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    written(arguments, true)
}

fn written(arguments: &[Argument<'_>], needs_all: bool) -> Result<Bound, Refusal> {
    let types = vec![DataType::Utf8; arguments.len()];
    let work = move |values: &[Value], rows: usize| {
        let parts: Vec<Texts<'_>> = values.iter().map(Texts::new).collect();
        let mut written = LimitedTexts::default();
        for row in 0..rows {
            if needs_all && parts.iter().any(|part| part.get(row).is_none()) {
                written.add_null();
            } else {
                written.add(parts.iter().filter_map(|part| part.get(row)))?;
            }
        }
        Ok(written.finish())
    };
    Ok(Bound::new(types, DataType::Utf8, 8, work).failing())
}
