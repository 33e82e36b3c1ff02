//! Epsilon joins of vectors on a device: all pairs of vectors that are at most epsilon apart, exact
//! to the last bit.
//!
//! The square of a distance is the float64 sum, in the order of the dimensions, of the squares of
//! the differences of float32 numbers, each operation rounded on its own. A pair is found if this
//! sum is at most the square of epsilon. So every method, filter, order and cut into parts finds
//! the pairs that a plain loop finds.
//!
//! ```text
//! values ──load──► DeviceVectors ──units──► JoinUnit ..  (parts of them in several slots)
//!                       │                       │
//!                       └───────► Slot ──submit─┴─► Flight ──collect──► Slot: pairs, units left
//! ```
//!
//! | [`Method`] | work |
//! |---|---|
//! | [`Method::NestedLoop`] | all pairs: the baseline of the paper |
//! | [`Method::Directory`] | the vectors of near pages: the index of the paper, sorted on the host |
//! | [`Method::Boxes`] | 32 x 32 products of near leaves: order and boxes are made on the device |
//! | [`Method::Tiles`] | all pairs as products of bytes, then candidates: for many dimensions |
//!
//! Matches go to a buffer of fixed room. A unit whose match finds no room returns as unfinished,
//! and the caller submits it again; the unit continues where it stopped, so that no match is lost
//! or found twice, and no kernel estimates or counts first.
//!
//! Source: Böhm, Noll, Plant, Zherdin, *Index-supported Similarity Join on Graphics Processors*,
//! BTW 2009, figures 3 and 5. Departures: `kernels/cuda/vector_loops.cuh`; boxes, their order, and
//! their filter on tensor cores are ours.
//!
//! | file | contents |
//! |---|---|
//! | `pair` | near pairs and units of work |
//! | `question` | the question with bounds for float32, and their proof |
//! | `launch` | methods, filters, entry points and grids |
//! | `published/directory` | the directory of quantiles |
//! | `boxed` | order and boxes, and the proof of the filter |
//! | `tiled` | rows of bytes, and the proof of their filter |
//! | `stored` | vectors on a device |
//! | `join` | the buffers of a part of a join, and its steps |

mod boxed;
mod join;
mod launch;
mod pair;
mod published;
mod question;
mod stored;
mod tiled;

pub use self::join::{JoinAnswered, JoinJob, JoinKept, JoinLimits, VectorJoin};
pub use self::launch::{Filter, Method, Policy};
pub use self::pair::{JoinUnit, NearPair};
pub use self::question::Answer;
pub use self::stored::{DeviceVectors, VectorLimits};

/// The most dimensions of a vector.
pub const DIMS_MAX: usize = 4096;

#[cfg(doc)]
use super::Slot;
