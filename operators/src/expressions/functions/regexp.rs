//! Functions of regular expressions, in the syntax of the crate `regex`, whose time is linear.

use std::cell::Cell;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, StringArray};
use arrow_schema::DataType;
use regex::{Regex, RegexBuilder};

use super::text::LimitedTexts;
use super::{Argument, Bound, Refusal, constant_integer, constant_text, text_type, texts};
use crate::expressions::evaluate::value::{Texts, Value};

/// Maximum bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 4 << 20;

/// Compiles a constant pattern with options: `c` and `i` for case, `s` if a point also matches a
/// newline, `m` and `n` if a point does not match a newline, and `g` if `is_global` may be set.
/// `None` for null.
fn pattern(
    arguments: &[Argument<'_>],
    options: usize,
    takes_global: bool,
) -> Result<Option<(Regex, bool)>, Refusal> {
    let Some(text) = constant_text(arguments, 1)? else { return Ok(None) };
    let (mut builder, mut is_global) = (RegexBuilder::new(text), false);
    for option in constant_text(arguments, options)?.unwrap_or_default().chars() {
        match option {
            'c' => builder.case_insensitive(false),
            'i' => builder.case_insensitive(true),
            's' => builder.dot_matches_new_line(true),
            'm' | 'n' => builder.dot_matches_new_line(false),
            'g' if takes_global => {
                is_global = true;
                &mut builder
            }
            _ => {
                let known = if takes_global {
                    "`c`, `i`, `s`, `m` and `g`"
                } else {
                    "`c`, `i`, `s` and `m`"
                };
                return Err(Refusal::new(options, format!("options are {known}")));
            }
        };
    }
    let compiled = builder.size_limit(PATTERN_BYTES_MAX).build().map_err(|error| {
        let said = error.to_string();
        let line = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Refusal::new(1, format!("this is no regular expression: {line}"))
    })?;
    Ok(Some((compiled, is_global)))
}

/// The types of the arguments, which all have to be texts.
fn types(arguments: &[Argument<'_>]) -> Result<Vec<DataType>, Refusal> {
    (0..arguments.len()).map(|number| text_type(arguments, number)).collect()
}

pub(super) fn matches(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let pattern = pattern(arguments, 2, false)?;
    let work = move |values: &[Value], rows: usize| {
        let texts = Texts::new(&values[0]);
        let found = (0..rows).map(|row| {
            let (pattern, _) = pattern.as_ref()?;
            Some(pattern.is_match(texts.get(row)?))
        });
        Ok(Arc::new(found.collect::<BooleanArray>()) as ArrayRef)
    };
    Ok(Bound::new(types(arguments)?, DataType::Boolean, 30, work))
}

pub(super) fn extract(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let pattern = pattern(arguments, 3, false)?;
    let group = constant_integer(arguments, 2)?.unwrap_or(0);
    let group = usize::try_from(group)
        .map_err(|_| Refusal::new(2, "groups are counted from 0, which is the whole match"))?;
    let mut types = texts(arguments, 2)?;
    types.extend((arguments.len() > 2).then_some(DataType::Int64));
    types.extend((arguments.len() > 3).then_some(DataType::Utf8));
    let work = move |values: &[Value], rows: usize| {
        let texts = Texts::new(&values[0]);
        let found = (0..rows).map(|row| {
            let ((pattern, _), text) = (pattern.as_ref()?, texts.get(row)?);
            let found = match group {
                0 => pattern.find(text).map(|found| found.as_str()),
                _ => pattern.captures(text).and_then(|all| all.get(group)).map(|f| f.as_str()),
            };
            Some(found.unwrap_or(""))
        });
        Ok(Arc::new(found.collect::<StringArray>()) as ArrayRef)
    };
    Ok(Bound::new(types, DataType::Utf8, 40, work))
}

pub(super) fn replace(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let pattern = pattern(arguments, 3, true)?;
    let to = constant_text(arguments, 2)?.map(replacement);
    let work = move |values: &[Value], rows: usize| {
        let texts = Texts::new(&values[0]);
        let mut replaced = LimitedTexts::default();
        for row in 0..rows {
            let (Some((pattern, is_global)), Some(text), Some(to)) =
                (pattern.as_ref(), texts.get(row), to.as_ref())
            else {
                replaced.add_null();
                continue;
            };
            let count = if *is_global { usize::MAX } else { 1 };
            let end = Cell::new(0);
            let pieces = pattern.captures_iter(text).take(count).flat_map(|found| {
                let all = found.get_match();
                let before = &text[end.replace(all.end())..all.start()];
                let pieces = to.iter().map(move |piece| match piece {
                    ReplacementPiece::Text(text) => text.as_str(),
                    ReplacementPiece::Group(number) => {
                        found.get(*number).map_or("", |group| group.as_str())
                    }
                });
                std::iter::once(before).chain(pieces)
            });
            replaced.add(pieces.chain(std::iter::once_with(|| &text[end.get()..])))?;
        }
        Ok(replaced.finish())
    };
    Ok(Bound::new(types(arguments)?, DataType::Utf8, 50, work).failing())
}

/// A part of a replacement.
enum ReplacementPiece {
    Text(String),
    /// The group with this number, from 1; 0 is the whole match.
    Group(usize),
}

/// The parts of a replacement, in which `\1` stands for a group.
fn replacement(text: &str) -> Vec<ReplacementPiece> {
    let (mut pieces, mut written) = (Vec::new(), String::new());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(digit @ '0'..='9') => {
                    pieces.push(ReplacementPiece::Text(std::mem::take(&mut written)));
                    pieces.push(ReplacementPiece::Group(digit as usize - '0' as usize));
                }
                Some(other) => written.push(other),
                None => written.push('\\'),
            },
            _ => written.push(char),
        }
    }
    pieces.push(ReplacementPiece::Text(written));
    pieces
}
