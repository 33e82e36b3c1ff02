//! The steps that order points, store the form that filters compare, and assemble the directory.

use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use super::buckets::Places;
use crate::Isa;
use crate::memory::Part;
use crate::vectors::directory::{
    Corners, Directory, Level, NO_ROW, Run, firsts_of_groups, positions_of,
};
use crate::vectors::levels::{LANES, Line, as_u32};
use crate::vectors::rows::Vectors;
use crate::vectors::strips::{Bounds, Filed, Strips, file};

/// Orders the points of a range of buckets.
#[derive(Debug)]
pub(super) struct Ordering {
    places: Arc<Places>,
    buckets: Range<usize>,
    order: Part<u32>,
    rows: Part<f32>,
    /// Empty if this step does not store points.
    tiles: Part<Line>,
}

/// Stores the ordered points of a range of buckets.
#[derive(Debug)]
pub(super) struct Storing {
    frame: Arc<Directory>,
    run: OrderedRun,
    tiles: Part<Line>,
}

/// The ordered points of a range of buckets.
#[derive(Debug)]
pub(super) struct OrderedRun {
    order: Part<u32>,
    rows: Part<f32>,
    /// The first leaf of each bucket, counted from the first leaf of the run.
    firsts: Vec<u32>,
    /// The stored form, from the step that stores the points.
    stored: Option<Stored>,
    /// The bounds of leaves of strips.
    bounds: Vec<Bounds>,
}

/// The stored form of the points of a range of buckets.
#[derive(Debug)]
struct Stored {
    tiles: Part<Line>,
    is_exact: bool,
    /// Boxes of leaves, and the corners of the nodes over leaves; none for strips.
    boxes: Option<(Level, Corners)>,
}

/// The ordered points of all buckets.
#[derive(Debug, Default)]
pub(super) struct Points {
    runs: Vec<OrderedRun>,
    /// The first leaf of each bucket, and the number of leaves.
    firsts: Vec<u32>,
}

impl Ordering {
    /// Up to `pieces` ranges of buckets with about equal numbers of points.
    pub(super) fn all(places: &Arc<Places>, pieces: usize) -> impl Iterator<Item = Self> {
        let Places { frame, buckets, counts, grid } = &**places;
        let mut runs: Vec<(Range<usize>, usize)> = Vec::with_capacity(pieces);
        let (mut begin, mut positions, mut points) = (0, 0, 0);
        for (bucket, &count) in counts.iter().enumerate() {
            positions += positions_of(count);
            points += count as usize;
            let end = bucket + 1;
            if points * pieces >= (runs.len() + 1) * buckets.len().max(1) || end == counts.len() {
                runs.push((begin..end, positions));
                (begin, positions) = (end, 0);
            }
        }
        let positions = || runs.iter().map(|&(_, positions)| positions);
        let orders = Part::zeros(positions());
        let rows = Part::zeros(positions().map(|positions| positions * frame.dims));
        let is_stored = frame.map.is_some() || grid.is_some();
        let words = if is_stored { frame.words } else { 0 };
        let tiles = Part::zeros(positions().map(|positions| positions / LANES * words));
        let parts = orders.into_iter().zip(rows).zip(tiles);
        runs.into_iter().zip(parts).map(|((buckets, _), ((order, rows), tiles))| {
            let places = Arc::clone(places);
            Self { places, buckets, order, rows, tiles }
        })
    }

    /// Orders the points by the rows that are `filtered`.
    pub(super) fn run(self, isa: Isa, vectors: Vectors<'_>, filtered: Vectors<'_>) -> OrderedRun {
        let Self { places, buckets: range, mut order, mut rows, mut tiles } = self;
        let Places { frame, buckets, counts, grid } = &*places;
        let first = u16::try_from(range.start).expect("a tree has at most 2^12 buckets");
        let counts = &counts[range];
        // Coordinates of mapped points are stored, and the rows of the directory are the points.
        let mut mapped = Vec::new();
        if frame.map.is_some() {
            mapped.resize(order.len() * filtered.dims(), 0.0);
        }
        let moved = if frame.map.is_some() { &mut mapped[..] } else { &mut rows[..] };
        let run = Run { vectors: filtered, buckets, first, counts, order: &mut order, rows: moved };
        if let Some(grid) = grid {
            let Filed { firsts, bounds, is_exact } = file(isa, grid, frame, run, &mut tiles);
            let stored = Some(Stored { tiles, is_exact, boxes: None });
            return OrderedRun { order, rows, firsts, stored, bounds };
        }
        let firsts = run.order(isa);
        let stored = frame.map.is_some().then(|| {
            let stored = Stored::of(isa, frame, &mapped, &firsts, tiles);
            for (&row, place) in order.iter().zip(rows.chunks_exact_mut(vectors.dims())) {
                let row = if row == NO_ROW { 0 } else { row as usize };
                place.copy_from_slice(vectors.row(row));
            }
            stored
        });
        OrderedRun { order, rows, firsts, stored, bounds: Vec::new() }
    }
}

impl Storing {
    /// The work for each range of buckets.
    pub(super) fn all(frame: &Arc<Directory>, points: Points) -> impl Iterator<Item = Self> {
        let lines = |run: &OrderedRun| run.leaves() * frame.words;
        let parts = Part::zeros(points.runs.iter().map(lines));
        points.runs.into_iter().zip(parts).map(|(run, tiles)| {
            let frame = Arc::clone(frame);
            Self { frame, run, tiles }
        })
    }

    pub(super) fn run(self, isa: Isa) -> OrderedRun {
        let Self { frame, mut run, tiles } = self;
        run.stored = Some(Stored::of(isa, &frame, &run.rows, &run.firsts, tiles));
        run
    }
}

impl OrderedRun {
    fn leaves(&self) -> usize {
        self.order.len() / LANES
    }
}

impl Stored {
    /// Stores `rows` in the form of `frame`, by the first leaf of each bucket.
    fn of(
        isa: Isa,
        frame: &Directory,
        rows: &[f32],
        firsts: &[u32],
        mut tiles: Part<Line>,
    ) -> Self {
        let (form, words, dims) = (&frame.form, frame.words, frame.filter_dims);
        let is_exact = form.store(isa, rows, dims, words, &mut tiles);
        let corners = Corners::of_leaves(isa, dims, rows);
        let leaves = as_u32(rows.len() / (LANES * dims));
        let groups = firsts_of_groups(firsts, leaves);
        let above = corners.over(&groups);
        let level = Level::over(isa, form, frame.limits(0.0), &corners, groups);
        Self { tiles, is_exact, boxes: Some((level, above)) }
    }
}

impl Points {
    /// The points of consecutive ranges of buckets.
    pub(super) fn of(runs: Vec<OrderedRun>) -> Self {
        let (mut firsts, mut leaves) = (Vec::new(), 0);
        for run in &runs {
            firsts.extend(run.firsts.iter().map(|first| first + as_u32(leaves)));
            leaves += run.leaves();
        }
        firsts.push(as_u32(leaves));
        Self { runs, firsts }
    }

    /// The strips, if the buckets are strips and their windows are short enough.
    pub(super) fn strips(&mut self, places: &Places, reach: f64) -> Option<Strips> {
        let grid = places.grid.as_ref()?;
        let bounds = self.runs.iter_mut().flat_map(|run| take(&mut run.bounds)).collect();
        Strips::new(grid, reach, take(&mut self.firsts), &places.counts, bounds)
    }

    /// The directory of `len` points, in strips or under boxes.
    pub(super) fn directory(
        self,
        isa: Isa,
        len: usize,
        frame: Arc<Directory>,
        strips: Option<Strips>,
    ) -> Directory {
        let (mut orders, mut rows, mut tiles) = (Vec::new(), Vec::new(), Vec::new());
        let mut boxes: Option<(Level, Corners)> = None;
        // Tasks share the frame, which has no points; no task holds it any more, so nothing is
        // copied.
        let mut directory = Arc::unwrap_or_clone(frame);
        for run in self.runs {
            orders.push(run.order);
            rows.push(run.rows);
            let Some(stored) = run.stored else { continue };
            directory.is_exact &= stored.is_exact;
            tiles.push(stored.tiles);
            match (&mut boxes, stored.boxes) {
                (_, None) => {}
                (boxes @ None, more) => *boxes = more,
                (Some((level, corners)), Some(more)) => {
                    level.append(&more.0);
                    corners.append(&more.1);
                }
            }
        }
        directory.set_points(len, Part::join(orders), Part::join(rows), self.firsts);
        directory.tiles = Part::join(tiles);
        directory.strips = strips;
        if let Some((level, corners)) = boxes.filter(|_| len > 0) {
            directory.add_levels(isa, level, corners);
        }
        directory
    }
}
