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
    /// Rows of a cluster that are to stay.
    #[default]
    keep: Keep,
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
        let mut mistakes = Mistakes::default();
        mistakes.check(self.check_ranges());
        let ids = mistakes.check(self.ids(&inputs[0]));
        let (columns, kind) = mistakes.all(|| ids)?;
        let memory = Allowance::of_stage(self.memory_max, MEMORY_MAX, &context.memory)?;
        let bad = BadRows::new(Some(self.on_error.unwrap_or_default()), 1);
        let names = ItemNames::new(&kind).expect("integers and texts have names");
        let ids = Ids { columns, names, memory, bad };
        let clustering = Clustering::new(ids, self.keep);
        let fragment = Fragment::operator(Load::Heavy, clustering, vec![output_schema(&kind)]);
        Ok(fragment.with_early_outputs(OnError::rejected(self.on_error)))
    }
}
