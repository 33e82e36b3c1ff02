//! PREPARE: collects the vectors, and cuts the join into chunks.
//!
//! ```text
//! batches ──► sides ──► rounds of chunks for each input ──► chunks of parts ──► one for rows
//!             collecting                       building     joining             reporting
//! ```

use std::ops::Range;
use std::sync::Arc;

use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, OperatorError};
use trommel_kernels::vectors::Partners;

use super::answer::PartnerCounts;
use super::building::Progress;
use super::built::{Built, Collected, Sides, directory_bytes};
use super::chunk::{EpsilonChunk, Task};
use super::join::PartedJoin;
use super::options::{EpsilonAlgorithm, EpsilonOutput};
use super::rules::Rules;
use super::side::Side;
use crate::budget::Budget;
use crate::wave::{Filled, Producer};

/// Progress of the join.
enum Phase {
    /// Before the inputs have ended.
    Collecting,
    /// The inputs are made ready.
    Building(Vec<Progress>),
    /// Parts of the join that are left.
    Joining {
        sides: Sides,
        partners: Option<PartnerCounts>,
        parts: Range<usize>,
        step: usize,
    },
    Done,
}

/// Collects the vectors of one or two inputs, then makes chunks of their join.
pub(super) struct EpsilonProducer {
    rules: Rules,
    sides: Vec<Side>,
    budget: Budget,
    phase: Phase,
    /// Chunks of the join in the wave.
    joining: usize,
    counters: [u64; 3],
}

impl EpsilonProducer {
    pub(super) fn new(rules: Rules, sides: Vec<Side>) -> Self {
        let budget = Budget::new(rules.memory_max);
        Self { rules, sides, budget, phase: Phase::Collecting, joining: 0, counters: [0; 3] }
    }

    /// The vectors of an input, which has ended.
    fn collected(
        &mut self,
        mut side: Side,
        has_directory: bool,
    ) -> Result<Collected, OperatorError> {
        if has_directory {
            let bytes = directory_bytes(side.ids.len(), side.columns.dims);
            self.budget.take("the directory", bytes)?;
        }
        side.take(&self.rules, has_directory, Vec::new())
    }

    /// Number of pairs that a nested loop compares.
    fn pairs(&self) -> u64 {
        let len = |side: &Side| side.ids.len() as u64;
        match &self.sides[..] {
            [only] => len(only) * len(only).saturating_sub(1) / 2,
            sides => sides.iter().map(len).product(),
        }
    }

    /// Begins with the join when all directories are there.
    fn begin_join(&mut self) {
        let Phase::Building(inputs) = &self.phase else { return };
        let built: Option<Vec<&Arc<Built>>> = inputs.iter().map(Progress::built).collect();
        let Some(built) = built else { return };
        let sides =
            Sides { left: Arc::clone(built[0]), right: built.get(1).copied().map(Arc::clone) };
        let Rules { output, kernels, tuning, .. } = self.rules;
        let parts = PartedJoin::new(&sides, tuning.block_rows).parts();
        let partners = (output == EpsilonOutput::Partners).then(|| {
            let rows = sides.left.len();
            let empty = match &sides.right {
                None => Partners::within(rows),
                Some(right) => Partners::between(rows, right.len()),
            };
            PartnerCounts::new(kernels, empty)
        });
        // Some dozens of chunks a kernel, so that all end at about the same time.
        let step = (parts / (kernels * 32)).clamp(1, tuning.chunk_parts);
        self.phase = Phase::Joining { sides, partners, parts: 0..parts, step };
    }

    /// The chunk that follows the last one of the join.
    fn report(&mut self) -> Option<Task> {
        let Phase::Joining { sides, partners, .. } =
            std::mem::replace(&mut self.phase, Phase::Done)
        else {
            return None;
        };
        match self.rules.output {
            EpsilonOutput::Pairs | EpsilonOutput::Count => None,
            EpsilonOutput::Partners | EpsilonOutput::First => {
                Some(Task::Report { sides, partners })
            }
        }
    }
}

impl Producer for EpsilonProducer {
    type Chunk = EpsilonChunk;

    fn take(&mut self, port: usize, batch: Payload) -> Result<(), OperatorError> {
        let side = &mut self.sides[port];
        let records = side.accept(self.rules.isa, batch.into_records())?;
        side.append(&records, &mut self.budget)
    }

    fn finish(&mut self) -> Result<(), OperatorError> {
        self.counters = self.numbers();
        let has_directory = self.rules.has_directory(self.pairs(), self.sides[0].columns.dims);
        let sides = std::mem::take(&mut self.sides);
        let inputs = sides.into_iter().map(|side| {
            let collected = self.collected(side, has_directory)?;
            Ok(Progress::new(&self.rules, collected))
        });
        self.phase = Phase::Building(inputs.collect::<Result<_, OperatorError>>()?);
        Ok(())
    }

    fn fill(&mut self, chunk: &mut EpsilonChunk) -> Result<Filled, OperatorError> {
        self.begin_join();
        chunk.task = match &mut self.phase {
            Phase::Collecting | Phase::Done => return Ok(Filled::Nothing),
            Phase::Building(inputs) => {
                // No input goes on before it is known for all whether a directory pays.
                let is_choosing = inputs.iter().any(Progress::is_choosing);
                let mut inputs = inputs.iter_mut().enumerate();
                let task = inputs.find_map(|(input, progress)| {
                    let waits = is_choosing && !progress.is_choosing();
                    if waits { None } else { Some((input, progress.task()?)) }
                });
                let Some((input, (number, task, collected))) = task else {
                    return Ok(Filled::Waiting);
                };
                Task::Build { input, number, task, collected }
            }
            Phase::Joining { sides, partners, parts, step } if parts.start < parts.end => {
                let end = parts.end.min(parts.start + *step);
                let taken = parts.start..end;
                parts.start = end;
                self.joining += 1;
                Task::Join {
                    sides: sides.clone(),
                    partners: partners.clone(),
                    parts: taken,
                    window: None,
                }
            }
            Phase::Joining { .. } if self.joining > 0 => return Ok(Filled::Waiting),
            Phase::Joining { .. } => match self.report() {
                Some(report) => report,
                None => return Ok(Filled::Nothing),
            },
        };
        Ok(Filled::Chunk)
    }

    fn landed(&mut self, chunk: &mut EpsilonChunk) {
        match &chunk.task {
            Task::Build { .. } => {
                let built = std::mem::take(&mut chunk.task);
                if let (Task::Build { input, number, task, collected }, Phase::Building(inputs)) =
                    (built, &mut self.phase)
                {
                    // The last owner of the vectors takes them apart.
                    drop(collected);
                    let was_choosing = inputs[input].is_choosing();
                    inputs[input].landed(number, task);
                    let is_chosen = was_choosing && !inputs.iter().any(Progress::is_choosing);
                    let is_free = self.rules.algorithm == EpsilonAlgorithm::Auto;
                    if is_chosen && is_free && inputs.iter().any(Progress::is_slow) {
                        inputs.iter_mut().for_each(Progress::leave_directory);
                    }
                }
            }
            Task::Join { parts, .. } if parts.start == parts.end => self.joining -= 1,
            _ => {}
        }
    }

    fn counters(&self) -> Counters {
        let [rows, nulls, not_finite] =
            if self.sides.is_empty() { self.counters } else { self.numbers() };
        vec![("vectors", rows), ("nulls", nulls), ("not_finite", not_finite)]
    }
}

impl EpsilonProducer {
    /// Numbers of rows, of null rows, and of rows that are not finite.
    fn numbers(&self) -> [u64; 3] {
        self.sides.iter().fold([0; 3], |sum, side| {
            let of_side = side.numbers();
            [sum[0] + of_side[0], sum[1] + of_side[1], sum[2] + of_side[2]]
        })
    }
}
