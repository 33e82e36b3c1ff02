//! PREPARE: collects transactions, has their blocks transposed, then makes tasks.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use thiserror::Error;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, OperatorError};

use super::chunk::{PairChunk, Work};
use super::collector::{Collector, TransactionBlock};
use super::names::ItemNames;
use super::options::{Layout, Support};
use super::plan::{Task, tasks};
use super::transposed::TransposedBlock;
use super::tuning::Tuning;
use super::vertical::VerticalData;
use crate::budget::{Budget, BudgetFull};
use crate::wave::{Filled, Producer};

/// An item of a transaction is null.
#[derive(Debug, Error)]
#[error("invalid transaction {number}: an item is null")]
struct NullItem {
    /// Position in the stream, from 0.
    number: u64,
}

/// Rules of a mining run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) support: Support,
    pub(super) layout: Layout,
    pub(super) kernels: usize,
    pub(super) memory_max: usize,
    pub(super) tuning: Tuning,
}

/// Makes chunks of the transactions of a stream.
pub(super) struct PairProducer {
    rules: Rules,
    /// Index of the column of transactions.
    set: usize,
    names: ItemNames,
    /// The items of a batch by number.
    numbers: Vec<u32>,
    collector: Collector,
    /// Full blocks.
    blocks: VecDeque<TransactionBlock>,
    /// Number of blocks that have not come back.
    transposing: usize,
    transposed: Vec<TransposedBlock>,
    transposed_bytes: usize,
    is_finished: bool,
    mining: Option<Mining>,
    counters: PairCounters,
}

/// Data whose pairs are counted, and the tasks that are left.
struct Mining {
    data: Arc<VerticalData>,
    tasks: std::vec::IntoIter<Task>,
}

#[derive(Debug, Default)]
struct PairCounters {
    transactions: u64,
    nulls: u64,
    items: u64,
    frequent_items: u64,
    tasks: u64,
}

impl PairProducer {
    /// A producer for transactions of the items `names` in the column with the index `set`.
    pub(super) fn new(rules: Rules, set: usize, names: ItemNames) -> Self {
        Self {
            rules,
            set,
            names,
            numbers: Vec::new(),
            collector: Collector::new(rules.tuning.block_items),
            blocks: VecDeque::new(),
            transposing: 0,
            transposed: Vec::new(),
            transposed_bytes: 0,
            is_finished: false,
            mining: None,
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
            let transaction = self.numbers[begin..end].iter().copied();
            self.blocks.extend(self.collector.push(transaction));
        }
        Ok(())
    }

    /// Checks the memory of the transactions.
    fn check_memory(&self) -> Result<(), BudgetFull> {
        let waiting: usize = self.blocks.iter().map(TransactionBlock::bytes).sum();
        let mut budget = Budget::new(self.rules.memory_max);
        budget.take("the items", self.names.bytes())?;
        let transactions = self.collector.bytes() + waiting + self.transposed_bytes;
        budget.take("the transactions", transactions)
    }

    /// Ranks the items and plans the tasks, when all blocks have come back.
    fn begin_mining(&mut self) -> Result<(), OperatorError> {
        let Rules { support, layout, kernels, tuning, .. } = self.rules;
        let data = VerticalData::new(&self.transposed, &self.names, support)?;
        self.transposed = Vec::new();
        self.transposed_bytes = 0;
        let tasks = tasks(&data, layout, kernels, tuning.task_ns_min);
        self.counters.frequent_items += u64::from(data.len());
        self.counters.tasks += tasks.len() as u64;
        self.mining = Some(Mining { data: Arc::new(data), tasks: tasks.into_iter() });
        Ok(())
    }
}

impl Producer for PairProducer {
    type Chunk = PairChunk;

    fn take(&mut self, _port: usize, batch: Payload) -> Result<(), OperatorError> {
        self.collect(&batch.into_records())?;
        Ok(self.check_memory()?)
    }

    fn finish(&mut self) -> Result<(), OperatorError> {
        self.blocks.extend(self.collector.close());
        self.is_finished = true;
        Ok(())
    }

    fn fill(&mut self, chunk: &mut PairChunk) -> Result<Filled, OperatorError> {
        if let Some(block) = self.blocks.pop_front() {
            chunk.work = Work::Transpose(block);
            self.transposing += 1;
            return Ok(Filled::Chunk);
        }
        if self.is_finished && self.transposing == 0 && self.mining.is_none() {
            self.begin_mining()?;
        }
        let next =
            self.mining.as_mut().and_then(|Mining { data, tasks }| Some((data, tasks.next()?)));
        let Some((data, task)) = next else { return Ok(Filled::Nothing) };
        chunk.work = Work::Count(Arc::clone(data), task);
        Ok(Filled::Chunk)
    }

    fn landed(&mut self, chunk: &mut PairChunk) {
        match std::mem::take(&mut chunk.work) {
            Work::Transposed(block, memory) => {
                self.transposing -= 1;
                self.transposed_bytes += block.bytes();
                self.transposed.push(block);
                self.collector.recycle(memory);
            }
            other => chunk.work = other,
        }
    }

    fn counters(&self) -> Counters {
        let PairCounters { transactions, nulls, items, frequent_items, tasks } = self.counters;
        vec![
            ("transactions", transactions),
            ("nulls", nulls),
            ("items", items),
            ("frequent_items", frequent_items),
            ("tasks", tasks),
        ]
    }
}
