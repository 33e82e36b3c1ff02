//! The supports of all pairs of items on a device: the contract of [`crate::supports`], a chunk of
//! tiles at a time.
//!
//! Tid lists go to the device once, in 2 bytes a tid, and become rows of bits there ([`BitRows`]);
//! a chunk of [`Tile`]s goes through a [`Slot`]:
//!
//! ```text
//!            items 0..128       128..256
//!          ┌──────────────────┬──────────────┬───
//!   0..128 │ tile 0, 0: pairs │ tile 0, 1    │        left items: rows, right items: columns
//!          │ above the        │              │
//!          │ diagonal         │              │
//!          └──────────────────┼──────────────┼───
//!                             │ tile 1, 1    │
//!
//! Slot ──submit──► Flight ──collect──► Slot, with frequent pairs and unfinished tiles
//! ```
//!
//! A block of the device finds the 16,384 supports of a tile as the product of the rows of its left
//! items with those of its right items, in registers, and compares them with the least support
//! there. Then it reserves places for all frequent pairs of the tile; if they do not fit, the tile
//! comes back as unfinished, whole. So a slot has room for the pairs of one tile at least
//! ([`PAIRS_MIN`]). The order of pairs is unspecified.
//!
//! [`Units`] are those that count: tensor cores multiply bits, with `and` and population count as
//! product and sum; the integer units do the same word by word.
//!
//! Kernels: `kernels/cuda/supports.cu`. Source of the layout: Fang, Lu, Xiao, He, Luo, *Frequent
//! Itemset Mining on Graphics Processors*, DaMoN 2009. Departures: tiles in shared memory and
//! registers, tensor cores.
//!
//! | file | contents |
//! |---|---|
//! | `lists` | tid lists by blocks of transactions |
//! | `rows` | rows of bits on a device, and the kernel that makes them |
//! | `tile` | tiles of pairs |
//! | `launch` | units, entry points and grids |
//! | `pairs` | the buffers of a chunk, and its steps |

mod launch;
mod lists;
mod pairs;
mod rows;
mod tile;

pub use self::launch::{Policy, Units};
pub use self::lists::{BLOCK, TidBlocks};
pub use self::pairs::{Answered, Job, Kept, PAIRS_MIN, PairLimits, TilePairs};
pub use self::rows::{BitRows, RowLimits};
pub use self::tile::{TILE, Tile, tiles};

#[cfg(doc)]
use super::Slot;
