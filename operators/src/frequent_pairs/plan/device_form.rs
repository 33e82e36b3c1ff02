//! Forms of the data of a window on a GPU.

use trommel_kernels::cuda::supports::{MAP_TILE, STRIP_WIDTH, Strip, TILE, Tile, strips, tiles};

use super::form::ColumnForm;
use crate::frequent_pairs::parameters::options::Layout;

/// Form of the data on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceForm {
    Batmap,
    Bitmap,
    Sparse,
    Tensor,
}

impl DeviceForm {
    /// The forms of a layout; empty if only a CPU counts in that layout.
    pub(crate) fn of(layout: Layout) -> &'static [Self] {
        match layout {
            Layout::Auto => &[Self::Tensor, Self::Sparse],
            Layout::Batmap => &[Self::Batmap],
            Layout::Bitmap => &[Self::Bitmap],
            Layout::Sparse => &[Self::Sparse],
            Layout::Tensor => &[Self::Tensor],
            Layout::Lists | Layout::Sliced | Layout::Triangle => &[],
        }
    }

    /// The form in which a CPU answers tasks for a device.
    pub(crate) fn on_cpu(self) -> ColumnForm {
        match self {
            Self::Batmap => ColumnForm::Batmap,
            Self::Bitmap => ColumnForm::Bitmap,
            Self::Sparse => ColumnForm::Sparse,
            Self::Tensor => ColumnForm::Sliced,
        }
    }

    /// The form of tasks that a CPU answers in the form `on_cpu`.
    pub(crate) fn of_task(on_cpu: ColumnForm) -> Self {
        match on_cpu {
            ColumnForm::Batmap => Self::Batmap,
            ColumnForm::Bitmap => Self::Bitmap,
            ColumnForm::Sparse => Self::Sparse,
            ColumnForm::Sliced => Self::Tensor,
            ColumnForm::Lists | ColumnForm::Triangle => unreachable!("no device has them"),
        }
    }

    /// Columns and rows of a tile.
    pub(crate) fn tile(self) -> [u32; 2] {
        match self {
            Self::Batmap => [MAP_TILE; 2],
            Self::Bitmap | Self::Tensor => [TILE; 2],
            Self::Sparse => [STRIP_WIDTH, 1],
        }
    }

    /// The tiles of all pairs of `items` items: `left` numbers blocks of columns, `right` blocks of
    /// rows. A strip is a tile of one row.
    pub(crate) fn tiles(self, items: u32) -> Box<dyn Iterator<Item = Tile> + Send> {
        match self {
            Self::Sparse => Box::new(strips(items, STRIP_WIDTH).map(tile_of_strip)),
            Self::Batmap | Self::Bitmap | Self::Tensor => Box::new(tiles(items, self.tile()[0])),
        }
    }

    /// Number of the tiles of all pairs of `items` items.
    pub(crate) fn tile_count(self, items: u32) -> u64 {
        let [columns, rows] = self.tile().map(|side| u64::from(items.div_ceil(side)));
        match self {
            // A block of columns has only the rows after its first column.
            Self::Sparse => {
                let before: u64 =
                    (0..columns).map(|block| 1 + block * u64::from(STRIP_WIDTH)).sum();
                (columns * rows).saturating_sub(before)
            }
            Self::Batmap | Self::Bitmap | Self::Tensor => rows * (rows + 1) / 2,
        }
    }
}

/// A strip as a tile of one row.
pub(crate) fn tile_of_strip(strip: Strip) -> Tile {
    Tile { left: strip.begin / STRIP_WIDTH, right: strip.right }
}

/// The strip of a tile of one row.
pub(crate) fn strip_of_tile(tile: Tile) -> Strip {
    let begin = tile.left * STRIP_WIDTH;
    Strip { right: tile.right, begin, end: begin.saturating_add(STRIP_WIDTH).min(tile.right) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_as_many_as_announced() {
        let forms = [DeviceForm::Batmap, DeviceForm::Sparse, DeviceForm::Tensor];
        for form in forms {
            for items in [0, 1, 2, 63, 64, 129, 12_000, 12_001, 12_002, 24_002, 30_000] {
                let count = form.tiles(items).count() as u64;
                assert_eq!(form.tile_count(items), count, "{form:?} {items}");
            }
        }
        let strip = Strip { right: 24_002, begin: 12_000, end: 24_000 };
        assert_eq!(strip_of_tile(tile_of_strip(strip)), strip);
        let last = Strip { begin: 24_000, end: 24_002, ..strip };
        assert_eq!(strip_of_tile(tile_of_strip(last)), last);
    }
}
