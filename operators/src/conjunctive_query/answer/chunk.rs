//! The chunk of the operator: a block to be built, segments to be merged, a device to be opened,
//! or queries.

use std::sync::Arc;
use std::time::Instant;

use trommel_kernels::inverted::FoundDocuments;

use crate::conjunctive_query::data::index::Index;
use crate::conjunctive_query::data::merging::{MergeTask, weight};
use crate::conjunctive_query::data::segments::{DocumentBlock, IndexSegment};
use crate::conjunctive_query::plan::queries::QueryBlock;
use crate::shared::names::ItemNames;
use crate::wave::{Estimate, OPENING_NS, SEND_NS_PER_BYTE, Target, WaveChunk};

/// Modelled cost of the look-up of a term of a document.
const LOOK_UP_NS: f64 = 4.0;
/// Modelled cost of building a segment, for each term of a document.
const BUILD_NS: f64 = 10.0;
/// Modelled cost of merging segments, for each posting and each document.
const MERGE_NS: f64 = 3.0;

/// Content of a chunk.
#[derive(Debug, Default)]
pub(crate) enum QueryWork {
    #[default]
    Nothing,
    /// The terms of the block are looked up in a copy of the names.
    LookUp(DocumentBlock, Arc<ItemNames>),
    Build(DocumentBlock),
    /// The segment, and the memory of the block.
    Built(Arc<IndexSegment>, DocumentBlock),
    Merge(MergeTask),
    /// Opens the device and sends the index to the device, while other kernels answer queries.
    Open(Arc<Index>),
    Answer(Arc<Index>),
}

/// Work and its answers.
#[derive(Debug, Default)]
pub(crate) struct QueryChunk {
    pub(crate) work: QueryWork,
    pub(crate) queries: QueryBlock,
    /// Documents of each query, if the output is `documents`.
    pub(crate) found: FoundDocuments,
    /// Number of documents of each query, if the output is `count`.
    pub(crate) counts: Vec<u32>,
    /// Number of queries that are answered: the first queries of the chunk.
    pub(crate) finished: usize,
    /// The time at which the queries were answered.
    pub(crate) answered: Option<Instant>,
    /// Whether a device is to answer the queries.
    pub(crate) is_for_device: bool,
}

impl QueryChunk {
    /// Whether a returned chunk still has queries without an answer.
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(self.work, QueryWork::Answer(_)) && self.finished < self.queries.len()
    }
}

impl WaveChunk for QueryChunk {
    fn items(&self) -> usize {
        match &self.work {
            QueryWork::LookUp(block, _) | QueryWork::Build(block) => block.ends.len(),
            QueryWork::Answer(_) => self.queries.len(),
            QueryWork::Nothing
            | QueryWork::Built(..)
            | QueryWork::Merge(_)
            | QueryWork::Open(_) => 0,
        }
    }

    fn bytes(&self) -> usize {
        let work = match &self.work {
            QueryWork::LookUp(block, _) | QueryWork::Build(block) => block.bytes(),
            QueryWork::Nothing | QueryWork::Built(..) | QueryWork::Merge(_) => 0,
            QueryWork::Open(_) | QueryWork::Answer(_) => 0,
        };
        work + self.queries.bytes() + size_of_val(&self.found.documents[..])
    }

    fn clear(&mut self, _: usize) {
        self.work = QueryWork::Nothing;
        self.queries.clear();
        self.found.offsets.clear();
        self.found.documents.clear();
        self.counts.clear();
        self.finished = 0;
        self.answered = None;
        self.is_for_device = false;
    }

    fn estimate(&self) -> Estimate {
        let cpu_ns = match &self.work {
            QueryWork::Nothing | QueryWork::Built(..) => 0.0,
            QueryWork::LookUp(block, _) => block.terms.len() as f64 * LOOK_UP_NS,
            QueryWork::Build(block) => block.terms.len() as f64 * BUILD_NS,
            QueryWork::Merge(task) => weight(task) as f64 * MERGE_NS,
            QueryWork::Open(index) => OPENING_NS + index.list_bytes() as f64 * SEND_NS_PER_BYTE,
            QueryWork::Answer(_) => self.queries.cost_ns as f64,
        };
        Estimate::on_cpu(cpu_ns)
    }

    fn target(&self) -> Target {
        if self.is_for_device { Target::Device } else { Target::Cpu }
    }

    fn has_rows(&self) -> bool {
        matches!(self.work, QueryWork::Answer(_))
    }

    /// Queries wait for segments, so prepare waits for all chunks.
    fn may_be_unfinished(&self) -> bool {
        true
    }

    fn retain_unfinished(&mut self) -> bool {
        let is_unfinished = self.is_unfinished();
        if is_unfinished {
            self.queries.remove_first(self.finished);
            self.finished = 0;
        }
        is_unfinished
    }
}
