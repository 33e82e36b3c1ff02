//! Tiles of pairs of items.

/// Items of each side of a tile of rows of bits. The same number: `supports.cu`.
pub const TILE: u32 = 128;

/// Items of each side of a tile of batmaps. The same number: `batmaps.cu`.
pub const MAP_TILE: u32 = 64;

/// Tiles of each side of a square whose rows stay in the second-level cache: 32 tiles of rows, 64
/// MiB for 125,000 transactions.
const SQUARE: u32 = 16;

/// The pairs of the left items `left * side..` and the right items `right * side..`, `side` of
/// each, which is [`TILE`] or [`MAP_TILE`]; of a tile on the diagonal, each pair once.
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
    let end = items.div_ceil(side);
    let squares = move |from| (from..end).step_by(SQUARE as usize);
    let square = move |begin: u32| begin..end.min(begin + SQUARE);
    squares(0).flat_map(move |top| {
        squares(top).flat_map(move |first| {
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
}
