//! Why data is refused.

use arrow_schema::{ArrowError, DataType};
use thiserror::Error;
use trommel::sets::SetReadError;

use super::types::{element, is_text, plain};

/// Why data is refused. Rows are counted within the call, from 0.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error("the data has no column `{column}`; it has {}", quoted(columns))]
    Missing { column: String, columns: Vec<String> },
    #[error("the data has several columns: {}; name one with `column`", quoted(columns))]
    Several { columns: Vec<String> },
    #[error(
        "{} is {found}; expected {expected}{}",
        column.as_ref().map_or("the data".to_owned(), |column| format!("column `{column}`")),
        if *is_flat { LISTS } else { "" },
    )]
    Type {
        /// The column, if the data is a table.
        column: Option<String>,
        found: DataType,
        expected: &'static str,
        /// Whether lists are expected, and the rows are their elements.
        is_flat: bool,
    },
    /// The column has another type than the data before.
    #[error(
        "the data has {}, and the first data had {}; data of one source has one type",
        in_words(found),
        in_words(settled)
    )]
    Changed { found: DataType, settled: DataType },
    #[error("invalid {what} {value} in row {row}: whole numbers are 0 to 2^64 - 1")]
    Negative { what: &'static str, row: u64, value: i64 },
    #[error(
        "invalid {what} {value} in row {row}: the first data has settled whole numbers of 32 bits; \
         begin with data of uint64 or int64"
    )]
    Wide { what: &'static str, row: u64, value: u64 },
    #[error(
        "invalid {what} in row {row}: {} {element} is null",
        if *element == "item" { "an" } else { "a" }
    )]
    NullInside { what: &'static str, element: &'static str, row: u64 },
    #[error("invalid name in row {row}: it is null; each document needs a name")]
    NullName { row: u64 },
    #[error(
        "invalid {what} in row {row}: {value} is out of range; {element}s are 0 to {max}",
        max = u32::MAX
    )]
    Range { what: &'static str, element: &'static str, row: u64, value: String },
    #[error(
        "invalid vector in row {row}: it has {found} coordinates, and the first one has {expected}"
    )]
    Length { row: u64, found: usize, expected: usize },
    #[error("invalid vector in row {row}: it has no coordinates; expected 1 to 4,096")]
    NoCoordinates { row: u64 },
    #[error("invalid vector in row {row}: it has {found} coordinates; expected 1 to 4,096")]
    TooManyCoordinates { row: u64, found: usize },
    #[error(
        "invalid vector in row {row}: coordinate {coordinate} is {value:e}, and vectors are of \
         float32, which ends at 3.4e38"
    )]
    TooLarge { row: u64, coordinate: usize, value: f64 },
    /// More bytes than offsets of 32 bits tell apart.
    #[error("texts of {bytes} bytes in {rows} rows: a batch has at most {max}", max = i32::MAX)]
    Texts { rows: usize, bytes: usize },
    #[error("row 2^32 has no id: a join has at most 2^32 rows")]
    Ids,
    #[error(
        "the tokens were numbered by several calls of `tokenize`, so that equal numbers are not \
         equal tokens; use `into=\"text_sets\"`, or tokenize all texts in one call"
    )]
    Dictionaries,
    /// The column has a type that is not known here, or its structures are wrong.
    #[error("column `{column}` cannot be read: {reason}; convert it to another type")]
    Unreadable { column: String, reason: String },
    #[error(transparent)]
    Sets(SetReadError),
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

impl Fault {
    /// The same fault, with the name of the column.
    pub(super) fn of_column(self, name: Option<&String>) -> Self {
        match self {
            Self::Type { column: None, found, expected, is_flat } => {
                Self::Type { column: name.cloned(), found, expected, is_flat }
            }
            other => other,
        }
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A type in the words of the other messages.
fn in_words(found: &DataType) -> String {
    match plain(found) {
        text if is_text(text) => "texts".to_owned(),
        number if number.is_integer() => "whole numbers".to_owned(),
        list => match element(list) {
            Some(element) => format!("lists of {}", in_words(element)),
            None => list.to_string(),
        },
    }
}

/// How a table of a row for each element becomes one of lists.
const LISTS: &str = "; a long table, with a row for each element, has lists after \
                     `frame.group_by(\"set\").agg(\"element\")` in polars and \
                     `frame.groupby(\"set\")[\"element\"].agg(list)` in pandas";
