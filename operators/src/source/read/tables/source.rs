//! Source of tables in files that bring their columns.
//!
//! ```text
//! file ──► a decoded part ──► slices of limited bytes ──► batch
//! ```
//!
//! Tables, or pieces of tables, are read one after the other. The first file gives the columns, and
//! each later file has to have these columns, too.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, mem, vec};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel_engine::memory::{MemoryBudget, Reservation};
use trommel_engine::operator::{
    Counters, NamedInputs, OperatorError, Output, Outputs, Progress, Source, SourceFlow,
};

use super::guard::guarded;
use crate::shared::files::FileId;
use crate::source::read::error::{ReadError, TableError};
use crate::source::read::files::input::Inputs;
use crate::source::read::files::paths::Place;
use crate::source::read::files::raw::open;

/// Bytes of the texts of a slice, unless one row has more.
const SLICE_BYTES: usize = 16 << 20;

/// Bytes of texts for which a reader has memory before it begins.
const RESERVED_BYTES: usize = 2 << 20;
/// Bytes of rows that are decoded before the earlier pieces of their table have been read.
const HELD_BYTES: usize = 32 << 20;
/// Pause before the next look whether earlier pieces have been read.
const TURN_PAUSE: Duration = Duration::from_micros(100);

/// An open table.
pub(crate) trait Table: Send {
    /// The columns of the table.
    fn schema(&self) -> &SchemaRef;
    /// From now on, decodes only the columns at these places, in this order.
    fn project(&mut self, places: &[usize]) -> Result<(), TableError>;
    /// Leaves out blocks of rows whose bounds show that no row makes all conditions true.
    fn narrow(&mut self, _conditions: &[String]) -> Result<(), TableError> {
        Ok(())
    }
    /// Reserves memory for the next block of rows. A call that fails for want of memory may be
    /// repeated, and so may such a call of [`Self::next`], which reserves what is missing.
    fn reserve(&mut self) -> Result<(), TableError>;
    /// The next rows; `None` at the end. Texts may be views, which become plain texts in slices.
    fn next(&mut self) -> Result<Option<RecordBatch>, TableError>;
    /// Bytes of the file so far.
    fn bytes(&self) -> u64;
    /// Number of blocks of rows that have not been read; 0 if tables of the format are not cut.
    fn blocks(&self) -> usize {
        0
    }
    /// Reads what all blocks need.
    fn begin_blocks(&mut self) -> Result<(), TableError> {
        Ok(())
    }
    /// Takes the next blocks of this number of bytes in the file, or a single larger block, as a
    /// table of their own; `None` if no block is left.
    fn take_blocks(&mut self, _bytes: u64) -> Option<Box<dyn Table>> {
        None
    }
}

/// The number of blocks at the front that a reader takes together: blocks of at most `bytes` bytes
/// in total, or a single block.
pub(crate) fn blocks_within(sizes: impl Iterator<Item = u64>, bytes: u64) -> usize {
    let sums = sizes.scan(0_u64, |sum, size| {
        *sum = sum.saturating_add(size);
        Some(*sum)
    });
    sums.take_while(|&sum| sum <= bytes).count().max(1)
}

/// The arguments with which a table is opened.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    /// Maximum rows of a batch.
    pub(crate) batch: usize,
    pub(crate) memory: MemoryBudget,
}

/// Opens a regular file as a table.
pub(crate) type OpenTable = fn(File, &Opening) -> Result<Box<dyn Table>, TableError>;

/// Opens the table at `place`.
pub(crate) fn open_table(
    place: &Place,
    open_as: OpenTable,
    opening: &Opening,
) -> Result<(FileId, Box<dyn Table>), ReadError> {
    let path = place.name();
    let refused = |source| ReadError::Table { path: Arc::clone(&path), source };
    let Place::File(named) = place else { return Err(refused(TableError::NotRegular)) };
    let opened = open(named).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) =
        opened.map_err(|source| ReadError::Open { path: Arc::clone(&path), source })?;
    if metadata.is_dir() {
        let source = io::ErrorKind::IsADirectory.into();
        return Err(ReadError::Open { path, source });
    }
    if !metadata.is_file() {
        return Err(refused(TableError::NotRegular));
    }
    let table = guarded(|| open_as(file, opening)).map_err(refused)?;
    Ok((FileId::of(&metadata), table))
}

/// The columns of a table. Each column may have nulls.
pub(crate) fn columns_of(table: &dyn Table) -> Schema {
    let fields = table.schema().fields().iter();
    let nullable = fields.map(|field| Field::new(field.name(), field.data_type().clone(), true));
    Schema::new(nullable.collect::<Vec<_>>())
}

/// Columns of tables.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    /// The columns that are read.
    pub(crate) read: SchemaRef,
    /// The columns that each table has.
    pub(crate) named: SchemaRef,
    /// Whether a table may have further columns.
    pub(crate) are_chosen: bool,
    /// Expressions; a row is needed only if every expression is true for the row.
    pub(crate) conditions: Vec<String>,
}

impl Columns {
    /// Chooses the columns of a table.
    fn choose(&self, table: &mut dyn Table) -> Result<(), TableError> {
        let found = Arc::clone(table.schema());
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        for (place, field) in found.fields().iter().enumerate() {
            by_name.entry(field.name()).or_insert(place);
        }
        let place = |field: &Arc<Field>| {
            let place = by_name.get(field.name().as_str()).copied();
            let is_same = |place: &usize| found.field(*place).data_type() == field.data_type();
            place.filter(is_same).ok_or_else(|| TableError::Missing {
                name: field.name().clone(),
                expected: field.data_type().to_string(),
            })
        };
        let places: Vec<usize> = self.read.fields().iter().map(&place).collect::<Result<_, _>>()?;
        // A table that lacks a named column is left out, even if no stage needs that column.
        let named: Vec<usize> = self.named.fields().iter().map(&place).collect::<Result<_, _>>()?;
        let named: HashSet<&String> =
            named.into_iter().map(|place| found.field(place).name()).collect();
        let more = found.fields().iter().find(|field| !named.contains(field.name()));
        if let Some(more) = more.filter(|_| !self.are_chosen) {
            return Err(TableError::More { name: more.name().clone() });
        }
        guarded(|| {
            table.project(&places)?;
            table.narrow(&self.conditions)
        })
    }
}

/// What the readers of tables know about all tables.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) open_as: OpenTable,
    pub(crate) opening: Opening,
    pub(crate) columns: Columns,
    /// Whether the run goes on after a table that is damaged.
    pub(crate) goes_on: bool,
}

impl Tables {
    /// Opens the table at `place`, to be cut into pieces. `None` if the table has one piece or no
    /// reader can use the table, for which the reader of the whole table gives the reason.
    pub(crate) fn open_cut(&self, place: &Place, outputs: &Outputs) -> Option<CutTable> {
        let (id, mut table) = open_table(place, self.open_as, &self.opening).ok()?;
        if outputs.contains(&id.key()) {
            return None;
        }
        self.columns.choose(&mut *table).ok()?;
        if table.blocks() < 2 {
            return None;
        }
        guarded(|| table.begin_blocks()).ok()?;
        let is_damaged = self.goes_on.then(Arc::default);
        Some(CutTable { path: place.name(), table, has_begun: false, is_damaged })
    }

    fn decoder(&self, table: Box<dyn Table>) -> Decoder {
        Decoder::new(table, Arc::clone(&self.columns.read), &self.opening)
    }
}

/// A table that is cut into pieces.
pub(crate) struct CutTable {
    path: Arc<str>,
    table: Box<dyn Table>,
    /// Whether a piece has been taken.
    has_begun: bool,
    /// Whether a reader has found the table damaged, if the run goes on then.
    is_damaged: Option<Arc<AtomicBool>>,
}

impl CutTable {
    /// The next piece, of about this number of bytes in the file; `None` at the end.
    pub(crate) fn next(&mut self, tables: &Tables, bytes: u64) -> Option<OpenPiece> {
        let table = self.table.take_blocks(bytes)?;
        let is_first = !mem::replace(&mut self.has_begun, true);
        let (path, is_damaged) = (Arc::clone(&self.path), self.is_damaged.clone());
        Some(OpenPiece { path, is_first, is_damaged, decoder: tables.decoder(table) })
    }
}

/// A table, or a piece of a table, that is being read.
pub(crate) struct OpenPiece {
    path: Arc<str>,
    /// Whether the piece is the first one of its table.
    is_first: bool,
    /// If the rows after a damaged piece are left out, whether such a piece was found.
    is_damaged: Option<Arc<AtomicBool>>,
    decoder: Decoder,
}

impl OpenPiece {
    /// Reserves memory for the first block. Returns false if there is no memory and `may_wait`
    /// says that other readers give memory back. A fault is kept until the rows are read.
    pub(crate) fn reserve(&mut self, may_wait: bool) -> bool {
        match self.decoder.reserve(may_wait) {
            Err(TableError::Memory(_)) if may_wait => return false,
            Err(error) => self.decoder.failed = Some(error),
            Ok(()) => {}
        }
        true
    }

    fn is_left_out(&self) -> bool {
        self.is_damaged.as_ref().is_some_and(|is_damaged| is_damaged.load(Ordering::Acquire))
    }
}

/// Decodes a table into batches of plain texts.
struct Decoder {
    table: Box<dyn Table>,
    /// The decoded columns.
    schema: SchemaRef,
    /// Maximum rows of a batch.
    batch: usize,
    /// Decoded rows that are not yet in a batch.
    rows: Option<RecordBatch>,
    /// Memory for the texts of a batch.
    room: Reservation,
    /// Batches that wait for earlier pieces of the table, and the memory of these batches.
    held: VecDeque<RecordBatch>,
    held_bytes: usize,
    held_room: Reservation,
    /// The fault after the rows.
    failed: Option<TableError>,
}

impl Decoder {
    /// A decoder of `table`; the batches have the columns `schema`.
    fn new(table: Box<dyn Table>, schema: SchemaRef, opening: &Opening) -> Self {
        let (room, held_room) = (opening.memory.reservation(), opening.memory.reservation());
        let batch = opening.batch;
        let (rows, held, held_bytes, failed) = (None, VecDeque::new(), 0, None);
        Self { table, schema, batch, rows, room, held, held_bytes, held_room, failed }
    }

    /// Reserves memory for the first block before decoding begins, and memory for some texts. The
    /// first reader, which cannot wait for other readers, can do without the latter.
    fn reserve(&mut self, may_wait: bool) -> Result<(), TableError> {
        let texts = self.room.resize(RESERVED_BYTES).map_err(TableError::Memory);
        if may_wait {
            texts?;
        }
        guarded(|| self.table.reserve())
    }

    /// Whether there are rows that were decoded.
    fn has_rows(&self) -> bool {
        self.rows.is_some() || !self.held.is_empty()
    }

    /// Decodes rows that cannot be sent yet. Returns false if no further rows can be decoded now.
    fn hold(&mut self) -> bool {
        if self.failed.is_some() || self.held_bytes >= HELD_BYTES {
            return false;
        }
        match self.decode() {
            Ok(Some(rows)) => {
                self.held_bytes += rows.get_array_memory_size();
                self.held.push_back(rows);
                if self.held_room.resize(self.held_bytes).is_err() {
                    self.held_bytes = HELD_BYTES;
                }
                return true;
            }
            Ok(None) | Err(TableError::Memory(_)) => {}
            Err(error) => self.failed = Some(error),
        }
        false
    }

    /// The next rows; `None` at the end.
    fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        if let Some(rows) = self.held.pop_front() {
            return Ok(Some(rows));
        }
        // A smaller reservation cannot fail.
        let _ = self.held_room.resize(0);
        self.decode()
    }

    fn decode(&mut self) -> Result<Option<RecordBatch>, TableError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.rows.is_none() {
            self.rows = guarded(|| self.table.next())?;
        }
        let Some(rows) = &self.rows else { return Ok(None) };
        let mut slice = rows.slice(0, rows.num_rows().min(self.batch));
        let mut bytes = text_bytes(&slice);
        while bytes > self.room.bytes() {
            let is_one = slice.num_rows() == 1;
            if bytes <= SLICE_BYTES || is_one {
                match self.room.resize(bytes) {
                    Ok(()) => break,
                    Err(full) if is_one => return Err(TableError::Memory(full)),
                    // A batch of fewer rows needs less memory, so a smaller batch is tried.
                    Err(_) => {}
                }
            }
            slice = slice.slice(0, slice.num_rows() / 2);
            bytes = text_bytes(&slice);
        }
        let plain = plain(&slice, &self.schema)?;
        let (sent, all) = (slice.num_rows(), rows.num_rows());
        self.rows = (sent < all).then(|| rows.slice(sent, all - sent));
        Ok(Some(plain))
    }
}

/// The rows with texts in the types of `schema`.
fn plain(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, TableError> {
    let column = |(column, field): (&ArrayRef, &Arc<Field>)| {
        if column.data_type() == field.data_type() {
            Ok(Arc::clone(column))
        } else {
            cast(column, field.data_type())
        }
    };
    let columns = rows.columns().iter().zip(schema.fields()).map(column);
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    let made = columns.collect::<Result<Vec<_>, _>>().and_then(|columns| {
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
    });
    made.map_err(|error| TableError::Decode(error.into()))
}

/// Reads tables and pieces of tables.
pub(crate) struct TableSource {
    inputs: Inputs,
    tables: Tables,
    /// The tables of the piece of the input that have not been opened.
    left: vec::IntoIter<Place>,
    open: Option<OpenPiece>,
    bytes_closed: u64,
    /// Whether all earlier pieces of the input have been read.
    is_first: bool,
}

impl TableSource {
    pub(crate) fn new(inputs: Inputs, tables: Tables) -> Self {
        let (left, open) = (Vec::new().into_iter(), None);
        Self { inputs, tables, left, open, bytes_closed: 0, is_first: false }
    }

    /// Begins a piece of the input after all tables have been read.
    pub(crate) fn begin_files(&mut self, piece: u64, places: Vec<Place>) {
        self.inputs.add_files(piece, Vec::new());
        self.left = places.into_iter();
    }

    /// As [`Self::begin_files`], for a piece of a table.
    pub(crate) fn begin_piece(&mut self, piece: u64, open: OpenPiece) {
        self.begin_files(piece, Vec::new());
        self.inputs.set_path(Arc::clone(&open.path));
        if open.is_first {
            self.inputs.count_file();
        }
        self.open = Some(open);
    }

    /// Says whether all earlier pieces of the input have been read.
    pub(crate) fn set_first(&mut self, is_first: bool) {
        self.is_first = is_first;
    }

    pub(crate) fn inputs_mut(&mut self) -> &mut Inputs {
        &mut self.inputs
    }

    /// Opens the next table; false if none is left.
    fn open_next(&mut self) -> Result<bool, ReadError> {
        let Some(place) = self.left.next() else { return Ok(false) };
        let path = place.name();
        self.inputs.set_path(Arc::clone(&path));
        let Tables { open_as, opening, columns, .. } = &self.tables;
        match open_table(&place, *open_as, opening) {
            Ok((id, _)) if self.inputs.is_output(&id) => {
                self.inputs.leave_out_always(&ReadError::Output { path });
            }
            Ok((_, mut table)) => match columns.choose(&mut *table) {
                Ok(()) => {
                    self.inputs.count_file();
                    let decoder = self.tables.decoder(table);
                    self.open = Some(OpenPiece { path, is_first: true, is_damaged: None, decoder });
                }
                Err(source) => self.inputs.leave_out(ReadError::Table { path, source })?,
            },
            Err(error) => self.inputs.leave_out(error)?,
        }
        Ok(true)
    }

    /// Sends the next rows of the open table. Returns false if the table has to wait.
    fn advance(&mut self, out: &mut Output) -> Result<bool, ReadError> {
        let Some(open) = &mut self.open else { return Ok(true) };
        if open.is_damaged.is_some() && !self.is_first {
            // The rows are left out if an earlier piece of the table is damaged.
            return Ok(!self.inputs.is_stopped() && open.decoder.hold());
        }
        if open.is_left_out() {
            self.close();
            return Ok(true);
        }
        match open.decoder.next() {
            Ok(Some(rows)) => out.send(rows),
            Ok(None) => self.close(),
            // Earlier pieces give their memory back.
            Err(TableError::Memory(_)) if !self.is_first => return Ok(false),
            Err(source) => {
                if let Some(is_damaged) = &open.is_damaged {
                    is_damaged.store(true, Ordering::Release);
                }
                self.close();
                let path = self.inputs.path();
                self.inputs.leave_out(ReadError::Table { path, source })?;
            }
        }
        Ok(true)
    }

    fn close(&mut self) {
        self.bytes_closed += self.open.take().map_or(0, |open| open.decoder.table.bytes());
    }
}

/// Bytes of the texts behind views, as plain texts.
fn text_bytes(rows: &RecordBatch) -> usize {
    rows.columns().iter().map(|column| array_text_bytes(column)).sum()
}

fn array_text_bytes(array: &dyn Array) -> usize {
    // The length of a view is in its lower half.
    let sum = |views: &[u128]| -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half of the lower half")]
        views.iter().map(|&view| view as u32 as usize).sum()
    };
    match array.data_type() {
        DataType::Utf8View => sum(array.as_string_view().views()),
        DataType::BinaryView => sum(array.as_binary_view().views()),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let (offsets, len) = (lists.value_offsets(), lists.len());
            let (begin, end) = (offsets[0].unsigned_abs(), offsets[len].unsigned_abs());
            array_text_bytes(&lists.values().slice(begin as usize, (end - begin) as usize))
        }
        DataType::Struct(_) => {
            array.as_struct().columns().iter().map(|column| array_text_bytes(column)).sum()
        }
        _ => 0,
    }
}

impl Source for TableSource {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        if self.open.is_some() {
            if !self.advance(out)? {
                return Ok(SourceFlow::Idle(TURN_PAUSE));
            }
        } else if self.inputs.is_stopped() || !self.open_next()? {
            return Ok(SourceFlow::Finished);
        }
        Ok(SourceFlow::HaveOutput)
    }

    fn stop(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        // Rows that were decoded before the stop are still sent.
        if !self.open.as_ref().is_some_and(|open| open.decoder.has_rows()) {
            self.close();
        }
        self.inputs.stop();
        self.next(out)
    }

    fn progress(&self) -> Progress {
        let open = self.open.as_ref().map_or(0, |open| open.decoder.table.bytes());
        Progress { bytes: self.bytes_closed + open, ..self.inputs.progress() }
    }

    fn counters(&self) -> Counters {
        self.inputs.counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.inputs.named()
    }
}
