//! `frequent_items` as an operator of a pipeline: its parameters.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::registry::Configured;

use crate::frequent_items::counting::scope::Decay;
use crate::shared::parameters::{Names, parameters};
use crate::shared::rejected::OnError;
use crate::shared::share::Share;
use crate::shared::state::MissingState;
use crate::shared::window::Window;

/// How items are counted. All give counts with the same guarantees; they differ in speed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Algorithm {
    /// `sieve`, or `space_saving` for counts that fade.
    #[default]
    Auto,
    /// SpaceSaving alone.
    SpaceSaving,
    /// A SIMD filter for the most frequent items in front of SpaceSaving.
    Filter,
    /// The same as two parts, which run on two cores while there are cores.
    ParallelFilter,
    /// SpaceSaving after cells for cold items and a SIMD filter for hot ones: the fastest.
    /// Monitors some more items than `counters`, as its proof needs them.
    Sieve,
}

/// How several cores share the work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Parallel {
    /// `pipeline` for `parallel_filter`; `partition` if the stage was given several `cores` or
    /// `workers`, and for `auto` and the sieve without a `seed`, whose counts differ within their
    /// bounds; otherwise one worker counts.
    #[default]
    Auto,
    /// They do not: one worker counts.
    Off,
    /// One core filters, one counts the items that the filter misses: `parallel_filter`.
    Pipeline,
    /// Each worker counts its share of the batches in a summary of its own; these are merged at the
    /// end and for every query. As many as the stage was given `workers` or `cores`, or one for
    /// each core of the process.
    Partition,
}

/// When rows are emitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Emit {
    /// When the input has ended.
    #[default]
    End,
    /// After every `every` items, at the next batch boundary, or every `every_seconds` seconds, and
    /// when the input has ended.
    Every,
}

/// Counts the most frequent items of a stream in bounded memory.
///
/// # Ports
/// In: a column of items (numbers, texts, dates, points in time or truth values) and, if `weight`
/// is set, one of weights (whole numbers from 0). Rows in which either is null are not counted.
/// Out: `rank` (UInt32, from 1), `item` (of its type), `count`, `error` (UInt64), the most frequent
/// first; with `window`, after `window_start`, `window_end` and `complete` (Boolean). They leave in
/// batches of at most 8,192 rows and 16 MiB of text. With several columns as `item`, the rows have
/// these in the place of `item`, and rows in which one of them is null are not counted. With
/// `on_error` `reject`, rows that cannot be counted go to a second output `rejected`.
///
/// # Guarantees
/// For N items (or their weight) and k counters: `count - error <= true count <= count`, `error <=
/// N / k`, and every item that occurs more than N / k times has a counter. See [the
/// module](crate::frequent_items).
///
/// # Queries
/// `top` (`n`, default 10) and `at_least` (`share`): rows as above. `estimate` (`item`): `item`,
/// `count`, `error`, where a long item may be asked for whole or by its name, and one of several
/// columns as an array with the names of long texts; for an item without a counter the most that it
/// can have occurred. `snapshot`: the state in one row with one column of bytes, for
/// [`Sieve::restore`](crate::frequent_items::Sieve::restore) and its like; not with `window` or
/// `decay`. With `window`, answers are about the window that is open, or with the parameter
/// `window` = `closed` about the last one with items that has closed; then with the columns of the
/// window. An answer of more than 1 GiB is refused.
///
/// # State
/// That of one summary, see its `state_bytes`, and for text at most `item_bytes_max` for each
/// item that it monitors. With `window`, each slide that has ended adds a list of at most as many
/// entries as the summary has counters and the slide had items, and some 70 lists hold sums of
/// them; an entry takes 24 bytes, and 48 and the text for text. The
/// window that closed last is one more list.
///
/// # Examples
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, FrequentItems, Generate};
///
/// let mut graph = Graph::new();
/// let items = graph.add("items", Generate::zipf(10_000, 1.2).items(100_000));
/// let top = graph.add_after(items, "top", FrequentItems::new().counters(500).n(3));
/// let (sink, rows) = Collect::new();
/// graph.add_after(top, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// assert_eq!(rows.batches()[0].num_rows(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct FrequentItems {
    /// The column that is counted, or an expression such as `lower(host)`; or a list of them, whose
    /// values in a row are an item: `["host", "lower(path) as path"]`.
    #[default("item")]
    pub(crate) item: Names,
    /// A column of weights, whole numbers from 0, or an expression; without it every item counts
    /// once.
    pub(crate) weight: Option<String>,
    /// Action for a row that cannot be counted: the item or the weight is null, the weight is below
    /// 0, or an expression has no value for the row. When left out, rows with a null are not
    /// counted, and another one ends the run.
    pub(crate) on_error: Option<OnError>,
    /// Number of monitored items, k: counts are at most N / k too high.
    #[default(1_000)]
    #[range(1..=67_108_864)]
    pub(crate) counters: usize,
    /// How they are counted.
    #[default]
    pub(crate) algorithm: Algorithm,
    /// How several cores share the work.
    #[default]
    pub(crate) parallel: Parallel,
    /// Bytes that the sieve may take, strings left out; some 0.5 MB for 1,000 counters when left
    /// out. Less is slower and gives larger errors, within the same bounds.
    #[schemars(range(min = 1))]
    pub(crate) state_bytes_max: Option<usize>,
    /// Makes the counts of the sieve repeatable: for equal batches, equal seeds give equal
    /// counts. When left out, each run draws a seed, and the counts of the sieve differ within
    /// their bounds; the counts of the other algorithms never do. A state that is restored brings
    /// its own seed. A client that knows the seed can send items that make counting slow.
    pub(crate) seed: Option<u64>,
    /// The longest text item that is kept as it is, in bytes; of several columns, the longest text
    /// of each. For a longer one stands a name of at most this length: its beginning, `…#`, and 32
    /// hexadecimal digits of a hash over all of it. So the text of a summary takes at most
    /// `counters` times this, for each column.
    #[default(4_096)]
    #[range(64..=1_073_741_824)]
    pub(crate) item_bytes_max: usize,
    /// Number of the counters that the filter searches by SIMD; fewer than `counters`.
    #[default(16)]
    #[schemars(range(min = 1, max = 64))]
    pub(crate) filter_bins: usize,
    /// Emit only items with at least this share of the stream, 0 to 1: a decimal such as 0.07 or a
    /// fraction such as "1/3", taken exactly.
    pub(crate) threshold: Option<Share>,
    /// Maximum number of items to emit; all monitored ones when left out.
    pub(crate) n: Option<usize>,
    /// When rows are emitted.
    #[default]
    #[setter(none)]
    pub(crate) emit: Emit,
    /// Items between two emissions, with `emit` = `every`.
    #[range(1..)]
    #[setter(none)]
    pub(crate) every: Option<u64>,
    /// Seconds between two emissions, with `emit` = `every`, from the first item on; a time in
    /// which no item came emits nothing. With `every` too, rows are emitted after the items or the
    /// time, whatever is first.
    #[range(0.1..=1_000_000_000.0)]
    #[setter(none)]
    pub(crate) every_seconds: Option<f64>,
    /// Count in windows: {"items": 1000000} or {"seconds": 10}, with "slide" for the distance
    /// between the beginnings of two windows. A window emits its rows when it closes, with the
    /// columns `window_start`, `window_end` and `complete`, which is false for a window that the
    /// stream did not fill. Windows of seconds begin at whole multiples of their slide since
    /// 1970.
    pub(crate) window: Option<Window>,
    /// Let counts fade: {"half_life_items": 1000000} or {"half_life_seconds": 60}. An occurrence
    /// of a half-life ago counts half.
    pub(crate) decay: Option<Decay>,
    /// Begin with the state that this file holds, written by `snapshot`; the stage needs the same
    /// algorithm, counters and type of items. Not with `window` or `decay`.
    pub(crate) restore: Option<PathBuf>,
    /// Begin with the states that these files hold, added up: counts and bounds are sums. The
    /// states are as for `restore`, beside which they may stand.
    #[default]
    pub(crate) merge: Vec<PathBuf>,
    /// When the file of `restore` is not there: `fail`, or `begin` without a state, as on the first
    /// day of a pipeline that goes on with its own state.
    #[default]
    pub(crate) missing: MissingState,
    /// Write the state to this file when the input has ended, as a whole or not at all: the file
    /// keeps its content until then. A link, a pipe or a device stays one. When the state cannot
    /// be written, the rows go on all the same, and the run fails at its end. Not with `window` or
    /// `decay`.
    pub(crate) snapshot: Option<PathBuf>,
    #[serde(skip)]
    pub(crate) label: String,
}

impl FrequentItems {
    /// Emits after every `items` items, and at the end.
    #[must_use]
    pub fn every(mut self, items: u64) -> Self {
        self.emit = Emit::Every;
        self.every = Some(items);
        self
    }

    /// Emits every `seconds` seconds in which items came, 0.1 or more, and at the end.
    #[must_use]
    pub fn every_seconds(mut self, seconds: f64) -> Self {
        self.emit = Emit::Every;
        self.every_seconds = Some(seconds);
        self
    }

    /// Says in words what is counted, such as `words`: a state that is written or asked for says
    /// so, and one of something else is not restored.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
}

impl Configured for FrequentItems {
    const NAME: &'static str = "frequent_items";
    const SUMMARY: &'static str = "count the most frequent items, with a bound on each count";
}
