//! `like` and `ilike`: `%` is any text, `_` any character; no character escapes unless `escape`
//! names one.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{BooleanArray, StringArray};
use arrow_string::like;

use super::value::{Texts, Value};
use crate::expressions::error::{Reason, said};

/// A kind of `like`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Like {
    pub(crate) is_negated: bool,
    pub(crate) ignores_case: bool,
    pub(crate) escape: Option<char>,
}

impl Like {
    pub(crate) fn apply(self, text: &Value, pattern: &Value) -> Result<BooleanArray, Reason> {
        let rows = if pattern.is_scalar() { 1 } else { pattern.array().len() };
        let patterns = Texts::new(pattern);
        let translated = (0..rows)
            .map(|row| patterns.get(row).map(|text| self.translate(text)).transpose())
            .collect::<Result<StringArray, Reason>>()?;
        let pattern = pattern.like(Arc::new(translated));
        let kernel = match (self.ignores_case, self.is_negated) {
            (false, false) => like::like,
            (false, true) => like::nlike,
            (true, false) => like::ilike,
            (true, true) => like::nilike,
        };
        kernel(text, &pattern).map_err(|error| said(&error))
    }

    /// The pattern in the form of the kernels, whose escape is a backslash.
    fn translate(self, pattern: &str) -> Result<Cow<'_, str>, Reason> {
        if self.escape == Some('\\') || (self.escape.is_none() && !pattern.contains('\\')) {
            return Ok(Cow::Borrowed(pattern));
        }
        let mut translated = String::with_capacity(pattern.len() + 8);
        let mut chars = pattern.chars();
        while let Some(char) = chars.next() {
            if Some(char) == self.escape {
                let escaped = chars.next().ok_or("a pattern does not end with its escape")?;
                if matches!(escaped, '%' | '_' | '\\') {
                    translated.push('\\');
                }
                translated.push(escaped);
            } else {
                if char == '\\' {
                    translated.push('\\');
                }
                translated.push(char);
            }
        }
        Ok(Cow::Owned(translated))
    }
}
