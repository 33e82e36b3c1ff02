//! Parameters of the operator `set_similarity_join`.

use trommel_engine::registry::Configured;

use super::options::{JoinAlgorithm, JoinMode, JoinOutput, VerifyMode};
use super::tuning::Tuning;
use crate::set_similarity_join::similarity::{Similarity, Threshold};
use crate::set_similarity_join::stream::JoinWindow;
use crate::shared::parameters::{Names, parameters};
use crate::shared::rejected::OnError;
use crate::wave::Device;

/// Finds all pairs of sets that are at least as similar as a threshold, exactly.
///
/// # Ports
/// In: one input, which is joined to itself, or two; a streaming join has one. `set` is a list of
/// integers or of texts, in any order; duplicates count once, and nulls in it are left out. `id`
/// has any type. Rows with a null id or a null set are not joined. An empty set is similar to no
/// set. Texts of more than 1,024 bytes are kept as their beginning and a hash. With `on_error`,
/// rows with a null cannot be used; `reject` sends them to a second output `rejected`.
///
/// Out: `left` and `right` (ids, of their type; UInt32 for positions), `overlap` (UInt32, number of
/// common tokens), `similarity` (Float64), and each column of `carry` twice; or `count` (UInt64).
/// With one input, `left` < `right` for ids of UInt32, and `left` came first for others; with two,
/// `left` is of the first input. Each pair comes once, in no particular order.
///
/// With `window`, each set is joined on arrival to the earlier sets of the window. `left` is the
/// older set, for any ids. A pair comes out with the batch of its newer set.
///
/// With `mode` `deduplicate`, the output is the input without the rows whose set is similar to an
/// earlier one: in the same order, with all columns. Rows with a null id or a null set pass, unless
/// `on_error` is set.
///
/// # Guarantees
/// Exact: the threshold is a rational number, and no bound is computed in floating point. The
/// pairs do not depend on the algorithm, the instruction set, the device or the size of chunks.
/// With a window of sets, they do not depend on the size of batches either.
///
/// # State
/// A join without `window` keeps all sets and their carried columns until the inputs have ended.
/// While it sorts the sets, it holds them twice.
///
/// A streaming join keeps the sets of the window and up to a quarter more, or all sets without
/// `window`, with an index and the numbers of their tokens. From time to time it copies sets: up
/// to a quarter of the window, or without `window` up to all. Renumbering the tokens needs up to
/// 16 bytes per known token while it runs. Copies and renumbering are skipped when memory does
/// not suffice. With `deduplicate`, equal sets within a quarter of the window are kept once.
///
/// More than `memory_max` bytes are an error. A streaming join allows at most 2^31 - 1 sets in
/// the window and 2^32 - 1 postings. Not counted in `memory_max`: the chunks between the parts
/// of the operator, five on one core and two more than four for each of several, and the sets
/// they refer to if these have been copied since. When all chunks are in use, the join waits. Rows
/// come in batches of about 64 MiB of carried columns.
///
/// # Cores
/// With `auto` and `gpu_signatures`, a join without `window` uses all cores, or those that the
/// stage names: they collect sets while others are read, sort them, and search parts of the index.
///
/// # Devices
/// `device` says whether candidates are verified on a GPU. `auto` uses one from the moment when
/// the CPU has spent as much time on candidates as opening the GPU takes, and as much on the
/// present sets as sending them takes. So a small join never pays for a GPU. In a stream, the
/// present sets are those of a batch and a pane. The results are the same. Of several GPUs, each
/// one has the sets, and a chunk goes to the GPU that is free first.
///
/// With `gpu_signatures`, the GPU tests all pairs whose sizes fit by signatures and verifies
/// those that pass; there is no index. With `auto`, it does so for the sizes for which it costs
/// less than their postings, if that saves more than opening the GPU costs.
///
/// # Cost
/// One posting per token of each prefix, plus the postings of other sets that it is compared
/// with; see [the module](crate::set_similarity_join).
///
/// A streaming join needs one look-up and one posting per token of a set's prefix. From time to
/// time, such as when the number of known tokens has doubled, it needs the same again for all
/// sets of the window. `algorithm` has no effect on streams and is refused.
///
/// # Examples
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Memory, SetSimilarityJoin, Tokenize};
/// # use std::sync::Arc;
/// # use arrow_array::{ArrayRef, RecordBatch, StringArray};
///
/// let texts = ["a river of gravel", "the river of gravel", "heavy pieces"];
/// # let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
/// # let texts = RecordBatch::try_from_iter([("text", texts)])?;
/// let mut graph = Graph::new();
/// let texts = graph.add("texts", Memory::new(texts.schema(), vec![texts]));
/// let sets = graph.add_after(texts, "sets", Tokenize::words().into_sets());
/// let similar = graph.add_after(sets, "similar", SetSimilarityJoin::new("3/5".parse()?));
/// let (sink, rows) = Collect::new();
/// graph.add_after(similar, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// assert_eq!(rows.rows(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct SetSimilarityJoin {
    /// Similarity of two sets.
    #[default]
    pub(crate) similarity: Similarity,
    /// Minimum similarity of a pair: a decimal such as 0.8 or a fraction such as "4/5", taken
    /// exactly. For `overlap`, a number of tokens.
    pub(crate) threshold: Threshold,
    /// Algorithm that finds candidate pairs. Not for `window` and `deduplicate`, which have only
    /// one.
    #[default]
    pub(crate) algorithm: JoinAlgorithm,
    /// `join` finds pairs. `deduplicate` drops rows whose set is similar to an earlier one; it
    /// runs on the CPU and takes no `algorithm`, no `carry` and no `output` `count`.
    #[default]
    #[setter(none)]
    pub(crate) mode: JoinMode,
    /// Window of a streaming join, for one input: {"sets": 100000} or {"seconds": 60}. A pair
    /// comes out when its newer set arrives. Without a window, all sets are joined when the input
    /// has ended, and `deduplicate` compares a set with all earlier ones.
    pub(crate) window: Option<JoinWindow>,
    /// Output: pairs, or their number.
    #[default]
    pub(crate) output: JoinOutput,
    /// Ids of the rows, of any type: a column or an expression. When left out, the column `id`, or
    /// else the position of the row in its input, from 0.
    pub(crate) id: Option<String>,
    /// Sets, lists of integers or of texts in any order: a column, or an expression such as
    /// `words(text)`.
    #[default("set")]
    pub(crate) set: String,
    /// Columns of the input to carry into the rows of pairs, or `*` for all: column `x` becomes
    /// `left_x` and `right_x`.
    #[default]
    #[setter(each)]
    pub(crate) carry: Names,
    /// Action for a row that cannot be used: the id or the set is null, an item of the set is null,
    /// or an expression has no value for the row. When left out, rows with a null id or set are not
    /// joined, null items are left out of their sets, and an expression without a value ends the
    /// run.
    pub(crate) on_error: Option<OnError>,
    /// Minimum number of tokens of a set. Smaller sets are similar to no set.
    #[default(1)]
    #[range(1..)]
    pub(crate) size_min: usize,
    /// Device that verifies candidates: `auto` (the first GPU, if there is one and it pays, and
    /// further GPUs where these pay), `cpu`, `cuda` or `cuda:1` (that GPU; an error if it is
    /// missing or fails), `cuda:all` (all GPUs), or several GPUs, such as ["cuda:0", "cuda:1"].
    /// With several GPUs, the others take over the work of one that fails, and the failure of the
    /// last one is an error.
    #[default]
    pub(crate) device: Device,
    /// Kernel that verifies candidates. With `gpu_signatures` only `auto` and `cpu`.
    #[default]
    pub(crate) verify: VerifyMode,
    /// Bytes of a chunk of candidates. Default: 262144 on the CPU, 5242880 on a device.
    #[range(1..=1_073_741_824)]
    pub(crate) chunk_bytes: Option<usize>,
    /// Maximum bytes of the sets and their index. On a device, the sets may use as much again,
    /// and twice that if some of them are compared by signatures only.
    /// They are reserved from the memory of the pipeline at the start, which must have them. When
    /// left out, as much as the stage comes to need and the other stages leave, at most 4 GiB.
    #[range(1..)]
    pub(crate) memory_max: Option<usize>,
    #[serde(skip)]
    pub(crate) tuning: Tuning,
}

/// Most bytes that the stage takes when no number is given: 4 GiB.
pub(crate) const MEMORY_MAX: usize = 1 << 32;

impl SetSimilarityJoin {
    #[cfg(test)]
    pub(crate) fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }

    /// Passes the rows on whose sets have no similar earlier set, instead of finding pairs.
    #[must_use]
    pub fn deduplicate(mut self) -> Self {
        self.mode = JoinMode::Deduplicate;
        self
    }
}

impl Configured for SetSimilarityJoin {
    const NAME: &'static str = "set_similarity_join";
    const SUMMARY: &'static str = "find all pairs of similar sets, exactly";
}
