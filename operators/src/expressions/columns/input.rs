//! Columns that a parameter names: a column of the input, or an expression over its columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use trommel_engine::error::BindError;
use trommel_engine::operator::Demand;

use crate::expressions::{EvaluationError, Expression, demand_of};
use crate::shared::columns::find_column;
use crate::shared::parameters::blame;

fn is_name(text: &str) -> bool {
    text.chars().all(|char| char.is_alphanumeric() || char == '_')
}

/// Values for each row of a batch.
#[derive(Debug, Clone)]
pub(crate) enum ColumnInput {
    Column(usize),
    Expression(Arc<Expression>),
}

impl ColumnInput {
    /// The column `text` or the expression `text`, and its type. Errors name `parameter`.
    pub(crate) fn bind(
        schema: &SchemaRef,
        text: &str,
        parameter: &'static str,
    ) -> Result<(Self, DataType), BindError> {
        if is_name(text) || schema.column_with_name(text).is_some() {
            let (index, kind) = find_column(schema, text, parameter)?;
            return Ok((Self::Column(index), kind));
        }
        let expression = Expression::new(text, schema).map_err(|error| blame(parameter, error))?;
        let kind = expression.data_type().clone();
        Ok((Self::Expression(Arc::new(expression)), kind))
    }

    /// `demand` with the columns of `text`, as [`Self::bind`] reads it.
    pub(crate) fn demand(text: &str, demand: Demand) -> Demand {
        // A column may have a name that looks like an expression.
        if is_name(text) { demand.column(text) } else { demand_of(text, demand.words([text])) }
    }

    /// Place of the column, if the input is a bare column.
    pub(crate) fn column(&self) -> Option<usize> {
        match self {
            Self::Column(index) => Some(*index),
            Self::Expression(expression) => expression.column(),
        }
    }

    /// The text of the expression, or the name of the column of `schema`.
    pub(crate) fn text<'a>(&'a self, schema: &'a SchemaRef) -> &'a str {
        match self {
            Self::Column(index) => schema.field(*index).name(),
            Self::Expression(expression) => expression.text(),
        }
    }

    /// The values of a batch.
    ///
    /// # Errors
    /// If the expression has no value for a row.
    pub(crate) fn of(&self, records: &RecordBatch) -> Result<ArrayRef, EvaluationError> {
        match self {
            Self::Column(index) => Ok(Arc::clone(records.column(*index))),
            Self::Expression(expression) => expression.evaluate(records),
        }
    }
}
