//! Rows of a GPU: from vectors in pinned memory to exact pairs in pinned memory.

use std::fmt::{self, Formatter};
use std::hint;
use std::sync::Arc;
use std::time::Duration;

use trommel_kernels::cuda::vectors::{
    Answer, DeviceVectors, JoinJob, JoinLimits, JoinUnit, Method, NearPair, Policy, VectorJoin,
    VectorLimits,
};
use trommel_kernels::cuda::{
    CopyTimes, Device, DeviceError, Kernels, Lane, Memory, PinnedBuffer, Slot,
};

use super::data::Workload;
use super::sample;
use crate::runner::Runs;
use crate::runner::turns::{Run, Turns, timed};

/// The run of median time of a way, in milliseconds, and its answer.
pub(super) struct Measured {
    pub(super) whole: f64,
    pub(super) prepared: f64,
    pub(super) kernels: f64,
    pub(super) pairs: Vec<NearPair>,
    pub(super) count: u64,
}

/// A workload in pinned memory, with the kernels and the streams.
pub(super) struct Gpu {
    memory: Arc<Memory>,
    /// Parts take turns, so that the next one fills the device when few warps of one still work.
    lanes: [Arc<Lane>; 2],
    kernels: Arc<Kernels<VectorJoin>>,
    workload: Workload,
    values: PinnedBuffer<f32>,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { whole, prepared, kernels, count, .. } = self;
        write!(
            f,
            "whole {whole:>9.3} ms, sent and prepared {prepared:>8.3}, kernels {kernels:>9.3}, {count} pairs"
        )
    }
}

/// A way to join.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) method: Method,
    pub(super) policy: Policy,
    pub(super) parts: usize,
    pub(super) answer: Answer,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { method, policy, parts, answer } = self;
        let name = method.to_string();
        let Policy { filter, leaves, .. } = policy;
        write!(f, "{name:<12} {filter:?}, {leaves} leaves, {parts} parts, {answer:?}")
    }
}

impl Gpu {
    pub(super) fn new(device: &Device, workload: Workload) -> Result<Self, DeviceError> {
        let budget = device.memory_bytes()?.0 / 10 * 9;
        let memory = Memory::new(device, budget, 24 << 30);
        let mut values = memory.pinned_buffer(workload.len * workload.dims)?;
        workload.fill(&mut values);
        let lanes = [Arc::new(Lane::new(device)?), Arc::new(Lane::new(device)?)];
        let kernels = Kernels::load(device)?;
        Ok(Self { memory, lanes, kernels, workload, values })
    }

    /// Seconds that plain copies of the vectors and of `pairs` pairs take.
    pub(super) fn bus(&self, copies: &CopyTimes, pairs: usize) -> f64 {
        let time =
            |bytes: usize, time: Duration| bytes as f64 / copies.bytes as f64 * time.as_secs_f64();
        time(size_of_val(&self.values[..]), copies.host_to_device)
            + time(pairs * size_of::<NearPair>(), copies.device_to_host)
    }

    /// Measures a way.
    pub(super) fn measure(
        &self,
        way: Way,
        room: usize,
        runs: Runs,
    ) -> Result<Measured, DeviceError> {
        let Workload { len, dims, epsilon, .. } = self.workload;
        let limits = VectorLimits { len, dims, method: way.method };
        let mut vectors = Arc::new(DeviceVectors::with_room(&self.memory, limits)?);
        self.load(&mut vectors)?;
        let units = vectors.units(None, &way.policy);
        let part = units.len().div_ceil(way.parts).max(1);
        let pairs = room / way.parts + 1;
        let candidates = if way.method == Method::Tiles { pairs } else { 0 };
        let limits = JoinLimits { units: part, pairs, partners: 0, candidates };
        let slots = (0..way.parts)
            .map(|_| Slot::new(&self.memory, limits))
            .collect::<Result<Vec<_>, _>>()?;
        let mut held = Some(slots);
        let mut turns = Turns::<(), Measured>::new(runs);
        turns.add("way", || {
            let (prepared, loaded) = timed(|| {
                self.load(&mut vectors)?;
                vectors.wait()
            });
            loaded.expect("the device works");
            let slots = held.take().expect("the round before has given them back");
            let (whole, round) = timed(|| self.round(&mut vectors, slots, way, epsilon));
            let (slots, rest) = round.expect("the device works");
            assert!(rest.is_empty(), "{} units found no room for {room} pairs", rest.len());
            let kernels: Duration = slots.iter().map(|slot| slot.times().kernel).sum();
            let [whole_ms, prepared, kernels] =
                [whole, prepared, kernels].map(|time| 1e3 * time.as_secs_f64());
            let count = slots.iter().map(|slot| slot.count()).sum();
            let pairs = slots.iter().flat_map(|slot| slot.pairs().iter().copied()).collect();
            held = Some(slots);
            let rest = Measured { whole: whole_ms, prepared, kernels, pairs, count };
            Run { time: whole, answer: (), rest }
        });
        Ok(turns.run().remove(0).into_rest())
    }

    fn load(&self, vectors: &mut Arc<DeviceVectors>) -> Result<(), DeviceError> {
        let vectors = Arc::get_mut(vectors).expect("no part is in flight");
        vectors.load(&self.kernels, &self.values, 0, self.workload.epsilon)
    }

    /// From vectors to pairs, in parts; units that found no room are returned.
    fn round(
        &self,
        vectors: &mut Arc<DeviceVectors>,
        slots: Vec<Slot<VectorJoin>>,
        way: Way,
        epsilon: f64,
    ) -> Result<(Vec<Slot<VectorJoin>>, Vec<JoinUnit>), DeviceError> {
        self.load(vectors)?;
        let units = vectors.units(None, &way.policy);
        let mut parts = units.chunks(units.len().div_ceil(way.parts).max(1));
        let mut flights = Vec::with_capacity(slots.len());
        for (slot, lane) in slots.into_iter().zip(self.lanes.iter().cycle()) {
            let units = parts.next().unwrap_or_default();
            let Way { policy, answer, .. } = way;
            let job = JoinJob { units, left: vectors, right: None, epsilon, policy, answer };
            flights.push(slot.submit(lane, &self.kernels, &job)?);
        }
        let (mut slots, mut rest) = (Vec::with_capacity(flights.len()), Vec::new());
        for flight in flights {
            // A sleeping thread would need longer to wake up than the last part takes.
            while !flight.is_done()? {
                hint::spin_loop();
            }
            let slot = flight.collect()?;
            rest.extend_from_slice(slot.unfinished());
            slots.push(slot);
        }
        Ok((slots, rest))
    }

    /// Checks the pairs of some vectors.
    pub(super) fn check(&self, pairs: &[NearPair], samples: usize) {
        let pairs = pairs.iter().map(|pair| (pair.left, pair.right, pair.square));
        sample::check(&self.values, self.workload, pairs, samples, |square| square);
    }
}
