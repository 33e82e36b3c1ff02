//! The first lines of a file, from which the columns of a table are inferred.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

use crate::source::read::error::ReadError;
use crate::source::read::files::input::Inputs;
use crate::source::read::text::encoding::text_of;
use crate::source::read::text::lines::{LineFormat, Run};

/// Rows from which columns are inferred.
pub(crate) const ROWS: usize = 1_000;
/// Bytes of rows after which no further rows are read.
pub(crate) const BYTES_MAX: usize = 64 << 20;

/// Knowledge that grows with each line.
pub(crate) trait Look: Default + Send {
    /// Takes a line. A bad line is passed over, since the run reports bad lines.
    fn add(&mut self, line: &str);
}

/// Takes the first lines of a file and makes no rows.
pub(crate) struct FirstLines<L> {
    schema: SchemaRef,
    pub(crate) look: L,
    /// Number of lines that were taken, and their bytes.
    lines: usize,
    bytes: usize,
}

impl<L: Look> FirstLines<L> {
    pub(crate) fn new() -> Self {
        Self { schema: Arc::new(Schema::empty()), look: L::default(), lines: 0, bytes: 0 }
    }

    /// Whether any line is not blank.
    pub(crate) fn has_lines(&self) -> bool {
        self.lines > 0
    }
}

impl<L: Look> LineFormat for FirstLines<L> {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn append(&mut self, run: &Run<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        for line in run.each() {
            self.lines += usize::from(!line.bytes.is_empty());
            self.bytes += line.bytes.len();
            if let Ok(text) = text_of(line.bytes, inputs.line_encoding()) {
                self.look.add(&text);
            }
        }
        Ok(())
    }

    fn pass_over(&mut self, _: &mut Inputs, _: u64) -> Result<(), ReadError> {
        Ok(())
    }

    fn rows(&self) -> usize {
        if self.bytes < BYTES_MAX { self.lines } else { ROWS }
    }

    fn bytes(&self) -> usize {
        0
    }

    fn take(&mut self) -> RecordBatch {
        RecordBatch::new_empty(Arc::clone(&self.schema))
    }
}
