//! Tiles of pairs of items.

use std::ops::Range;

/// Items of each side of a tile of rows of bits. `supports.cu` has the same number.
pub const TILE: u32 = 128;

/// Items of each side of a tile of batmaps. `batmaps.cu` has the same number.
pub const MAP_TILE: u32 = 64;

/// Tiles of each side of a square whose rows stay in the second-level cache: 32 tiles of rows, 64
/// MiB for 125,000 transactions.
const SQUARE: u32 = 16;

/// The pairs of `side` left items from `left * side` on and `side` right items from `right * side`
/// on, where `side` is [`TILE`] or [`MAP_TILE`]. A tile on the diagonal has each pair once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Tile {
    /// The number of the tile of left items, at most `right`.
    pub left: u32,
    /// The number of the tile of right items.
    pub right: u32,
}

/// The tiles of all pairs of `items` items, `side` on each side, in an order in which neighbours
/// share items.
///
/// # Examples
///
/// ```
/// use trommel_kernels::cuda::supports::{TILE, Tile, tiles};
///
/// assert_eq!(tiles(TILE, TILE).collect::<Vec<_>>(), [Tile { left: 0, right: 0 }]);
/// assert_eq!(tiles(TILE + 1, TILE).count(), 3);
/// ```
///
/// # Panics
///
/// If `side` is 0.
pub fn tiles(items: u32, side: u32) -> impl Iterator<Item = Tile> {
    tiles_of_part(0..items, side)
}

/// The tiles of all pairs of an item of `part` with an item that is not after the part, in an order
/// in which neighbours share items. Parts that follow each other and begin at multiples of `side`
/// have together the tiles of all their items.
///
/// # Examples
///
/// ```
/// use trommel_kernels::cuda::supports::{TILE, tiles, tiles_of_part};
///
/// let parts = [0..2 * TILE, 2 * TILE..5 * TILE];
/// let tiles_of_parts = parts.map(|part| tiles_of_part(part, TILE).count());
/// assert_eq!(tiles_of_parts.iter().sum::<usize>(), tiles(5 * TILE, TILE).count());
/// ```
///
/// # Panics
///
/// If `side` is 0, or the part does not begin at a multiple of `side`.
pub fn tiles_of_part(part: Range<u32>, side: u32) -> impl Iterator<Item = Tile> {
    assert!(part.start.is_multiple_of(side), "a part from {} on: tiles of {side}", part.start);
    let (begin, end) = (part.start / side, part.end.div_ceil(side));
    let square = move |begin: u32| begin..end.min(begin.saturating_add(SQUARE));
    (0..end).step_by(SQUARE as usize).flat_map(move |top| {
        let firsts = (begin..end).step_by(SQUARE as usize);
        firsts.filter(move |first| square(*first).end > top).flat_map(move |first| {
            square(top).flat_map(move |left| {
                square(first)
                    .filter_map(move |right| (left <= right).then_some(Tile { left, right }))
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tiles_are_the_upper_triangle_each_once() {
        for sides in [0, 1, 2, 15, 16, 17, 33] {
            let all: Vec<Tile> = tiles(sides * TILE, TILE).collect();
            let distinct: BTreeSet<Tile> = all.iter().copied().collect();
            assert_eq!(all.len(), distinct.len());
            assert_eq!(all.len(), (sides * (sides + 1) / 2) as usize);
            assert!(all.iter().all(|tile| tile.left <= tile.right && tile.right < sides));
        }
    }

    #[test]
    fn tiles_of_parts_are_the_columns_of_their_items() {
        let all: BTreeSet<Tile> = tiles(40 * TILE - 5, TILE).collect();
        let ends = [0, 3, 20, 20, 39, 40].map(|tile| tile * TILE);
        let parts = ends.windows(2).flat_map(|ends| tiles_of_part(ends[0]..ends[1], TILE));
        let parts: Vec<Tile> = parts.collect();
        assert_eq!(parts.len(), all.len());
        assert_eq!(parts.into_iter().collect::<BTreeSet<_>>(), all);
        assert!(tiles_of_part(3 * TILE..9 * TILE, TILE).all(|tile| (3..9).contains(&tile.right)));
    }
}
