//! PREPARE: collects the vectors, and cuts the join into chunks.
//!
//! ```text
//! batches ──► sides ──► rounds of chunks for each input ──► chunks of parts ──► one for rows
//!             collecting        ▲               building     joining             reporting
//!               └─► blocks ─────┘ if the device fails                               ▲
//!                   on a device ────────────────────────────────────────────────────┘
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, NamedInputs, OperatorError};
use trommel_kernels::vectors::Partners;

use super::answer::chunk::{EpsilonChunk, KeptPairs, Task};
use super::answer::found::PartnerCounts;
use super::answer::join::PartedJoin;
use super::data::building::Progress;
use super::data::built::{Built, Collected, Sides, directory_bytes};
use super::data::copies::{Copies, copies_bytes};
use super::data::crowds::are_crowded;
use super::data::side::Side;
use super::device::choice;
use super::device::flights::BLOCKS;
use super::parameters::error::EpsilonJoinError;
use super::parameters::options::{EpsilonAlgorithm, EpsilonOutput};
use super::parameters::rules::Rules;
use super::plan::blocks::BlockPlan;
use super::plan::cost::Shape;
use super::plan::job::{DeviceJob, DevicePlan, Outcome};
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::columns::pairs::warn_of_copies;
use crate::shared::rejected::BadRows;
use crate::wave::{DeviceChoice, Filled, Producer};

/// Name of the memory for finding equal vectors, in errors.
const COPIES: &str = "the copies";

/// Progress of the join.
enum JoinPhase {
    /// Before the inputs have ended.
    Collecting,
    /// Kernels make the inputs ready.
    Building(Vec<Progress>),
    /// The device joins blocks; `blocks` has the blocks that are left.
    OnDevice {
        sides: Sides,
        partners: Option<PartnerCounts>,
        blocks: BlockPlan,
        plan: DevicePlan,
        is_lost: bool,
    },
    /// Kernels search parts; `parts` are the parts that are left.
    Joining {
        sides: Sides,
        partners: Option<PartnerCounts>,
        parts: Range<usize>,
        kept: KeptPairs,
    },
    Done,
}

/// Number of chunks into which the share of a kernel in the parts that are left is cut. With fewer
/// chunks, a kernel would end late; with more chunks, the thread that sends the chunks would have
/// no time for so many of them.
const SHARE_CHUNKS: usize = 4;

/// Collects the vectors of one or two inputs, then cuts their join into chunks.
pub(super) struct EpsilonProducer {
    rules: Rules,
    sides: Vec<Side>,
    bad: BadRows,
    budget: Budget,
    device: DeviceChoice,
    phase: JoinPhase,
    /// Number of chunks of the join in the wave.
    joining: usize,
    /// After the loss of a device: the pairs that the device has not found, and the partners that
    /// the device has counted.
    rest: (KeptPairs, Option<PartnerCounts>),
    /// Whether each vector is looked up until a first earlier partner is found.
    are_looked_up: bool,
    vectors: u64,
    /// Number of pairs of equal vectors, if the producer has counted these pairs.
    pairs_of_copies: u64,
}

impl EpsilonProducer {
    pub(super) fn new(
        rules: Rules,
        (sides, bad): (Vec<Side>, BadRows),
        device: DeviceChoice,
    ) -> Self {
        let budget = rules.memory.budget();
        Self {
            rules,
            sides,
            bad,
            budget,
            device,
            phase: JoinPhase::Collecting,
            joining: 0,
            rest: (KeptPairs::All, None),
            are_looked_up: false,
            vectors: 0,
            pairs_of_copies: 0,
        }
    }

    /// Groups equal vectors so that each group is joined once, if that pays and the output does not
    /// list each pair. Returns whether pairs then have weights.
    fn join_copies_once(&mut self, collected: &mut [Collected]) -> Result<bool, OperatorError> {
        if !self.rules.may_join_copies_once() {
            self.tell_copies(collected);
            return Ok(false);
        }
        let Rules { output, tuning, .. } = &self.rules;
        let needs_weights = *output != EpsilonOutput::First;
        if needs_weights && choice::is_asked_for(&mut self.device) {
            return Ok(false);
        }
        for one in &mut *collected {
            if Copies::pay(&one.coordinates, one.dims, tuning) {
                self.budget.reserve(COPIES, copies_bytes(one.ids.len()))?;
                let copies = Copies::group(&mut one.coordinates, one.dims);
                self.budget.take(COPIES, copies.bytes())?;
                one.copies = Some(copies);
            }
        }
        if let [one] = collected {
            self.pairs_of_copies = one.copies.as_ref().map_or(0, Copies::pairs);
        }
        Ok(needs_weights && collected.iter().any(|one| one.copies.is_some()))
    }

    /// Counts the pairs of equal vectors of one input, if a sample has enough copies and there is
    /// memory for the count, and warns if there are many such pairs.
    fn tell_copies(&mut self, collected: &[Collected]) {
        let [one] = collected else { return };
        if !Copies::pay(&one.coordinates, one.dims, &self.rules.tuning) {
            return;
        }
        if self.budget.reserve(COPIES, copies_bytes(one.ids.len())).is_ok() {
            self.pairs_of_copies = Copies::pairs_among(&one.coordinates, one.dims);
            warn_of_copies(self.pairs_of_copies, "vectors");
        }
    }

    /// Begins to make the inputs ready, with directories if the rules or the look-ups need
    /// directories.
    fn begin_building(&mut self, mut collected: Vec<Collected>) -> Result<(), OperatorError> {
        let shape = shape_of(&collected);
        if self.are_looked_up || self.rules.has_directory(shape.pairs(), shape.dims) {
            for one in &mut collected {
                let bytes = directory_bytes(one.len(), one.dims);
                self.budget.take("the directory", bytes)?;
                one.has_directory = true;
            }
        }
        let is_alone = collected.len() == 1 && !self.are_looked_up;
        let inputs = collected.into_iter().map(|one| Progress::new(&self.rules, one, is_alone));
        self.phase = JoinPhase::Building(inputs.collect());
        Ok(())
    }

    /// Begins the join on a device.
    fn begin_blocks(
        &mut self,
        collected: Vec<Collected>,
        plan: DevicePlan,
    ) -> Result<(), BudgetFull> {
        let built = collected.into_iter().map(|one| Arc::new(one.build(self.rules.isa, None)));
        let Some(sides) = sides_of(built, false) else { return Ok(()) };
        let right = sides.right.as_ref().map(|right| right.len());
        let blocks = BlockPlan::new(sides.left.len(), right, plan.shift);
        let partners = self.partners(&sides)?;
        self.phase = JoinPhase::OnDevice { sides, partners, blocks, plan, is_lost: false };
        Ok(())
    }

    /// Continues on the CPU when all blocks have returned from a device that is lost.
    fn leave_device(&mut self) -> Result<(), OperatorError> {
        let is_left =
            self.joining == 0 && matches!(self.phase, JoinPhase::OnDevice { is_lost: true, .. });
        if !is_left {
            return Ok(());
        }
        let phase = std::mem::replace(&mut self.phase, JoinPhase::Done);
        let JoinPhase::OnDevice { sides, partners, blocks, .. } = phase else { return Ok(()) };
        let built = [Some(sides.left), sides.right].into_iter().flatten();
        let collected = built
            .map(|built| Arc::into_inner(built).expect("no block is under way").into_collected());
        let collected = collected.collect();
        self.rest = (KeptPairs::Without(Arc::new(blocks.into_found())), partners);
        self.begin_building(collected)
    }

    /// Counts of partners, if the output needs counts.
    ///
    /// # Errors
    /// If there is no room for the counts of all kernels and for their sum.
    fn partners(&mut self, sides: &Sides) -> Result<Option<PartnerCounts>, BudgetFull> {
        if self.rules.output != EpsilonOutput::Partners {
            return Ok(None);
        }
        let (kernels, rows) = (self.rules.kernels, sides.left.len());
        let others = sides.right.as_ref().map(|right| right.len());
        let bytes = (rows + others.unwrap_or(0)) * size_of::<u32>();
        self.budget.take("the numbers of partners", bytes.saturating_mul(kernels + 2))?;
        let empty = match others {
            None => Partners::within(rows),
            Some(others) => Partners::between(rows, others),
        };
        Ok(Some(PartnerCounts::new(kernels, empty)))
    }

    /// Begins the join when all inputs are ready.
    fn begin_join(&mut self) -> Result<(), BudgetFull> {
        let JoinPhase::Building(inputs) = &self.phase else { return Ok(()) };
        let built: Option<Vec<_>> = inputs.iter().map(|input| input.built().cloned()).collect();
        let Some(sides) = built.and_then(|built| sides_of(built.into_iter(), self.are_looked_up))
        else {
            return Ok(());
        };
        let parts = PartedJoin::new(&sides, self.rules.tuning.block_rows).parts();
        let (kept, counted) = std::mem::replace(&mut self.rest, (KeptPairs::All, None));
        let partners = match counted {
            Some(counted) => Some(counted),
            None => self.partners(&sides)?,
        };
        self.phase = JoinPhase::Joining { sides, partners, parts: 0..parts, kept };
        Ok(())
    }

    /// The next work of the join; none if no work is left, or if the device has enough blocks.
    fn next_task(&mut self) -> Option<Task> {
        match &mut self.phase {
            // Blocks under way return first; `leave_device` then continues on the CPU.
            JoinPhase::OnDevice { is_lost: true, .. } => None,
            // One block more than the devices can hold waits in the wave, so that no device waits
            // for a block.
            JoinPhase::OnDevice { .. } if self.joining > BLOCKS * self.device.devices() => None,
            JoinPhase::OnDevice { sides, partners, blocks, plan, .. } => {
                let block = blocks.next()?;
                Some(Task::Device(Box::new(DeviceJob {
                    block,
                    rows: blocks.rows(block),
                    sides: sides.clone(),
                    plan: *plan,
                    partners: partners.clone(),
                    outcome: Outcome::Undone,
                })))
            }
            JoinPhase::Joining { sides, partners, parts, kept } if parts.start < parts.end => {
                // Chunks become smaller, so that all kernels end at about the same time.
                let Rules { kernels, tuning, .. } = self.rules;
                let len = (parts.len() / (SHARE_CHUNKS * kernels)).clamp(1, tuning.chunk_parts);
                let taken = parts.start..parts.start + len;
                parts.start = taken.end;
                let (sides, partners, kept) = (sides.clone(), partners.clone(), kept.clone());
                Some(Task::Join { sides, partners, parts: taken, kept })
            }
            _ => None,
        }
    }

    /// Takes a block that has returned.
    fn block_landed(&mut self, job: &DeviceJob) {
        self.joining -= 1;
        let JoinPhase::OnDevice { blocks, is_lost, .. } = &mut self.phase else { return };
        match job.outcome {
            // A kernel got the block in place of the device.
            Outcome::Undone => *is_lost = true,
            Outcome::Full => blocks.split(job.block),
            _ => blocks.complete(job.block),
        }
    }

    /// The task of the chunk that follows the last chunk of the join; none if the output needs no
    /// such chunk.
    fn report(&mut self) -> Option<Task> {
        let phase = std::mem::replace(&mut self.phase, JoinPhase::Done);
        let (JoinPhase::Joining { sides, partners, .. }
        | JoinPhase::OnDevice { sides, partners, .. }) = phase
        else {
            return None;
        };
        match self.rules.output {
            // The pairs of copies are added to the number of pairs.
            EpsilonOutput::Count if sides.have_copies() => Some(Task::Report { sides, partners }),
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
        let records = batch.into_records();
        self.vectors += records.num_rows() as u64;
        let vectors = side.accept(self.rules.isa, &records, &mut self.bad)?;
        side.append(vectors, &mut self.budget)
    }

    fn take_rejected(&mut self) -> Option<RecordBatch> {
        self.bad.take_rejected()
    }

    fn finish(&mut self) -> Result<(), OperatorError> {
        let sides = std::mem::take(&mut self.sides);
        let Self { rules, budget, .. } = self;
        let take = |mut side: Side| side.take(rules, false, Vec::new(), budget);
        let mut collected = sides.into_iter().map(take).collect::<Result<Vec<_>, _>>()?;
        match_lengths(&mut collected)?;
        let has_weights = self.join_copies_once(&mut collected)?;
        self.are_looked_up = self.rules.output == EpsilonOutput::First
            && self.rules.algorithm != EpsilonAlgorithm::NestedLoop
            && collected.iter().any(|one| are_crowded(&self.rules, &one.coordinates, one.dims));
        // A device cannot weigh pairs, and always searches for all pairs.
        let plan = match has_weights || self.are_looked_up {
            true => None,
            false => choice::choose(&mut self.device, &self.rules, &shape_of(&collected)),
        };
        match plan {
            Some(plan) => Ok(self.begin_blocks(collected, plan)?),
            None => self.begin_building(collected),
        }
    }

    fn fill(&mut self, chunk: &mut EpsilonChunk) -> Result<Filled, OperatorError> {
        self.leave_device()?;
        self.begin_join()?;
        if let Some(task) = self.next_task() {
            self.joining += 1;
            chunk.task = task;
            return Ok(Filled::Chunk);
        }
        chunk.task = match &mut self.phase {
            JoinPhase::Collecting | JoinPhase::Done => return Ok(Filled::Nothing),
            JoinPhase::Building(inputs) => {
                // No input continues before all inputs know whether a directory pays.
                let is_choosing = inputs.iter().any(Progress::is_choosing);
                let mut inputs = inputs.iter_mut().enumerate();
                let task = inputs.find_map(|(input, progress)| {
                    let waits = is_choosing && !progress.is_choosing();
                    if waits { None } else { Some((input, progress.task()?)) }
                });
                let Some((of, task)) = task else { return Ok(Filled::Waiting) };
                Task::Build { of, task }
            }
            JoinPhase::Joining { .. } | JoinPhase::OnDevice { .. } if self.joining > 0 => {
                return Ok(Filled::Waiting);
            }
            JoinPhase::Joining { .. } | JoinPhase::OnDevice { .. } => match self.report() {
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
                if let (Task::Build { of, task }, JoinPhase::Building(inputs)) =
                    (built, &mut self.phase)
                {
                    let was_choosing = inputs[of].is_choosing();
                    inputs[of].landed(task);
                    let is_chosen = was_choosing && !inputs.iter().any(Progress::is_choosing);
                    let is_free =
                        self.rules.algorithm == EpsilonAlgorithm::Auto && !self.are_looked_up;
                    if is_chosen && is_free && inputs.iter().any(Progress::is_slow) {
                        inputs.iter_mut().for_each(Progress::leave_directory);
                    }
                }
            }
            Task::Join { parts, .. } if parts.start == parts.end => self.joining -= 1,
            Task::Device(_) => {
                // The chunk drops its share of the vectors, because the CPU may take over the
                // vectors as their only owner.
                if let Task::Device(job) = std::mem::take(&mut chunk.task) {
                    self.block_landed(&job);
                }
            }
            _ => {}
        }
    }

    fn counters(&self) -> Counters {
        let mut counters =
            vec![("vectors", self.vectors), ("pairs_of_copies", self.pairs_of_copies)];
        counters.extend(self.bad.counters());
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.bad.named()
    }
}

/// Refuses inputs whose vectors differ in length. An input without vectors takes the length of the
/// other input.
fn match_lengths(collected: &mut [Collected]) -> Result<(), EpsilonJoinError> {
    let [left, right] = collected else { return Ok(()) };
    match (left.len(), right.len()) {
        (0, _) => left.dims = right.dims,
        (_, 0) => right.dims = left.dims,
        _ if left.dims != right.dims => {
            return Err(EpsilonJoinError::Lengths { left: left.dims, right: right.dims });
        }
        _ => {}
    }
    Ok(())
}

/// The vectors of all inputs, the left ones first.
fn sides_of(mut built: impl Iterator<Item = Arc<Built>>, are_looked_up: bool) -> Option<Sides> {
    Some(Sides { left: built.next()?, right: built.next(), are_looked_up })
}

/// The sizes of the join.
fn shape_of(collected: &[Collected]) -> Shape {
    let len = |input: usize| collected.get(input).map(Collected::len);
    Shape {
        left: len(0).unwrap_or(0),
        right: len(1),
        dims: collected.first().map_or(1, |c| c.dims),
    }
}
