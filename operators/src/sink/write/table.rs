//! Layout of rows in aligned columns.
//!
//! The rows are sorted first, if columns to sort by are given. Two passes go over the rows, one for
//! the widths of the columns and one for the lines. Each call processes some rows, so that a long
//! table blocks no other stage and needs no memory besides its rows.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ord::sort::{SortColumn, SortOptions, lexsort_to_indices};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use trommel_engine::memory::{MemoryFull, Reservation};
use trommel_engine::operator::OperatorError;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::shared::files::is_unprintable;

/// Rows processed per call.
const ROWS_PER_CALL: usize = 1024;
/// Maximum width of a column, so that one long value does not pad all other rows with blanks.
const WIDTH_MAX: usize = 256;
/// Blanks between columns.
const GAP: usize = 2;
/// Width that a column of text keeps on a narrow terminal.
const TEXT_WIDTH_MIN: usize = 8;
/// Digits of a number with a fraction.
const DIGITS: i32 = 4;

/// First rows of a stream, and the number of rows after them.
pub(super) struct TableRows {
    batches: Vec<RecordBatch>,
    rows_max: usize,
    left: usize,
    /// Maximum characters of a value.
    cell_max: usize,
    /// Width of the terminal, if the table goes to one.
    line_width: Option<usize>,
    /// Columns to sort by, and whether each descends.
    sort: Vec<(usize, bool)>,
    not_shown: u64,
    layout: Option<Layout>,
    /// Memory of the pipeline for the rows.
    memory: Reservation,
}

/// The rows of a table do not fit the memory of the pipeline.
#[derive(Debug, thiserror::Error)]
#[error(
    "not enough memory for the first {rows_max} rows, which a table keeps: {full}; lower \
     `rows_max`, write fewer `columns`, or use the format `jsonl`"
)]
pub(super) struct TableFull {
    rows_max: usize,
    full: MemoryFull,
}

/// Progress of the layout.
struct Layout {
    /// Width of each column, known after the first pass.
    widths: Vec<usize>,
    is_numeric: Vec<bool>,
    /// Whether columns were made narrower for a terminal, so that their values are cut.
    is_fitted: bool,
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
    pub(super) fn new(
        rows_max: usize,
        cell_max: usize,
        line_width: Option<usize>,
        memory: Reservation,
    ) -> Self {
        Self {
            batches: Vec::new(),
            rows_max,
            left: rows_max,
            cell_max,
            line_width,
            sort: Vec::new(),
            not_shown: 0,
            layout: None,
            memory,
        }
    }

    /// Sorts the rows by these columns. The flag is true for a column that descends.
    pub(super) fn sorted_by(mut self, columns: Vec<(usize, bool)>) -> Self {
        self.sort = columns;
        self
    }

    /// Keeps the first rows. Their memory is reserved before.
    pub(super) fn add(&mut self, records: &RecordBatch) -> Result<(), OperatorError> {
        let shown = records.num_rows().min(self.left);
        if shown > 0 {
            let rows = records.slice(0, shown);
            let bytes = slice_bytes(&rows)?;
            let reserved = self.memory.resize(self.memory.bytes() + bytes);
            reserved.map_err(|full| TableFull { rows_max: self.rows_max, full })?;
            // A slice keeps the memory of its whole batch, so a small slice is copied.
            let is_part = rows.get_array_memory_size() > 2 * bytes;
            self.batches.push(if is_part { copied(&rows)? } else { rows });
        }
        self.left -= shown;
        self.not_shown += (records.num_rows() - shown) as u64;
        Ok(())
    }

    /// Sorts the rows that were kept, which takes their memory once more. Equal rows stay in the
    /// order of arrival.
    pub(super) fn sort(&mut self, schema: &SchemaRef) -> Result<(), OperatorError> {
        if self.sort.is_empty() || self.batches.is_empty() {
            return Ok(());
        }
        let bytes = self.memory.bytes();
        let reserved = self.memory.resize(2 * bytes);
        reserved.map_err(|full| TableFull { rows_max: self.rows_max, full })?;
        let rows = concat_batches(schema, &std::mem::take(&mut self.batches))?;
        let arrived: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..rows.num_rows() as u64));
        let by = self.sort.iter().map(|&(column, descends)| SortColumn {
            values: Arc::clone(rows.column(column)),
            options: Some(SortOptions { descending: descends, nulls_first: false }),
        });
        let by: Vec<_> = by.chain([SortColumn { values: arrived, options: None }]).collect();
        let order = lexsort_to_indices(&by, None)?;
        self.batches.push(take_record_batch(&rows, &order)?);
        self.memory.resize(bytes).expect("less than before");
        Ok(())
    }

    pub(super) fn not_shown(&self) -> u64 {
        self.not_shown
    }

    /// Processes some rows, and appends finished lines to `text`. Returns true at the end of the
    /// table.
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
            if let Some(width) = self.line_width {
                layout.fit(width);
            }
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
        let (pass, is_fitted) = (Pass::Widths, false);
        Self { widths, is_numeric, is_fitted, pass, batch: 0, row: 0 }
    }

    /// Measures the rows in the first pass, and appends their lines in the second pass.
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
            let mut line = TableLine::default();
            for (index, column) in columns.iter().enumerate() {
                let value = match fraction(rows.column(index), row) {
                    Some(number) => digits(number),
                    None => column.value(row).try_to_string()?,
                };
                let value = cell(&value, cell_max);
                match self.pass {
                    Pass::Widths => self.widths[index] = self.widths[index].max(width(&value)),
                    Pass::Lines => {
                        let value = self.cut(&value, index);
                        line.add(&value, self.widths[index], self.is_numeric[index]);
                    }
                }
            }
            if self.pass == Pass::Lines {
                line.end(text);
            }
        }
        Ok(())
    }

    /// Makes columns of text narrower, the widest first, until a line fits into `line_width`
    /// columns of the terminal. Numbers are never cut.
    fn fit(&mut self, line_width: usize) {
        while self.line_width() > line_width {
            let texts = self.widths.iter_mut().zip(&self.is_numeric);
            let texts = texts.filter(|(_, is_numeric)| !**is_numeric).map(|(width, _)| width);
            let Some(widest) = texts.max().filter(|width| **width > TEXT_WIDTH_MIN) else { return };
            *widest -= 1;
            self.is_fitted = true;
        }
    }

    /// A value, cut to the width of its column if the columns were made narrower.
    fn cut<'a>(&self, value: &'a str, column: usize) -> Cow<'a, str> {
        if self.is_fitted { cut(value, self.widths[column]) } else { Cow::Borrowed(value) }
    }

    /// Width of a line. The last column needs no gap.
    fn line_width(&self) -> usize {
        let widths: usize = self.widths.iter().map(|width| width + GAP).sum();
        widths.saturating_sub(GAP)
    }

    /// Appends the names of the columns and a line under them.
    fn header(&self, schema: &SchemaRef, text: &mut Vec<u8>) {
        let mut line = TableLine::default();
        for (index, field) in schema.fields().iter().enumerate() {
            let name = cell(field.name(), usize::MAX);
            let name = self.cut(&name, index);
            line.add(&name, self.widths[index], self.is_numeric[index]);
        }
        line.end(text);
        text.extend("─".repeat(self.line_width()).as_bytes());
        text.push(b'\n');
    }
}

/// Bytes of the rows, if nothing else is in their buffers.
pub(super) fn slice_bytes(rows: &RecordBatch) -> Result<usize, ArrowError> {
    rows.columns().iter().map(|column| column.to_data().get_slice_memory_size()).sum()
}

/// The rows, copied into buffers of their own.
fn copied(rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let all = UInt64Array::from_iter_values(0..rows.num_rows() as u64);
    take_record_batch(rows, &all)
}

/// Line under construction.
#[derive(Default)]
struct TableLine {
    text: String,
    /// Blanks to add before the next cell; the last cell adds no blanks after its value.
    blanks: usize,
}

impl TableLine {
    fn add(&mut self, value: &str, column: usize, is_numeric: bool) {
        let missing = column.saturating_sub(width(value));
        // Numbers are aligned to the right, so that their digits align.
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

/// The value as a number with a fraction, if the column has a type with fractions.
fn fraction(column: &dyn Array, row: usize) -> Option<f64> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Float64 => Some(column.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => Some(column.as_primitive::<Float32Type>().value(row).into()),
        _ => None,
    }
}

/// A number with four significant digits, and all digits before the point. People compare the
/// numbers of a table, while programs read other formats.
fn digits(number: f64) -> String {
    if !number.is_finite() || number == 0.0 {
        return number.to_string();
    }
    #[expect(clippy::cast_possible_truncation, reason = "an exponent of at most 308")]
    let magnitude = number.abs().log10().floor() as i32;
    if !(-5..15).contains(&magnitude) {
        let text = format!("{number:.3e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        return format!("{mantissa}e{exponent}");
    }
    let decimals = usize::try_from(DIGITS - 1 - magnitude).unwrap_or(0);
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `value` in at most `columns_max` columns of a terminal; a cut value ends with a mark.
fn cut(value: &str, columns_max: usize) -> Cow<'_, str> {
    if value.width() <= columns_max {
        return Cow::Borrowed(value);
    }
    let mut shown = String::new();
    let mut width = 1;
    for character in value.chars() {
        width += character.width().unwrap_or(0);
        if width > columns_max {
            break;
        }
        shown.push(character);
    }
    shown.push('…');
    Cow::Owned(shown)
}

/// Formats a value on one line with at most `characters_max` characters; a cut value ends with a
/// mark. Characters that would break the layout, act on the terminal or hide text are escaped.
fn cell(text: &str, characters_max: usize) -> Cow<'_, str> {
    // The usual case has no characters to escape or to cut. The number of bytes is an upper bound
    // of the number of characters.
    if !text.contains(is_unprintable) && text.len() <= characters_max {
        return Cow::Borrowed(text);
    }
    // One character past the limit shows that the value must be cut; the remaining text is not
    // read.
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

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, StringArray};

    use super::*;

    #[test]
    fn numbers_with_fractions_have_four_digits() {
        for (number, text) in [
            (0.863_636_363, "0.8636"),
            (1.0, "1"),
            (-0.5, "-0.5"),
            (123_456.789, "123457"),
            (0.000_012_347, "0.00001235"),
            (1e-9, "1e-9"),
            (1.234_56e20, "1.235e20"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
            (0.0, "0"),
        ] {
            assert_eq!(digits(number), text, "{number}");
        }
    }

    #[test]
    fn texts_give_way_to_a_narrow_terminal_and_numbers_do_not() {
        let texts = ["short", "a text that is much longer than that", "ｗｉｄｅ ｔｅｘｔ ｗｉｄｅ"];
        let paths = ["x"; 3].map(|x| x.repeat(40));
        let columns: [(&str, ArrayRef); 3] = [
            ("text", Arc::new(StringArray::from(texts.to_vec()))),
            ("path", Arc::new(StringArray::from(paths.to_vec()))),
            ("number", Arc::new(Float64Array::from(vec![0.25, 1.0, 1e6]))),
        ];
        let records = RecordBatch::try_from_iter(columns).unwrap();
        for line_width in [10, 40, 60, 80, 200] {
            let mut rows = TableRows::new(10, usize::MAX, Some(line_width), Reservation::default());
            rows.add(&records).unwrap();
            let mut text = Vec::new();
            while !rows.lay_out(&records.schema(), &mut text).unwrap() {}
            let text = String::from_utf8(text).unwrap();
            // The width of two columns of text, of the number, and of two gaps.
            let least = 2 * TEXT_WIDTH_MIN + 7 + 2 * GAP;
            for line in text.lines() {
                assert!(line.width() <= line_width.max(least), "{line_width}: {line}");
            }
            assert!(text.contains("1000000") && text.contains("0.25"), "{text}");
            assert_eq!(text.contains('…'), line_width < 100, "{text}");
        }
    }
}
