//! `set_similarity_join` as an operator of a pipeline: its parameters, and what they are bound to.

use schemars::JsonSchema;
use serde::Deserialize;
use trommel_engine::registry::Configured;

use super::options::{JoinAlgorithm, JoinMode, JoinOutput, VerifyMode};
use super::similarity::{Similarity, Threshold};
use super::stream::JoinWindow;
use crate::wave::Device;

/// Finds all pairs of sets that are at least as similar as a threshold, exactly.
///
/// # Ports
/// In: one input, which is joined to itself, or two (a stream: one); `id` (UInt32) and `set`
/// (`List<UInt32>`, each strictly ascending). Rows in which either is null are not joined, and an
/// empty set is similar to none. Out: `left`, `right` (UInt32, ids), `overlap` (UInt32, common
/// tokens), `similarity` (Float64), and for each column that is carried one of the left and one of
/// the right set; or `count` (UInt64). With one input `left` < `right`; with two, `left` is of the
/// first one. Each pair comes once, in no particular order.
///
/// With `window`, sets are joined as they come, each to those before it in the window: `left` is
/// the older one, whatever the ids are, and a pair comes with the batch of the newer one. With
/// `mode`: `deduplicate`, the rows of the input come out, in their order and with all columns,
/// whose sets have no earlier one that is similar. Rows in which the id or the set is null pass.
///
/// # Guarantees
/// Exact: the threshold is a rational number, and no bound is computed in floating point. The pairs
/// depend neither on the algorithm nor on the instruction set nor on the size of chunks; nor, in a
/// window of sets, on the size of batches.
///
/// # State
/// All sets and the columns that go with them, until the inputs have ended; then they are joined.
/// While they are sorted they are there twice.
///
/// A stream keeps the sets in the window and up to a quarter more, or without a window all, with an
/// index and the numbers of their tokens. Now and then sets are copied, up to a quarter of the
/// window or without one up to all; when tokens are numbered anew, up to 16 bytes for each token
/// that is known come on top for a moment. Where there is no room for that, it is left out. With
/// `deduplicate`, of equal sets that come within a quarter of the window only one is kept.
///
/// At most `memory_max` bytes, then an error; and in a stream at most 2^31 - 1 sets in the window
/// and 2^32 - 1 postings. On top come five chunks that travel between filter, verification and
/// rows, with the sets that they name where those have been copied since: when all are under way,
/// the filter waits. Rows come in batches of about 64 MiB of columns that go along.
///
/// # Devices
/// Candidates are verified on a GPU if `device` says so; with `auto` from the moment on at which
/// the CPU has spent as much on them as opening one takes, and on those of the present sets as
/// sending these takes, so that a small join never pays for it. In a stream the sets are others for
/// each batch and pane.
/// The results are the same.
///
/// With `gpu_signatures` the device tests all pairs whose sizes fit by signatures, instead of an
/// index on the CPU, and verifies what survives. With `auto` it does so for the sizes for which
/// that costs less than the postings that they would find, if it is a device's work at all.
///
/// # Cost
/// A posting for each token of each prefix, and those of other sets that it meets; see
/// [the module](crate::set_similarity_join).
///
/// In a stream, a look-up and a posting for each token of the prefix of a set, and now and then,
/// when twice as many tokens are known as before, the same for all sets of the window. `algorithm`
/// is not for streams.
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
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SetSimilarityJoin {
    /// How similar two sets are.
    #[serde(default)]
    pub(super) similarity: Similarity,
    /// The least similarity of a pair: a decimal such as 0.8 or a fraction such as "4/5", taken
    /// exactly; for `overlap` a number of tokens.
    pub(super) threshold: Threshold,
    /// How candidates are found when the sets are joined at the end of the input. Not for `window`
    /// and `deduplicate`, which have one way.
    #[serde(default)]
    pub(super) algorithm: JoinAlgorithm,
    /// Whether pairs are found, or rows dropped whose sets are similar to one before them; this is
    /// done on the CPU, without `algorithm`, `carry` and `output`: `count`.
    #[serde(default)]
    pub(super) mode: JoinMode,
    /// For one input: how far back a set looks for similar ones: {"sets": 100000} or
    /// {"seconds": 60}. A pair comes out when its later set comes. Without a window, all sets are
    /// joined when the input has ended; but duplicates are looked for among all that came before.
    #[serde(default)]
    pub(super) window: Option<JoinWindow>,
    /// What is answered.
    #[serde(default)]
    pub(super) output: JoinOutput,
    /// The column of ids, UInt32.
    #[serde(default = "default_id")]
    pub(super) id: String,
    /// The column of sets, `List<UInt32>`, each strictly ascending.
    #[serde(default = "default_set")]
    pub(super) set: String,
    /// Columns of the input that go along into the rows of pairs, once as `left_` and once as
    /// `right_` and their name.
    #[serde(default)]
    pub(super) carry: Vec<String>,
    /// Sets of fewer tokens are similar to none.
    #[serde(default = "default_size_min")]
    #[schemars(range(min = 1))]
    pub(super) size_min: usize,
    /// Where candidates are verified: `auto` (the first GPU, if there is one and it pays), `cpu`,
    /// `cuda` or `cuda:1` (that GPU, or an error).
    #[serde(default)]
    pub(super) device: Device,
    /// How candidates are verified; with `gpu_signatures` only `auto` and `cpu`.
    #[serde(default)]
    pub(super) verify: VerifyMode,
    /// Bytes of the candidates that are verified at once; unless given, 262144 on the CPU and
    /// 5242880 on a device.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub(super) chunk_bytes: Option<usize>,
    /// Bytes that the sets and their index may use; on a device the sets may use as much, and as
    /// much again where some of them are compared by signatures only.
    #[serde(default = "default_memory_max")]
    #[schemars(range(min = 1))]
    pub(super) memory_max: usize,
}

fn default_id() -> String {
    "id".to_owned()
}

fn default_size_min() -> usize {
    1
}

fn default_set() -> String {
    "set".to_owned()
}

fn default_memory_max() -> usize {
    1 << 32
}

impl SetSimilarityJoin {
    /// Pairs with at least this Jaccard similarity.
    #[must_use]
    pub fn new(threshold: Threshold) -> Self {
        Self {
            similarity: Similarity::Jaccard,
            threshold,
            algorithm: JoinAlgorithm::Auto,
            mode: JoinMode::Join,
            window: None,
            output: JoinOutput::Pairs,
            id: default_id(),
            set: default_set(),
            carry: Vec::new(),
            size_min: default_size_min(),
            device: Device::Auto,
            verify: VerifyMode::Auto,
            chunk_bytes: None,
            memory_max: default_memory_max(),
        }
    }

    /// Takes another similarity.
    #[must_use]
    pub fn similarity(mut self, similarity: Similarity) -> Self {
        self.similarity = similarity;
        self
    }

    /// Finds candidates in this way.
    #[must_use]
    pub fn algorithm(mut self, algorithm: JoinAlgorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Lets only those sets pass that have no similar one before them.
    #[must_use]
    pub fn deduplicate(mut self) -> Self {
        self.mode = JoinMode::Deduplicate;
        self
    }

    /// Joins each set when it comes, to those before it in this window.
    #[must_use]
    pub fn window(mut self, window: JoinWindow) -> Self {
        self.window = Some(window);
        self
    }

    /// Lets these columns of the input go along into the rows of pairs.
    #[must_use]
    pub fn carry(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.carry = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Takes sets of fewer tokens as similar to none; at least 1.
    #[must_use]
    pub fn size_min(mut self, tokens: usize) -> Self {
        self.size_min = tokens;
        self
    }

    /// Answers this.
    #[must_use]
    pub fn output(mut self, output: JoinOutput) -> Self {
        self.output = output;
        self
    }

    /// Verifies about so many bytes of candidates at once, 1 to 2^30; at least one pair.
    #[must_use]
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = Some(bytes);
        self
    }

    /// Verifies candidates there.
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Verifies candidates in this way.
    #[must_use]
    pub fn verify(mut self, verify: VerifyMode) -> Self {
        self.verify = verify;
        self
    }

    /// Uses at most so many bytes for the sets and their index.
    #[must_use]
    pub fn memory_max(mut self, bytes: usize) -> Self {
        self.memory_max = bytes;
        self
    }
}

impl Configured for SetSimilarityJoin {
    const NAME: &'static str = "set_similarity_join";
    const SUMMARY: &'static str = "find all pairs of similar sets, exactly";
}
