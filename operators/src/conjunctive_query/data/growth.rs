//! An index that grows: blocks of documents, their segments, and merges of these.
//!
//! A block is closed when the block has enough terms, or when a query is to be answered over its
//! documents. Kernels make segments of blocks, in any order; the segments are added to the index in
//! the order of their documents.
//!
//! A merge takes the segments from a certain segment to the last segment (the logarithmic method:
//! Bentley, Saxe, *Decomposable Searching Problems I*, Journal of Algorithms 1, 1980). The merge
//! begins with the first segment whose weight (postings and documents) is at most the weight of all
//! later segments together, if the merge then has enough segments. So each segment is heavier than
//! all later segments together, except for the last few segments, and an index of n blocks has
//! about log2 n segments. In a merge, each posting outside the heaviest segment moves to a segment
//! of at least twice the size; a posting of the heaviest segment does so in the next merge, because
//! the segment before the merge was heavier. A posting is merged at most about 2 log2(index /
//! block) times.
//!
//! One merge runs at a time, in tasks of all kernels. The merged segment replaces its parts when the merge has landed.
//! Segments that are added meanwhile follow the merged segment. At the end of the documents, all
//! segments are merged to one segment.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, LargeStringArray};

use super::index::Index;
use super::merging::{MergeTask, Merging};
use super::segments::{DocumentBlock, IndexSegment};
use crate::conjunctive_query::answer::chunk::QueryWork;
use crate::conjunctive_query::parameters::tuning::Tuning;
use crate::shared::budget::bytes_with;

/// Progress of the documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IndexPhase {
    Arriving,
    /// The documents have ended; segments are built and merged.
    Ending,
    /// All documents are in one segment.
    Whole,
}

/// The index, and the documents that are not in the index yet.
#[derive(Debug)]
pub(crate) struct GrowingIndex {
    tuning: Tuning,
    /// Number of kernels, which share a merge.
    kernels: usize,
    phase: IndexPhase,
    index: Arc<Index>,
    /// The block to which documents are added.
    open: DocumentBlock,
    closed: VecDeque<DocumentBlock>,
    /// Number of blocks that were closed.
    blocks: u64,
    /// Number of blocks that kernels have.
    building: usize,
    /// Bytes of the blocks that kernels have.
    building_bytes: usize,
    /// Segments that wait for an earlier segment, by number of their block.
    built: BTreeMap<u64, Arc<IndexSegment>>,
    /// Number of the block whose segment is added next.
    next: u64,
    merging: Option<Merging>,
    /// Documents that have arrived.
    documents: u32,
    merges: u64,
    /// Memory of blocks whose segments have been built.
    free: Vec<DocumentBlock>,
}

impl GrowingIndex {
    pub(crate) fn new(tuning: Tuning, kernels: usize) -> Self {
        Self {
            tuning,
            kernels,
            phase: IndexPhase::Arriving,
            index: Arc::default(),
            open: DocumentBlock::default(),
            closed: VecDeque::new(),
            blocks: 0,
            building: 0,
            building_bytes: 0,
            built: BTreeMap::new(),
            next: 0,
            merging: None,
            documents: 0,
            merges: 0,
            free: Vec::new(),
        }
    }

    /// Begins with the index of one segment. No document has arrived yet.
    pub(crate) fn begin_with(&mut self, segment: IndexSegment) {
        self.index = Arc::new(Index::new([Arc::new(segment)]));
        self.documents = self.index.documents();
    }

    /// The documents that have arrived.
    pub(crate) fn documents(&self) -> u32 {
        self.documents
    }

    pub(crate) fn index(&self) -> &Arc<Index> {
        &self.index
    }

    pub(crate) fn merges(&self) -> u64 {
        self.merges
    }

    /// Adds a document.
    pub(crate) fn push(&mut self, terms: &[u32]) {
        self.open.terms.extend_from_slice(terms);
        self.open.ends.push(self.open.terms.len());
        self.documents += 1;
    }

    /// Maximum bytes that are allocated while documents of `terms` terms in all are added.
    pub(crate) fn bytes_while_pushed(&self, terms: usize) -> usize {
        let open = &self.open.terms;
        let all = bytes_with(open.capacity(), open.len(), terms, size_of::<u32>());
        all - size_of_val(&open[..]).min(all)
    }

    /// Adds the names of the documents that were added last.
    pub(crate) fn push_names(&mut self, names: LargeStringArray) {
        self.open.names_bytes += names.value_data().len() + names.len() * size_of::<i64>();
        self.open.names.push(names);
    }

    /// Whether the open block is full.
    pub(crate) fn is_full(&self) -> bool {
        self.open.terms.len() >= self.tuning.block_terms
            || self.open.ends.len() >= self.tuning.block_documents
    }

    /// Closes the open block, unless it is empty.
    pub(crate) fn close(&mut self) {
        if self.open.ends.is_empty() {
            return;
        }
        let next = self.free.pop().unwrap_or_default();
        let mut block = mem::replace(&mut self.open, next);
        block.number = self.blocks;
        self.blocks += 1;
        self.closed.push_back(block);
    }

    /// Notes that the documents have ended.
    pub(crate) fn end(&mut self) {
        if self.phase == IndexPhase::Arriving {
            self.close();
            self.phase = IndexPhase::Ending;
            self.settle();
        }
    }

    /// Whether the index has all documents and does not change any more.
    pub(crate) fn is_whole(&self) -> bool {
        self.phase == IndexPhase::Whole
    }

    fn settle(&mut self) {
        let is_built = self.closed.is_empty() && self.building == 0 && self.merging.is_none();
        if self.phase == IndexPhase::Ending && is_built && self.index.len() <= 1 {
            self.phase = IndexPhase::Whole;
        }
    }

    /// Whether [`next_work`](Self::next_work) has work.
    pub(crate) fn has_work(&self) -> bool {
        let has_task = self.merging.as_ref().is_some_and(Merging::has_task);
        !self.closed.is_empty() || has_task || self.next_merge().is_some()
    }

    /// Whether a kernel has a block or a merge.
    pub(crate) fn is_waiting(&self) -> bool {
        self.building > 0 || self.merging.is_some()
    }

    /// The next block to be built, or else the next task of a merge.
    pub(crate) fn next_work(&mut self) -> Option<QueryWork> {
        if let Some(mut block) = self.closed.pop_front() {
            block.sent_bytes = block.bytes();
            self.building += 1;
            self.building_bytes += block.sent_bytes;
            return Some(QueryWork::Build(block));
        }
        if let Some(range) = self.next_merge() {
            let parts = self.index.segments().skip(range.start).take(range.len());
            let parts = parts.cloned().collect();
            let tasks = (self.kernels, self.tuning.merge_postings);
            self.merging = Some(Merging::new(range, parts, tasks));
            self.merges += 1;
        }
        self.merging.as_mut()?.task().map(QueryWork::Merge)
    }

    fn next_merge(&self) -> Option<Range<usize>> {
        if self.merging.is_some() {
            return None;
        }
        let len = self.index.len();
        if self.phase == IndexPhase::Ending {
            let is_built = self.building == 0 && self.closed.is_empty();
            return (is_built && len > 1).then_some(0..len);
        }
        let (mut first, mut after) = (None, 0);
        for (place, segment) in (0..len).zip(self.index.segments().collect::<Vec<_>>()).rev() {
            let weight = segment.weight();
            if weight <= after {
                first = Some(place);
            }
            after += weight;
        }
        first.map(|first| first..len).filter(|range| range.len() >= self.tuning.merge_segments)
    }

    /// Bytes of the merge that [`next_work`](Self::next_work) begins; 0 if the next work is not a
    /// merge.
    pub(crate) fn next_merge_bytes(&self) -> usize {
        let merge = self.next_merge().filter(|_| self.closed.is_empty());
        merge.map_or(0, |range| self.bytes_of(range))
    }

    /// Bytes of some segments.
    fn bytes_of(&self, range: Range<usize>) -> usize {
        let segments = self.index.segments().skip(range.start).take(range.len());
        segments.map(|segment| segment.bytes()).sum()
    }

    /// Adds the segment of a block. Calls `added` after each segment that is added to the index.
    pub(crate) fn built(
        &mut self,
        segment: Arc<IndexSegment>,
        mut block: DocumentBlock,
        mut added: impl FnMut(&Arc<Index>),
    ) {
        self.building -= 1;
        self.building_bytes -= block.sent_bytes;
        self.built.insert(block.number, segment);
        block.clear();
        // Two blocks suffice: one block is filled while the other block is built.
        if self.free.len() < 2 {
            self.free.push(block);
        }
        // Kernels answer in any order; segments are added in the order of their documents.
        while let Some(segment) = self.built.remove(&self.next) {
            self.next += 1;
            let segments = self.index.segments().cloned().chain([segment]);
            self.index = Arc::new(Index::new(segments));
            added(&self.index);
        }
        self.settle();
    }

    /// Takes back a task of the merge. After the last task, the merged segment replaces its parts.
    pub(crate) fn merged(&mut self, task: MergeTask) {
        let Some(Merging { range, .. }) = &self.merging else { return };
        let range = range.clone();
        let Some(segment) = self.merging.as_mut().and_then(|merging| merging.landed(task)) else {
            return;
        };
        let segment = Arc::new(segment);
        self.merging = None;
        // Segments were added only after the range, so the range still names the merged segments.
        let old: Vec<_> = self.index.segments().cloned().collect();
        let (before, after) = (&old[..range.start], &old[range.end..]);
        let segments = before.iter().cloned().chain([segment]).chain(after.iter().cloned());
        self.index = Arc::new(Index::new(segments));
        self.settle();
    }

    /// Bytes of the index, with room for the merge that runs.
    pub(crate) fn index_bytes(&self) -> usize {
        self.index.bytes()
            + self.merging.as_ref().map_or(0, |merging| self.bytes_of(merging.range.clone()))
            + self.building_bytes
            + self.built.values().map(|segment| segment.bytes()).sum::<usize>()
    }

    /// Bytes of the documents that are not in the index.
    pub(crate) fn block_bytes(&self) -> usize {
        self.open.bytes() + self.closed.iter().map(DocumentBlock::bytes).sum::<usize>()
    }
}
