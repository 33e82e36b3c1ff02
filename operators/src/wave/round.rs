//! Rounds of tasks that workers do side by side.
//!
//! ```text
//!              ┌► task 0 ─┐
//!  begin ──────┼► task 1 ─┼────► all are back: the tasks, in their order
//!              └► task 2 ─┘
//!      each task with the shared data, which it reads
//! ```
//!
//! A task owns its part of the work and the result, so a task can run on any thread. Data that all
//! tasks read is shared. When the last task has returned, no task shares the data any more: the
//! owner of the round can change the data for the next round, or take the data.

use std::fmt;
use std::sync::Arc;

/// The tasks of a round.
pub(crate) struct Round<S, T> {
    shared: Arc<S>,
    /// Tasks that no worker has yet; the next task is at the end.
    waiting: Vec<Numbered<S, T>>,
    /// Tasks that have returned, by number.
    done: Vec<Option<T>>,
    under_way: usize,
    under_way_max: usize,
}

/// A task of a round, on its way through a worker.
pub(crate) struct Numbered<S, T> {
    number: usize,
    shared: Arc<S>,
    task: T,
}

impl<S, T> Round<S, T> {
    /// A round of `tasks`, which read `shared`.
    pub(crate) fn new(shared: S, tasks: impl IntoIterator<Item = T>) -> Self {
        let (waiting, done) = (Vec::new(), Vec::new());
        let shared = Arc::new(shared);
        let mut round = Self { shared, waiting, done, under_way: 0, under_way_max: 0 };
        round.begin(tasks);
        round
    }

    /// Limits the number of tasks that workers have at the same time, in this round, to the number
    /// for which there is memory.
    pub(crate) fn at_most(mut self, under_way_max: usize) -> Self {
        self.under_way_max = under_way_max;
        self
    }

    /// Gives the heaviest tasks first, so that no heavy task is left to the end.
    pub(crate) fn heaviest_first(mut self, weight: impl Fn(&T) -> u64) -> Self {
        self.waiting.sort_by_key(|numbered| weight(&numbered.task));
        self
    }

    /// The data that all tasks read.
    pub(crate) fn shared(&self) -> &S {
        &self.shared
    }

    /// The next task. The result is `None` while workers have the maximum number of tasks, or if no
    /// task waits.
    pub(crate) fn task(&mut self) -> Option<Numbered<S, T>> {
        let has_room = self.under_way < self.under_way_max;
        let task = if has_room { self.waiting.pop() } else { None }?;
        self.under_way += 1;
        Some(task)
    }

    /// Whether [`task`](Self::task) returns a task.
    pub(crate) fn has_task(&self) -> bool {
        !self.waiting.is_empty() && self.under_way < self.under_way_max
    }

    /// Takes back a task that is done. If this task is the last task of the round, returns all
    /// tasks of the round in the order of their numbers.
    pub(crate) fn landed(
        &mut self,
        Numbered { number, task, .. }: Numbered<S, T>,
    ) -> Option<Vec<T>> {
        self.under_way -= 1;
        self.done[number] = Some(task);
        let is_complete = self.under_way == 0 && self.waiting.is_empty();
        is_complete.then(|| self.done.drain(..).flatten().collect())
    }

    /// Begins the next round: `tasks` read the same data as the tasks of the round before. All
    /// tasks of that round have returned, and its limit by [`at_most`](Self::at_most) ends.
    pub(crate) fn begin(&mut self, tasks: impl IntoIterator<Item = T>) {
        let number = |(number, task)| Numbered { number, shared: Arc::clone(&self.shared), task };
        self.waiting = tasks.into_iter().enumerate().map(number).collect();
        self.waiting.reverse();
        self.done.clear();
        self.done.resize_with(self.waiting.len(), || None);
        self.under_way_max = self.waiting.len();
    }

    /// The shared data, which the owner of the round changes between two rounds.
    ///
    /// # Panics
    /// If a task waits, or a worker has a task.
    pub(crate) fn shared_mut(&mut self) -> &mut S {
        Arc::get_mut(&mut self.shared).expect("tasks give up their shares when they come back")
    }

    /// The shared data. Tasks that no worker has had are dropped.
    ///
    /// # Panics
    /// If a worker has a task.
    pub(crate) fn into_shared(self) -> S {
        let Self { shared, waiting, .. } = self;
        drop(waiting);
        Arc::into_inner(shared).expect("tasks give up their shares when they come back")
    }
}

impl<S, T> Numbered<S, T> {
    /// Does the task by `run`.
    pub(crate) fn run(&mut self, run: impl FnOnce(&mut T, &S)) {
        run(&mut self.task, &self.shared);
    }

    pub(crate) fn task(&self) -> &T {
        &self.task
    }

    pub(crate) fn shared(&self) -> &S {
        &self.shared
    }
}

impl<S, T: fmt::Debug> fmt::Debug for Numbered<S, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, task, .. } = self;
        let mut shown = formatter.debug_struct("Numbered");
        shown.field("number", number).field("task", task).finish_non_exhaustive()
    }
}

impl<S, T> fmt::Debug for Round<S, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waiting, under_way, .. } = self;
        let mut shown = formatter.debug_struct("Round");
        shown.field("waiting", &waiting.len()).field("under_way", under_way);
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_come_back_in_any_order_and_are_given_in_theirs() {
        let mut round = Round::new(10, [1, 2, 3]).at_most(2);
        let mut under_way: Vec<_> = std::iter::from_fn(|| round.task()).collect();
        assert_eq!(under_way.len(), 2);
        let mut complete = None;
        for place in [1, 0, 0] {
            let mut task = under_way.remove(place);
            task.run(|task, shared| *task += shared);
            assert!(complete.is_none());
            complete = round.landed(task);
            under_way.extend(round.task());
        }
        assert!(!round.has_task());
        assert_eq!(complete, Some(vec![11, 12, 13]));
        *round.shared_mut() = 20;
        round.begin([4]);
        let mut task = round.task().unwrap();
        task.run(|task, shared| *task += shared);
        assert_eq!(round.landed(task), Some(vec![24]));
        assert_eq!(round.into_shared(), 20);
    }

    #[test]
    fn the_heaviest_tasks_come_first() {
        let mut round = Round::new((), [2, 9, 4]).heaviest_first(|task| *task);
        let given: Vec<_> = std::iter::from_fn(|| round.task()).collect();
        assert!(given.iter().map(|numbered| *numbered.task()).eq([9, 4, 2]));
        let complete = given.into_iter().filter_map(|task| round.landed(task)).next();
        assert_eq!(complete, Some(vec![2, 9, 4]));
    }

    #[test]
    fn a_round_is_left_when_no_worker_has_a_task() {
        let mut round = Round::new('a', [1, 2]);
        let first = round.task().unwrap();
        assert_eq!((round.landed(first), round.has_task()), (None, true));
        assert_eq!(round.into_shared(), 'a');
    }
}
