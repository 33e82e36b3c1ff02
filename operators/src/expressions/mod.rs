//! Expressions over the columns of a batch, in the words of SQL.
//!
//! ```text
//! "status >= 500 and lower(host) like 'www.%'"
//!     │ parse      text ──► tree of the crate `sqlparser`, within limits
//!     │ compile    tree + schema ──► nodes with types; constants are folded, equal nodes are one
//!     ▼ evaluate   nodes + batch ──► column, by the kernels of Arrow
//! ```
//!
//! Names and results of functions follow DuckDB, and the tests compare the results row by row.
//! There are four differences: whole numbers are computed in 64 bits (DuckDB keeps narrow types,
//! whose sums overflow), literals with a decimal point are float64, a text is compared with another
//! type only if one of the two is a literal, and patterns have the syntax of the crate `regex`.
//!
//! `and`, `or`, `case` and `coalesce` evaluate a later operand only for the rows that need the
//! operand, if the operand can fail or is expensive. Therefore `x <> 0 and 10 // x > 2` has no
//! error.
//!
//! | folder or file | contents |
//! |---|---|
//! | `compile` | texts to trees, with limits, and trees to nodes |
//! | `operators` | arithmetic, comparisons, tests and logic |
//! | `functions` | the functions, a table of names |
//! | `evaluate` | nodes, and their values over all or some of the rows of a batch |
//! | `columns` | expressions in the place of columns: of inputs, of `select`, of conditions on blocks |

mod columns;
mod compile;
mod error;
mod evaluate;
mod functions;

#[cfg(test)]
mod tests;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use sqlparser::ast::Expr;
use trommel_engine::operator::Demand;

pub use error::{EvaluationError, ExpressionError};

pub(crate) use columns::bounds::Bounds;
pub(crate) use columns::calls::Call;
pub(crate) use columns::input::ColumnInput;
pub(crate) use columns::rows::{evaluate_rows, first_failed};
pub(crate) use columns::select::{Chosen, choose};

use evaluate::frame::Frame;
use evaluate::node::{NodeId, Program};

/// `demand` with the columns of the expression `text`.
pub(crate) fn demand_of(text: &str, demand: Demand) -> Demand {
    match compile::parse::names(text) {
        Some((columns, words)) => columns.into_iter().fold(demand.words(words), Demand::column),
        // The error is reported when the expression is compiled.
        None => Demand::all(),
    }
}

/// An expression that is bound to the columns of a schema.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{RecordBatch, UInt16Array};
/// use trommel_operators::expressions::Expression;
///
/// let status = Arc::new(UInt16Array::from(vec![200, 503]));
/// let records = RecordBatch::try_from_iter([("status", status as _)])?;
/// let failed = Expression::new("status >= 500", records.schema_ref())?.evaluate(&records)?;
/// assert_eq!(format!("{failed:?}").lines().count(), 5);
///
/// let error = Expression::new("statsu >= 500", records.schema_ref()).unwrap_err();
/// assert!(error.to_string().ends_with("did you mean `status`?"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    program: Program,
    root: NodeId,
}

impl Expression {
    /// Compiles `text` for batches of `schema`.
    ///
    /// # Errors
    /// If the text is no expression, names an unknown column or function, or combines types that do
    /// not fit.
    pub fn new(text: &str, schema: &Schema) -> Result<Self, ExpressionError> {
        Self::of_tree(text, &compile::parse::expression(text)?, schema)
    }

    /// Compiles a tree to the form that functions compute with.
    fn of_operand(text: &str, tree: &Expr, schema: &Schema) -> Result<Self, ExpressionError> {
        let (program, root) = compile::tree::compile_operand(text, tree, schema)?;
        Ok(Self { text: text.to_owned(), program, root })
    }

    fn of_tree(text: &str, tree: &Expr, schema: &Schema) -> Result<Self, ExpressionError> {
        let (program, root) = compile::tree::compile(text, tree, schema)?;
        Ok(Self { text: text.to_owned(), program, root })
    }

    /// The text of the expression.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Type of the column that the expression makes.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        self.program.data_type(self.root)
    }

    /// The column as a field of a schema; a bare column keeps its metadata.
    pub(crate) fn field(&self, name: &str, schema: &Schema) -> Field {
        match self.column() {
            Some(index) => schema.field(index).clone().with_name(name),
            None => Field::new(name, self.data_type().clone(), true),
        }
    }

    /// The value, if it is the same for all rows and known when the expression is compiled.
    pub(crate) fn constant(&self) -> Option<ArrayRef> {
        self.program.constant(self.root).cloned()
    }

    /// Place of the column, if the expression is a bare column.
    pub(crate) fn column(&self) -> Option<usize> {
        self.program.column(self.root)
    }

    /// The value of each row of `records`, whose schema is the schema of the compilation.
    ///
    /// # Errors
    /// If the value of a row cannot be computed, such as a failing cast.
    pub fn evaluate(&self, records: &RecordBatch) -> Result<ArrayRef, EvaluationError> {
        let mut frame = Frame::of_batch(&self.program, records);
        let value = frame.evaluate(self.root)?;
        Ok(value.into_array(records.num_rows()))
    }
}
