//! Columns of comma-separated values: columns of text, and columns that become a vector.
//!
//! ```text
//! header   name, x, y      ──► place of each column, for each file
//! record   "Bonn", 7.1, 50 ──► id, name: "Bonn", vector: [7.1, 50]
//! ```

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel_engine::memory::MemoryBudget;

use super::records::{Columns, CsvLines, Fault, NAMES_SHOWN, Record};
use crate::shared::columns::{vector_array, vector_field};
use crate::source::read::divided::Divided;
use crate::source::read::error::ReadError;
use crate::source::read::files::input::Inputs;
use crate::source::read::text::encoding::text_of;

/// End of a name that stands for all columns that begin with the rest of the name.
const ANY: char = '*';

/// Columns to read.
#[derive(Debug, Clone)]
pub(crate) struct CsvColumns {
    /// Names of the columns that stay text.
    pub(crate) texts: Vec<String>,
    /// Names of the columns that become the vector, or beginnings of names.
    pub(crate) vector: Vec<String>,
    /// Coordinates of a vector; 0 without a column `vector`.
    pub(crate) dims: u32,
}

/// True if `name` stands for all columns that begin with the rest of the name.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.ends_with(ANY)
}

/// One row per record. Ids count all records of all files, including records that are left out.
pub(crate) struct LabelledRows {
    schema: SchemaRef,
    columns: CsvColumns,
    /// Places of the columns in the open file.
    text_places: Vec<usize>,
    vector_places: Vec<usize>,
    next_id: u64,
    ids: Vec<u32>,
    texts: Vec<StringBuilder>,
    coordinates: Vec<f32>,
}

impl LabelledRows {
    pub(crate) fn new(columns: CsvColumns) -> Self {
        let mut fields = vec![Field::new("id", DataType::UInt32, false)];
        fields.extend(columns.texts.iter().map(|name| Field::new(name, DataType::Utf8, false)));
        if columns.dims > 0 {
            fields.push(vector_field(columns.dims));
        }
        Self {
            schema: Arc::new(Schema::new(fields)),
            text_places: Vec::new(),
            vector_places: Vec::new(),
            next_id: 0,
            ids: Vec::new(),
            texts: columns.texts.iter().map(|_| StringBuilder::new()).collect(),
            coordinates: Vec::new(),
            columns,
        }
    }
}

impl Divided for CsvLines<LabelledRows> {
    fn another(&self, memory: &MemoryBudget) -> Self {
        self.another(|rows| LabelledRows::new(rows.columns.clone()), memory)
    }

    fn begin_block(&mut self, records_before: u64) {
        self.columns_mut().next_id = records_before;
    }

    fn is_left_out(&self) -> bool {
        self.has_no_header()
    }

    fn lines_so_far(&self) -> u64 {
        self.columns().next_id
    }
}

/// The error for a column of this `name` if a file has `count` such columns.
pub(crate) fn no_column(path: Arc<str>, header: &[String], name: &str, count: usize) -> ReadError {
    let found = header.iter().take(NAMES_SHOWN).map(|name| format!("`{name}`"));
    let found = found.collect::<Vec<_>>().join(", ");
    ReadError::CsvColumn { path, name: name.to_owned(), count, found }
}

impl Columns for LabelledRows {
    const ASKS_FOR_QUOTES: bool = false;

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn begin(&mut self, path: Arc<str>, header: &[String]) -> Result<(), ReadError> {
        let all = |name: &str| -> Vec<usize> {
            let prefix = name.strip_suffix(ANY);
            let is_it = |found: &str| match prefix {
                Some(prefix) => found.starts_with(prefix),
                None => found == name,
            };
            (0..header.len()).filter(|&place| is_it(&header[place])).collect()
        };
        let missing = |name: &String, count| no_column(Arc::clone(&path), header, name, count);
        let mut texts = Vec::new();
        for name in &self.columns.texts {
            match all(name)[..] {
                [place] => texts.push(place),
                ref places => return Err(missing(name, places.len())),
            }
        }
        let mut vector = Vec::new();
        for name in &self.columns.vector {
            let places = all(name);
            if places.len() != 1 && !is_pattern(name) {
                return Err(missing(name, places.len()));
            }
            vector.extend(places);
        }
        let (found, dims) = (vector.len() as u64, self.columns.dims);
        if found != u64::from(dims) {
            return Err(ReadError::Dims { path, found, dims });
        }
        (self.text_places, self.vector_places) = (texts, vector);
        Ok(())
    }

    fn count(&mut self, inputs: &Inputs, line: u64) -> Result<(), ReadError> {
        let is_last = u32::try_from(self.next_id).is_err();
        self.next_id += 1;
        if is_last {
            return Err(ReadError::TooManyRows { path: inputs.path(), line });
        }
        Ok(())
    }

    fn push(&mut self, record: &Record, inputs: &mut Inputs) -> Result<(), Fault> {
        let begin = self.coordinates.len();
        let number = |place: usize| -> Option<f32> {
            str::from_utf8(record.field(place)).ok()?.trim().parse().ok()
        };
        for &place in &self.vector_places {
            let Some(number) = number(place) else {
                self.coordinates.truncate(begin);
                return Err(Fault::Number(place));
            };
            self.coordinates.push(number);
        }
        // All texts are checked before any text is added, so that a bad record adds nothing.
        let encoding = inputs.line_encoding();
        let is_broken = |&&place: &&usize| text_of(record.field(place), encoding).is_err();
        if let Some(&place) = self.text_places.iter().find(is_broken) {
            if !inputs.replaces() {
                self.coordinates.truncate(begin);
                return Err(Fault::Text(place));
            }
            inputs.count_replaced();
        }
        for (builder, &place) in self.texts.iter_mut().zip(&self.text_places) {
            let field = record.field(place);
            match text_of(field, encoding) {
                Ok(text) => builder.append_value(text),
                Err(_) => builder.append_value(inputs.replaced(field)),
            }
        }
        self.ids.push(u32::try_from(self.next_id - 1).expect("checked when it was counted"));
        Ok(())
    }

    fn places(&self) -> Vec<usize> {
        [self.text_places.as_slice(), &self.vector_places].concat()
    }

    fn set_places(&mut self, mut places: Vec<usize>) {
        // Before the header is known, the places are empty.
        self.vector_places = places.split_off(places.len().min(self.columns.texts.len()));
        self.text_places = places;
    }

    fn rows(&self) -> usize {
        self.ids.len()
    }

    fn bytes(&self) -> usize {
        let texts: usize = self.texts.iter().map(|texts| texts.values_slice().len()).sum();
        texts + size_of_val(&self.coordinates[..])
    }

    fn take(&mut self) -> RecordBatch {
        let ids = std::mem::take(&mut self.ids);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(ids))];
        columns.extend(self.texts.iter_mut().map(|texts| Arc::new(texts.finish()) as ArrayRef));
        if self.columns.dims > 0 {
            let capacity = self.coordinates.len();
            let next = Vec::with_capacity(capacity);
            let coordinates = std::mem::replace(&mut self.coordinates, next);
            columns.push(vector_array(self.columns.dims, ScalarBuffer::from(coordinates)));
        }
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns).expect("of this schema")
    }
}
