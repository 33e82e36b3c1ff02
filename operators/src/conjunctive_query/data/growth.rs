//! An index that grows: blocks of documents, their segments, and merges of these.
//!
//! A block is closed when the block has enough terms, or when a query is to be answered over its
//! documents. With several kernels, the terms of a block get their numbers first
//! ([`ItemBlock`](crate::shared::names::block::ItemBlock)). Kernels make segments of blocks, in any
//! order; the segments are added to the index in the order of their documents.
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
//! One merge runs at a time, in tasks of all kernels. The merged segment replaces its parts when
//! the merge has landed. Segments that are added meanwhile follow the merged segment. At the end of
//! the documents, all segments are merged to one segment.

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
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::names::block::{BatchItems, SharedNames};

/// With several kernels, the first block has one sixteenth of the terms of a whole block, and each
/// later block is twice as large as the block before: the other kernels get work soon, and most
/// terms are known before many blocks are looked up.
const FIRST_PART: usize = 16;

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
    /// Number of terms of the documents of the open block, and the number that closes the block.
    terms: usize,
    block_terms: usize,
    /// Closed blocks whose terms have no numbers.
    closed: VecDeque<DocumentBlock>,
    /// Blocks whose terms have been looked up and that wait for an earlier block, by number.
    looked_up: BTreeMap<u64, DocumentBlock>,
    /// Number of the block whose missing terms get numbers next.
    next_numbered: u64,
    /// Blocks whose terms have numbers.
    numbered: VecDeque<DocumentBlock>,
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
            terms: 0,
            block_terms: tuning.block_terms.div_ceil(if kernels > 1 { FIRST_PART } else { 1 }),
            closed: VecDeque::new(),
            looked_up: BTreeMap::new(),
            next_numbered: 0,
            numbered: VecDeque::new(),
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

    /// Adds a document of `terms` terms, which [`extend`](Self::extend) adds before the block is
    /// closed.
    pub(crate) fn push(&mut self, terms: usize) {
        self.terms += terms;
        self.open.ends.push(self.terms);
        self.documents += 1;
    }

    /// Adds the terms `range` of a batch, those of the documents that were added last.
    pub(crate) fn extend(&mut self, terms: &BatchItems, range: Range<usize>) {
        self.open.terms.extend(terms, range);
    }

    /// Maximum bytes that are allocated while documents of `terms` terms in all are added.
    pub(crate) fn bytes_while_pushed(&self, terms: usize) -> usize {
        self.open.terms.bytes_while_extended(terms)
    }

    /// Adds the names of the documents that were added last.
    pub(crate) fn push_names(&mut self, names: LargeStringArray) {
        self.open.names_bytes += names.value_data().len() + names.len() * size_of::<i64>();
        self.open.names.push(names);
    }

    /// Whether the open block is full.
    pub(crate) fn is_full(&self) -> bool {
        self.terms >= self.block_terms || self.open.ends.len() >= self.tuning.block_documents
    }

    /// Closes the open block, unless it is empty.
    pub(crate) fn close(&mut self) {
        if self.open.ends.is_empty() {
            return;
        }
        let next = self.free.pop().unwrap_or_default();
        let mut block = mem::replace(&mut self.open, next);
        let terms = mem::take(&mut self.terms);
        debug_assert_eq!(block.terms.len(), terms, "the terms of all documents are there");
        self.block_terms = self.tuning.block_terms.min(self.block_terms.saturating_mul(2));
        block.number = self.blocks;
        self.blocks += 1;
        if block.terms.is_numbered() && self.next_numbered == block.number {
            self.next_numbered += 1;
            self.numbered.push_back(block);
        } else {
            self.closed.push_back(block);
        }
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
        let is_built = self.are_built() && self.merging.is_none();
        if self.phase == IndexPhase::Ending && is_built && self.index.len() <= 1 {
            self.phase = IndexPhase::Whole;
        }
    }

    /// Whether no block waits, and no kernel has a block.
    fn are_built(&self) -> bool {
        self.closed.is_empty()
            && self.looked_up.is_empty()
            && self.numbered.is_empty()
            && self.building == 0
    }

    /// Whether [`next_work`](Self::next_work) has work.
    pub(crate) fn has_work(&self, names: &SharedNames) -> bool {
        let has_task = self.merging.as_ref().is_some_and(Merging::has_task);
        let may_look_up = !self.closed.is_empty() && self.may_look_up(names);
        let has_block = !self.numbered.is_empty() || may_look_up;
        has_block || has_task || self.next_merge().is_some()
    }

    /// Whether a kernel has a block or a merge.
    pub(crate) fn is_waiting(&self) -> bool {
        self.building > 0 || self.merging.is_some()
    }

    /// The next block to be built; or else, if `has_room` for their numbers or no kernel has a
    /// block, the next block whose terms are looked up in a copy of `names`; or else the next task
    /// of a merge.
    pub(crate) fn next_work(
        &mut self,
        names: &mut SharedNames,
        has_room: bool,
    ) -> Option<QueryWork> {
        if let Some(mut block) = self.numbered.pop_front() {
            block.sent_bytes = block.bytes();
            self.sent(&block);
            return Some(QueryWork::Build(block));
        }
        let may_look_up = self.may_look_up(names) && (has_room || self.building == 0);
        if may_look_up && let Some(mut block) = self.closed.pop_front() {
            block.sent_bytes = block.terms.bytes_of_look_up();
            self.sent(&block);
            let copy = names.copy(block.terms.waiting());
            return Some(QueryWork::LookUp(block, copy));
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

    /// Whether the terms of the next block may be looked up now, if such a block waits.
    fn may_look_up(&self, names: &SharedNames) -> bool {
        self.closed.front().is_none_or(|block| names.may_look_up(block.terms.waiting()))
    }

    fn sent(&mut self, block: &DocumentBlock) {
        self.building += 1;
        self.building_bytes += block.sent_bytes;
    }

    fn returned(&mut self, block: &DocumentBlock) {
        self.building -= 1;
        self.building_bytes -= block.sent_bytes;
    }

    /// Maximum bytes of the next look-up; 0 if no block waits for a look-up.
    pub(crate) fn next_look_up_bytes(&self) -> usize {
        self.closed.front().map_or(0, |block| block.terms.bytes_of_look_up())
    }

    /// Takes a block whose terms have been looked up. Blocks get the numbers of their missing terms
    /// in the order of the stream.
    ///
    /// # Errors
    /// If new terms do not fit `budget`.
    pub(crate) fn looked_up(
        &mut self,
        block: DocumentBlock,
        names: &mut SharedNames,
        budget: &Budget,
    ) -> Result<(), BudgetFull> {
        self.returned(&block);
        self.looked_up.insert(block.number, block);
        while let Some(mut block) = self.looked_up.remove(&self.next_numbered) {
            names.resolve(&mut block.terms, budget.clone())?;
            self.next_numbered += 1;
            self.numbered.push_back(block);
        }
        Ok(())
    }

    fn next_merge(&self) -> Option<Range<usize>> {
        if self.merging.is_some() {
            return None;
        }
        let len = self.index.len();
        if self.phase == IndexPhase::Ending {
            return (self.are_built() && len > 1).then_some(0..len);
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
        let has_block = !self.numbered.is_empty() || !self.closed.is_empty();
        let merge = self.next_merge().filter(|_| !has_block);
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
        self.returned(&block);
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
        let waiting = self.closed.iter().chain(self.looked_up.values()).chain(&self.numbered);
        self.open.bytes() + waiting.map(DocumentBlock::bytes).sum::<usize>()
    }
}
