//! Parameters of the operator `epsilon_join`.

use std::path::PathBuf;

use trommel_engine::registry::Configured;

use super::options::{EpsilonAlgorithm, EpsilonOutput, VectorWindow};
use super::tuning::Tuning;
use crate::shared::parameters::{Names, parameters};
use crate::shared::rejected::OnError;
use crate::shared::state::MissingState;
use crate::wave::Device;

/// Finds all pairs of vectors whose Euclidean distance is at most `epsilon`, exactly.
///
/// # Ports
/// In: one input, which is joined to itself, or two with vectors of one length. `vector` is a list
/// of 1 to 4,096 integers or floats, or a column for each coordinate; coordinates are rounded to
/// float32. `id` has any type. A row cannot be used if its id, its vector or a coordinate is null,
/// if a coordinate is infinite or not a number, if the vector has another length than the first one
/// that can be used, or if an expression has no value for it: `on_error` decides. With `reject`,
/// such rows go to a second output `rejected`.
///
/// Out, by `output`: `left` and `right` (ids, of their type; UInt32 for positions), `distance`
/// (Float64), and each column of `carry` twice; `count` (UInt64); `id`, `partners` (UInt32) and
/// each column of `carry`, in the order of the input; or `id` and each column of `carry` of the
/// vectors that have no partner among those before them, also in that order. With one input, each
/// pair comes once, and `left` is the vector that came first; with two, `left` is of the first
/// input. Pairs come in no particular order.
///
/// With `window`, each vector is joined on arrival to the earlier vectors of the window, and a pair
/// comes out with the batch of its newer vector. `output` `partners` has no window.
///
/// # Guarantees
/// Exact to the border: a pair joins if its distance, the root of the sum of the squares of the
/// differences of its coordinates, in float64 and in the order of the coordinates, is at most
/// `epsilon`. So a distance that a join reports is an epsilon by which that pair joins. The pairs
/// do not depend on the instruction set, the number of cores, the device or the size of batches.
///
/// # State
/// The vectors, their ids and carried columns until the inputs have ended; then the directory,
/// which takes up to 2.3 times the bytes of the vectors. A list of vectors that grows is there
/// twice while it is copied. `output` `partners` has 4 bytes for each vector on each core. More
/// than `memory_max` bytes are an error, before they are taken. Pairs are sent as they are found,
/// so their number does not matter.
///
/// A streaming join keeps the vectors of the window and up to a quarter more, in directories that
/// are merged as they age, and holds up to a quarter of them twice while it merges. With `output`
/// `count` or `first`, equal vectors are kept and joined once. `snapshot`
/// writes them at the end, without directories; `restore` goes on with them in a later run, for ids
/// of UInt32 from a column, and vectors whose length the type or `dims` says. Both runs together
/// find the pairs of one run over both inputs. A window of seconds goes on by the time that the
/// runs take: the time between them does not count. Carried columns have no state.
///
/// # Division
/// *Blocks*: a join of parts of the vectors with each other, each pair of parts once, finds the
/// same pairs, because whether a pair joins depends on its two vectors alone.
///
/// *By space*: [`VectorCells`](crate::epsilon_join::VectorCells) cuts the space into cells by a
/// sample. The worker of a cell joins the vectors of the cell and of its halo, which are within
/// epsilon of it, and keeps the pairs whose left vector is in the cell: all pairs, each once.
///
/// # Cost
/// See [the module](crate::epsilon_join).
///
/// # Device
/// `auto` compares the modelled cost of the join on all cores and on a GPU, with the 0.4 s that it
/// takes to open one; it counts on about a pair for each vector. A GPU joins vectors of up to 16
/// dimensions by boxes of near vectors and others by products of all with all; with `algorithm`
/// `nested_loop`, all with all in any case. `directory` is for up to 16 dimensions there: `auto`
/// leaves more of them to the CPU, and `cuda` refuses them. Vectors that exceed the memory of the
/// GPU, or `device_memory_max`, are joined in blocks, each pair of blocks once; besides, the GPU
/// needs about 30 MB for pairs. The pairs of a block are collected, up to half of the bytes of the
/// vectors or 16 MB; this holds for each of up to three blocks, and does not count as `memory_max`.
/// A block of more pairs is put into four. Several GPUs share the blocks, of which there are
/// several for each GPU. A GPU that is missing, full or lost is left; the other GPUs, or else the
/// CPU, find the pairs that are missing.
///
/// # Examples
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, EpsilonJoin, Generate, VectorDistribution};
///
/// let mut graph = Graph::new();
/// let vectors = Generate::vectors(2, VectorDistribution::Clusters).clusters(1).items(100);
/// let vectors = graph.add("vectors", vectors);
/// let near = graph.add_after(vectors, "near", EpsilonJoin::new(0.5));
/// let (sink, rows) = Collect::new();
/// graph.add_after(near, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// assert_eq!(rows.rows(), 100 * 99 / 2, "all are near");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters]
pub struct EpsilonJoin {
    /// Maximum distance of a pair, at least 0.
    #[schemars(range(min = 0.0))]
    pub(crate) epsilon: f64,
    /// Output: pairs, their number, the number of partners of each vector, or the vectors without
    /// an earlier partner.
    #[default]
    pub(crate) output: EpsilonOutput,
    /// Algorithm that finds the pairs.
    #[default]
    pub(crate) algorithm: EpsilonAlgorithm,
    /// Device that finds the pairs: `auto` (the first GPU, if there is one and it pays, and further
    /// GPUs where these pay), `cpu`, `cuda` or `cuda:1` (that GPU; an error if it is missing or
    /// fails), `cuda:all` (all GPUs), or several GPUs, such as ["cuda:0", "cuda:1"]. With several
    /// GPUs, the others take over the work of one that fails, and the failure of the last one is an
    /// error. A streaming join runs on the CPU.
    #[default]
    pub(crate) device: Device,
    /// Maximum bytes of vectors in the memory of a GPU; by default, all memory that is free. More
    /// vectors are joined in blocks, one pair of blocks after the other.
    #[range(1..)]
    pub(crate) device_memory_max: Option<usize>,
    /// Ids of the rows, of any type: a column or an expression. When left out, the column `id`, or
    /// else the position of the row in its input, from 0.
    pub(crate) id: Option<String>,
    /// Vectors: a column or an expression that is a list of numbers, or a list of columns or
    /// expressions, one for each coordinate.
    #[default("vector")]
    pub(crate) vector: Names,
    /// Coordinates of each vector. When left out, the type or the first vector says so.
    #[schemars(range(min = 1, max = 4_096))]
    pub(crate) dims: Option<u32>,
    /// Columns of the input to carry into the rows, or `*` for all: column `x` becomes `left_x` and
    /// `right_x` of a pair.
    #[default]
    #[setter(each)]
    pub(crate) carry: Names,
    /// Window of a streaming join, for one input: {"vectors": 100000} or {"seconds": 60}. A pair
    /// comes out when its newer vector arrives. Without a window, all vectors are joined when the
    /// inputs have ended.
    pub(crate) window: Option<VectorWindow>,
    /// Action for a row that cannot be used: a null, a coordinate that is infinite or not a number,
    /// a vector of another length, or an expression without a value. When left out, `fail`.
    pub(crate) on_error: Option<OnError>,
    /// Begin with the vectors of the window that this file holds, written by `snapshot`; the stage
    /// needs the same window and vectors of the same length.
    pub(crate) restore: Option<PathBuf>,
    /// When the file of `restore` is not there: `fail`, or `begin` without a state, as on the first
    /// day of a pipeline that goes on with its own state.
    #[default]
    pub(crate) missing: MissingState,
    /// Write the vectors of the window to this file when the input has ended, as a whole or not at
    /// all: the file keeps its content until then. When they cannot be written, the rows go on all
    /// the same, and the run fails at its end. For a `window` without `carry`.
    pub(crate) snapshot: Option<PathBuf>,
    /// Maximum bytes of the vectors, their carried columns and the directory.
    /// They are reserved from the memory of the pipeline at the start, which must have them. When
    /// left out, as much as the stage comes to need and the other stages leave, at most 16 GiB.
    #[range(1..)]
    pub(crate) memory_max: Option<usize>,
    #[serde(skip)]
    pub(crate) tuning: Tuning,
}

/// Most bytes that the stage takes when no number is given: 16 GiB.
pub(crate) const MEMORY_MAX: usize = 1 << 34;

impl EpsilonJoin {
    #[cfg(test)]
    pub(crate) fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }
}

impl Configured for EpsilonJoin {
    const NAME: &'static str = "epsilon_join";
    const SUMMARY: &'static str = "find all pairs of vectors within a distance, exactly";
}
