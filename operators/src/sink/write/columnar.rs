//! Encoding of rows as columns: Parquet and Arrow.
//!
//! ```text
//! batches ──► parquet: pages of a row group in memory ──► bytes, when the group is full
//!        └──► arrow: bytes of each batch
//! ```
//!
//! An encoder writes into a vector of its own. The bytes then move to the buffer of the sink, so a
//! pipe takes the bytes when the pipe has room, and a file gets its name as with all formats. The
//! encoders count offsets by themselves and never go back.
//!
//! The pages of a row group stay in memory until the group is full, and take their memory once more
//! while they become bytes. Both are reserved from the budget of the pipeline before; a group ends
//! early if the budget is used up.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_cast::cast;
use arrow_ipc::Block;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use trommel_engine::memory::{MemoryFull, Reservation};

use super::WriteError;
use super::table::slice_bytes;

/// Level of zstd, its own default.
const ZSTD_LEVEL: i32 = 3;
/// Bytes of rows that the encoder gets at once. The memory of the encoder is checked after each
/// piece.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes per column of a row group for the metadata and the page index, which are kept until the
/// end of the file.
const COLUMN_METADATA_BYTES: usize = 1 << 10;

/// Format of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnFormat {
    /// Parquet with row groups of `row_group_bytes` bytes.
    Parquet { row_group_bytes: usize },
    /// Arrow's file, which has a table of its batches at the end.
    ArrowFile,
    /// Arrow's stream, which a reader takes batch by batch.
    ArrowStream,
}

/// Encoder of the rows of one file.
pub(super) struct Columnar {
    /// Schema of the file.
    schema: SchemaRef,
    encoder: Encoder,
    /// Memory of the pipeline for the rows and metadata that the encoder keeps.
    memory: Reservation,
}

enum Encoder {
    Parquet { writer: Box<ArrowWriter<Vec<u8>>>, row_group_bytes: usize },
    ArrowFile { writer: Box<FileWriter<Vec<u8>>>, batches: usize },
    ArrowStream(Box<StreamWriter<Vec<u8>>>),
}

/// Error of encoding columns.
#[derive(Debug, thiserror::Error)]
pub(super) enum ColumnarError {
    #[error(transparent)]
    Encode(#[from] ArrowError),
    #[error(transparent)]
    Memory(#[from] MemoryFull),
}

impl ColumnarError {
    /// This error as an error of writing the file `path`.
    pub(super) fn of_file(self, path: &str) -> WriteError {
        let path = path.to_owned();
        match self {
            Self::Encode(source) => WriteError::Encode { path, source },
            Self::Memory(source) => WriteError::Memory { path, source },
        }
    }
}

impl Columnar {
    /// Encoder of rows of `schema`. The format has to have all types of the schema: see
    /// [`ColumnFormat::has`].
    pub(super) fn new(
        format: ColumnFormat,
        schema: &SchemaRef,
        memory: Reservation,
    ) -> Result<Self, ArrowError> {
        let schema = format.schema(schema);
        let encoder = match format {
            ColumnFormat::Parquet { row_group_bytes } => {
                let level = ZstdLevel::try_new(ZSTD_LEVEL).expect("a level of zstd");
                // Only the bytes of a group end the group.
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(level))
                    .set_statistics_enabled(EnabledStatistics::Page)
                    .set_max_row_group_row_count(None)
                    .set_max_row_group_bytes(Some(row_group_bytes))
                    .set_created_by(concat!("trommel ", env!("CARGO_PKG_VERSION")).to_owned())
                    .build();
                let file = SchemaRef::clone(&schema);
                let writer = Box::new(ArrowWriter::try_new(Vec::new(), file, Some(properties))?);
                Encoder::Parquet { writer, row_group_bytes }
            }
            ColumnFormat::ArrowFile => {
                let writer = Box::new(FileWriter::try_new(Vec::new(), &schema)?);
                Encoder::ArrowFile { writer, batches: 0 }
            }
            ColumnFormat::ArrowStream => {
                Encoder::ArrowStream(Box::new(StreamWriter::try_new(Vec::new(), &schema)?))
            }
        };
        Ok(Self { schema, encoder, memory })
    }

    /// Encodes `rows`, and appends the complete bytes to `bytes`. Returns the number of rows in
    /// these bytes, which may include rows of earlier calls.
    pub(super) fn add(
        &mut self,
        rows: &RecordBatch,
        bytes: &mut Vec<u8>,
    ) -> Result<usize, ColumnarError> {
        let waiting = self.rows_waiting();
        let rows = self.in_schema(rows)?;
        let per_piece = match slice_bytes(&rows)? {
            0..=PIECE_BYTES => rows.num_rows().max(1),
            total => (rows.num_rows() / total.div_ceil(PIECE_BYTES)).max(1),
        };
        for start in (0..rows.num_rows()).step_by(per_piece) {
            let piece = rows.slice(start, per_piece.min(rows.num_rows() - start));
            self.encoder.write(&piece)?;
            if self.encoder.is_full() || self.reserve(bytes.len()).is_err() {
                self.encoder.end_group()?;
            }
            self.encoder.drain(bytes);
            self.reserve(bytes.len())?;
        }
        Ok(waiting + rows.num_rows() - self.rows_waiting())
    }

    /// Ends the file, and appends its last bytes to `bytes`. Returns the number of rows in these
    /// bytes.
    pub(super) fn finish(&mut self, bytes: &mut Vec<u8>) -> Result<usize, ArrowError> {
        let waiting = self.rows_waiting();
        match &mut self.encoder {
            Encoder::Parquet { writer, .. } => drop(writer.finish()?),
            Encoder::ArrowFile { writer, .. } => writer.finish()?,
            Encoder::ArrowStream(writer) => writer.finish()?,
        }
        self.encoder.drain(bytes);
        Ok(waiting)
    }

    /// Rows that are encoded and are not bytes yet.
    fn rows_waiting(&self) -> usize {
        match &self.encoder {
            Encoder::Parquet { writer, .. } => writer.in_progress_rows(),
            Encoder::ArrowFile { .. } | Encoder::ArrowStream(_) => 0,
        }
    }

    /// The rows, converted to the types of the file.
    fn in_schema(&self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let fields = self.schema.fields().iter().zip(rows.columns());
        let columns = fields.map(|(field, column)| match column.data_type() {
            same if same == field.data_type() => Ok(Arc::clone(column)),
            _ => cast(column, field.data_type()),
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, _>>()?;
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns)
    }

    /// Reserves memory for the rows and metadata that the encoder keeps, and for `bytes` bytes that
    /// the target has not taken.
    fn reserve(&mut self, bytes: usize) -> Result<(), MemoryFull> {
        self.memory.resize(bytes + self.encoder.kept_bytes(self.schema.fields().len()))
    }
}

impl Encoder {
    fn write(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Self::Parquet { writer, .. } => Ok(writer.write(rows)?),
            Self::ArrowFile { writer, batches } => {
                *batches += 1;
                writer.write(rows)
            }
            Self::ArrowStream(writer) => writer.write(rows),
        }
    }

    fn is_full(&self) -> bool {
        match self {
            Self::Parquet { writer, row_group_bytes } => {
                writer.in_progress_size() >= *row_group_bytes
            }
            Self::ArrowFile { .. } | Self::ArrowStream(_) => false,
        }
    }

    /// Turns the rows that the encoder keeps into bytes.
    fn end_group(&mut self) -> Result<(), ArrowError> {
        match self {
            Self::Parquet { writer, .. } => Ok(writer.flush()?),
            Self::ArrowFile { .. } | Self::ArrowStream(_) => Ok(()),
        }
    }

    /// Moves the encoded bytes to the end of `bytes`.
    fn drain(&mut self, bytes: &mut Vec<u8>) {
        let own = match self {
            Self::Parquet { writer, .. } => writer.inner_mut(),
            Self::ArrowFile { writer, .. } => writer.get_mut(),
            Self::ArrowStream(writer) => writer.get_mut(),
        };
        if bytes.is_empty() {
            std::mem::swap(own, bytes);
        } else {
            bytes.append(own);
        }
        // A row group has many bytes, and the next bytes follow much later, so the room is given
        // back.
        own.shrink_to(PIECE_BYTES);
    }

    /// Memory of the rows and of the metadata that the encoder keeps, for a file of this number of
    /// columns.
    fn kept_bytes(&self, columns: usize) -> usize {
        match self {
            // The pages of a group, and their copy while the pages become bytes.
            Self::Parquet { writer, .. } => {
                let groups = writer.flushed_row_groups().len();
                let metadata = groups * columns * COLUMN_METADATA_BYTES;
                writer.memory_size() + writer.in_progress_size() + metadata
            }
            Self::ArrowFile { batches, .. } => batches * size_of::<Block>(),
            Self::ArrowStream(_) => 0,
        }
    }
}

impl ColumnFormat {
    /// Whether the format has the type of `field`. An encoder only reports a missing type when the
    /// encoder gets rows, so a null is encoded.
    pub(super) fn has(self, field: &Field) -> bool {
        // The schema converter of Parquet panics if a type is a union.
        let is_refused = matches!(self, Self::Parquet { .. }) && has_union(field.data_type());
        let (schema, null) = null_row(field);
        !is_refused && self.new_null_file(&schema, null).is_ok()
    }

    fn new_null_file(self, schema: &SchemaRef, null: ArrayRef) -> Result<(), ColumnarError> {
        let rows = RecordBatch::try_new(SchemaRef::clone(schema), vec![null])?;
        let mut columnar = Columnar::new(self, schema, Reservation::default())?;
        let mut bytes = Vec::new();
        columnar.add(&rows, &mut bytes)?;
        columnar.finish(&mut bytes)?;
        Ok(())
    }

    /// Schema of the file of rows of `schema`. A file of Arrow has one dictionary per column, while
    /// batches have different dictionaries, so such a column becomes a column of its values.
    fn schema(self, schema: &SchemaRef) -> SchemaRef {
        if self != Self::ArrowFile {
            return SchemaRef::clone(schema);
        }
        let fields = schema.fields().iter().map(without_dictionaries);
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
    }
}

/// A column of the type of `field`, with one null. Values of a fixed size are made short: a format
/// has all sizes or none, and a null of the largest size would take gigabytes.
pub(super) fn null_row(field: &Field) -> (SchemaRef, ArrayRef) {
    let short = |found: &DataType| match found {
        DataType::FixedSizeBinary(_) => Some(DataType::FixedSizeBinary(1)),
        DataType::FixedSizeList(item, _) => Some(DataType::FixedSizeList(Arc::clone(item), 1)),
        _ => None,
    };
    let field = rebuilt(&Arc::new(field.clone().with_nullable(true)), &short);
    let null = new_null_array(field.data_type(), 1);
    (Arc::new(Schema::new(vec![field])), null)
}

/// The field, in which the type of the values replaces each dictionary.
fn without_dictionaries(field: &FieldRef) -> FieldRef {
    rebuilt(field, &|found| match found {
        DataType::Dictionary(_, value) => Some(value.as_ref().clone()),
        _ => None,
    })
}

/// The field, in which `change` replaces its type or types inside of its type.
fn rebuilt(field: &FieldRef, change: &impl Fn(&DataType) -> Option<DataType>) -> FieldRef {
    let inside = |field: &FieldRef| rebuilt(field, change);
    let changed = change(field.data_type());
    let rebuilt = match changed.as_ref().unwrap_or(field.data_type()) {
        DataType::List(item) => DataType::List(inside(item)),
        DataType::LargeList(item) => DataType::LargeList(inside(item)),
        DataType::ListView(item) => DataType::ListView(inside(item)),
        DataType::LargeListView(item) => DataType::LargeListView(inside(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inside(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(inside(entries), *sorted),
        DataType::RunEndEncoded(ends, values) => {
            DataType::RunEndEncoded(FieldRef::clone(ends), inside(values))
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inside).collect()),
        DataType::Union(fields, mode) => {
            let fields = fields.iter().map(|(id, field)| (id, inside(field)));
            DataType::Union(fields.collect(), *mode)
        }
        same => same.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(rebuilt))
}

fn has_union(data_type: &DataType) -> bool {
    match data_type {
        DataType::Union(..) => true,
        DataType::Dictionary(_, value) => has_union(value),
        DataType::Struct(fields) => fields.iter().any(|field| has_union(field.data_type())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::RunEndEncoded(_, item)
        | DataType::Map(item, _) => has_union(item.data_type()),
        _ => false,
    }
}
