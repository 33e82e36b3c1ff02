//! Errors of a configuration file, with their lines.

use std::error::Error;
use std::fmt;

use super::check::Mistake;
use super::document::JsonPlace;
use super::overrides::Override;

/// A mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The file, or the override that gave the value.
    pub file: String,
    /// Line in the file, counted from 1; 0 for an override.
    pub line: usize,
    /// Column in the line, in characters, counted from 1; 0 for an override.
    pub column: usize,
    /// JSON path of the value, such as `stages[1].with.n`.
    pub path: String,
    /// The mistake, and the allowed values.
    pub message: String,
    /// A part of the line, for display.
    excerpt: Option<Excerpt>,
}

/// A part of a line in which some characters are marked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    text: String,
    /// Number of characters before the marked ones.
    before: usize,
    /// Number of marked characters.
    marked: usize,
}

impl Excerpt {
    /// The surroundings of `marked` characters of `line`, which follow `before` other characters.
    fn new(line: &str, before: usize, marked: usize) -> Self {
        let fits = before + marked < EXCERPT_CHARS_MAX;
        let left_out = if fits { 0 } else { before.saturating_sub(EXCERPT_CONTEXT) };
        let cut = if left_out > 0 { "…" } else { "" };
        let rest: String = line.chars().skip(left_out).take(EXCERPT_CHARS_MAX).collect();
        let shown = rest.chars().count();
        let before = before - left_out;
        Self {
            text: format!("{cut}{}", rest.replace('\t', " ")),
            before: cut.chars().count() + before,
            marked: marked.min(shown.saturating_sub(before)).max(1),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: ", self.file)?,
            line => write!(f, "{}:{line}:{}: ", self.file, self.column)?,
        }
        write!(f, "{}: {}", self.path, self.message)?;
        let Some(Excerpt { text, before, marked }) = &self.excerpt else { return Ok(()) };
        let number = self.line.to_string();
        write!(
            f,
            "\n  {number} | {text}\n  {0:1$} | {0:2$}{0:^<3$}",
            "",
            number.len(),
            before,
            marked
        )
    }
}

impl Error for ConfigError {}

/// All mistakes of a configuration, in the order of the file.
#[derive(Debug)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl Error for ConfigErrors {}

/// The text of a configuration, for turning byte offsets into lines.
pub(super) struct SourceText<'a> {
    pub(super) text: &'a str,
    pub(super) file: &'a str,
    pub(super) overrides: &'a [Override],
}

/// Maximum characters of a line that an error shows.
const EXCERPT_CHARS_MAX: usize = 120;
/// Number of characters before the marked ones that an error shows of a longer line.
const EXCERPT_CONTEXT: usize = 40;

impl<'a> SourceText<'a> {
    pub(super) fn new(text: &'a str, file: &'a str, overrides: &'a [Override]) -> Self {
        Self { text, file, overrides }
    }

    pub(super) fn errors(&self, mut mistakes: Vec<Mistake>) -> ConfigErrors {
        mistakes.sort_by_key(|m| match &m.place {
            JsonPlace::File(range) => (0, range.start),
            JsonPlace::Override(index) => (1, *index),
        });
        ConfigErrors(mistakes.into_iter().map(|mistake| self.error(mistake)).collect())
    }

    fn error(&self, mistake: Mistake) -> ConfigError {
        let Mistake { place, path, message } = mistake;
        let range = match place {
            JsonPlace::File(range) => range,
            JsonPlace::Override(index) => {
                let file = format!("--set {}", self.overrides[index].text());
                return ConfigError { file, line: 0, column: 0, path, message, excerpt: None };
            }
        };
        let start = range.start.min(self.text.len());
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_text = self.text[line_start..].lines().next().unwrap_or("");
        let column = self.text[line_start..start].chars().count() + 1;
        let meant = self.text[start..range.end.clamp(start, self.text.len())].lines().next();
        let width = meant.map_or(1, |meant| meant.chars().count().max(1));
        ConfigError {
            file: self.file.to_owned(),
            line: self.text[..start].matches('\n').count() + 1,
            column,
            path,
            message,
            excerpt: Some(Excerpt::new(line_text, column - 1, width)),
        }
    }
}
