//! Format `lines`: one row per line, with its place on request.

use std::sync::Arc;

use arrow_array::builder::{StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use encoding_rs::UTF_8;
use trommel_engine::memory::MemoryBudget;

use super::lines::{LineFormat, Places, Run};
use super::records::Records;
use crate::shared::columns::TextsBuilder;
use crate::source::read::divided::Divided;
use crate::source::read::error::ReadError;
use crate::source::read::files::input::{Inputs, Line};

/// Columns that a row may have besides `line`.
pub(crate) const PLACE_COLUMNS: [&str; 2] = ["path", LINE_NUMBER];
pub(crate) const LINE_NUMBER: &str = "line_number";

/// Rows of lines.
pub(crate) struct TextLines {
    schema: SchemaRef,
    lines: TextsBuilder,
    places: Places,
    paths: Option<StringBuilder>,
    numbers: Option<UInt64Builder>,
}

impl TextLines {
    /// Lines without further columns.
    #[cfg(test)]
    pub(crate) fn new() -> Self {
        Self::with_columns(&[])
    }

    /// Lines with these columns of [`PLACE_COLUMNS`].
    pub(crate) fn with_columns(columns: &[String]) -> Self {
        let has = |name: &str| columns.iter().any(|column| column == name);
        let [path, number] = PLACE_COLUMNS.map(has);
        let mut fields = vec![Field::new("line", DataType::Utf8, false)];
        let of_places = [
            path.then(|| Field::new(PLACE_COLUMNS[0], DataType::Utf8, false)),
            number.then(|| Field::new(PLACE_COLUMNS[1], DataType::UInt64, false)),
        ];
        fields.extend(of_places.into_iter().flatten());
        Self {
            schema: Arc::new(Schema::new(fields)),
            lines: TextsBuilder::new(),
            places: Places::default(),
            paths: path.then(StringBuilder::new),
            numbers: number.then(UInt64Builder::new),
        }
    }

    /// Adds the places of consecutive lines, the first of which has the number `first_line`.
    fn add_places(&mut self, inputs: &Inputs, first_line: u64, lines: usize) {
        if let Some(paths) = &mut self.paths {
            let path = inputs.path();
            (0..lines).for_each(|_| paths.append_value(&path));
        }
        if let Some(numbers) = &mut self.numbers {
            (first_line..).take(lines).for_each(|line| numbers.append_value(line));
        }
    }
}

impl Records for TextLines {
    fn push(&mut self, record: Line<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        if let Some(text) = inputs.text(record)? {
            self.lines.push(text.as_bytes(), 0..text.len());
            self.add_places(inputs, record.number, 1);
        }
        Ok(())
    }
}

impl LineFormat for TextLines {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn append(&mut self, run: &Run<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        // Fast path: the whole run is validated at once. Line ends are ASCII, so slices of valid
        // text at line ends are valid. In another encoding only ASCII needs no conversion.
        let is_text = inputs.line_encoding() == UTF_8 || run.bytes().is_ascii();
        if is_text
            && run.is_accepted()
            && let Ok(text) = simdutf8::basic::from_utf8(run.bytes())
        {
            let Self { lines, places, .. } = self;
            run.with_places(places, |begins, ends| lines.extend(text, begins, ends));
            self.add_places(inputs, run.first_line, run.lines());
            return Ok(());
        }
        run.for_each_accepted(inputs, |inputs, _, line| {
            line.map_or(Ok(()), |line| self.push(line, inputs))
        })
    }

    fn pass_over(&mut self, _: &mut Inputs, _: u64) -> Result<(), ReadError> {
        Ok(())
    }

    fn rows(&self) -> usize {
        self.lines.len()
    }

    fn bytes(&self) -> usize {
        let paths = self.paths.as_ref().map_or(0, |paths| paths.values_slice().len());
        self.lines.bytes() + paths
    }

    fn take(&mut self) -> RecordBatch {
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.lines.take())];
        columns.extend(self.paths.as_mut().map(|paths| Arc::new(paths.finish()) as ArrayRef));
        columns.extend(self.numbers.as_mut().map(|lines| Arc::new(lines.finish()) as ArrayRef));
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns).expect("of this schema")
    }
}

impl Divided for TextLines {
    fn another(&self, _: &MemoryBudget) -> Self {
        let columns = self.schema.fields().iter().map(|field| field.name().clone());
        Self::with_columns(&columns.collect::<Vec<_>>())
    }
}
