//! A filter that takes the hottest items out of a stream, in front of any operator.
//!
//! ```text
//!            ┌──────── vertical SIMD filter ───────┐ missed
//! batch ──► │ found: one more for that item       │ ─────► `rest`: the other rows, as they are
//!            └──────────────────┬──────────────────┘
//!                               └─► `counts`: an item and how often it was taken out
//! ```
//!
//! In a skewed stream, a handful of items make up most rows. The filter counts these items for the
//! cost of a comparison and an addition in a register, and operators after the filter see only the
//! remaining rows. The filter in front of [`frequent_items`](crate::frequent_items) has the same
//! rule and the same kernel (Roy, Teubner, Alonso: *Efficient Frequent Item Counting in Multi-Core
//! Hardware*, KDD 2012, §3: a filter in front of any counting algorithm). The filter finds hot
//! items by counting a sample, one row in [`SAMPLED`], and chooses hot items again as the stream
//! changes. The choice decides only the speed: no row is lost or counted twice.
//!
//! There are no weights: a row counts once.

mod operator;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{BindContext, Demand, Fragment, Load, OperatorSpec};
use trommel_engine::registry::Configured;

use self::operator::Filtering;
use crate::expressions::ColumnInput;
use crate::shared::items::{Column, Text, native_type, result_type};
use crate::shared::parameters::{parameters, selected_isa};
use crate::shared::rejected::{BadRows, OnError};

/// One row in `SAMPLED` is counted to find the hot items.
const SAMPLED: usize = 32;

/// Takes the hottest items out of a stream and counts them; the other rows pass.
///
/// # Ports
/// In: any columns, among them the item: a number, a text, a date, a point in time or a truth
/// value; or an expression over them. Out `rest`: the rows whose item is not hot at present (or
/// null), in their order. Out `counts`: the item and `count` (UInt64), the rows of that item that
/// were taken out since it was last reported; reported when other items become hot, and at the end.
/// With `on_error` `reject`, a third output `rejected` of the rows for which the expression has no
/// value.
///
/// # Guarantees
/// For every item, its rows in `rest` and the sum of its counts in `counts` make up its rows in the
/// input. [`Union`](crate::Union) makes one weighted stream of both: its `fill` gives the rows of
/// `rest` the count 1.
///
/// # Cost
/// A stream with nothing hot passes untouched but for the sample. Otherwise, for a stream of one
/// column of integers, that of [`sift`](trommel_kernels::sieve::sift): each item is read once and
/// each that is left written once. With other columns, or text, each row is compared with up to 8
/// keys and the other rows are copied.
///
/// # Examples
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Generate, HeavyFilter};
///
/// let mut graph = Graph::new();
/// let items = graph.add("items", Generate::zipf(10_000, 2.0).items(1_000_000));
/// let heavy = graph.add_after(items, "heavy", HeavyFilter::new());
/// let (rest, rest_rows) = Collect::new();
/// let (counts, counted) = Collect::new();
/// graph.add_after(heavy.port(HeavyFilter::REST), "rest", rest);
/// graph.add_after(heavy.port(HeavyFilter::COUNTS), "counts", counts);
/// graph.build()?.run(RunOptions::new())?;
/// assert!(rest_rows.rows() < 300_000, "most of a skewed stream stays in the filter");
/// assert!(counted.rows() > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct HeavyFilter {
    /// The column of the items, or an expression such as `lower(host)`.
    #[default("item")]
    item: String,
    /// Action for a row for which the expression has no value. When left out, `fail`.
    on_error: Option<OnError>,
}

impl HeavyFilter {
    /// The output port of the rows whose item is not hot.
    pub const REST: usize = 0;
    /// The output port of the counts of hot items.
    pub const COUNTS: usize = 1;
    /// The output port of the rows for which the expression has no value, with `reject`.
    pub const REJECTED: usize = 2;

    fn bind_items<K: Column>(
        &self,
        input: &SchemaRef,
        (item, kind): (ColumnInput, DataType),
    ) -> Result<Fragment, BindError> {
        let isa = selected_isa()?;
        let counts = Arc::new(Schema::new(vec![
            Field::new(&self.item, kind, false),
            Field::new("count", DataType::UInt64, false),
        ]));
        let bad = BadRows::new(self.on_error, 1);
        let outputs = vec![SchemaRef::clone(input), SchemaRef::clone(&counts)];
        let rest = SchemaRef::clone(input);
        // Each copy chooses hot items of its own; the counts of all copies add up.
        let make =
            move || Ok(Filtering::<K>::new(isa, &rest, (item.clone(), bad.clone()), &counts));
        let fragment = Fragment::anywhere(Load::Light, make, outputs)?;
        Ok(fragment.with_early_outputs(OnError::rejected(self.on_error)))
    }
}

impl OperatorSpec for HeavyFilter {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn output_ports(&self) -> &'static [&'static str] {
        const PORTS: &[&str] = &["rest", "counts", "rejected"];
        if self.on_error == Some(OnError::Reject) { PORTS } else { &PORTS[..Self::REJECTED] }
    }

    fn reject(&mut self) -> bool {
        OnError::reject(&mut self.on_error)
    }

    fn demand(&self, _: usize, output: &Demand) -> Demand {
        // The counts need all rows, even if the reader of `rest` needs only the rows of a
        // condition.
        let read = ColumnInput::demand(&self.item, output.clone().unconditional());
        OnError::demand(self.on_error, read)
    }

    fn bind(self: Box<Self>, inputs: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let (item, found) = ColumnInput::bind(&inputs[0], &self.item, "item")?;
        let kind = result_type(&found);
        match native_type(&kind) {
            Some(DataType::UInt32) => self.bind_items::<u32>(&inputs[0], (item, kind)),
            Some(DataType::UInt64) => self.bind_items::<u64>(&inputs[0], (item, kind)),
            Some(DataType::Utf8) => self.bind_items::<Text>(&inputs[0], (item, kind)),
            _ => {
                let column = self.item.clone();
                let expected = "a number, a text, a date, a point in time or a truth value";
                Err(BindErrorKind::ColumnType { column, found, expected }.at("item"))
            }
        }
    }
}

impl Configured for HeavyFilter {
    const NAME: &'static str = "heavy_filter";
    const SUMMARY: &'static str = "take the hottest items out of a stream and count them";
}
