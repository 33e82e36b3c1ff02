//! The file of a value, and the rows that are not yet in the file.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;

use super::super::columnar::Columnar;
use super::ValueError;
use crate::shared::files::{Destination, FileError, NewFile, ParkedFile, make_folders_of};
use crate::sink::write::files::archive::{Archive, ArchiveRules};
use crate::sink::write::files::log::{Limits, Log, LogError};
use trommel_engine::operator::Outputs;

/// The file of a value.
#[derive(Default)]
pub(super) enum Held {
    /// The file was not begun, or is a growing file that was closed.
    #[default]
    Closed,
    Open(NewFile),
    Parked(ParkedFile),
    Growing(Box<Log>),
}

/// Rows of a value.
pub(super) struct Sheet {
    /// Path of the first file.
    pub(super) first: PathBuf,
    /// Path of the file that is written now.
    pub(super) path: PathBuf,
    pub(super) held: Held,
    /// Encoded rows that are not yet in the file.
    pub(super) bytes: Vec<u8>,
    /// Rows of a format of columns that are not yet encoded.
    pub(super) batches: Vec<RecordBatch>,
    pub(super) encoder: Option<Box<Columnar>>,
    /// Number in the path of a further file. A value has several files if its file cannot be opened
    /// again.
    pub(super) part: usize,
    /// Number of files that were made.
    pub(super) files: usize,
    /// Rows in `bytes`.
    pub(super) rows: u64,
    /// Time of the last write, as a count of the writes to all files.
    pub(super) written: u64,
}

impl Sheet {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            first: path.clone(),
            path,
            held: Held::Closed,
            bytes: Vec::new(),
            batches: Vec::new(),
            encoder: None,
            part: 0,
            files: 0,
            rows: 0,
            written: 0,
        }
    }

    pub(super) fn has_rows(&self) -> bool {
        self.rows > 0 || !self.batches.is_empty()
    }

    /// Opens the file: a new file, or a file that grows and begins with `header`.
    pub(super) fn open(
        &mut self,
        header: &[u8],
        grows: bool,
        outputs: &Outputs,
    ) -> Result<(), ValueError> {
        self.held = match std::mem::take(&mut self.held) {
            Held::Parked(file) => Held::Open(file.open()?),
            Held::Closed if grows => {
                let is_new = self.files == 0;
                self.files = 1;
                Held::Growing(growing(&self.path, is_new, header, outputs)?)
            }
            Held::Closed => {
                let destination = Destination::file_with_folders(&self.path)?;
                refuse_output(&destination, outputs)?;
                let file = destination.within(outputs.clone()).replace_with_folders()?;
                self.files += 1;
                self.bytes.splice(0..0, header.iter().copied());
                Held::Open(file)
            }
            open => open,
        };
        Ok(())
    }

    /// Writes the encoded rows to the open file. Returns the number of rows.
    pub(super) fn write(&mut self) -> Result<u64, FileError> {
        match &mut self.held {
            Held::Open(file) => file.write(&self.bytes)?,
            Held::Growing(log) => log.write(&self.bytes)?,
            Held::Closed | Held::Parked(_) => unreachable!("opened before"),
        }
        // Most values have few rows at a time, so the room is given back.
        self.bytes = Vec::new();
        Ok(std::mem::take(&mut self.rows))
    }

    /// Closes the file. Further rows may open the file again.
    pub(super) fn close(&mut self) -> Result<(), FileError> {
        self.held = match std::mem::take(&mut self.held) {
            Held::Open(file) => Held::Parked(file.park()?),
            Held::Growing(_) | Held::Closed => Held::Closed,
            parked @ Held::Parked(_) => parked,
        };
        Ok(())
    }
}

/// The file that grows; with `is_new` this run has not opened the file before.
fn growing(
    path: &Path,
    is_new: bool,
    header: &[u8],
    outputs: &Outputs,
) -> Result<Box<Log>, ValueError> {
    make_folders_of(path)?;
    let destination = Destination::log(path)?;
    if is_new {
        refuse_output(&destination, outputs)?;
    }
    let destination = destination.within(outputs.clone());
    let archive = |path: &Path| Archive::new(path, ArchiveRules::default(), outputs.clone());
    match Log::new(destination, Limits::default(), header.to_vec(), archive) {
        Ok(log) => Ok(Box::new(log)),
        Err(LogError::File(error)) => Err(error.into()),
        Err(error) => {
            let path = path.display().to_string();
            let reason = error.to_string();
            Err(ValueError::Append { path, reason })
        }
    }
}

/// Refuses a file that another stage of the run writes.
fn refuse_output(destination: &Destination, outputs: &Outputs) -> Result<(), ValueError> {
    match destination.claim("path") {
        Some(claim) if outputs.contains(&claim.key) => {
            Err(ValueError::Taken { path: destination.name().to_owned() })
        }
        _ => Ok(()),
    }
}
