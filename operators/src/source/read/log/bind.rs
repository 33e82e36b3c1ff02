//! Checks of the parameters of logs, and the rows of logs.

use arrow_schema::Fields;
use trommel_engine::error::BindError;
use trommel_engine::operator::BindContext;

use crate::shared::columns::type_name;
use crate::shared::parameters::refuse;
use crate::source::read::Read;
use crate::source::read::columns::schema::{self, TableSchema};
use crate::source::read::files::paths::Files;
use crate::source::read::log::{FirstPairs, LogRows, Pattern, Scanner};
use crate::source::read::text::records::Beginning;

impl Read {
    /// Rows of a log. The columns of pairs are given, or are inferred from the first lines of
    /// `files`.
    pub(in crate::source::read) fn log_rows(
        &self,
        files: &Files,
        context: &BindContext,
    ) -> Result<LogRows, BindError> {
        let scanner = match (self.log_pattern()?, &self.schema) {
            (Pattern::Fixed(scanner), _) => scanner,
            (Pattern::Pairs, Some(TableSchema(columns))) => Scanner::of_pairs(columns),
            (Pattern::Pairs, None) => Scanner::of_pairs(&self.first_pairs(files)?),
        };
        let schema = schema::choose(&scanner.fields(), &self.columns)?;
        let demanded = schema::demanded(&schema, &context.demand);
        let rows = LogRows::new(scanner, demanded).map_err(|field| {
            let value = format!("{} for `{}`", type_name(field.data_type()), field.name());
            refuse("schema", value, "a line of a log has no such values; read a text")
        })?;
        Ok(rows.within(&context.memory))
    }

    /// The pattern of lines. A `schema` is for pairs, whose types no pattern has.
    pub(in crate::source::read) fn log_pattern(&self) -> Result<Pattern, BindError> {
        let Some(text) = &self.pattern else {
            let allowed = "`log` needs the pattern of its lines, such as `combined`";
            return Err(refuse("pattern", "no value", allowed));
        };
        let pattern =
            Pattern::new(text).map_err(|reason| refuse("pattern", format!("{text:?}"), reason))?;
        if let (Pattern::Fixed(_), Some(_)) = (&pattern, &self.schema) {
            let allowed = "the pattern has the types; a template has them as in `{status:u16}`";
            return Err(refuse("schema", "a value", allowed));
        }
        Ok(pattern)
    }

    fn first_pairs(&self, files: &Files) -> Result<Fields, BindError> {
        let (path, first) = self.look_at(files, FirstPairs::new)?;
        first.columns().map_err(|reason| schema::not_inferred(&path, &reason))
    }

    /// The pattern of the first line of a record.
    pub(crate) fn beginning(&self) -> Result<Option<Beginning>, BindError> {
        let compiled = self.start.as_deref().map(|start| {
            Beginning::new(start).map_err(|reason| refuse("start", format!("{start:?}"), reason))
        });
        compiled.transpose()
    }
}
