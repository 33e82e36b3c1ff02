//! Format `parquet`: row groups one after the other.
//!
//! Before a row group is decoded, the sizes of the pages of its columns are added up, and memory is
//! asked for all pages without compression and for the values of a batch. A page that is small in
//! the file and too large in memory is therefore refused. Texts are decoded as views of their
//! pages: a dictionary of long texts needs a small number per row, and plain texts are made in
//! limited slices.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use ::parquet::file::reader::{ChunkReader, Length};
use ::parquet::file::statistics::Statistics;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader as _};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use bytes::Bytes;
use trommel_engine::memory::{MemoryBudget, Reservation};

use super::pages::{Pages, pages_of};
use super::source::{Opening, Table, blocks_within};
use crate::expressions::Bounds;
use crate::source::read::error::TableError;

/// Bytes of a value besides its page: a view, levels, and a place in the null mask.
const VALUE_BYTES: u64 = 24;

/// A file that several threads read, each with a position of its own.
#[derive(Clone)]
struct SharedFile {
    file: Arc<File>,
    bytes: u64,
}

/// The bytes of a file from a place on.
struct FileTail {
    file: Arc<File>,
    at: u64,
}

impl Read for FileTail {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(target, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<FileTail>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(FileTail { file: Arc::clone(&self.file), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.bytes) {
            return Err(ParquetError::EOF(format!("no {length} bytes at byte {start}")));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

pub(crate) struct ParquetTable {
    file: SharedFile,
    batch: usize,
    /// Columns as the file has them.
    schema: SchemaRef,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    /// Places of the chosen columns among the decoded columns, whose order is the order of the
    /// file.
    order: Vec<usize>,
    /// Row groups that have not been read.
    groups: VecDeque<usize>,
    /// Memory that the next row group needs, if it has been added up.
    needed: Option<usize>,
    group: Option<ParquetRecordBatchReader>,
    /// Memory of the open row group.
    room: Reservation,
    memory: MemoryBudget,
    bytes: u64,
}

fn decoding(error: impl std::error::Error + Send + Sync + 'static) -> TableError {
    TableError::Decode(Box::new(error))
}

impl ParquetTable {
    /// Opens a file of Parquet.
    pub(crate) fn open(file: File, opening: &Opening) -> Result<Box<dyn Table>, TableError> {
        let bytes = file.metadata().map_err(decoding)?.len();
        let file = SharedFile { file: Arc::new(file), bytes };
        let metadata =
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(decoding)?;
        let schema = Arc::clone(metadata.schema());
        let views = viewed(schema.fields());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(views)));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)
            .map_err(decoding)?;
        let groups = metadata.metadata().num_row_groups();
        Ok(Box::new(Self {
            file,
            batch: opening.batch,
            order: (0..schema.fields().len()).collect(),
            schema,
            metadata,
            mask: ProjectionMask::all(),
            groups: (0..groups).collect(),
            needed: None,
            group: None,
            room: opening.memory.reservation(),
            memory: opening.memory.clone(),
            bytes: 0,
        }))
    }

    /// Opens the next row group; false if none is left.
    fn open_group(&mut self) -> Result<bool, TableError> {
        let Some(&place) = self.groups.front() else { return Ok(false) };
        self.reserve()?;
        (self.needed, _) = (None, self.groups.pop_front());
        self.bytes += self.group_bytes(place);
        let (file, metadata) = (self.file.clone(), self.metadata.clone());
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
        let reader = builder
            .with_row_groups(vec![place])
            .with_projection(self.mask.clone())
            .with_batch_size(self.batch)
            .build()
            .map_err(decoding)?;
        self.group = Some(reader);
        Ok(true)
    }

    /// The chosen column chunks of a row group.
    fn chunks(&self, group: usize) -> impl Iterator<Item = &ColumnChunkMetaData> {
        let columns = self.metadata.metadata().row_group(group).columns().iter().enumerate();
        columns.filter(|(leaf, _)| self.mask.leaf_included(*leaf)).map(|(_, column)| column)
    }

    /// Bytes of the chosen columns of a row group in the file.
    fn group_bytes(&self, group: usize) -> u64 {
        self.chunks(group).map(|column| u64::try_from(column.compressed_size()).unwrap_or(0)).sum()
    }

    /// Bytes of memory that the chosen columns of a row group need.
    fn needed_by_group(&self, group: usize) -> Result<usize, TableError> {
        let mut needed: u64 = 0;
        for column in self.chunks(group) {
            needed = needed.saturating_add(self.needed(column)?);
        }
        Ok(usize::try_from(needed).unwrap_or(usize::MAX))
    }

    /// A table of some row groups.
    fn of_groups(&self, groups: VecDeque<usize>) -> Self {
        Self {
            file: self.file.clone(),
            batch: self.batch,
            schema: Arc::clone(&self.schema),
            metadata: self.metadata.clone(),
            mask: self.mask.clone(),
            order: self.order.clone(),
            groups,
            needed: None,
            group: None,
            room: self.memory.reservation(),
            memory: self.memory.clone(),
            bytes: 0,
        }
    }

    /// The least and the greatest value of a column in each row group, null for a row group without
    /// statistics; `None` if no statistics are reliable.
    fn ends(
        &self,
        name: &str,
        metadata: &ParquetMetaData,
    ) -> Result<Option<[ArrayRef; 2]>, TableError> {
        let parquet = self.metadata.parquet_schema();
        let statistics =
            StatisticsConverter::try_new(name, &self.schema, parquet).map_err(decoding)?;
        let Some(leaf) = statistics.parquet_column_index() else { return Ok(None) };
        // Old writers sorted the bounds in another order.
        let is_old = |group: &RowGroupMetaData| {
            let statistics = group.column(leaf).statistics();
            statistics.is_some_and(Statistics::is_min_max_deprecated)
        };
        if metadata.row_groups().iter().any(is_old) {
            return Ok(None);
        }
        let least = statistics.row_group_mins(metadata.row_groups()).map_err(decoding)?;
        let greatest = statistics.row_group_maxes(metadata.row_groups()).map_err(decoding)?;
        Ok(Some([least, greatest]))
    }

    /// Bytes of memory that a column of a row group needs.
    fn needed(&self, column: &ColumnChunkMetaData) -> Result<u64, TableError> {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let range = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
        let range = range.and_then(|(start, len)| Some(start..start.checked_add(len)?));
        let range = range.filter(|range| range.end <= self.file.bytes);
        let range = range.ok_or(TableError::Damaged)?;
        let Pages { bytes, values } = pages_of(&self.file.file, range).map_err(decoding)?;
        // Without lists, a column has one value per row.
        let is_repeated = column.column_descr().max_rep_level() > 0;
        let values = if is_repeated { values } else { values.min(self.batch as u64) };
        Ok(bytes.saturating_add(values.saturating_mul(VALUE_BYTES)))
    }
}

/// The columns with views in place of texts.
fn viewed(fields: &Fields) -> Fields {
    fields.iter().map(|field| Arc::new(viewed_field(field))).collect()
}

fn viewed_field(field: &Field) -> Field {
    let kind = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::List(item) => DataType::List(Arc::new(viewed_field(item))),
        DataType::Struct(fields) => DataType::Struct(viewed(fields)),
        other => other.clone(),
    };
    field.clone().with_data_type(kind)
}

impl Table for ParquetTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn project(&mut self, places: &[usize]) -> Result<(), TableError> {
        let mut decoded = places.to_vec();
        decoded.sort_unstable();
        let place = |column: &usize| decoded.binary_search(column).expect("one of the columns");
        self.order = places.iter().map(place).collect();
        let parquet = self.metadata.parquet_schema();
        self.mask = ProjectionMask::roots(parquet, places.iter().copied());
        Ok(())
    }

    fn narrow(&mut self, conditions: &[String]) -> Result<(), TableError> {
        let bounds = Bounds::new(conditions, &self.schema);
        let metadata = Arc::clone(self.metadata.metadata());
        let mut columns: Vec<(String, ArrayRef)> = Vec::new();
        for name in bounds.columns() {
            if let Some(ends) = self.ends(name, &metadata)? {
                columns.extend(Bounds::names(name).into_iter().zip(ends));
            }
        }
        if columns.is_empty() {
            return Ok(());
        }
        let columns = columns.into_iter().map(|(name, column)| (name, column, true));
        let ends = RecordBatch::try_from_iter_with_nullable(columns).map_err(decoding)?;
        let may_pass = bounds.may_pass(&ends);
        self.groups.retain(|&group| may_pass[group]);
        Ok(())
    }

    fn reserve(&mut self) -> Result<(), TableError> {
        let Some(&group) = self.groups.front() else { return Ok(()) };
        let needed = match self.needed {
            Some(needed) => needed,
            None => self.needed_by_group(group)?,
        };
        self.needed = Some(needed);
        self.room.resize(needed).map_err(TableError::Memory)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        loop {
            if let Some(group) = &mut self.group {
                debug_assert_eq!(group.schema().fields().len(), self.order.len());
                match group.next() {
                    Some(rows) => {
                        let rows = rows.and_then(|rows| rows.project(&self.order));
                        return rows.map(Some).map_err(decoding);
                    }
                    None => self.group = None,
                }
            } else if !self.open_group()? {
                return Ok(None);
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn blocks(&self) -> usize {
        self.groups.len()
    }

    fn take_blocks(&mut self, bytes: u64) -> Option<Box<dyn Table>> {
        let sizes = self.groups.iter().map(|&group| self.group_bytes(group));
        let count = blocks_within(sizes, bytes).min(self.groups.len());
        let groups: VecDeque<_> = self.groups.drain(..count).collect();
        (!groups.is_empty()).then(|| Box::new(self.of_groups(groups)) as _)
    }
}
