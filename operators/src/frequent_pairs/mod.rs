//! Frequent pairs and triples: items that at least a given number of transactions hold together.
//!
//! ```text
//! transactions ──► collect: rows of item numbers ──► blocks, transposed ──► tid lists by support
//!                    └─► prepare: tasks ──► chunk ──► count ──► chunk, pairs ──► rows
//! ```
//!
//! **Collection.** Items are numbered in the order of their first occurrence. A block of about a
//! million items is transposed while the next block is collected: the transposed block has, for
//! each item of the block, the transactions that hold that item. When the stream or a window ends,
//! the lists of all blocks are joined to one *tid list* for each frequent item, ordered by
//! descending support; each core joins the lists of a part of the items.
//!
//! **Windows.** No block crosses the border of a *pane*, the distance between the beginnings of two
//! windows. A window is counted when all blocks of its panes are transposed; a pane that belongs to
//! no later window is dropped. Items that occur in no block any more are forgotten from time to
//! time.
//!
//! **Counting.** The pairs of items form a triangle, which is divided into tasks: a block of
//! columns in one [layout](Layout) and a range of rows. Tasks are independent, so several cores
//! count them. Only pairs that reach the support leave a task, so the memory is that of the input
//! and of one block.
//!
//! **Triples.** When the pairs of a window have been counted, each frequent pair is a row: the
//! transactions that hold both items are counted with the items that come before both items. Only
//! an item that is frequent with both items of the pair is a candidate, and a pair without a
//! candidate in a block of columns is not counted in that block (Agrawal, Srikant, *Fast Algorithms
//! for Mining Association Rules*, VLDB 1994, §2.1.1).
//!
//! **GPU.** A device counts tiles of 128 by 128 items, some hundreds of tiles in a task, over rows
//! of bits or batmaps that the device receives once for each window. When the pairs of a tile do
//! not fit the answer, the tile is submitted again. `auto` chooses the device or the CPU for a
//! whole window, by modelled cost; a CPU answers the same tasks when the device is lost. Triples
//! are counted on the CPU.
//!
//! Source: Amossen, Pagh, *A New Data Layout For Set Intersection on GPUs*, IPDPS 2011. Departure
//! from the paper: the additional layout `sliced` counts 512 columns at once (see
//! [`supports`](trommel_kernels::supports)).
//!
//! | folder or file | contents |
//! |---|---|
//! | `parameters` | the parameters, their checks, and the parts that they make |
//! | `data` | transactions on their way from a batch to tid lists |
//! | `plan` | tasks, their layouts and their costs |
//! | `prepare` | PREPARE: collects transactions, then makes tasks |
//! | `answer` | KERNEL: the chunk, and its answer on the CPU |
//! | `device` | the choice of a GPU, and tasks in flight there |
//! | `rows` | COLLECT: rows of pairs and triples |

mod answer;
mod data;
mod device;
mod parameters;
mod plan;
mod prepare;
mod rows;
#[cfg(test)]
mod stand_in_tests;
#[cfg(test)]
mod tests;

pub use self::parameters::operator::FrequentPairs;
pub use self::parameters::options::{Layout, Measure, PairWindow, Support, SupportError};
pub use crate::shared::state::{RestoreError, SnapshotFileError};
