//! Outputs that are written where they are: pipes, terminals, sockets, devices and open
//! descriptors. A write takes what there is room for and does not wait.
//!
//! Whether a write waits is a property of the open file description, which this process shares with
//! the programs that it got the descriptor from. So the description is not changed. A pipe or a
//! terminal is opened once more, non-blocking; where that is refused, a write asks first and then
//! writes no more than a pipe with room takes at once.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// Bytes that a pipe that is ready for writing takes at once: a page.
const PAGE_BYTES: usize = 4096;

/// An output that is written where it is.
#[derive(Debug)]
pub(crate) struct Direct {
    file: File,
    waits: Waits,
}

/// Whether a write waits for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// There is always room: a regular file, or a device that is no terminal.
    Never,
    /// A write without room is refused.
    Refuses,
    /// A write without room waits, so the room is asked for.
    Yes,
}

impl Direct {
    /// An output that was opened non-blocking by this process alone.
    pub(crate) fn of_own(file: OwnedFd) -> Self {
        Self { file: file.into(), waits: Waits::Refuses }
    }

    /// An output whose description is shared with other programs.
    pub(crate) fn of_shared(file: File) -> io::Result<Self> {
        let kind = file.metadata()?.file_type();
        let is_terminal = kind.is_char_device() && rustix::termios::isatty(&file);
        if !kind.is_fifo() && !kind.is_socket() && !is_terminal {
            return Ok(Self { file, waits: Waits::Never });
        }
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(match openat(CWD, path, flags, Mode::empty()) {
            Ok(own) => Self::of_own(own),
            Err(_) => Self { file, waits: Waits::Yes },
        })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Writes as many of `bytes` as there is room for; returns their number.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut bytes = bytes;
        if self.waits == Waits::Yes {
            if !has_room(&self.file, Some(Duration::ZERO))? {
                return Ok(0);
            }
            bytes = &bytes[..bytes.len().min(PAGE_BYTES)];
        }
        loop {
            match (&self.file).write(bytes) {
                Ok(0) if !bytes.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                written => return written,
            }
        }
    }
}

/// Waits for room, at most for `limit`; true if there is some, or a write would fail.
pub(crate) fn has_room(file: &File, limit: Option<Duration>) -> io::Result<bool> {
    let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
    match poll(&mut [PollFd::new(file, PollFlags::OUT)], timeout.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
