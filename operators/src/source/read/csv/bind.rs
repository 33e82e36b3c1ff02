//! Checks of the parameters of `read` for CSV, and the sources of records.

use arrow_schema::Fields;
use trommel_engine::error::BindError;
use trommel_engine::operator::{BindContext, Demand, Fragment};

use super::dialect::Dialect;
use super::labelled::{self, CsvColumns, LabelledRows};
use super::records::CsvLines;
use super::typed::{FirstRecords, TypedRows};
use crate::shared::columns::{DIMS_MAX, type_name};
use crate::shared::parameters::{Mistakes, check_range, refuse};
use crate::source::read::Read;
use crate::source::read::columns::schema::{self, TableSchema};
use crate::source::read::divided::QuotedRecords;
use crate::source::read::files::input::Inputs;
use crate::source::read::files::paths::Files;

impl Read {
    /// A parameter that is one ASCII character.
    fn character(
        parameter: &'static str,
        given: Option<&String>,
        refused: &[u8],
    ) -> Result<Option<u8>, BindError> {
        let Some(given) = given else { return Ok(None) };
        match given.as_bytes() {
            &[byte] if byte.is_ascii() && !refused.contains(&byte) => Ok(Some(byte)),
            _ => {
                let allowed = "expected one ASCII character that is no quote and no line end";
                Err(refuse(parameter, format!("{given:?}"), allowed))
            }
        }
    }

    /// The characters of CSV that have a meaning.
    pub(in super::super) fn dialect(&self) -> Result<Dialect, BindError> {
        let usual = Dialect::default();
        let mut mistakes = Mistakes::default();
        let quote = mistakes.check(Self::character("quote", self.quote.as_ref(), b"\r\n"));
        let quote = quote.map(|quote| quote.unwrap_or(usual.quote));
        // No other character is compared with an invalid quote.
        let refused = [quote.unwrap_or(b'\r'), b'\r', b'\n'];
        let delimiter = Self::character("delimiter", self.delimiter.as_ref(), &refused);
        let delimiter = mistakes.check(delimiter);
        let comment = Self::character("comment", self.comment.as_ref(), &refused);
        let comment = mistakes.check(comment);
        let delimiter = delimiter.map(|delimiter| delimiter.unwrap_or(usual.delimiter));
        let is_same = delimiter.is_some() && comment.flatten() == delimiter;
        mistakes.refuse(is_same, || {
            let allowed = "the delimiter, with which a record may begin, is the same character";
            let delimiter = char::from(delimiter.unwrap_or_default());
            refuse("comment", format!("{delimiter:?}"), allowed)
        });
        let has_header = self.header.unwrap_or(true);
        mistakes.all(|| {
            let (delimiter, quote, comment) = (delimiter?, quote?, comment?);
            Some(Dialect { delimiter, quote, comment, has_header })
        })
    }

    /// Whether CSV is read as a table.
    pub(in super::super) fn is_csv_table(&self) -> bool {
        self.schema.is_some() || self.columns.is_empty() && self.vector.is_empty()
    }

    fn nulls(&self) -> Vec<String> {
        self.null.clone().unwrap_or_else(|| vec![String::new()])
    }

    /// Rows of a table of CSV. The columns are given, or are inferred from the first records of
    /// `files`.
    pub(in super::super) fn typed_rows(
        &self,
        files: &Files,
        demand: &Demand,
    ) -> Result<TypedRows, BindError> {
        let schema = match &self.schema {
            Some(TableSchema(columns)) => schema::choose(columns, &self.columns)?,
            None => schema::choose(&self.first_csv_columns(files)?, &[])?,
        };
        TypedRows::new(schema::demanded(&schema, demand), self.nulls()).map_err(|field| {
            let value = format!("{} for `{}`", type_name(field.data_type()), field.name());
            refuse("schema", value, "a field of `csv` has no such values; read a text")
        })
    }

    fn first_csv_columns(&self, files: &Files) -> Result<Fields, BindError> {
        let dialect = self.dialect()?;
        let new =
            || CsvLines::new(FirstRecords::new(self.nulls()), dialect.clone(), self.line_bytes_max);
        let (path, first) = self.look_at(files, new)?;
        first.into_columns().columns().map_err(|twice| {
            let reason = match twice {
                Some(name) => format!("two of them have the name `{name}`"),
                None => "it has no header".to_owned(),
            };
            schema::not_inferred(&path, &reason)
        })
    }

    pub(in super::super) fn csv_columns(&self) -> Result<CsvColumns, BindError> {
        let Self { columns, vector, dims, .. } = self;
        let given = columns.iter().map(String::as_str);
        let names: Vec<&str> = ["id", "vector"].into_iter().chain(given).collect();
        let mut mistakes = Mistakes::default();
        for place in 2..names.len() {
            mistakes.refuse(names[..place].contains(&names[place]), || {
                let allowed = "the columns of the rows need names of their own";
                refuse("columns", format!("`{}`", names[place]), allowed)
            });
        }
        let dims = mistakes.check(match (dims, u32::try_from(vector.len())) {
            (Some(dims), Ok(0)) => Err(refuse("dims", dims.to_string(), "name the `vector`")),
            // The range of `dims` is checked for all formats.
            (Some(dims), _) => Ok(*dims),
            (None, _) if vector.iter().any(|name| labelled::is_pattern(name)) => {
                Err(refuse("dims", "no value", "a name that ends in `*` needs `dims`"))
            }
            (None, names) => {
                let names = names.unwrap_or(u32::MAX);
                check_range("vector", &names, &(0..=DIMS_MAX)).map(|()| names)
            }
        });
        let (texts, vector) = (columns.clone(), vector.clone());
        mistakes.all(|| Some(CsvColumns { texts, vector, dims: dims? }))
    }

    /// Binds a source of records of CSV: rows of a table, or rows of chosen columns with an `id`.
    pub(in super::super) fn bind_csv(
        &self,
        (files, inputs): (Files, impl FnOnce(Files) -> Inputs),
        context: &BindContext,
    ) -> Result<Fragment, BindError> {
        let (dialect, bytes_max, memory) = (self.dialect()?, self.line_bytes_max, &context.memory);
        if self.is_csv_table() {
            let rows = self.typed_rows(&files, &context.demand)?;
            let ends = QuotedRecords::new(dialect.clone());
            let reading = self.reading_lines()?.records(dialect.clone());
            let rows = CsvLines::new(rows, dialect, bytes_max).within(memory);
            self.bind_divided((files, inputs), context, (rows, reading), (ends, 1))
        } else {
            let rows = LabelledRows::new(self.csv_columns()?);
            let rows = CsvLines::new(rows, dialect.clone(), bytes_max).within(memory);
            let reading = self.reading_lines()?.records_with_ids(dialect);
            self.bind_shared((files, inputs), context, (rows, reading))
        }
    }
}
