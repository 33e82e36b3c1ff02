//! Targets of encoded rows.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use super::log::Log;
use crate::shared::files::{Destination, FileError, NewFile, READER_LOOK};

/// Target of encoded rows: a file that is written as a whole, standard output, a pipe or a device;
/// or a file that grows.
pub(crate) enum Target {
    /// The first row opens the target, so that the check of a pipeline creates no file.
    Whole {
        destination: Destination,
        file: Option<NewFile>,
    },
    Log(Box<Log>),
}

impl Target {
    /// Name for messages.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Whole { destination, .. } => destination.name(),
            Self::Log(log) => log.name(),
        }
    }

    /// True if a reader may be waiting for every row.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self, Self::Whole { destination, .. } if destination.as_file().is_none())
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Self::Whole { destination, .. } if destination.is_stdout())
    }

    /// Opens the target if it is not open.
    pub(crate) fn begin(&mut self) -> Result<(), FileError> {
        match self {
            Self::Whole { destination, file } if file.is_none() => {
                *file = destination.try_replace()?
            }
            Self::Whole { .. } => {}
            Self::Log(log) => {
                log.begin()?;
            }
        }
        Ok(())
    }

    /// Writes as many bytes as the target has room for, and returns their number. A pipe without a
    /// reader has no room.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, FileError> {
        self.begin()?;
        match self {
            Self::Whole { file: Some(file), .. } => file.try_write(bytes),
            Self::Whole { file: None, .. } => Ok(0),
            Self::Log(log) => log.write(bytes).map(|()| bytes.len()),
        }
    }

    /// The descriptor that has no room.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Whole { file, .. } => file.as_ref().and_then(NewFile::descriptor),
            Self::Log(_) => None,
        }
    }

    /// Time of the next look for room, if no descriptor shows room: for a pipe without a reader.
    pub(crate) fn look_at(&self) -> Option<Instant> {
        self.descriptor().is_none().then(|| Instant::now() + READER_LOOK)
    }

    /// Completes the output: returns the file that is to be renamed, or syncs a growing file.
    pub(crate) fn complete(&mut self) -> Result<Option<NewFile>, FileError> {
        match self {
            Self::Whole { file, .. } => Ok(file.take()),
            Self::Log(log) => log.sync().map(|()| None),
        }
    }
}
