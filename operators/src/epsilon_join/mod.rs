//! Epsilon join: all pairs of vectors within a Euclidean distance, exactly.
//!
//! ```text
//! vectors ──► collected ──► directory: kd order, boxes ──► parts of 256 vectors ──► pairs
//!  PREPARE                  KERNELS, in rounds of tasks    KERNELS, side by side    COLLECT
//! ```
//!
//! When the inputs have ended, all kernels together put the vectors of each input into a
//! [directory](trommel_kernels::vectors). With `auto`, the join drops the directories of vectors
//! with many dimensions if a sample shows that a directory does not pay. Vectors of up to three
//! dimensions of a single input are in strips, a form of a directory that is joined only with
//! itself. The join is cut into parts of up to 256 vectors, which kernels search side by side. A
//! chunk whose list of pairs is full returns to its kernel when the rows have been sent, so memory
//! does not depend on the number of pairs.
//!
//! On a device, the rows are divided into square blocks, as large as the memory of the device
//! allows, and the [CUDA kernels](trommel_kernels::cuda::vectors) join each block. The pairs of a
//! block are found as a whole or not at all: when a device fails, the CPU joins all vectors and
//! leaves out the pairs of the blocks that the device has completed.
//!
//! In a [stream](VectorWindow), each micro-batch is joined with itself and with the panes of
//! earlier vectors of the window. Meanwhile, kernels merge these panes.
//!
//! Source: Böhm, Noll, Plant, Zherdin, *Index-supported Similarity Join on Graphics Processors*,
//! BTW 2009. Departures from the paper: a kd order over all dimensions and boxes at all levels in
//! place of three levels of quantiles (§5); the distance of a pair is decided in float64; results
//! are sent while the join still runs.
//!
//! | folder or file | contents |
//! |---|---|
//! | `parameters` | the parameters, their checks, and the parts that they make |
//! | `data` | vectors of an input: collected, made ready, and ready |
//! | `plan` | costs of a join, and the blocks that a device joins |
//! | `prepare` | PREPARE: collects vectors, and cuts the join into chunks |
//! | `stream` | PREPARE of a stream: merges of its panes, and its state |
//! | `answer` | KERNEL: the chunk, and its answer on the CPU |
//! | `device` | the choice of a GPU, vectors in its memory, and blocks in flight |
//! | `rows` | COLLECT: rows of pairs, counts, partners and first vectors |

mod answer;
mod data;
mod device;
mod parameters;
mod plan;
mod prepare;
mod rows;
#[cfg(test)]
mod stand_in_tests;
mod stream;
#[cfg(test)]
mod tests;

pub use self::parameters::error::EpsilonJoinError;
pub use self::parameters::operator::EpsilonJoin;
pub use self::parameters::options::{EpsilonAlgorithm, EpsilonOutput, VectorWindow};
pub use trommel_kernels::vectors::VectorCells;
