//! The step that maps rows to the few coordinates that a directory filters by.

use std::ops::Range;
use std::sync::Arc;

use crate::Isa;
use crate::memory::Part;
use crate::vectors::filters::Principal;
use crate::vectors::rows::Vectors;

/// Mapped rows, which take the place of the input, and their number of coordinates; none in few
/// dimensions.
#[derive(Clone, Debug, Default)]
pub(super) struct Coordinates(Option<(Arc<Vec<f32>>, usize)>);

impl Coordinates {
    /// The coordinates of all rows, and the greatest distance by which rounding moved a row.
    pub(super) fn of(principal: &Principal, mapped: Vec<(Part<f32>, f64)>) -> (Self, f64) {
        let greatest = mapped.iter().fold(0.0, |greatest: f64, &(_, moved)| greatest.max(moved));
        let rows = Part::join(mapped.into_iter().map(|(rows, _)| rows).collect());
        (Self(Some((Arc::new(rows), principal.coordinates()))), greatest)
    }

    /// The rows that are ordered and filtered.
    pub(super) fn or<'a>(&'a self, vectors: Vectors<'a>) -> Vectors<'a> {
        self.0.as_ref().map_or(vectors, |(values, dims)| Vectors::new(values, *dims))
    }
}

/// Maps a range of rows.
#[derive(Debug)]
pub(super) struct Mapping {
    rows: Range<usize>,
    principal: Arc<Principal>,
    mapped: Part<f32>,
}

impl Mapping {
    /// The work for each of these ranges.
    pub(super) fn all(
        principal: &Arc<Principal>,
        rows: impl Iterator<Item = Range<usize>> + Clone,
    ) -> impl Iterator<Item = Self> {
        let parts = Part::zeros(rows.clone().map(|rows| rows.len() * principal.coordinates()));
        rows.zip(parts).map(|(rows, mapped)| {
            let principal = Arc::clone(principal);
            Self { rows, principal, mapped }
        })
    }

    /// Returns the mapped rows, and the greatest distance by which rounding moved a row.
    pub(super) fn run(self, isa: Isa, vectors: Vectors<'_>) -> (Part<f32>, f64) {
        let Self { rows, principal, mut mapped } = self;
        let moved = principal.map(isa, vectors.part(rows).values(), &mut mapped);
        (mapped, moved)
    }
}
