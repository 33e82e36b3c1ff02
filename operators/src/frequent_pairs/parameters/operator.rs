//! Parameters of the operator `frequent_pairs`.

use std::path::PathBuf;

use trommel_engine::registry::Configured;

use super::options::{Layout, Measure, PairWindow, Support};
use super::tuning::Tuning;
use crate::shared::parameters::parameters;
use crate::shared::rejected::OnError;
use crate::shared::state::MissingState;
use crate::wave::Device;

/// Finds all pairs or triples of items that at least a given number of transactions hold, exactly.
///
/// # Ports
/// In: `set`, the items of a transaction, in any order: a list of integers or of texts of any
/// layout. An item that comes twice counts once, and a null item is left out. A null is no
/// transaction; an empty list is one. Texts of more than 1,024 bytes are kept as their beginning
/// and a hash.
///
/// Out: `left` and `right` (items, of their type; texts as Utf8), `support` (UInt32, transactions
/// that hold both), and the columns of `measures` (Float64). `left` < `right`. Each pair comes
/// once, in no particular order. With `itemset`: 3 the rows are triples, which have a column
/// `third` after `right`. With `window`, each pair comes once a window, after the columns
/// `window_start`, `window_end` and `complete`, and windows come in their order.
///
/// # Guarantees
/// Exact: supports are counted, and a share is a fraction. The pairs do not depend on the layout,
/// the device, the instruction set or the number of cores. They do not depend on the size of
/// batches either, but for windows of seconds, in which a batch has one time.
///
/// # State
/// All transactions until the input has ended; with `window`, the transactions of a window and,
/// while these are counted, of the next one. That is about 6 bytes for each item of a transaction
/// and 16 for each item; with `batmap`, 6 to 12 bytes more for each item of a transaction. For a
/// GPU, 2 bytes more for each item of a transaction, with `sparse` up to 20; its own memory holds a
/// bit for each frequent item and transaction, or the batmaps or transactions, of one window. More
/// than `memory_max` bytes of transactions and of the lists that are joined of them are an error,
/// before they are taken. At most 2^31 transactions, with as many
/// frequent items in all. Triples need the frequent pairs, 60 bytes each, which count as memory.
/// The number of results is not limited: they leave when they are found.
///
/// `snapshot` writes the transactions of the stream, or of its last window, at the end; `restore`
/// goes on with them in a later run, whose windows continue as if there had been one stream. The
/// last window of the first run comes again, then whole; a window of seconds that began before the
/// restart stays incomplete.
///
/// # Division
/// Partial for the transactions: supports of parts of a stream add up. Blocks for the counting:
/// each task counts other pairs. With several cores, the tasks are counted on all of them; `cores`
/// of the stage says on how many.
///
/// # Cost
/// See [`supports`](trommel_kernels::supports): with `sliced`, about a nanosecond for each item of
/// a transaction and each 512 items that have a higher support. Triples, in addition: the same for
/// the transactions of each frequent pair that is in a triangle of frequent pairs.
///
/// # Device
/// `auto` compares the modelled cost of a window, or of the stream, on all cores and on a GPU. The
/// GPU is opened when it would have saved the 0.4 s that this takes, and counts the windows that
/// cost less there and whose data fits its memory. Transactions are read, numbered and transposed
/// on the CPU meanwhile. Of several GPUs, each one has the data of the window, and counts the tiles
/// that it is free for. A GPU that is missing, full or lost is left; the other GPUs, or else the
/// CPU, count the same pairs.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::builder::{ListBuilder, UInt32Builder};
/// use arrow_array::{ArrayRef, RecordBatch, cast::AsArray, types::UInt32Type};
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::frequent_pairs::Support;
/// use trommel_operators::{Collect, FrequentPairs, Memory};
///
/// let mut baskets = ListBuilder::new(UInt32Builder::new());
/// for basket in [[3, 5, 8], [5, 8, 9], [8, 5, 1]] {
///     baskets.append_value(basket.map(Some));
/// }
/// let baskets: ArrayRef = Arc::new(baskets.finish());
/// let baskets = RecordBatch::try_from_iter([("set", baskets)])?;
///
/// let mut graph = Graph::new();
/// let baskets = graph.add("baskets", Memory::new(baskets.schema(), vec![baskets]));
/// let pairs = graph.add_after(baskets, "pairs", FrequentPairs::new(Support::Count(2)));
/// let (sink, rows) = Collect::new();
/// graph.add_after(pairs, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
///
/// let rows = rows.batches();
/// let [left, right, support] =
///     [0, 1, 2].map(|column| rows[0].column(column).as_primitive::<UInt32Type>().value(0));
/// assert_eq!((left, right, support), (5, 8, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct FrequentPairs {
    /// Transactions that hold both items, at least: a number such as 10, or a share of all
    /// transactions such as 0.01 or "1/300".
    pub(crate) support: Support,
    /// Items of a result: 2 for pairs, 3 for triples.
    #[default(2)]
    #[range(2..=3)]
    pub(crate) itemset: usize,
    /// Layout in which pairs are counted; all give the same pairs.
    #[default]
    pub(crate) layout: Layout,
    /// Device that counts pairs: `auto` (the first GPU, if there is one and it pays, and further
    /// GPUs where these pay), `cpu`, `cuda` or `cuda:1` (that GPU; an error if it is missing or
    /// fails), `cuda:all` (all GPUs), or several GPUs, such as ["cuda:0", "cuda:1"]. With several
    /// GPUs, the others take over the work of one that fails, and the failure of the last one is an
    /// error. Layouts for a GPU are `auto`, `batmap`, `bitmap`, `sparse` and `tensor`.
    #[default]
    pub(crate) device: Device,
    /// Measures of association, as more columns.
    #[default]
    pub(crate) measures: Vec<Measure>,
    /// Count in windows: {"transactions": 100000} or {"seconds": 60}, with "slide" for the distance
    /// between the beginnings of two windows. The pairs of a window come out when it closes, with
    /// the columns `window_start`, `window_end` and `complete`.
    pub(crate) window: Option<PairWindow>,
    /// Transactions, lists of integers or of texts: a column, or an expression such as
    /// `words(line)`.
    #[default("set")]
    pub(crate) set: String,
    /// Action for a row that cannot be used: the transaction or an item of it is null, or an
    /// expression has no value for the row. When left out, a null is no transaction, null items are
    /// left out, and an expression without a value ends the run.
    pub(crate) on_error: Option<OnError>,
    /// Maximum bytes of the transactions.
    /// They are reserved from the memory of the pipeline at the start, which must have them. When
    /// left out, as much as the stage comes to need and the other stages leave, at most 4 GiB.
    #[range(1..)]
    pub(crate) memory_max: Option<usize>,
    /// Begin with the transactions that this file holds, written by `snapshot`; the stage needs the
    /// same windows and type of items.
    pub(crate) restore: Option<PathBuf>,
    /// When the file of `restore` is not there: `fail`, or `begin` without a state, as on the first
    /// day of a pipeline that goes on with its own state.
    #[default]
    pub(crate) missing: MissingState,
    /// Write the transactions of the stream, or of its last window, to this file when the input has
    /// ended, as a whole or not at all: the file keeps its content until then. When they cannot be
    /// written, the rows go on all the same, and the run fails at its end.
    pub(crate) snapshot: Option<PathBuf>,
    #[serde(skip)]
    pub(crate) tuning: Tuning,
}

/// Most bytes that the stage takes when no number is given: 4 GiB.
pub(crate) const MEMORY_MAX: usize = 1 << 32;

impl FrequentPairs {
    #[cfg(test)]
    pub(crate) fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }
}

impl Configured for FrequentPairs {
    const NAME: &'static str = "frequent_pairs";
    const SUMMARY: &'static str = "find all pairs of items that occur together often, exactly";
}
