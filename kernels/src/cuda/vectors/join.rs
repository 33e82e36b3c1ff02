//! The buffers of a part of a join, and its steps over a device.

#![expect(unsafe_code, reason = "a contract with kernels, which nothing checks")]

use std::sync::Arc;

use super::launch::{FUNCTIONS, Method, Policy, tile_len};
use super::pair::{JoinUnit, NearPair};
use super::question::{Answer, Question};
use super::stored::DeviceVectors;
use super::tiled::{BLOCKS_LEFT, TiledArgument, groups, is_strip, shared_bytes};
use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Images, Memory, images};
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive, Slot};
use crate::cuda::mirrored::MirroredBuffer;
use crate::cuda::output::{BoundedOutput, OutputArgument, OutputLimits, Written};

/// Positions in buffers have 32 bits.
const COUNT_MAX: usize = 1 << 31;

/// The largest part of a join that a slot takes, and the room for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinLimits {
    /// Units of the part.
    pub units: usize,
    /// Room for pairs, at least 1.
    pub pairs: usize,
    /// Vectors of each side whose partners are counted; 0 if no job asks for partners.
    pub partners: usize,
    /// Room for candidates of tiles, at most `pairs`; 0 for other methods.
    pub candidates: usize,
}

impl JoinLimits {
    /// The bytes of a slot in the device's memory. Pinned memory has no candidates, and takes
    /// fewer bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.units().max(1) * size_of::<JoinUnit>()
            + 2 * self.partners.max(1) * size_of::<u32>()
            + self.output().bytes::<NearPair, JoinUnit>()
            + (self.candidates.max(1) + COUNTERS) * size_of::<u64>()
    }

    /// Units of a part, including units that earlier units have left unfinished.
    fn units(&self) -> usize {
        self.units + if self.candidates > 0 { BLOCKS_LEFT } else { 0 }
    }

    fn output(&self) -> OutputLimits {
        OutputLimits { matches: self.pairs, units: self.units(), counters: 0 }
    }
}

/// Number of counters of candidates, as in `output.cuh`.
const COUNTERS: usize = 3;

/// A part of a join, and the question about it.
#[derive(Clone, Debug)]
pub struct JoinJob<'a> {
    /// Units of the join, without repetition: units of [`DeviceVectors::units`], or unfinished
    /// units.
    pub units: &'a [JoinUnit],
    /// The left vectors.
    pub left: &'a Arc<DeviceVectors>,
    /// The right vectors; without right vectors the left vectors are joined with themselves, each
    /// pair once.
    pub right: Option<&'a Arc<DeviceVectors>>,
    /// The largest distance of a pair.
    pub epsilon: f64,
    /// The policy from which the units were made.
    pub policy: Policy,
    /// The answer that is wanted.
    pub answer: Answer,
}

/// The pairs of near vectors: the buffers of a part of a join.
#[derive(Debug)]
pub struct VectorJoin {
    units: MirroredBuffer<JoinUnit>,
    partners: [MirroredBuffer<u32>; 2],
    output: BoundedOutput<NearPair, JoinUnit>,
    /// Strips at the front of the units, under tiles.
    strips: u32,
    /// The left and the right vector of each candidate.
    candidates: DeviceBuffer<u64>,
    candidate_counters: MirroredBuffer<u64>,
}

/// The vectors of a part in flight, and the question about it.
#[derive(Debug)]
pub struct JoinKept {
    left: Arc<DeviceVectors>,
    right: Arc<DeviceVectors>,
    question: Question,
    policy: Policy,
    answer: Answer,
}

/// The answer in the buffers.
#[derive(Debug, Default)]
pub struct JoinAnswered {
    written: Written,
    count: u64,
    /// Vectors of each side that have a number of partners.
    partners: [usize; 2],
}

/// The output as an argument of kernels: `NearOutput` of `vectors.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct OutputPart {
    pairs: OutputArgument<NearPair, JoinUnit>,
    partners: [DevicePointer<u32>; 2],
    bases: [u32; 2],
}

/// The units as an argument of kernels: `JoinUnits` of `vectors.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct UnitsArgument {
    units: DevicePointer<JoinUnit>,
    count: u32,
}

// SAFETY: the arguments are of the kernels' types. Units have been checked against the vectors on
// the device, whose order and boxes our kernels have made. Kernels write pairs within the room that
// they are told of, partners of existing vectors, for which there is room, and leave a unit
// unfinished at most once, for which there is room. A block has the threads and the shared memory
// of its kernel.
unsafe impl Primitive for VectorJoin {
    const IMAGES: &'static Images = images!("vectors");
    const KERNELS: &'static [&'static str] = FUNCTIONS;

    type Limits = JoinLimits;
    type Job<'a> = JoinJob<'a>;
    type Kept = JoinKept;
    type Answered = JoinAnswered;

    fn bytes(limits: JoinLimits) -> usize {
        limits.bytes()
    }

    fn allocate(memory: &Arc<Memory>, limits: JoinLimits) -> Result<Self, DeviceError> {
        let JoinLimits { pairs, partners, candidates, .. } = limits;
        let all = [limits.units, pairs, partners];
        assert!(all.iter().all(|len| *len <= COUNT_MAX), "{limits:?} exceed {COUNT_MAX}");
        assert!(candidates <= pairs, "there must be room for a pair of each candidate: {limits:?}");
        let of_side = || MirroredBuffer::new(memory, partners.max(1));
        Ok(Self {
            units: MirroredBuffer::new(memory, limits.units().max(1))?,
            strips: 0,
            candidates: memory.device_buffer(candidates.max(1))?,
            candidate_counters: MirroredBuffer::new(memory, COUNTERS)?,
            partners: [of_side()?, of_side()?],
            output: BoundedOutput::new(memory, limits.output())?,
        })
    }

    /// Checks that the units are within the limits, and of these vectors.
    fn check(limits: JoinLimits, job: &JoinJob<'_>) -> JoinKept {
        let &JoinJob { units, left, right, epsilon, policy, answer } = job;
        let (is_self, right) = (right.is_none(), right.unwrap_or(left));
        let sides = [left, right].map(|side| (side.limits().dims, side.limits().method));
        assert!(sides[0] == sides[1], "the sides differ: {sides:?}");
        let (count, most) = (units.len(), limits.units());
        assert!(count <= most, "a part of {count} units exceeds {most}");
        let wrong = units.iter().find(|unit| !left.has_unit(unit, &policy));
        assert!(wrong.is_none(), "{wrong:?} is no unit of {} vectors", left.len());
        if left.limits().method == Method::Tiles {
            assert!(is_self, "tiles join vectors with themselves");
            let of_load = left.epsilon();
            assert!(epsilon <= of_load, "rows were made for epsilon {of_load}, not {epsilon}");
            assert!(limits.candidates > 0, "there is no room for candidates in {limits:?}");
        }
        let len = left.len().max(right.len());
        let fits = answer != Answer::Partners || len <= limits.partners;
        assert!(fits, "partners of {len} vectors exceed {limits:?}");
        let question = Question::new(epsilon, left.limits().dims, is_self, answer);
        JoinKept { left: Arc::clone(left), right: Arc::clone(right), question, policy, answer }
    }

    fn fill(&mut self, job: &JoinJob<'_>) {
        self.units.fill(job.units);
        if job.left.limits().method == Method::Tiles {
            self.fill_strips(job.units);
        }
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        step.send(&self.units)
    }

    fn launch(&self, kept: &JoinKept, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        let JoinKept { left, right, question, policy, answer } = kept;
        step.wait(left.built())?;
        step.wait(right.built())?;
        self.output.clear(step)?;
        if *answer == Answer::Partners {
            step.clear(&self.partners[0])?;
            step.clear(&self.partners[1])?;
        }
        let count = u32::try_from(self.units.filled()).expect("within the slot's limits");
        let units = UnitsArgument { units: self.units.pointer(), count };
        let output = OutputPart {
            pairs: self.output.argument(),
            // A vector of a self-join has all its partners in one place.
            partners: [0, usize::from(!question.is_self())]
                .map(|side| self.partners[side].pointer()),
            bases: [left.base(), right.base()],
        };
        let dims = left.limits().dims;
        if let (Some(left), Some(right)) = (left.boxed(), right.boxed()) {
            let launch = policy.launch_boxes(step.device(), dims, count);
            return step.launch(launch, (left, right, *question, units, output));
        }
        if let Some(bytes) = left.tiled() {
            return self.launch_tiles(step, bytes, question, output, dims);
        }
        let tile = u32::try_from(tile_len(dims)).expect("at most 64");
        let with_pages = left.limits().method == Method::Directory;
        let launch = policy.launch_loops(step.device(), with_pages, dims, count);
        let sides = (left.argument(), right.argument());
        match (left.directory(), right.directory()) {
            (Some(bounds), Some(pages)) => {
                let directory = pages.with_bounds_of(bounds);
                let arguments = (sides.0, sides.1, directory, *question, units, output, tile);
                step.launch(launch, arguments)
            }
            _ => step.launch(launch, (sides.0, sides.1, *question, units, output, tile)),
        }
    }

    fn copy_out(&self, kept: &JoinKept, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        if kept.answer == Answer::Partners {
            step.fetch(&self.partners[0], kept.left.len())?;
            if !kept.question.is_self() {
                step.fetch(&self.partners[1], kept.right.len())?;
            }
        }
        self.output.fetch_counters(step)
    }

    fn land(
        &self,
        kept: &JoinKept,
        landing: &mut Landing<'_>,
    ) -> Result<JoinAnswered, DeviceError> {
        Ok(match kept.answer {
            Answer::Pairs => {
                let written = self.output.land_matches(landing)?;
                let count = self.output.matches(written).len() as u64;
                JoinAnswered { written, count, partners: [0; 2] }
            }
            Answer::Count => {
                let written = self.output.land_units(landing)?;
                JoinAnswered { written, count: self.output.count(), partners: [0; 2] }
            }
            Answer::Partners => {
                let other = if kept.question.is_self() { 0 } else { kept.right.len() };
                let partners = [kept.left.len(), other];
                let written = self.output.land_units(landing)?;
                JoinAnswered { written, count: self.output.count(), partners }
            }
        })
    }
}

/// Candidates, or any matches without units of their own, as an argument of kernels: `Output` of
/// `output.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct CandidatesArgument {
    list: DevicePointer<u64>,
    unfinished: DevicePointer<JoinUnit>,
    counters: DevicePointer<u64>,
    room: u64,
}

/// The question of tiles as an argument of kernels: `TileQuestion` of `vector_tiles.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct TileQuestion {
    bytes: TiledArgument,
    candidates: CandidatesArgument,
    output: OutputPart,
}

impl VectorJoin {
    /// Fills in strips first, and then blocks of pairs.
    fn fill_strips(&mut self, units: &[JoinUnit]) {
        let strips = units.iter().filter(|unit| is_strip(unit));
        let blocks = units.iter().filter(|unit| !is_strip(unit));
        self.strips = u32::try_from(strips.clone().count()).expect("within the slot's limits");
        self.units.fill_from(units.len(), |places| {
            places.iter_mut().zip(strips.chain(blocks)).for_each(|(place, unit)| *place = *unit);
        });
    }

    /// Queues the kernels of tiles: candidates, their decision, and blocks of pairs.
    fn launch_tiles(
        &self,
        step: &LaunchStep<'_>,
        bytes: TiledArgument,
        question: &Question,
        output: OutputPart,
        dims: usize,
    ) -> Result<(), DeviceError> {
        let candidates = CandidatesArgument {
            list: self.candidates.pointer(),
            unfinished: DevicePointer::NULL,
            counters: self.candidate_counters.pointer(),
            room: self.candidates.len() as u64,
        };
        let tiles = TileQuestion { bytes, candidates, output };
        let (device, strips) = (step.device(), self.strips);
        let count = u32::try_from(self.units.filled()).expect("within the slot's limits");
        // Strips write candidates, which a second kernel decides; blocks of pairs, which follow the
        // strips in the units, are decided at once.
        if strips > 0 {
            step.clear(&self.candidate_counters)?;
            let units = UnitsArgument { units: self.units.pointer(), count: strips };
            let launch = Policy::launch_tiles(device, groups(dims), strips, shared_bytes(dims));
            step.launch(launch, (tiles, units))?;
            step.launch(Policy::launch_decide(device), (tiles, *question))?;
        }
        if count > strips {
            let units = self.units.pointer().at(u64::from(strips));
            let units = UnitsArgument { units, count: count - strips };
            let launch = Policy::launch_blocks(device, count - strips);
            step.launch(launch, (tiles, *question, units))?;
        }
        Ok(())
    }
}

impl Slot<VectorJoin> {
    /// The pairs of the last part, in no order; none if the job asked for another answer.
    #[must_use]
    pub fn pairs(&self) -> &[NearPair] {
        let (buffers, answer) = self.answered();
        buffers.output.matches(answer.written)
    }

    /// The unfinished units of the last part, which continue after the pairs that found room.
    #[must_use]
    pub fn unfinished(&self) -> &[JoinUnit] {
        let (buffers, answer) = self.answered();
        buffers.output.unfinished(answer.written)
    }

    /// The number of pairs of the last part that found room.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.answered().1.count
    }

    /// The number of partners of each left vector, and of each right vector unless the sides are
    /// the same.
    #[must_use]
    pub fn partners(&self) -> [&[u32]; 2] {
        let (buffers, answer) = self.answered();
        [0, 1].map(|side| &buffers.partners[side].host()[..answer.partners[side]])
    }
}
