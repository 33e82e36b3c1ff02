//! `aggregate` as an operator of a pipeline: its parameters.

use trommel_engine::registry::Configured;

use crate::shared::parameters::{Names, parameters};
use crate::shared::rejected::OnError;
use crate::shared::window::Window;

/// Computes counts, sums, means, quantiles and other values for each group of rows.
///
/// # Ports
/// In: any columns. Out, when the input has ended or a window closes: a row of each group, with the
/// columns of `by` and of `compute`; with `window`, after `window_start`, `window_end` and
/// `complete` (Boolean). The rows ascend by the columns of `by`, the first column first, nulls
/// before values, and texts are compared by their bytes. With `on_error` `reject`, rows for which
/// an expression has no value go to a second output `rejected`.
///
/// # Guarantees
/// Exact, but for `approx_count_distinct` (standard error 1.6 %), `quantile` (less than 0.1 % of
/// the value) and the rounding of floats. A sum that does not fit its type is an error. The rows
/// depend neither on batches nor on the number of workers; sums and means of floats differ by the
/// order of their additions, by less than 10^-12 of the sum of the absolute values.
///
/// # Queries
/// `groups`: the rows so far, without the columns of the window, and with `window` those of the
/// window that is open. `n`, 100 when left out, limits their number, and `where` is a condition on
/// them. An answer of more than 1 GiB is refused.
///
/// # State
/// A key and a few numbers for each group; the values of `list`, and the distinct values of
/// `count_distinct`. More than `memory_max` bytes are an error. With `window`, the groups of each
/// slide of the window. The state is not saved.
///
/// # Cost
/// A hash and a look-up for each row, and a loop over the rows for each value that is computed.
///
/// # Examples
/// ```
/// use arrow_array::cast::AsArray;
/// use arrow_array::types::{Float64Type, UInt64Type};
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Aggregate, Collect, Generate};
///
/// let mut graph = Graph::new();
/// let items = graph.add("items", Generate::zipf(100, 1.0).items(1_000));
/// let spec = Aggregate::new(["count(*) as n", "avg(item) as mean"]).by("item % 2 as digit");
/// let groups = graph.add_after(items, "groups", spec);
/// let (sink, rows) = Collect::new();
/// graph.add_after(groups, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// let rows = rows.take();
/// let counts = rows[0].column(1).as_primitive::<UInt64Type>();
/// assert_eq!(counts.values().iter().sum::<u64>(), 1_000);
/// assert!(rows[0].column(2).as_primitive::<Float64Type>().value(0) > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct Aggregate {
    /// The values to compute, each a call with a name: `count(*) as n`, `avg(ms) as mean`. The
    /// calls are `count(*)`, `count(x)`, `sum(x)`, `avg(x)`, `min(x)`, `max(x)`, `first(x)`,
    /// `last(x)`, `count_distinct(x)`, `approx_count_distinct(x)`, `quantile(x, 0.99)` and
    /// `list(x)`, in which x is a column or an expression. Nulls are left out; a group without
    /// values has null, or the count 0.
    pub(crate) compute: Names,
    /// The columns or expressions whose values in a row are the group of the row: `host`,
    /// `status // 100 as class`, or a list of them. Nulls are a group. When left out, all rows are
    /// one group, which has a row even if there are no rows.
    #[default]
    pub(crate) by: Names,
    /// Compute in windows: {"items": 1000000} or {"seconds": 10}, with "slide" for the distance
    /// between the beginnings of two windows. A window sends its rows when it closes, with the
    /// columns `window_start`, `window_end` and `complete`, which is false for a window that the
    /// stream did not fill. Windows of seconds begin at whole multiples of their slide since
    /// 1970.
    pub(crate) window: Option<Window>,
    /// Action for a row for which an expression has no value, such as a text in a cast to a number.
    /// When left out, `fail`.
    pub(crate) on_error: Option<OnError>,
    /// Maximum bytes of the groups and their values.
    /// They are reserved from the memory of the pipeline at the start, which must have them. When
    /// left out, as much as the stage comes to need and the other stages leave, at most 4 GiB for
    /// each worker.
    #[range(1..)]
    pub(crate) memory_max: Option<usize>,
}

impl Configured for Aggregate {
    const NAME: &'static str = "aggregate";
    const SUMMARY: &'static str = "compute counts, sums and other values for each group of rows";
}
