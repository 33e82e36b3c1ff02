//! The construction of a directory in rounds of tasks that threads run in parallel.
//!
//! A directory is made in up to five steps. A step is a round: the construction makes the tasks of
//! the round, each task runs on any thread in any order, and the construction takes all tasks of
//! the round back before the next round begins.
//!
//! ```text
//! more than 16 dimensions         CHOOSE ─► MAP ─┐
//!   with the map of a directory             MAP ─┤
//! up to 16 dimensions                            ├─► PLANT ─► SORT ─► ORDER ─┬─ mapped ─► done
//!                                                │    ▲               │      │
//!                                                │    │            buckets   └─► STORE ─► done
//! up to 3, joined with itself  SURVEY ─► SORT ───┼────┤
//!                                         │      │    │ a strip has too many points
//!                                       strips ──┘    │
//!                                         └─► ORDER ──┴─ windows of strips are too long
//!                                              └─► done
//! ```
//!
//! | step | a task | its reply | after all replies |
//! |---|---|---|---|
//! | choose | a sample of all rows; one task | the principal components, and the share of pairs that pass | `Construction::algorithm` is known |
//! | map | a range of rows | their coordinates along the components, and how far rounding moved a point | coordinates take the place of the rows |
//! | survey | a range of rows | their extent | the extent of all rows gives a grid of strips |
//! | plant | a sample of all rows; one task | a kd tree | |
//! | sort | a range of rows | the bucket or the strip of each row | points of each bucket are counted, the form is chosen |
//! | order | a range of buckets or strips | their points in order; of strips and of mapped points also the stored form | the input is not read any more |
//! | store | the ordered points of a range of buckets | the same points, with their stored form and boxes | levels of boxes over all leaves |
//!
//! # Who owns what?
//!
//! Between rounds the construction owns all data. All tasks of a round share the data that they
//! read (the rows, the tree or the grid, and the places of points), and no task changes this data
//! during the round. A task writes a [`Part`] of one vector. The part goes to the thread with the
//! task and returns in the reply; after the last round the parts are joined without a copy. So no
//! step waits for a lock, and no step has to prove that it is the last user of shared data.
//!
//! # Cases
//!
//! - **One thread.** [`Construction::round`] makes one task for a round. The directory is the same,
//!   bit for bit, for any number of tasks: tasks divide rows and buckets at places that no result
//!   depends on.
//! - **Strips do not fit.** Points of up to three dimensions begin with strips (see `strips`),
//!   because the order of strips is faster. The sort step shows a strip with more points than a
//!   grid allows; the order step shows windows of leaves that are too long. In both cases the next
//!   step is to plant a tree, and the work on strips is lost.
//! - **Mapped points.** Only the order task knows the coordinates of mapped points, so the task
//!   makes their stored form at once. Points that are not mapped get the stored form in a round of
//!   its own, because then the caller can drop the input first
//!   ([`Construction::needs_vectors`]): the ordered points are a copy of the input, and the two
//!   copies and the stored form are never in memory at the same time.
//! - **No rows.** Tasks have empty ranges, and the directory has no levels.
//! - **A construction is dropped in the middle of a round.** Tasks that are under way finish and
//!   drop their parts; the last part frees the memory.

mod buckets;
mod coordinates;
mod points;
mod task;

use std::mem::{replace, take};
use std::sync::Arc;

use self::buckets::{Places, Sorted, Sorter, Sorting};
use self::coordinates::{Coordinates, Mapping};
use self::points::{Ordering, Points, Storing};
use self::task::{Reply, Work, only, replies_of};
use super::directory::{Directory, PLAIN_DIMS_MAX};
use super::epsilon::Epsilon;
use super::filters::{Extent, Form, Principal};
use super::plan::Algorithm;
use super::rows::Vectors;
use super::strips::{Grid, STRIP_DIMS_MAX};
use crate::Isa;
#[cfg(doc)]
use crate::memory::Part;

pub use self::task::BuildTask;

/// Tasks of a round for each of several threads, so that all threads end at about the same time.
const TASKS_A_THREAD: usize = 2;

const HAS_TASKS: &str = "a round has tasks";

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
    /// The map of the coordinates, and a bound on the distance by which rounding moved a point;
    /// none before rows are mapped.
    map: Option<(Arc<Principal>, f64)>,
    coordinates: Coordinates,
    /// The share of pairs that pass the filter of the map, if it is known.
    share: f64,
}

/// The step of the next round, with the data that only its tasks need.
#[derive(Debug)]
enum Step {
    Choose,
    Map(Arc<Principal>),
    Survey,
    Plant,
    Sort(Arc<Sorter>),
    Order(Arc<Places>),
    /// A directory without its points, and the points; the tasks of the round have them.
    Store(Arc<Directory>, Points),
}

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
        let (form, coordinates) = (Form::choose, Coordinates::default());
        Self { isa, dims, len, epsilon, form, step, map: None, coordinates, share: 0.0 }
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

    /// As [`Self::new`], for a directory that is only joined with itself: an order in strips is
    /// faster for points of few dimensions.
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

    /// The construction with this map, or without a map.
    pub(super) fn with_map(self, map: Option<Principal>) -> Self {
        let step = map.map_or(Step::Plant, |principal| Step::Map(Arc::new(principal)));
        Self { step, ..self }
    }

    /// The construction with this choice of a form for an extent and a reach.
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

    /// Whether the next round decides how a directory filters, so that [`Self::algorithm`] is not
    /// known yet.
    #[must_use]
    pub fn is_choosing(&self) -> bool {
        matches!(self.step, Step::Choose)
    }

    /// The faster way to join these vectors, if they are many, judged by their sample.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        Algorithm::of_share(self.share)
    }

    /// Whether tasks of this round or a later round read the vectors; otherwise the vectors may be
    /// dropped.
    #[must_use]
    pub fn needs_vectors(&self) -> bool {
        !matches!(self.step, Step::Store(..))
    }

    /// The tasks of the next round, for `threads` threads. The caller calls this method once before
    /// each call of [`Self::complete`].
    #[must_use]
    pub fn round(&mut self, threads: usize) -> Vec<BuildTask> {
        let pieces = if threads > 1 { threads * TASKS_A_THREAD } else { 1 };
        let len = self.len;
        let rows = (0..pieces).map(|piece| piece * len / pieces..(piece + 1) * len / pieces);
        let works: Vec<Work> = match &mut self.step {
            Step::Choose => vec![Work::Choose(self.epsilon.reach())],
            Step::Map(principal) => Mapping::all(principal, rows).map(Work::Map).collect(),
            Step::Survey => rows.map(Work::Survey).collect(),
            Step::Plant => vec![Work::Plant],
            Step::Sort(sorter) => Sorting::all(sorter, rows).map(Work::Sort).collect(),
            Step::Order(places) => Ordering::all(places, pieces).map(Work::Order).collect(),
            Step::Store(frame, points) => Storing::all(frame, take(points))
                .map(|storing| Work::Store(Box::new(storing)))
                .collect(),
        };
        works.into_iter().map(|work| BuildTask::new(self.isa, &self.coordinates, work)).collect()
    }

    /// Takes the tasks of a round back, in their order, after all have been run. Returns the
    /// directory after the last round.
    ///
    /// # Panics
    ///
    /// If a task is missing, has not been run or is of another round.
    pub fn complete(&mut self, tasks: Vec<BuildTask>) -> Option<Directory> {
        self.step = match replace(&mut self.step, Step::Plant) {
            Step::Choose => {
                let (principal, share) = only(replies_of(tasks, Reply::chosen));
                self.share = share;
                Step::Map(Arc::new(principal))
            }
            Step::Map(principal) => {
                let moved;
                (self.coordinates, moved) =
                    Coordinates::of(&principal, replies_of(tasks, Reply::mapped));
                self.map = Some((principal, moved));
                Step::Plant
            }
            Step::Survey => {
                let extents = replies_of(tasks, Reply::surveyed).into_iter();
                let extent = extents.reduce(|one, other| one.wider(&other)).expect(HAS_TASKS);
                let grid = Grid::new(&extent, self.epsilon.reach(), self.len);
                Step::Sort(Arc::new(Sorter::Grid(grid, extent)))
            }
            Step::Plant => {
                let tree = only(replies_of(tasks, Reply::planted));
                Step::Sort(Arc::new(Sorter::Tree(tree)))
            }
            Step::Sort(sorter) => {
                let sorted = sorter.gathered(replies_of(tasks, Reply::sorted));
                if sorted.grid.is_some() && !Grid::is_fine(&sorted.counts) {
                    Step::Plant
                } else {
                    Step::Order(Arc::new(self.places(sorted)))
                }
            }
            Step::Order(places) => {
                let mut points = Points::of(replies_of(tasks, Reply::ordered));
                let strips = points.strips(&places, self.epsilon.reach());
                let (frame, has_strips) = (Arc::clone(&places.frame), places.grid.is_some());
                drop(places);
                match strips {
                    None if has_strips => Step::Plant,
                    None if frame.map.is_none() => Step::Store(frame, points),
                    strips => return Some(points.directory(self.isa, self.len, frame, strips)),
                }
            }
            Step::Store(frame, _) => {
                let points = Points::of(replies_of(tasks, Reply::ordered));
                return Some(points.directory(self.isa, self.len, frame, None));
            }
        };
        None
    }

    /// The places of sorted points, in a directory whose form fits their extent.
    fn places(&mut self, sorted: Sorted) -> Places {
        let Sorted { buckets, counts, extent, grid } = sorted;
        let map = self.map.take();
        let map = map.map(|(principal, moved)| (Arc::unwrap_or_clone(principal), moved));
        let form = |reach| (self.form)(&extent, reach);
        let frame = Directory::empty(self.dims, self.epsilon, map, extent.low.len(), form);
        Places { frame: Arc::new(frame), buckets, counts, grid }
    }
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

    /// As [`Self::new`], for points that are only joined with themselves: an order in strips is
    /// faster for points of few dimensions.
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
