//! The supports of all pairs of items on a device: the contract of [`crate::supports`], a chunk of
//! tiles at a time.
//!
//! Tid lists go to the device once, in 2 bytes for each tid, and become rows of bits there
//! ([`BitRows`]); a chunk of [`Tile`]s goes through a [`Slot`]:
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
//! items with the rows of its right items, in registers, and compares them with the least support
//! there. Then it reserves places for all frequent pairs of the tile; if the pairs do not fit, the
//! whole tile returns as unfinished. So a slot has room for at least the pairs of one tile
//! ([`PAIRS_MIN`]). The order of pairs is unspecified.
//!
//! [`Units`] name the units that count: tensor cores multiply bits, with `and` and population
//! count as product and sum; the integer units do the same word by word.
//!
//! Batmaps ([`crate::batmap`]) give the same pairs: [`DeviceMaps`] replace rows, and [`MapPairs`]
//! replace [`TilePairs`], with tiles of 64 items. The host looks up failed insertions when pairs
//! are read; the device writes each pair whose support failed insertions could complete.
//!
//! Where items are in few transactions, most products are of zeros. [`RowPairs`] count in the
//! transactions themselves ([`SparseRows`]): a block has a counter for each left item of a
//! [`Strip`] and adds 1 for each item that precedes the right item in a transaction. The work is
//! the sum of the supports. All threads of a block share the tail of a long transaction.
//!
//! Kernels: `kernels/cuda/supports.cuh` (tiles), `group_tiles.cuh` (tiles by warp groups),
//! `supports.cu` (rows), `batmaps.cu`, `sparse.cu`. Sources: Fang, Lu, Xiao, He, Luo, *Frequent
//! Itemset Mining on Graphics Processors*, DaMoN 2009 (rows of bits); Amossen, Pagh, *A New Data
//! Layout for Set Intersection on GPUs*, IPDPS 2011, §III-B (batmaps). Departures: each thread sums
//! several pairs in registers, tensor cores, bounded output.
//!
//! | file | contents |
//! |---|---|
//! | `lists` | tid lists by blocks of transactions |
//! | `rows` | rows of bits on a device, and the kernel that makes them |
//! | `tile` | tiles of pairs |
//! | `launch` | units, entry points and grids |
//! | `chunk` | the buffers of a chunk of tiles |
//! | `sparse_rows`, `strip` | transactions on a device, and strips of pairs |
//! | `pairs`, `row_pairs` | the steps of a chunk, of rows and of sparse rows |
//! | `published` | `maps`, batmaps on a device, and `map_pairs`, the steps of a chunk of batmaps |

mod chunk;
mod launch;
mod lists;
mod pairs;
mod published;
mod row_pairs;
mod rows;
mod sparse_rows;
mod strip;
mod tile;

pub use self::chunk::PairLimits;
pub use self::launch::{BLOCKS_MAX, Policy, Units};
pub use self::lists::{BLOCK, TidBlocks};
pub use self::pairs::{Answered, Job, Kept, PAIRS_MIN, TilePairs};
pub use self::published::{DeviceMaps, MAP_PAIRS_MIN, MapJob, MapPairs, MapsAnswered, MapsKept};
pub use self::row_pairs::{RowJob, RowPairLimits, RowPairs, RowsAnswered, RowsKept};
pub use self::rows::{BitRows, RowLimits};
pub use self::sparse_rows::SparseRows;
pub use self::strip::{STRIP_WIDTH, Strip, strip_width, strips};
pub use self::tile::{MAP_TILE, TILE, Tile, tiles, tiles_of_part};

#[cfg(doc)]
use super::Slot;
