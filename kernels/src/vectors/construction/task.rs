//! A task of a round, its work and its reply.

use std::ops::Range;

use super::buckets::{SortedRows, Sorting};
use super::coordinates::{Coordinates, Mapping};
use super::points::{OrderedRun, Ordering, Storing};
use crate::Isa;
use crate::memory::Part;
use crate::vectors::directory::Tree;
use crate::vectors::filters::{Extent, Principal};
use crate::vectors::rows::Vectors;

/// A task of a round.
#[derive(Debug)]
pub struct BuildTask {
    isa: Isa,
    coordinates: Coordinates,
    /// None after the task has been run.
    work: Option<Work>,
    reply: Option<Reply>,
}

/// The work of a task, for each step.
#[derive(Debug)]
pub(super) enum Work {
    /// The choice for a join by this distance.
    Choose(f64),
    Map(Mapping),
    Survey(Range<usize>),
    Plant,
    Sort(Sorting),
    Order(Ordering),
    Store(Box<Storing>),
}

/// The result of a task, with the parts that it has written.
#[derive(Debug)]
pub(super) enum Reply {
    Chosen(Box<Principal>, f64),
    Mapped(Part<f32>, f64),
    Surveyed(Extent),
    Planted(Tree),
    Sorted(SortedRows),
    /// The reply of the steps order and store.
    Ordered(Box<OrderedRun>),
}

impl BuildTask {
    pub(super) fn new(isa: Isa, coordinates: &Coordinates, work: Work) -> Self {
        Self { isa, coordinates: coordinates.clone(), work: Some(work), reply: None }
    }

    /// Runs the task for `vectors`: the same vectors for all tasks, or no vectors once the
    /// construction does not [need](super::Construction::needs_vectors) them. A task that has been
    /// run does nothing.
    ///
    /// # Panics
    ///
    /// If the instruction set is not available, or the vectors do not have the length and the
    /// dimensions of the construction.
    pub fn run(&mut self, vectors: Vectors<'_>) {
        let (isa, filtered) = (self.isa, self.coordinates.or(vectors));
        let Some(work) = self.work.take() else { return };
        self.reply = Some(match work {
            Work::Choose(reach) => {
                let (principal, share) = Principal::choose(isa, vectors, reach);
                Reply::Chosen(Box::new(principal), share)
            }
            Work::Map(mapping) => {
                let (mapped, moved) = mapping.run(isa, vectors);
                Reply::Mapped(mapped, moved)
            }
            Work::Survey(rows) => Reply::Surveyed(Extent::of(isa, vectors.part(rows))),
            Work::Plant => Reply::Planted(Tree::of(isa, filtered)),
            Work::Sort(sorting) => Reply::Sorted(sorting.run(isa, filtered)),
            Work::Order(ordering) => Reply::Ordered(Box::new(ordering.run(isa, vectors, filtered))),
            Work::Store(storing) => Reply::Ordered(Box::new(storing.run(isa))),
        });
    }
}

/// The results of all tasks of a round; `pick` takes the result of the round's step from a reply.
///
/// # Panics
///
/// If a task has not been run or is of another round.
pub(super) fn replies_of<T>(tasks: Vec<BuildTask>, pick: fn(Reply) -> Option<T>) -> Vec<T> {
    let reply = |task: BuildTask| {
        let reply = task.reply.expect("all tasks have been run");
        pick(reply).expect("all tasks are of this round")
    };
    tasks.into_iter().map(reply).collect()
}

/// The reply of a round of one task.
///
/// # Panics
///
/// If the task is missing.
pub(super) fn only<T>(replies: Vec<T>) -> T {
    replies.into_iter().next().expect("the task of the round is there")
}

impl Reply {
    pub(super) fn chosen(self) -> Option<(Principal, f64)> {
        if let Self::Chosen(principal, share) = self { Some((*principal, share)) } else { None }
    }

    pub(super) fn mapped(self) -> Option<(Part<f32>, f64)> {
        if let Self::Mapped(mapped, moved) = self { Some((mapped, moved)) } else { None }
    }

    pub(super) fn surveyed(self) -> Option<Extent> {
        if let Self::Surveyed(extent) = self { Some(extent) } else { None }
    }

    pub(super) fn planted(self) -> Option<Tree> {
        if let Self::Planted(tree) = self { Some(tree) } else { None }
    }

    pub(super) fn sorted(self) -> Option<SortedRows> {
        if let Self::Sorted(sorted) = self { Some(sorted) } else { None }
    }

    pub(super) fn ordered(self) -> Option<OrderedRun> {
        if let Self::Ordered(run) = self { Some(*run) } else { None }
    }
}
