//! Operator that makes clusters of pairs: the connected components of their graph.
//!
//! ```text
//! pairs ──► numbers of ids ──► union-find ──► at the end: a row of each id, by clusters
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

mod components;
mod operator;
#[cfg(test)]
mod tests;

use arrow_schema::{DataType, SchemaRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{BindContext, Demand, Fragment, Load, OperatorSpec};
use trommel_engine::registry::Configured;

use self::operator::{Clustering, Ids, output_schema};
use crate::expressions::ColumnInput;
use crate::shared::budget::Allowance;
use crate::shared::items::result_type;
use crate::shared::names::ItemNames;
use crate::shared::parameters::refuse;
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
/// # Guarantees
/// Exact. The rows do not depend on the order of the pairs, nor on batches.
///
/// # State
/// The ids and 5 bytes for each, and at the end 16 more. More than `memory_max` bytes are an error.
/// The state is not saved. Texts of more than 1,024 bytes are kept as their beginning and a hash.
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
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Clusters {
    /// Ids of the first rows of pairs: a column, or an expression.
    #[serde(default = "default_left")]
    left: String,
    /// Ids of the second rows of pairs, of the same type.
    #[serde(default = "default_right")]
    right: String,
    /// Rows of a cluster that are to stay.
    #[serde(default)]
    keep: Keep,
    /// Action for a pair that has a null, or for which an expression has no value. When left out,
    /// `fail`.
    #[serde(default)]
    on_error: Option<OnError>,
    /// Maximum bytes of the ids and their clusters.
    /// They are reserved from the memory of the pipeline at the start, which must have them. When
    /// left out, as much as the stage comes to need and the other stages leave, at most 4 GiB.
    #[serde(default)]
    #[schemars(range(min = 1))]
    memory_max: Option<usize>,
}

fn default_left() -> String {
    "left".to_owned()
}

fn default_right() -> String {
    "right".to_owned()
}

/// Most bytes that the stage takes when no number is given: 4 GiB.
const MEMORY_MAX: usize = 1 << 32;

impl Default for Clusters {
    fn default() -> Self {
        Self::new()
    }
}

impl Clusters {
    /// Clusters of the pairs of the columns `left` and `right`, of which the first row stays.
    #[must_use]
    pub fn new() -> Self {
        let (left, right) = (default_left(), default_right());
        Self { left, right, keep: Keep::First, on_error: None, memory_max: None }
    }

    /// Sets the columns or expressions of the ids.
    #[must_use]
    pub fn of(mut self, left: impl Into<String>, right: impl Into<String>) -> Self {
        (self.left, self.right) = (left.into(), right.into());
        self
    }

    /// Sets which rows of a cluster are to stay.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Sets the action for a pair that has a null.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = Some(on_error);
        self
    }

    /// Limits the ids and their clusters to `bytes` bytes.
    #[must_use]
    pub fn memory_max(mut self, bytes: usize) -> Self {
        self.memory_max = Some(bytes);
        self
    }

    /// The ids of both rows of a pair, and their type.
    fn ids(&self, input: &SchemaRef) -> Result<([ColumnInput; 2], DataType), BindError> {
        let bind = |text: &str, parameter| {
            let (column, found) = ColumnInput::bind(input, text, parameter)?;
            let kind = match result_type(&found) {
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
                integer if integer.is_integer() => integer,
                _ => {
                    let (column, expected) = (text.to_owned(), "an integer or a text");
                    let kind = BindErrorKind::ColumnType { column, found, expected };
                    return Err(kind.at(parameter));
                }
            };
            Ok((column, kind))
        };
        let (left, kind) = bind(&self.left, "left")?;
        let (right, other) = bind(&self.right, "right")?;
        if kind != other {
            let value = format!("ids of {other} beside ids of {kind}");
            return Err(refuse("right", value, "both rows of a pair need ids of one type"));
        }
        Ok(([left, right], kind))
    }
}

impl Configured for Clusters {
    const NAME: &'static str = "clusters";
    const SUMMARY: &'static str = "make clusters of pairs: ids that pairs connect";
}

impl OperatorSpec for Clusters {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn output_ports(&self) -> &'static [&'static str] {
        OnError::output_ports(self.on_error)
    }

    fn reject(&mut self) -> bool {
        OnError::reject(&mut self.on_error)
    }

    fn demand(&self, _: usize, _: &Demand) -> Demand {
        let read = ColumnInput::demand(&self.left, Demand::none());
        OnError::demand(self.on_error, ColumnInput::demand(&self.right, read))
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let (columns, kind) = self.ids(&inputs[0])?;
        let memory = Allowance::of_stage(self.memory_max, MEMORY_MAX, &context.memory)?;
        let bad = BadRows::new(Some(self.on_error.unwrap_or_default()), 1);
        let names = ItemNames::new(&kind).expect("integers and texts have names");
        let ids = Ids { columns, names, memory, bad };
        let clustering = Clustering::new(ids, self.keep);
        let fragment = Fragment::operator(Load::Heavy, clustering, vec![output_schema(&kind)]);
        Ok(fragment.with_early_outputs(OnError::rejected(self.on_error)))
    }
}
