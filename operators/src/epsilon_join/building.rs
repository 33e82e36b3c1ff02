//! Vectors of an input while they are made ready, in rounds of tasks that kernels do side by side.

use std::sync::Arc;

use trommel_kernels::vectors::{Algorithm, BuildTask, Construction, Directory};

use super::built::{Built, Collected};
use super::rules::Rules;

/// Tasks of an input that are under way.
#[derive(Debug)]
pub(super) struct Building {
    /// None after the last task.
    collected: Option<Arc<Collected>>,
    construction: Construction,
    /// Threads that a round has tasks for.
    threads: usize,
    /// Tasks of the round that no kernel has yet, with their numbers, the last one first.
    waiting: Vec<(usize, BuildTask)>,
    /// Completed tasks of the round, by number.
    done: Vec<Option<BuildTask>>,
}

impl Building {
    fn new(collected: Collected, construction: Construction, threads: usize) -> Self {
        let mut building = Self {
            construction,
            collected: Some(Arc::new(collected)),
            threads,
            waiting: Vec::new(),
            done: Vec::new(),
        };
        building.begin_round();
        building
    }

    fn begin_round(&mut self) {
        let tasks = self.construction.round(self.threads);
        self.done.resize_with(tasks.len(), || None);
        self.waiting = tasks.into_iter().enumerate().rev().collect();
    }

    /// The vectors, which chunks give back with their tasks.
    fn take_collected(&mut self) -> Option<Collected> {
        let collected = self.collected.take()?;
        Some(Arc::into_inner(collected).expect("all tasks have come back"))
    }

    /// Drops the coordinates, of which the directory has a copy; a stream needs them later.
    fn drop_coordinates(&mut self) {
        let Some(mut collected) = self.take_collected() else { return };
        if collected.stamps.is_empty() {
            collected.coordinates = Vec::new();
        }
        self.collected = Some(Arc::new(collected));
    }

    /// Takes a task back; returns the vectors if it was the last one.
    fn landed(&mut self, number: usize, task: BuildTask) -> Option<Built> {
        self.done[number] = Some(task);
        if self.done.iter().any(Option::is_none) {
            return None;
        }
        let Some(directory) = self.construction.complete(self.done.drain(..).flatten().collect())
        else {
            if !self.construction.needs_vectors() {
                self.drop_coordinates();
            }
            self.begin_round();
            return None;
        };
        self.take_collected().map(|collected| collected.ready(Some(directory)))
    }
}

/// Progress of an input.
#[derive(Debug)]
pub(super) enum Progress {
    Building(Box<Building>),
    Built(Arc<Built>),
}

impl Progress {
    /// Begins to make vectors ready, with tasks for each kernel. `is_alone` says that they are
    /// only joined with themselves, each pair once.
    pub(super) fn new(rules: &Rules, collected: Collected, is_alone: bool) -> Self {
        if !collected.has_directory {
            return Self::Built(Arc::new(collected.ready(None)));
        }
        let (dims, len) = (collected.dims, collected.len());
        let begin = if is_alone { Construction::within } else { Construction::new };
        let construction = begin(rules.isa, dims, len, rules.epsilon);
        Self::Building(Box::new(Building::new(collected, construction, rules.kernels)))
    }

    /// Begins to make the vectors of a stream ready, in small tasks. Few vectors take over the
    /// principal components of `like`.
    pub(super) fn merge(rules: &Rules, collected: Collected, like: Option<&Directory>) -> Self {
        let (dims, len) = (collected.dims, collected.len());
        let construction = match like {
            Some(like) => Construction::like(rules.isa, len, like),
            None => Construction::new(rules.isa, dims, len, rules.epsilon),
        };
        let tasks = (len * dims).div_ceil(rules.tuning.merge_numbers);
        Self::Building(Box::new(Building::new(collected, construction, tasks)))
    }

    /// Whether it is not known yet if a directory is the faster way.
    pub(super) fn is_choosing(&self) -> bool {
        matches!(self, Self::Building(building) if building.construction.is_choosing())
    }

    /// Whether a nested loop is known to be the faster way.
    pub(super) fn is_slow(&self) -> bool {
        let Self::Building(building) = self else { return false };
        building.construction.algorithm() == Algorithm::NestedLoop
    }

    /// Leaves the directory, of which no task is under way, and takes the vectors as they are.
    pub(super) fn leave_directory(&mut self) {
        let Self::Building(building) = self else { return };
        if let Some(collected) = building.collected.take().and_then(Arc::into_inner) {
            *self = Self::Built(Arc::new(collected.ready(None)));
        }
    }

    /// Whether a task waits.
    pub(super) fn has_task(&self) -> bool {
        matches!(self, Self::Building(building) if !building.waiting.is_empty())
    }

    /// The next task, with its number and the vectors; none while no task waits.
    pub(super) fn task(&mut self) -> Option<(usize, BuildTask, Arc<Collected>)> {
        let Self::Building(building) = self else { return None };
        let (number, task) = building.waiting.pop()?;
        Some((number, task, Arc::clone(building.collected.as_ref()?)))
    }

    /// Takes a task back, which has been done.
    pub(super) fn landed(&mut self, number: usize, task: BuildTask) {
        let Self::Building(building) = self else { return };
        if let Some(built) = building.landed(number, task) {
            *self = Self::Built(Arc::new(built));
        }
    }

    /// The vectors, if they are ready.
    pub(super) fn built(&self) -> Option<&Arc<Built>> {
        if let Self::Built(built) = self { Some(built) } else { None }
    }
}
