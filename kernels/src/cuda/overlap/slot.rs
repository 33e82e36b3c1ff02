//! One chunk's buffers, and its flight over the device.

#![expect(unsafe_code, reason = "work that a device does while the host goes on")]

use std::ffi::c_void;
use std::sync::Arc;

use super::{Answer, DeviceSets, Policy, Verifier};
use crate::cuda::both::Both;
use crate::cuda::error::{DeviceError, Launch};
use crate::cuda::flight::{self, SlotBuffers};
use crate::cuda::lane::{Lane, Timeline, Times};
use crate::cuda::memory::{DeviceBuffer, Memory, Plain};
use crate::cuda::stream::Stream;
use crate::overlap::{Chunk, Entry, Pairs, Start};
use crate::sets::SetStore;

// SAFETY: three `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Entry {}
// SAFETY: three `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Start {}

/// Grids stride by up to 2^31 threads, and positions must not overflow with them.
const COUNT_MAX: usize = 1 << 31;

/// What a slot counts.
const COUNTS: usize = 2;

/// The largest chunk that a slot takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Entries of the chunk.
    pub entries: usize,
    /// Pairs of the chunk.
    pub pairs: usize,
    /// Whether chunks bring the positions at which their pairs start.
    pub starts: bool,
}

impl ChunkLimits {
    /// What a slot takes of the device's memory, and as much of pinned memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let pair = 3 * size_of::<u32>() + if self.starts { size_of::<Start>() } else { 0 };
        let nothing = usize::from(!self.starts);
        let counts = COUNTS * size_of::<u64>();
        self.entries.max(1) * size_of::<Entry>() + self.pairs * pair + counts + nothing
    }
}

/// The buffers and events of one chunk at a time.
#[derive(Debug)]
pub struct Slot {
    limits: ChunkLimits,
    entries: Both<Entry>,
    candidates: Both<u32>,
    required: Both<u32>,
    starts: Both<Start>,
    overlaps: Both<u32>,
    /// Pairs that suffice, and pairs that signatures let pass.
    counts: Both<u64>,
    timeline: Timeline,
    answered: Answered,
}

/// What the buffers hold.
#[derive(Debug, Default)]
struct Answered {
    overlaps: usize,
    count: Option<u64>,
    survivors: Option<u64>,
    times: Times,
}

/// What a flight is to do.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The pairs.
    pub chunk: Chunk<'a>,
    /// The sets that entries name, and those that candidates name.
    pub sets: [&'a SetStore; 2],
    /// The same ones on the device.
    pub on_device: [&'a Arc<DeviceSets>; 2],
    /// The kernel and its grid; [`Policy::of`] the kernel, unless it is being tuned.
    pub policy: Policy,
    /// What is asked.
    pub answer: Answer,
}

/// The sets and the chunk as kernels take them; `Pairs` of `overlap.cu`.
#[derive(Debug)]
#[repr(C)]
struct PairsArgument {
    probe_offsets: u64,
    probe_tokens: u64,
    candidate_offsets: u64,
    candidate_tokens: u64,
    entries: u64,
    candidates: u64,
    required: u64,
    /// Zero where there are none.
    starts: u64,
    probe_signatures: u64,
    candidate_signatures: u64,
    survivors: u64,
    entry_count: u32,
    pair_count: u32,
    words: u32,
}

impl Slot {
    /// Buffers for chunks up to `limits`.
    ///
    /// # Errors
    ///
    /// If they do not fit the budgets, or the driver fails.
    ///
    /// # Panics
    ///
    /// If the limits are beyond 2^31.
    pub fn new(memory: &Arc<Memory>, limits: ChunkLimits) -> Result<Self, DeviceError> {
        let ChunkLimits { entries, pairs, starts } = limits;
        assert!(entries <= COUNT_MAX && pairs <= COUNT_MAX, "{limits:?} are beyond {COUNT_MAX}");
        Ok(Self {
            limits,
            entries: Both::new(memory, entries.max(1))?,
            candidates: Both::new(memory, pairs)?,
            required: Both::new(memory, pairs)?,
            starts: Both::new(memory, if starts { pairs } else { 0 })?,
            overlaps: Both::new(memory, pairs)?,
            counts: Both::new(memory, COUNTS)?,
            timeline: Timeline::new(memory.device())?,
            answered: Answered::default(),
        })
    }

    /// The overlaps of the last chunk, if it asked for them.
    #[must_use]
    pub fn overlaps(&self) -> &[u32] {
        &self.overlaps.host[..self.answered.overlaps]
    }

    /// The count of the last chunk, if it asked for it.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        self.answered.count
    }

    /// How many pairs of the last chunk signatures let pass, if its kernel read them.
    #[must_use]
    pub fn survivors(&self) -> Option<u64> {
        self.answered.survivors
    }

    /// What the last chunk took.
    #[must_use]
    pub fn times(&self) -> Times {
        self.answered.times
    }

    /// Queues a chunk: copies in, the kernel, copies out. Returns at once.
    ///
    /// # Cost
    ///
    /// On the host one copy of the chunk and a look at each of its numbers; over the bus 12 B an
    /// entry, 8 B a pair and 12 B more with starts, and 4 B a pair back or 8 B for a count.
    ///
    /// # Errors
    ///
    /// If the driver refuses any of it; the slot is then freed, when the device has let go of it.
    ///
    /// # Panics
    ///
    /// If the chunk exceeds the slot's limits, breaks its own contract ([`Pairs`]), or the sets on
    /// the device are not those of the host or lack the signatures that the kernel reads.
    pub fn submit(
        mut self,
        lane: &Arc<Lane>,
        verifier: &Arc<Verifier>,
        job: &Job<'_>,
    ) -> Result<Flight, DeviceError> {
        let chunk = job.chunk;
        let [probes, candidates] = job.sets.map(SetStore::as_sets);
        Pairs { probes, candidates, chunk }.check();
        let fits = chunk.entries.len() <= self.limits.entries
            && chunk.candidates.len() <= self.limits.pairs
            && (chunk.starts.is_empty() || self.limits.starts);
        assert!(fits, "a chunk of {} pairs exceeds {:?}", chunk.candidates.len(), self.limits);
        let mut pairs = job.on_device.iter().zip(job.sets);
        assert!(pairs.all(|(there, sets)| there.are_of(sets)), "the device has other sets");
        let [left, right] = job.on_device.map(|sets| sets.words);
        let is_signed = left > 0 && left == right;
        let reads_signatures = job.policy.kernel().is_signed();
        assert!(is_signed || !reads_signatures, "signatures of {left} and {right} words");
        self.answered = Answered::default();
        let kept = Kept {
            verifier: Arc::clone(verifier),
            sets: job.on_device.map(Arc::clone),
            pairs: chunk.candidates.len(),
            answer: job.answer,
            is_signed: reads_signatures,
        };
        Flight::begin(self, lane, kept, |slot, kept, lane| slot.queue(kept, lane, job))
    }

    /// Queues the three steps, for a flight: it keeps all buffers and the sets until the device has
    /// let go of them.
    fn queue(&mut self, kept: &Kept, lane: &Lane, job: &Job<'_>) -> Result<(), DeviceError> {
        let chunk = job.chunk;
        let Self { entries, candidates, required, starts, .. } = self;
        // Before the first copy is queued, so that the device does not wait for the host between
        // two of them.
        entries.fill(chunk.entries);
        candidates.fill(chunk.candidates);
        required.fill(chunk.required);
        starts.fill(chunk.starts);
        self.timeline.copy_in(lane, |stream| {
            // SAFETY: the flight keeps it, as said above.
            unsafe { entries.send(stream, chunk.entries.len()) }?;
            // SAFETY: as said above.
            unsafe { candidates.send(stream, chunk.candidates.len()) }?;
            // SAFETY: as said above.
            unsafe { required.send(stream, chunk.required.len()) }?;
            if chunk.starts.is_empty() {
                return Ok(());
            }
            // SAFETY: as said above.
            unsafe { starts.send(stream, chunk.starts.len()) }
        })?;
        let Self { overlaps, counts, timeline, .. } = self;
        let buffers = (&entries.device, [&candidates.device, &required.device], &starts.device);
        let argument = argument(&kept.sets, buffers, &counts.device, job);
        let has_counts = kept.is_signed || kept.answer == Answer::Count;
        timeline.kernel(lane, |stream| {
            if has_counts {
                // SAFETY: as said above.
                unsafe { stream.clear(&mut counts.device) }?;
            }
            let answers = match job.answer {
                Answer::Overlaps => overlaps.device.pointer(),
                Answer::Count => counts.device.pointer(),
            };
            launch(&kept.verifier, stream, job, argument, answers)
        })?;
        timeline.copy_out(lane, |stream| {
            if has_counts {
                // SAFETY: as said above.
                unsafe { counts.fetch(stream, COUNTS) }?;
            }
            match job.answer {
                // SAFETY: as said above.
                Answer::Overlaps => unsafe { overlaps.fetch(stream, kept.pairs) },
                Answer::Count => Ok(()),
            }
        })
    }
}

/// What the device needs besides the buffers of a chunk, and what was asked.
#[derive(Debug)]
pub struct Kept {
    verifier: Arc<Verifier>,
    sets: [Arc<DeviceSets>; 2],
    pairs: usize,
    answer: Answer,
    is_signed: bool,
}

impl SlotBuffers for Slot {
    type Kept = Kept;

    fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    fn land(&mut self, kept: &Kept, _: &Lane, times: Times) -> Result<(), DeviceError> {
        let (count, survivors) = (self.counts.host[0], self.counts.host[1]);
        let survivors = kept.is_signed.then_some(survivors);
        self.answered = match kept.answer {
            Answer::Overlaps => Answered { overlaps: kept.pairs, count: None, survivors, times },
            Answer::Count => Answered { overlaps: 0, count: Some(count), survivors, times },
        };
        Ok(())
    }
}

/// A chunk on its way.
pub type Flight = flight::Flight<Slot>;

/// A chunk on the device: entries, candidates and required overlaps, starts.
type ChunkBuffers<'a> =
    (&'a DeviceBuffer<Entry>, [&'a DeviceBuffer<u32>; 2], &'a DeviceBuffer<Start>);

fn argument(
    [probes, candidate_sets]: &[Arc<DeviceSets>; 2],
    (entries, [candidates, required], starts): ChunkBuffers<'_>,
    counts: &DeviceBuffer<u64>,
    job: &Job<'_>,
) -> PairsArgument {
    let chunk = job.chunk;
    let signatures =
        |sets: &DeviceSets| sets.signatures.as_ref().map_or(0, |buffer| buffer.pointer());
    let count = |len| u32::try_from(len).expect("within the slot's limits");
    PairsArgument {
        probe_offsets: probes.offsets.pointer(),
        probe_tokens: probes.tokens.pointer(),
        candidate_offsets: candidate_sets.offsets.pointer(),
        candidate_tokens: candidate_sets.tokens.pointer(),
        entries: entries.pointer(),
        candidates: candidates.pointer(),
        required: required.pointer(),
        starts: if chunk.starts.is_empty() { 0 } else { starts.pointer() },
        probe_signatures: signatures(probes),
        candidate_signatures: signatures(candidate_sets),
        survivors: counts.pointer() + size_of::<u64>() as u64,
        entry_count: count(chunk.entries.len()),
        pair_count: count(chunk.candidates.len()),
        words: count(probes.words),
    }
}

/// Queues the kernel; `answers` is where it writes.
fn launch(
    verifier: &Verifier,
    stream: &Stream,
    job: &Job<'_>,
    mut pairs: PairsArgument,
    mut answers: u64,
) -> Result<(), DeviceError> {
    let function = verifier.function(job.policy.kernel(), job.answer);
    let [left, right] = job.on_device.map(|sets| sets.longest);
    let mut tokens = job.policy.tokens(left.max(right));
    let work = [pairs.entry_count, pairs.pair_count];
    let device = verifier.device().properties();
    let launch: Launch = job.policy.launch(function.name(), device, work, tokens);
    // Kernels without shared memory have no third parameter; the driver reads as many as there are.
    let mut arguments: [*mut c_void; 3] =
        [(&raw mut pairs).cast(), (&raw mut answers).cast(), (&raw mut tokens).cast()];
    // SAFETY: the arguments are of the kernel's types; the chunk has been checked, so that all it
    // names lies within the sets, and the sets on the device are those of the host; the flight
    // keeps all of them; the policy is of this kernel, and no policy can be made but of full warps
    // and with the shared memory that its kernel is told of.
    unsafe { function.launch(stream, launch, &mut arguments) }
}
