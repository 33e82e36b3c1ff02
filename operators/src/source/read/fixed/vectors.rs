//! Formats `f32le` and `npy`: vectors of little-endian numbers, row by row.

use std::io;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::names::Names;
use super::npy::{self, NpyError, NpyHeader, Number};
use super::source::RowFormat;
use crate::shared::columns::{vector_array, vectors_schema};
use crate::source::read::error::ReadError;
use crate::source::read::files::input::{BadRow, Inputs};
use crate::source::read::files::paths::Place;
use crate::source::read::files::stream::{Pull, Stream};

/// Columns `id` and `vector`, and `name` if there is a file of names. Ids count the vectors of all
/// files.
struct VectorColumns {
    schema: SchemaRef,
    dims: u32,
    next_id: u64,
    names: Option<Names>,
}

impl VectorColumns {
    fn new(dims: u32, names: Option<Names>) -> Self {
        let mut schema = vectors_schema(dims);
        if names.is_some() {
            let name = Arc::new(Field::new("name", DataType::Utf8, false));
            let columns = schema.fields().iter().cloned().chain([name]);
            schema = Arc::new(Schema::new(columns.collect::<Vec<_>>()));
        }
        Self { schema, dims, next_id: 0, names }
    }

    fn finish(&mut self) -> Result<(), ReadError> {
        self.names.as_mut().map_or(Ok(()), Names::finish)
    }

    fn batch(
        &mut self,
        values: ScalarBuffer<f32>,
        inputs: &Inputs,
    ) -> Result<RecordBatch, ReadError> {
        let rows = values.len() / self.dims as usize;
        let ids = next_ids(&mut self.next_id, rows)
            .ok_or_else(|| ReadError::TooManyVectors { path: inputs.path() })?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(ids), vector_array(self.dims, values)];
        if let Some(names) = &mut self.names {
            columns.push(Arc::new(names.take(rows)?));
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns).expect("built to this schema"))
    }
}

/// The ids of the next `rows` rows; `None` if an id would exceed 32 bits.
pub(crate) fn next_ids(next_id: &mut u64, rows: usize) -> Option<UInt32Array> {
    let begin = *next_id;
    *next_id += rows as u64;
    let last = u32::try_from(next_id.checked_sub(1)?).ok()?;
    let begin = u32::try_from(begin).ok()?;
    Some(UInt32Array::from_iter_values(begin..=last))
}

/// Coordinates of 32 bits. On little-endian machines the bytes of the file are the coordinates.
fn floats(rows: Buffer) -> ScalarBuffer<f32> {
    let count = rows.len() / size_of::<f32>();
    if cfg!(target_endian = "big") {
        let bytes = rows.as_slice().as_chunks().0.iter();
        return bytes.map(|&bytes| f32::from_le_bytes(bytes)).collect();
    }
    ScalarBuffer::new(rows, 0, count)
}

/// Coordinates of 64 bits, each rounded to 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "vectors have 32 bits a coordinate")]
fn rounded(rows: &Buffer) -> ScalarBuffer<f32> {
    let bytes = rows.as_slice().as_chunks().0.iter();
    bytes.map(|&bytes| f64::from_le_bytes(bytes) as f32).collect()
}

/// Format `f32le`: coordinates of 32 bits and nothing else.
pub(crate) struct RawVectors(VectorColumns);

impl RawVectors {
    pub(crate) fn new(dims: u32, names: Option<Names>) -> Self {
        Self(VectorColumns::new(dims, names))
    }
}

impl RowFormat for RawVectors {
    fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    fn width(&self) -> usize {
        self.0.dims as usize * size_of::<f32>()
    }

    fn finish(&mut self) -> Result<(), ReadError> {
        self.0.finish()
    }

    fn rows_so_far(&self) -> u64 {
        self.0.next_id
    }

    fn set_rows_so_far(&mut self, rows: u64) {
        self.0.next_id = rows;
    }

    fn batch(&mut self, rows: Buffer, inputs: &Inputs) -> Result<RecordBatch, ReadError> {
        self.0.batch(floats(rows), inputs)
    }
}

/// The header of a regular file of NumPy.
pub(crate) fn npy_header(place: &Place) -> io::Result<Result<NpyHeader, NpyError>> {
    let mut stream = Stream::open(place, false)?;
    let mut header = Vec::new();
    loop {
        let (have, wanted) = (header.len(), npy::bytes_wanted(&header));
        if wanted == 0 {
            return Ok(NpyHeader::parse(&header));
        }
        header.resize(have + wanted, 0);
        match stream.pull(&mut header[have..])? {
            Pull::Bytes(bytes) => header.truncate(have + bytes),
            // A compressed file may use up its allowance without returning a byte.
            Pull::Pause(_) => header.truncate(have),
            Pull::End => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Format `npy`: arrays of NumPy, of one or two dimensions.
pub(crate) struct NpyVectors {
    columns: VectorColumns,
    /// Header of the open file, or of the last file if no file is open.
    header: NpyHeader,
}

impl NpyVectors {
    /// Arrays whose vectors have `dims` coordinates.
    pub(crate) fn new(dims: u32, names: Option<Names>) -> Self {
        let header = NpyHeader { number: Number::F32, rows: 0, dims: dims.into() };
        Self { columns: VectorColumns::new(dims, names), header }
    }
}

impl RowFormat for NpyVectors {
    fn schema(&self) -> &SchemaRef {
        &self.columns.schema
    }

    fn width(&self) -> usize {
        self.columns.dims as usize * self.header.number.bytes()
    }

    fn header_bytes_wanted(&self, header: &[u8]) -> usize {
        npy::bytes_wanted(header)
    }

    fn begin(&mut self, header: &[u8], inputs: &Inputs) -> Result<(), ReadError> {
        let path = inputs.path();
        let header = NpyHeader::parse(header)
            .map_err(|source| ReadError::Npy { path: Arc::clone(&path), source })?;
        let (found, dims) = (header.dims, self.columns.dims);
        // An array without vectors may state any number of coordinates.
        if found != u64::from(dims) && header.rows > 0 {
            return Err(ReadError::Dims { path, found, dims });
        }
        self.header = header;
        Ok(())
    }

    fn end(&mut self, bytes: u64, inputs: &mut Inputs) -> Result<(), ReadError> {
        let (rows, found) = (self.header.rows, bytes / self.width() as u64);
        if found == rows {
            return Ok(());
        }
        let row = BadRow { line: None, offset: None, bytes: b"" };
        inputs.refuse(&row, |path| ReadError::NpyRows { path, rows, found })
    }

    fn finish(&mut self) -> Result<(), ReadError> {
        self.columns.finish()
    }

    fn rows_so_far(&self) -> u64 {
        self.columns.next_id
    }

    fn set_rows_so_far(&mut self, rows: u64) {
        self.columns.next_id = rows;
    }

    fn batch(&mut self, rows: Buffer, inputs: &Inputs) -> Result<RecordBatch, ReadError> {
        let values = match self.header.number {
            Number::F32 => floats(rows),
            Number::F64 => rounded(&rows),
        };
        self.columns.batch(values, inputs)
    }
}
