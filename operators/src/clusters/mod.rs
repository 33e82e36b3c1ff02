//! Operator that makes clusters of pairs: the connected components of their graph.
//!
//! ```text
//! pairs ──► numbers of ids ──► union-find ──► at the end: a row of each id, by clusters
//! rows  ──► numbers of ids ──► kept ────────► at the end: each row with its cluster
//! ```
//!
//! Source: Tarjan, van Leeuwen, *Worst-case analysis of set union algorithms*, JACM 31 (1984): path
//! halving, and linking by index, here by the order of the first occurrence of ids. A pair costs
//! O(log n) amortized, whatever the order of the pairs.
//!
//! | file | contents |
//! |---|---|
//! | `components` | the components of pairs of numbers |
//! | `operator` | the state, and the rows |
//! | `rows` | the rows of the second input |

mod components;
mod operator;
mod rows;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{BindContext, Demand, Fragment, Load, OperatorSpec};
use trommel_engine::registry::Configured;

use self::operator::{Clustering, Ids, output_schema};
use self::rows::{RowColumns, has_order};
use crate::expressions::ColumnInput;
use crate::shared::budget::Allowance;
use crate::shared::columns::ids::IdInput;
use crate::shared::items::result_type;
use crate::shared::names::ItemNames;
use crate::shared::parameters::{Mistakes, parameters, refuse};
use crate::shared::rejected::{BadRows, OnError};

/// Rows of a cluster that are to stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Keep {
    /// The one with the smallest id.
    #[default]
    First,
    /// The one with the largest id.
    Last,
    /// Each one that is `right` in no pair: rows without a similar earlier row, which are those
    /// that `deduplicate` passes.
    Unmatched,
    /// The row of the second input with the largest value of `by`; of equal values, the one with
    /// the smallest id. A null is below all values.
    Largest,
    /// The row of the second input with the smallest value of `by`; of equal values, the one with
    /// the smallest id. A null is above all values.
    Smallest,
}

impl Keep {
    /// Whether the values of rows decide.
    fn is_by_value(self) -> bool {
        matches!(self, Self::Largest | Self::Smallest)
    }
}

/// Makes clusters of pairs: ids are in one cluster if a chain of pairs leads from one to the other.
///
/// # Ports
/// In: pairs, the columns `left` and `right`: ids of one type, integers or texts, as joins send
/// them. A pair that comes twice counts once. Out, when the input has ended: a row of each id that
/// is in a pair, with `id`, `cluster` (the smallest id of the cluster), `size` (UInt32, ids of the
/// cluster) and `kept` (whether the row is to stay, by `keep`). Rows of a cluster stand together,
/// ascending by `id`, and clusters ascend by `cluster`; texts are compared by their bytes. With
/// `on_error` `reject`, pairs with a null go to a second output `rejected`.
///
/// With a second input, the rows of which the pairs tell: out come these rows, in their order, with
/// `cluster`, `size` and `kept`. A row without a pair is a cluster of its own. Ids that have no row
/// connect rows, but do not count.
///
/// # Guarantees
/// Exact. The rows do not depend on the order of the pairs, nor on batches.
///
/// # State
/// The ids and 5 bytes for each, and at the end 16 more; with a second input its rows, 4 more bytes
/// for each id, and at the end 12 more. More than `memory_max` bytes are an error. The state is not
/// saved. Texts of more than 1,024 bytes are kept as their beginning and a hash.
///
/// # Cost
/// A look-up of both ids of a pair, and O(log n) steps in two arrays.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::cast::AsArray;
/// use arrow_array::types::UInt32Type;
/// use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Clusters, Collect, Memory};
///
/// let column = |ids: [u32; 3]| Arc::new(UInt32Array::from(ids.to_vec())) as ArrayRef;
/// let pairs = [("left", column([4, 1, 8])), ("right", column([8, 2, 9]))];
/// let pairs = RecordBatch::try_from_iter(pairs)?;
/// let mut graph = Graph::new();
/// let pairs = graph.add("pairs", Memory::new(pairs.schema(), vec![pairs]));
/// let clusters = graph.add_after(pairs, "clusters", Clusters::new());
/// let (sink, rows) = Collect::new();
/// graph.add_after(clusters, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// let rows = rows.take();
/// let column = |index: usize| rows[0].column(index).as_primitive::<UInt32Type>().values().to_vec();
/// assert_eq!((column(0), column(1)), (vec![1, 2, 4, 8, 9], vec![1, 1, 4, 4, 4]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct Clusters {
    /// Ids of the first rows of pairs: a column, or an expression.
    #[default("left")]
    #[setter(none)]
    left: String,
    /// Ids of the second rows of pairs, of the same type.
    #[default("right")]
    #[setter(none)]
    right: String,
    /// Ids of the rows of the second input, of the type of the ids of pairs: a column, or an
    /// expression. When left out, the column `id`, or else the position of the row in its input,
    /// from 0.
    id: Option<String>,
    /// Rows of a cluster that are to stay.
    #[default]
    keep: Keep,
    /// Value of a row of the second input, for `keep` `largest` and `smallest`: a column, or an
    /// expression, such as `length(text)`.
    by: Option<String>,
    /// Action for a pair that has a null, or for which an expression has no value. When left out,
    /// `fail`.
    on_error: Option<OnError>,
    /// Maximum bytes of the ids and their clusters.
    /// They are reserved from the memory of the pipeline at the start, which must have them. When
    /// left out, as much as the stage comes to need and the other stages leave, at most 4 GiB.
    #[range(1..)]
    memory_max: Option<usize>,
}

/// Most bytes that the stage takes when no number is given: 4 GiB.
const MEMORY_MAX: usize = 1 << 32;

impl Clusters {
    /// Sets the columns or expressions of the ids.
    #[must_use]
    pub fn of(mut self, left: impl Into<String>, right: impl Into<String>) -> Self {
        (self.left, self.right) = (left.into(), right.into());
        self
    }

    /// The ids of both rows of a pair, and the type of the ids.
    fn ids(&self, input: &SchemaRef) -> Result<([ColumnInput; 2], DataType), BindError> {
        let bind = |text: &str, parameter| {
            let (column, found) = ColumnInput::bind(input, text, parameter)?;
            Ok::<_, BindError>((column, id_type(text, &found, parameter)?))
        };
        let (left, kind) = bind(&self.left, "left")?;
        let (right, other) = bind(&self.right, "right")?;
        if kind != other {
            let value = format!("ids of {other} beside ids of {kind}");
            return Err(refuse("right", value, "both rows of a pair need ids of one type"));
        }
        Ok(([left, right], kind))
    }

    /// Refuses parameters of rows without rows, and a choice by values without values.
    fn check_rows(&self, has_rows: bool) -> Result<(), BindError> {
        let keep = if self.keep == Keep::Largest { "\"largest\"" } else { "\"smallest\"" };
        let mut mistakes = Mistakes::default();
        mistakes.refuse(self.keep.is_by_value() && self.by.is_none(), || {
            let allowed = "name in `by` the column or the expression that decides";
            refuse("keep", format!("{keep} without `by`"), allowed)
        });
        mistakes.refuse(self.by.is_some() && !self.keep.is_by_value(), || {
            let allowed = "`by` is for `keep`: \"largest\" or \"smallest\"";
            refuse("by", "a value", allowed)
        });
        let second = "the rows are the second input of the stage";
        mistakes.refuse(self.by.is_some() && !has_rows, || {
            refuse("by", "a value with one input", second)
        });
        mistakes
            .refuse(self.id.is_some() && !has_rows, || refuse("id", "ids with one input", second));
        mistakes.none()
    }

    /// The columns of the second input, whose ids have the type `kind`.
    fn row_columns(&self, input: &SchemaRef, kind: &DataType) -> Result<RowColumns, BindError> {
        let mut mistakes = Mistakes::default();
        let id_name = self.id.clone().unwrap_or_else(|| "id".to_owned());
        let ids = IdInput::bind(&[SchemaRef::clone(input)], self.id.as_deref());
        let ids = mistakes.check(ids).map(|mut ids| ids.remove(0));
        if let Some(ids) = &ids {
            let found = ids.carried_field();
            let found = found.as_ref().map_or(&DataType::UInt32, |field| field.data_type());
            let own = mistakes.check(id_type(&id_name, found, "id"));
            mistakes.refuse(own.is_some_and(|own| own != *kind), || {
                let value = match ids.are_positions() {
                    true => format!("positions of rows beside pairs of {kind}"),
                    false => format!("ids of {found} beside pairs of {kind}"),
                };
                refuse("id", value, "rows and pairs need ids of one type")
            });
        }
        let value = self.by.as_deref().map(|by| {
            let (value, found) = ColumnInput::bind(input, by, "by")?;
            if has_order(&found) {
                return Ok(value);
            }
            let (column, expected) = (by.to_owned(), "a type whose values have an order");
            Err(BindErrorKind::ColumnType { column, found, expected }.at("by"))
        });
        let value = mistakes.check(value.transpose());
        let schema = mistakes.check(with_clusters(input, kind));
        mistakes.all(|| Some(RowColumns { ids: ids?, id_name, value: value?, schema: schema? }))
    }
}

/// The type of ids that are found in the column or the expression `text`.
fn id_type(text: &str, found: &DataType, parameter: &'static str) -> Result<DataType, BindError> {
    match result_type(found) {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(DataType::Utf8),
        integer if integer.is_integer() => Ok(integer),
        _ => {
            let (column, expected) = (text.to_owned(), "an integer or a text");
            let found = found.clone();
            Err(BindErrorKind::ColumnType { column, found, expected }.at(parameter))
        }
    }
}

/// The columns of rows with their clusters.
fn with_clusters(input: &SchemaRef, kind: &DataType) -> Result<SchemaRef, BindError> {
    let own = output_schema(kind);
    let own = own.fields().iter().skip(1);
    let mut mistakes = Mistakes::default();
    for field in own.clone() {
        mistakes.refuse(input.column_with_name(field.name()).is_some(), || {
            let value = format!("rows with a column `{}`", field.name());
            refuse("inputs", value, "the stage adds this column; rename the other by `select`")
        });
    }
    mistakes.none()?;
    let fields: Vec<Arc<Field>> = input.fields().iter().chain(own).cloned().collect();
    Ok(Arc::new(Schema::new(fields)))
}

impl Configured for Clusters {
    const NAME: &'static str = "clusters";
    const SUMMARY: &'static str = "make clusters of pairs: ids that pairs connect";
}

impl OperatorSpec for Clusters {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=2
    }

    fn output_ports(&self) -> &'static [&'static str] {
        OnError::output_ports(self.on_error)
    }

    fn reject(&mut self) -> bool {
        OnError::reject(&mut self.on_error)
    }

    fn demand(&self, port: usize, output: &Demand) -> Demand {
        let read = if port == 0 {
            let left = ColumnInput::demand(&self.left, Demand::none());
            ColumnInput::demand(&self.right, left)
        } else {
            let read = IdInput::demand(self.id.as_deref(), output.clone().unconditional());
            self.by.iter().fold(read, |read, by| ColumnInput::demand(by, read))
        };
        OnError::demand(self.on_error, read)
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(self.check_ranges());
        mistakes.check(self.check_rows(inputs.len() > 1));
        let ids = mistakes.check(self.ids(&inputs[0]));
        let rows = inputs.get(1).zip(ids.as_ref());
        let rows = rows.map(|(input, (_, kind))| self.row_columns(input, kind)).transpose();
        let rows = mistakes.check(rows);
        let ((columns, kind), rows) = mistakes.all(|| Some((ids?, rows?)))?;
        let memory = Allowance::of_stage(self.memory_max, MEMORY_MAX, &context.memory)?;
        let bad = BadRows::new(Some(self.on_error.unwrap_or_default()), inputs.len());
        let names = ItemNames::new(&kind).expect("integers and texts have names");
        let schema = rows.as_ref().map(|rows| SchemaRef::clone(&rows.schema));
        let ids = Ids { columns, names, memory, bad };
        let clustering = Clustering::new(ids, self.keep, rows);
        let outputs = vec![schema.unwrap_or_else(|| output_schema(&kind))];
        let fragment = Fragment::operator(Load::Heavy, clustering, outputs);
        Ok(fragment.with_early_outputs(OnError::rejected(self.on_error)))
    }
}
