//! The texts of an input: a column or an expression.

use arrow_array::cast::AsArray;
use arrow_array::{RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::{DataType, SchemaRef};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::OperatorError;

use crate::expressions::ColumnInput;
use crate::shared::columns::describe;
use crate::shared::items::result_type;
use crate::shared::rejected::Faults;

/// The texts of an input.
#[derive(Debug, Clone)]
pub(super) struct TextInput(ColumnInput);

impl TextInput {
    /// The texts of `text`, a column or an expression; without `text`, the only column of texts.
    ///
    /// # Errors
    /// If the values are no texts, there is no such column, or there is more than one column of
    /// texts.
    pub(super) fn bind(schema: &SchemaRef, text: Option<&str>) -> Result<Self, BindError> {
        let Some(text) = text else { return only_text(schema) };
        let (column, found) = ColumnInput::bind(schema, text, "column")?;
        if result_type(&found).is_string() {
            return Ok(Self(column));
        }
        let (column, expected) = (text.to_owned(), "a text");
        Err(BindErrorKind::ColumnType { column, found, expected }.at("column"))
    }

    /// The texts of a batch; null in the rows for which the expression has no value.
    ///
    /// # Errors
    /// If the texts have more than 2 GiB.
    pub(super) fn of(
        &self,
        records: &RecordBatch,
        faults: &mut Faults,
    ) -> Result<StringArray, OperatorError> {
        let texts = cast(&faults.values(&self.0, records)?, &DataType::Utf8)?;
        Ok(texts.as_string::<i32>().clone())
    }
}

fn only_text(schema: &SchemaRef) -> Result<TextInput, BindError> {
    let mut texts = (0..schema.fields().len())
        .filter(|&index| result_type(schema.field(index).data_type()).is_string());
    match (texts.next(), texts.next()) {
        (Some(index), None) => Ok(TextInput(ColumnInput::Column(index))),
        (first, _) => {
            let found = if first.is_some() { "several text columns" } else { "no text column" };
            let allowed = format!("it has {}; name one text column", describe(schema));
            let value = format!("an input with {found}");
            Err(BindErrorKind::Value { value, allowed }.at("column"))
        }
    }
}
