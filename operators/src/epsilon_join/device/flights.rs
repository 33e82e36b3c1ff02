//! Blocks of a join in flight on a GPU.
//!
//! ```text
//! vectors of a block ──► store ──┐ once, while it stays
//! units of a block, part by part ─► slot ──► kernels ──► pinned memory ──► answer of the block
//!      ▲                                                      │
//!      └────────────── units whose pairs found no room ◄──────┘
//! ```
//!
//! A block takes several flights, whose pairs are collected until the last flight has landed. Two
//! blocks are under way at a time, so that the vectors of the next block are sent meanwhile. A
//! block with too many pairs to be collected is given up.

use std::collections::VecDeque;
use std::sync::Arc;

use trommel_kernels::cuda::vectors::{
    Answer, DeviceVectors, JoinJob, JoinLimits, JoinUnit, Method, Policy, VectorJoin, VectorLimits,
};
use trommel_kernels::cuda::{Device, DeviceError, Flights, NoDevice, Slot};
use trommel_kernels::vectors::{Pair, Side, Sink};

use super::stores::{Stores, stores_of};
use crate::epsilon_join::answer::chunk::{EpsilonChunk, Task};
use crate::epsilon_join::answer::found::LaterRows;
use crate::epsilon_join::data::built::as_row;
use crate::epsilon_join::parameters::options::EpsilonOutput;
use crate::epsilon_join::parameters::tuning::Tuning;
use crate::epsilon_join::plan::cost::{self, Shape};
use crate::epsilon_join::plan::job::{DeviceJob, DevicePlan, Outcome};
use crate::wave::{DeviceSession, Landed, OnDevice, whole};

/// Maximum blocks under way.
pub(crate) const BLOCKS: usize = 2;
/// Parts of blocks in flight.
const SLOTS: usize = 3;
/// Number of pairs for which each block has room at least.
const FOUND_MIN: usize = 1 << 20;
/// Modelled time of a part: a short time, so that the end of the run does not wait for long.
const PART_NS: f64 = 1e8;

/// Opens a device for blocks of a join.
#[derive(Debug, Clone)]
pub(crate) struct OpenFlights {
    pub(crate) epsilon: f64,
    pub(crate) output: EpsilonOutput,
    pub(crate) tuning: Tuning,
}

impl OpenFlights {
    /// Opens the device. Buffers are made with the first block.
    ///
    /// # Errors
    /// If there is no such device.
    pub(crate) fn open(&self, device: &DeviceSession) -> Result<JoinFlights, NoDevice> {
        let (kernel, open) = (device.place(), self.clone());
        Ok(JoinFlights { device: device.open()?, kernel, open, running: None })
    }
}

/// Limits of the slots for blocks of a plan.
fn limits_of(plan: &DevicePlan, output: EpsilonOutput, tuning: &Tuning) -> JoinLimits {
    let &Tuning { device_units: units, device_pairs, .. } = tuning;
    let is_tiled = plan.method == Method::Tiles;
    let has_pairs = matches!(output, EpsilonOutput::Pairs | EpsilonOutput::First);
    let pairs = if has_pairs || is_tiled { device_pairs } else { 1 };
    let partners = if output == EpsilonOutput::Partners { plan.store_len } else { 0 };
    let candidates = if is_tiled { pairs } else { 0 };
    JoinLimits { units, pairs, partners, candidates }
}

/// Bytes of the slots in the memory of a device.
pub(crate) fn slot_bytes(plan: &DevicePlan, output: EpsilonOutput, tuning: &Tuning) -> usize {
    limits_of(plan, output, tuning).bytes().saturating_mul(SLOTS)
}

/// The job of a chunk for a device.
fn job_of(chunk: &EpsilonChunk) -> &DeviceJob {
    let Task::Device(job) = &chunk.task else { unreachable!("it is not for a device") };
    job
}

/// Blocks in flight.
#[derive(Debug)]
pub(crate) struct JoinFlights {
    device: Device,
    /// Number of the kernel to which the device belongs.
    kernel: usize,
    open: OpenFlights,
    /// `None` until the first block.
    running: Option<Running>,
}

/// Blocks in flight, with the buffers of the device.
#[derive(Debug)]
struct Running {
    flights: Flights<VectorJoin>,
    stores: Stores,
    policy: Policy,
    epsilon: f64,
    blocks: VecDeque<Flying>,
    /// Number of the first block in `blocks`.
    first: usize,
    /// Number of the block of each flight, in the order of the flights.
    order: VecDeque<usize>,
}

impl Running {
    fn new(device: &Device, open: &OpenFlights, job: &DeviceJob) -> Result<Self, DeviceError> {
        let (plan, dims) = (job.plan, job.sides.left.dims);
        let DevicePlan { method, store_len, stores, .. } = plan;
        let limits = VectorLimits { len: store_len, dims, method };
        Ok(Self {
            flights: Flights::open(device, SLOTS, limits_of(&plan, open.output, &open.tuning), 0)?,
            stores: Stores::new(device, limits, stores, open.epsilon),
            policy: Policy::of(device.properties(), store_len),
            epsilon: open.epsilon,
            blocks: VecDeque::new(),
            first: 0,
            order: VecDeque::new(),
        })
    }

    /// Takes a block, and sends its vectors.
    fn begin(&mut self, job: &DeviceJob, open: &OpenFlights) -> Result<(), DeviceError> {
        let (vectors, sent) =
            self.stores.hold(self.flights.kernels(), &job.sides, &stores_of(job))?;
        let mut vectors = vectors.into_iter();
        let left = vectors.next().expect("a job has a store");
        let right = vectors.next();
        let units = match job.is_across() {
            true => left.units_across(job.rows[0].len()),
            false => left.units(right.as_deref(), &self.policy),
        };
        let [left_len, right_len] = [0, 1].map(|side| job.rows[side].len());
        let right_len = (!job.is_within()).then_some(right_len);
        let shape = Shape { left: left_len, right: right_len, dims: job.sides.left.dims };
        let part = PART_NS / cost::on_device(job.plan.method, &shape) * units.len() as f64;
        let part = whole(part).clamp(1, open.tuning.device_units);
        let found = BlockPairs::new(job, open);
        let (flights, cost) = (0, Landed { bytes_to_device: sent, ..Landed::default() });
        self.blocks.push_back(Flying { left, right, units, part, flights, found, cost });
        Ok(())
    }

    /// Starts flights while there are slots, in the order of the blocks.
    fn start(&mut self) -> Result<(), DeviceError> {
        let Self { flights, blocks, first, order, .. } = self;
        for (place, block) in blocks.iter_mut().enumerate() {
            while !block.units.is_empty() && flights.has_room() {
                // The remaining units wait for the next slot.
                let rest = block.units.split_off(block.units.len().min(block.part));
                let job = JoinJob {
                    units: &block.units,
                    left: &block.left,
                    right: block.right.as_ref(),
                    epsilon: self.epsilon,
                    policy: self.policy,
                    answer: block.found.asked,
                };
                flights.submit(&job, 0)?;
                block.units = rest;
                block.flights += 1;
                order.push_back(*first + place);
            }
        }
        Ok(())
    }

    /// Takes the answers of flights that have landed.
    fn land(&mut self) -> Result<(), DeviceError> {
        let Self { flights, blocks, first, order, .. } = self;
        while flights.is_done()? {
            let number = order.pop_front().expect("a flight has a block");
            let block = &mut blocks[number - *first];
            let Flying { units, found, .. } = block;
            let landed = flights.collect(|slot| {
                found.read(slot);
                units.extend_from_slice(slot.unfinished());
            })?;
            block.land(landed);
        }
        Ok(())
    }
}

/// A block under way.
#[derive(Debug)]
struct Flying {
    left: Arc<DeviceVectors>,
    right: Option<Arc<DeviceVectors>>,
    /// Units that are not in flight and not finished.
    units: Vec<JoinUnit>,
    /// Units of a flight.
    part: usize,
    /// Number of flights.
    flights: usize,
    found: BlockPairs,
    cost: Landed,
}

impl Flying {
    fn has_landed(&self) -> bool {
        self.units.is_empty() && self.flights == 0
    }

    /// Adds the cost of a flight that has landed; a block that is given up needs no more flights.
    fn land(&mut self, landed: Landed) {
        self.flights -= 1;
        if matches!(self.found.outcome, Outcome::Full) {
            self.units.clear();
        }
        let Landed { times, bytes_to_device, bytes_from_device } = &mut self.cost;
        times.copy_in += landed.times.copy_in;
        times.kernel += landed.times.kernel;
        times.copy_out += landed.times.copy_out;
        *bytes_to_device += landed.bytes_to_device;
        *bytes_from_device += landed.bytes_from_device;
    }
}

/// The pairs of a block so far.
#[derive(Debug)]
struct BlockPairs {
    /// The answer that the device is asked for.
    asked: Answer,
    /// First rows of both sides.
    first: [usize; 2],
    /// Number of left rows in the store, if both sides are in one store.
    split: Option<usize>,
    room: usize,
    outcome: Outcome,
}

impl BlockPairs {
    fn new(job: &DeviceJob, open: &OpenFlights) -> Self {
        let [left, right] = [0, 1].map(|side| job.rows[side].len());
        let split = job.is_across().then_some(left);
        let (asked, outcome) = match open.output {
            EpsilonOutput::Pairs => (Answer::Pairs, Outcome::Pairs(Vec::new())),
            EpsilonOutput::First => (Answer::Pairs, Outcome::Later(LaterRows::default())),
            EpsilonOutput::Count => (Answer::Count, Outcome::Count(0)),
            EpsilonOutput::Partners => {
                let right = if job.is_within() { 0 } else { right };
                (Answer::Partners, Outcome::Partners([vec![0; left], vec![0; right]]))
            }
        };
        // The store also yields pairs within one side, so the host needs all pairs to tell these
        // pairs from pairs across the sides.
        let asked = if split.is_some() { Answer::Pairs } else { asked };
        let first = [0, 1].map(|side| job.rows[side].start);
        // The room is a quarter of the bytes of the vectors if there are many vectors; with the
        // spare capacity of the growing list, the pairs take up to half of these bytes.
        let numbers = (job.sides.left.len() + job.sides.right().len()) * job.sides.left.dims;
        let room = open.tuning.device_found.min((numbers / 16).max(FOUND_MIN));
        Self { asked, first, split, room, outcome }
    }

    /// Takes the answer of a flight.
    fn read(&mut self, slot: &Slot<VectorJoin>) {
        match (self.asked, &mut self.outcome) {
            // Pairs are kept as they are, with rows numbered over the whole input.
            (_, Outcome::Pairs(pairs)) if self.split.is_none() => {
                let more = slot.pairs();
                if pairs.len() + more.len() > self.room {
                    self.outcome = Outcome::Full;
                    return;
                }
                let [left, right] = self.first.map(as_row);
                pairs.extend(more.iter().map(|pair| Pair {
                    left: left + pair.left,
                    right: right + pair.right,
                    square: pair.square,
                }));
            }
            (Answer::Count, Outcome::Count(count)) => *count += slot.count(),
            (Answer::Partners, Outcome::Partners(counts)) => {
                for (counts, more) in counts.iter_mut().zip(slot.partners()) {
                    counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
                }
            }
            _ => {
                for pair in slot.pairs() {
                    let [left, right] = [pair.left as usize, pair.right as usize];
                    match self.split {
                        // One store with rows that join themselves, or a store for each side: each
                        // pair counts.
                        None => self.take([left, right], pair.square),
                        Some(split) if left < split && split <= right => {
                            self.take([left, right - split], pair.square);
                        }
                        // Two rows of one side: another block has that pair.
                        Some(_) => {}
                    }
                }
            }
        }
    }

    /// Takes a pair of rows of the block.
    fn take(&mut self, [left, right]: [usize; 2], square: f64) {
        let [first_left, first_right] = self.first;
        let (left_row, right_row) = (as_row(first_left + left), as_row(first_right + right));
        let pair = Pair { left: left_row, right: right_row, square };
        match &mut self.outcome {
            Outcome::Pairs(pairs) if pairs.len() < self.room => pairs.push(pair),
            Outcome::Pairs(_) => self.outcome = Outcome::Full,
            Outcome::Count(count) => *count += 1,
            Outcome::Later(rows) => rows.take(pair),
            Outcome::Partners(counts) => {
                counts[0][left] += 1;
                counts[1][right] += 1;
            }
            Outcome::Full | Outcome::Undone => {}
        }
    }
}

impl OnDevice for JoinFlights {
    type Chunk = EpsilonChunk;

    fn has_room(&self, chunk: &EpsilonChunk) -> bool {
        self.running.as_ref().is_none_or(|running| {
            let has_place = running.blocks.len() < BLOCKS;
            has_place && running.stores.have_room(&stores_of(job_of(chunk)))
        })
    }

    fn submit(&mut self, chunk: &EpsilonChunk) -> Result<(), DeviceError> {
        let job = job_of(chunk);
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(Running::new(&self.device, &self.open, job)?),
        };
        running.begin(job, &self.open)?;
        running.start()
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        let Some(running) = &mut self.running else { return Ok(false) };
        running.land()?;
        running.start()?;
        Ok(running.blocks.front().is_some_and(Flying::has_landed))
    }

    fn collect(&mut self, chunk: &mut EpsilonChunk) -> Result<Landed, DeviceError> {
        let running = self.running.as_mut().expect("a block has landed");
        let Flying { found, cost, .. } = running.blocks.pop_front().expect("a block has landed");
        running.first += 1;
        let Task::Device(job) = &mut chunk.task else { unreachable!("it was submitted") };
        if let (Outcome::Partners([left, right]), Some(partners)) = (&found.outcome, &job.partners)
        {
            let [first_left, first_right] = found.first;
            partners.add(self.kernel, |counts| {
                counts.add(Side::Left, first_left, left);
                counts.add(Side::Right, first_right, right);
            });
        }
        job.outcome = found.outcome;
        Ok(cost)
    }
}
