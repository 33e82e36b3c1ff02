//! Tables. A row is printed in the form of Markdown when the row has been measured, and is kept for
//! a file of JSON.

use std::fmt::Display;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::{fs, io, mem};

use serde_json::{Value, json};

use super::machine;

/// All tables of this process.
static TABLES: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// A table whose head is printed.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Value>,
}

struct Column {
    name: String,
    is_right: bool,
    /// Characters of a cell, at least.
    width: usize,
}

impl Table {
    /// Prints a head such as `way | build, s: | pairs:`. Cells of a column whose name ends with a colon
    /// are aligned at the right; spaces at the end of a name make the column wider.
    pub(crate) fn new(head: &str) -> Self {
        let column = |cell: &str| {
            let name = cell.trim().trim_end_matches(':').to_owned();
            let width = cell.chars().count() - usize::from(cell.trim_end().ends_with(':'));
            Column { width: width.max(name.chars().count()), is_right: cell.contains(':'), name }
        };
        let columns: Vec<Column> = head.split(" | ").map(column).collect();
        let table = Self { columns, rows: Vec::new() };
        table.print(table.columns.iter().map(|column| column.name.as_str()));
        let rule = |column: &Column| if column.is_right { "---:" } else { "---" };
        println!("|{}|", table.columns.iter().map(rule).collect::<Vec<_>>().join("|"));
        table
    }

    /// Prints a row, whose cells are divided by ` | `. Cells that are missing at its end are empty.
    pub(crate) fn row(&mut self, cells: impl Display) {
        let line = cells.to_string();
        let cells = line.split(" | ").chain(std::iter::repeat(""));
        let cells: Vec<&str> = cells.take(self.columns.len()).map(str::trim).collect();
        self.print(cells.iter().copied());
        let value = |cell: &str| match (cell.parse::<u64>(), cell.parse::<f64>()) {
            (Ok(number), _) => json!(number),
            (_, Ok(number)) if number.is_finite() => json!(number),
            _ => json!(cell),
        };
        let named = self.columns.iter().zip(&cells);
        let named = named.map(|(column, cell)| (column.name.clone(), value(cell)));
        self.rows.push(Value::Object(named.collect()));
    }

    fn print<'a>(&self, cells: impl Iterator<Item = &'a str>) {
        let padded = self.columns.iter().zip(cells).map(|(column, cell)| {
            let width = column.width;
            if column.is_right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        println!("| {} |", padded.collect::<Vec<_>>().join(" | "));
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        println!();
        let rows = mem::take(&mut self.rows);
        TABLES.lock().unwrap_or_else(PoisonError::into_inner).push(Value::Array(rows));
    }
}

/// Joins values as cells of a row.
pub(crate) fn cells(values: impl IntoIterator<Item = impl Display>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(" | ")
}

/// Joins the names of columns whose cells are aligned at the right.
pub(crate) fn right(names: impl IntoIterator<Item = impl Display>) -> String {
    cells(names.into_iter().map(|name| format!("{name}:")))
}

/// A cell of a value that may be missing.
pub(crate) fn or_empty(value: Option<f64>, shown: impl Fn(f64) -> String) -> String {
    value.map_or_else(String::new, shown)
}

/// Writes all tables, each a list of its rows, with the command and the machine.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn save(path: &Path) -> io::Result<()> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    let tables = mem::take(&mut *TABLES.lock().unwrap_or_else(PoisonError::into_inner));
    let all = json!({ "command": command.join(" "), "machine": machine(), "tables": tables });
    fs::write(path, serde_json::to_vec_pretty(&all)?)
}
