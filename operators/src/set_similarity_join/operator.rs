//! `set_similarity_join` as an operator of a pipeline: its parameters, and what they are bound to.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use arrow_schema::{DataType, SchemaRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{BindContext, Body, Fragment, Load, Operator, OperatorSpec, Part};
use trommel_engine::registry::Configured;
use trommel_kernels::Isa;
use trommel_kernels::cuda::overlap::ChunkLimits;

use super::bounds::{Bounds, Similarity};
use super::candidates::Candidates;
use super::chunk::CandidateChunk;
use super::collector::SetCollector;
use super::input::Columns;
use super::join::JoinAlgorithm;
use super::outbox::{Chunks, Outbox};
use super::rows::PairRows;
use super::stages::{Collect, Prepare, Rows};
use super::stream::{self, Extent, JoinWindow, Rules};
use super::threshold::Threshold;
use super::tile_join::TileList;
use super::verify_mode::{Plan, VerifyMode};
use crate::columns::{column_schema, find_column};
use crate::parameters::check_range;
use crate::wave::{Device, KernelPair, OverlapKernel, PairKernel, TilesKernel, Wave, WavePart};

/// What a join answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JoinOutput {
    /// A row a pair.
    #[default]
    Pairs,
    /// One row: how many pairs there are.
    Count,
}

/// What a join is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JoinMode {
    /// Similar sets are found.
    #[default]
    Join,
    /// A row of the input passes only if no set that came before it, in the window if there is one,
    /// is similar to its own: whether or not that one has passed.
    Deduplicate,
}

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
    similarity: Similarity,
    /// The least similarity of a pair: a decimal such as 0.8 or a fraction such as "4/5", taken
    /// exactly; for `overlap` a number of tokens.
    threshold: Threshold,
    /// How candidates are found when the sets are joined at the end of the input. Not for `window`
    /// and `deduplicate`, which have one way.
    #[serde(default)]
    algorithm: JoinAlgorithm,
    /// Whether pairs are found, or rows dropped whose sets are similar to one before them; this is
    /// done on the CPU, without `algorithm`, `carry` and `output`: `count`.
    #[serde(default)]
    mode: JoinMode,
    /// For one input: how far back a set looks for similar ones: {"sets": 100000} or
    /// {"seconds": 60}. A pair comes out when its later set comes. Without a window, all sets are
    /// joined when the input has ended; but duplicates are looked for among all that came before.
    #[serde(default)]
    window: Option<JoinWindow>,
    /// What is answered.
    #[serde(default)]
    output: JoinOutput,
    /// The column of ids, UInt32.
    #[serde(default = "default_id")]
    id: String,
    /// The column of sets, `List<UInt32>`, each strictly ascending.
    #[serde(default = "default_set")]
    set: String,
    /// Columns of the input that go along into the rows of pairs, once as `left_` and once as
    /// `right_` and their name.
    #[serde(default)]
    carry: Vec<String>,
    /// Sets of fewer tokens are similar to none.
    #[serde(default = "default_size_min")]
    #[schemars(range(min = 1))]
    size_min: usize,
    /// Where candidates are verified: `auto` (the first GPU, if there is one and it pays), `cpu`,
    /// `cuda` or `cuda:1` (that GPU, or an error).
    #[serde(default)]
    device: Device,
    /// How candidates are verified; with `gpu_signatures` only `auto` and `cpu`.
    #[serde(default)]
    verify: VerifyMode,
    /// Bytes of the candidates that are verified at once; unless given, 262144 on the CPU and
    /// 5242880 on a device.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_073_741_824))]
    chunk_bytes: Option<usize>,
    /// Bytes that the sets and their index may use; on a device the sets may use as much, and as
    /// much again where some of them are compared by signatures only.
    #[serde(default = "default_memory_max")]
    #[schemars(range(min = 1))]
    memory_max: usize,
}

/// The greatest `chunk_bytes`.
const CHUNK_BYTES_MAX: usize = 1 << 30;

fn default_id() -> String {
    "id".to_owned()
}

fn default_size_min() -> usize {
    1
}

fn default_set() -> String {
    "set".to_owned()
}

/// Bytes of a chunk for the CPU, where it stays in the second-level cache, and for a device, where
/// small chunks leave multiprocessors idle (docs/gpu.md, *Waves*).
const CHUNK_BYTES: [usize; 2] = [1 << 18, 5 << 20];

/// Chunks that a device works on at a time. Two more are filled and read meanwhile.
const IN_FLIGHT: usize = 3;

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

    fn columns(&self, input: &SchemaRef) -> Result<Columns, BindError> {
        let wrong = |column: &str, found: DataType, expected, parameter| {
            let column = column.to_owned();
            BindErrorKind::ColumnType { column, found, expected }.at(parameter)
        };
        let id = match find_column(input, &self.id, "id")? {
            (index, DataType::UInt32) => index,
            (_, found) => return Err(wrong(&self.id, found, "UInt32", "id")),
        };
        match find_column(input, &self.set, "set")? {
            (set, DataType::List(token)) if *token.data_type() == DataType::UInt32 => {
                Ok(Columns::new(input, id, set, self.carried(input)?))
            }
            (_, found) => Err(wrong(&self.set, found, "List<UInt32>", "set")),
        }
    }

    /// How a stream is joined; none if the sets are collected first.
    fn stream(
        &self,
        inputs: usize,
        bounds: Bounds,
        isa: Isa,
        plan: Plan,
    ) -> Result<Option<Rules>, BindError> {
        let is_each_pair = self.mode == JoinMode::Join;
        let (parameter, value) = match self.window {
            None if is_each_pair => return Ok(None),
            None => ("mode", "\"deduplicate\""),
            Some(_) => ("window", "a window"),
        };
        let refuse = |parameter, value: &str, allowed: &str| {
            let (value, allowed) = (value.to_owned(), allowed.to_owned());
            Err(BindErrorKind::Value { value, allowed }.at(parameter))
        };
        if inputs > 1 {
            let value = format!("{value} with {inputs} inputs");
            return refuse(parameter, &value, "a stream is joined to itself: give it one input");
        }
        if !is_each_pair && self.output == JoinOutput::Count {
            let allowed = "sets pass or are dropped, and the report counts them: leave it out";
            return refuse("output", "\"count\" with `mode`: \"deduplicate\"", allowed);
        }
        if !is_each_pair && plan.is_device_wanted() {
            let allowed = "duplicates are found on the CPU: leave `device` and `verify` out";
            return refuse("mode", "\"deduplicate\" on a device", allowed);
        }
        if self.algorithm != JoinAlgorithm::Auto {
            let value = format!("{:?} with {value}", self.algorithm.name());
            return refuse("algorithm", &value, "a stream is joined in one way: leave it out");
        }
        Ok(Some(Rules {
            bounds,
            isa,
            window: self.window.map_or(Ok(Extent::Endless), JoinWindow::resolve)?,
            is_each_pair,
            size_min: self.size_min,
            memory_max: self.memory_max,
        }))
    }

    /// The columns that go with the sets, each once.
    fn carried(&self, input: &SchemaRef) -> Result<Vec<usize>, BindError> {
        let mut columns: Vec<usize> = Vec::with_capacity(self.carry.len());
        let refuse = |value: String, allowed: &str| {
            Err(BindErrorKind::Value { value, allowed: allowed.to_owned() }.at("carry"))
        };
        if !self.carry.is_empty() && self.mode == JoinMode::Deduplicate {
            return refuse("columns to go along".to_owned(), "all columns of a row pass with it");
        }
        if !self.carry.is_empty() && self.output == JoinOutput::Count {
            return refuse("columns to go along".to_owned(), "a count has no columns beside it");
        }
        for name in &self.carry {
            let (column, _) = find_column(input, name, "carry")?;
            if columns.contains(&column) {
                return refuse(format!("`{name}` twice"), "name each column once");
            }
            columns.push(column);
        }
        Ok(columns)
    }

    fn rows(&self, columns: &[Columns]) -> Rows {
        match self.output {
            JoinOutput::Pairs => {
                Rows::Pairs(PairRows::new(self.similarity, Columns::carried_schemas(columns)))
            }
            JoinOutput::Count => Rows::Count(column_schema("count", DataType::UInt64)),
        }
    }
}

impl Configured for SetSimilarityJoin {
    const NAME: &'static str = "set_similarity_join";
    const SUMMARY: &'static str = "find all pairs of similar sets, exactly";
}

impl OperatorSpec for SetSimilarityJoin {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=2
    }

    fn bind(self: Box<Self>, inputs: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        if let Some(bytes) = &self.chunk_bytes {
            check_range("chunk_bytes", bytes, &(1..=CHUNK_BYTES_MAX))?;
        }
        check_range("size_min", &self.size_min, &(1..=usize::MAX))?;
        check_range("memory_max", &self.memory_max, &(1..=usize::MAX))?;
        let bounds = Bounds::new(self.similarity, self.threshold)
            .map_err(|error| BindErrorKind::Other(error.into()).at("threshold"))?;
        let plan = self.plan()?;
        let mut columns: Vec<Columns> =
            inputs.iter().map(|input| self.columns(input)).collect::<Result<_, _>>()?;
        let isa = Isa::selected().map_err(|error| BindErrorKind::Other(error.into()))?;
        let rules = self.stream(inputs.len(), bounds, isa, plan)?;
        let rows = self.rows(&columns);
        let output = SchemaRef::clone(rows.schema());
        let chunks = self.chunks(plan);
        let outbox = Outbox::new(chunks);
        let filter = match rules {
            Some(rules) if self.mode == JoinMode::Deduplicate => {
                return Ok(stream::deduplicate(rules, columns.remove(0), inputs));
            }
            Some(rules) => {
                part("filter", Load::Heavy, stream::Filter::new(rules, columns.remove(0), outbox))
            }
            None => {
                let mut collector = SetCollector::new(self.memory_max);
                if inputs.len() == 2 {
                    collector = collector.two_sided();
                }
                let outbox = (outbox, plan.tiling());
                part("filter", Load::Heavy, Prepare::new(collector, columns, isa, outbox, &self))
            }
        };
        let wave = Wave { device: plan.device, chunks: chunks.count };
        let kernel = self.kernel(isa, chunks, plan);
        let parts = vec![
            filter,
            part("verify", Load::Heavy, WavePart::new(kernel, wave)),
            part("collect", Load::Light, Collect::new(rows)),
        ];
        Ok(Fragment::new(parts, vec![output]))
    }
}

fn part(name: &'static str, load: Load, operator: impl Operator + 'static) -> Part {
    Part { name: Cow::Borrowed(name), load, body: Body::Operator(Box::new(operator)) }
}

impl SetSimilarityJoin {
    /// Answers chunks of candidates, or of tiles.
    fn kernel(
        &self,
        isa: Isa,
        chunks: Chunks,
        plan: Plan,
    ) -> KernelPair<OverlapKernel<Candidates>, TilesKernel<Candidates>> {
        let bytes = chunks.bytes[0].max(chunks.bytes[1]);
        let pairs = CandidateChunk::pairs_in(bytes);
        let limits = ChunkLimits { entries: pairs, pairs, starts: true };
        let overlap = OverlapKernel::new(isa, limits, IN_FLIGHT, self.memory_max);
        let tiles = TilesKernel::new(isa, TileList::limits(bytes), IN_FLIGHT, self.memory_max);
        KernelPair::new(overlap.with_kernel(plan.kernel), tiles)
    }

    /// What is similar, and how it is found.
    pub(super) fn question(&self) -> (Similarity, Threshold, JoinAlgorithm) {
        (self.similarity, self.threshold, self.algorithm)
    }

    /// The least size of a set that can be similar to any.
    pub(super) fn least_size(&self) -> usize {
        self.size_min
    }

    fn plan(&self) -> Result<Plan, BindError> {
        let refuse = |allowed| {
            let value = format!("{:?}", self.verify.name());
            Err(BindErrorKind::Value { value, allowed }.at("verify"))
        };
        match self.verify.plan(self.device) {
            Err(misfit) => refuse(misfit.to_string()),
            Ok(plan)
                if self.algorithm == JoinAlgorithm::GpuSignatures
                    && plan.kernel != PairKernel::BySize =>
            {
                let allowed = "\"auto\" and \"cpu\" where `algorithm` is \"gpu_signatures\"";
                refuse(allowed.to_owned())
            }
            Ok(plan) => Ok(plan),
        }
    }

    fn chunks(&self, plan: Plan) -> Chunks {
        Chunks {
            count: IN_FLIGHT + 2,
            bytes: self.chunk_bytes.map_or(CHUNK_BYTES, |bytes| [bytes; 2]),
            output: self.output,
            is_device_wanted: plan.is_device_wanted(),
        }
    }
}
