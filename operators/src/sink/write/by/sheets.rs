//! All files of values: which files are open, and when rows are written.
//!
//! Rows wait in memory until the rows of all values together are many or are due; then all rows are
//! written. A file is therefore opened for many rows at once, even if there are many values.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use rustix::process::{Resource, getrlimit};
use trommel_engine::memory::{MemoryBudget, MemoryFull, Reservation};
use trommel_engine::operator::{OperatorError, Outputs};

use super::super::WriteError;
use super::super::columnar::{ColumnFormat, Columnar};
use super::super::encoding::Encoding;
use super::super::table::slice_bytes;
use super::ValueError;
use super::names::Names;
use super::sheet::{Held, Sheet};
use crate::shared::files::FileError;

/// Maximum values of a run.
const VALUES_MAX: usize = 100_000;
/// Maximum files that are open at once.
const OPEN_MAX: usize = 256;
/// Memory of a value besides its rows and its paths.
const VALUE_BYTES: usize = 512;
/// Maximum encoded bytes that wait, and maximum bytes of rows that wait to be encoded.
const BYTES_MAX: usize = 32 << 20;
const BATCHES_BYTES_MAX: usize = 128 << 20;
/// Minimum memory of the encoder of a file.
const ENCODER_BYTES: usize = 1 << 20;

/// Format of the rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Layout {
    Rows(Encoding),
    Columns(ColumnFormat),
}

/// The rules by which files are made.
pub(super) struct Rules {
    pub(super) names: Names,
    pub(super) layout: Layout,
    pub(super) schema: SchemaRef,
    /// Bytes at the beginning of every file.
    pub(super) header: Vec<u8>,
    /// Whether rows are appended to files. Such files keep their rows if the run fails.
    pub(super) grows: bool,
    pub(super) outputs: Outputs,
    pub(super) memory: MemoryBudget,
}

/// All files of values.
pub(super) struct Sheets {
    rules: Rules,
    sheets: Vec<Sheet>,
    /// Numbers of the sheets that have rows.
    waiting: Vec<u32>,
    waiting_bytes: usize,
    /// Maximum of `waiting_bytes`.
    waiting_max: usize,
    /// Numbers of the sheets whose files are open.
    open: Vec<u32>,
    open_max: usize,
    reserved: Reservation,
    /// Paths of all files that are written as a whole.
    paths: HashSet<PathBuf>,
    /// Memory of the values.
    values_bytes: usize,
    /// Files that have received all of their rows.
    complete: Vec<Held>,
    writes: u64,
    rows_written: u64,
    files: u64,
    files_reopened: u64,
}

impl Sheets {
    pub(super) fn new(rules: Rules) -> Self {
        let waiting_max = match rules.layout {
            Layout::Rows(_) => BYTES_MAX,
            Layout::Columns(_) => BATCHES_BYTES_MAX,
        };
        let waiting_max = waiting_max.min(rules.memory.limit() / 4);
        let reserved = rules.memory.reservation();
        Self {
            rules,
            sheets: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            waiting_max,
            open: Vec::new(),
            open_max: open_max(),
            reserved,
            paths: HashSet::new(),
            values_bytes: 0,
            files: 0,
            complete: Vec::new(),
            writes: 0,
            rows_written: 0,
            files_reopened: 0,
        }
    }

    pub(super) fn rows_written(&self) -> u64 {
        self.rows_written
    }

    /// Number of files that were made, and number of files that were opened again.
    pub(super) fn files(&self) -> (u64, u64) {
        (self.files, self.files_reopened)
    }

    pub(super) fn len(&self) -> usize {
        self.sheets.len()
    }

    /// Begins the sheet of a new value.
    pub(super) fn begin(&mut self, value: Option<&str>) -> Result<(), ValueError> {
        if self.sheets.len() >= VALUES_MAX {
            return Err(ValueError::Many { most: VALUES_MAX });
        }
        let mut sheet = Sheet::new(self.rules.names.first(value)?);
        take_path(&mut self.paths, &self.rules.names, &mut sheet);
        self.values_bytes += VALUE_BYTES + 4 * sheet.path.as_os_str().len();
        self.sheets.push(sheet);
        Ok(())
    }

    /// Adds rows of the value with this number.
    pub(super) fn add(&mut self, number: u32, rows: &RecordBatch) -> Result<(), WriteError> {
        let sheet = &mut self.sheets[number as usize];
        let was_waiting = sheet.has_rows();
        self.waiting_bytes += match self.rules.layout {
            Layout::Rows(encoding) => {
                let before = sheet.bytes.capacity();
                encoding.add(rows, &mut sheet.bytes).map_err(|source| {
                    let path = sheet.path.display().to_string();
                    WriteError::Encode { path, source }
                })?;
                sheet.rows += rows.num_rows() as u64;
                sheet.bytes.capacity() - before
            }
            Layout::Columns(_) => {
                sheet.batches.push(rows.clone());
                slice_bytes(rows).map_err(|source| WriteError::Encode {
                    path: sheet.path.display().to_string(),
                    source,
                })?
            }
        };
        if !was_waiting {
            self.waiting.push(number);
        }
        Ok(())
    }

    /// Writes the rows that wait if they are many, and reserves memory for the rows that still
    /// wait.
    pub(super) fn settle(&mut self) -> Result<(), OperatorError> {
        if self.waiting_bytes > self.waiting_max || self.reserve().is_err() {
            self.flush()?;
        }
        let reserved = self.reserve();
        reserved.map_err(|source| {
            let path = self.rules.names.folder().display().to_string();
            WriteError::Memory { path, source }
        })?;
        Ok(())
    }

    fn reserve(&mut self) -> Result<(), MemoryFull> {
        self.reserved.resize(self.values_bytes + self.waiting_bytes)
    }

    /// Writes all rows that wait.
    pub(super) fn flush(&mut self) -> Result<(), OperatorError> {
        for number in std::mem::take(&mut self.waiting) {
            self.write(number)?;
        }
        self.waiting_bytes = 0;
        Ok(())
    }

    fn write(&mut self, number: u32) -> Result<(), OperatorError> {
        if !self.open.contains(&number) {
            self.open(number)?;
        }
        self.writes += 1;
        self.sheets[number as usize].written = self.writes;
        if let Layout::Columns(format) = self.rules.layout {
            while self.open.len() > 1 && self.rules.memory.left() < ENCODER_BYTES {
                self.close_oldest()?;
            }
            encode(&mut self.sheets[number as usize], format, &self.rules)?;
        }
        match self.sheets[number as usize].write() {
            Ok(rows) => self.rows_written += rows,
            Err(source) if self.rules.grows => {
                return Err(WriteError::Cut { source, rows: self.rows_written }.into());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Opens the file of a sheet, after closing another file if too many files are open.
    fn open(&mut self, number: u32) -> Result<(), OperatorError> {
        if self.open.len() >= self.open_max {
            self.close_oldest()?;
        }
        let sheet = &mut self.sheets[number as usize];
        let before = sheet.files;
        sheet.open(&self.rules.header, self.rules.grows, &self.rules.outputs)?;
        match sheet.files > before {
            true => self.files += 1,
            false => self.files_reopened += 1,
        }
        self.open.push(number);
        Ok(())
    }

    /// Closes the file that was written longest ago.
    fn close_oldest(&mut self) -> Result<(), OperatorError> {
        let written = |(_, number): &(usize, &u32)| self.sheets[**number as usize].written;
        let Some((place, _)) = self.open.iter().enumerate().min_by_key(written) else {
            return Ok(());
        };
        let number = self.open.swap_remove(place) as usize;
        let has_ended = self.end_columns(number)?;
        let sheet = &mut self.sheets[number];
        sheet.close()?;
        if has_ended {
            // A file of columns cannot be continued, so the next rows of the value go into a
            // further file.
            self.complete.push(std::mem::take(&mut sheet.held));
            sheet.part += 1;
            sheet.path = self.rules.names.further(&sheet.first, sheet.part);
            take_path(&mut self.paths, &self.rules.names, sheet);
        }
        Ok(())
    }

    /// Writes the end of a file of columns; false if no such file is open.
    fn end_columns(&mut self, number: usize) -> Result<bool, OperatorError> {
        let sheet = &mut self.sheets[number];
        let Some(mut encoder) = sheet.encoder.take() else { return Ok(false) };
        let rows = encoder.finish(&mut sheet.bytes).map_err(|source| {
            let path = sheet.path.display().to_string();
            WriteError::Encode { path, source }
        })?;
        sheet.rows += rows as u64;
        self.rows_written += sheet.write()?;
        Ok(true)
    }

    /// Completes the file of a sheet. No rows of the sheet wait.
    pub(super) fn complete(&mut self, number: usize) -> Result<(), OperatorError> {
        self.end_columns(number)?;
        let sheet = &mut self.sheets[number];
        if self.rules.grows {
            sheet.open(&self.rules.header, true, &self.rules.outputs)?;
            if let Held::Growing(log) = &mut sheet.held {
                log.begin()?;
                log.sync()?;
            }
            sheet.close()?;
            self.open.retain(|&open| open as usize != number);
        }
        self.complete.push(std::mem::take(&mut sheet.held));
        Ok(())
    }

    /// Opens growing files again by their names, if the names now lead to other files.
    pub(super) fn reopen(&mut self) -> Result<(), FileError> {
        for &number in &self.open {
            if let Held::Growing(log) = &mut self.sheets[number as usize].held {
                log.reopen()?;
            }
        }
        Ok(())
    }

    /// Gives the files their names after the run has ended well.
    pub(super) fn take_commit(&mut self) -> impl FnOnce() -> Result<(), OperatorError> + use<> {
        let files = std::mem::take(&mut self.complete);
        let is_replaced = self.rules.names.is_hive() && !self.rules.grows;
        let sheets = std::mem::take(&mut self.sheets).into_iter().filter(|_| is_replaced);
        // Further files of an earlier run are removed if this run made fewer files for the value.
        let old: Vec<(PathBuf, usize)> = sheets.map(|sheet| (sheet.first, sheet.files)).collect();
        let names = self.rules.names.clone();
        move || {
            for file in files {
                match file {
                    Held::Open(file) => file.commit()?,
                    Held::Parked(file) => file.open()?.commit()?,
                    Held::Growing(_) | Held::Closed => {}
                }
            }
            old.into_iter().try_for_each(|(first, files)| remove_from(&names, &first, files))?;
            Ok(())
        }
    }
}

/// Removes further files of a value, from number `number` on.
fn remove_from(names: &Names, first: &Path, mut number: usize) -> Result<(), FileError> {
    loop {
        let path = names.further(first, number);
        match fs::remove_file(&path) {
            Ok(()) => number += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => {
                return Err(FileError::Io { path: path.display().to_string(), source });
            }
        }
    }
}

/// Gives the sheet a path that no file of the run has. A further file of one value may have taken
/// the name of another value.
pub(super) fn take_path(paths: &mut HashSet<PathBuf>, names: &Names, sheet: &mut Sheet) {
    while !paths.insert(sheet.path.clone()) {
        sheet.part += 1;
        sheet.path = names.further(&sheet.first, sheet.part);
    }
}

/// Encodes the waiting rows of a sheet.
fn encode(sheet: &mut Sheet, format: ColumnFormat, rules: &Rules) -> Result<(), WriteError> {
    let name = |path: &Path| path.display().to_string();
    let encoder = match &mut sheet.encoder {
        Some(encoder) => encoder,
        none => {
            let encoder = Columnar::new(format, &rules.schema, rules.memory.reservation());
            let encoder = encoder.map_err(|source| {
                let path = name(&sheet.path);
                WriteError::Encode { path, source }
            })?;
            none.insert(Box::new(encoder))
        }
    };
    for rows in std::mem::take(&mut sheet.batches) {
        let encoded = encoder.add(&rows, &mut sheet.bytes);
        sheet.rows += encoded.map_err(|error| error.of_file(&name(&sheet.path)))? as u64;
    }
    Ok(())
}

/// Maximum files that are open at once. The process needs descriptors for other uses, too.
fn open_max() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(descriptors / 4).map_or(OPEN_MAX, |quarter| quarter.clamp(1, OPEN_MAX))
}
