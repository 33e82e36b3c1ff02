//! Open descriptors that a path names, such as `/dev/stdout`, `/dev/fd/3` and `/proc/1/fd/1`.
//!
//! A regular file is written at the position of the descriptor of this process, since the shell
//! that opened the file may write to the file, too, before and after this process. A file that
//! another process has open is opened again, to append.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, fcntl_getfl, openat};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::stdio::{stderr, stdout};
use trommel_kernels::stdio::{Stdio, was_closed};

use crate::shared::files::{LINKS_MAX, folder_of};

/// Number of standard output.
const STDOUT: i32 = 1;
/// Number of standard error.
const STDERR: i32 = 2;

/// An open descriptor of this process or of another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Descriptor {
    /// Descriptor of this process, by its number.
    Own(i32),
    /// Descriptor of another process, by its path in `/proc`.
    Foreign(PathBuf),
}

impl Descriptor {
    pub(crate) const STDOUT: Self = Self::Own(STDOUT);

    /// The descriptor that `path` names, also through links; `None` if `path` names no descriptor.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            let folder = fs::canonicalize(folder_of(&path)).ok()?;
            let name = path.file_name()?;
            if let Some(process) = process_of(&folder)
                && let Some(number) = name.to_str().and_then(|name| name.parse().ok())
            {
                let is_own = process == getpid();
                let foreign = || Self::Foreign(folder.join(name));
                return Some(if is_own { Self::Own(number) } else { foreign() });
            }
            path = folder.join(fs::read_link(folder.join(name)).ok()?);
        }
        None
    }

    /// A duplicate of an own descriptor, which shares the position of the descriptor. The path of a
    /// foreign descriptor is opened again, to append.
    pub(crate) fn duplicate(&self) -> io::Result<File> {
        let duplicate = match self {
            Self::Own(STDOUT) => open_at_start(Stdio::Output, stdout())?,
            Self::Own(STDERR) => open_at_start(Stdio::Error, stderr())?,
            Self::Own(number) => {
                check_inherited(*number)?;
                duplicate_own(*number)?
            }
            Self::Foreign(path) => open_to_append(path)?,
        };
        let file = File::from(duplicate);
        if fcntl_getfl(&file)?.intersection(OFlags::RWMODE) == OFlags::RDONLY {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the descriptor is open for reading only",
            ));
        }
        Ok(file)
    }
}

/// The process whose descriptors are in `folder`, such as `/proc/7/fd` or `/proc/7/task/7/fd`.
fn process_of(folder: &Path) -> Option<Pid> {
    let rest = folder.strip_prefix("/proc").ok()?;
    let is_descriptors = rest.ends_with("fd");
    let process = rest.components().next()?.as_os_str().to_str()?;
    is_descriptors.then(|| Pid::from_raw(process.parse().ok()?))?
}

fn open_at_start(stream: Stdio, descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // A closed standard stream may have lent its number to a file that this process opened itself.
    if was_closed(stream) {
        return Err(io::Error::new(io::ErrorKind::NotConnected, "it is closed"));
    }
    descriptor.as_fd().try_clone_to_owned()
}

/// Refuses descriptors that this process has opened for its own use. The numbers after the standard
/// streams may be sockets and events that the process waits for. `exec` closes such descriptors,
/// but not the descriptors from a parent. Files and pipes of the process are allowed, because a
/// program that embeds this library may name files and pipes.
fn check_inherited(number: i32) -> io::Result<()> {
    const CLOEXEC: u64 = 0o2_000_000;
    let not_open = || io::Error::new(io::ErrorKind::NotFound, "the descriptor is not open");
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).map_err(|_| not_open())?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u64::from_str_radix(flags.trim(), 8).ok()).unwrap_or(0);
    let kind = fs::metadata(format!("/proc/self/fd/{number}"))?.file_type();
    let is_ours = flags & CLOEXEC != 0 && !kind.is_file() && !kind.is_fifo();
    if is_ours { Err(not_open()) } else { Ok(()) }
}

fn duplicate_own(number: i32) -> io::Result<OwnedFd> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())
        .and_then(|own| pidfd_getfd(own, number, PidfdGetfdFlags::empty()));
    // Old kernels and some containers refuse the call. A second description of the file appends, so
    // that no bytes are lost.
    own.or_else(|_| open_to_append(Path::new(&format!("/proc/self/fd/{number}"))))
        .map_err(Into::into)
}

fn open_to_append(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOCTTY;
    openat(CWD, path, flags, Mode::empty())
}
