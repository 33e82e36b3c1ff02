//! Frequent pairs and triples: items that at least a given number of transactions hold together.
//!
//! ```text
//! transactions ──► collect: rows of item numbers ──► blocks, transposed ──► tid lists by support
//!                    └─► prepare: tasks ──► chunk ──► count ──► chunk, pairs ──► rows
//! ```
//!
//! **Collection.** Items are numbered in the order of their first occurrence. A block of about a
//! million items is transposed while the next one is collected: for each item of the block, the
//! transactions that hold it. When the stream or a window ends, the lists of all blocks are joined
//! to one *tid list* for each frequent item, ordered by descending support; several cores join
//! some items each.
//!
//! **Windows.** No block crosses the border of a *pane*, the distance between the beginnings of two
//! windows. A window is counted when all blocks of its panes are transposed; panes that no later
//! window has are dropped. Items that no block has any more are forgotten from time to time.
//!
//! **Counting.** The pairs of items form a triangle, which is divided into tasks: a block of
//! columns in one [layout](Layout) and a range of rows. Tasks are independent, so several cores
//! count them. Only pairs that reach the support leave a task: memory is that of the input and
//! of a block.
//!
//! **Triples.** When the pairs of a window have been counted, each frequent pair is a row: its
//! common transactions are counted with the items before both. Only items that are frequent with
//! both are candidates, and a pair without a candidate in a block of columns is not counted there
//! (Agrawal, Srikant, *Fast Algorithms for Mining Association Rules*, VLDB 1994, §2.1.1).
//!
//! **GPU.** A device counts tiles of 128 by 128 items, some hundreds a task, over rows of bits or
//! batmaps that it has received once a window. Pairs of tiles that do not fit the answer come when
//! these are asked again. `auto` chooses the device or the CPU for a whole window, by modelled
//! cost; a CPU answers the same tasks when the device is lost. Triples are counted on the CPU.
//!
//! Source: Amossen, Pagh, *A New Data Layout For Set Intersection on GPUs*, IPDPS 2011. Departure:
//! the layout `sliced`, which is ours, counts 512 columns at once
//! (see [`supports`](trommel_kernels::supports)).
//!
//! | file | contents |
//! |---|---|
//! | `operator`, `options`, `bind` | the parameters, their checks, and the parts that they make |
//! | `collector` | transactions in blocks |
//! | `transposed`, `panes` | a block, transposed; blocks by pane |
//! | `joining`, `vertical` | blocks to tid lists; the tid lists of a window |
//! | `plan`, `cost` | tasks and their layouts; measured costs |
//! | `columns` | blocks of columns in their layouts |
//! | `pair_rows`, `triples` | frequent pairs as rows; the triples of a block of columns |
//! | `device`, `device_form`, `form`, `tiles`, `flights` | the choice of a GPU; forms of data there and on a CPU; tasks of tiles; tasks in flight |
//! | `stored` | the transactions of the last window as bytes |
//! | `prepare`, `chunk`, `count`, `collect` | the parts of the operator |
//! | `tuning` | sizes that are no parameters |

mod bind;
mod chunk;
mod collect;
mod collector;
mod columns;
mod cost;
mod count;
mod device;
mod device_form;
mod flights;
mod form;
mod joining;
mod operator;
mod options;
mod pair_rows;
mod panes;
mod plan;
mod prepare;
#[cfg(test)]
mod stand_in_tests;
mod stored;
#[cfg(test)]
mod tests;
mod tiles;
mod transposed;
mod triples;
mod tuning;
mod vertical;

pub use self::operator::FrequentPairs;
pub use self::options::{Layout, Measure, PairWindow, Support, SupportError};
pub use crate::state::{RestoreError, SnapshotFileError};
