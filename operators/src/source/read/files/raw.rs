//! Bytes of one open file as the system returns them, without ever waiting for them.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::paths::Place;
use super::ranged::{FileRange, RangeReader, Truncated};
use crate::shared::files::FileId;

/// Maximum bytes of one pull, so that a call returns even if the bytes decompress to nothing.
const PULL_BYTES: usize = 4 << 20;

/// An open file; a read that would wait fails with [`ErrorKind::WouldBlock`].
///
/// Pipes, terminals and devices are polled before each read. Standard input is never made
/// non-blocking, because other processes share its open file. A FIFO is opened without waiting
/// for a writer; until one comes `poll` reports nothing, whereas a read would look like the end
/// of the file.
pub(crate) struct Raw {
    origin: Origin,
    /// Bytes taken so far.
    bytes: u64,
    /// Bytes to read at the time of opening; `None` unless the file is a regular file.
    bytes_at_open: Option<u64>,
    /// Whether the file is a named pipe.
    is_fifo: bool,
    /// Remaining bytes of the current pull.
    allowance: usize,
    is_stopped: bool,
}

enum Origin {
    File(File),
    Range(RangeReader),
    #[cfg(test)]
    Reader(Box<dyn Read + Send>),
}

/// Reason for a read without bytes before the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// No data at present.
    Empty,
    /// The pull has used up its allowance.
    Spent,
    /// The source has been stopped.
    Stopped,
}

impl Raw {
    /// Opens `place`; refuses folders.
    pub(crate) fn open(place: &Place) -> io::Result<Self> {
        let file = match place {
            Place::Stdin => {
                crate::shared::files::check_stdin()?;
                File::from(rustix::stdio::stdin().try_clone_to_owned()?)
            }
            Place::File(path) => open(path)?,
        };
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        let bytes_at_open = if metadata.is_file() {
            let position = rustix::fs::tell(&file)?;
            Some(metadata.len().saturating_sub(position))
        } else {
            None
        };
        let is_fifo = match place {
            Place::Stdin => false,
            // A link such as `/dev/fd/3` leads to a pipe without a name, which already has a
            // writer.
            Place::File(path) => {
                fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_fifo())
            }
        };
        Ok(Self { bytes_at_open, is_fifo, ..Self::new(Origin::File(file)) })
    }

    fn new(origin: Origin) -> Self {
        let (bytes_at_open, is_fifo) = (None, false);
        Self { origin, bytes: 0, bytes_at_open, is_fifo, allowance: 0, is_stopped: false }
    }

    /// A range of a regular file, read from byte `at` on.
    pub(crate) fn of_range(range: FileRange, at: u64) -> Self {
        let bytes_at_open = Some(range.file.bytes());
        let mut reader = RangeReader::new(range);
        reader.skip_to(at);
        Self { bytes_at_open, ..Self::new(Origin::Range(reader)) }
    }

    #[cfg(test)]
    pub(crate) fn of_reader(reader: Box<dyn Read + Send>) -> Self {
        Self::new(Origin::Reader(reader))
    }

    /// Identity of the file.
    pub(crate) fn id(&self) -> Option<FileId> {
        Some(FileId::of(&self.file()?.metadata().ok()?))
    }

    /// Whether the file is a named pipe that has not sent any bytes yet.
    pub(crate) fn is_silent_pipe(&self) -> bool {
        self.is_fifo && self.bytes == 0
    }

    /// Bytes taken so far.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.origin {
            Origin::Range(range) => range.bytes(),
            _ => self.bytes,
        }
    }

    /// Whether a range was read completely that ends before the end of its file.
    pub(crate) fn is_range_complete(&self) -> bool {
        matches!(&self.origin, Origin::Range(range) if range.is_complete())
    }

    /// The truncation of the file, if the file was truncated after it was opened and its rest has
    /// been read.
    pub(crate) fn truncated(&self) -> io::Result<Option<Truncated>> {
        if let Origin::Range(range) = &self.origin {
            return range.truncated();
        }
        let Some(before) = self.bytes_at_open.filter(|&before| self.bytes < before) else {
            return Ok(None);
        };
        // Files of some file systems, such as sysfs, are shorter than their metadata says.
        let Some(file) = self.file() else { return Ok(None) };
        let position = rustix::fs::tell(file)?;
        let now = file.metadata()?.len();
        let is_cut = now < position - self.bytes + before;
        let truncated = Truncated { bytes: before, read: self.bytes, is_told: false };
        Ok(is_cut.then_some(truncated))
    }

    /// Begins a pull: allows [`PULL_BYTES`] more bytes.
    pub(crate) fn allow(&mut self) {
        self.allowance = PULL_BYTES;
    }

    /// Stops: no read takes any more bytes.
    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Reason why the last read returned `WouldBlock`.
    pub(crate) fn pause(&self) -> Pause {
        if self.is_stopped {
            Pause::Stopped
        } else if self.allowance == 0 {
            Pause::Spent
        } else {
            Pause::Empty
        }
    }

    /// Descriptor to wait for.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file().map(File::as_fd)
    }

    fn file(&self) -> Option<&File> {
        match &self.origin {
            Origin::File(file) => Some(file),
            Origin::Range(range) => Some(range.file()),
            #[cfg(test)]
            Origin::Reader(_) => None,
        }
    }

    /// True if a read would return at once.
    fn is_ready(&self) -> io::Result<bool> {
        // `poll` always reports regular files as readable, so the system call is not needed.
        if self.bytes_at_open.is_some() {
            return Ok(true);
        }
        let Some(descriptor) = self.descriptor() else { return Ok(true) };
        let mut watched = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        match poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Read for Raw {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.is_stopped || self.allowance == 0 || !self.is_ready()? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let len = target.len().min(self.allowance);
        let target = &mut target[..len];
        let read = match &mut self.origin {
            Origin::File(file) => file.read(target)?,
            Origin::Range(range) => range.read(target)?,
            #[cfg(test)]
            Origin::Reader(reader) => reader.read(target)?,
        };
        self.bytes += read as u64;
        self.allowance -= read;
        Ok(read)
    }
}

/// Opens a file without waiting for a writer.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // NONBLOCK keeps `open` from waiting for the writer of a FIFO. NOCTTY keeps a terminal from
    // becoming the controlling terminal.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::NXIO) => Err(io::Error::other("it is a socket, or its device does not exist")),
        Err(error) => Err(error.into()),
    }
}
