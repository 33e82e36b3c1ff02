//! Sorts collected sets in rounds of tasks, which several cores can do at the same time.
//!
//! ```text
//! blocks of arrival ──► renumber: tokens by frequency, sets on shelves ──► order ──► collection
//!                       a task for each part of the blocks          a task for each shelf
//! ```
//!
//! A task owns its data, so any thread can run the task. A round begins after all tasks of the
//! round before have returned. The collection does not depend on the number of cores.

use std::mem;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::sets::sort_lists;

use super::shelves::{FilledShelf, ShelfPlan, Shelves};
use crate::shared::budget::Budget;
use crate::shared::sets::Shares;
use crate::shared::sets::arrival::arrived::ArrivedBlock;
use crate::shared::sets::arrival::numbering::{Numbering, Numbers, TokenCounts};
use crate::shared::sets::collection::{SetCollection, SortedPart};
use crate::shared::sets::error::SetError;
use crate::wave::{Numbered, Round};

/// Name of the memory of this step in errors.
const SORTED: &str = "the sorted sets";

/// Sets on their way from arrival to a collection.
#[derive(Debug)]
pub(crate) struct Sorting {
    step: SortingStep,
    plan: Arc<ShelfPlan>,
    cores: usize,
    is_two_sided: bool,
    counts: TokenCounts,
    budget: Budget,
    /// Bytes to give back when the sets are on shelves, and when the sets are in the collection.
    temporary: [usize; 2],
}

/// The present round of tasks.
#[derive(Debug)]
enum SortingStep {
    /// Numbers the tokens of blocks and puts the sets on shelves.
    Renumber(Round<(Isa, Numbers), Renumber>),
    /// Appends the sets of each shelf to the collection.
    Order(Round<(), Order>),
}

#[derive(Debug)]
struct Renumber {
    blocks: Vec<ArrivedBlock>,
    shelves: Shelves,
}

#[derive(Debug)]
struct Order {
    shelf: FilledShelf,
    part: SortedPart,
}

/// A task of sorting.
#[derive(Debug)]
pub(crate) struct SortingTask(SortingWork);

#[derive(Debug)]
enum SortingWork {
    Renumber(Numbered<(Isa, Numbers), Renumber>),
    Order(Numbered<(), Order>),
}

/// Collected sets with the numbers of their tokens.
pub(crate) struct Collected {
    pub(crate) blocks: Vec<ArrivedBlock>,
    pub(crate) numbering: Numbering,
    pub(crate) is_two_sided: bool,
    /// Bytes of the numbers, and of the sizes of the sets.
    pub(crate) temporary: [usize; 2],
    pub(crate) budget: Budget,
}

impl SortingTask {
    /// Does the task.
    pub(crate) fn run(&mut self) {
        match &mut self.0 {
            SortingWork::Renumber(numbered) => numbered.run(Renumber::run),
            SortingWork::Order(numbered) => {
                numbered.run(|Order { shelf, part }, ()| mem::take(shelf).append_to(part));
            }
        }
    }

    /// The share of the task in all the work, to be compared with the shares of other tasks.
    pub(crate) fn weight(&self) -> u64 {
        match &self.0 {
            SortingWork::Renumber(numbered) => {
                numbered.task().blocks.iter().map(|block| block.tokens.len() as u64).sum()
            }
            SortingWork::Order(numbered) => numbered.task().shelf.tokens() as u64,
        }
    }
}

impl Renumber {
    fn run(&mut self, (isa, numbers): &(Isa, Numbers)) {
        for mut block in mem::take(&mut self.blocks) {
            numbers.replace(&mut block.tokens);
            sort_lists(*isa, &block.offsets, &mut block.tokens);
            self.shelves.add(block);
        }
    }
}

impl Sorting {
    /// Begins to sort `collected` with tasks for the cores of `shares`.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub(crate) fn new(collected: Collected, shares: Shares) -> Result<Self, SetError> {
        let Collected { blocks, numbering, is_two_sided, temporary, mut budget } = collected;
        // The operator reports an unknown level; the order is the same at all levels.
        let isa = Isa::selected().unwrap_or(Isa::Scalar);
        let plan = Arc::new(ShelfPlan::new(&blocks, shares));
        let arrived = blocks.iter().map(|block| block.tokens.len()).max().unwrap_or(0);
        let unused_bytes = plan.unused_bytes(1 + usize::from(is_two_sided), arrived);
        budget.take(SORTED, unused_bytes)?;
        let parts = plan.parts();
        let mut blocks = blocks.into_iter();
        let tasks = (0..parts).map(|number| {
            let count = blocks.len().div_ceil(parts - number);
            let blocks = blocks.by_ref().take(count).collect();
            Renumber { blocks, shelves: Shelves::new(&plan) }
        });
        let round = Round::new((isa, numbering.numbers), tasks);
        let [of_numbers, of_sizes] = temporary;
        Ok(Self {
            step: SortingStep::Renumber(round),
            plan: Arc::clone(&plan),
            cores: shares.cores,
            is_two_sided,
            counts: numbering.counts,
            budget,
            temporary: [of_numbers + unused_bytes, of_sizes],
        })
    }

    /// The next task; `None` until a task returns.
    pub(crate) fn task(&mut self) -> Option<SortingTask> {
        Some(SortingTask(match &mut self.step {
            SortingStep::Renumber(round) => SortingWork::Renumber(round.task()?),
            SortingStep::Order(round) => SortingWork::Order(round.task()?),
        }))
    }

    /// Takes back a task that was done. Returns the collection after the last task.
    ///
    /// # Errors
    /// If there is not enough memory for the next round.
    pub(crate) fn landed(&mut self, task: SortingTask) -> Result<Option<SetCollection>, SetError> {
        match (&mut self.step, task.0) {
            (SortingStep::Renumber(round), SortingWork::Renumber(task)) => {
                let Some(tasks) = round.landed(task) else { return Ok(None) };
                self.order(tasks.into_iter().map(|task| task.shelves).collect())?;
                Ok(None)
            }
            (SortingStep::Order(round), SortingWork::Order(task)) => {
                let Some(tasks) = round.landed(task) else { return Ok(None) };
                self.finish(tasks.into_iter().map(|task| task.part).collect()).map(Some)
            }
            _ => unreachable!("a round ends before the next one begins"),
        }
    }

    /// Begins the round that orders the sets of `parts`.
    fn order(&mut self, parts: Vec<Shelves>) -> Result<(), SetError> {
        let Self { plan, budget, .. } = self;
        budget.give_back(mem::take(&mut self.temporary[0]));
        // The bytes of the sets have been taken, except for the bytes of their sides and of the
        // shelves in work.
        budget.take(SORTED, plan.sets())?;
        let shelf_bytes = plan.shelf_bytes_max();
        budget.take(SORTED, shelf_bytes)?;
        // Each shelf in work needs memory for a second copy, so the memory limits their number.
        let mut under_way_max = 1;
        while under_way_max < self.cores && budget.take(SORTED, shelf_bytes).is_ok() {
            under_way_max += 1;
        }
        self.temporary[1] += plan.sets() + under_way_max * shelf_bytes;
        let shelves = Shelves::of_parts(plan, parts).into_iter();
        let parts = SortedPart::split(plan.shelves());
        let tasks = shelves.zip(parts).map(|(shelf, part)| Order { shelf, part });
        let round = Round::new((), tasks).at_most(under_way_max);
        self.step = SortingStep::Order(round.heaviest_first(|task| task.shelf.tokens() as u64));
        Ok(())
    }

    fn finish(&mut self, parts: Vec<SortedPart>) -> Result<SetCollection, SetError> {
        let Self { plan, budget, .. } = self;
        budget.give_back(mem::take(&mut self.temporary[1]) + plan.arrived_bytes());
        budget.take(SORTED, plan.sorted_bytes())?;
        Ok(SortedPart::join(parts, self.is_two_sided, self.counts, budget.clone()))
    }

    /// Whether the work is a task for one core only.
    pub(crate) fn is_small(&self) -> bool {
        self.plan.parts() == 1
    }

    /// Does all tasks on this thread.
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
