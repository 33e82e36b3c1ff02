//! Strips of pairs of one right item.

use crate::cuda::driver::Properties;

/// Left items of a strip on devices of capability 9.0, by the shared memory of a block.
const WIDTH_9_0: u32 = 49_152;

/// Left items of a strip on every device.
pub const STRIP_WIDTH: u32 = 12_000;

/// The pairs of the item `right` with the items `begin..end`, which all precede it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Strip {
    /// The right item.
    pub right: u32,
    /// The first left item.
    pub begin: u32,
    /// The end of the left items, at most `right`.
    pub end: u32,
}

/// The largest number of left items of a strip that a device counts at once: at least
/// [`STRIP_WIDTH`].
#[must_use]
pub fn strip_width(device: &Properties) -> u32 {
    if device.capability == (9, 0) { WIDTH_9_0 } else { STRIP_WIDTH }
}

/// The strips of all pairs of `items` items; a strip has at most `width` left items. The last items
/// are first: a strip of many left items takes longer.
///
/// # Examples
///
/// ```
/// use trommel_kernels::cuda::supports::{Strip, strips};
///
/// let all: Vec<Strip> = strips(4, 2).collect();
/// let strip = |right, begin, end| Strip { right, begin, end };
/// assert_eq!(all, [strip(3, 0, 2), strip(3, 2, 3), strip(2, 0, 2), strip(1, 0, 1)]);
/// ```
///
/// # Panics
///
/// If `width` is 0.
pub fn strips(items: u32, width: u32) -> impl Iterator<Item = Strip> {
    (0..items).rev().flat_map(move |right| {
        let begins = (0..right).step_by(width as usize);
        begins.map(move |begin| Strip { right, begin, end: right.min(begin.saturating_add(width)) })
    })
}
