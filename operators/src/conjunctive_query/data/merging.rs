//! A merge of segments that follow each other, in two rounds of tasks that kernels do side by side.
//!
//! The tasks of the first round find the merged terms of a range of numbers and the sizes of their
//! lists; these sizes are the places of all lists. The tasks of the second round write the lists of
//! a run of terms, each task into memory of its own, which is a part of the merged segment.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::LargeStringArray;
use trommel_kernels::inverted::{
    ListRun, MergePart, MergedLists, MergedTerms, SegmentBytes, merge_ranges,
};

use super::segments::{IndexSegment, join_names};
use crate::wave::{Numbered, Round};

/// Tasks of a round for each kernel, if there are several kernels: terms differ in the time that
/// their lists take.
const TASKS_PER_KERNEL: usize = 4;

/// A task of a merge.
pub(crate) type MergeTask = Numbered<Merged, MergeStep>;

/// Segments that are merged.
#[derive(Debug)]
pub(crate) struct Merged {
    segments: Vec<Arc<IndexSegment>>,
    /// The merged lists, in the second round.
    lists: Option<MergedLists>,
    /// The share of a task in the postings and documents.
    task_weight: u64,
}

/// What a task makes.
#[derive(Debug)]
pub(crate) enum MergeStep {
    /// The terms with the numbers of a range.
    Terms(Range<u32>, MergedTerms),
    /// The names of all documents.
    Names(Option<LargeStringArray>),
    Lists(ListRun),
}

/// A merge that kernels do.
#[derive(Debug)]
pub(crate) struct Merging {
    /// The merged segments of the index.
    pub(crate) range: Range<usize>,
    round: Round<Merged, MergeStep>,
    names: Option<LargeStringArray>,
    tasks: usize,
}

impl Merged {
    fn parts(&self) -> Vec<MergePart<'_, SegmentBytes>> {
        self.segments.iter().map(|segment| segment.part()).collect()
    }
}

/// Does a task.
pub(crate) fn run(step: &mut MergeStep, merged: &Merged) {
    match step {
        MergeStep::Terms(range, terms) => *terms = MergedTerms::new(&merged.parts(), range),
        MergeStep::Names(joined) => {
            let names = merged.segments.iter().filter_map(|segment| segment.names.clone());
            *joined = join_names(&names.collect::<Vec<_>>());
        }
        MergeStep::Lists(run) => {
            let lists = merged.lists.as_ref().expect("the second round has lists");
            lists.write(&merged.parts(), run);
        }
    }
}

/// The share of a task in the postings and documents of the merge.
pub(crate) fn weight(task: &MergeTask) -> u64 {
    task.shared().task_weight
}

impl Merging {
    /// Begins to merge `segments`, the segments `range` of the index, for `kernels` kernels. With
    /// several kernels, a task has at least about `task_postings` postings and documents.
    pub(crate) fn new(
        range: Range<usize>,
        segments: Vec<Arc<IndexSegment>>,
        (kernels, task_postings): (usize, u64),
    ) -> Self {
        let weight: u64 = segments.iter().map(|segment| segment.weight()).sum();
        let most = if kernels > 1 { TASKS_PER_KERNEL * kernels } else { 1 };
        let tasks = usize::try_from(1 + weight / task_postings).map_or(most, |all| all.min(most));
        // Each list is read once in each of the two rounds.
        let task_weight = weight / (2 * tasks as u64);
        let merged = Merged { segments, lists: None, task_weight };
        let ranges = merge_ranges(&merged.parts(), tasks).into_iter();
        let steps = ranges.map(|range| MergeStep::Terms(range, MergedTerms::default()));
        let steps: Vec<_> = steps.chain([MergeStep::Names(None)]).collect();
        Self { range, round: Round::new(merged, steps), names: None, tasks }
    }

    /// Whether a task waits.
    pub(crate) fn has_task(&self) -> bool {
        self.round.has_task()
    }

    /// The next task.
    pub(crate) fn task(&mut self) -> Option<MergeTask> {
        self.round.task()
    }

    /// Takes back a task that has been done. Returns the merged segment if this task was the last
    /// task.
    pub(crate) fn landed(&mut self, task: MergeTask) -> Option<IndexSegment> {
        let (mut terms, mut runs) = (Vec::new(), Vec::new());
        for step in self.round.landed(task)? {
            match step {
                MergeStep::Terms(_, of_range) => terms.push(of_range),
                MergeStep::Names(joined) => self.names = joined,
                MergeStep::Lists(run) => runs.push(run),
            }
        }
        let merged = self.round.shared_mut();
        if let Some(lists) = merged.lists.take() {
            let (numbers, lists) = lists.finish(runs);
            return Some(IndexSegment::merged(numbers, lists, mem::take(&mut self.names)));
        }
        let (lists, runs) = MergedLists::new(&merged.parts(), terms, self.tasks);
        merged.lists = Some(lists);
        self.round.begin(runs.into_iter().map(MergeStep::Lists));
        None
    }
}
