//! Errors of expressions.

use std::ops::Range;

use arrow_schema::{ArrowError, DataType, Schema};
use thiserror::Error;
use trommel_engine::suggest::suggestion;

/// Maximum characters of an expression that a message shows.
const SHOWN_CHARS: usize = 60;

/// An expression that cannot be compiled, with the place in its text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{}`, at character {}: {reason}", excerpt(text, at), at.start + 1)]
pub struct ExpressionError {
    text: String,
    /// Characters of the part at fault, from 0.
    at: Range<usize>,
    reason: String,
}

impl ExpressionError {
    pub(super) fn new(text: &str, at: Range<usize>, reason: impl Into<String>) -> Self {
        Self { text: text.to_owned(), at, reason: reason.into() }
    }

    /// Characters of the expression that are at fault, from 0.
    #[must_use]
    pub fn at(&self) -> Range<usize> {
        self.at.clone()
    }

    /// The reason, without the place.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Error of a row whose value cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{part}`: {reason}")]
pub struct EvaluationError {
    /// Part of the expression at fault.
    part: String,
    reason: String,
}

impl EvaluationError {
    /// The reason, without the part.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    pub(super) fn new(part: &str, reason: impl Into<String>) -> Self {
        Self { part: shorten(part), reason: reason.into() }
    }
}

/// The part at fault, or the rest of the text if the part is empty.
fn excerpt(text: &str, at: &Range<usize>) -> String {
    let chars = text.chars().skip(at.start);
    let part: String = match at.len() {
        0 => chars.collect(),
        len => chars.take(len).collect(),
    };
    if part.is_empty() { shorten(text) } else { shorten(&part) }
}

/// The first characters of a text.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// The reason that the schema lacks a column.
pub(super) fn no_column(name: &str, schema: &Schema) -> String {
    let columns: Vec<String> = schema
        .fields()
        .iter()
        .map(|field| format!("`{}` ({})", field.name(), field.data_type()))
        .collect();
    let names = schema.fields().iter().map(|field| field.name().as_str());
    let hint = hint(name, names);
    let has = if columns.is_empty() { "none".to_owned() } else { columns.join(", ") };
    format!("the input has no column `{name}`; it has {has}{hint}")
}

/// A question that proposes the nearest of `names`, or an empty text.
pub(super) fn hint<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    suggestion(name, names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Types in words, such as `UInt16 and Utf8`.
pub(super) fn both(left: &DataType, right: &DataType) -> String {
    format!("{left} and {right}")
}

/// Reason why a value does not exist, before its place is known.
pub(super) type Reason = String;

/// The message of a kernel's error.
pub(super) fn said(error: &ArrowError) -> Reason {
    match error {
        ArrowError::DivideByZero => "division by zero".to_owned(),
        ArrowError::ArithmeticOverflow(_) => "the result does not fit 64 bits".to_owned(),
        ArrowError::ComputeError(said)
        | ArrowError::CastError(said)
        | ArrowError::ParseError(said)
        | ArrowError::InvalidArgumentError(said) => said.clone(),
        other => other.to_string(),
    }
}
