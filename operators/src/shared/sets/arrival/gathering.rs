//! Collects the sets of batches in tasks, which several cores can do while further batches arrive.
//!
//! ```text
//! batches ──► gather: a block of sets, checked, tokens counted ──┬──► blocks in the order of arrival
//!                     a task for some batches of one input       └──► occurrences of the tokens
//! ```
//!
//! Tables of occurrences travel with tasks, and are added up at the end. The number of tables is
//! limited by their worth: all tables together have fewer places than there are tokens. A block
//! whose task found no table, or a table that was too small, is counted later.

use std::collections::VecDeque;
use std::mem;

use super::arrived::{ArrivedBlock, Extent, RowCounts};
use super::collector::{BLOCK_TOKENS, SetCollector};
use super::numbering::{TokenCounter, Totals};
use crate::shared::sets::Shares;
use crate::shared::sets::error::SetError;
use crate::shared::sets::input::column::SetBatch;
use crate::shared::sets::side::Side;
use crate::shared::sets::sorting::rounds::Sorting;

/// Tokens for each place of the tables of occurrences.
const TOKENS_PER_PLACE: usize = 4;

/// Tables per core: one in use, and one in a task that waits for the core.
const TABLES_PER_CORE: usize = 2;

/// Sets of batches, and the tasks that collect them.
#[derive(Debug)]
pub(crate) struct Gathering {
    collector: SetCollector,
    size_min: usize,
    shares: Shares,
    /// Batches of one input that are too few for a task, with their tokens.
    pending: Vec<PendingBatch>,
    pending_side: Side,
    pending_rows: usize,
    pending_tokens: usize,
    /// Tasks that have not been handed out.
    ready: VecDeque<GatheringTask>,
    /// Number of tasks in work that make blocks.
    gathers: usize,
    /// Blocks in the order of arrival; the blocks of tasks in work are empty.
    blocks: Vec<ArrivedBlock>,
    /// Blocks that have not been counted.
    uncounted: Vec<usize>,
    /// Tables that are not in work, and the number of all tables.
    counters: Vec<TokenCounter>,
    tables: usize,
    under_way: usize,
    counts: RowCounts,
}

/// The sets of a batch.
#[derive(Debug)]
struct PendingBatch {
    sets: SetBatch,
    /// Number of the first row, if numbers of rows replace ids.
    first_row: Option<u32>,
}

/// A task of collecting.
#[derive(Debug)]
pub(crate) struct GatheringTask {
    work: GatheringWork,
    counter: Option<TokenCounter>,
    /// Rows and tokens, including the rows and tokens of sets that are left out.
    rows: usize,
    tokens: usize,
}

#[derive(Debug)]
enum GatheringWork {
    Gather(Box<Gather>),
    /// Counts blocks, each with its number, whose largest token is `token_max`.
    Count {
        blocks: Vec<(usize, ArrivedBlock)>,
        token_max: u32,
    },
}

/// Batches that become a block.
#[derive(Debug)]
struct Gather {
    /// Number of the block.
    number: usize,
    batches: Vec<PendingBatch>,
    size_min: usize,
    block: ArrivedBlock,
    counts: RowCounts,
    extent: Extent,
    is_counted: bool,
}

impl GatheringTask {
    /// Does the task.
    pub(crate) fn run(&mut self) {
        match &mut self.work {
            GatheringWork::Gather(gather) => {
                gather.run(self.tokens);
                let Gather { block, extent, is_counted, .. } = &mut **gather;
                let (side, token_max) = (block.side, extent.token_max);
                *is_counted = match &mut self.counter {
                    Some(counter) => counter.count_within(side, &block.tokens, token_max),
                    None => false,
                };
            }
            GatheringWork::Count { blocks, token_max } => {
                let counter = self.counter.as_mut().expect("it was sent with a table");
                for (_, block) in blocks {
                    counter.count_within(block.side, &block.tokens, *token_max);
                }
            }
        }
    }

    /// The share of the task in all the work, to be compared with the shares of other tasks.
    pub(crate) fn weight(&self) -> u64 {
        self.tokens as u64
    }
}

impl Gather {
    fn run(&mut self, tokens: usize) {
        self.block = ArrivedBlock::with_capacity(self.block.side, tokens);
        for PendingBatch { sets, first_row } in mem::take(&mut self.batches) {
            let counts = self.block.push_rows(&sets.ascending(), first_row, self.size_min);
            self.counts.add(counts);
        }
        self.extent = self.block.extent(0);
    }
}

impl Gathering {
    /// Collects the sets of at least `size_min` tokens for `collector`, in tasks for the cores of
    /// `shares`. `size_min` is at least 1.
    pub(crate) fn new(collector: SetCollector, size_min: usize, shares: Shares) -> Self {
        Self {
            collector,
            size_min,
            shares,
            pending: Vec::new(),
            pending_side: Side::Left,
            pending_rows: 0,
            pending_tokens: 0,
            ready: VecDeque::new(),
            gathers: 0,
            blocks: Vec::new(),
            uncounted: Vec::new(),
            counters: Vec::new(),
            tables: 0,
            under_way: 0,
            counts: RowCounts::default(),
        }
    }

    /// Takes a batch. If columns are carried, its rows are numbered from `first_row` on.
    ///
    /// # Errors
    /// If all sets have too many tokens, or if the tokens do not fit into the memory.
    pub(crate) fn take(
        &mut self,
        side: Side,
        sets: SetBatch,
        first_row: Option<u32>,
    ) -> Result<(), SetError> {
        let (rows, tokens) = (sets.len(), sets.tokens());
        self.collector.expect(side, rows, tokens)?;
        // A block has sets of one side only.
        if side != self.pending_side {
            self.close();
        }
        self.pending_side = side;
        self.pending_rows += rows;
        self.pending_tokens += tokens;
        self.pending.push(PendingBatch { sets, first_row });
        if self.pending_tokens >= BLOCK_TOKENS.min(self.shares.tokens_min) {
            self.close();
        }
        Ok(())
    }

    /// Makes a task of the pending batches.
    fn close(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let number = self.blocks.len();
        self.blocks.push(ArrivedBlock::default());
        let gather = Gather {
            number,
            batches: mem::take(&mut self.pending),
            size_min: self.size_min,
            block: ArrivedBlock { side: self.pending_side, ..ArrivedBlock::default() },
            counts: RowCounts::default(),
            extent: Extent::default(),
            is_counted: false,
        };
        let work = GatheringWork::Gather(Box::new(gather));
        let (rows, tokens) =
            (mem::take(&mut self.pending_rows), mem::take(&mut self.pending_tokens));
        self.ready.push_back(GatheringTask { work, counter: None, rows, tokens });
    }

    /// The next task; `None` until a task returns or, unless `is_ended`, further batches arrive.
    pub(crate) fn task(&mut self, is_ended: bool) -> Option<GatheringTask> {
        if is_ended {
            self.close();
        }
        if let Some(mut task) = self.ready.pop_front() {
            task.counter = self.counter();
            self.under_way += 1;
            self.gathers += 1;
            return Some(task);
        }
        // The size of a table is known after all blocks have arrived.
        if !is_ended || self.gathers > 0 || self.uncounted.is_empty() {
            return None;
        }
        let counter = self.counter()?;
        // Each table counts about the same number of blocks, so several tasks can count.
        let share = self.uncounted.len().div_ceil(self.tables_max());
        let first = self.uncounted.len() - share;
        let blocks = self.uncounted.drain(first..);
        let blocks: Vec<_> =
            blocks.map(|number| (number, mem::take(&mut self.blocks[number]))).collect();
        let rows = blocks.iter().map(|(_, block)| block.ids.len()).sum();
        let tokens = blocks.iter().map(|(_, block)| block.tokens.len()).sum();
        let work = GatheringWork::Count { blocks, token_max: self.collector.totals().token_max };
        self.under_way += 1;
        Some(GatheringTask { work, counter: Some(counter), rows, tokens })
    }

    /// Maximum number of tables that are worth their memory.
    fn tables_max(&self) -> usize {
        let Totals { tokens, token_max, .. } = self.collector.totals();
        let worth = tokens / TOKENS_PER_PLACE / (token_max as usize + 1);
        worth.clamp(1, TABLES_PER_CORE * self.shares.cores)
    }

    /// A table with places for all tokens so far, if a task can have a table. If there is no memory
    /// for a table, the count at the end reports the lack.
    fn counter(&mut self) -> Option<TokenCounter> {
        let mut counter = match self.counters.pop() {
            Some(counter) => counter,
            None if self.tables < self.tables_max() => {
                self.tables += 1;
                TokenCounter::default()
            }
            None => return None,
        };
        if self.collector.make_room(&mut counter) {
            return Some(counter);
        }
        self.counters.push(counter);
        None
    }

    /// Takes back a task that was done.
    pub(crate) fn landed(&mut self, task: GatheringTask) {
        self.under_way -= 1;
        self.counters.extend(task.counter);
        match task.work {
            GatheringWork::Gather(gather) => {
                self.gathers -= 1;
                let Gather { number, block, counts, extent, is_counted, .. } = *gather;
                let left_out = [task.rows - extent.sets, task.tokens - block.tokens.len()];
                self.collector.gathered(left_out, extent);
                self.counts.add(counts);
                if !is_counted {
                    self.uncounted.push(number);
                }
                self.blocks[number] = block;
            }
            GatheringWork::Count { blocks, .. } => {
                blocks.into_iter().for_each(|(number, block)| self.blocks[number] = block);
            }
        }
    }

    /// Whether the work is so small that one core does it before other cores could begin.
    pub(crate) fn is_small(&self) -> bool {
        self.under_way == 0 && self.collector.totals().tokens < self.shares.tokens_min
    }

    /// Whether a task is in work.
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// The collector of the sets.
    pub(crate) fn collector(&self) -> &SetCollector {
        &self.collector
    }

    /// The collector of the sets.
    pub(crate) fn collector_mut(&mut self) -> &mut SetCollector {
        &mut self.collector
    }

    /// Counts of the rows of tasks that have returned.
    pub(crate) fn counts(&self) -> RowCounts {
        self.counts
    }

    /// Begins to sort the sets. No task is in work, and no task is left.
    ///
    /// # Errors
    /// If the numbers of the tokens do not fit into the memory.
    pub(crate) fn sort(self) -> Result<Sorting, SetError> {
        let Self { collector, blocks, uncounted, counters, shares, .. } = self;
        collector.sort_blocks(blocks, &uncounted, counters, shares)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, UInt32Builder};
    use arrow_array::cast::AsArray;
    use arrow_array::{ArrayRef, RecordBatch, UInt32Array};

    use super::*;
    use crate::shared::sets::SetCollection;
    use crate::testing::sets::{batch, families};

    /// Sets of all sizes, with an empty set and a null set, in batches of both sides.
    fn batches(of: &[BTreeSet<u32>]) -> Vec<(Side, RecordBatch)> {
        let side = |number: usize| if number % 3 == 2 { Side::Right } else { Side::Left };
        let with_gaps = |number: usize, sets: &[BTreeSet<u32>]| {
            let first = u32::try_from(1000 * number).unwrap();
            let has_gaps = number % 4 == 1;
            batch(
                (first..).zip(sets).map(|(id, set)| (id, (!has_gaps || id % 5 > 0).then_some(set))),
            )
        };
        let number = |(number, sets)| (side(number), with_gaps(number, sets));
        of.chunks(7).enumerate().map(number).collect()
    }

    fn read(records: &RecordBatch) -> SetBatch {
        let ids = records.column(0).as_primitive().clone();
        SetBatch::new(ids, records.column(1).as_list().clone())
    }

    /// The sets, each with its side and its id.
    fn sets(collection: &SetCollection) -> Vec<(Side, u32, Vec<u32>)> {
        let set =
            |set| (collection.side(set), collection.block().id(set), collection.set(set).to_vec());
        (0..).take(collection.len()).map(set).collect()
    }

    #[test]
    fn tasks_make_the_collection_that_one_core_makes() {
        let mut all = families(400, 12, 3);
        all[17] = BTreeSet::new();
        all[230] = (0..300).collect();
        for (size_min, cores, tokens_min) in [(1, 2, 16), (4, 3, 100), (1, 5, 1 << 20)] {
            let mut collector = SetCollector::new(1 << 30);
            let shares = Shares { cores, tokens_min };
            let mut gathering = Gathering::new(SetCollector::new(1 << 30), size_min, shares);
            let (mut expected, mut row) = (RowCounts::default(), 0);
            let mut under_way = Vec::new();
            for (number, (side, records)) in batches(&all).into_iter().enumerate() {
                // In the second case, rows are numbered.
                let first_row = (size_min > 1).then_some(row);
                row += u32::try_from(records.num_rows()).unwrap();
                let rows = read(&records);
                expected.add(collector.push_rows(side, &rows, first_row, size_min).unwrap());
                gathering.take(side, rows, first_row).unwrap();
                under_way.extend(std::iter::from_fn(|| gathering.task(false)));
                if number % 5 == 0 && !under_way.is_empty() {
                    let mut task = under_way.remove(number % under_way.len());
                    task.run();
                    gathering.landed(task);
                }
            }
            loop {
                under_way.extend(std::iter::from_fn(|| gathering.task(true)));
                let Some(mut task) = under_way.pop() else { break };
                task.run();
                gathering.landed(task);
            }
            assert!(!gathering.is_under_way());
            assert_eq!(gathering.counts(), expected);
            let (tasks, one) =
                (gathering.sort().unwrap().run().unwrap(), collector.finish().unwrap());
            assert_eq!(sets(&tasks), sets(&one));
            assert_eq!(tasks.distinct(), one.distinct());
            assert_eq!(tasks.unshared(), one.unshared());
            assert_eq!(tasks.is_two_sided(), one.is_two_sided());
        }
    }

    #[test]
    fn sets_in_any_order_and_with_duplicates_are_made_to_ascend() {
        let mut lists = ListBuilder::new(UInt32Builder::new());
        lists.append_value([1, 5].map(Some));
        lists.append_value([9, 3, 9, 4, 3].map(Some));
        lists.append_value([9, 9].map(Some));
        lists.append_null();
        let ids: ArrayRef = Arc::new(UInt32Array::from(vec![4, 5, 6, 7]));
        let columns = [("id", ids), ("set", Arc::new(lists.finish()) as ArrayRef)];
        let records = RecordBatch::try_from_iter(columns).unwrap();
        // Without its duplicates, a set may be too small; the second case reads a part of a longer
        // batch.
        for records in [records.clone(), records.slice(1, 2)] {
            let mut gathering =
                Gathering::new(SetCollector::new(1 << 20), 3, Shares { cores: 2, tokens_min: 1 });
            gathering.take(Side::Left, read(&records), None).unwrap();
            let mut task = gathering.task(true).unwrap();
            task.run();
            gathering.landed(task);
            while let Some(mut task) = gathering.task(true) {
                task.run();
                gathering.landed(task);
            }
            let found = sets(&gathering.sort().unwrap().run().unwrap());
            let by_id = |set: &(Side, u32, Vec<u32>)| (set.1, set.2.len());
            assert_eq!(found.iter().map(by_id).collect::<Vec<_>>(), [(5, 3)]);
        }
    }
}
