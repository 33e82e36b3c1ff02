//! Vectors of an input while they are made ready, in rounds of tasks that kernels do side by side.

use std::mem;
use std::sync::Arc;

use trommel_kernels::vectors::{Algorithm, BuildTask, Construction, Directory};

use super::built::{Built, Collected};
use crate::epsilon_join::parameters::rules::Rules;
use crate::wave::{Numbered, Round};

/// A task that reads the vectors of an input.
pub(crate) type InputTask = Numbered<Collected, BuildTask>;

/// Vectors of an input, and the round of tasks that reads them.
#[derive(Debug)]
pub(crate) struct Building {
    round: Round<Collected, BuildTask>,
    construction: Construction,
    /// Number of threads for which a round has tasks.
    threads: usize,
}

impl Building {
    fn new(collected: Collected, mut construction: Construction, threads: usize) -> Self {
        let round = Round::new(collected, construction.round(threads));
        Self { round, construction, threads }
    }

    /// Takes a task back; returns the directory if this task was the last task of the last round.
    fn landed(&mut self, task: InputTask) -> Option<Directory> {
        let directory = self.construction.complete(self.round.landed(task)?);
        if directory.is_none() {
            // The directory has a copy of the coordinates; a stream also needs the coordinates in
            // the order of arrival later.
            let collected = self.round.shared_mut();
            if !self.construction.needs_vectors() && collected.stamps.is_empty() {
                collected.coordinates = Vec::new();
            }
            self.round.begin(self.construction.round(self.threads));
        }
        directory
    }
}

/// Progress of an input.
#[derive(Debug)]
pub(crate) enum Progress {
    Building(Box<Building>),
    Built(Arc<Built>),
    /// While the vectors move from `Building` to `Built`.
    Ending,
}

impl Progress {
    /// Begins to make vectors ready, with tasks for each kernel. If `is_alone`, the vectors are
    /// joined only with themselves, each pair once.
    pub(crate) fn new(rules: &Rules, collected: Collected, is_alone: bool) -> Self {
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
    pub(crate) fn merge(rules: &Rules, collected: Collected, like: Option<&Directory>) -> Self {
        let (dims, len) = (collected.dims, collected.len());
        let construction = match like {
            Some(like) => Construction::like(rules.isa, len, like),
            None => Construction::new(rules.isa, dims, len, rules.epsilon),
        };
        let tasks = (len * dims).div_ceil(rules.tuning.merge_numbers);
        Self::Building(Box::new(Building::new(collected, construction, tasks)))
    }

    /// Whether the construction does not know yet if a directory is the faster way.
    pub(crate) fn is_choosing(&self) -> bool {
        matches!(self, Self::Building(building) if building.construction.is_choosing())
    }

    /// Whether a nested loop is known to be the faster way.
    pub(crate) fn is_slow(&self) -> bool {
        let Self::Building(building) = self else { return false };
        building.construction.algorithm() == Algorithm::NestedLoop
    }

    /// Drops the directory and takes the vectors as they are. No task is under way.
    pub(crate) fn leave_directory(&mut self) {
        self.end_building(None);
    }

    /// Ends the building, with the `directory` that the tasks have made.
    fn end_building(&mut self, directory: Option<Directory>) {
        *self = match mem::replace(self, Self::Ending) {
            Self::Building(building) => {
                Self::Built(Arc::new(building.round.into_shared().ready(directory)))
            }
            other => other,
        };
    }

    /// Whether a task waits.
    pub(crate) fn has_task(&self) -> bool {
        matches!(self, Self::Building(building) if building.round.has_task())
    }

    /// The next task; none while no task waits.
    pub(crate) fn task(&mut self) -> Option<InputTask> {
        if let Self::Building(building) = self { building.round.task() } else { None }
    }

    /// Takes back a task that has been done.
    pub(crate) fn landed(&mut self, task: InputTask) {
        let Self::Building(building) = self else { return };
        if let Some(directory) = building.landed(task) {
            self.end_building(Some(directory));
        }
    }

    /// The vectors; `None` until the vectors are ready.
    pub(crate) fn built(&self) -> Option<&Arc<Built>> {
        if let Self::Built(built) = self { Some(built) } else { None }
    }
}
