//! Outputs that are written in place: pipes, terminals, sockets, devices and open descriptors. A
//! write takes as many bytes as there is room for, and does not wait.
//!
//! Whether a write waits is a property of the open file description. This process shares the
//! description with the programs that opened the descriptor, so the description is not changed. A
//! pipe or a terminal is opened a second time, non-blocking. If the second opening is refused, a
//! write first asks for room, and then writes no more than a pipe with room takes at once.

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

/// An output that is written in place.
#[derive(Debug)]
pub(crate) struct Direct {
    file: File,
    waits: Waits,
}

/// Whether a write waits for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// The output always has room: a regular file, or a device that is no terminal.
    Never,
    /// The system refuses a write without room.
    Refuses,
    /// A write without room waits, so the output is asked for room first.
    Yes,
}

impl Direct {
    /// An output that this process alone has opened, non-blocking.
    pub(crate) fn of_own(file: OwnedFd) -> Self {
        Self { file: file.into(), waits: Waits::Refuses }
    }

    /// An output whose description other programs share.
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

    /// Writes as many of `bytes` as there is room for, and returns their number.
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

/// Waits for room, at most for `limit`. Returns true if there is room, or if a write would fail.
pub(crate) fn has_room(file: &File, limit: Option<Duration>) -> io::Result<bool> {
    let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
    match poll(&mut [PollFd::new(file, PollFlags::OUT)], timeout.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
