//! The chunk of the operator: blocks to be transposed, lists to be joined, tasks to be counted.

use std::sync::Arc;

use trommel_kernels::supports::FoundPairs;

use crate::frequent_pairs::data::collector::TransactionBlock;
use crate::frequent_pairs::data::joining::{JoinTask, tids};
use crate::frequent_pairs::data::pair_rows::PairRows;
use crate::frequent_pairs::data::transposed::TransposedBlock;
use crate::frequent_pairs::data::vertical::VerticalData;
use crate::frequent_pairs::plan::tasks::Task;
use crate::shared::names::ItemNames;
use crate::wave::{Estimate, Target, WaveChunk};

/// Modelled cost of the look-up of an item of a transaction.
const LOOK_UP_NS: f64 = 4.0;
/// Modelled cost of transposing an item of a transaction.
const TRANSPOSE_NS: f64 = 3.0;
/// Modelled cost of joining a transaction to a list.
const JOIN_NS: f64 = 2.0;

/// Content of a chunk.
#[derive(Debug, Default)]
pub(crate) enum PairWork {
    #[default]
    Nothing,
    /// The items of the block are looked up in a copy of the names.
    LookUp(TransactionBlock, Arc<ItemNames>),
    Transpose(TransactionBlock),
    /// The result, and the memory of the block.
    Transposed(TransposedBlock, TransactionBlock),
    Join(JoinTask),
    Count(Arc<VerticalData>, Task),
    CountTriples(Arc<PairRows>, Task),
}

/// Work, and the pairs that the work finds; for triples, each entry is an item and the number of a
/// pair.
#[derive(Debug)]
pub(crate) struct PairChunk {
    pub(crate) work: PairWork,
    pub(crate) found: FoundPairs,
}

impl PairChunk {
    /// A chunk that is answered when it holds `pairs` pairs.
    pub(crate) fn new(pairs: usize) -> Self {
        Self { work: PairWork::Nothing, found: FoundPairs::new(1, pairs) }
    }
}

impl WaveChunk for PairChunk {
    fn items(&self) -> usize {
        match &self.work {
            PairWork::Nothing | PairWork::Transposed(..) => self.found.pairs().len(),
            PairWork::LookUp(block, _) | PairWork::Transpose(block) => block.ends.len(),
            PairWork::Join(task) => tids(task) as usize,
            PairWork::Count(_, task) | PairWork::CountTriples(_, task) => {
                task.rows.len() + task.tiles.len()
            }
        }
    }

    fn bytes(&self) -> usize {
        let work = match &self.work {
            PairWork::LookUp(block, _) | PairWork::Transpose(block) => block.bytes(),
            PairWork::Transposed(block, memory) => block.bytes() + memory.bytes(),
            PairWork::Nothing
            | PairWork::Join(_)
            | PairWork::Count(..)
            | PairWork::CountTriples(..) => 0,
        };
        work + size_of_val(self.found.pairs())
    }

    fn clear(&mut self, _: usize) {
        self.work = PairWork::Nothing;
        self.found.clear(1);
    }

    fn estimate(&self) -> Estimate {
        let cpu_ns = match &self.work {
            PairWork::Nothing | PairWork::Transposed(..) => 0.0,
            PairWork::LookUp(block, _) => block.items.len() as f64 * LOOK_UP_NS,
            PairWork::Transpose(block) => block.items.len() as f64 * TRANSPOSE_NS,
            PairWork::Join(task) => f64::from(tids(task)) * JOIN_NS,
            PairWork::Count(_, task) | PairWork::CountTriples(_, task) => task.cpu_ns,
        };
        Estimate::on_cpu(cpu_ns)
    }

    fn target(&self) -> Target {
        match &self.work {
            PairWork::Count(_, task) if task.is_for_device() => Target::Device,
            _ => Target::Cpu,
        }
    }

    fn may_be_unfinished(&self) -> bool {
        true
    }

    fn retain_unfinished(&mut self) -> bool {
        match &self.work {
            PairWork::Count(_, task) | PairWork::CountTriples(_, task) => !task.is_done(),
            PairWork::Nothing
            | PairWork::LookUp(..)
            | PairWork::Transpose(_)
            | PairWork::Transposed(..)
            | PairWork::Join(_) => false,
        }
    }
}
