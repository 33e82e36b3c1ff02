//! Vectors that are ready to be joined, with ids and columns for their rows.

use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::vectors::{Directory, Epsilon, Pair, Vectors};

use super::copies::Copies;
use crate::shared::columns::carry::CarriedRows;
use crate::shared::columns::pairs::PairSide;
use crate::shared::window::Extent;

/// Vectors of one input that are not ready yet.
#[derive(Debug)]
pub(crate) struct Collected {
    /// Coordinates of all rows, or of the distinct vectors if there are `copies`.
    pub(crate) coordinates: Vec<f32>,
    pub(crate) dims: usize,
    pub(crate) epsilon: Epsilon,
    /// Ids of all rows.
    pub(crate) ids: Vec<u32>,
    pub(crate) carried: Option<CarriedRows>,
    /// The rows of each distinct vector, if equal vectors are joined once.
    pub(crate) copies: Option<Copies>,
    /// Whether the vectors are put into a directory.
    pub(crate) has_directory: bool,
    /// Stamps of the vectors of a stream, ascending; else empty.
    pub(crate) stamps: Vec<u64>,
}

impl Collected {
    /// Makes the vectors ready. The directory takes over the principal components of `like`, if
    /// `like` is given, because few vectors do not pay for components of their own.
    pub(crate) fn build(self, isa: Isa, like: Option<&Directory>) -> Built {
        let (has_directory, dims, epsilon) = (self.has_directory, self.dims, self.epsilon);
        if !has_directory {
            return self.ready(None);
        }
        let vectors = Vectors::new(&self.coordinates, dims);
        let directory = match like {
            Some(like) => Directory::like(isa, vectors, like),
            None => Directory::new(isa, vectors, epsilon),
        };
        self.ready(Some(directory))
    }

    /// The vectors with their directory, if there is a directory.
    pub(crate) fn ready(self, directory: Option<Directory>) -> Built {
        let Self { coordinates, dims, epsilon, ids, carried, copies, stamps, .. } = self;
        let index = match directory {
            None => Index::Rows(coordinates),
            // The directory has a copy of the coordinates; only a stream needs the order of arrival
            // later.
            Some(directory) => {
                let coordinates = if stamps.is_empty() { Vec::new() } else { coordinates };
                Index::Directory { directory: Box::new(directory), coordinates }
            }
        };
        Built { index, dims, epsilon, ids, carried, copies, stamps }
    }

    /// Number of vectors that are joined.
    pub(crate) fn len(&self) -> usize {
        self.copies.as_ref().map_or(self.ids.len(), Copies::len)
    }
}

/// Maximum bytes of a directory of `len` vectors of `dims` coordinates: the copy of the vectors,
/// their stored form with its boxes, and their order.
pub(crate) fn directory_bytes(len: usize, dims: usize) -> usize {
    // Words of the stored form are padded to a power of two; in many dimensions, the words are
    // principal components. Boxes take a quarter of the bytes of the words. A leaf that is not full
    // repeats vectors.
    let words = dims.next_power_of_two().min(32);
    len.saturating_mul(4 * dims + 4 * words + words + dims + 8)
}

/// The arrangement of the vectors of an input.
#[derive(Debug)]
pub(crate) enum Index {
    Directory {
        directory: Box<Directory>,
        /// The coordinates in the order of arrival, in a stream; else empty.
        coordinates: Vec<f32>,
    },
    /// Row by row, for a nested loop.
    Rows(Vec<f32>),
}

/// Vectors of one input, ready to be joined.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) index: Index,
    pub(crate) dims: usize,
    pub(crate) epsilon: Epsilon,
    pub(crate) ids: Vec<u32>,
    pub(crate) carried: Option<CarriedRows>,
    pub(crate) copies: Option<Copies>,
    pub(crate) stamps: Vec<u64>,
}

impl Built {
    /// The vector of a row as a side of a pair.
    pub(crate) fn side(&self, row: u32) -> PairSide<'_> {
        let carried = self.carried.as_ref().map(|carried| (carried, row));
        PairSide { id: self.ids[row as usize], carried }
    }

    /// The directory of the vectors, if there is a directory.
    pub(crate) fn directory(&self) -> Option<&Directory> {
        match &self.index {
            Index::Directory { directory, .. } => Some(directory),
            Index::Rows(_) => None,
        }
    }

    /// The coordinates of the vectors that are joined, in the order of arrival. Empty for vectors
    /// in a directory that do not belong to a stream.
    pub(crate) fn coordinates(&self) -> &[f32] {
        let (Index::Directory { coordinates, .. } | Index::Rows(coordinates)) = &self.index;
        coordinates
    }

    /// The vectors as they were collected; they have no directory.
    pub(crate) fn into_collected(self) -> Collected {
        let Self { index, dims, epsilon, ids, carried, copies, stamps } = self;
        let Index::Rows(coordinates) = index else { unreachable!("a directory is kept") };
        let has_directory = false;
        Collected { coordinates, dims, epsilon, ids, carried, copies, has_directory, stamps }
    }

    /// Number of vectors that are joined.
    pub(crate) fn len(&self) -> usize {
        self.copies.as_ref().map_or(self.ids.len(), Copies::len)
    }

    /// Rows of a vector, ascending.
    pub(crate) fn rows<'a>(&'a self, vector: &'a u32) -> &'a [u32] {
        match &self.copies {
            None => std::slice::from_ref(vector),
            Some(copies) => copies.rows(*vector as usize),
        }
    }

    /// The coordinates of a row of a stream, or of vectors that have no directory.
    pub(crate) fn row(&self, row: usize) -> &[f32] {
        let vector = self.copies.as_ref().map_or(row, |copies| copies.number(row));
        &self.coordinates()[vector * self.dims..][..self.dims]
    }

    /// For a stream: the stamps of the first and the last row of a vector.
    pub(crate) fn stamps_of(&self, vector: u32) -> [u64; 2] {
        let rows = self.rows(&vector);
        [rows[0], rows[rows.len() - 1]].map(|row| self.stamps[row as usize])
    }

    /// Bytes of the vectors, their ids and columns, and of the directory if there is a directory.
    pub(crate) fn bytes(&self) -> usize {
        let Self { ids, carried, copies, stamps, dims, .. } = self;
        let directory =
            if self.directory().is_some() { directory_bytes(self.len(), *dims) } else { 0 };
        size_of_val(self.coordinates())
            + size_of_val(&ids[..])
            + size_of_val(&stamps[..])
            + carried.as_ref().map_or(0, CarriedRows::bytes)
            + copies.as_ref().map_or(0, Copies::bytes)
            + directory
    }
}

/// The vectors of all inputs.
#[derive(Debug, Clone)]
pub(crate) struct Sides {
    pub(crate) left: Arc<Built>,
    /// `None` if the left vectors are joined with themselves.
    pub(crate) right: Option<Arc<Built>>,
    /// Whether each right vector is looked up until it has a partner.
    pub(crate) are_looked_up: bool,
}

impl Sides {
    /// Whether a vector may stand for several rows.
    pub(crate) fn have_copies(&self) -> bool {
        self.left.copies.is_some() || self.right().copies.is_some()
    }

    /// The vectors of the right side.
    pub(crate) fn right(&self) -> &Built {
        self.right.as_ref().unwrap_or(&self.left)
    }

    /// Number of rows of each of the two vectors of a pair.
    pub(crate) fn counts(&self, pair: &Pair) -> [u32; 2] {
        let [left, right] = [(&*self.left, &pair.left), (self.right(), &pair.right)]
            .map(|(side, vector)| as_row(side.rows(vector).len()));
        [left, right]
    }

    /// Number of pairs of rows of two vectors of a stream whose left row is in the window of the
    /// right row.
    pub(crate) fn pairs_within(&self, pair: &Pair, window: Extent) -> u64 {
        let (left, right) = (&*self.left, self.right());
        let lefts = left.rows(&pair.left);
        let stamp = |row: u32| right.stamps[row as usize];
        // The window moves on with the rows of the right side.
        let mut gone = 0;
        let in_window = right.rows(&pair.right).iter().map(|&row| {
            let is_gone = |&older: &u32| !window.reaches(left.stamps[older as usize], stamp(row));
            gone += lefts[gone..].partition_point(is_gone);
            (lefts.len() - gone) as u64
        });
        in_window.sum()
    }
}

/// The number of a row, in 32 bits.
pub(crate) fn as_row(row: usize) -> u32 {
    u32::try_from(row).expect("rows have 32-bit numbers")
}
