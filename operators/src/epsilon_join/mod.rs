//! Epsilon join: all pairs of vectors within a Euclidean distance, exactly.
//!
//! ```text
//! vectors ──► collected ──► directory: kd order, boxes ──► parts of 256 vectors ──► pairs
//!  PREPARE                  KERNELS, in rounds of tasks    KERNELS, side by side    COLLECT
//! ```
//!
//! When the inputs have ended, kernels put the vectors into a
//! [directory](trommel_kernels::vectors) for each input, together; `auto` leaves it if a sample of
//! many dimensions shows that it does not pay. Vectors of up to three dimensions of a single input
//! are in strips, a form of a directory that is only joined with itself. The join is cut into
//! parts of up to 256 vectors, which kernels search side by side. A chunk whose list of pairs is
//! full goes back to its kernel when the rows have been sent, so memory does not depend on the
//! number of pairs.
//!
//! On a device, the rows are put into square blocks, as large as its memory allows, and each block
//! is joined by the [CUDA kernels](trommel_kernels::cuda::vectors). A block is found as a whole or
//! not at all: when a device fails, the CPU joins all vectors and leaves out the pairs of the
//! blocks that were found.
//!
//! In a [stream](VectorWindow), each micro-batch is joined with itself and with the blocks of
//! earlier vectors of the window, which kernels merge beside that.
//!
//! Source: Böhm, Noll, Plant, Zherdin, *Index-supported Similarity Join on Graphics Processors*,
//! BTW 2009. Departures: a kd order over all dimensions and boxes at all levels in place of three
//! levels of quantiles (§5); the distance of a pair is decided in float64; results leave while the
//! join goes on.
//!
//! | file | contents |
//! |---|---|
//! | `operator`, `options`, `bind`, `rules` | the parameters, their checks, and the parts that they make |
//! | `side`, `building`, `built` | vectors while they are collected, while they are made ready, and then |
//! | `copies` | equal vectors, which are joined once |
//! | `join`, `answer` | a join as numbered parts; answers of chunks |
//! | `prepare`, `chunk`, `kernel`, `collect` | the parts of the operator |
//! | `stream`, `stored` | PREPARE of a stream; its window as bytes |
//! | `merging`, `gathering` | merges of its panes, and their first task |
//! | `device`, `cost`, `blocks` | the choice of a device, and the blocks that it joins |
//! | `job`, `stores`, `flights` | a block, vectors in the memory of a device, and blocks in flight |
//! | `error` | errors |
//! | `tuning` | sizes that are no parameters |

mod answer;
mod bind;
mod blocks;
mod building;
mod built;
mod chunk;
mod collect;
mod copies;
mod cost;
mod crowds;
mod device;
mod error;
mod flights;
mod gathering;
mod job;
mod join;
mod kernel;
mod merging;
mod operator;
mod options;
mod prepare;
mod rules;
mod side;
#[cfg(test)]
mod stand_in_tests;
mod stored;
mod stores;
mod stream;
#[cfg(test)]
mod tests;
mod tuning;
mod vectors;

pub use self::error::EpsilonJoinError;
pub use self::operator::EpsilonJoin;
pub use self::options::{EpsilonAlgorithm, EpsilonOutput, VectorWindow};
pub use trommel_kernels::vectors::VectorCells;
