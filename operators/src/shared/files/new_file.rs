//! Output that replaces a file, or is written in place.
//!
//! A replacement has no name while it is written, if the file system can make such a file: a
//! process that is killed then leaves no file. The replacement gets a temporary name just before
//! the rename.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Seek as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
use rustix::io::Errno;
use tempfile::{NamedTempFile, TempPath};

use super::direct::{Direct, has_room};
use crate::shared::files::{Destination, FileError, folder_of, sync_folder, write_all};

/// Maximum bytes of the file name in the temporary name, which stays below the limit of 255 bytes
/// of file systems.
const PREFIX_BYTES: usize = 200;
/// Mode of a new file before the umask is applied.
const NEW_MODE: u32 = 0o666;
/// Mode of a temporary file that will replace another file and then get the mode of that file.
const PRIVATE_MODE: u32 = 0o600;

/// Output that replaces a file, or is written directly to a pipe, a device or a descriptor. The
/// file does not appear before [`Self::commit`]; dropping a `NewFile` removes the file.
#[derive(Debug)]
pub struct NewFile {
    destination: Destination,
    staged: Staged,
}

#[derive(Debug)]
pub(crate) enum Staged {
    Replacement(Replacement),
    Direct(Direct),
}

/// A file that is to replace the file at `path`.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    /// Folder of the file until the file gets its name: the folder of the path, or the nearest
    /// existing folder around it.
    folder: PathBuf,
    file: Unnamed,
}

/// A [`NewFile`] that is closed and has a temporary name, so that it needs no descriptor. Dropping
/// a `ParkedFile` removes the file.
#[derive(Debug)]
pub(crate) struct ParkedFile {
    destination: Destination,
    path: PathBuf,
    folder: PathBuf,
    parked: TempPath,
}

#[derive(Debug)]
enum Unnamed {
    /// File without a name in the folder of the path, or in the folder that will contain the folder
    /// of the path.
    Nameless(File),
    /// File under a temporary name in the same folder.
    Named(NamedTempFile),
    /// File in another place, because the folder of the path takes no new files.
    Elsewhere(File),
}

impl NewFile {
    pub(crate) fn new(destination: Destination, staged: Staged) -> Self {
        Self { destination, staged }
    }

    /// Writes all of `bytes`, and waits for room in a pipe.
    ///
    /// # Errors
    /// If the operating system refuses some of the bytes.
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

    /// Writes as many of `bytes` as there is room for, and returns their number. A file takes all
    /// bytes; a pipe, a terminal or a socket may take none.
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

    /// The descriptor to wait for; `None` for a file, which always has room.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.staged {
            Staged::Replacement(_) => None,
            Staged::Direct(direct) => Some(direct.file().as_fd()),
        }
    }

    /// Closes a file until further bytes are written or the file is committed.
    ///
    /// # Errors
    /// If the folder takes no new files, or the output is no file.
    pub(crate) fn park(self) -> Result<ParkedFile, FileError> {
        let Self { destination, staged } = self;
        let parked = match staged {
            Staged::Replacement(Replacement { path, folder, file }) => {
                file.park(&path, &folder).map(|parked| (path, folder, parked))
            }
            Staged::Direct(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        let (path, folder, parked) = parked.map_err(|error| destination.error(error))?;
        Ok(ParkedFile { destination, path, folder, parked })
    }

    /// Renames the file to its final name once its bytes are on the disk. If no rename can replace
    /// the old file, such as a file that a container mounts, the bytes are copied into the old
    /// file.
    ///
    /// # Errors
    /// If the rename or the copy fails. The old file still exists, unless the copy failed half-way,
    /// or only the last step failed, which syncs the folder.
    pub fn commit(self) -> Result<(), FileError> {
        let Self { destination, staged } = self;
        match staged {
            Staged::Direct(_) => Ok(()),
            Staged::Replacement(new) => new.commit().map_err(|error| destination.error(error)),
        }
    }
}

impl ParkedFile {
    /// Opens the file again, to append to it.
    ///
    /// # Errors
    /// If the operating system refuses to open the file.
    pub(crate) fn open(self) -> Result<NewFile, FileError> {
        let Self { destination, path, folder, parked } = self;
        let file = File::options().read(true).append(true).open(&parked);
        let file = file.map_err(|error| destination.error(error))?;
        let file = Unnamed::Named(NamedTempFile::from_parts(file, parked));
        Ok(NewFile::new(destination, Staged::Replacement(Replacement { path, folder, file })))
    }
}

impl Unnamed {
    /// Closes the file, which keeps a temporary name.
    fn park(self, path: &Path, folder: &Path) -> io::Result<TempPath> {
        match self {
            Self::Nameless(file) => link(&file, path, folder),
            Self::Named(file) => Ok(file.into_temp_path()),
            Self::Elsewhere(_) => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    fn as_file(&self) -> &File {
        match self {
            Self::Nameless(file) | Self::Elsewhere(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }
}

impl Replacement {
    /// The metadata of the new file.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.as_file().metadata()
    }

    /// Creates a file without a name in `folder`. The file is to replace the file at `path`.
    pub(crate) fn new(path: &Path, folder: &Path) -> io::Result<Self> {
        let (path, folder) = (path.to_owned(), folder.to_owned());
        let mode = if path.exists() { PRIVATE_MODE } else { NEW_MODE };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        // The name is given later, through `/proc`.
        let nameless = match fs::exists("/proc/self/fd") {
            Ok(true) => openat(CWD, &folder, flags, Mode::from_raw_mode(mode)),
            _ => Err(Errno::OPNOTSUPP),
        };
        let file = match nameless {
            Ok(file) => Unnamed::Nameless(file.into()),
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) if path.exists() => {
                // Only the file itself can be written, since its folder takes no new files.
                File::options().append(true).open(&path)?;
                Unnamed::Elsewhere(tempfile::tempfile()?)
            }
            Err(_) => Unnamed::Named(with_temporary_name(&path, |builder| {
                builder.permissions(Permissions::from_mode(mode)).tempfile_in(&folder)
            })?),
        };
        Ok(Self { path, folder, file })
    }

    fn commit(self) -> io::Result<()> {
        let Self { path, folder, file } = self;
        let old = fs::metadata(&path).ok();
        let is_renamed = match &file {
            Unnamed::Nameless(_) | Unnamed::Named(_) => {
                if let Some(old) = &old {
                    adopt(file.as_file(), old)?;
                }
                // Data before name: after a crash, the name must not lead to incomplete bytes.
                file.as_file().sync_all()?;
                if folder != folder_of(&path) {
                    make_folders(folder_of(&path))?;
                }
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

/// Renames the file to `path`. Returns false if no rename can replace the file there; a copy into
/// that file may still succeed.
fn rename(file: &Unnamed, path: &Path) -> io::Result<bool> {
    let renamed = match file {
        Unnamed::Named(file) => fs::rename(file.path(), path),
        Unnamed::Nameless(file) | Unnamed::Elsewhere(file) => {
            let named = link(file, path, folder_of(path))?;
            named.persist(path).map_err(|error| error.error)
        }
    };
    match renamed.map_err(|error| (error.raw_os_error().map(Errno::from_raw_os_error), error)) {
        Ok(()) => Ok(true),
        // The path is a mount point, or belongs to another user in a folder like `/tmp`.
        Err((Some(Errno::BUSY | Errno::XDEV | Errno::ACCESS | Errno::PERM), _)) => Ok(false),
        Err((_, error)) => Err(error),
    }
}

/// Gives a temporary name in `folder` to a file without a name.
fn link(file: &File, path: &Path, folder: &Path) -> io::Result<TempPath> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let named = with_temporary_name(path, |builder| {
        builder.make_in(folder, |name| Ok(linkat(CWD, &own, CWD, name, AtFlags::SYMLINK_FOLLOW)?))
    })?;
    Ok(named.into_temp_path())
}

/// Makes the missing folders of a file.
///
/// # Errors
/// If the operating system refuses to make a folder.
pub(crate) fn make_folders_of(path: &Path) -> Result<(), FileError> {
    let blame = |source| FileError::Io { path: path.display().to_string(), source };
    make_folders(folder_of(path)).map_err(blame)
}

/// Makes the folder and the missing folders around it, and syncs each folder that gets a new name.
fn make_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    make_folders(folder_of(folder))?;
    match fs::create_dir(folder) {
        // Another file of the run, or another program, has made the folder first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made.and_then(|()| sync_folder(folder)),
    }
}

/// Copies all of `file` into the file at `path`, which keeps its identity.
fn copy_into(mut file: &File, path: &Path) -> io::Result<()> {
    file.rewind()?;
    let mut old = File::options().write(true).open(path)?;
    let bytes = io::copy(&mut file, &mut old)?;
    old.set_len(bytes)?;
    old.sync_all()
}

/// Creates a file by `create` under a temporary name next to the file at `path`.
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
        // Only the superuser may change owners; otherwise the writing user owns the file.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(Permissions::from_mode(old.mode() & 0o777))
}
