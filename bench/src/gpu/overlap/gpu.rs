//! Measurements of the kernels of a GPU: the kernel alone, the copies, and the whole way in
//! chunks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trommel_kernels::cuda::overlap::{Answer, ChunkLimits, Job, PairOverlap, Policy, Variant};
use trommel_kernels::cuda::{
    CopyTimes, Device, DeviceError, DeviceSets, Flight, Kernels, Lane, Memory, Slot, Times,
};
use trommel_kernels::overlap::Chunk;
use trommel_kernels::sets::SetStore;
use trommel_kernels::signatures::words_for_mean_size;

use super::Arguments;
use super::workload::{Part, Workload, parts};
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns, median};
use crate::runner::{Runs, isa};

/// Bytes of each copy that gives a ceiling: several times any cache.
const COPY_BYTES: usize = 1 << 30;
const COPY_ROUNDS: usize = 5;

/// Chunks in flight at once.
const SLOTS: usize = 3;

/// Device with its kernels and ceilings.
pub(crate) struct Gpu {
    device: Device,
    kernels: Arc<Kernels<PairOverlap>>,
    lane: Arc<Lane>,
    /// Bytes per second read and written by a copy within the device.
    memory_rate: f64,
}

/// Kernel, and the answer asked of it.
type Candidate = (Policy, Answer);

/// Speed of a kernel alone when it finds overlaps.
pub(crate) struct Alone {
    pub(crate) kernel: Variant,
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Millions of pairs per second.
    pub(crate) rate: f64,
}

impl Gpu {
    /// Loads the kernels, measures copies and prints their bandwidth.
    pub(crate) fn new(device: &Device) -> Result<Self, DeviceError> {
        let properties = device.properties();
        let kernels = Kernels::<PairOverlap>::load(device)?;
        let lane = Arc::new(Lane::new(device)?);
        println!(
            "{}, kernels from {}, driver for CUDA {}",
            properties.name,
            kernels.image(),
            f64::from(properties.driver_version) / 1000.0
        );
        let bytes = COPY_BYTES.min(properties.memory_bytes / 8);
        let copies = CopyTimes::measure(device, bytes, COPY_ROUNDS)?;
        let memory_rate = 2.0 * rate(copies.bytes, copies.device_to_device);
        let peak = properties.peak_bytes_per_second();
        println!("copies of {} MiB:", copies.bytes >> 20);
        println!("  host to device    {:>8.1} GB/s", rate(bytes, copies.host_to_device) / 1e9);
        println!("  device to host    {:>8.1} GB/s", rate(bytes, copies.device_to_host) / 1e9);
        println!(
            "  within the device {:>8.1} GB/s read and written; {:.0} GB/s by clock and bus\n",
            memory_rate / 1e9,
            to_f64(peak) / 1e9
        );
        Ok(Self { device: device.clone(), kernels, lane, memory_rate })
    }

    /// Measures all kernels on a workload, prints the table, and returns the speed of each kernel
    /// alone.
    pub(crate) fn table(
        &self,
        workload: &Workload,
        arguments: &Arguments,
        runs: Runs,
    ) -> Result<Vec<Alone>, DeviceError> {
        let mut table = Table::new(
            "GPU                                       | M pairs/s kernel: |   GB/s: | of copy: | \
             kernel us: |  in us: | out us: | M pairs/s whole:",
        );
        let memory = Memory::new(&self.device, self.budget(), self.budget());
        let host = workload.sets();
        let all = host.as_sets();
        let words = words_for_mean_size(all.tokens().len() / all.len().max(1));
        let sets = DeviceSets::upload_signed(&memory, host, isa(), words)?;
        let limits = |pairs, entries| ChunkLimits { entries, pairs, starts: false };
        let whole = limits(workload.len(), workload.chunk().entries.len());
        let part = workload.len().div_ceil(arguments.chunks.max(1)).max(1);
        let part = limits(part, part.min(whole.entries));
        let mut held = Some(Slot::new(&memory, whole)?);
        let mut slots = Vec::new();
        for _ in 0..SLOTS {
            slots.push(Slot::new(&memory, part)?);
        }
        let parts = parts(workload, part.pairs);
        let mut all = Vec::new();
        for (policy, answer) in candidates(&arguments.threads) {
            let (kernel, threads) = (policy.variant(), policy.grid().threads());
            let mut turns = Turns::<(), (Times, Duration)>::new(runs);
            turns.add(format!("{kernel}, {}, {threads} threads", shown(answer)), || {
                let slot = held.take().expect("the round before has given it back");
                let slot = self.alone(workload, &sets, slot, (policy, answer));
                let slot = held.insert(slot.expect("the device works"));
                let times = slot.times();
                let whole = self.in_chunks(workload, &sets, &mut slots, ((policy, answer), &parts));
                let rest = (times, whole.expect("the device works"));
                Run { time: times.kernel, answer: (), rest }
            });
            let engine = turns.run().remove(0);
            let (times, _) = *engine.rest();
            let wholes = median(engine.all().map(|(_, whole)| *whole).collect());
            table.row(self.row(workload, &engine.name, times, wholes));
            if answer == Answer::Overlaps {
                all.push(Alone { kernel, threads, rate: workload.rate(times.kernel) });
            }
        }
        Ok(all)
    }

    /// Half of the free device memory.
    fn budget(&self) -> usize {
        self.device.memory_bytes().map_or(0, |(free, _)| free / 2)
    }

    fn row(&self, workload: &Workload, name: &str, times: Times, whole: Duration) -> String {
        let gigabytes = workload.gigabytes(times.kernel);
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        format!(
            "{name} | {:.0} | {gigabytes:.0} | {:.0}% | {:.0} | {:.0} | {:.0} | {:.0}",
            workload.rate(times.kernel),
            100.0 * gigabytes * 1e9 / self.memory_rate,
            us(times.kernel),
            us(times.copy_in),
            us(times.copy_out),
            workload.rate(whole),
        )
    }

    /// All pairs in one chunk.
    fn alone(
        &self,
        workload: &Workload,
        sets: &Arc<DeviceSets>,
        slot: Slot<PairOverlap>,
        candidate: Candidate,
    ) -> Result<Slot<PairOverlap>, DeviceError> {
        let sets = (workload.sets(), sets);
        let slot = self.submit(slot, workload.chunk(), sets, candidate)?.collect()?;
        match candidate.1 {
            Answer::Count => workload.check_count(slot.count().expect("it was asked for")),
            _ => workload.check(slot.overlaps()),
        }
        Ok(slot)
    }

    fn submit(
        &self,
        slot: Slot<PairOverlap>,
        chunk: Chunk<'_>,
        (sets, on_device): (&SetStore, &Arc<DeviceSets>),
        (policy, answer): Candidate,
    ) -> Result<Flight<PairOverlap>, DeviceError> {
        let job = Job { chunk, sets: [sets; 2], on_device: [on_device; 2], policy, answer };
        slot.submit(&self.lane, &self.kernels, &job)
    }

    /// Time of all pairs in chunks, several in flight, including the work of the host and the
    /// check of the answers.
    fn in_chunks(
        &self,
        workload: &Workload,
        sets: &Arc<DeviceSets>,
        slots: &mut Vec<Slot<PairOverlap>>,
        (candidate, parts): (Candidate, &[Part]),
    ) -> Result<Duration, DeviceError> {
        let whole = workload.chunk();
        let sets = (workload.sets(), sets);
        let mut flying = VecDeque::<(usize, Flight<PairOverlap>)>::new();
        let mut count = 0;
        let start = Instant::now();
        for Part { begin, end, entries } in parts {
            let chunk = Chunk {
                entries,
                candidates: &whole.candidates[*begin..*end],
                required: &whole.required[*begin..*end],
                starts: &[],
            };
            if slots.is_empty() {
                let landing = flying.pop_front().expect("all slots fly");
                slots.push(land(workload, landing, &mut count)?);
            }
            let slot = slots.pop().expect("one is free");
            flying.push_back((*begin, self.submit(slot, chunk, sets, candidate)?));
        }
        for landing in flying {
            slots.push(land(workload, landing, &mut count)?);
        }
        if candidate.1 == Answer::Count {
            workload.check_count(count);
        }
        Ok(start.elapsed())
    }
}

/// Collects the answer of a chunk and checks it.
fn land(
    workload: &Workload,
    (begin, flight): (usize, Flight<PairOverlap>),
    count: &mut u64,
) -> Result<Slot<PairOverlap>, DeviceError> {
    let slot = flight.collect()?;
    workload.check_part(begin, slot.overlaps());
    *count += slot.count().unwrap_or(0);
    Ok(slot)
}

/// Every kernel with its policy, or with each number of threads.
fn candidates(threads: &[u32]) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for kernel in Variant::ALL {
        let usual = Policy::of(kernel);
        let with = |threads: &u32| usual.with_grid(usual.grid().with_threads(*threads));
        let policies = threads.iter().map(with).chain(threads.is_empty().then_some(usual));
        candidates.extend(
            policies.flat_map(|policy| {
                [Answer::Overlaps, Answer::Count].map(|answer| (policy, answer))
            }),
        );
    }
    candidates
}

fn shown(answer: Answer) -> &'static str {
    match answer {
        Answer::Count => "count",
        _ => "overlaps",
    }
}

/// Bytes per second.
fn rate(bytes: usize, time: Duration) -> f64 {
    to_f64(bytes as u64) / time.as_secs_f64()
}

fn to_f64(number: u64) -> f64 {
    number as f64
}
