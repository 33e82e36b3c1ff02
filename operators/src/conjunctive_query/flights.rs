//! Batches of queries in flight on a GPU.
//!
//! ```text
//! segment ──► device memory: lists ──┐ once, while an index names it
//! queries ──► slot ──► kernels ──► pinned memory ──► counts or documents of a segment ──► chunk
//! ```
//!
//! A batch over several segments is a flight for each of them, and their answers are joined when
//! the last one has landed. Flights that find no slot start when others land. Documents that find
//! no room leave their queries unfinished, and those after them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use trommel_kernels::cuda::queries::{DeviceIndex, Policy, QueryCounts, QueryDocuments, QueryJob};
use trommel_kernels::cuda::{DeviceError, Flights, NoDevice, Primitive, Slot};
use trommel_kernels::inverted::{FoundDocuments, QueryBatch};

use super::chunk::{QueryChunk, Work};
use super::index::{Index, add_counts};
use super::limits::{ChunkLimits, DeviceRoom, IN_FLIGHT};
use super::options::QueryOutput;
use super::resident::Residents;
use crate::wave::{Landed, OnDevice};

/// Batches in flight, whose answers are counts or documents.
pub(super) type QueryFlights = Box<dyn OnDevice<Chunk = QueryChunk>>;

/// Opens a device for queries.
#[derive(Debug, Clone)]
pub(super) struct OpenFlights {
    pub(super) output: QueryOutput,
    pub(super) limits: ChunkLimits,
    pub(super) room: DeviceRoom,
}

impl OpenFlights {
    /// Opens the device, and allocates the buffers of batches.
    ///
    /// # Errors
    /// If there is no such device, or if its memory does not suffice.
    pub(super) fn open(&self) -> Result<QueryFlights, NoDevice> {
        Ok(match self.output {
            QueryOutput::Count => Box::new(self.flights::<QueryCounts>(self.limits.queries())?),
            QueryOutput::Documents => {
                Box::new(self.flights::<QueryDocuments>(self.limits.documents())?)
            }
        })
    }

    fn flights<P: Answers>(&self, limits: P::Limits) -> Result<SegmentFlights<P>, NoDevice> {
        // Before the slots are allocated, since they are not part of the room.
        let (device, room) = (self.room.device()?, self.room.bytes()?);
        let flights = Flights::open(&device, IN_FLIGHT, limits, 0)?;
        let residents = Residents::new(&device, room);
        let (flying, free) = (VecDeque::new(), Vec::new());
        Ok(SegmentFlights { flights, residents, flying, free, local: Vec::new() })
    }
}

/// Answers to a batch, joined over the segments that have landed.
#[derive(Debug, Default)]
struct Joined {
    /// Queries that all segments have finished.
    finished: usize,
    counts: Vec<u32>,
    /// Documents of each segment, and memory for those of more segments.
    found: Vec<FoundDocuments>,
}

/// Answers of a device.
trait Answers: for<'a> Primitive<Job<'a> = QueryJob<'a>, Limits: Send> {
    /// Adds the answers of the segment with the number `segment`.
    fn join(slot: &Slot<Self>, segment: usize, joined: &mut Joined);

    /// Writes the answers into the chunk of the batch, whose memory becomes that of the next one.
    fn write(index: &Index, joined: &mut Joined, chunk: &mut QueryChunk);
}

impl Answers for QueryCounts {
    fn join(slot: &Slot<Self>, _: usize, joined: &mut Joined) {
        add_counts(&mut joined.counts, slot.counts());
    }

    fn write(_: &Index, joined: &mut Joined, chunk: &mut QueryChunk) {
        std::mem::swap(&mut joined.counts, &mut chunk.counts);
    }
}

impl Answers for QueryDocuments {
    fn join(slot: &Slot<Self>, segment: usize, joined: &mut Joined) {
        joined.finished = joined.finished.min(slot.finished());
        if joined.found.len() <= segment {
            joined.found.resize_with(segment + 1, FoundDocuments::default);
        }
        let FoundDocuments { offsets, documents } = &mut joined.found[segment];
        let (ends, ids) = slot.all_documents();
        offsets.clear();
        offsets.extend(ends.iter().copied().map(u64::from));
        documents.clear();
        documents.extend_from_slice(ids);
    }

    fn write(index: &Index, joined: &mut Joined, chunk: &mut QueryChunk) {
        let Joined { finished, found, .. } = joined;
        // One segment is the usual case: nothing is copied.
        match &mut found[..index.len()] {
            [only] => std::mem::swap(only, &mut chunk.found),
            found => index.join(found, *finished, &mut chunk.found),
        }
    }
}

/// A batch, and a flight for each segment of its index.
#[derive(Debug, Default)]
struct Flying {
    index: Arc<Index>,
    offsets: Vec<u32>,
    terms: Vec<u32>,
    /// The segments on the device.
    lists: Vec<Option<Arc<DeviceIndex>>>,
    /// Bytes of segments that were sent for this batch.
    sent_bytes: u64,
    /// Segments that have started, and those that have landed.
    started: usize,
    landed: usize,
    cost: Landed,
    joined: Joined,
}

impl Flying {
    fn has_landed(&self) -> bool {
        self.landed == self.index.len()
    }

    /// Takes the batch of a chunk.
    fn begin(&mut self, chunk: &QueryChunk) {
        let Work::Answer(index) = &chunk.work else { unreachable!("it is not for a device") };
        let queries = chunk.queries.terms();
        self.index = Arc::clone(index);
        self.offsets.clear();
        self.offsets.extend_from_slice(queries.offsets);
        self.terms.clear();
        self.terms.extend_from_slice(queries.terms);
        (self.started, self.landed, self.cost) = (0, 0, Landed::default());
        self.joined.finished = chunk.queries.len();
        self.joined.counts.clear();
        self.joined.counts.resize(chunk.queries.len(), 0);
    }

    /// Writes the answers into the chunk of the batch.
    fn end<P: Answers>(&mut self, chunk: &mut QueryChunk) {
        P::write(&self.index, &mut self.joined, chunk);
        chunk.finished = self.joined.finished;
        // Neither the index nor its segments are kept for a batch that may come much later.
        self.index = Arc::default();
        self.lists.clear();
    }
}

/// Batches in flight.
struct SegmentFlights<P: Primitive> {
    flights: Flights<P>,
    residents: Residents,
    flying: VecDeque<Flying>,
    /// Memory of batches that have landed.
    free: Vec<Flying>,
    /// Terms of a batch within a segment.
    local: Vec<u32>,
}

impl<P: Answers> SegmentFlights<P> {
    /// Starts flights while there are slots.
    fn start(&mut self) -> Result<(), DeviceError> {
        for batch in &mut self.flying {
            for (segment, lists) in batch.index.segments().zip(&batch.lists).skip(batch.started) {
                if !self.flights.has_room() {
                    return Ok(());
                }
                let index = lists.as_ref().expect("all segments are on the device");
                segment.find_terms(&batch.terms, &mut self.local);
                let queries = QueryBatch::new(&batch.offsets, &self.local);
                let job = QueryJob { queries, index, policy: Policy::default() };
                self.flights.submit(&job, std::mem::take(&mut batch.sent_bytes))?;
                batch.started += 1;
            }
        }
        Ok(())
    }

    /// Takes the answers of flights of the first batch that have landed.
    fn land(&mut self) -> Result<(), DeviceError> {
        let Some(batch) = self.flying.front_mut() else { return Ok(()) };
        while batch.landed < batch.started && self.flights.is_done()? {
            let landed =
                self.flights.collect(|slot| P::join(slot, batch.landed, &mut batch.joined))?;
            batch.landed += 1;
            add_cost(&mut batch.cost, landed);
        }
        Ok(())
    }
}

/// Adds the cost of a flight to that of its batch.
fn add_cost(sum: &mut Landed, landed: Landed) {
    sum.times.copy_in += landed.times.copy_in;
    sum.times.kernel += landed.times.kernel;
    sum.times.copy_out += landed.times.copy_out;
    sum.bytes_to_device += landed.bytes_to_device;
    sum.bytes_from_device += landed.bytes_from_device;
}

impl<P: Answers> OnDevice for SegmentFlights<P> {
    type Chunk = QueryChunk;

    fn has_room(&self, chunk: &QueryChunk) -> bool {
        let Work::Answer(index) = &chunk.work else { unreachable!("it is not for a device") };
        let has_started = |batch: &Flying| batch.started == batch.index.len();
        let has_slot = self.flights.has_room() && self.flying.iter().all(has_started);
        self.flying.is_empty() || has_slot && self.residents.have_room(index)
    }

    fn submit(&mut self, chunk: &QueryChunk) -> Result<(), DeviceError> {
        let mut batch = self.free.pop().unwrap_or_default();
        batch.begin(chunk);
        (batch.lists, batch.sent_bytes) = self.residents.hold(&batch.index)?;
        self.flying.push_back(batch);
        self.start()
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        self.land()?;
        self.start()?;
        Ok(self.flying.front().is_some_and(Flying::has_landed))
    }

    fn collect(&mut self, chunk: &mut QueryChunk) -> Result<Landed, DeviceError> {
        let mut batch = self.flying.pop_front().expect("a batch has landed");
        batch.end::<P>(chunk);
        // One look at the clock for all queries.
        chunk.answered = Some(Instant::now());
        let cost = batch.cost;
        self.free.push(batch);
        Ok(cost)
    }
}

impl<P: Primitive> fmt::Debug for SegmentFlights<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flights, residents, flying, .. } = self;
        let mut shown = formatter.debug_struct("SegmentFlights");
        shown.field("flights", flights).field("residents", residents).field("flying", flying);
        shown.finish()
    }
}
