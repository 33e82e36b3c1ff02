//! Layout of rows in aligned columns.
//!
//! Two passes over the rows, one for the widths of the columns and one for the lines, some rows
//! per call, so that a long table blocks no other stage and needs no memory besides its rows.

use std::borrow::Cow;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, SchemaRef};
use unicode_width::UnicodeWidthStr;

use crate::files::is_unprintable;

/// Rows processed per call.
const ROWS_PER_CALL: usize = 1024;
/// Maximum width of a column, so that one long value does not pad all other rows with blanks.
const WIDTH_MAX: usize = 256;
/// Blanks between columns.
const GAP: usize = 2;

/// First rows of a stream, and the number of rows after them.
pub(super) struct TableRows {
    batches: Vec<RecordBatch>,
    left: usize,
    /// Maximum characters of a value.
    cell_max: usize,
    not_shown: u64,
    layout: Option<Layout>,
}

/// Progress of the layout.
struct Layout {
    /// Width of each column, known after the first pass.
    widths: Vec<usize>,
    is_numeric: Vec<bool>,
    pass: Pass,
    /// Next row: index of its batch, and of the row in it.
    batch: usize,
    row: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Widths,
    Lines,
}

impl TableRows {
    pub(super) fn new(rows_max: usize, cell_max: usize) -> Self {
        Self { batches: Vec::new(), left: rows_max, cell_max, not_shown: 0, layout: None }
    }

    pub(super) fn add(&mut self, records: &RecordBatch) {
        let shown = records.num_rows().min(self.left);
        if shown > 0 {
            self.batches.push(records.slice(0, shown));
        }
        self.left -= shown;
        self.not_shown += (records.num_rows() - shown) as u64;
    }

    pub(super) fn not_shown(&self) -> u64 {
        self.not_shown
    }

    /// Processes some rows and appends finished lines to `text`; true when all is done.
    pub(super) fn lay_out(
        &mut self,
        schema: &SchemaRef,
        text: &mut Vec<u8>,
    ) -> Result<bool, ArrowError> {
        let layout = self.layout.get_or_insert_with(|| Layout::new(schema));
        if let Some(records) = self.batches.get(layout.batch) {
            let rows =
                records.slice(layout.row, ROWS_PER_CALL.min(records.num_rows() - layout.row));
            layout.take(&rows, self.cell_max, text)?;
            layout.row += rows.num_rows();
            if layout.row == records.num_rows() {
                (layout.batch, layout.row) = (layout.batch + 1, 0);
            }
            return Ok(false);
        }
        if layout.pass == Pass::Widths {
            (layout.pass, layout.batch) = (Pass::Lines, 0);
            layout.header(schema, text);
            return Ok(false);
        }
        if self.not_shown > 0 {
            let rows = if self.not_shown == 1 { "row" } else { "rows" };
            text.extend(format!("… and {} more {rows}\n", self.not_shown).as_bytes());
        }
        Ok(true)
    }
}

impl Layout {
    fn new(schema: &SchemaRef) -> Self {
        let fields = schema.fields().iter();
        let widths = fields.clone().map(|field| width(&cell(field.name(), usize::MAX))).collect();
        let is_numeric = fields.map(|field| field.data_type().is_numeric()).collect();
        Self { widths, is_numeric, pass: Pass::Widths, batch: 0, row: 0 }
    }

    /// Measures the rows in the first pass, appends their lines in the second.
    fn take(
        &mut self,
        rows: &RecordBatch,
        cell_max: usize,
        text: &mut Vec<u8>,
    ) -> Result<(), ArrowError> {
        let options = FormatOptions::new();
        let columns = rows.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..rows.num_rows() {
            let mut line = Line::default();
            for (index, column) in columns.iter().enumerate() {
                let value = column.value(row).try_to_string()?;
                let value = cell(&value, cell_max);
                match self.pass {
                    Pass::Widths => self.widths[index] = self.widths[index].max(width(&value)),
                    Pass::Lines => line.add(&value, self.widths[index], self.is_numeric[index]),
                }
            }
            if self.pass == Pass::Lines {
                line.end(text);
            }
        }
        Ok(())
    }

    /// Appends the names of the columns and a line under them.
    fn header(&self, schema: &SchemaRef, text: &mut Vec<u8>) {
        let mut line = Line::default();
        for (index, field) in schema.fields().iter().enumerate() {
            let name = cell(field.name(), usize::MAX);
            line.add(&name, self.widths[index], self.is_numeric[index]);
        }
        line.end(text);
        let widths: usize = self.widths.iter().map(|width| width + GAP).sum();
        text.extend("─".repeat(widths).as_bytes());
        text.push(b'\n');
    }
}

/// Line under construction.
#[derive(Default)]
struct Line {
    text: String,
    /// Blanks to add before the next cell; none after the last one.
    blanks: usize,
}

impl Line {
    fn add(&mut self, value: &str, column: usize, is_numeric: bool) {
        let missing = column.saturating_sub(width(value));
        // Numbers to the right, so that their digits align.
        let (before, after) = if is_numeric { (missing, 0) } else { (0, missing) };
        self.text.extend(std::iter::repeat_n(' ', self.blanks + before));
        self.text.push_str(value);
        self.blanks = after + GAP;
    }

    fn end(self, text: &mut Vec<u8>) {
        text.extend(self.text.trim_end().as_bytes());
        text.push(b'\n');
    }
}

/// Width of `value` in terminal columns, at most [`WIDTH_MAX`].
fn width(value: &str) -> usize {
    value.width().min(WIDTH_MAX)
}

/// Formats a value on one line with at most `characters_max` characters; a cut value ends with a
/// mark. Characters that would break the layout, act on the terminal or hide text are escaped.
fn cell(text: &str, characters_max: usize) -> Cow<'_, str> {
    // The usual case: nothing to escape or to cut. Bytes are an upper bound of characters.
    if !text.contains(is_unprintable) && text.len() <= characters_max {
        return Cow::Borrowed(text);
    }
    // One character past the limit shows that the value must be cut; the rest of a long text is
    // not read.
    let mut shown = String::new();
    for character in text.chars().take(characters_max.saturating_add(1)) {
        if is_unprintable(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if let Some((last, _)) = shown.char_indices().nth(characters_max - 1)
        && shown[last..].chars().nth(1).is_some()
    {
        shown.truncate(last);
        shown.push('…');
    }
    Cow::Owned(shown)
}
