//! Targets of encoded rows.

use std::io;

use super::log::Log;
use crate::files::{Destination, FileError, NewFile};

/// Target: a file written as a whole, standard output, a pipe or a device; or a file that grows.
pub(super) enum Target {
    /// Opened by the first row, so that checking a pipeline creates no file.
    Whole {
        destination: Destination,
        header: Vec<u8>,
        file: Option<NewFile>,
    },
    Log(Log),
}

/// State of the reader of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Reads,
    HasLeft,
}

impl Target {
    /// Name for messages.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Whole { destination, .. } => destination.name(),
            Self::Log(log) => log.name(),
        }
    }

    /// True if a reader may be waiting for every row.
    pub(super) fn is_live(&self) -> bool {
        matches!(self, Self::Whole { destination, .. } if destination.as_file().is_none())
    }

    /// Opens the target if necessary and writes the header.
    pub(super) fn begin(&mut self) -> Result<Reader, FileError> {
        match self {
            Self::Whole { destination, header, file } => {
                if file.is_none() {
                    let new = file.insert(destination.replace()?);
                    return if_read(destination, new.write(header));
                }
                Ok(Reader::Reads)
            }
            Self::Log(log) => log.begin().map(|_| Reader::Reads),
        }
    }

    /// Writes encoded rows. When the reader of standard output has left, this is no error.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<Reader, FileError> {
        if self.begin()? == Reader::HasLeft {
            return Ok(Reader::HasLeft);
        }
        match self {
            Self::Whole { destination, file: Some(file), .. } => {
                if_read(destination, file.write(bytes))
            }
            Self::Whole { file: None, .. } => Ok(Reader::Reads),
            Self::Log(log) => log.write(bytes).map(|()| Reader::Reads),
        }
    }

    /// Completes the output: hands over the file that is to be renamed, or syncs a growing file.
    pub(super) fn complete(&mut self) -> Result<Option<NewFile>, FileError> {
        match self {
            Self::Whole { file, .. } => Ok(file.take()),
            Self::Log(log) => log.sync().map(|()| None),
        }
    }
}

/// Turns a broken pipe on standard output into [`Reader::HasLeft`].
fn if_read(destination: &Destination, written: Result<(), FileError>) -> Result<Reader, FileError> {
    match written {
        Err(FileError::Io { source, .. })
            if destination.is_stdout() && source.kind() == io::ErrorKind::BrokenPipe =>
        {
            Ok(Reader::HasLeft)
        }
        written => written.map(|()| Reader::Reads),
    }
}
