//! PREPARE: collects transactions, has their blocks transposed, then makes tasks.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use thiserror::Error;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, OperatorError};

use super::chunk::{PairChunk, Work};
use super::collector::Collector;
use super::device::DeviceChoice;
use super::names::ItemNames;
use super::options::{Layout, Support};
use super::panes::{Closed, PaneBlocks};
use super::plan::{Task, tasks};
use super::tiles::tile_tasks;
use super::tuning::Tuning;
use super::vertical::VerticalData;
use crate::budget::{Budget, BudgetFull};
use crate::wave::{Filled, Producer};
use crate::window::slides::Slides;

/// An item of a transaction is null.
#[derive(Debug, Error)]
#[error("invalid transaction {number}: an item is null")]
struct NullItem {
    /// Position in the stream, from 0.
    number: u64,
}

/// Rules of the operator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) support: Support,
    pub(super) layout: Layout,
    pub(super) kernels: usize,
    /// Windows, if there are any.
    pub(super) slides: Option<Slides>,
    pub(super) memory_max: usize,
    pub(super) tuning: Tuning,
}

/// Makes chunks of the transactions of a stream.
pub(super) struct PairProducer {
    rules: Rules,
    /// Index of the column of transactions.
    set: usize,
    names: ItemNames,
    /// Items that were known when the others were forgotten last.
    retained: usize,
    /// The items of a batch by number.
    numbers: Vec<u32>,
    collector: Collector,
    panes: PaneBlocks,
    device: DeviceChoice,
    /// Data whose pairs are counted, and the tasks that are left.
    mining: Option<(Arc<VerticalData>, Box<dyn Iterator<Item = Task> + Send>)>,
    /// Number of tasks that are being counted.
    counting: usize,
    counters: PairCounters,
}

#[derive(Debug, Default)]
struct PairCounters {
    transactions: u64,
    nulls: u64,
    items: u64,
    windows: u64,
    frequent_items: u64,
    tasks: u64,
}

impl PairProducer {
    /// A producer for transactions of the items `names` in the column with the index `set`.
    pub(super) fn new(rules: Rules, set: usize, names: ItemNames, device: DeviceChoice) -> Self {
        Self {
            rules,
            set,
            names,
            retained: 0,
            numbers: Vec::new(),
            collector: Collector::new(rules.tuning.block_items),
            panes: PaneBlocks::new(rules.slides),
            device,
            mining: None,
            counting: 0,
            counters: PairCounters::default(),
        }
    }

    fn collect(&mut self, records: &RecordBatch) -> Result<(), NullItem> {
        let sets = records.column(self.set).as_list::<i32>();
        let ends: Vec<usize> = sets
            .value_offsets()
            .iter()
            .map(|&end| usize::try_from(end).expect("offsets are not negative"))
            .collect();
        let (first, last) = (ends[0], ends[records.num_rows()]);
        // A batch may be a part of a larger one, whose values it has.
        let items = sets.values().slice(first, last - first);
        self.names.number(&items, &mut self.numbers);
        let has_nulls = items.logical_null_count() > 0;
        for (row, ends) in ends.windows(2).enumerate() {
            if sets.is_null(row) {
                self.counters.nulls += 1;
                continue;
            }
            let [begin, end] = [ends[0] - first, ends[1] - first];
            if has_nulls && items.slice(begin, end - begin).logical_null_count() > 0 {
                return Err(NullItem { number: self.counters.transactions });
            }
            self.counters.transactions += 1;
            self.counters.items += (end - begin) as u64;
            let full = self.collector.push(self.numbers[begin..end].iter().copied());
            self.panes.push(full);
            if self.panes.count_transaction() {
                self.panes.close(self.collector.close(), true);
            }
        }
        Ok(())
    }

    /// Closes the windows of time that have ended before `now`.
    fn close_until(&mut self, now: Instant) {
        while self.panes.has_passed(now) {
            self.panes.close(self.collector.close(), true);
        }
    }

    /// Checks the memory of the transactions.
    fn check_memory(&self) -> Result<(), BudgetFull> {
        let mut budget = Budget::new(self.rules.memory_max);
        budget.take("the items", self.names.bytes())?;
        budget.take("the transactions", self.collector.bytes() + self.panes.bytes())
    }

    /// Whether most items may be of transactions that are gone.
    fn has_old_items(&self) -> bool {
        let many = 2 * self.retained + self.rules.tuning.items_min;
        self.rules.slides.is_some() && self.names.len() > many
    }

    /// Forgets the items that no block has.
    fn forget_old_items(&mut self) {
        let mut used = vec![false; self.names.len()];
        let collected = self.collector.items_mut();
        collected.iter().for_each(|&item| used[item as usize] = true);
        self.panes.for_each_item(|item| used[*item as usize] = true);
        self.names.retain(&used);
        let mut next = 0;
        let renumber = |used: bool| {
            let number = next;
            next += u32::from(used);
            number
        };
        let numbers: Vec<u32> = used.into_iter().map(renumber).collect();
        let collected = self.collector.items_mut();
        collected.iter_mut().for_each(|item| *item = numbers[*item as usize]);
        self.panes.for_each_item(|item| *item = numbers[*item as usize]);
        self.retained = self.names.len();
    }

    /// Ranks the items of a window, all blocks of which have come back, and plans the tasks.
    fn begin_mining(&mut self, closed: Closed) -> Result<(), OperatorError> {
        let Rules { support, layout, kernels, tuning, .. } = self.rules;
        let blocks = self.panes.blocks(closed);
        let data = VerticalData::new(blocks, &self.names, support, closed.span)?;
        self.panes.drop_before(closed);
        let on_cpu = tasks(&data, layout, kernels, tuning.task_ns_min);
        let tasks: Box<dyn Iterator<Item = Task> + Send> =
            match self.device.choose(&data, &on_cpu, kernels)? {
                Some(form) => Box::new(tile_tasks(&data, form, &on_cpu, tuning)),
                None => Box::new(on_cpu.into_iter()),
            };
        self.counters.windows += 1;
        self.counters.frequent_items += u64::from(data.len());
        self.mining = Some((Arc::new(data), tasks));
        Ok(())
    }

    /// The next task, of this window or of the next one that can be counted.
    fn next_task(&mut self) -> Result<Option<Work>, OperatorError> {
        loop {
            if let Some((data, tasks)) = &mut self.mining {
                if let Some(task) = tasks.next() {
                    self.counting += 1;
                    self.counters.tasks += 1;
                    return Ok(Some(Work::Count(Arc::clone(data), task)));
                }
                self.mining = None;
            }
            // An unfinished task comes again, and must come before the tasks of the next window.
            if self.counting > 0 {
                return Ok(None);
            }
            let Some(closed) = self.panes.next_closed() else { return Ok(None) };
            self.begin_mining(closed)?;
        }
    }
}

impl Producer for PairProducer {
    type Chunk = PairChunk;

    fn take(&mut self, _port: usize, batch: Payload) -> Result<(), OperatorError> {
        let entered = batch.origin().map_or_else(Instant::now, |origin| origin.entered);
        self.panes.enter(entered);
        self.close_until(entered);
        self.collect(&batch.into_records())?;
        Ok(self.check_memory()?)
    }

    fn finish(&mut self) -> Result<(), OperatorError> {
        // The last window is not counted twice.
        if self.panes.is_live() {
            self.panes.close(self.collector.close(), false);
        }
        Ok(())
    }

    fn wake_at(&self) -> Option<Instant> {
        self.panes.end()
    }

    fn wake(&mut self, now: Instant) -> Result<(), OperatorError> {
        self.close_until(now);
        Ok(())
    }

    fn fill(&mut self, chunk: &mut PairChunk) -> Result<Filled, OperatorError> {
        if self.has_old_items() {
            // Blocks that are away have the old numbers.
            if self.panes.are_away() {
                return Ok(Filled::Nothing);
            }
            self.forget_old_items();
        }
        // Blocks before tasks: other kernels transpose while this thread goes on to read.
        let block = self.panes.next_block().map(Work::Transpose);
        let work = match block {
            Some(block) => Some(block),
            None => self.next_task()?,
        };
        let Some(work) = work else { return Ok(Filled::Nothing) };
        chunk.work = work;
        Ok(Filled::Chunk)
    }

    fn landed(&mut self, chunk: &mut PairChunk) {
        if chunk.fell_back {
            self.device.fell_back();
        }
        match std::mem::take(&mut chunk.work) {
            Work::Transposed(block, memory) => {
                self.panes.landed(block);
                self.collector.recycle(memory);
            }
            Work::Count(data, task) if !task.is_done() => {
                chunk.work = Work::Count(data, task);
            }
            // The data goes with its last task.
            Work::Count(..) => self.counting -= 1,
            Work::Nothing | Work::Transpose(_) => {}
        }
    }

    fn counters(&self) -> Counters {
        let PairCounters { transactions, nulls, items, windows, frequent_items, tasks } =
            self.counters;
        vec![
            ("transactions", transactions),
            ("nulls", nulls),
            ("items", items),
            ("windows", windows),
            ("frequent_items", frequent_items),
            ("tasks", tasks),
        ]
    }
}
