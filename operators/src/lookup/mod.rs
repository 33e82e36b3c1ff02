//! Operator that joins a stream to a table by a key.
//!
//! ```text
//! table  ──► keys ──► numbers of keys ──► the row of each number ┐
//! stream ──► (waits for the end of the table) ──► keys ──► numbers ──► rows ──► columns by `take`
//! ```
//!
//! The keys are those of `shared::groups`. When the table has ended, each column of the table
//! becomes one array. A batch of the stream then is one pass over its keys, and one `take` for each
//! column of the table.
//!
//! | file | contents |
//! |---|---|
//! | `plan` | from the parameters to keys and columns |
//! | `filling`, `table` | the table before and after its end |
//! | `sizes` | bytes of rows, for batches of a limited size |
//! | `unsent` | the rows of the stream that leave |
//! | `operator` | the state |

mod filling;
mod operator;
mod plan;
mod sizes;
mod table;
#[cfg(test)]
mod tests;
mod unsent;

use std::ops::RangeInclusive;

use arrow_schema::SchemaRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::error::BindError;
use trommel_engine::operator::{BindContext, Demand, Fragment, Load, OperatorSpec};
use trommel_engine::registry::Configured;

use self::operator::LookingUp;
use self::plan::Plan;
use crate::expressions::{ColumnInput, demand_of};
use crate::shared::budget::Allowance;
use crate::shared::parameters::{Mistakes, Names, parameters};
use crate::shared::rejected::{BadRows, OnError};

/// Rows that leave, by whether the table has a row with their key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LookupMode {
    /// Each row of the stream, with the columns of the table, or nulls where the table has no row
    /// with the key.
    #[default]
    Left,
    /// Each row whose key the table has, with the columns of the table.
    Inner,
    /// Each row whose key the table does not have. The table adds no columns.
    Anti,
    /// Each row whose key the table has, once. The table adds no columns.
    Semi,
}

impl LookupMode {
    /// Whether rows leave with columns of the table.
    fn adds_columns(self) -> bool {
        matches!(self, Self::Left | Self::Inner)
    }
}

/// The row of the table that counts, of several rows with one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Duplicates {
    /// None: the run ends with an error that names the key and its rows.
    #[default]
    Fail,
    /// The first row.
    First,
    /// The last row.
    Last,
    /// All rows: a row of the stream leaves once for each of them, in the order of the table.
    All,
}

/// Joins a stream to a table by a key: the name that belongs to an id, or the rows whose key is in
/// a list.
///
/// # Ports
/// In: the stream, and the table, which must end. Out: the rows of the stream that `mode` says,
/// with the columns of the table that `columns` says. With `on_error` `reject`, rows of both inputs
/// for which an expression has no value go to a second output `rejected`.
///
/// # Guarantees
/// Exact. Rows of the stream keep their order, and see the whole table, whichever input comes
/// first. A null matches nothing, -0 matches 0, and NaN matches NaN.
///
/// # State
/// The keys and the columns of the table, 20 to 40 bytes for each key, and the rows of the stream
/// that come before the end of the table. More than `memory_max` bytes are an error. The state is
/// not saved.
///
/// # Cost
/// One pass over the keys of a batch, and one copy of each column of the table.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::cast::AsArray;
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Lookup, Memory};
///
/// let ids = |ids: Vec<i64>| Arc::new(Int64Array::from(ids)) as ArrayRef;
/// let texts = Arc::new(StringArray::from(vec!["fig", "plum"])) as ArrayRef;
/// let stream = RecordBatch::try_from_iter([("item", ids(vec![7, 5, 7, 9]))])?;
/// let table = RecordBatch::try_from_iter([("id", ids(vec![5, 7])), ("name", texts)])?;
/// let mut graph = Graph::new();
/// let stream = graph.add("stream", Memory::new(stream.schema(), vec![stream]));
/// let table = graph.add("table", Memory::new(table.schema(), vec![table]));
/// let named = graph.add("named", Lookup::new("item").table_key("id"));
/// graph.connect(stream, named);
/// graph.connect(table, named);
/// let (sink, rows) = Collect::new();
/// graph.add_after(named, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// let rows = rows.take();
/// let names: Vec<Option<&str>> = rows[0].column(1).as_string::<i32>().iter().collect();
/// assert_eq!(names, [Some("plum"), Some("fig"), Some("plum"), None]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct Lookup {
    /// The key of a row of the stream: a column, an expression such as `lower(host)`, or a list of
    /// them.
    key: Names,
    /// The key of a row of the table, with as many columns of the same types. Integers may have
    /// different types. When left out, as `key`.
    table_key: Option<Names>,
    /// Rows that leave, by whether the table has a row with their key.
    #[default]
    mode: LookupMode,
    /// Columns of the table that rows leave with: `column`, `expression as name`, `*` for all
    /// columns but the key, or `* except (a, b)`. When left out, `*`.
    columns: Option<Names>,
    /// The row of the table that counts, of several rows with one key.
    #[default]
    duplicates: Duplicates,
    /// Action for a row of either input for which an expression has no value, such as a text in a
    /// cast to a number. When left out, `fail`.
    on_error: Option<OnError>,
    /// Maximum bytes of the table and of the rows that wait for its end.
    /// They are reserved from the memory of the pipeline at the start, which must have them. When
    /// left out, as much as the stage comes to need and the other stages leave, at most 4 GiB.
    #[range(1..)]
    memory_max: Option<usize>,
}

/// Most bytes that the stage takes when no number is given: 4 GiB.
const MEMORY_MAX: usize = 1 << 32;

impl Lookup {
    /// The texts of the keys of the stream, and of the table.
    fn keys(&self) -> [&[String]; 2] {
        let key = self.key.as_slice();
        [key, self.table_key.as_ref().map_or(key, Names::as_slice)]
    }

    /// The texts of the columns of the table.
    fn column_texts(&self) -> Vec<&str> {
        match &self.columns {
            _ if !self.mode.adds_columns() => Vec::new(),
            None => vec!["*"],
            Some(columns) => columns.as_slice().iter().map(String::as_str).collect(),
        }
    }
}

/// Whether the text of a column stands for all columns.
fn is_all(text: &str) -> bool {
    text.trim_start().starts_with('*')
}

impl Configured for Lookup {
    const NAME: &'static str = "lookup";
    const SUMMARY: &'static str = "join rows to a table by a key";
}

impl OperatorSpec for Lookup {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn output_ports(&self) -> &'static [&'static str] {
        OnError::output_ports(self.on_error)
    }

    fn reject(&mut self) -> bool {
        OnError::reject(&mut self.on_error)
    }

    fn demand(&self, port: usize, output: &Demand) -> Demand {
        let columns = self.column_texts();
        let read = match port {
            // A name in the output may be the name of a column of the table.
            0 => output.clone().of_words().unconditional(),
            _ if columns.iter().any(|text| is_all(text)) => Demand::all(),
            _ => columns.iter().fold(Demand::none(), |demand, text| demand_of(text, demand)),
        };
        let keys = self.keys()[port].iter();
        OnError::demand(self.on_error, keys.fold(read, |read, key| ColumnInput::demand(key, read)))
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(self.check_ranges());
        let plan = mistakes.check(Plan::new(&self, &inputs[0], &inputs[1]));
        let plan = mistakes.all(|| plan)?;
        let memory = Allowance::of_stage(self.memory_max, MEMORY_MAX, &context.memory)?;
        let bad = BadRows::new(Some(self.on_error.unwrap_or_default()), inputs.len());
        let outputs = vec![SchemaRef::clone(&plan.schema)];
        let operator = LookingUp::new(plan, memory.budget(), bad);
        let fragment = Fragment::operator(Load::Heavy, operator, outputs);
        Ok(fragment.with_early_outputs(OnError::rejected(self.on_error)))
    }
}
