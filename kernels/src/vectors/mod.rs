//! Epsilon joins of vectors: all pairs with a Euclidean distance of at most epsilon, exactly.
//!
//! A pair joins if the [`square`] of its distance, a sum in float64 in the order of the dimensions,
//! is at most [`Epsilon::square`]. Every step before that decision is a filter, and no filter loses
//! a pair: `filters` has the bounds and their proofs. So each level, and each division of the work,
//! finds the pairs that a loop over all pairs finds, bit for bit.
//!
//! A [`Directory`] has points in kd order, sixteen in a leaf, and boxes over leaves, sixteen in a
//! node:
//!
//! ```text
//! boxes of boxes        [          node          ]     a test is a point and a node: its distances
//!                        /     |     ..     \          to sixteen boxes at once, or to the sixteen
//! boxes of leaves       [node]  [node]   [node]        points of a leaf
//!                        / | \                         int16: a word is two dimensions
//! leaves of 16 points   [.][.][.] ..                   float32: a word is one
//!
//! root tests of 256 points ─► tests ─► .. ─► tests with leaves ─► candidates ─► float64 ─► sink
//!                             (lists of words `node, point`, compressed by the bits of a register)
//! ```
//!
//! All points of a part descend together, level by level, in flat lists: no branch depends on the
//! data, and lists have a bounded length, because the lowest level that has a full batch is
//! processed first. So a search can stop after each pair and continue from there.
//!
//! A [`Join`] of a directory with itself searches, for each point, its own leaf and all later
//! leaves; a join of two directories looks up the points of the smaller directory in the larger
//! directory. A part is up to sixteen neighbouring leaves, and threads can take parts in any order.
//! If all points of a child are within epsilon of a point, a sink that only counts takes these
//! pairs without tests, so that duplicates are not compared. A sink that needs only some pairs of
//! each point ends the lookup of a point when the sink has enough pairs.
//!
//! Above 16 dimensions `filters` maps each point to few coordinates, without stretching a distance,
//! and the directory orders these coordinates. Candidates are then sifted in float32, dimension by
//! dimension until the sum of a pair is too large, before float64 decides the remaining pairs.
//!
//! If points of up to three dimensions are only joined with themselves, the directory has strips in
//! place of boxes (see `strips`), unless a strip has too many points or its windows are too long.
//! On clusters in two dimensions strips take a quarter of the time.
//!
//! A [`NestedLoop`] compares all points with all points. [`Algorithm::choose`] says when the nested
//! loop is faster.
//!
//! Source: Böhm, Noll, Plant, Zherdin, *Index-supported Similarity Join on Graphics Processors*,
//! BTW 2009: §4 (nested loop), §5 (directory). Departures from the paper:
//!
//! - The directory of the paper has a level for each of the first three dimensions; this directory
//!   splits the widest dimension of each node, so that the tree uses all dimensions and adapts to
//!   clusters.
//! - In the paper, all threads of a group visit a page if one thread needs the page; here each
//!   point visits only the pages that the point needs.
//! - The filter of pages compares boxes in all dimensions; the paper compares one dimension.
//! - Decisions are exact; the paper computes in float32.
//! - The paper recommends principal components as a step before the join; this module finds the
//!   components, and the norm of the residual is a coordinate too.
//!
//! | file | contents |
//! |---|---|
//! | `rows`, `epsilon` | vectors, and the search for values that are not finite; the threshold, and the exact distance |
//! | `levels` | sixteen points in registers, as a trait, and a file for each level |
//! | `filters` | stored coordinates and the limits of filters with their proofs (`form`), principal components and the norm of the residual (`principal`), the decision of candidates (`candidates`) |
//! | `directory` | points under boxes (`boxes`), in the kd order (`order`, `select`) of the tree of a sample (`tree`) |
//! | `strips` | windows of leaves in strips of points of few dimensions: `grid`, order (`filing`), search (`sweep`) |
//! | `construction` | a directory made by several threads |
//! | `search` | the search of a part, by batches of tests (`batch`) |
//! | `nested_loop`, `plan` | all points with all points; the choice between the algorithms |
//! | `sink` | receivers of pairs |
//! | `cells` | cells of space with halos, which divide a join over workers |

mod cells;
mod construction;
mod directory;
mod epsilon;
mod filters;
mod levels;
mod nested_loop;
mod plan;
mod rows;
mod search;
mod sink;
mod strips;
#[cfg(test)]
mod tests;

pub use self::cells::VectorCells;
pub use self::construction::{BuildTask, Construction};
pub use self::directory::Directory;
pub use self::epsilon::{Epsilon, square};
pub use self::nested_loop::{NestedLoop, Scan};
pub use self::plan::Algorithm;
pub use self::rows::{Vectors, first_not_finite};
pub use self::search::{Join, Search};
pub use self::sink::{FoundPairs, Pair, PairCount, Partners, Side, Sink};
