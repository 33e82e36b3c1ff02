//! Source of tables in files that bring their columns.
//!
//! ```text
//! file ──► a decoded part ──► slices of limited bytes ──► batch
//! ```
//!
//! Files are read one after the other. The first file gives the columns, and each later file has to
//! have these columns, too.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel_engine::memory::{MemoryBudget, Reservation};
use trommel_engine::operator::{
    Counters, NamedInputs, OperatorError, Output, Progress, Source, SourceFlow,
};

use super::guard::guarded;
use crate::shared::files::FileId;
use crate::source::read::error::{ReadError, TableError};
use crate::source::read::files::input::Inputs;
use crate::source::read::files::paths::Place;
use crate::source::read::files::raw::open;

/// Bytes of the texts of a slice, unless one row has more.
const SLICE_BYTES: usize = 16 << 20;

/// Bytes of texts for which a worker has memory before it begins.
const RESERVED_BYTES: usize = 2 << 20;

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
    /// The next rows; `None` at the end. Texts may be views, which become plain texts in slices.
    fn next(&mut self) -> Result<Option<RecordBatch>, TableError>;
    /// Bytes of the file so far.
    fn bytes(&self) -> u64;
    /// Number of blocks of rows that have not been read; 0 if tables of the format are not divided.
    fn blocks(&self) -> usize {
        0
    }
    /// Takes the next block of rows for this number of workers: tables of some columns each, in the
    /// order of the columns, whose memory is reserved. `None` if no block is left.
    fn block(&mut self, _workers: usize) -> Result<Option<Vec<TablePart>>, TableError> {
        unreachable!("tables of this format are not divided")
    }
    /// Passes over the next block.
    fn pass_block(&mut self) {}
}

/// Sends the rows of tables to workers.
pub(crate) trait Cutter: Send {
    /// Sends the next block of rows of a table.
    ///
    /// # Errors
    /// If the file is damaged, or if there is no memory for a block although no other block is
    /// under way.
    fn cut(
        &mut self,
        table: &mut dyn Table,
        path: &Arc<str>,
        out: &mut Output,
    ) -> Result<Cutting, TableError>;
}

/// Outcome of [`Cutter::cut`].
pub(crate) enum Cutting {
    /// A block was sent.
    Sent,
    /// There is no memory for a block while other blocks are being read: call again after this
    /// time.
    Wait(Duration),
    /// The table has no rows left.
    End,
}

/// Some columns of a block of rows of a table.
pub(crate) struct TablePart {
    pub(crate) table: Box<dyn Table>,
    /// The columns of the part, as places among the columns that are read.
    pub(crate) columns: Range<usize>,
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

/// Decodes a table into batches of plain texts.
pub(crate) struct Decoder {
    table: Box<dyn Table>,
    /// The decoded columns.
    schema: SchemaRef,
    /// Maximum rows of a batch.
    batch: usize,
    /// Decoded rows that are not yet in a batch.
    rows: Option<RecordBatch>,
    /// Memory for the texts of a batch.
    room: Reservation,
}

impl Decoder {
    /// A decoder of `table`; the batches have the columns `schema`.
    pub(crate) fn new(table: Box<dyn Table>, schema: SchemaRef, opening: &Opening) -> Self {
        let room = opening.memory.reservation();
        Self { table, schema, batch: opening.batch, rows: None, room }
    }

    /// Reserves memory for the texts of some rows before decoding begins.
    pub(crate) fn reserve(&mut self) -> Result<(), TableError> {
        self.room.resize(RESERVED_BYTES).map_err(TableError::Memory)
    }

    pub(crate) fn table(&mut self) -> &mut dyn Table {
        &mut *self.table
    }

    /// Bytes of the file so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// The next rows, and the bytes of their texts; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(RecordBatch, usize)>, TableError> {
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
        Ok(Some((plain, bytes)))
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

/// Reads tables.
pub(crate) struct TableSource {
    inputs: Inputs,
    left: std::vec::IntoIter<Place>,
    open_as: OpenTable,
    opening: Opening,
    columns: Columns,
    open: Option<Decoder>,
    bytes_closed: u64,
    bytes_total: Option<u64>,
    /// The part that sends parts of tables to workers; `None` if this thread decodes.
    division: Option<Box<dyn Cutter>>,
}

impl TableSource {
    /// Reads these columns of the tables at `places`.
    pub(crate) fn new(
        inputs: Inputs,
        (places, bytes_total): (Vec<Place>, Option<u64>),
        (open_as, opening): (OpenTable, Opening),
        columns: Columns,
    ) -> Self {
        Self {
            inputs,
            left: places.into_iter(),
            open_as,
            opening,
            columns,
            open: None,
            bytes_closed: 0,
            bytes_total,
            division: None,
        }
    }

    /// Sends parts of tables to workers instead of rows.
    pub(crate) fn divided(self, cutter: impl Cutter + 'static) -> Self {
        Self { division: Some(Box::new(cutter)), ..self }
    }

    /// Opens the next table; false if none is left.
    fn open_next(&mut self) -> Result<bool, ReadError> {
        let Some(place) = self.left.next() else { return Ok(false) };
        let path = place.name();
        self.inputs.set_path(Arc::clone(&path));
        let opened = open_table(&place, self.open_as, &self.opening);
        match opened {
            Ok((id, _)) if self.inputs.is_output(&id) => {
                self.inputs.leave_out_always(&ReadError::Output { path });
            }
            Ok((_, mut table)) => match self.choose(&mut *table) {
                Ok(()) => {
                    self.inputs.count_file();
                    let read = Arc::clone(&self.columns.read);
                    self.open = Some(Decoder::new(table, read, &self.opening));
                }
                Err(source) => self.inputs.leave_out(ReadError::Table { path, source })?,
            },
            Err(error) => self.inputs.leave_out(error)?,
        }
        Ok(true)
    }

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
        let Columns { read, named, are_chosen, .. } = &self.columns;
        let places: Vec<usize> = read.fields().iter().map(&place).collect::<Result<_, _>>()?;
        // A table that lacks a named column is left out, even if no stage needs that column.
        let named: Vec<usize> = named.fields().iter().map(&place).collect::<Result<_, _>>()?;
        let named: HashSet<&String> =
            named.into_iter().map(|place| found.field(place).name()).collect();
        let more = found.fields().iter().find(|field| !named.contains(field.name()));
        if let Some(more) = more.filter(|_| !are_chosen) {
            return Err(TableError::More { name: more.name().clone() });
        }
        guarded(|| {
            table.project(&places)?;
            table.narrow(&self.columns.conditions)
        })
    }

    /// Sends the next rows or the next parts of the open table. Returns a pause if the next call
    /// has to wait.
    fn advance(&mut self, out: &mut Output) -> Result<Option<Duration>, ReadError> {
        let Some(decoder) = &mut self.open else { return Ok(None) };
        let went_on = match &mut self.division {
            None => match decoder.next() {
                Ok(rows) => Ok(rows.map(|(rows, _)| out.send(rows))),
                Err(error) => Err(error),
            },
            Some(cutter) => match cutter.cut(decoder.table(), &self.inputs.path(), out) {
                Ok(Cutting::Wait(pause)) => return Ok(Some(pause)),
                Ok(Cutting::Sent) => Ok(Some(())),
                Ok(Cutting::End) => Ok(None),
                Err(error) => Err(error),
            },
        };
        match went_on {
            Ok(Some(())) => {}
            Ok(None) => self.close(),
            Err(source) => {
                self.close();
                let path = self.inputs.path();
                self.inputs.leave_out(ReadError::Table { path, source })?;
            }
        }
        Ok(None)
    }

    fn close(&mut self) {
        self.bytes_closed += self.open.take().map_or(0, |decoder| decoder.bytes());
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
            if let Some(pause) = self.advance(out)? {
                return Ok(SourceFlow::Idle(pause));
            }
        } else if self.inputs.is_stopped() || !self.open_next()? {
            self.inputs.stop();
            return Ok(SourceFlow::Finished);
        }
        Ok(SourceFlow::HaveOutput)
    }

    fn stop(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        // Rows that were decoded before the stop are still sent.
        let has_rows = self.open.as_ref().is_some_and(|decoder| decoder.rows.is_some());
        if !has_rows {
            self.close();
        }
        self.inputs.stop();
        self.next(out)
    }

    fn progress(&self) -> Progress {
        let open = self.open.as_ref().map_or(0, Decoder::bytes);
        Progress { bytes: self.bytes_closed + open, bytes_total: self.bytes_total }
    }

    fn counters(&self) -> Counters {
        self.inputs.counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.inputs.named()
    }
}
