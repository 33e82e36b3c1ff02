//! The construction of a directory in rounds of tasks, which threads do side by side.
//!
//! ```text
//! round      task
//! choose     the components of a sample, one task                 ┐ in more than
//! map        the coordinates of some rows                         ┘ 16 dimensions
//! survey     the extent of some rows, if points may be in strips: the next round is to sort them
//! plant      the kd tree of a sample, one task
//! sort       the extent of some rows, and the bucket of each, or its strip
//! order      kd order of some buckets; points of some strips and their stored form
//! store      stored form and boxes of some buckets; of mapped points, a part of their order
//! ```
//!
//! Where strips turn out to be too large or their windows too long, a tree is planted in the next
//! round. Tasks of a round write to parts of one allocation, so nothing is copied after a round.
//! The directory is the same for any number of tasks, bit for bit. Ordered points are a copy of the
//! input, which is not needed any more when their stored form is made.

use std::ops::Range;
use std::sync::Arc;

use super::boxes::{Corners, Level};
use super::directory::{Directory, PLAIN_DIMS_MAX, firsts_of_groups};
use super::epsilon::Epsilon;
use super::filing::{Filed, file};
use super::form::{Extent, Form};
use super::grid::Grid;
use super::lanes::{LANES, Line, as_u32};
use super::order::{NO_ROW, Run, positions_of};
use super::plan::Algorithm;
use super::principal::Principal;
use super::rows::Vectors;
use super::strips::{Bounds, STRIP_DIMS_MAX, Strips};
use super::tree::Tree;
use crate::Isa;
use crate::memory::Part;

/// Tasks of a round for each of several threads, so that all end at about the same time.
const TASKS_A_THREAD: usize = 2;

/// A directory that is made in rounds of tasks.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::vectors::{Construction, Epsilon, Vectors};
///
/// let vectors = Vectors::new(&[0.0, 1.0, 5.0], 1);
/// let epsilon = Epsilon::new(1.0).unwrap();
/// let mut construction = Construction::new(Isa::Scalar, vectors.dims(), vectors.len(), epsilon);
/// let directory = loop {
///     let mut tasks = construction.round(2);
///     // By any thread, in any order.
///     tasks.iter_mut().for_each(|task| task.run(vectors));
///     if let Some(directory) = construction.complete(tasks) {
///         break directory;
///     }
/// };
/// assert_eq!(directory.len(), 3);
/// ```
#[derive(Debug)]
pub struct Construction {
    isa: Isa,
    dims: usize,
    len: usize,
    epsilon: Epsilon,
    form: fn(&Extent, f64) -> Form,
    step: Step,
    /// The map to the coordinates that are ordered, and a bound of the distance that it moved a
    /// point by.
    map: Option<(Arc<Principal>, f64)>,
    mapped: Mapped,
    /// The share of pairs that pass the filter of the map, if it is known.
    share: f64,
}

/// The next round.
#[derive(Debug)]
enum Step {
    Choose,
    Map,
    Survey,
    Plant,
    Sort(Arc<Sorter>),
    Order(Arc<Places>),
    Store(Arc<Ordered>),
}

/// The way to find the buckets of rows.
#[derive(Debug)]
enum Sorter {
    Tree(Tree),
    /// Strips of points of this extent.
    Grid(Grid, Extent),
}

/// Rows that take the place of the input.
#[derive(Clone, Debug, Default)]
struct Mapped(Option<(Arc<Vec<f32>>, usize)>);

impl Mapped {
    /// The rows that are ordered.
    fn or<'a>(&'a self, vectors: Vectors<'a>) -> Vectors<'a> {
        self.0.as_ref().map_or(vectors, |(values, dims)| Vectors::new(values, *dims))
    }
}

/// The places of all points.
#[derive(Debug)]
struct Places {
    /// A directory without its points.
    frame: Directory,
    /// The bucket of each row, and the number of rows of each bucket.
    buckets: Vec<u16>,
    counts: Vec<u32>,
    /// The grid, if the buckets are its strips.
    grid: Option<Grid>,
}

/// Ordered points, whose stored form and boxes are missing.
#[derive(Debug)]
struct Ordered {
    directory: Directory,
    /// The leaves of runs of buckets, and the first leaf of each bucket, from the first one of the
    /// run.
    runs: Vec<(Range<usize>, Vec<u32>)>,
}

/// A task of a round.
#[derive(Debug)]
pub struct BuildTask {
    isa: Isa,
    mapped: Mapped,
    work: Work,
}

/// Work of a task, and then its result.
#[derive(Debug)]
enum Work {
    Choose { reach: f64, chosen: Option<(Principal, f64)> },
    Map { rows: Range<usize>, principal: Arc<Principal>, mapped: Part<f32>, moved: f64 },
    Survey { rows: Range<usize>, extent: Option<Extent> },
    Plant(Option<Tree>),
    Sort(Sorting),
    Order(Box<Ordering>),
    Store { ordered: Arc<Ordered>, run: usize, stored: Box<Stored> },
}

#[derive(Debug)]
struct Sorting {
    sorter: Arc<Sorter>,
    rows: Range<usize>,
    buckets: Part<u16>,
    counts: Vec<u32>,
    extent: Option<Extent>,
}

#[derive(Debug)]
struct Ordering {
    places: Arc<Places>,
    buckets: Range<usize>,
    order: Part<u32>,
    rows: Part<f32>,
    /// The first leaf of each bucket, from the first one of the task.
    firsts: Vec<u32>,
    /// The stored form of mapped points, of which only this task knows the coordinates, and of
    /// points in strips.
    stored: Option<Stored>,
    /// The bounds of leaves of strips.
    bounds: Vec<Bounds>,
}

/// The stored form of the points of some buckets.
#[derive(Debug)]
struct Stored {
    tiles: Part<Line>,
    is_exact: bool,
    /// Boxes of leaves, and the corners of the nodes over them.
    boxes: Option<(Level, Corners)>,
}

const HAS_RUN: &str = "tasks have been run";

impl Construction {
    /// A directory of `len` vectors of `dims` coordinates.
    ///
    /// # Panics
    ///
    /// If there are more than [`Directory::POINTS_MAX`] vectors.
    #[must_use]
    pub fn new(isa: Isa, dims: usize, len: usize, epsilon: Epsilon) -> Self {
        let most = Directory::POINTS_MAX;
        assert!(len <= most, "{len} points of at most {most}");
        let has_map = dims > PLAIN_DIMS_MAX && len > 0;
        let step = if has_map { Step::Choose } else { Step::Plant };
        let (form, mapped) = (Form::choose, Mapped::default());
        Self { isa, dims, len, epsilon, form, step, map: None, mapped, share: 0.0 }
    }

    /// As [`Self::new`], for points with a distribution like that of another directory: in many
    /// dimensions its components are taken over, which costs less than to find them again.
    ///
    /// # Panics
    ///
    /// As [`Self::new`].
    #[must_use]
    pub fn like(isa: Isa, len: usize, other: &Directory) -> Self {
        let map = other.map.as_ref().map(|(principal, _)| principal.clone());
        Self::new(isa, other.dims, len, other.epsilon).with_map(map)
    }

    /// As [`Self::new`], for a directory that is only joined with itself: points of few dimensions
    /// are ordered faster then.
    ///
    /// # Panics
    ///
    /// As [`Self::new`].
    #[must_use]
    pub fn within(isa: Isa, dims: usize, len: usize, epsilon: Epsilon) -> Self {
        let construction = Self::new(isa, dims, len, epsilon);
        let has_strips = dims <= STRIP_DIMS_MAX && len > 0;
        Self { step: if has_strips { Step::Survey } else { construction.step }, ..construction }
    }

    /// With this map, or none.
    pub(super) fn with_map(self, map: Option<Principal>) -> Self {
        let step = if map.is_some() { Step::Map } else { Step::Plant };
        Self { step, map: map.map(|principal| (Arc::new(principal), 0.0)), ..self }
    }

    /// With this choice of a form for an extent and a reach.
    #[cfg(test)]
    pub(super) fn with_form(self, form: fn(&Extent, f64) -> Form) -> Self {
        Self { form, ..self }
    }

    /// The directory of `vectors`, on this thread.
    pub(super) fn run(mut self, vectors: Vectors<'_>) -> Directory {
        loop {
            let mut tasks = self.round(1);
            tasks.iter_mut().for_each(|task| task.run(vectors));
            if let Some(directory) = self.complete(tasks) {
                return directory;
            }
        }
    }

    /// Whether a later round decides how a directory filters, and [`Self::algorithm`] is not known.
    #[must_use]
    pub fn is_choosing(&self) -> bool {
        matches!(self.step, Step::Choose)
    }

    /// The faster way to join these vectors, many of them, by what their sample has told.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        Algorithm::of_share(self.share)
    }

    /// Whether tasks of this round or a later one read the vectors; otherwise these may be dropped.
    #[must_use]
    pub fn needs_vectors(&self) -> bool {
        !matches!(self.step, Step::Store(_))
    }

    /// The tasks of the next round, for `threads` threads.
    #[must_use]
    pub fn round(&self, threads: usize) -> Vec<BuildTask> {
        let pieces = if threads > 1 { threads * TASKS_A_THREAD } else { 1 };
        let len = self.len;
        let rows = (0..pieces).map(|piece| piece * len / pieces..(piece + 1) * len / pieces);
        let works: Vec<Work> = match &self.step {
            Step::Choose => {
                vec![Work::Choose { reach: self.epsilon.reach(), chosen: None }]
            }
            Step::Map => self.mappings(rows),
            Step::Survey => rows.map(|rows| Work::Survey { rows, extent: None }).collect(),
            Step::Plant => vec![Work::Plant(None)],
            Step::Sort(sorter) => {
                let parts = Part::zeros(rows.clone().map(|rows| rows.len()));
                let sorting = |(rows, buckets)| {
                    let (sorter, counts) = (Arc::clone(sorter), Vec::new());
                    Work::Sort(Sorting { sorter, rows, buckets, counts, extent: None })
                };
                rows.zip(parts).map(sorting).collect()
            }
            Step::Order(places) => self.orderings(places, pieces),
            Step::Store(ordered) => storings(ordered),
        };
        let task = |work| BuildTask { isa: self.isa, mapped: self.mapped.clone(), work };
        works.into_iter().map(task).collect()
    }

    fn mappings(&self, rows: impl Iterator<Item = Range<usize>> + Clone) -> Vec<Work> {
        let (principal, _) = self.map.as_ref().expect("this round is for maps");
        let parts = Part::zeros(rows.clone().map(|rows| rows.len() * principal.coordinates()));
        let mapping = |(rows, mapped)| {
            let principal = Arc::clone(principal);
            Work::Map { rows, principal, mapped, moved: 0.0 }
        };
        rows.zip(parts).map(mapping).collect()
    }

    /// Up to `pieces` runs of buckets, each with about as many points.
    fn orderings(&self, places: &Arc<Places>, pieces: usize) -> Vec<Work> {
        let counts = &places.counts;
        let mut runs: Vec<(Range<usize>, usize)> = Vec::with_capacity(pieces);
        let (mut begin, mut positions, mut points) = (0, 0, 0);
        for (bucket, &count) in counts.iter().enumerate() {
            positions += positions_of(count);
            points += count as usize;
            let end = bucket + 1;
            if points * pieces >= (runs.len() + 1) * self.len.max(1) || end == counts.len() {
                runs.push((begin..end, positions));
                (begin, positions) = (end, 0);
            }
        }
        let positions = || runs.iter().map(|&(_, positions)| positions);
        let orders = Part::zeros(positions());
        let rows = Part::zeros(positions().map(|positions| positions * self.dims));
        let is_stored = places.frame.map.is_some() || places.grid.is_some();
        let lines = |positions| positions / LANES * places.frame.words * usize::from(is_stored);
        let tiles = Part::zeros(positions().map(lines));
        let parts = orders.into_iter().zip(rows).zip(tiles);
        let ordering = |(buckets, ((order, rows), tiles))| {
            let (places, firsts) = (Arc::clone(places), Vec::new());
            let stored = is_stored.then(|| Stored::new(tiles));
            let bounds = Vec::new();
            Work::Order(Box::new(Ordering { places, buckets, order, rows, firsts, stored, bounds }))
        };
        runs.iter().map(|(buckets, _)| buckets.clone()).zip(parts).map(ordering).collect()
    }

    /// Takes the tasks of a round back, in their order, after all have been run. Returns the
    /// directory after the last round.
    ///
    /// # Panics
    ///
    /// If a task is missing or has not been run.
    pub fn complete(&mut self, tasks: Vec<BuildTask>) -> Option<Directory> {
        let mut works = tasks.into_iter().map(|task| task.work);
        self.step = match &self.step {
            Step::Choose => {
                let Some(Work::Choose { chosen, .. }) = works.next() else { return None };
                let (principal, share) = chosen.expect(HAS_RUN);
                (self.map, self.share) = (Some((Arc::new(principal), 0.0)), share);
                Step::Map
            }
            Step::Map => {
                self.take_mapped(works);
                Step::Plant
            }
            Step::Survey => {
                let extents = works.filter_map(|work| match work {
                    Work::Survey { extent, .. } => extent,
                    _ => None,
                });
                let extent = extents.reduce(|one, other| one.wider(&other)).expect(HAS_RUN);
                let grid = Grid::new(&extent, self.epsilon.reach(), self.len);
                Step::Sort(Arc::new(Sorter::Grid(grid, extent)))
            }
            Step::Plant => {
                let Some(Work::Plant(tree)) = works.next() else { return None };
                Step::Sort(Arc::new(Sorter::Tree(tree.expect(HAS_RUN))))
            }
            Step::Sort(_) => {
                let places = self.places(works);
                let is_fine = places.grid.is_none() || Grid::is_fine(&places.counts);
                if is_fine { Step::Order(Arc::new(places)) } else { Step::Plant }
            }
            Step::Order(_) => return self.take_ordered(works),
            Step::Store(_) => return self.take_stored(works),
        };
        None
    }

    fn take_mapped(&mut self, works: impl Iterator<Item = Work>) {
        let (principal, greatest) = self.map.as_mut().expect("this round is for maps");
        let mut parts = Vec::new();
        for work in works {
            if let Work::Map { mapped, moved, .. } = work {
                parts.push(mapped);
                *greatest = greatest.max(moved);
            }
        }
        self.mapped = Mapped(Some((Arc::new(Part::join(parts)), principal.coordinates())));
    }

    /// The places of all points, from the buckets of rows.
    fn places(&mut self, works: impl Iterator<Item = Work>) -> Places {
        let (mut parts, mut counts) = (Vec::new(), Vec::new());
        let (mut whole, grid) = match &self.step {
            Step::Sort(sorter) => match &**sorter {
                Sorter::Grid(grid, extent) => (Some(extent.clone()), Some(grid.clone())),
                Sorter::Tree(_) => (None, None),
            },
            _ => (None, None),
        };
        for work in works {
            let Work::Sort(sorted) = work else { continue };
            parts.push(sorted.buckets);
            counts.resize(sorted.counts.len(), 0);
            for (sum, count) in counts.iter_mut().zip(sorted.counts) {
                *sum += count;
            }
            whole = match (whole, sorted.extent) {
                (Some(whole), Some(extent)) => Some(whole.wider(&extent)),
                (whole, extent) => whole.or(extent),
            };
        }
        let map = self.map.take();
        let map = map.map(|(principal, moved)| (Arc::unwrap_or_clone(principal), moved));
        let extent = whole.expect("a round has tasks");
        let form = |reach| (self.form)(&extent, reach);
        let filter_dims = extent.low.len();
        let frame = Directory::empty(self.dims, self.epsilon, map, filter_dims, form);
        Places { frame, buckets: Part::join(parts), counts, grid }
    }

    /// Takes the runs of buckets; returns the directory if they have a stored form.
    fn take_ordered(&mut self, works: impl Iterator<Item = Work>) -> Option<Directory> {
        let (mut orders, mut rows, mut stored) = (Vec::new(), Vec::new(), Vec::new());
        let (mut firsts, mut runs, mut leaves) = (Vec::new(), Vec::new(), 0);
        let mut bounds = Vec::new();
        for work in works {
            let Work::Order(ordered) = work else { continue };
            let end = leaves + ordered.order.len() / LANES;
            firsts.extend(ordered.firsts.iter().map(|first| first + as_u32(leaves)));
            runs.push((leaves..end, ordered.firsts));
            leaves = end;
            orders.push(ordered.order);
            rows.push(ordered.rows);
            stored.extend(ordered.stored);
            bounds.extend(ordered.bounds);
        }
        firsts.push(as_u32(leaves));
        let Step::Order(places) = std::mem::replace(&mut self.step, Step::Plant) else {
            unreachable!("this round orders points")
        };
        let places = Arc::into_inner(places).expect("all tasks are here");
        let mut directory = places.frame;
        if let Some(grid) = &places.grid {
            let reach = self.epsilon.reach();
            // Else the step is to plant a tree.
            let strips = Strips::new(grid, reach, firsts, &places.counts, bounds)?;
            directory.strips = Some(strips);
            directory.set_points(self.len, Part::join(orders), Part::join(rows), Vec::new());
            return Some(self.with_stored(directory, stored.into_iter()));
        }
        directory.set_points(self.len, Part::join(orders), Part::join(rows), firsts);
        if directory.map.is_some() {
            return Some(self.with_stored(directory, stored.into_iter()));
        }
        self.step = Step::Store(Arc::new(Ordered { directory, runs }));
        None
    }

    fn take_stored(&mut self, works: impl Iterator<Item = Work>) -> Option<Directory> {
        let stored = works.filter_map(|work| match work {
            Work::Store { stored, .. } => Some(*stored),
            _ => None,
        });
        // Tasks give their share of the points back.
        let stored: Vec<Stored> = stored.collect();
        let Step::Store(ordered) = std::mem::replace(&mut self.step, Step::Plant) else {
            unreachable!("this round stores points")
        };
        let Ordered { directory, .. } = Arc::into_inner(ordered).expect("all tasks are here");
        Some(self.with_stored(directory, stored.into_iter()))
    }

    /// The directory with the stored form of its runs of buckets.
    fn with_stored(
        &self,
        mut directory: Directory,
        runs: impl Iterator<Item = Stored>,
    ) -> Directory {
        let mut tiles = Vec::new();
        let mut boxes: Option<(Level, Corners)> = None;
        for stored in runs {
            directory.is_exact &= stored.is_exact;
            match (&mut boxes, stored.boxes) {
                (_, None) => {}
                (boxes @ None, more) => *boxes = more,
                (Some((level, corners)), Some(more)) => {
                    level.append(&more.0);
                    corners.append(&more.1);
                }
            }
            tiles.push(stored.tiles);
        }
        directory.tiles = Part::join(tiles);
        if let Some((level, corners)) = boxes.filter(|_| self.len > 0) {
            directory.add_levels(self.isa, level, corners);
        }
        directory
    }
}

/// A task for each run of buckets.
fn storings(ordered: &Arc<Ordered>) -> Vec<Work> {
    let words = ordered.directory.words;
    let parts = Part::zeros(ordered.runs.iter().map(|(leaves, _)| leaves.len() * words));
    let storing = |(run, tiles)| {
        let (ordered, stored) = (Arc::clone(ordered), Box::new(Stored::new(tiles)));
        Work::Store { ordered, run, stored }
    };
    (0..).zip(parts).map(storing).collect()
}

impl Directory {
    /// Orders points and computes their boxes.
    ///
    /// # Panics
    ///
    /// If `isa` is not available, or there are more than [`Self::POINTS_MAX`] points.
    #[must_use]
    pub fn new(isa: Isa, vectors: Vectors<'_>, epsilon: Epsilon) -> Self {
        Construction::new(isa, vectors.dims(), vectors.len(), epsilon).run(vectors)
    }

    /// As [`Self::new`], for points that are only joined with themselves: points of few dimensions
    /// are ordered faster then.
    ///
    /// # Panics
    ///
    /// As [`Self::new`].
    #[must_use]
    pub fn within(isa: Isa, vectors: Vectors<'_>, epsilon: Epsilon) -> Self {
        Construction::within(isa, vectors.dims(), vectors.len(), epsilon).run(vectors)
    }

    /// As [`Self::new`], for points with a distribution like that of another directory: in many
    /// dimensions its components are taken over, which costs less than to find them again.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::Isa;
    /// use trommel_kernels::vectors::{Directory, Epsilon, Join, PairCount, Search, Vectors};
    ///
    /// let vectors = Vectors::new(&[0.0, 1.0, 5.0], 1);
    /// let large = Directory::new(Isa::Scalar, vectors, Epsilon::new(1.0).unwrap());
    /// let small = Directory::like(Isa::Scalar, Vectors::new(&[2.0], 1), &large);
    /// let join = Join::between(&small, &large);
    /// let (mut search, mut count) = (Search::default(), PairCount::default());
    /// join.begin(Isa::Scalar, 0, &mut search);
    /// assert!(join.advance(Isa::Scalar, &mut search, &mut count));
    /// assert_eq!(count, PairCount(1));
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Self::new`], or if the dimensions differ.
    #[must_use]
    pub fn like(isa: Isa, vectors: Vectors<'_>, other: &Self) -> Self {
        let (dims, others) = (vectors.dims(), other.dims);
        assert!(dims == others, "vectors of {dims} and {others} dimensions");
        Construction::like(isa, vectors.len(), other).run(vectors)
    }
}

impl BuildTask {
    /// Does the task for `vectors`, which are the same for all tasks, or none when the construction
    /// [needs](Construction::needs_vectors) them no more.
    ///
    /// # Panics
    ///
    /// If the instruction set is not available, or the vectors do not have the length and the
    /// dimensions of the construction.
    pub fn run(&mut self, vectors: Vectors<'_>) {
        let Self { isa, mapped, work } = self;
        let filtered = mapped.or(vectors);
        match work {
            Work::Choose { reach, chosen } => {
                *chosen = Some(Principal::choose(*isa, vectors, *reach));
            }
            Work::Map { rows, principal, mapped, moved } => {
                *moved = principal.map(*isa, vectors.part(rows.clone()).values(), mapped);
            }
            Work::Survey { rows, extent } => {
                *extent = Some(Extent::of(*isa, vectors.part(rows.clone())));
            }
            Work::Plant(tree) => *tree = Some(Tree::of(*isa, filtered)),
            Work::Sort(sorting) => {
                let rows = filtered.part(sorting.rows.clone());
                let buckets = &mut sorting.buckets;
                sorting.counts = match &*sorting.sorter {
                    Sorter::Grid(grid, _) => grid.find(*isa, rows, buckets),
                    Sorter::Tree(tree) => {
                        sorting.extent = Some(Extent::of(*isa, rows));
                        tree.find(*isa, rows, buckets)
                    }
                };
            }
            Work::Order(ordering) => ordering.run(*isa, vectors, filtered),
            Work::Store { ordered, run, stored } => {
                let Ordered { directory, runs } = &**ordered;
                let (leaves, firsts) = &runs[*run];
                let points = LANES * directory.dims;
                let rows = &directory.rows[leaves.start * points..leaves.end * points];
                stored.run(*isa, directory, rows, firsts);
            }
        }
    }
}

impl Ordering {
    fn run(&mut self, isa: Isa, vectors: Vectors<'_>, filtered: Vectors<'_>) {
        let Places { frame, buckets, counts, grid } = &*self.places;
        let dims = filtered.dims();
        let mut mapped = Vec::new();
        let rows = match frame.map {
            None => &mut self.rows[..],
            Some(_) => {
                mapped.resize(self.order.len() * dims, 0.0);
                &mut mapped[..]
            }
        };
        let first = u16::try_from(self.buckets.start).expect("a tree has at most 2^12 buckets");
        let counts = &counts[self.buckets.clone()];
        let order = &mut self.order[..];
        let run = Run { vectors: filtered, buckets, first, counts, order, rows: &mut *rows };
        if let Some(grid) = grid {
            if let Some(stored) = &mut self.stored {
                let Filed { firsts, bounds, is_exact } =
                    file(isa, grid, frame, run, &mut stored.tiles);
                (self.firsts, self.bounds, stored.is_exact) = (firsts, bounds, is_exact);
            }
            return;
        }
        self.firsts = run.order(isa);
        if let Some(stored) = &mut self.stored {
            stored.run(isa, frame, rows, &self.firsts);
            let places = self.order.iter().zip(self.rows.chunks_exact_mut(vectors.dims()));
            for (&row, place) in places {
                let row = if row == NO_ROW { 0 } else { row as usize };
                place.copy_from_slice(vectors.row(row));
            }
        }
    }
}

impl Stored {
    fn new(tiles: Part<Line>) -> Self {
        Self { tiles, is_exact: false, boxes: None }
    }

    /// Stores `rows` in the form of `frame`, by the first leaf of each bucket.
    fn run(&mut self, isa: Isa, frame: &Directory, rows: &[f32], firsts: &[u32]) {
        let (form, words, dims) = (&frame.form, frame.words, frame.filter_dims);
        self.is_exact = form.store(isa, rows, dims, words, &mut self.tiles);
        let corners = Corners::of_leaves(isa, dims, rows);
        let leaves = as_u32(rows.len() / (LANES * dims));
        let groups = firsts_of_groups(firsts, leaves);
        let above = corners.over(&groups);
        let level = Level::over(isa, form, frame.limits(0.0), &corners, groups);
        self.boxes = Some((level, above));
    }
}
