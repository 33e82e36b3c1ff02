//! Sorts collected sets in rounds of tasks, which cores can do side by side.
//!
//! ```text
//! blocks of arrival ──► renumber: tokens by frequency, sets on shelves ──► order ──► collection
//!                       a task for each part of the blocks          a task for each shelf
//! ```
//!
//! A task owns its data, so it can run anywhere; the round after it begins when all tasks of a
//! round are back. The collection does not depend on the number of cores.

use std::mem;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::sets::sort_lists;

use super::Shares;
use super::arrived::ArrivedBlock;
use super::collection::{SetCollection, SortedPart};
use super::error::SetError;
use super::numbering::{Numbering, Numbers, TokenCounts};
use super::shelves::{FilledShelf, ShelfPlan, Shelves};
use crate::budget::Budget;

/// Name of the memory of this step in errors.
const SORTED: &str = "the sorted sets";

/// Sets on their way from arrival to a collection.
#[derive(Debug)]
pub(crate) struct Sorting {
    round: Round,
    plan: Arc<ShelfPlan>,
    cores: usize,
    is_two_sided: bool,
    counts: TokenCounts,
    budget: Budget,
    /// Bytes to be given back when the sets are on shelves, and when they are in the collection.
    temporary: [usize; 2],
    /// Tasks that nobody has yet, the next one last.
    waiting: Vec<SortingTask>,
    /// Maximum number of tasks under way, for which there is memory.
    under_way_max: usize,
    under_way: usize,
}

/// The round of tasks, with the results of those that are back.
#[derive(Debug)]
enum Round {
    Renumber(Vec<Option<Shelves>>),
    Order(Vec<Option<SortedPart>>),
}

/// A task of sorting.
#[derive(Debug)]
pub(crate) struct SortingTask {
    /// Its number in the round.
    number: usize,
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// Numbers the tokens of `blocks` and puts the sets on shelves.
    Renumber { isa: Isa, numbers: Arc<Numbers>, blocks: Vec<ArrivedBlock>, shelves: Shelves },
    /// Appends the sets of a shelf to the collection.
    Order { shelf: FilledShelf, part: SortedPart },
}

/// Collected sets with the numbers of their tokens.
pub(super) struct Collected {
    pub(super) blocks: Vec<ArrivedBlock>,
    pub(super) numbering: Numbering,
    pub(super) is_two_sided: bool,
    /// Bytes of the numbers, and of the sizes of the sets.
    pub(super) temporary: [usize; 2],
    pub(super) budget: Budget,
}

impl SortingTask {
    /// Does the task.
    pub(crate) fn run(&mut self) {
        match &mut self.work {
            Work::Renumber { isa, numbers, blocks, shelves } => {
                for mut block in mem::take(blocks) {
                    numbers.replace(&mut block.tokens);
                    sort_lists(*isa, &block.offsets, &mut block.tokens);
                    shelves.add(block);
                }
            }
            Work::Order { shelf, part } => mem::take(shelf).append_to(part),
        }
    }

    /// Its share of all the work, to be compared with that of other tasks.
    pub(crate) fn weight(&self) -> u64 {
        match &self.work {
            Work::Renumber { blocks, .. } => {
                blocks.iter().map(|block| block.tokens.len() as u64).sum()
            }
            Work::Order { shelf, .. } => shelf.tokens() as u64,
        }
    }
}

impl Sorting {
    /// Begins to sort `collected` with tasks for the cores of `shares`.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub(super) fn new(collected: Collected, shares: Shares) -> Result<Self, SetError> {
        let Collected { blocks, numbering, is_two_sided, temporary, mut budget } = collected;
        // An unknown level is an error of the operator; the order is the same on all of them.
        let isa = Isa::selected().unwrap_or(Isa::Scalar);
        let plan = Arc::new(ShelfPlan::new(&blocks, shares));
        let arrived = blocks.iter().map(|block| block.tokens.len()).max().unwrap_or(0);
        let unused_bytes = plan.unused_bytes(1 + usize::from(is_two_sided), arrived);
        budget.take(SORTED, unused_bytes)?;
        let numbers = Arc::new(numbering.numbers);
        let parts = plan.parts();
        let mut waiting = Vec::with_capacity(parts);
        let mut blocks = blocks.into_iter();
        for number in 0..parts {
            let count = blocks.len().div_ceil(parts - number);
            let blocks = blocks.by_ref().take(count).collect();
            let (numbers, shelves) = (Arc::clone(&numbers), Shelves::new(&plan));
            let work = Work::Renumber { isa, numbers, blocks, shelves };
            waiting.push(SortingTask { number, work });
        }
        waiting.reverse();
        let round = Round::Renumber(waiting.iter().map(|_| None).collect());
        let [of_numbers, of_sizes] = temporary;
        Ok(Self {
            round,
            plan,
            cores: shares.cores,
            is_two_sided,
            counts: numbering.counts,
            budget,
            temporary: [of_numbers + unused_bytes, of_sizes],
            under_way_max: waiting.len(),
            waiting,
            under_way: 0,
        })
    }

    /// The next task; none until one comes back.
    pub(crate) fn task(&mut self) -> Option<SortingTask> {
        if self.under_way == self.under_way_max {
            return None;
        }
        let task = self.waiting.pop()?;
        self.under_way += 1;
        Some(task)
    }

    /// Takes a task back that has been done. The collection, if it was the last one.
    ///
    /// # Errors
    /// If there is not enough memory for the next round.
    pub(crate) fn landed(&mut self, task: SortingTask) -> Result<Option<SetCollection>, SetError> {
        self.under_way -= 1;
        match (&mut self.round, task.work) {
            (Round::Renumber(done), Work::Renumber { shelves, .. }) => {
                done[task.number] = Some(shelves);
            }
            (Round::Order(done), Work::Order { part, .. }) => done[task.number] = Some(part),
            _ => unreachable!("a round ends before the next one begins"),
        }
        if self.under_way > 0 || !self.waiting.is_empty() {
            return Ok(None);
        }
        match &mut self.round {
            Round::Renumber(done) => {
                let parts = mem::take(done).into_iter().flatten().collect();
                self.order(parts)?;
                Ok(None)
            }
            Round::Order(done) => {
                let parts = mem::take(done).into_iter().flatten().collect();
                self.finish(parts).map(Some)
            }
        }
    }

    /// Begins the round that orders the sets of `parts`.
    fn order(&mut self, parts: Vec<Shelves>) -> Result<(), SetError> {
        let Self { plan, budget, .. } = self;
        budget.give_back(mem::take(&mut self.temporary[0]));
        // The bytes of the sets are taken already, but for their sides and the shelves under way.
        budget.take(SORTED, plan.sets())?;
        let shelf_bytes = plan.shelf_bytes_max();
        budget.take(SORTED, shelf_bytes)?;
        self.under_way_max = 1;
        while self.under_way_max < self.cores && budget.take(SORTED, shelf_bytes).is_ok() {
            self.under_way_max += 1;
        }
        self.temporary[1] += plan.sets() + self.under_way_max * shelf_bytes;
        let shelves = Shelves::of_parts(plan, parts).into_iter();
        let parts = SortedPart::split(plan.shelves());
        let task =
            |(number, (shelf, part))| SortingTask { number, work: Work::Order { shelf, part } };
        self.waiting = shelves.zip(parts).enumerate().map(task).collect();
        // The largest shelf first, so that none waits for it at the end.
        self.waiting.sort_by_key(SortingTask::weight);
        self.round = Round::Order(self.waiting.iter().map(|_| None).collect());
        Ok(())
    }

    fn finish(&mut self, parts: Vec<SortedPart>) -> Result<SetCollection, SetError> {
        let Self { plan, budget, .. } = self;
        budget.give_back(mem::take(&mut self.temporary[1]) + plan.arrived_bytes());
        budget.take(SORTED, plan.sorted_bytes())?;
        Ok(SortedPart::join(parts, self.is_two_sided, self.counts, budget.clone()))
    }

    /// Whether there is a task for one core only.
    pub(crate) fn is_small(&self) -> bool {
        self.plan.parts() == 1
    }

    /// Does all tasks here.
    ///
    /// # Errors
    /// As [`Self::landed`].
    pub(crate) fn run(mut self) -> Result<SetCollection, SetError> {
        loop {
            let mut task = self.task().expect("the last task makes the collection");
            task.run();
            if let Some(collection) = self.landed(task)? {
                return Ok(collection);
            }
        }
    }
}
