//! Forms of the data of a window on a GPU.

use trommel_kernels::cuda::supports::{MAP_TILE, TILE};

use super::options::Layout;

/// Form of the data on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceForm {
    Batmap,
    Bitmap,
    Tensor,
}

impl DeviceForm {
    /// The form of a layout; `None` if only a CPU has it.
    pub(super) fn of(layout: Layout) -> Option<Self> {
        match layout {
            Layout::Auto | Layout::Tensor => Some(Self::Tensor),
            Layout::Batmap => Some(Self::Batmap),
            Layout::Bitmap => Some(Self::Bitmap),
            Layout::Lists | Layout::Sliced | Layout::Sparse | Layout::Triangle => None,
        }
    }

    /// Items of a side of a tile.
    pub(super) fn side(self) -> u32 {
        match self {
            Self::Batmap => MAP_TILE,
            Self::Bitmap | Self::Tensor => TILE,
        }
    }
}
