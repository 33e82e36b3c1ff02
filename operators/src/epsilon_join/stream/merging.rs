//! Merges of the panes of a stream during the join of its micro-batches.
//!
//! ```text
//! panes   [     a     ][   b   ][ c ][d]     all are searched while b, c and d are merged
//!                      └────────┬──────┘
//! tasks   gather ─► rounds of a directory ─► [     bcd     ]   then it takes their place
//! ```
//!
//! One merge is under way at a time; a later merge takes all panes that arrive meanwhile. Each task
//! of a merge takes about a millisecond, so a micro-batch does not wait for a merge. Kernels get
//! tasks while they have nothing else to do; in addition, the vectors of each micro-batch pay for a
//! number of tasks, so that merges keep up with a stream that never pauses. A kernel has one task
//! at a time. A merge is given up if a micro-batch needs its memory.

use std::sync::Arc;

use arrow_schema::ArrowError;

use super::gathering::{Gathered, Gathering};
use crate::epsilon_join::answer::chunk::Task;
use crate::epsilon_join::data::building::Progress;
use crate::epsilon_join::data::built::Built;
use crate::epsilon_join::parameters::rules::Rules;

/// Number of vectors from which on a pane has principal components of its own.
pub(crate) const COMPONENTS_MIN: usize = 1 << 14;

/// A merge that is under way.
#[derive(Debug)]
struct Merge {
    parts: Vec<Arc<Built>>,
    like: Option<Arc<Built>>,
    bytes: usize,
    step: MergeStep,
}

#[derive(Debug)]
enum MergeStep {
    /// The task of gathering waits.
    Gather,
    /// A kernel has the task of gathering.
    Gathering,
    Building(Progress),
}

/// A pane that takes the place of its parts.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) parts: Vec<Arc<Built>>,
    pub(crate) built: Arc<Built>,
}

/// The merges of a stream, one at a time.
#[derive(Debug)]
pub(crate) struct Merging {
    rules: Rules,
    merge: Option<Merge>,
    /// Number of merges that have ended; this is also the number of the merge under way.
    number: usize,
    /// Number of tasks that kernels have.
    in_flight: usize,
    /// Number of coordinates that arriving vectors have paid for and that no task has processed
    /// yet.
    credit: usize,
}

impl Merging {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { rules, merge: None, number: 0, in_flight: 0, credit: 0 }
    }

    /// Whether a merge is under way.
    pub(crate) fn is_running(&self) -> bool {
        self.merge.is_some()
    }

    /// Bytes of the pane that is being made.
    pub(crate) fn bytes(&self) -> usize {
        self.merge.as_ref().map_or(0, |merge| merge.bytes)
    }

    /// Begins to merge `parts`; the merge takes `bytes`. Few vectors take over the principal
    /// components of `largest`.
    pub(crate) fn begin(&mut self, parts: Vec<Arc<Built>>, bytes: usize, largest: Arc<Built>) {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let like = (len < COMPONENTS_MIN).then_some(largest);
        self.merge = Some(Merge { parts, like, bytes, step: MergeStep::Gather });
    }

    /// Gives up the merge. When tasks of that merge return from kernels, their results are dropped.
    pub(crate) fn cancel(&mut self) {
        if self.merge.take().is_some() {
            self.number += 1;
        }
    }

    /// Takes the pay of `vectors` vectors that have arrived, if a merge is under way.
    pub(crate) fn earn(&mut self, vectors: usize, dims: usize) {
        let pay = vectors.saturating_mul(dims).saturating_mul(self.rules.tuning.merge_pace);
        self.credit = if self.is_running() { self.credit.saturating_add(pay) } else { pay };
    }

    /// The next task, if arriving vectors have paid for the task.
    pub(crate) fn paid_task(&mut self) -> Option<Task> {
        if self.credit == 0 { None } else { self.task() }
    }

    /// Whether there is a task that a kernel can have.
    pub(crate) fn has_task(&self) -> bool {
        let Some(Merge { step, .. }) = &self.merge else { return false };
        self.in_flight < self.rules.kernels
            && match step {
                MergeStep::Gather => true,
                MergeStep::Gathering => false,
                MergeStep::Building(progress) => progress.has_task(),
            }
    }

    /// The next task.
    pub(crate) fn task(&mut self) -> Option<Task> {
        if !self.has_task() {
            return None;
        }
        let (of, tuning) = (self.number, &self.rules.tuning);
        let Merge { parts, like, step, .. } = self.merge.as_mut()?;
        let task = match step {
            MergeStep::Gather => {
                *step = MergeStep::Gathering;
                Task::Gather(Box::new(Gathering {
                    of,
                    parts: parts.clone(),
                    like: like.clone(),
                    rules: self.rules.clone(),
                    gathered: None,
                }))
            }
            MergeStep::Gathering => return None,
            MergeStep::Building(progress) => Task::Build { of, task: progress.task()? },
        };
        let numbers: usize = parts.iter().map(|part| part.len() * part.dims).sum();
        self.credit = self.credit.saturating_sub(numbers.min(tuning.merge_numbers));
        self.in_flight += 1;
        Some(task)
    }

    /// Takes back a task that has been done; returns the merged pane if this task was the last task
    /// of the merge.
    ///
    /// # Errors
    /// If carried columns cannot be concatenated.
    pub(crate) fn landed(&mut self, task: Task) -> Result<Option<Merged>, ArrowError> {
        self.in_flight -= 1;
        match task {
            Task::Gather(gathering) if gathering.of == self.number => {
                let (Some(merge), Some(gathered)) = (&mut self.merge, gathering.gathered) else {
                    return Ok(None);
                };
                merge.step = MergeStep::Building(match gathered? {
                    Gathered::Built(built) => Progress::Built(Arc::new(built)),
                    Gathered::Collected(collected) => {
                        let like = merge.like.as_deref().and_then(Built::directory);
                        Progress::merge(&self.rules, collected, like)
                    }
                });
            }
            Task::Build { of, task } if of == self.number => {
                if let Some(Merge { step: MergeStep::Building(progress), .. }) = &mut self.merge {
                    progress.landed(task);
                }
            }
            _ => return Ok(None),
        }
        Ok(self.take_merged())
    }

    /// Ends the merge if the pane is ready.
    fn take_merged(&mut self) -> Option<Merged> {
        let Some(Merge { step: MergeStep::Building(progress), .. }) = &self.merge else {
            return None;
        };
        let built = Arc::clone(progress.built()?);
        let Merge { parts, .. } = self.merge.take()?;
        self.number += 1;
        Some(Merged { parts, built })
    }
}
