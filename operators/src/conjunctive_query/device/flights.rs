//! Batches of queries in flight on a GPU.
//!
//! ```text
//! segment ──► device memory ──┐ once, while an index names it
//!    └─ lists of a batch ──┐  │ of a segment without room there
//! queries ───────────────► slot ──► kernels ──► pinned memory ──► answers of a segment ──► chunk
//! ```
//!
//! A batch over several segments is a flight for each segment. The answers of all segments are
//! joined when the last flight has landed. A flight that finds no slot starts when another flight
//! lands. If lists or documents of a query find no room, that query and all later queries of the
//! batch stay unfinished.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use trommel_kernels::cuda::queries::{
    Policy, QueryCounts, QueryDocuments, QueryJob, StreamedJob, StreamedLimits,
};
use trommel_kernels::cuda::{Device, DeviceError, Flights, NoDevice};
use trommel_kernels::inverted::{ListNamer, QueryBatch};

use super::joined::{Answers, Joined};
use super::resident::{HeldLists, ResidentSegments};
use crate::conjunctive_query::answer::chunk::{QueryChunk, QueryWork};
use crate::conjunctive_query::data::index::Index;
use crate::conjunctive_query::parameters::options::QueryOutput;
use crate::conjunctive_query::plan::limits::{ChunkLimits, DeviceRoom, IN_FLIGHT};
use crate::wave::{DeviceSession, Landed, OnDevice};

/// Batches in flight, whose answers are counts or documents.
pub(crate) type QueryFlights = Box<dyn OnDevice<Chunk = QueryChunk>>;

/// Opens a device for queries, for the kernel to which the device belongs. Clones share the first
/// device: another kernel may open that device ahead.
#[derive(Clone)]
pub(crate) struct OpenFlights {
    output: QueryOutput,
    limits: ChunkLimits,
    room: DeviceRoom,
    /// The outcome of [`open_ahead`](Self::open_ahead), until [`open`](Self::open) takes the
    /// outcome.
    ahead: Arc<Mutex<Option<Result<QueryFlights, NoDevice>>>>,
}

impl OpenFlights {
    pub(crate) fn new(output: QueryOutput, limits: ChunkLimits, room: DeviceRoom) -> Self {
        Self { output, limits, room, ahead: Arc::default() }
    }

    /// Opens the first device for a later call of [`open`](Self::open), and sends the segments of
    /// `index` that stay on the device.
    pub(crate) fn open_ahead(&self, index: &Index) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        *ahead = Some(self.open_with(self.room.first(), index));
    }

    /// Opens the device, and allocates the buffers of batches. Waits while another kernel opens the
    /// device.
    ///
    /// # Errors
    /// If there is no such device, or if the memory of the device does not suffice.
    pub(crate) fn open(&self, device: &DeviceSession) -> Result<QueryFlights, NoDevice> {
        let ahead = match device.place() {
            0 => self.ahead.lock().unwrap_or_else(PoisonError::into_inner).take(),
            _ => None,
        };
        ahead.unwrap_or_else(|| self.open_with(device, &Index::default()))
    }

    fn open_with(&self, device: &DeviceSession, index: &Index) -> Result<QueryFlights, NoDevice> {
        let Self { output, limits, .. } = self;
        Ok(match output {
            QueryOutput::Count => {
                Box::new(self.flights::<QueryCounts>(device, limits.queries(), index)?)
            }
            QueryOutput::Documents => {
                Box::new(self.flights::<QueryDocuments>(device, limits.documents(), index)?)
            }
        })
    }

    fn flights<P: Answers>(
        &self,
        device: &DeviceSession,
        batch: P::Limits,
        index: &Index,
    ) -> Result<SegmentFlights<P>, NoDevice> {
        // The room is asked for before the slots are allocated, because the slots are not a part of
        // the room.
        let (device, room) = (device.open()?, self.room.room()?);
        let limits = StreamedLimits { batch, words: room.list_words };
        let resident = Flights::open(&device, IN_FLIGHT, batch, 0)?;
        let mut residents = ResidentSegments::new(&device, room.index_bytes);
        let (_, sent_bytes) = residents.hold(index)?;
        Ok(SegmentFlights {
            resident,
            streamed: None,
            residents,
            sent_bytes,
            device,
            limits,
            order: VecDeque::new(),
            flying: VecDeque::new(),
            free: Vec::new(),
            local: Vec::new(),
            namer: ListNamer::new(),
        })
    }
}

/// A batch, and a flight for each segment of its index.
#[derive(Debug, Default)]
struct Flying {
    index: Arc<Index>,
    offsets: Vec<u32>,
    terms: Vec<u32>,
    /// The lists of each segment on the device; `None` for a segment whose lists each flight sends.
    lists: HeldLists,
    /// Bytes of segments that were sent for this batch.
    sent_bytes: u64,
    /// Number of segments whose flights have started, and number of segments whose flights have
    /// landed.
    started: usize,
    landed: usize,
    cost: Landed,
    joined: Joined,
}

impl Flying {
    fn has_started(&self) -> bool {
        self.started == self.index.len()
    }

    fn has_landed(&self) -> bool {
        self.landed == self.index.len()
    }

    /// Takes the batch of a chunk.
    fn begin(&mut self, chunk: &QueryChunk) {
        let queries = chunk.queries.terms();
        self.index = Arc::clone(index_of(chunk));
        self.offsets.clear();
        self.offsets.extend_from_slice(queries.offsets);
        self.terms.clear();
        self.terms.extend_from_slice(queries.terms);
        (self.started, self.landed, self.cost) = (0, 0, Landed::default());
        self.joined.begin(chunk.queries.len());
    }

    /// Adds the cost of a flight that has landed.
    fn land(&mut self, landed: Landed) {
        self.landed += 1;
        let Landed { times, bytes_to_device, bytes_from_device } = &mut self.cost;
        times.copy_in += landed.times.copy_in;
        times.kernel += landed.times.kernel;
        times.copy_out += landed.times.copy_out;
        *bytes_to_device += landed.bytes_to_device;
        *bytes_from_device += landed.bytes_from_device;
    }

    /// Writes the answers into the chunk of the batch.
    fn end<P: Answers>(&mut self, chunk: &mut QueryChunk) {
        P::write(&self.index, &mut self.joined, chunk);
        chunk.finished = self.joined.finished;
        // Unused memory must not keep the index and its segments alive until a much later batch.
        self.index = Arc::default();
        self.lists.clear();
    }
}

/// The index of a chunk for a device.
fn index_of(chunk: &QueryChunk) -> &Arc<Index> {
    let QueryWork::Answer(index) = &chunk.work else { unreachable!("it is not for a device") };
    index
}

/// Batches in flight.
struct SegmentFlights<P: Answers> {
    /// Flights over segments on the device.
    resident: Flights<P>,
    /// Flights that send their lists; made for the first such flight.
    streamed: Option<Flights<P::Streamed>>,
    residents: ResidentSegments,
    /// Bytes of segments that were sent and that no batch has counted yet.
    sent_bytes: u64,
    device: Device,
    limits: StreamedLimits<P::Limits>,
    /// Whether each flight sends its lists, in the order of the flights.
    order: VecDeque<bool>,
    flying: VecDeque<Flying>,
    /// Memory of batches that have landed.
    free: Vec<Flying>,
    /// Terms of a batch within a segment.
    local: Vec<u32>,
    namer: ListNamer,
}

impl<P: Answers> SegmentFlights<P> {
    /// Starts flights in their order while there are slots.
    fn start(&mut self) -> Result<(), DeviceError> {
        while let Some(place) = self.flying.iter().position(|batch| !batch.has_started()) {
            if !self.start_next(place)? {
                break;
            }
        }
        Ok(())
    }

    /// Starts the next flight of a batch; false if there is no slot for that flight.
    fn start_next(&mut self, place: usize) -> Result<bool, DeviceError> {
        let batch = &mut self.flying[place];
        let segment = batch.index.segments().nth(batch.started).expect("one has not started");
        let lists = &batch.lists[batch.started];
        let has_slot = match lists {
            Some(_) => self.resident.has_room(),
            None => self.streamed.as_ref().is_some_and(Flights::has_room),
        };
        if !has_slot {
            return Ok(false);
        }
        // Only the queries that all earlier segments have finished are asked. The batch returns
        // later with the other queries, for all segments.
        let offsets = &batch.offsets[..=batch.joined.finished];
        let terms = &batch.terms[..offsets[batch.joined.finished] as usize];
        segment.find_terms(terms, &mut self.local);
        let (queries, policy) = (QueryBatch::new(offsets, &self.local), Policy::default());
        let sent_bytes = std::mem::take(&mut batch.sent_bytes);
        match (lists, &mut self.streamed) {
            (Some(index), _) => {
                self.resident.submit(&QueryJob { queries, index, policy }, sent_bytes)?;
            }
            (None, Some(flights)) => {
                let lists = self.namer.name(&segment.lists, queries, self.limits.words);
                batch.joined.finished = lists.queries().len();
                assert!(batch.joined.finished > 0, "the lists of a query have room");
                flights.submit(&StreamedJob { lists, policy }, sent_bytes)?;
            }
            (None, None) => unreachable!("there is a slot"),
        }
        self.order.push_back(lists.is_none());
        batch.started += 1;
        Ok(true)
    }

    /// Takes the answers of flights of the first batch that have landed.
    fn land(&mut self) -> Result<(), DeviceError> {
        let Self { resident, streamed, order, flying, .. } = self;
        let Some(batch) = flying.front_mut() else { return Ok(()) };
        while batch.landed < batch.started {
            let (segment, joined) = (batch.landed, &mut batch.joined);
            let landed = match streamed {
                Some(flights) if order.front() == Some(&true) => {
                    if !flights.is_done()? {
                        break;
                    }
                    flights.collect(|slot| P::join_streamed(slot, segment, joined))?
                }
                _ => {
                    if !resident.is_done()? {
                        break;
                    }
                    resident.collect(|slot| P::join(slot, segment, joined))?
                }
            };
            order.pop_front();
            batch.land(landed);
        }
        Ok(())
    }
}

impl<P: Answers> OnDevice for SegmentFlights<P> {
    type Chunk = QueryChunk;

    fn has_room(&self, chunk: &QueryChunk) -> bool {
        // All slots are free, and all segments can be evicted.
        if self.flying.is_empty() {
            return true;
        }
        let has_slots =
            self.resident.has_room() && self.streamed.as_ref().is_none_or(Flights::has_room);
        // A batch whose flights wait for slots comes first.
        let all_have_started = self.flying.iter().all(Flying::has_started);
        has_slots && all_have_started && self.residents.have_room(index_of(chunk))
    }

    fn submit(&mut self, chunk: &QueryChunk) -> Result<(), DeviceError> {
        let mut batch = self.free.pop().unwrap_or_default();
        batch.begin(chunk);
        (batch.lists, batch.sent_bytes) = self.residents.hold(&batch.index)?;
        batch.sent_bytes += std::mem::take(&mut self.sent_bytes);
        if self.streamed.is_none() && batch.lists.iter().any(Option::is_none) {
            self.streamed = Some(Flights::open(&self.device, IN_FLIGHT, self.limits, 0)?);
        }
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
        // One reading of the clock for all queries.
        chunk.answered = Some(Instant::now());
        let cost = batch.cost;
        self.free.push(batch);
        Ok(cost)
    }
}

impl<P: Answers> fmt::Debug for SegmentFlights<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resident, streamed, residents, flying, .. } = self;
        let mut shown = formatter.debug_struct("SegmentFlights");
        shown.field("resident", resident).field("streamed", streamed);
        shown.field("residents", residents).field("flying", flying).finish()
    }
}
