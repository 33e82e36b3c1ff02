//! Output that replaces a file, or goes directly to where it is.
//!
//! A replacement has no name while it is written, where the file system can make such a file: so
//! nothing is left of a process that is killed. It gets a temporary name just before the rename.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Seek as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use super::direct::{Direct, has_room};
use super::{Destination, FileError, folder_of, sync_folder, write_all};

/// Maximum bytes of the file name in the temporary name, which stays below the limit of 255 bytes
/// of file systems.
const PREFIX_BYTES: usize = 200;
/// Mode of a new file before the umask is applied.
const NEW_MODE: u32 = 0o666;
/// Mode of a temporary file that will replace another one and then get its mode.
const PRIVATE_MODE: u32 = 0o600;

/// Output that replaces a file, or goes directly to a pipe, a device or a descriptor. Before
/// [`Self::commit`] the file does not appear; dropping a `NewFile` removes it.
#[derive(Debug)]
pub struct NewFile {
    destination: Destination,
    staged: Staged,
}

#[derive(Debug)]
pub(super) enum Staged {
    Replacement(Replacement),
    Direct(Direct),
}

/// A file that is to replace the one at `path`.
#[derive(Debug)]
pub(super) struct Replacement {
    path: PathBuf,
    file: Unnamed,
}

#[derive(Debug)]
enum Unnamed {
    /// File without a name in the folder of the path.
    Nameless(File),
    /// File under a temporary name in the folder of the path.
    Named(NamedTempFile),
    /// File elsewhere: the folder of the path takes no new files.
    Elsewhere(File),
}

impl NewFile {
    pub(super) fn new(destination: Destination, staged: Staged) -> Self {
        Self { destination, staged }
    }

    /// Writes all of `bytes`; waits for room in a pipe.
    ///
    /// # Errors
    /// If the operating system refuses some of them.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let mut left = bytes;
        loop {
            let written = self.try_write(left)?;
            left = &left[written..];
            if left.is_empty() {
                return Ok(());
            }
            if let Staged::Direct(direct) = &self.staged {
                has_room(direct.file(), None).map_err(|error| self.destination.error(error))?;
            }
        }
    }

    /// Writes as many of `bytes` as there is room for, and returns their number: all of them for a
    /// file, perhaps none for a pipe, a terminal or a socket.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn try_write(&mut self, bytes: &[u8]) -> Result<usize, FileError> {
        let written = match &self.staged {
            Staged::Replacement(new) => write_all(new.file.as_file(), bytes).map(|()| bytes.len()),
            Staged::Direct(direct) => direct.write(bytes),
        };
        written.map_err(|error| self.destination.error(error))
    }

    /// The descriptor whose room can be waited for; `None` for a file, which always has room.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.staged {
            Staged::Replacement(_) => None,
            Staged::Direct(direct) => Some(direct.file().as_fd()),
        }
    }

    /// Renames the file to its final name once its bytes are on the disk. Where a rename cannot
    /// replace the old file, such as one that a container mounts, the bytes are copied into it.
    ///
    /// # Errors
    /// If that fails. The old file is still there, unless copying failed half-way or only the last
    /// step failed, which syncs the folder.
    pub fn commit(self) -> Result<(), FileError> {
        let Self { destination, staged } = self;
        match staged {
            Staged::Direct(_) => Ok(()),
            Staged::Replacement(new) => new.commit().map_err(|error| destination.error(error)),
        }
    }
}

impl Unnamed {
    fn as_file(&self) -> &File {
        match self {
            Self::Nameless(file) | Self::Elsewhere(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }
}

impl Replacement {
    /// The metadata of the new file.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        self.file.as_file().metadata()
    }

    /// Creates a file without a name, which is to replace the one at `path`.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let (path, folder) = (path.to_owned(), folder_of(path).to_owned());
        let mode = if path.exists() { PRIVATE_MODE } else { NEW_MODE };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        // A name is given through `/proc` later.
        let nameless = match fs::exists("/proc/self/fd") {
            Ok(true) => openat(CWD, &folder, flags, Mode::from_raw_mode(mode)),
            _ => Err(Errno::OPNOTSUPP),
        };
        let file = match nameless {
            Ok(file) => Unnamed::Nameless(file.into()),
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) if path.exists() => {
                // Only the file itself can be written.
                File::options().append(true).open(&path)?;
                Unnamed::Elsewhere(tempfile::tempfile()?)
            }
            Err(_) => Unnamed::Named(with_temporary_name(&path, |builder| {
                builder.permissions(Permissions::from_mode(mode)).tempfile_in(&folder)
            })?),
        };
        Ok(Self { path, file })
    }

    fn commit(self) -> io::Result<()> {
        let Self { path, file } = self;
        let old = fs::metadata(&path).ok();
        let is_renamed = match &file {
            Unnamed::Nameless(_) | Unnamed::Named(_) => {
                if let Some(old) = &old {
                    adopt(file.as_file(), old)?;
                }
                // Data before name: a crash must not leave the name on incomplete bytes.
                file.as_file().sync_all()?;
                rename(&file, &path)?
            }
            Unnamed::Elsewhere(_) => false,
        };
        if is_renamed {
            return sync_folder(&path);
        }
        copy_into(file.as_file(), &path)
    }
}

/// Renames the file to `path`; false if no rename can replace the file there, which can perhaps be
/// written.
fn rename(file: &Unnamed, path: &Path) -> io::Result<bool> {
    let renamed = match file {
        Unnamed::Named(file) => fs::rename(file.path(), path),
        Unnamed::Nameless(file) | Unnamed::Elsewhere(file) => {
            let own = format!("/proc/self/fd/{}", file.as_raw_fd());
            let named = with_temporary_name(path, |builder| {
                builder.make_in(folder_of(path), |name| {
                    Ok(linkat(CWD, &own, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
                })
            })?;
            named.into_temp_path().persist(path).map_err(|error| error.error)
        }
    };
    match renamed.map_err(|error| (error.raw_os_error().map(Errno::from_raw_os_error), error)) {
        Ok(()) => Ok(true),
        // A mount point, or a file of somebody else in a folder like `/tmp`.
        Err((Some(Errno::BUSY | Errno::XDEV | Errno::ACCESS | Errno::PERM), _)) => Ok(false),
        Err((_, error)) => Err(error),
    }
}

/// Copies all of `file` into the file at `path`, which stays the same file.
fn copy_into(mut file: &File, path: &Path) -> io::Result<()> {
    file.rewind()?;
    let mut old = File::options().write(true).open(path)?;
    let bytes = io::copy(&mut file, &mut old)?;
    old.set_len(bytes)?;
    old.sync_all()
}

/// Creates a file under a temporary name beside the one at `path`, as `create` says.
fn with_temporary_name<T>(
    path: &Path,
    create: impl FnOnce(&mut tempfile::Builder<'_, '_>) -> io::Result<T>,
) -> io::Result<T> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut prefix = name[..name.len().min(PREFIX_BYTES)].to_vec();
    prefix.push(b'.');
    let prefix = std::ffi::OsStr::from_bytes(&prefix);
    create(tempfile::Builder::new().prefix(prefix).suffix(".part").rand_bytes(8))
}

/// Gives `file` the owner and mode of the file that it will replace.
fn adopt(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only the superuser may change owners; otherwise the file belongs to the writer.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(Permissions::from_mode(old.mode() & 0o777))
}
