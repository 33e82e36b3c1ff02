//! Chunks: vectors to make ready, parts of a join to search, or rows to report.

use std::ops::Range;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::vectors::{Pair, Side, Sink, Vectors};

use super::found::{Answer, PartnerCounts};
use super::join::{Cursor, PartedJoin};
use crate::epsilon_join::data::building::InputTask;
use crate::epsilon_join::data::built::Sides;
use crate::epsilon_join::parameters::options::EpsilonOutput;
use crate::epsilon_join::parameters::tuning::Tuning;
use crate::epsilon_join::plan::blocks::FoundBlocks;
use crate::epsilon_join::plan::job::DeviceJob;
use crate::epsilon_join::stream::gathering::Gathering;
use crate::shared::window::Extent;
use crate::wave::{Target, WaveChunk};

/// Work of a chunk.
#[derive(Debug, Default)]
pub(crate) enum Task {
    #[default]
    None,
    /// Builds a part of the directory of the input or merge `of`.
    Build { of: usize, task: InputTask },
    /// Copies the vectors of some panes of a stream into one list.
    Gather(Box<Gathering>),
    /// Searches parts of the join.
    Join { sides: Sides, partners: Option<PartnerCounts>, parts: Range<usize>, kept: KeptPairs },
    /// Lets a device search a block of the join. The CPU leaves the block undone.
    Device(Box<DeviceJob>),
    /// Sends rows of the left vectors, after the whole join.
    Report { sides: Sides, partners: Option<PartnerCounts> },
}

/// Pairs that are kept.
#[derive(Debug, Clone)]
pub(crate) enum KeptPairs {
    All,
    /// Pairs within a window.
    Within(Extent),
    /// Pairs that no device has found.
    Without(Arc<FoundBlocks>),
}

/// A chunk of the join.
#[derive(Debug)]
pub(crate) struct EpsilonChunk {
    pub(crate) task: Task,
    pub(crate) answer: Answer,
    cursor: Cursor,
    block_rows: usize,
}

impl EpsilonChunk {
    pub(crate) fn new(output: EpsilonOutput, tuning: &Tuning) -> Self {
        let answer = Answer::new(output, tuning.chunk_pairs);
        let block_rows = tuning.block_rows;
        Self { task: Task::None, answer, cursor: Cursor::default(), block_rows }
    }

    /// Does the work in `kernel`, until the list of pairs is full.
    pub(crate) fn run(&mut self, isa: Isa, kernel: usize) {
        let Self { task, answer, cursor, block_rows } = self;
        match task {
            Task::None | Task::Device(_) | Task::Report { .. } => {}
            Task::Gather(gathering) => gathering.run(isa),
            Task::Build { task, .. } => task.run(|task, collected| {
                task.run(Vectors::new(&collected.coordinates, collected.dims));
            }),
            Task::Join { sides, partners, parts, kept } => {
                let join = PartedJoin::new(sides, *block_rows);
                let has_weights = sides.have_copies();
                let kept = &*kept;
                let mut find = Find { join, isa, sides, kept, cursor };
                while parts.start < parts.end {
                    let part = parts.start;
                    let is_done = match (&mut *answer, &*partners) {
                        (Answer::Pairs(found), _) => find.advance(part, found),
                        (Answer::Count(count), _) if has_weights => {
                            let rows = |pair: Pair| match kept {
                                KeptPairs::Within(window) => sides.pairs_within(&pair, *window),
                                KeptPairs::All | KeptPairs::Without(_) => {
                                    sides.counts(&pair).map(u64::from).iter().product()
                                }
                            };
                            let add = |pair| count.0 += rows(pair);
                            find.advance(part, &mut EachPair(add))
                        }
                        (Answer::Count(count), _) => find.advance(part, count),
                        (Answer::Later(rows), _) => find.advance(part, rows),
                        (Answer::Partners, None) => true,
                        (Answer::Partners, Some(partners)) if has_weights => {
                            partners.add(kernel, |counts| {
                                let add = |pair: Pair| {
                                    let [left, right] = sides.counts(&pair);
                                    counts.add(Side::Left, pair.left as usize, &[right]);
                                    counts.add(Side::Right, pair.right as usize, &[left]);
                                };
                                find.advance(part, &mut EachPair(add))
                            })
                        }
                        (Answer::Partners, Some(partners)) => {
                            partners.add(kernel, |counts| find.advance(part, counts))
                        }
                    };
                    if !is_done {
                        return;
                    }
                    parts.start += 1;
                }
            }
        }
    }
}

/// The search of a chunk.
struct Find<'a> {
    join: PartedJoin<'a>,
    isa: Isa,
    sides: &'a Sides,
    kept: &'a KeptPairs,
    cursor: &'a mut Cursor,
}

impl Find<'_> {
    /// Continues `part` until the sink is full; returns whether the part is finished.
    fn advance<S: Sink>(&mut self, part: usize, sink: &mut S) -> bool {
        let Self { join, isa, sides, kept, cursor } = self;
        match kept {
            KeptPairs::All => cursor.advance(join, *isa, part, sink),
            KeptPairs::Within(window) => {
                let (older, newer) = (&sides.left, sides.right());
                // Among rows of equal vectors, the last older row and the first newer row are the
                // nearest in the stream.
                let is_kept = |left: u32, right: u32| {
                    window.reaches(older.stamps_of(left)[1], newer.stamps_of(right)[0])
                };
                cursor.advance(join, *isa, part, &mut Filtered { sink, is_kept })
            }
            KeptPairs::Without(found) => {
                let is_kept = |left, right| !found.contain(left, right);
                cursor.advance(join, *isa, part, &mut Filtered { sink, is_kept })
            }
        }
    }
}

/// Gives the pairs for which `is_kept` is true to a sink.
struct Filtered<'a, S, F> {
    sink: &'a mut S,
    is_kept: F,
}

impl<S: Sink, F: Fn(u32, u32) -> bool> Sink for Filtered<'_, S, F> {
    const TAKES_ALL: bool = false;
    const STOPS: bool = S::STOPS;

    #[inline(always)]
    fn has_enough(&self, row: u32) -> bool {
        self.sink.has_enough(row)
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.sink.is_full()
    }

    #[inline(always)]
    fn take(&mut self, pair: Pair) {
        if (self.is_kept)(pair.left, pair.right) {
            self.sink.take(pair);
        }
    }

    fn take_all(&mut self, _: u32, _: Side, _: Range<u32>, _: u32) {
        unreachable!("pairs are taken one by one");
    }
}

/// Gives each pair to a closure.
struct EachPair<F>(F);

impl<F: FnMut(Pair)> Sink for EachPair<F> {
    const TAKES_ALL: bool = false;

    #[inline(always)]
    fn take(&mut self, pair: Pair) {
        (self.0)(pair);
    }

    fn take_all(&mut self, _: u32, _: Side, _: Range<u32>, _: u32) {
        unreachable!("pairs are taken one by one");
    }
}

impl WaveChunk for EpsilonChunk {
    fn items(&self) -> usize {
        match &self.task {
            Task::None | Task::Build { .. } | Task::Gather(_) => 0,
            Task::Join { parts, .. } => parts.len(),
            Task::Device(job) => job.rows[0].len(),
            Task::Report { sides, .. } => sides.left.ids.len(),
        }
    }

    fn bytes(&self) -> usize {
        match (&self.task, &self.answer) {
            (Task::Device(job), _) => job.bytes(),
            (_, Answer::Pairs(found)) => size_of_val(found.pairs()),
            _ => 0,
        }
    }

    fn clear(&mut self, _bytes_max: usize) {
        self.task = Task::None;
        self.answer.clear();
        self.cursor.clear();
    }

    fn target(&self) -> Target {
        if matches!(self.task, Task::Device(_)) { Target::Device } else { Target::Cpu }
    }

    fn has_rows(&self) -> bool {
        matches!(self.task, Task::Join { .. } | Task::Device(_) | Task::Report { .. })
    }

    fn may_be_unfinished(&self) -> bool {
        // A block can be split into four, or be left undone.
        let is_join = matches!(self.task, Task::Join { .. });
        self.target() == Target::Device || is_join && matches!(self.answer, Answer::Pairs(_))
    }

    fn retain_unfinished(&mut self) -> bool {
        let Task::Join { parts, .. } = &self.task else { return false };
        let is_unfinished = parts.start < parts.end;
        if is_unfinished {
            self.answer.clear();
        }
        is_unfinished
    }
}
