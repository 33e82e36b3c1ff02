//! The directory of quantiles of Böhm, Noll, Plant and Zherdin, made on the host.
//!
//! Vectors are sorted by the first dimension and cut into 16 parts of equal size, each part is cut
//! in the same way by the second dimension, and each of the 256 parts by the third, into 4,096
//! pages. A part has its extent in the dimension of its level; vectors of fewer dimensions have
//! levels of extent 0.

#![expect(unsafe_code, reason = "structs that kernels read")]

use std::sync::Arc;

use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Memory};
use crate::memory::Plain;

/// Parts of a part.
const FANOUT: usize = 16;
/// Dimensions with a level.
const LEVELS: usize = 3;
/// Parts of the last level.
const PAGES: usize = FANOUT.pow(3);
/// Parts of all levels.
const PARTS: usize = FANOUT + FANOUT.pow(2) + PAGES;
/// Left vectors with common bounds.
const BOUNDED: usize = 32;

/// The extent of vectors in a dimension; the extent of no vectors has its low end above its high
/// end.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(8))]
struct Extent {
    low: f32,
    high: f32,
}

// SAFETY: two `f32`, as `float2` of the kernels (`repr(C)`, aligned as such).
unsafe impl Plain for Extent {}

impl Extent {
    fn of(values: impl Iterator<Item = f32>) -> Self {
        let none = Self { low: f32::INFINITY, high: f32::NEG_INFINITY };
        values.fold(none, |extent, value| Self {
            low: extent.low.min(value),
            high: extent.high.max(value),
        })
    }
}

/// The directory of a list of vectors.
#[derive(Debug)]
pub(in crate::cuda::vectors) struct Directory {
    /// The vectors in the order of pages.
    pub(in crate::cuda::vectors) order: Vec<u32>,
    parts: Vec<Extent>,
    pages: Vec<u32>,
    bounds: Vec<Extent>,
}

impl Directory {
    /// Sorts vectors of `dims` numbers each.
    pub(in crate::cuda::vectors) fn new(values: &[f32], dims: usize) -> Self {
        let len = values.len() / dims;
        let count = u32::try_from(len).expect("at most 2^31 vectors");
        let value = |vector: u32, level: usize| {
            if level < dims { values[vector as usize * dims + level] } else { 0.0 }
        };
        let mut order: Vec<u32> = (0..count).collect();
        let mut parts = Vec::with_capacity(PARTS);
        let mut ends = vec![0, len];
        for level in 0..LEVELS {
            let mut next = vec![0];
            for part in ends.windows(2) {
                let (begin, size) = (part[0], part[1] - part[0]);
                order[begin..part[1]]
                    .sort_unstable_by(|a, b| value(*a, level).total_cmp(&value(*b, level)));
                for i in 0..FANOUT {
                    let end = begin + size * (i + 1) / FANOUT;
                    let begin = begin + size * i / FANOUT;
                    parts.push(Extent::of(order[begin..end].iter().map(|at| value(*at, level))));
                    next.push(end);
                }
            }
            ends = next;
        }
        let pages = ends.iter().map(|end| u32::try_from(*end).expect("as above")).collect();
        let bounds = order.chunks(BOUNDED).flat_map(|vectors| {
            (0..LEVELS).map(move |level| Extent::of(vectors.iter().map(|at| value(*at, level))))
        });
        let bounds = bounds.collect();
        Self { order, parts, pages, bounds }
    }

    /// The page of the vector at a place.
    fn page_of(&self, place: u32) -> u32 {
        let page = self.pages.partition_point(|end| *end <= place) - 1;
        u32::try_from(page).expect("4,096 pages")
    }
}

/// A directory on a device.
#[derive(Debug)]
pub(in crate::cuda::vectors) struct DirectoryRoom {
    parts: DeviceBuffer<Extent>,
    pages: DeviceBuffer<u32>,
    bounds: DeviceBuffer<Extent>,
    /// The page of the first vector of each group of [`BOUNDED`] vectors.
    first_pages: Vec<u32>,
}

/// The directory as an argument of kernels: `Directory` of `vector_loops.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::cuda::vectors) struct DirectoryArgument {
    parts: DevicePointer<Extent>,
    pages: DevicePointer<u32>,
    bounds: DevicePointer<Extent>,
}

impl DirectoryArgument {
    /// These pages, for left vectors with the bounds of another directory.
    pub(in crate::cuda::vectors) fn with_bounds_of(self, left: Self) -> Self {
        Self { bounds: left.bounds, ..self }
    }
}

/// Number of extents of `len` left vectors.
fn bounds_len(len: usize) -> usize {
    len.div_ceil(BOUNDED).max(1) * LEVELS
}

impl DirectoryRoom {
    /// Room for the directory of `len` vectors.
    pub(in crate::cuda::vectors) fn new(
        memory: &Arc<Memory>,
        len: usize,
    ) -> Result<Self, DeviceError> {
        Ok(Self {
            parts: memory.device_buffer(PARTS)?,
            pages: memory.device_buffer(PAGES + 1)?,
            bounds: memory.device_buffer(bounds_len(len))?,
            first_pages: Vec::new(),
        })
    }

    /// The bytes of the room for `len` vectors.
    pub(in crate::cuda::vectors) fn bytes(len: usize) -> usize {
        let extents = PARTS + bounds_len(len);
        extents * size_of::<Extent>() + (PAGES + 1) * size_of::<u32>()
    }

    pub(in crate::cuda::vectors) fn upload(
        &mut self,
        directory: &Directory,
    ) -> Result<(), DeviceError> {
        self.parts.upload(&directory.parts)?;
        self.pages.upload(&directory.pages)?;
        self.bounds.upload(&directory.bounds)?;
        let places = (0..directory.order.len()).step_by(BOUNDED);
        let places = places.map(|place| u32::try_from(place).expect("at most 2^31 vectors"));
        self.first_pages = places.map(|place| directory.page_of(place)).collect();
        Ok(())
    }

    /// The page of the first vector of a unit.
    pub(in crate::cuda::vectors) fn first_page(&self, unit: u32) -> u32 {
        self.first_pages[unit as usize]
    }

    pub(in crate::cuda::vectors) fn argument(&self) -> DirectoryArgument {
        DirectoryArgument {
            parts: self.parts.pointer(),
            pages: self.pages.pointer(),
            bounds: self.bounds.pointer(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_equal_parts_in_order_of_three_dimensions() {
        let values: Vec<f32> =
            (0..30_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 20) as f32).collect();
        let directory = Directory::new(&values, 3);
        let (pages, order) = (&directory.pages, &directory.order);
        assert_eq!((pages.len(), directory.parts.len()), (PAGES + 1, PARTS));
        assert!(pages.windows(2).all(|page| (2..=3).contains(&(page[1] - page[0]))));
        for part in 0..FANOUT {
            let extent = directory.parts[part];
            let vectors = &order[10_000 * part / FANOUT..10_000 * (part + 1) / FANOUT];
            let first = vectors.iter().map(|at| values[3 * *at as usize]);
            assert_eq!(extent, Extent::of(first));
        }
        assert_eq!([0, 2, 9_999].map(|place| directory.page_of(place)), [0, 1, 4095]);
    }

    #[test]
    fn few_vectors_leave_parts_empty() {
        let directory = Directory::new(&[3.0, 1.0], 1);
        assert_eq!(directory.order, [1, 0]);
        assert_eq!(directory.pages.last(), Some(&2));
        assert!(directory.parts.iter().filter(|part| part.low <= part.high).count() <= 6);
        assert_eq!(Directory::new(&[], 5).bounds.len(), 0);
    }
}
