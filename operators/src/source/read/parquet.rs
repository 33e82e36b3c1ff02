//! Format `parquet`: row groups one after the other.
//!
//! Before a row group is decoded, the pages of its columns are added up, and memory is asked for
//! all of them without compression and for the values of a batch; so a page that is small in the
//! file and large in memory is refused. Texts are decoded as views of their pages: a dictionary of
//! long texts has small numbers for them, and plain texts are made of limited slices.

use std::fs::File;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use ::parquet::file::statistics::Statistics;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader as _};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use trommel_engine::memory::Reservation;

use super::error::TableError;
use super::pages::{Pages, pages_of};
use super::tables::{Opening, Table};
use crate::expressions::Bounds;

/// Bytes of a value beside its page: a view, levels, and its place among nulls.
const VALUE_BYTES: u64 = 24;

pub(super) struct ParquetTable {
    file: File,
    bytes_total: u64,
    batch: usize,
    /// Columns as the file has them.
    schema: SchemaRef,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    /// Places of the chosen columns among the decoded ones, which are in the order of the file.
    order: Vec<usize>,
    /// Row groups that are left, in reverse.
    groups: Vec<usize>,
    group: Option<ParquetRecordBatchReader>,
    /// Memory of the open row group.
    room: Reservation,
    bytes: u64,
}

fn decoding(error: impl std::error::Error + Send + Sync + 'static) -> TableError {
    TableError::Decode(Box::new(error))
}

impl ParquetTable {
    /// Opens a file of Parquet.
    pub(super) fn open(file: File, opening: &Opening) -> Result<Box<dyn Table>, TableError> {
        let bytes_total = file.metadata().map_err(decoding)?.len();
        let room = opening.memory.reservation();
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
            bytes_total,
            batch: opening.batch,
            order: (0..schema.fields().len()).collect(),
            schema,
            metadata,
            mask: ProjectionMask::all(),
            groups: (0..groups).rev().collect(),
            group: None,
            room,
            bytes: 0,
        }))
    }

    /// Opens the next row group; false if none is left.
    fn open_group(&mut self) -> Result<bool, TableError> {
        let metadata = Arc::clone(self.metadata.metadata());
        let Some(place) = self.groups.pop() else { return Ok(false) };
        let group = metadata.row_group(place);
        let mut needed: u64 = 0;
        for (leaf, column) in group.columns().iter().enumerate() {
            if self.mask.leaf_included(leaf) {
                needed = needed.saturating_add(self.needed(column)?);
                self.bytes += u64::try_from(column.compressed_size()).unwrap_or(0);
            }
        }
        self.room
            .resize(usize::try_from(needed).unwrap_or(usize::MAX))
            .map_err(TableError::Memory)?;
        let file = self.file.try_clone().map_err(decoding)?;
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let reader = builder
            .with_row_groups(vec![place])
            .with_projection(self.mask.clone())
            .with_batch_size(self.batch)
            .build()
            .map_err(decoding)?;
        self.group = Some(reader);
        Ok(true)
    }

    /// The least and the greatest value of a column in each row group, null where the file does
    /// not say it; `None` if it says nothing reliable.
    fn ends(
        &self,
        name: &str,
        metadata: &ParquetMetaData,
    ) -> Result<Option<[ArrayRef; 2]>, TableError> {
        let parquet = self.metadata.parquet_schema();
        let statistics =
            StatisticsConverter::try_new(name, &self.schema, parquet).map_err(decoding)?;
        let Some(leaf) = statistics.parquet_column_index() else { return Ok(None) };
        // The bounds of old writers are those of another order.
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
        let range = range.filter(|range| range.end <= self.bytes_total);
        let range = range.ok_or(TableError::Damaged)?;
        let Pages { bytes, values } = pages_of(&self.file, range).map_err(decoding)?;
        // A row has one value of a column without lists.
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
}
