//! Strips of pairs of one left item.

use crate::cuda::device::Properties;

/// Right items of a strip on devices of capability 9.0, by the shared memory of a block.
const WIDTH_9_0: u32 = 49_152;

/// Right items of a strip on every device.
pub const STRIP_WIDTH: u32 = 12_000;

/// The pairs of the item `left` with the items `begin..end`, all after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Strip {
    /// The left item.
    pub left: u32,
    /// The first right item, after `left`.
    pub begin: u32,
    /// The end of the right items.
    pub end: u32,
}

/// The largest number of right items of a strip that a device counts at once: at least
/// [`STRIP_WIDTH`].
#[must_use]
pub fn strip_width(device: &Properties) -> u32 {
    if device.capability == (9, 0) { WIDTH_9_0 } else { STRIP_WIDTH }
}

/// The strips of all pairs of `items` items, of at most `width` right items each.
///
/// # Examples
///
/// ```
/// use trommel_kernels::cuda::supports::{Strip, strips};
///
/// let all: Vec<Strip> = strips(4, 2).collect();
/// let strip = |left, begin, end| Strip { left, begin, end };
/// assert_eq!(all, [strip(0, 1, 3), strip(0, 3, 4), strip(1, 2, 4), strip(2, 3, 4)]);
/// ```
///
/// # Panics
///
/// If `width` is 0.
pub fn strips(items: u32, width: u32) -> impl Iterator<Item = Strip> {
    (0..items).flat_map(move |left| {
        let begins = (left + 1..items).step_by(width as usize);
        begins.map(move |begin| Strip { left, begin, end: items.min(begin.saturating_add(width)) })
    })
}
