//! Tasks of tiles in flight on a GPU.
//!
//! ```text
//! tid lists ──cut──► pinned memory ──► device: rows of bits ──┐ once a window
//! tiles of a task ──► slot ──► kernel ──► pinned memory ──► pairs, tiles without room
//! ```
//!
//! The rows stay on the device while tasks of their window come. The rows of the next window take
//! their place, in the same memory if that is large enough. A window whose data has another form
//! waits until no task is in flight, and has buffers of its own.

use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::batmap::BatMaps;
use trommel_kernels::cuda::supports::{
    BLOCK, BLOCKS_MAX, BitRows, DeviceMaps, Job, MAP_PAIRS_MIN, MapJob, MapPairs, PAIRS_MIN,
    PairLimits, Policy, RowJob, RowLimits, RowPairLimits, RowPairs, STRIP_WIDTH, SparseRows, Strip,
    TILE, TidBlocks, Tile, TilePairs, Units,
};
use trommel_kernels::cuda::{
    Device, DeviceError, Flights, Memory, MemoryKind, NoDevice, PinnedBuffer, Primitive,
};
use trommel_kernels::supports::Pair;

use super::chunk::{PairChunk, Work};
use super::cost;
use super::device_form::{DeviceForm, strip_of_tile, tile_of_strip};
use super::plan::Task;
use super::tuning::Tuning;
use super::vertical::VerticalData;
use crate::wave::{DeviceSession, Landed, OnDevice};

/// Maximum number of chunks in flight. Two more are filled and read meanwhile.
pub(super) const IN_FLIGHT: usize = 3;

/// Bytes of maps that a device numbers.
const MAP_BYTES_MAX: usize = 1 << 36;

/// Bits of a row are a multiple of this.
const ROW_BITS: u64 = 1024;

/// Bytes of the data on a device, about.
pub(super) fn data_bytes(data: &VerticalData, form: DeviceForm) -> u64 {
    let tids = data.total(0..data.len());
    match form {
        DeviceForm::Batmap => (0..data.len()).map(|rank| 3 * cost::map_range(data, rank)).sum(),
        DeviceForm::Sparse => SparseRows::bytes_max(data.len(), tids),
        DeviceForm::Bitmap | DeviceForm::Tensor => {
            let (items, transactions) = (u64::from(data.len()), u64::from(data.transactions()));
            let row = transactions.next_multiple_of(ROW_BITS) / 8;
            let lists = items * transactions.div_ceil(BLOCK.into()) + 1;
            let rows = items.next_multiple_of(TILE.into()).saturating_mul(row);
            rows.saturating_add(2 * tids + 4 * lists)
        }
    }
}

/// Opens a device for tasks.
#[derive(Debug, Clone)]
pub(super) struct OpenFlights {
    pub(super) session: DeviceSession,
    /// Form of the data of the first tasks.
    pub(super) form: DeviceForm,
    pub(super) isa: Isa,
    /// Maximum bytes of pinned memory for the lists of a window.
    pub(super) lists_max: usize,
    pub(super) tuning: Tuning,
}

impl OpenFlights {
    /// Opens the device, and allocates the buffers of tasks.
    ///
    /// # Errors
    /// If there is no such device, or if its memory does not suffice.
    pub(super) fn open(&self) -> Result<PairFlights, NoDevice> {
        let (device, form) = (self.session.open()?, self.form);
        let flights = FormFlights::open(&device, self, form)?;
        Ok(PairFlights { open: self.clone(), device, form, flights: Some(flights) })
    }

    fn limits(&self, pairs_min: usize) -> PairLimits {
        let Tuning { task_tiles, device_pairs, .. } = self.tuning;
        PairLimits { tiles: task_tiles, pairs: device_pairs.max(pairs_min) }
    }

    /// Memory for the data of a window: all that the device has left.
    fn memory(&self, device: &Device) -> Result<(Arc<Memory>, usize), DeviceError> {
        let free = device.memory_bytes()?.0;
        Ok((Memory::new(device, free, self.lists_max), free))
    }
}

/// The data and the task of a chunk for a device.
fn task(chunk: &PairChunk) -> (&Arc<VerticalData>, &Task) {
    let Work::Count(data, task) = &chunk.work else { unreachable!("it is not for a device") };
    (data, task)
}

/// The form of the data of a chunk for a device.
fn form_of(chunk: &PairChunk) -> DeviceForm {
    DeviceForm::of_task(task(chunk).1.form)
}

/// Tasks in flight, all of data in the same form.
#[derive(Debug)]
pub(super) struct PairFlights {
    open: OpenFlights,
    device: Device,
    form: DeviceForm,
    /// Missing only while the form changes.
    flights: Option<FormFlights>,
}

/// Tasks in flight, by the form of their data.
#[derive(Debug)]
enum FormFlights {
    Rows(RowFlights),
    Maps(MapFlights),
    Sparse(SparseFlights),
}

impl FormFlights {
    fn open(device: &Device, open: &OpenFlights, form: DeviceForm) -> Result<Self, DeviceError> {
        Ok(match form {
            DeviceForm::Batmap => Self::Maps(MapFlights::open(device, open)?),
            DeviceForm::Bitmap => Self::Rows(RowFlights::open(device, open, Units::Integer)?),
            DeviceForm::Sparse => Self::Sparse(SparseFlights::open(device, open)?),
            DeviceForm::Tensor => {
                let units = Units::best(device.properties());
                Self::Rows(RowFlights::open(device, open, units)?)
            }
        })
    }

    fn is_idle(&self) -> bool {
        match self {
            Self::Rows(rows) => rows.flights.is_idle(),
            Self::Maps(maps) => maps.flights.is_idle(),
            Self::Sparse(sparse) => sparse.flights.is_idle(),
        }
    }

    /// Whether a task of the data of a `version` can be submitted.
    fn has_room(&self, version: u64) -> bool {
        let version = Some(version);
        match self {
            Self::Rows(rows) => has_room(&rows.flights, rows.version == version),
            Self::Maps(maps) => has_room(&maps.flights, maps.version() == version),
            Self::Sparse(sparse) => has_room(&sparse.flights, sparse.version() == version),
        }
    }
}

impl PairFlights {
    fn flights(&mut self) -> &mut FormFlights {
        self.flights.as_mut().expect("the form does not change now")
    }

    /// Makes buffers for data in another form, when nothing is in flight.
    fn change(&mut self, form: DeviceForm) -> Result<(), DeviceError> {
        // Frees the memory of the other form first.
        self.flights = None;
        self.flights = Some(FormFlights::open(&self.device, &self.open, form)?);
        self.form = form;
        Ok(())
    }
}

impl OnDevice for PairFlights {
    type Chunk = PairChunk;

    fn has_room(&self, chunk: &PairChunk) -> bool {
        let flights = self.flights.as_ref().expect("the form does not change now");
        match form_of(chunk) == self.form {
            true => flights.has_room(task(chunk).0.version()),
            false => flights.is_idle(),
        }
    }

    fn submit(&mut self, chunk: &PairChunk) -> Result<(), DeviceError> {
        let form = form_of(chunk);
        if form != self.form {
            self.change(form)?;
        }
        let (data, task) = task(chunk);
        match self.flights() {
            FormFlights::Rows(rows) => rows.submit(data, &task.tiles),
            FormFlights::Maps(maps) => maps.submit(data, &task.tiles),
            FormFlights::Sparse(sparse) => sparse.submit(data, &task.tiles),
        }
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        match self.flights() {
            FormFlights::Rows(rows) => rows.flights.is_done(),
            FormFlights::Maps(maps) => maps.flights.is_done(),
            FormFlights::Sparse(sparse) => sparse.flights.is_done(),
        }
    }

    fn collect(&mut self, chunk: &mut PairChunk) -> Result<Landed, DeviceError> {
        match self.flights() {
            FormFlights::Rows(rows) => rows.flights.collect(|slot| {
                answer(chunk, slot.pairs().iter().copied(), slot.unfinished().iter().copied());
            }),
            FormFlights::Maps(maps) => maps.flights.collect(|slot| {
                answer(chunk, slot.pairs(), slot.unfinished().iter().copied());
            }),
            FormFlights::Sparse(sparse) => sparse.flights.collect(|slot| {
                let unfinished = slot.unfinished().iter().copied().map(tile_of_strip);
                answer(chunk, slot.pairs().iter().copied(), unfinished);
            }),
        }
    }
}

/// Whether a task can be submitted: other data waits until the present one is not in use.
fn has_room<P: Primitive>(flights: &Flights<P>, is_present: bool) -> bool {
    flights.has_room() && (is_present || flights.is_idle())
}

/// Writes the answer into a chunk.
fn answer(
    chunk: &mut PairChunk,
    pairs: impl Iterator<Item = Pair>,
    unfinished: impl Iterator<Item = Tile>,
) {
    let PairChunk { work, found, .. } = chunk;
    let Work::Count(data, task) = work else { unreachable!("it was submitted") };
    found.clear(data.least());
    pairs.for_each(|pair| found.offer(pair));
    task.tiles.clear();
    task.tiles.extend(unfinished);
}

/// Tasks over rows of bits.
#[derive(Debug)]
struct RowFlights {
    flights: Flights<TilePairs>,
    policy: Policy,
    /// Memory of the rows and the lists.
    memory: Arc<Memory>,
    budget: usize,
    staged: Option<Staged>,
    room: Option<(RowLimits, Arc<BitRows>)>,
    /// Version of the data whose rows there are.
    version: Option<u64>,
}

/// Pinned memory for the lists of a window.
#[derive(Debug)]
struct Staged {
    offsets: PinnedBuffer<u32>,
    tids: PinnedBuffer<u16>,
}

impl RowFlights {
    fn open(device: &Device, open: &OpenFlights, units: Units) -> Result<Self, DeviceError> {
        let flights = Flights::open(device, IN_FLIGHT, open.limits(PAIRS_MIN), 0)?;
        let (memory, budget) = open.memory(device)?;
        let policy = Policy::of(units);
        Ok(Self { flights, policy, memory, budget, staged: None, room: None, version: None })
    }

    fn submit(&mut self, data: &VerticalData, tiles: &[Tile]) -> Result<(), DeviceError> {
        let bytes = if self.version == Some(data.version()) { 0 } else { self.send(data)? };
        let (_, rows) = self.room.as_ref().expect("rows have been sent");
        let job = Job { tiles, rows, least: data.least(), policy: self.policy };
        self.flights.submit(&job, bytes)
    }

    /// Makes the rows of `data` on the device, where no chunk is in flight; returns the bytes that
    /// were sent.
    fn send(&mut self, data: &VerticalData) -> Result<u64, DeviceError> {
        self.version = None;
        let (items, transactions) = (data.len(), data.transactions());
        let wanted = data_bytes(data, DeviceForm::Tensor);
        // Asked first: rows that exceed all memory have no numbers.
        if wanted > self.budget as u64 {
            let (kind, budget) = (MemoryKind::Device, self.budget);
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
            return Err(DeviceError::Budget { kind, wanted, left: budget, budget });
        }
        let limits = RowLimits { items, transactions, tids: data.lists().tokens().len() };
        let offsets_len = TidBlocks::offsets_len(items, transactions);
        self.stage(offsets_len, limits.tids)?;
        let Staged { offsets, tids } = self.staged.as_mut().expect("it is there");
        let (offsets, tids) = (&mut offsets[..offsets_len], &mut tids[..limits.tids]);
        TidBlocks::cut(data.lists(), transactions, offsets, tids);
        let bytes = size_of_val(offsets) + size_of_val(tids);
        let (limits, mut rows) = match self.room.take().filter(|(room, _)| holds(room, &limits)) {
            Some(room) => room,
            None => (limits, Arc::new(BitRows::with_room(&self.memory, limits)?)),
        };
        let lists = TidBlocks::new(items, transactions, offsets, tids);
        let own = Arc::get_mut(&mut rows).expect("no chunk is in flight");
        own.load(self.flights.kernels(), self.flights.lane(), &lists)?;
        self.room = Some((limits, rows));
        self.version = Some(data.version());
        Ok(bytes as u64)
    }

    /// Makes pinned memory for lists, unless it is there.
    fn stage(&mut self, offsets: usize, tids: usize) -> Result<(), DeviceError> {
        let is_enough =
            |staged: &Staged| staged.offsets.len() >= offsets && staged.tids.len() >= tids;
        self.staged = self.staged.take().filter(is_enough);
        if self.staged.is_none() {
            let offsets = self.memory.pinned_buffer(offsets)?;
            self.staged = Some(Staged { offsets, tids: self.memory.pinned_buffer(tids)? });
        }
        Ok(())
    }
}

/// Whether there is `room` for rows of `wanted`.
fn holds(room: &RowLimits, wanted: &RowLimits) -> bool {
    room.items >= wanted.items
        && room.transactions >= wanted.transactions
        && room.tids >= wanted.tids
}

/// Tasks over batmaps.
#[derive(Debug)]
struct MapFlights {
    flights: Flights<MapPairs>,
    memory: Arc<Memory>,
    budget: usize,
    isa: Isa,
    /// The maps on the device, and the version of their data.
    maps: Option<(u64, Arc<DeviceMaps>)>,
}

impl MapFlights {
    fn open(device: &Device, open: &OpenFlights) -> Result<Self, DeviceError> {
        let flights = Flights::open(device, IN_FLIGHT, open.limits(MAP_PAIRS_MIN), 0)?;
        let (memory, free) = open.memory(device)?;
        Ok(Self { flights, memory, budget: free.min(MAP_BYTES_MAX), isa: open.isa, maps: None })
    }

    fn version(&self) -> Option<u64> {
        self.maps.as_ref().map(|(version, _)| *version)
    }

    fn submit(&mut self, data: &VerticalData, tiles: &[Tile]) -> Result<(), DeviceError> {
        let is_present = self.version() == Some(data.version());
        let bytes = if is_present { 0 } else { self.send(data.version(), data.maps(self.isa))? };
        let (_, maps) = self.maps.as_ref().expect("maps have been sent");
        let job = MapJob { tiles, maps, least: data.least(), blocks_max: BLOCKS_MAX };
        self.flights.submit(&job, bytes)
    }

    /// Sends maps in place of those before; returns the bytes that were sent.
    fn send(&mut self, version: u64, maps: &Arc<BatMaps<2>>) -> Result<u64, DeviceError> {
        self.maps = None;
        let (wanted, budget) = (DeviceMaps::bytes_of(maps), self.budget);
        if wanted > budget {
            let kind = MemoryKind::Device;
            return Err(DeviceError::Budget { kind, wanted, left: budget, budget });
        }
        self.maps = Some((version, DeviceMaps::upload(&self.memory, maps)?));
        Ok(wanted as u64)
    }
}

/// Tasks over transactions.
#[derive(Debug)]
struct SparseFlights {
    flights: Flights<RowPairs>,
    memory: Arc<Memory>,
    /// The transactions on the device, and the version of their data.
    rows: Option<(u64, Arc<SparseRows>)>,
    /// The strips of a task, kept for its memory.
    strips: Vec<Strip>,
}

impl SparseFlights {
    fn open(device: &Device, open: &OpenFlights) -> Result<Self, DeviceError> {
        let PairLimits { tiles: strips, pairs } = open.limits(STRIP_WIDTH as usize);
        let limits = RowPairLimits { strips, width: STRIP_WIDTH, pairs };
        let flights = Flights::open(device, IN_FLIGHT, limits, 0)?;
        let (memory, _) = open.memory(device)?;
        Ok(Self { flights, memory, rows: None, strips: Vec::new() })
    }

    fn version(&self) -> Option<u64> {
        self.rows.as_ref().map(|(version, _)| *version)
    }

    fn submit(&mut self, data: &VerticalData, tiles: &[Tile]) -> Result<(), DeviceError> {
        let mut bytes = 0;
        if self.version() != Some(data.version()) {
            self.rows = None;
            let rows = SparseRows::upload(&self.memory, data.lists(), data.transactions())?;
            bytes = rows.bytes() as u64;
            self.rows = Some((data.version(), rows));
        }
        let (_, rows) = self.rows.as_ref().expect("transactions have been sent");
        self.strips.clear();
        self.strips.extend(tiles.iter().copied().map(strip_of_tile));
        let job = RowJob { strips: &self.strips, rows, least: data.least() };
        self.flights.submit(&job, bytes)
    }
}
