//! Source of tables in files that bring their columns.
//!
//! ```text
//! file ──► a decoded part ──► slices of limited bytes ──► batch
//! ```
//!
//! Files are read one after the other. The columns are those of the first one; another file has to
//! have them too.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel_engine::memory::{MemoryBudget, Reservation};
use trommel_engine::operator::{
    Counters, NamedInputs, OperatorError, Output, Progress, Source, SourceFlow,
};

use super::error::{ReadError, TableError};
use super::guard::guarded;
use super::input::Inputs;
use super::paths::Place;
use super::raw::open;
use crate::files::FileId;

/// Bytes of the texts of a slice, unless one row has more.
const SLICE_BYTES: usize = 16 << 20;

/// An open table.
pub(super) trait Table: Send {
    /// Its columns.
    fn schema(&self) -> &SchemaRef;
    /// Decodes the columns at these places, in this order, from now on.
    fn project(&mut self, places: &[usize]) -> Result<(), TableError>;
    /// Leaves blocks of rows out of which no row makes the conditions true, where their bounds
    /// show it.
    fn narrow(&mut self, _conditions: &[String]) -> Result<(), TableError> {
        Ok(())
    }
    /// The next rows; `None` at the end. Texts may be views, which become plain texts in slices.
    fn next(&mut self) -> Result<Option<RecordBatch>, TableError>;
    /// Bytes of the file so far.
    fn bytes(&self) -> u64;
}

/// The arguments with which a table is opened.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    /// Maximum rows of a batch.
    pub(super) batch: usize,
    pub(super) memory: MemoryBudget,
}

/// Opens a regular file as a table.
pub(super) type OpenTable = fn(File, &Opening) -> Result<Box<dyn Table>, TableError>;

/// Opens the table at `place`.
pub(super) fn open_table(
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

/// The columns of a table, each of which may have nulls.
pub(super) fn columns_of(table: &dyn Table) -> Schema {
    let fields = table.schema().fields().iter();
    let nullable = fields.map(|field| Field::new(field.name(), field.data_type().clone(), true));
    Schema::new(nullable.collect::<Vec<_>>())
}

/// Columns of tables.
pub(super) struct Columns {
    /// The columns that are read.
    pub(super) read: SchemaRef,
    /// The columns that each table has.
    pub(super) named: SchemaRef,
    /// Whether a table may have further columns.
    pub(super) are_chosen: bool,
    /// Expressions of which a row that is needed makes each one true.
    pub(super) conditions: Vec<String>,
}

/// Reads tables.
pub(super) struct TableSource {
    inputs: Inputs,
    left: std::vec::IntoIter<Place>,
    open_as: OpenTable,
    opening: Opening,
    columns: Columns,
    table: Option<Box<dyn Table>>,
    /// Rows that have been decoded and not sent.
    rows: Option<RecordBatch>,
    /// Memory for the texts of a slice.
    room: Reservation,
    bytes_closed: u64,
    bytes_total: Option<u64>,
}

impl TableSource {
    /// Reads these columns of the tables at `places`.
    pub(super) fn new(
        inputs: Inputs,
        (places, bytes_total): (Vec<Place>, Option<u64>),
        (open_as, opening): (OpenTable, Opening),
        columns: Columns,
    ) -> Self {
        Self {
            inputs,
            left: places.into_iter(),
            open_as,
            room: opening.memory.reservation(),
            opening,
            columns,
            table: None,
            rows: None,
            bytes_closed: 0,
            bytes_total,
        }
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
                    self.table = Some(table);
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
        // A table that lacks a column is left out even if nobody looks at that column.
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

    /// Decodes the next rows of the open table.
    fn decode(&mut self) -> Result<(), ReadError> {
        let Some(table) = &mut self.table else { return Ok(()) };
        match guarded(|| table.next()) {
            Ok(Some(rows)) => self.rows = Some(rows),
            Ok(None) => self.close(),
            Err(source) => {
                self.close();
                let path = self.inputs.path();
                self.inputs.leave_out(ReadError::Table { path, source })?;
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.bytes_closed += self.table.take().map_or(0, |table| table.bytes());
    }

    /// Sends a slice of the decoded rows.
    fn send(&mut self, rows: RecordBatch, out: &mut Output) -> Result<(), ReadError> {
        let mut slice = rows.slice(0, rows.num_rows().min(self.opening.batch));
        let mut bytes = text_bytes(&slice);
        while bytes > SLICE_BYTES && slice.num_rows() > 1 {
            slice = slice.slice(0, slice.num_rows() / 2);
            bytes = text_bytes(&slice);
        }
        let sent = slice.num_rows();
        let plain = self.plain(&slice, bytes);
        let path = self.inputs.path();
        match plain {
            Ok(plain) => {
                out.send(plain);
                if sent < rows.num_rows() {
                    self.rows = Some(rows.slice(sent, rows.num_rows() - sent));
                }
            }
            Err(source) => {
                self.close();
                self.inputs.leave_out(ReadError::Table { path, source })?;
            }
        }
        Ok(())
    }

    /// The rows with texts in the form that the columns have.
    fn plain(&mut self, rows: &RecordBatch, bytes: usize) -> Result<RecordBatch, TableError> {
        self.room.resize(bytes).map_err(TableError::Memory)?;
        let column = |(column, field): (&ArrayRef, &Arc<Field>)| {
            if column.data_type() == field.data_type() {
                Ok(Arc::clone(column))
            } else {
                cast(column, field.data_type())
            }
        };
        let columns = rows.columns().iter().zip(self.columns.read.fields()).map(column);
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let made = columns.collect::<Result<Vec<_>, _>>().and_then(|columns| {
            RecordBatch::try_new_with_options(Arc::clone(&self.columns.read), columns, &options)
        });
        made.map_err(|error| TableError::Decode(error.into()))
    }
}

/// Bytes of the texts of views, which become plain texts.
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
        if let Some(rows) = self.rows.take() {
            self.send(rows, out)?;
        } else if self.table.is_some() {
            self.decode()?;
        } else if self.inputs.is_stopped() || !self.open_next()? {
            self.inputs.stop();
            return Ok(SourceFlow::Finished);
        }
        Ok(SourceFlow::HaveOutput)
    }

    fn stop(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.close();
        self.inputs.stop();
        self.next(out)
    }

    fn progress(&self) -> Progress {
        let open = self.table.as_ref().map_or(0, |table| table.bytes());
        Progress { bytes: self.bytes_closed + open, bytes_total: self.bytes_total }
    }

    fn counters(&self) -> Counters {
        self.inputs.counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.inputs.named()
    }
}
