//! Vectors of many dimensions as rows of signed bytes, for products of warp groups.
//!
//! ```text
//! values ─► least and largest number ─► bytes and heights ─► candidates of tiles ─► pairs
//! ```
//!
//! # The filter loses no pair
//!
//! With the centre c of all numbers and a scale s, a coordinate x becomes (x - c) s and then the
//! nearest byte from -127 to 127, whatever c and s are. Let p be a vector in units of a byte, q its
//! bytes, and m at least the distance of p and q, which is measured. If two vectors are at most
//! epsilon apart, then |q - q'| <= epsilon s + m + m', and because squares are convex
//!
//! ```text
//! |q|^2 + |q'|^2 - 2 q q' <= (epsilon s + m + m')^2
//!                         <= (epsilon s + 2 m)^2 / 2 + (epsilon s + 2 m')^2 / 2
//! ```
//!
//! So q q' >= h + h' with the height h = |q|^2 / 2 - (epsilon s + 2 m)^2 / 4 of each vector, rounded
//! down to a whole number. Products of bytes are whole numbers and exact: the sum of 4,096 products
//! is below 2^27, and heights are cut to at most 2^30. Roundings of m: a difference and a product
//! round p by at most 2^-23 of it, so a coordinate within the bytes is rounded by 2^-16, and the
//! norm of at most 4,096 such roundings is 2^-10; coordinates past the bytes, and the sum of
//! squares with its root, are rounded by a share of 2^-11. The kernel adds 2^-8 and 2^-10. An m
//! that overflows makes the height the least number, which lets all pairs of the vector pass.
//!
//! Most tiles end after a test of the largest q q' of a row against h and the least h' of the tile,
//! which is at most the h' of each pair of the tile.
//!
//! Candidates are decided in float64 in the order of the dimensions; a lane takes a candidate.

#![expect(unsafe_code, reason = "kernels that make the rows")]

use std::ops::Range;
use std::sync::Arc;

use super::launch::{ORDER, TILE_BLOCKS_MAX};
use super::pair::JoinUnit;
use super::question::Question;
use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Memory, Stream};
use crate::cuda::flights::{Kernels, Primitive};
use crate::memory::Plain;

/// Right rows of a tile.
const TILE: usize = 128;
/// Rows that fill up the last block.
const BLOCK: usize = 256;
/// Bytes of a row in a panel.
const PANEL: usize = 128;
/// Tiles of a strip.
const STRIP: usize = 64;
/// The mark of units of 16 x 128 pairs.
const BLOCK_UNIT: u32 = 1 << 31;
const BLOCK_ROWS: usize = 16;
/// Maximum units of 16 x 128 pairs that a launch leaves unfinished, in addition to strips: the
/// tiles of the sixteen warps of each block that have been copied when the block notices that the
/// room is used up.
pub(super) const BLOCKS_LEFT: usize = TILE_BLOCKS_MAX as usize * 16 * 8;

/// Sixteen bytes, which a kernel copies at once.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
struct Chunk([u32; 4]);

// SAFETY: four `u32`, as `uint4` of the kernels, without padding.
unsafe impl Plain for Chunk {}

/// Number of groups of four warps of a block: four, or two where shared memory has no room for the
/// rows of four.
pub(super) fn groups(dims: usize) -> usize {
    if dims.div_ceil(PANEL) <= 3 { 4 } else { 2 }
}

/// Shared memory of a block: `TileShared` of `vector_tiles.cuh`, and its rows.
pub(super) fn shared_bytes(dims: usize) -> u32 {
    let rows = groups(dims) * 64 * PANEL * dims.div_ceil(PANEL);
    102_400 + u32::try_from(rows).expect("at most 7 panels")
}

/// Room for rows of bytes.
#[derive(Debug)]
pub(super) struct TiledRoom {
    panels: DeviceBuffer<Chunk>,
    heights: DeviceBuffer<u32>,
    columns: DeviceBuffer<u32>,
    extent: DeviceBuffer<u32>,
}

/// The rows as an argument of kernels: `ByteRows` of `vector_tiles.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct TiledArgument {
    panels: DevicePointer<Chunk>,
    heights: DevicePointer<u32>,
    columns: DevicePointer<u32>,
    extent: DevicePointer<u32>,
    values: DevicePointer<f32>,
    len: u32,
    dims: u32,
    panel_count: u32,
}

fn narrow(len: usize) -> u32 {
    u32::try_from(len).expect("at most 2^31 vectors")
}

/// Number of rows, including the rows that fill up the last block.
fn rows(len: usize) -> usize {
    len.max(1).next_multiple_of(BLOCK)
}

/// Numbers of the columns of all tiles: the negative heights of a tile, and four numbers, the first
/// of which is the largest of them.
fn columns(len: usize) -> usize {
    rows(len) / TILE * (TILE + 4)
}

/// Chunks of all panels.
fn chunks(len: usize, dims: usize) -> usize {
    rows(len) * dims.div_ceil(PANEL) * PANEL / size_of::<Chunk>()
}

impl TiledRoom {
    pub(super) fn new(memory: &Arc<Memory>, len: usize, dims: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            panels: memory.device_buffer(chunks(len, dims))?,
            heights: memory.device_buffer(rows(len))?,
            columns: memory.device_buffer(columns(len))?,
            extent: memory.device_buffer(2)?,
        })
    }

    /// The bytes of the room for `len` vectors of `dims` dimensions.
    pub(super) fn bytes(len: usize, dims: usize) -> usize {
        chunks(len, dims) * size_of::<Chunk>() + (rows(len) + columns(len) + 2) * size_of::<u32>()
    }

    /// Queues the kernels that make the rows, for values that are on the device when the stream
    /// begins these kernels.
    pub(super) fn queue<P: Primitive>(
        &self,
        kernels: &Kernels<P>,
        stream: &Stream,
        values: DevicePointer<f32>,
        [len, dims]: [usize; 2],
        question: &Question,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the room until the stream is done, and no join uses it.
        unsafe { stream.clear(&self.extent) }?;
        // SAFETY: as above.
        unsafe { stream.clear(&self.columns) }?;
        let device = kernels.device().properties();
        let numbers = (len * dims) as u64;
        let blocks = narrow((len * dims).div_ceil(4096).min(1 << 20));
        let launch = ORDER.with_blocks_max(8).launch("vectors_extent", device, blocks, 0);
        // SAFETY: the arguments are of the kernel's types, and there are as many values; the room
        // stays as above.
        unsafe { kernels.queue(stream, launch, (values, numbers, self.extent.pointer())) }?;
        let launch = ORDER.launch("vectors_bytes", device, narrow(rows(len) / 8), 0);
        let bytes = self.argument(values, len, dims);
        let arguments = (bytes, narrow(rows(len)), question.limit.sqrt());
        // SAFETY: as above; there is room for `rows(len)` rows.
        unsafe { kernels.queue(stream, launch, arguments) }
    }

    pub(super) fn argument(
        &self,
        values: DevicePointer<f32>,
        len: usize,
        dims: usize,
    ) -> TiledArgument {
        TiledArgument {
            panels: self.panels.pointer(),
            heights: self.heights.pointer(),
            columns: self.columns.pointer(),
            extent: self.extent.pointer(),
            values,
            len: narrow(len),
            dims: narrow(dims),
            panel_count: narrow(dims.div_ceil(PANEL)),
        }
    }
}

/// All strips of the self-join of `len` vectors.
pub(super) fn strips(len: usize, dims: usize) -> Vec<JoinUnit> {
    strips_of(len, 0..len, dims)
}

/// The strips of the first `left` vectors with the vectors `right`; strips at the edges also have
/// neighbouring vectors. Strips of the same columns follow each other, and find the columns in the
/// cache.
pub(super) fn strips_of(left: usize, right: Range<usize>, dims: usize) -> Vec<JoinUnit> {
    let block = groups(dims) * 64;
    let tiles = right.end.div_ceil(TILE);
    let mut units = Vec::new();
    for begin in (right.start / TILE..tiles).step_by(STRIP) {
        let end = tiles.min(begin + STRIP);
        for left in 0..left.div_ceil(block) {
            let at = begin.max(left * block / TILE);
            if at < end {
                units.push(JoinUnit { left: narrow(left), at: narrow(at), skip: narrow(end) });
            }
        }
    }
    units
}

/// Whether a unit is a strip, and not 16 x 128 pairs.
pub(super) fn is_strip(unit: &JoinUnit) -> bool {
    unit.left & BLOCK_UNIT == 0
}

/// Whether a unit belongs to a join of `len` vectors.
pub(super) fn is_unit(unit: &JoinUnit, len: usize, dims: usize) -> bool {
    let tiles = len.div_ceil(TILE);
    let (left, at) = ((unit.left & !BLOCK_UNIT) as usize, unit.at as usize);
    if is_strip(unit) {
        let end = unit.skip as usize;
        left < len.div_ceil(groups(dims) * 64) && at <= end && end <= tiles
    } else {
        left < rows(len) / BLOCK_ROWS && at < tiles
    }
}

#[cfg(test)]
mod tests {
    use super::super::launch::TILE_DIMS_MAX;
    use super::*;

    #[test]
    fn strips_have_each_tile_of_the_upper_half_once() {
        for (len, dims) in [(1_usize, 5), (1000, 384), (20_000, 64), (10_000, 700)] {
            let (block, tiles) = (groups(dims) * 64, len.div_ceil(TILE));
            let mut seen = vec![0; len.div_ceil(block) * tiles];
            for unit in strips(len, dims) {
                assert!(is_strip(&unit) && is_unit(&unit, len, dims));
                for tile in unit.at..unit.skip {
                    seen[unit.left as usize * tiles + tile as usize] += 1;
                }
            }
            for (at, times) in seen.iter().enumerate() {
                let (left, tile) = (at / tiles, at % tiles);
                assert_eq!(*times, usize::from((tile + 1) * TILE > left * block), "{len} {at}");
            }
        }
    }

    #[test]
    fn strips_of_two_sides_have_all_of_their_tiles_once() {
        for (left, right, dims) in [(1_usize, 1_usize, 5), (300, 9_000, 384), (9_000, 700, 700)] {
            let (block, tiles) = (groups(dims) * 64, (left + right).div_ceil(TILE));
            let mut seen = vec![0; left.div_ceil(block) * tiles];
            for unit in strips_of(left, left..left + right, dims) {
                assert!(is_unit(&unit, left + right, dims));
                for tile in unit.at..unit.skip {
                    seen[unit.left as usize * tiles + tile as usize] += 1;
                }
            }
            for (at, times) in seen.iter().enumerate() {
                let (row, tile) = (at / tiles, at % tiles);
                let is_right = (tile + 1) * TILE > left && (tile + 1) * TILE > row * block;
                assert_eq!(*times, usize::from(is_right), "{left} {right} {at}");
            }
        }
    }

    #[test]
    fn blocks_have_the_shared_memory_of_a_multiprocessor() {
        for dims in [1, 128, 129, 384, 385, TILE_DIMS_MAX] {
            assert!(shared_bytes(dims) <= 227 << 10, "{dims}");
        }
    }
}
