//! Patterns of logs: by name or by template.

use arrow_schema::Fields;
use trommel_engine::suggest::suggestion;

use super::cells::LogColumn;
use super::logfmt::Keys;
use super::spans::{Mismatch, Span};
use super::syslog;
use super::template::Template;

/// An access log up to the size of the answer, as Apache and nginx write it.
const COMMON: &str = "{ip} {ident} {user} [{time:%d/%b/%Y:%H:%M:%S %z}] \
                      \"{request}\" {status:u16} {bytes:u64}";
/// The fields that a combined log has after the fields of a common log.
const COMBINED_MORE: &str = " \"{referer}\" \"{user_agent}\"";

/// Patterns that have names.
const NAMES: [&str; 4] = ["combined", "common", "syslog", "logfmt"];

/// A pattern as it is written in a configuration.
#[derive(Debug)]
pub(in super::super) enum Pattern {
    /// A pattern that fixes the columns.
    Fixed(Scanner),
    /// Pairs; the schema or the first lines name the columns.
    Pairs,
}

/// Finds the values of a record.
#[derive(Debug)]
pub(in super::super) struct Scanner(ScannerForm);

#[derive(Debug)]
enum ScannerForm {
    Template(Template),
    Syslog(Vec<LogColumn>),
    Pairs(Keys),
}

impl Pattern {
    /// The pattern that has `text` as its name, or the template `text`.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub(in super::super) fn new(text: &str) -> Result<Self, String> {
        let form = match text {
            "logfmt" => return Ok(Self::Pairs),
            "syslog" => ScannerForm::Syslog(syslog::columns()),
            "common" => ScannerForm::Template(Template::of_access_log(COMMON, None)),
            "combined" => {
                let template = format!("{COMMON}{COMBINED_MORE}");
                ScannerForm::Template(Template::of_access_log(&template, Some("bytes")))
            }
            _ if !text.contains('{') => {
                let near = suggestion(text, NAMES)
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                let names = NAMES.join("`, `");
                return Err(format!(
                    "expected `{names}` or a template with fields such as \
                     `{{time:%Y-%m-%d}} {{level}} {{_}}`{near}"
                ));
            }
            _ => ScannerForm::Template(Template::new(text)?),
        };
        Ok(Self::Fixed(Scanner(form)))
    }
}

impl Scanner {
    /// Pairs whose keys are the columns `fields`.
    pub(in super::super) fn of_pairs(fields: &Fields) -> Self {
        Self(ScannerForm::Pairs(Keys::new(fields)))
    }

    /// The columns of the pattern.
    pub(in super::super) fn fields(&self) -> Fields {
        self.columns().iter().map(LogColumn::field).collect()
    }

    pub(super) fn columns(&self) -> &[LogColumn] {
        match &self.0 {
            ScannerForm::Template(template) => template.columns(),
            ScannerForm::Syslog(columns) => columns,
            ScannerForm::Pairs(keys) => keys.columns(),
        }
    }

    /// Finds the values of a record; `spans` has a place for each column.
    pub(super) fn scan(&self, record: &str, spans: &mut [Span]) -> Result<(), Mismatch> {
        match &self.0 {
            ScannerForm::Template(template) => template.scan(record, spans),
            ScannerForm::Syslog(_) => syslog::scan(record, spans),
            ScannerForm::Pairs(keys) => keys.scan(record, spans),
        }
    }
}
