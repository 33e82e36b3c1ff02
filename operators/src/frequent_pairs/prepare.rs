//! PREPARE: collects transactions, has their blocks transposed, then makes tasks.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{Array, RecordBatch};
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Ending, NamedInputs, OperatorError};
use trommel_kernels::supports::Pair;

use super::answer::chunk::{PairChunk, PairWork};
use super::data::collector::{Collector, TransactionBlock};
use super::data::joining::Joining;
use super::data::pair_rows::PairRows;
use super::data::panes::{Closed, PaneBlocks};
use super::data::stored;
use super::data::vertical::{TooMany, VerticalData};
use super::device::choice;
use super::parameters::options::{Layout, Support};
use super::parameters::tuning::Tuning;
use super::plan::device_form::DeviceForm;
use super::plan::tasks::{Task, tasks};
use super::plan::tiles::tile_tasks;
use crate::shared::budget::{Allowance, Budget, BudgetFull};
use crate::shared::names::ItemNames;
use crate::shared::names::block::SharedNames;
use crate::shared::rejected::BadRows;
use crate::shared::sets::SetInput;
use crate::shared::state::{SnapshotFile, SnapshotFileError};
use crate::shared::window::slides::Slides;
use crate::wave::{DeviceChoice, Filled, Producer};

/// Rules of the operator.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) support: Support,
    /// Items of a result, 2 or 3.
    pub(super) itemset: usize,
    pub(super) layout: Layout,
    pub(super) kernels: usize,
    /// Windows, if there are any.
    pub(super) slides: Option<Slides>,
    pub(super) memory: Allowance,
    pub(super) tuning: Tuning,
}

/// The work on the window that is counted, with the tasks that are left.
enum Mining {
    Nothing,
    Lists(Joining),
    Pairs(Arc<VerticalData>, Box<dyn Iterator<Item = Task> + Send>),
    Triples(Arc<PairRows>, std::vec::IntoIter<Task>),
}

impl Mining {
    /// Bytes of the window.
    fn bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Lists(joining) => joining.bytes(),
            Self::Pairs(data, _) => data.bytes(),
            Self::Triples(pairs, _) => pairs.bytes(),
        }
    }
}

/// Makes chunks of the transactions of a stream.
pub(super) struct PairProducer {
    rules: Rules,
    /// The transactions.
    set: SetInput,
    bad: BadRows,
    names: SharedNames,
    /// Number of items that were left when items were last forgotten.
    retained: usize,
    collector: Collector,
    panes: PaneBlocks,
    device: DeviceChoice,
    /// Forms that the data can have on the device.
    forms: &'static [DeviceForm],
    /// The window that is counted.
    mining: Mining,
    /// Pairs of the window, if triples are counted next.
    found: Vec<Pair>,
    /// The file for the state, until the state is written.
    snapshot: Option<SnapshotFile>,
    /// Whether the operator has checked, at the beginning of the stream, that the file can be
    /// written.
    is_checked: bool,
    not_saved: Option<SnapshotFileError>,
    /// The error of a block that has returned.
    failed: Option<BudgetFull>,
    /// Number of tasks that have not returned.
    away: usize,
    counters: PairCounters,
}

#[derive(Debug, Default)]
struct PairCounters {
    transactions: u64,
    nulls: u64,
    items: u64,
    windows: u64,
    frequent_items: u64,
    frequent_pairs: u64,
    tasks: u64,
}

impl PairProducer {
    /// A producer for the transactions `set` of the items `names`.
    pub(super) fn new(
        rules: Rules,
        (set, bad): (SetInput, BadRows),
        names: ItemNames,
        (device, forms): (DeviceChoice, &'static [DeviceForm]),
        snapshot: Option<SnapshotFile>,
    ) -> Self {
        Self {
            collector: Collector::new(rules.tuning.block_items),
            panes: PaneBlocks::new(rules.slides),
            rules,
            set,
            bad,
            names: SharedNames::new(names),
            retained: 0,
            device,
            forms,
            mining: Mining::Nothing,
            found: Vec::new(),
            snapshot,
            is_checked: false,
            not_saved: None,
            failed: None,
            away: 0,
            counters: PairCounters::default(),
        }
    }

    fn collect(&mut self, records: &RecordBatch) -> Result<(), OperatorError> {
        let sets = self.set.usable(0, records, &mut self.bad)?;
        let ends: Vec<usize> = sets
            .value_offsets()
            .iter()
            .map(|&end| usize::try_from(end).expect("offsets are not negative"))
            .collect();
        let (first, last) = (ends[0], ends[records.num_rows()]);
        // A batch may be a slice of a larger batch, and then has all values of that batch.
        let items = sets.values().slice(first, last - first);
        let budget = self.budget()?;
        let items = self.names.of_batch(items, self.rules.kernels, budget)?;
        // The collector has the items before `taken`.
        let mut taken = 0;
        for (row, ends) in ends.windows(2).enumerate() {
            let [begin, end] = [ends[0] - first, ends[1] - first];
            if sets.is_null(row) {
                self.counters.nulls += 1;
                self.collector.extend(&items, taken..begin);
                taken = end;
                continue;
            }
            self.counters.transactions += 1;
            self.counters.items += (end - begin) as u64;
            let bytes = self.collector.bytes_of_large(end - begin);
            if bytes > 0 {
                self.budget_with_items()?.take("the transactions", bytes)?;
            }
            if self.collector.is_full(end - begin) {
                self.collector.extend(&items, taken..begin);
                taken = begin;
                self.collector.close_full().into_iter().for_each(|block| self.panes.push(block));
                self.budget_with_items()?;
            }
            self.collector.push(end - begin);
            if self.panes.count_transaction() {
                self.collector.extend(&items, taken..end);
                taken = end;
                self.panes.close(self.collector.close(), true);
            }
        }
        self.collector.extend(&items, taken..last - first);
        self.names.end_batch(items, self.rules.tuning.block_items);
        Ok(())
    }

    /// Closes the windows of time that have ended before `now`.
    fn close_until(&mut self, now: Instant) {
        while self.panes.has_passed(now) {
            self.panes.close(self.collector.close(), true);
        }
    }

    /// The budget that is left after all data except the items.
    fn budget(&self) -> Result<Budget, BudgetFull> {
        self.budget_beside(0)
    }

    /// The budget that is left after all data.
    fn budget_with_items(&self) -> Result<Budget, BudgetFull> {
        self.budget_beside(self.names.bytes())
    }

    fn budget_beside(&self, items_bytes: usize) -> Result<Budget, BudgetFull> {
        let mut budget = self.rules.memory.budget();
        budget.take("the items", items_bytes)?;
        budget.take("the transactions", self.collector.bytes() + self.panes.bytes())?;
        budget.take("the window that is counted", self.mining.bytes())?;
        budget.take("the frequent pairs", self.found.len() * PairRows::PAIR_BYTES)?;
        Ok(budget)
    }

    /// The next block to be transposed, once there is room for its lists.
    fn next_block(&mut self) -> Result<Option<TransactionBlock>, BudgetFull> {
        let items = self.names.names().len();
        let Some(bytes) = self.panes.next_bytes(items) else { return Ok(None) };
        let has_room = self.budget_with_items()?.take("the transactions", bytes);
        match has_room {
            // Blocks that are away are charged with their maximum; the budget grows when a smaller
            // block returns.
            Err(_) if self.panes.are_away() => Ok(None),
            Err(full) => Err(full),
            Ok(()) => Ok(self.panes.next_block(bytes)),
        }
    }

    /// The next block whose items are to be looked up, once there is room for their numbers.
    fn next_look_up(&mut self) -> Result<Option<PairWork>, BudgetFull> {
        let Some((items, bytes)) = self.panes.next_to_look_up() else { return Ok(None) };
        if !self.names.may_look_up(items) {
            return Ok(None);
        }
        let has_room = self.budget_with_items()?.take("the transactions", bytes);
        match has_room {
            Err(_) if self.panes.are_away() => Ok(None),
            Err(full) => Err(full),
            Ok(()) => {
                let block = self.panes.next_look_up(bytes);
                Ok(block.map(|block| PairWork::LookUp(block, self.names.copy(items))))
            }
        }
    }

    /// Takes a block whose items have been looked up.
    fn looked_up(&mut self, mut block: TransactionBlock) -> Result<(), BudgetFull> {
        let budget = self.budget()?;
        self.names.resolve(&mut block.items, budget)?;
        self.panes.looked_up(block);
        Ok(())
    }

    /// Continues from the state of an earlier stream. The stream has no batch yet.
    pub(super) fn restore(&mut self, bytes: &[u8]) -> Result<(), OperatorError> {
        let names = self.names.names_mut();
        stored::restore(bytes, names, self.rules.slides, &mut self.panes)?;
        self.retained = names.len();
        self.budget_with_items()?;
        Ok(())
    }

    /// Writes the state, once. All blocks of the last window have returned.
    fn save(&mut self) {
        if let Some(file) = self.snapshot.take() {
            let state = stored::snapshot(self.names.names(), self.rules.slides, &self.panes);
            self.not_saved = file.write(state).err();
        }
    }

    /// Whether most items may belong only to transactions that are gone.
    fn has_old_items(&self) -> bool {
        let many = 2 * self.retained + self.rules.tuning.items_min;
        self.rules.slides.is_some() && self.names.names().len() > many
    }

    /// Forgets the items that occur in no block.
    fn forget_old_items(&mut self) {
        let mut used = vec![false; self.names.names().len()];
        let collected = self.collector.numbers_mut();
        collected.iter().for_each(|&item| used[item as usize] = true);
        self.panes.for_each_item(|item| used[*item as usize] = true);
        let numbers = self.names.names_mut().retain(&used);
        let collected = self.collector.numbers_mut();
        collected.iter_mut().for_each(|item| *item = numbers[*item as usize]);
        self.panes.for_each_item(|item| *item = numbers[*item as usize]);
        self.retained = self.names.names().len();
    }

    /// Ranks the items of a window whose blocks have all returned, and begins to join their lists.
    fn begin_joining(&mut self, closed: Closed) -> Result<(), OperatorError> {
        let Rules { support, kernels, tuning, .. } = self.rules;
        let (blocks, names, budget) =
            (self.panes.blocks(closed), self.names.names(), self.budget_with_items()?);
        let tasks = (kernels, tuning.join_tids);
        let mut joining = Joining::new(blocks, names, support, closed.span, tasks, budget)?;
        if closed.is_last {
            // The state is written before the last rows, because a slow reader can delay these
            // rows.
            self.save();
        }
        joining.keep(self.panes.drop_before(closed));
        self.counters.windows += 1;
        self.mining = Mining::Lists(joining);
        Ok(())
    }

    /// Plans the tasks for the pairs of `data`.
    fn begin_pairs(&mut self, data: VerticalData) -> Result<(), OperatorError> {
        let Rules { layout, kernels, tuning, .. } = self.rules;
        let on_cpu = tasks(&data, layout, kernels, tuning.task_ns_min);
        let tasks: Box<dyn Iterator<Item = Task> + Send> =
            match choice::choose(&mut self.device, self.forms, &data, &on_cpu, kernels)? {
                Some(form) => Box::new(tile_tasks(&data, form, &on_cpu, tuning)),
                None => Box::new(on_cpu.into_iter()),
            };
        self.counters.frequent_items += u64::from(data.len());
        self.mining = Mining::Pairs(Arc::new(data), tasks);
        Ok(())
    }

    /// Plans the tasks for the triples of `data`, whose pairs have all returned.
    fn begin_triples(&mut self, data: Arc<VerticalData>) -> Result<(), TooMany> {
        let Rules { layout, kernels, tuning, .. } = self.rules;
        let found = std::mem::take(&mut self.found);
        TooMany::check("frequent pairs", found.len() as u64)?;
        let pairs = PairRows::new(data, found);
        // The counters of a triangle count pairs, so a triangle cannot count triples.
        let layout = if layout == Layout::Triangle { Layout::Sparse } else { layout };
        let tasks = tasks(&pairs, layout, kernels, tuning.task_ns_min);
        self.counters.frequent_pairs += u64::from(pairs.len());
        self.mining = Mining::Triples(Arc::new(pairs), tasks.into_iter());
        Ok(())
    }

    /// The next task, of this window or of the next window that can be counted.
    fn next_task(&mut self) -> Result<Option<PairWork>, OperatorError> {
        loop {
            let work = match &mut self.mining {
                Mining::Nothing => None,
                Mining::Lists(joining) => joining.task().map(PairWork::Join),
                Mining::Pairs(data, tasks) => {
                    tasks.next().map(|task| PairWork::Count(Arc::clone(data), task))
                }
                Mining::Triples(pairs, tasks) => {
                    tasks.next().map(|task| PairWork::CountTriples(Arc::clone(pairs), task))
                }
            };
            if let Some(work) = work {
                self.away += 1;
                self.counters.tasks += u64::from(!matches!(work, PairWork::Join(_)));
                return Ok(Some(work));
            }
            // An unfinished task returns for a second turn, and that turn must come before the
            // tasks of the next window.
            if self.away > 0 {
                return Ok(None);
            }
            match std::mem::replace(&mut self.mining, Mining::Nothing) {
                Mining::Lists(joining) => self.begin_pairs(joining.finish())?,
                Mining::Pairs(data, _) if self.rules.itemset == 3 => self.begin_triples(data)?,
                _ => {
                    let Some(closed) = self.panes.next_closed() else { return Ok(None) };
                    self.begin_joining(closed)?;
                }
            }
        }
    }
}

impl Producer for PairProducer {
    type Chunk = PairChunk;

    fn take(&mut self, _port: usize, batch: Payload) -> Result<(), OperatorError> {
        if !self.is_checked {
            self.is_checked = true;
            self.snapshot.as_ref().map_or(Ok(()), SnapshotFile::probe)?;
        }
        let entered = batch.origin().map_or_else(Instant::now, |origin| origin.entered);
        self.panes.enter(entered);
        self.close_until(entered);
        self.collect(&batch.into_records())?;
        self.budget_with_items()?;
        Ok(())
    }

    fn take_rejected(&mut self) -> Option<RecordBatch> {
        self.bad.take_rejected()
    }

    fn port_ended(&mut self, _port: usize, ending: Ending) {
        self.snapshot.iter_mut().for_each(|file| file.input_ended(ending));
    }

    fn finish(&mut self) -> Result<(), OperatorError> {
        // A window that has closed at the end of a pane is not counted twice.
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
        if let Some(full) = self.failed.take() {
            return Err(full.into());
        }
        self.budget_with_items()?;
        // New numbers wait until no list is joined and no block is away, because lists and such
        // blocks still use the old numbers.
        if self.has_old_items() && !matches!(self.mining, Mining::Lists(_)) {
            if self.panes.are_away() {
                return Ok(Filled::Nothing);
            }
            self.forget_old_items();
        }
        // Blocks come before tasks: other kernels transpose while this thread reads more input.
        // Look-ups come last of these two, so that blocks end that have begun.
        let work = match self.next_block()?.map(PairWork::Transpose) {
            Some(block) => Some(block),
            None => match self.next_look_up()? {
                Some(block) => Some(block),
                None => self.next_task()?,
            },
        };
        let Some(work) = work else { return Ok(Filled::Nothing) };
        chunk.work = work;
        Ok(Filled::Chunk)
    }

    fn end(&mut self) -> Result<(), OperatorError> {
        self.save();
        Ok(self.not_saved.take().map_or(Ok(()), Err)?)
    }

    fn landed(&mut self, chunk: &mut PairChunk) {
        if self.rules.itemset == 3 && matches!(chunk.work, PairWork::Count(..)) {
            self.found.extend_from_slice(chunk.found.pairs());
        }
        match std::mem::take(&mut chunk.work) {
            PairWork::LookUp(block, _) => {
                let looked_up = self.looked_up(block);
                self.failed = self.failed.take().or(looked_up.err());
            }
            PairWork::Transposed(block, memory) => {
                self.panes.landed(block);
                self.collector.recycle(memory);
            }
            PairWork::Join(task) => {
                self.away -= 1;
                if let Mining::Lists(joining) = &mut self.mining {
                    joining.landed(task);
                }
            }
            PairWork::Count(data, task) if !task.is_done() => {
                chunk.work = PairWork::Count(data, task);
            }
            PairWork::CountTriples(pairs, task) if !task.is_done() => {
                chunk.work = PairWork::CountTriples(pairs, task);
            }
            // The drop of the last task also drops the data of the window.
            PairWork::Count(..) | PairWork::CountTriples(..) => self.away -= 1,
            PairWork::Nothing | PairWork::Transpose(_) => {}
        }
    }

    fn counters(&self) -> Counters {
        let PairCounters { transactions, nulls, items, windows, .. } = self.counters;
        let PairCounters { frequent_items, frequent_pairs, tasks, .. } = self.counters;
        let mut counters = vec![
            ("transactions", transactions),
            ("nulls", nulls),
            ("items", items),
            ("windows", windows),
            ("frequent_items", frequent_items),
            ("tasks", tasks),
        ];
        if self.rules.itemset == 3 {
            counters.push(("frequent_pairs", frequent_pairs));
        }
        counters.extend(self.bad.counters());
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.bad.named()
    }
}
