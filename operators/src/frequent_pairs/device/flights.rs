//! Tasks of tiles in flight on a GPU.
//!
//! ```text
//! tid lists ──cut──► pinned memory ──► device: rows of bits ──┐ once a window
//! tiles of a task ──► slot ──► kernel ──► pinned memory ──► pairs, tiles without room
//! ```
//!
//! The rows stay on the device while tasks of their window arrive. The rows of the next window then
//! replace these rows, in the same memory if that memory is large enough. A window whose data has
//! another form waits until no task is in flight, and gets new buffers.

use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::cuda::supports::{
    BLOCK, BLOCKS_MAX, BitRows, DeviceMaps, Job, MAP_PAIRS_MIN, MapJob, MapPairs, PAIRS_MIN,
    PairLimits, Policy, RowJob, RowLimits, RowPairLimits, RowPairs, STRIP_WIDTH, SparseRows, Strip,
    TILE, TidBlocks, Tile, TilePairs, Units,
};
use trommel_kernels::cuda::{
    Device, DeviceError, Flights, Memory, MemoryKind, NoDevice, PinnedBuffer, Primitive,
};
use trommel_kernels::supports::Pair;

use crate::frequent_pairs::answer::chunk::{PairChunk, PairWork};
use crate::frequent_pairs::data::vertical::VerticalData;
use crate::frequent_pairs::parameters::tuning::Tuning;
use crate::frequent_pairs::plan::cost;
use crate::frequent_pairs::plan::device_form::{DeviceForm, strip_of_tile, tile_of_strip};
use crate::frequent_pairs::plan::tasks::Task;
use crate::wave::{DeviceSession, Landed, OnDevice, Resident, Wanted};

/// Maximum number of chunks in flight. Two more chunks are filled and read meanwhile.
pub(crate) const IN_FLIGHT: usize = 3;

/// Maximum bytes of maps that a device can address.
const MAP_BYTES_MAX: usize = 1 << 36;

/// The number of bits of a row is a multiple of this constant.
const ROW_BITS: u64 = 1024;

/// Bytes of the data on a device, about.
pub(crate) fn data_bytes(data: &VerticalData, form: DeviceForm) -> u64 {
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
pub(crate) struct OpenFlights {
    /// Form of the data of the first tasks.
    pub(crate) form: DeviceForm,
    pub(crate) isa: Isa,
    /// Maximum bytes of pinned memory for the lists of a window.
    pub(crate) lists_max: usize,
    pub(crate) tuning: Tuning,
}

impl OpenFlights {
    /// Opens the device, and allocates the buffers of tasks.
    ///
    /// # Errors
    /// If there is no such device, or if the memory of the device does not suffice.
    pub(crate) fn open(&self, device: &DeviceSession) -> Result<PairFlights, NoDevice> {
        let (device, form) = (device.open()?, self.form);
        let flights = FormFlights::open(&device, self, form)?;
        Ok(PairFlights { open: self.clone(), device, form, flights: Some(flights) })
    }

    fn limits(&self, pairs_min: usize) -> PairLimits {
        let Tuning { task_tiles, device_pairs, .. } = self.tuning;
        PairLimits { tiles: task_tiles, pairs: device_pairs.max(pairs_min) }
    }
}

/// The data and the task of a chunk for a device.
fn task(chunk: &PairChunk) -> (&Arc<VerticalData>, &Task) {
    let PairWork::Count(data, task) = &chunk.work else { unreachable!("it is not for a device") };
    (data, task)
}

/// The form of the data of a chunk for a device.
fn form_of(chunk: &PairChunk) -> DeviceForm {
    DeviceForm::of_task(task(chunk).1.form)
}

/// Tasks in flight. The data of all tasks has the same form.
#[derive(Debug)]
pub(crate) struct PairFlights {
    open: OpenFlights,
    device: Device,
    form: DeviceForm,
    /// `None` only while the form changes.
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
            Self::Rows(rows) => rows.window.flights.is_idle(),
            Self::Maps(maps) => maps.window.flights.is_idle(),
            Self::Sparse(sparse) => sparse.window.flights.is_idle(),
        }
    }

    /// Whether a task of the data of a `version` can be submitted.
    fn has_room(&self, version: u64) -> bool {
        match self {
            Self::Rows(rows) => rows.window.has_room(version),
            Self::Maps(maps) => maps.window.has_room(version),
            Self::Sparse(sparse) => sparse.window.has_room(version),
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
            FormFlights::Rows(rows) => rows.window.flights.is_done(),
            FormFlights::Maps(maps) => maps.window.flights.is_done(),
            FormFlights::Sparse(sparse) => sparse.window.flights.is_done(),
        }
    }

    fn collect(&mut self, chunk: &mut PairChunk) -> Result<Landed, DeviceError> {
        match self.flights() {
            FormFlights::Rows(rows) => rows.window.flights.collect(|slot| {
                answer(chunk, slot.pairs().iter().copied(), slot.unfinished().iter().copied());
            }),
            FormFlights::Maps(maps) => maps.window.flights.collect(|slot| {
                answer(chunk, slot.pairs(), slot.unfinished().iter().copied());
            }),
            FormFlights::Sparse(sparse) => sparse.window.flights.collect(|slot| {
                let unfinished = slot.unfinished().iter().copied().map(tile_of_strip);
                answer(chunk, slot.pairs().iter().copied(), unfinished);
            }),
        }
    }
}

/// Writes the answer into a chunk.
fn answer(
    chunk: &mut PairChunk,
    pairs: impl Iterator<Item = Pair>,
    unfinished: impl Iterator<Item = Tile>,
) {
    let PairChunk { work, found, .. } = chunk;
    let PairWork::Count(data, task) = work else { unreachable!("it was submitted") };
    found.clear(data.least());
    pairs.for_each(|pair| found.offer(pair));
    task.tiles.clear();
    task.tiles.extend(unfinished);
}

/// Tasks in flight, and the data of one window on the device.
#[derive(Debug)]
struct WindowFlights<P: Primitive, D> {
    flights: Flights<P>,
    /// Memory for the data of a window: all free memory of the device.
    memory: Arc<Memory>,
    budget: usize,
    /// The data, by its version.
    data: Resident<u64, D>,
}

impl<P: Primitive, D> WindowFlights<P, D> {
    fn open(device: &Device, open: &OpenFlights, limits: P::Limits) -> Result<Self, DeviceError> {
        let flights = Flights::open(device, IN_FLIGHT, limits, 0)?;
        let budget = device.memory_bytes()?.0;
        let memory = Memory::new(device, budget, open.lists_max);
        Ok(Self { flights, memory, budget, data: Resident::one() })
    }

    /// Whether a task of the data of a `version` can be submitted: other data waits until no task
    /// uses the present data.
    fn has_room(&self, version: u64) -> bool {
        self.flights.has_room() && self.data.has_room(&[Wanted { key: version, bytes: 1 }])
    }

    /// The data of a `version`, and the bytes that were sent. `send` sends the data unless the
    /// device has the data already.
    fn hold(
        &mut self,
        version: u64,
        mut send: impl FnMut(&Flights<P>, &Arc<Memory>, Option<D>) -> Sent<D>,
    ) -> Sent<D> {
        let Self { flights, memory, data, .. } = self;
        let wanted = vec![Wanted { key: version, bytes: 1 }];
        let (mut held, bytes) = data.hold(wanted, |_, used| send(flights, memory, used))?;
        Ok((held.remove(0), bytes))
    }

    /// Refuses data of `wanted` bytes if the device has less memory, or cannot address more than
    /// `most` bytes.
    fn check(&self, wanted: u64, most: usize) -> Result<(), DeviceError> {
        let (kind, budget) = (MemoryKind::Device, self.budget.min(most));
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let is_refused = wanted > budget;
        if is_refused {
            Err(DeviceError::Budget { kind, wanted, left: budget, budget })
        } else {
            Ok(())
        }
    }
}

/// Data on the device, and the number of bytes that were sent.
type Sent<D> = Result<(Arc<D>, u64), DeviceError>;

/// Tasks over rows of bits.
#[derive(Debug)]
struct RowFlights {
    window: WindowFlights<TilePairs, BitRows>,
    policy: Policy,
    staged: Option<Staged>,
    /// Room of the rows on the device.
    room: RowLimits,
}

/// Pinned memory for the lists of a window.
#[derive(Debug)]
struct Staged {
    offsets: PinnedBuffer<u32>,
    tids: PinnedBuffer<u16>,
}

impl RowFlights {
    fn open(device: &Device, open: &OpenFlights, units: Units) -> Result<Self, DeviceError> {
        let window = WindowFlights::open(device, open, open.limits(PAIRS_MIN))?;
        let room = RowLimits { items: 0, transactions: 0, tids: 0 };
        Ok(Self { window, policy: Policy::of(units), staged: None, room })
    }

    fn submit(&mut self, data: &VerticalData, tiles: &[Tile]) -> Result<(), DeviceError> {
        // The check comes first: sizes and indexes of rows that exceed all memory could overflow.
        self.window.check(data_bytes(data, DeviceForm::Tensor), usize::MAX)?;
        let Self { window, staged, room, policy } = self;
        let (rows, bytes) = window.hold(data.version(), |flights, memory, used| {
            Self::send(flights, memory, data, (&mut *staged, &mut *room), used)
        })?;
        let job = Job { tiles, rows: &rows, least: data.least(), policy: *policy };
        window.flights.submit(&job, bytes)
    }

    /// Makes the rows of `data` on the device while no chunk is in flight. The memory of the `used`
    /// rows is taken if these rows have enough `room`.
    fn send(
        flights: &Flights<TilePairs>,
        memory: &Arc<Memory>,
        data: &VerticalData,
        (staged, room): (&mut Option<Staged>, &mut RowLimits),
        used: Option<BitRows>,
    ) -> Sent<BitRows> {
        let (items, transactions) = (data.len(), data.transactions());
        let limits = RowLimits { items, transactions, tids: data.lists().tokens().len() };
        let offsets_len = TidBlocks::offsets_len(items, transactions);
        let Staged { offsets, tids } = Staged::with_room(staged, memory, offsets_len, limits.tids)?;
        let (offsets, tids) = (&mut offsets[..offsets_len], &mut tids[..limits.tids]);
        TidBlocks::cut(data.lists(), transactions, offsets, tids);
        let bytes = size_of_val(offsets) + size_of_val(tids);
        let mut rows = match used.filter(|_| holds(room, &limits)) {
            Some(rows) => rows,
            None => {
                *room = limits;
                BitRows::with_room(memory, limits)?
            }
        };
        let lists = TidBlocks::new(items, transactions, offsets, tids);
        rows.load(flights.kernels(), flights.lane(), &lists)?;
        Ok((Arc::new(rows), bytes as u64))
    }
}

impl Staged {
    /// Pinned memory for lists: the memory `there` if it is large enough, or new memory.
    fn with_room<'a>(
        there: &'a mut Option<Self>,
        memory: &Arc<Memory>,
        offsets: usize,
        tids: usize,
    ) -> Result<&'a mut Self, DeviceError> {
        let is_enough =
            |staged: &Self| staged.offsets.len() >= offsets && staged.tids.len() >= tids;
        let staged = match there.take().filter(is_enough) {
            Some(staged) => staged,
            None => {
                let offsets = memory.pinned_buffer(offsets)?;
                Self { offsets, tids: memory.pinned_buffer(tids)? }
            }
        };
        Ok(there.insert(staged))
    }
}

/// Whether `room` suffices for rows of the limits `wanted`.
fn holds(room: &RowLimits, wanted: &RowLimits) -> bool {
    room.items >= wanted.items
        && room.transactions >= wanted.transactions
        && room.tids >= wanted.tids
}

/// Tasks over batmaps.
#[derive(Debug)]
struct MapFlights {
    window: WindowFlights<MapPairs, DeviceMaps>,
    isa: Isa,
}

impl MapFlights {
    fn open(device: &Device, open: &OpenFlights) -> Result<Self, DeviceError> {
        let window = WindowFlights::open(device, open, open.limits(MAP_PAIRS_MIN))?;
        Ok(Self { window, isa: open.isa })
    }

    fn submit(&mut self, data: &VerticalData, tiles: &[Tile]) -> Result<(), DeviceError> {
        let maps = data.maps(self.isa);
        let wanted = DeviceMaps::bytes_of(maps) as u64;
        self.window.check(wanted, MAP_BYTES_MAX)?;
        let (maps, bytes) = self.window.hold(data.version(), |_, memory, used| {
            // Frees the memory of the previous data first.
            drop(used);
            Ok((DeviceMaps::upload(memory, maps)?, wanted))
        })?;
        let job = MapJob { tiles, maps: &maps, least: data.least(), blocks_max: BLOCKS_MAX };
        self.window.flights.submit(&job, bytes)
    }
}

/// Tasks over transactions.
#[derive(Debug)]
struct SparseFlights {
    window: WindowFlights<RowPairs, SparseRows>,
    /// The strips of a task, kept for its memory.
    strips: Vec<Strip>,
}

impl SparseFlights {
    fn open(device: &Device, open: &OpenFlights) -> Result<Self, DeviceError> {
        let PairLimits { tiles: strips, pairs } = open.limits(STRIP_WIDTH as usize);
        let limits = RowPairLimits { strips, width: STRIP_WIDTH, pairs };
        Ok(Self { window: WindowFlights::open(device, open, limits)?, strips: Vec::new() })
    }

    fn submit(&mut self, data: &VerticalData, tiles: &[Tile]) -> Result<(), DeviceError> {
        let (rows, bytes) = self.window.hold(data.version(), |_, memory, used| {
            // Frees the memory of the previous data first.
            drop(used);
            let rows = SparseRows::upload(memory, data.lists(), data.transactions())?;
            let bytes = rows.bytes() as u64;
            Ok((rows, bytes))
        })?;
        self.strips.clear();
        self.strips.extend(tiles.iter().copied().map(strip_of_tile));
        let job = RowJob { strips: &self.strips, rows: &rows, least: data.least() };
        self.window.flights.submit(&job, bytes)
    }
}
