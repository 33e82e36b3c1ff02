//! Parameters of the operator `conjunctive_query`.

use std::path::PathBuf;

use trommel_engine::registry::Configured;

use super::options::{AnswerOver, IndexSource, QueryOutput};
use super::tuning::Tuning;
use crate::shared::parameters::{Names, parameters};
use crate::shared::rejected::OnError;
use crate::shared::state::MissingState;
use crate::wave::Device;

/// Finds the documents that have all terms of a query.
///
/// # Ports
/// In: documents, and then queries; with an `index_path` that is to be opened, queries alone. Both
/// have a column `set`, the terms in any order: a list of integers or of texts of any layout, of
/// the same kind for both. A term that comes twice counts once, and a null term is left out. A
/// document is known by its position from 0; with `name`, by the text in that column. A null is a
/// document or a query without terms. Texts of more than 1,024 bytes are kept as their beginning
/// and a hash.
///
/// Out: `query` (UInt64, position of the query from 0), the columns `carry` of the queries, and
/// `documents` (a list of UInt32, ascending; with `name`, of Utf8 in that order), or with `output`:
/// `count` the column `count` (UInt32). With `latency`, also `latency_us` (UInt64). There is one
/// row a query, in the order in which queries are answered. A term that no document has gives an
/// empty answer, and so does a query without terms, as in search engines.
///
/// # Guarantees
/// Exact. With `over`: `all`, queries wait until the documents have ended: answers depend neither
/// on timing nor on batches, cores, the device or the instruction set; only the order of rows does.
/// With `over`: `arrived`, a query is answered over exactly the documents that were taken before
/// the batch with it. Documents and queries have no other order than that of their arrival.
///
/// A query is sent to a kernel at the latest `deadline_ms` after its batch entered the pipeline,
/// less the modelled time of its answer, unless all kernels are busy; at once, if no input waits
/// and a kernel has nothing to do. With more queries than kernels can answer, the inputs are
/// blocked, and no query is dropped. Chunks pass kernels one after the other: with `over`:
/// `arrived`, queries can wait for the merge of a large index.
///
/// # State
/// The lists take 2 to 4 bytes a posting, each term 16 bytes and its text, each name its text, and
/// twice as much while segments are merged. More than `memory_max` bytes, with queries that wait,
/// are an error. At most 2^31 - 1 documents.
///
/// At the end of the documents, `index_path` and `snapshot` write the index to a file, whose every
/// byte is under a checksum; the file is written under another name and renamed. `index_path` opens
/// it in later runs, for queries alone: the file is read into memory as a whole, so that nothing
/// that happens to the file reaches a run that serves from it. `restore` begins with the documents
/// of such a file, and goes on with the input. A file is written as a whole each time.
///
/// # Division
/// By documents: each part has an index of some of them, and gets all queries. Counts of parts add
/// up; lists of parts follow each other, with the documents of the parts before added to their
/// numbers. On several cores, blocks and batches of queries go to kernels; `cores` of the stage
/// says to how many.
///
/// # Cost
/// See [`inverted`](trommel_kernels::inverted): about 1 to 3 ns a document of the shortest list for
/// each other list. A posting is built once and merged at most about 2 log2(index / block) times.
///
/// # Device
/// `auto` compares the modelled cost of each batch on all cores and on a GPU, which answers
/// batches that cost less there: of many queries, or of long lists. The GPU is opened when it would
/// have saved the 0.4 s that this takes, and a segment is sent when it would have saved that time.
/// Blocks are built and merged on the CPU, also with `cuda`; so is a batch answered that exceeds
/// the buffers of a GPU: 16 terms a query on average, 4 M documents of one query.
///
/// A segment stays in the memory of the GPU while an index names it, up to `device_memory_max`
/// bytes. Lists of the other segments go there with the batches that name them, each list once a
/// batch and up to 64 MiB: queries without room for their lists or documents are asked again. Three
/// batches are in flight. They take up to 64 MiB of lists, 16 MiB of documents and 12 bytes a term
/// each, in the memory of the GPU and in pinned memory, beside `memory_max`. Of several GPUs, each
/// one has the segments and three batches in flight. A GPU that is missing, full or lost is left
/// with `auto`; the other GPUs, or else the CPU, give the same answers.
///
/// # Queries
/// `documents` and `count` with `terms`, an array of numbers or texts: the documents in the index
/// at that time, as rows of `document` and `name`, or their `count`.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::builder::{ListBuilder, StringBuilder};
/// use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray, types::UInt32Type};
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, ConjunctiveQuery, Memory};
///
/// let sets = |lines: &[&str]| {
///     let mut sets = ListBuilder::new(StringBuilder::new());
///     lines.iter().for_each(|line| sets.append_value(line.split(' ').map(Some)));
///     let sets: ArrayRef = Arc::new(sets.finish());
///     RecordBatch::try_from_iter([("set", sets)])
/// };
/// let documents = sets(&["to be or not to be", "not here", "to do or not"])?;
/// let queries = sets(&["not to"])?;
///
/// let mut graph = Graph::new();
/// let documents = graph.add("documents", Memory::new(documents.schema(), vec![documents]));
/// let queries = graph.add("queries", Memory::new(queries.schema(), vec![queries]));
/// let search = graph.add("search", ConjunctiveQuery::new());
/// graph.connect(documents, search);
/// graph.connect(queries, search);
/// let (sink, rows) = Collect::new();
/// graph.add_after(search, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
///
/// let rows = rows.batches();
/// let found = rows[0].column(1).as_list::<i32>().value(0);
/// assert_eq!(found.as_primitive::<UInt32Type>().values(), &[0, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct ConjunctiveQuery {
    /// Kind of the answers: `documents` or `count`.
    #[default]
    pub(crate) output: QueryOutput,
    /// Documents that a query is answered over: `all`, for which queries wait until the documents
    /// have ended, or the documents that have `arrived` before it.
    #[default]
    pub(crate) over: AnswerOver,
    /// Column or expression of the documents that names them, a text; without it, answers have
    /// their positions.
    pub(crate) name: Option<String>,
    /// Columns of the queries that go along with their answers, or `*` for all.
    #[default]
    #[setter(each)]
    pub(crate) carry: Names,
    /// Add the column `latency_us`: microseconds from the entry of the batch with the query to
    /// its answer.
    #[default]
    pub(crate) latency: bool,
    /// Queries that are answered together, at most.
    #[default(1_024)]
    #[range(1..=65_536)]
    pub(crate) batch_queries: usize,
    /// Milliseconds within which a query is answered, unless all kernels are busy.
    #[default(5.0)]
    #[range(0.0..=60_000.0)]
    pub(crate) deadline_ms: f64,
    /// Device that answers queries: `auto` (the first GPU, if there is one and it pays, and further
    /// GPUs where these pay), `cpu`, `cuda` or `cuda:1` (that GPU; an error if it is missing or
    /// fails), `cuda:all` (all GPUs), or several GPUs, such as ["cuda:0", "cuda:1"]. With several
    /// GPUs, the others take over the work of one that fails, and the failure of the last one is an
    /// error.
    #[default]
    pub(crate) device: Device,
    /// Maximum bytes of the index in the memory of a GPU; by default, all memory that is free.
    /// Lists of a larger index go there with the queries that name them.
    #[range(1..)]
    pub(crate) device_memory_max: Option<usize>,
    /// Terms, of documents and of queries, lists of integers or of texts: a column, or an
    /// expression such as `words(text)`.
    #[default("set")]
    pub(crate) set: String,
    /// Action for a row that cannot be used: the set, an item of it or the name is null, or an
    /// expression has no value for the row. A document of such a row keeps its position, and a
    /// query has no answer. When left out, a null is a set without terms, null items are left out,
    /// and a null name or an expression without a value ends the run.
    pub(crate) on_error: Option<OnError>,
    /// Maximum bytes of the index and of the queries that wait.
    /// They are reserved from the memory of the pipeline at the start, which must have them. When
    /// left out, as much as the stage comes to need and the other stages leave, at most 4 GiB.
    #[range(1..)]
    pub(crate) memory_max: Option<usize>,
    /// File of the index: written when the documents have ended, but not in a run that is stopped
    /// before; opened if queries are the only input, or if `index` says so.
    pub(crate) index_path: Option<PathBuf>,
    /// Whether to `build` the index of the documents, or to `reuse` the one in `index_path` if
    /// there is one; documents of the input are dropped then.
    #[default]
    pub(crate) index: IndexSource,
    /// Begin with the documents that this file holds, written by `snapshot` or `index_path`; also
    /// those of a run that was stopped.
    pub(crate) restore: Option<PathBuf>,
    /// When the file of `restore` is not there: `fail`, or `begin` without a state, as on the first
    /// day of a pipeline that goes on with its own state.
    #[default]
    pub(crate) missing: MissingState,
    /// Write the documents to this file when they have ended or the run is stopped, as a whole or
    /// not at all: the file keeps its content until then, and says which of the two it was. When
    /// the documents cannot be written, the rows go on all the same, and the run fails at its end.
    pub(crate) snapshot: Option<PathBuf>,
    #[serde(skip)]
    pub(crate) tuning: Tuning,
}

/// Most bytes that the stage takes when no number is given: 4 GiB.
pub(crate) const MEMORY_MAX: usize = 1 << 32;

impl ConjunctiveQuery {
    #[cfg(test)]
    pub(crate) fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }
}

impl Configured for ConjunctiveQuery {
    const NAME: &'static str = "conjunctive_query";
    const SUMMARY: &'static str = "find the documents that have all terms of a query";
}
