//! Batches of queries over an index on a device.

use std::hint;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trommel_kernels::cuda::queries::{
    DeviceIndex, DocumentLimits, Policy, QueryCounts, QueryDocuments, QueryJob, QueryLimits,
};
use trommel_kernels::cuda::{Device, DeviceError, Flights, Primitive, Slot};

use super::index::{Answers, Workload};

/// Batches in flight.
const SLOTS: usize = 3;

/// Batches of a pass at most: small ones are not all sent.
const BATCHES_MAX: usize = 1000;

/// A primitive that answers queries.
pub(super) trait Ask: for<'a> Primitive<Job<'a> = QueryJob<'a>> {
    /// The name in the table.
    const NAME: &'static str;

    fn limits(workload: &Workload, batch: usize) -> Self::Limits;

    /// Adds the answers of a batch.
    fn read(slot: &Slot<Self>, answers: &mut Answers);

    /// Whether they are all right for the queries from `begin` on.
    fn are_right(workload: &Workload, begin: usize, answers: &Answers) -> bool;
}

/// The largest number of `of` over all batches.
fn most(workload: &Workload, batch: usize, of: impl Fn(usize, usize) -> usize) -> usize {
    let begins = (0..workload.queries()).step_by(batch);
    begins.map(|begin| of(begin, workload.queries().min(begin + batch))).max().unwrap_or(0)
}

fn query_limits(workload: &Workload, batch: usize) -> QueryLimits {
    let terms =
        |begin: usize, end: usize| (workload.offsets[end] - workload.offsets[begin]) as usize;
    QueryLimits {
        queries: batch,
        terms: most(workload, batch, terms),
        units: most(workload, batch, |begin, end| workload.units(begin, end)),
    }
}

impl Ask for QueryCounts {
    const NAME: &'static str = "count";

    fn limits(workload: &Workload, batch: usize) -> QueryLimits {
        query_limits(workload, batch)
    }

    fn read(slot: &Slot<Self>, answers: &mut Answers) {
        answers.counts.extend_from_slice(slot.counts());
    }

    fn are_right(workload: &Workload, begin: usize, answers: &Answers) -> bool {
        answers.counts == workload.right.counts[begin..begin + answers.counts.len()]
    }
}

impl Ask for QueryDocuments {
    const NAME: &'static str = "documents";

    fn limits(workload: &Workload, batch: usize) -> DocumentLimits {
        let documents = most(workload, batch, |begin, end| workload.documents(begin, end));
        let longest = workload.lists.iter().map(Vec::len).max().unwrap_or(0);
        let queries = query_limits(workload, batch);
        DocumentLimits { queries, documents: documents.max(longest).max(1) }
    }

    fn read(slot: &Slot<Self>, answers: &mut Answers) {
        let documents = (0..slot.finished()).map(|query| slot.documents(query));
        documents.for_each(|documents| answers.push(documents.expect("it is finished")));
    }

    fn are_right(workload: &Workload, begin: usize, answers: &Answers) -> bool {
        let end = begin + answers.counts.len();
        answers.counts == workload.right.counts[begin..end]
            && answers.sums == workload.right.sums[begin..end]
    }
}

/// Times of batches of one size.
pub(super) struct Measured {
    /// Median from the submission of a batch to its answers, alone on the device.
    pub(super) latency: Duration,
    /// Median of its kernels.
    pub(super) kernel: Duration,
    /// A batch of several in flight.
    pub(super) whole: Duration,
    /// Bytes of a batch over the bus, in the direction that has more.
    pub(super) bytes: u64,
}

/// A way of asking: an index on the device, and a policy.
pub(super) struct Asked<'a> {
    pub(super) workload: &'a Workload,
    pub(super) index: &'a Arc<DeviceIndex>,
    pub(super) policy: Policy,
    pub(super) rounds: usize,
}

impl Asked<'_> {
    /// Measures batches of `batch` queries; all answers are checked, outside of the time.
    pub(super) fn measure<P: Ask>(
        &self,
        device: &Device,
        batch: usize,
    ) -> Result<Measured, DeviceError> {
        let limits = P::limits(self.workload, batch);
        let mut flights = Flights::<P>::open(device, SLOTS, limits, 0)?;
        // Whole batches only, from the first query on.
        let batches = (self.workload.queries() / batch).clamp(1, BATCHES_MAX);
        let alone = self.alone(&mut flights, batch, batches)?;
        self.in_a_row(&mut flights, batch, batches, true)?;
        // As many batches as fill the device for a while.
        let repeated = batches.max(16 * SLOTS);
        let mut times = Vec::new();
        for _ in 0..self.rounds.max(1) {
            times.push(self.in_a_row(&mut flights, batch, repeated, false)?);
        }
        times.sort_unstable();
        let whole = times[times.len() / 2] / u32::try_from(repeated).expect("batches are few");
        Ok(Measured { whole, ..alone })
    }

    fn submit<P: Ask>(
        &self,
        flights: &mut Flights<P>,
        batch: usize,
        number: usize,
    ) -> Result<usize, DeviceError> {
        let batches = (self.workload.queries() / batch).max(1);
        let begin = number % batches * batch;
        let end = self.workload.queries().min(begin + batch);
        let queries = self.workload.batch(begin, end);
        flights.submit(&QueryJob { queries, index: self.index, policy: self.policy }, 0)?;
        Ok(begin)
    }

    /// One batch at a time, each checked.
    fn alone<P: Ask>(
        &self,
        flights: &mut Flights<P>,
        batch: usize,
        batches: usize,
    ) -> Result<Measured, DeviceError> {
        let (mut latencies, mut kernels, mut bytes) = (Vec::new(), Vec::new(), 0);
        for number in 0..batches {
            let start = Instant::now();
            let begin = self.submit(flights, batch, number)?;
            while !flights.is_done()? {
                hint::spin_loop();
            }
            let (mut latency, mut answers) = (Duration::ZERO, Answers::default());
            let landed = flights.collect(|slot| {
                latency = start.elapsed();
                P::read(slot, &mut answers);
            })?;
            assert!(P::are_right(self.workload, begin, &answers), "wrong answers of {}", P::NAME);
            latencies.push(latency);
            kernels.push(landed.times.kernel);
            bytes += landed.bytes_to_device.max(landed.bytes_from_device);
        }
        latencies.sort_unstable();
        kernels.sort_unstable();
        Ok(Measured {
            latency: latencies[batches / 2],
            kernel: kernels[batches / 2],
            whole: Duration::ZERO,
            bytes: bytes / batches as u64,
        })
    }

    /// Several batches in flight; checked, or measured.
    fn in_a_row<P: Ask>(
        &self,
        flights: &mut Flights<P>,
        batch: usize,
        batches: usize,
        is_checked: bool,
    ) -> Result<Duration, DeviceError> {
        let mut begins = Vec::with_capacity(batches);
        let mut collected = 0;
        let start = Instant::now();
        while collected < batches {
            if begins.len() < batches && flights.has_room() {
                let begin = self.submit(flights, batch, begins.len())?;
                begins.push(begin);
                continue;
            }
            while !flights.is_done()? {
                hint::spin_loop();
            }
            let mut answers = Answers::default();
            flights.collect(|slot| {
                if is_checked {
                    P::read(slot, &mut answers);
                }
            })?;
            if is_checked {
                let is_right = P::are_right(self.workload, begins[collected], &answers);
                assert!(is_right, "wrong answers of {} in a row", P::NAME);
            }
            collected += 1;
        }
        Ok(start.elapsed())
    }
}
