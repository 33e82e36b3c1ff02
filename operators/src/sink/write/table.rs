//! Rows laid out in columns for people.

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, SchemaRef};
use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

/// The first rows of a stream, and how many there are beyond them.
pub(super) struct TableRows {
    batches: Vec<RecordBatch>,
    left: usize,
    /// Characters of a value.
    cell_max: usize,
    not_shown: u64,
}

/// Nothing but a line below the header: it is pleasant to read, and easy to cut into columns.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

impl TableRows {
    pub(super) fn new(rows_max: usize, cell_max: usize) -> Self {
        Self { batches: Vec::new(), left: rows_max, cell_max, not_shown: 0 }
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

    pub(super) fn layout(&self, schema: &SchemaRef) -> Result<String, ArrowError> {
        let mut table = Table::new();
        table.load_style(STYLE);
        table.set_header(schema.fields().iter().map(|field| cell(field.name(), usize::MAX)));
        for records in &self.batches {
            add_rows(&mut table, records, self.cell_max)?;
        }
        for (index, field) in schema.fields().iter().enumerate() {
            let column = table.column_mut(index).expect("the header has every column");
            column.set_padding((0, 2));
            if field.data_type().is_numeric() {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = String::new();
        for line in table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        if self.not_shown > 0 {
            let rows = if self.not_shown == 1 { "row" } else { "rows" };
            text.push_str(&format!("… and {} more {rows}\n", self.not_shown));
        }
        Ok(text)
    }
}

fn add_rows(table: &mut Table, records: &RecordBatch, cell_max: usize) -> Result<(), ArrowError> {
    let options = FormatOptions::new();
    let columns = records.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    for row in 0..records.num_rows() {
        let value = |column: &ArrayFormatter<'_>| column.value(row).try_to_string();
        let cells = columns.iter().map(|column| Ok(cell(&value(column)?, cell_max)));
        table.add_row(cells.collect::<Result<Vec<_>, ArrowError>>()?);
    }
    Ok(())
}

/// A cell of one line and at most so many characters, the last of them a mark if some are cut off.
/// Control characters, which would break the layout or steer the terminal, are escaped.
fn cell(text: &str, characters_max: usize) -> Cell {
    if !text.contains(char::is_control) && text.len() <= characters_max {
        return Cell::new(text);
    }
    // What comes behind the first one that is too many is not looked at.
    let mut shown = String::new();
    for character in text.chars().take(characters_max.saturating_add(1)) {
        if character.is_control() {
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
    Cell::new(shown)
}
