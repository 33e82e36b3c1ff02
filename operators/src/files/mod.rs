//! Output files: of sinks, of states and of reports.
//!
//! ```text
//! path ──► Destination ──► replace() ──► NewFile under a temporary name ──► commit() renames it
//!          links resolved,  └──► append() ──► File, the file itself
//!          kind known
//! ```
//!
//! A replacement is written next to the file, under a unique and unpredictable name, and renamed
//! when it is complete and on the disk. So the name always leads to all of the old bytes or all
//! of the new ones, even when two processes write it. A link stays a link: its target is
//! replaced. An existing file keeps its mode and, where the system allows it, its owner; a new
//! file gets the usual mode.
//!
//! Pipes and devices are written directly and never replaced. If one is non-blocking, a write
//! waits for room. Sockets and folders are refused.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Access, CWD, Mode, OFlags, access, openat};
use rustix::io::Errno;
use tempfile::NamedTempFile;
use thiserror::Error;
use trommel_engine::operator::Claim;

/// Maximum links followed in a row, as in Linux.
const LINKS_MAX: usize = 40;
/// Maximum bytes of the file name in the temporary name, which stays below the limit of 255 bytes
/// of file systems.
const PREFIX_BYTES: usize = 200;
/// Mode of a new file before the umask is applied.
const NEW_MODE: u32 = 0o666;
/// Mode of a temporary file that will replace another one and then get its mode.
const PRIVATE_MODE: u32 = 0o600;

/// Error of an output file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file could not be opened, written or renamed.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The path is a folder.
    #[error("cannot write {path}: it is a folder")]
    Folder {
        /// The folder.
        path: String,
    },
    /// The path is a socket.
    #[error("cannot write {path}: it is a socket; files, pipes and devices can be written")]
    Socket {
        /// The socket.
        path: String,
    },
    /// The folder of the file does not exist.
    #[error("cannot write {path}: there is no folder {folder}")]
    NoFolder {
        /// The file.
        path: String,
        /// Its folder.
        folder: String,
    },
}

/// Place of output: an existing or new file, a pipe or device, or standard output. Creating a
/// destination opens and writes nothing.
///
/// # Examples
/// ```
/// use trommel_operators::files::Destination;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("report.json");
/// let mut file = Destination::file(&path)?.replace()?;
/// file.write(b"{}")?;
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"{}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Destination {
    name: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Stdout,
    /// Pipe or device, written directly.
    Special(PathBuf),
    /// File, by its path without links.
    File(PathBuf),
}

impl Destination {
    /// Standard output.
    #[must_use]
    pub fn stdout() -> Self {
        Self { name: "standard output".to_owned(), kind: Kind::Stdout }
    }

    /// Destination of a file that is written as a whole. Checks all that can be checked without
    /// writing.
    ///
    /// # Errors
    /// If `path` is a folder or a socket, its folder does not exist, or the process may not
    /// create files there.
    pub fn file(path: &Path) -> Result<Self, FileError> {
        let destination = Self::resolve(path)?;
        if let Kind::File(path) = &destination.kind {
            destination.check_access(folder_of(path), Access::WRITE_OK | Access::EXEC_OK)?;
        }
        Ok(destination)
    }

    /// Destination of a file to append to. Checks all that can be checked without writing.
    ///
    /// # Errors
    /// As [`Self::file`], and if the process may not read and write the file.
    pub(crate) fn log(path: &Path) -> Result<Self, FileError> {
        let destination = Self::resolve(path)?;
        match &destination.kind {
            Kind::File(path) if path.exists() => {
                destination.check_access(path, Access::READ_OK | Access::WRITE_OK)?;
            }
            Kind::File(path) => {
                destination.check_access(folder_of(path), Access::WRITE_OK | Access::EXEC_OK)?;
            }
            Kind::Stdout | Kind::Special(_) => {}
        }
        Ok(destination)
    }

    fn resolve(path: &Path) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let refused = |source| FileError::Io { path: name.clone(), source };
        let kind = match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(FileError::Folder { path: name }),
            Ok(found) if found.file_type().is_socket() => {
                return Err(FileError::Socket { path: name });
            }
            Ok(found) if !found.is_file() => Kind::Special(path.to_owned()),
            Ok(_) => Kind::File(fs::canonicalize(path).map_err(refused)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Kind::File(new_path(path).map_err(|missing| missing.into_error(path))?)
            }
            Err(error) => return Err(refused(error)),
        };
        let destination = Self { name, kind };
        if let Kind::Special(path) = &destination.kind {
            destination.check_access(path, Access::WRITE_OK)?;
        }
        Ok(destination)
    }

    fn check_access(&self, path: &Path, wanted: Access) -> Result<(), FileError> {
        access(path, wanted).map_err(|error| self.error(error.into()))
    }

    /// Name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Path of the file without links; `None` for a pipe, a device or standard output.
    #[must_use]
    pub fn as_file(&self) -> Option<&Path> {
        match &self.kind {
            Kind::File(path) => Some(path),
            Kind::Stdout | Kind::Special(_) => None,
        }
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.kind, Kind::Stdout)
    }

    /// Claim to this destination for a stage, named by `parameter`: by device and inode, of
    /// the folder if the file does not exist; `None` for a device that several stages
    /// may write, such as `/dev/null`.
    #[must_use]
    pub fn claim(&self, parameter: &'static str) -> Option<Claim> {
        let existing = |found: &Metadata| format!("file {} {}", found.dev(), found.ino());
        let key = match &self.kind {
            Kind::Stdout => {
                let file = rustix::stdio::stdout().try_clone_to_owned().ok().map(File::from);
                let found = file.and_then(|file| file.metadata().ok());
                let found = found.filter(|found| !found.file_type().is_char_device());
                found.as_ref().map_or_else(|| self.name.clone(), existing).into_bytes()
            }
            Kind::Special(path) => {
                let found = fs::metadata(path).ok()?;
                if found.file_type().is_char_device() {
                    return None;
                }
                existing(&found).into_bytes()
            }
            Kind::File(path) => match (fs::metadata(path), fs::metadata(folder_of(path))) {
                (Ok(found), _) => existing(&found).into_bytes(),
                (Err(_), Ok(folder)) => {
                    let mut key = existing(&folder).into_bytes();
                    key.push(b'/');
                    key.extend(path.file_name().unwrap_or_default().as_bytes());
                    key
                }
                // The folder has vanished; writing will report it.
                (Err(_), Err(_)) => path.as_os_str().as_bytes().to_vec(),
            },
        };
        Some(Claim::new(key, self.name.clone(), parameter))
    }

    /// Checks that [`Self::replace`] would work now, by creating and removing a temporary file.
    ///
    /// # Errors
    /// As [`Self::replace`].
    pub fn probe(&self) -> Result<(), FileError> {
        match &self.kind {
            Kind::File(path) => temporary(path).map(drop).map_err(|error| self.error(error)),
            Kind::Stdout | Kind::Special(_) => Ok(()),
        }
    }

    /// Opens a replacement of the file, for a stream of rows. Opening a pipe waits for its
    /// reader.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn replace(&self) -> Result<NewFile, FileError> {
        self.open(OFlags::empty())
    }

    /// As [`Self::replace`], for output at the end of a run. A pipe without a reader is an error,
    /// since nothing would end the wait for one.
    ///
    /// # Errors
    /// As [`Self::replace`].
    pub fn replace_now(&self) -> Result<NewFile, FileError> {
        self.open(OFlags::NONBLOCK)
    }

    fn open(&self, flags: OFlags) -> Result<NewFile, FileError> {
        let staged = match &self.kind {
            Kind::File(path) => temporary(path).map(|file| {
                let path = path.clone();
                Staged::Temporary { file, path }
            }),
            Kind::Special(path) => open_special(path, flags).map(Staged::Direct),
            Kind::Stdout => {
                rustix::stdio::stdout().try_clone_to_owned().map(|fd| Staged::Direct(fd.into()))
            }
        };
        let staged = staged.map_err(|error| self.error(error))?;
        Ok(NewFile { destination: self.clone(), staged })
    }

    /// Opens the file for appending; creates it if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub(crate) fn append(&self) -> Result<File, FileError> {
        let path = match &self.kind {
            Kind::File(path) | Kind::Special(path) => path,
            Kind::Stdout => unreachable!("only files are appended to"),
        };
        // Opened for reading too: the caller checks how the last line ends.
        let file = File::options().read(true).append(true).create(true).open(path);
        file.map_err(|error| self.error(error))
    }

    pub(crate) fn error(&self, source: io::Error) -> FileError {
        FileError::Io { path: self.name.clone(), source }
    }
}

/// Output that replaces a file, or goes directly to a pipe or device. Before [`Self::commit`] the
/// file does not appear; dropping a `NewFile` removes it.
#[derive(Debug)]
pub struct NewFile {
    destination: Destination,
    staged: Staged,
}

#[derive(Debug)]
enum Staged {
    Temporary { file: NamedTempFile, path: PathBuf },
    Direct(File),
}

impl NewFile {
    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// If the operating system refuses some of them.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let file = match &self.staged {
            Staged::Temporary { file, .. } => file.as_file(),
            Staged::Direct(file) => file,
        };
        write_all(file, bytes).map_err(|error| self.destination.error(error))
    }

    /// Renames the file to its final name once its bytes are on the disk.
    ///
    /// # Errors
    /// If that fails. The old file is still there, unless only the last step failed, which syncs
    /// the folder.
    pub fn commit(self) -> Result<(), FileError> {
        let Self { destination, staged } = self;
        let Staged::Temporary { file, path } = staged else { return Ok(()) };
        // Data before name: a crash must not leave the name on incomplete bytes.
        let committed = adopt(file.as_file(), &path)
            .and_then(|()| file.as_file().sync_all())
            .and_then(|()| file.persist(&path).map_err(|error| error.error))
            .and_then(|_| sync_folder(&path));
        committed.map_err(|error| destination.error(error))
    }
}

/// Writes all bytes; if the file is non-blocking, waits for room.
pub(crate) fn write_all(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_for_room(file)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait_for_room(file: &File) -> io::Result<()> {
    match poll(&mut [PollFd::new(file, PollFlags::OUT)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Syncs the folder of `path`, so that a rename in it survives a crash.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
        // Reported by file systems that cannot sync folders.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

/// Opens a pipe or a device without truncating, in case it has become a regular file.
fn open_special(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => Ok(file.into()),
        Err(Errno::NXIO) => {
            Err(io::Error::new(io::ErrorKind::NotConnected, "no process reads this pipe"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Creates a temporary file in the folder of `path`.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let mode = if path.exists() { PRIVATE_MODE } else { NEW_MODE };
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut prefix = name[..name.len().min(PREFIX_BYTES)].to_vec();
    prefix.push(b'.');
    tempfile::Builder::new()
        .prefix(std::ffi::OsStr::from_bytes(&prefix))
        .suffix(".part")
        .rand_bytes(8)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder_of(path))
}

/// Gives `file` the owner and mode of the file at `path` that it will replace, if any.
fn adopt(file: &File, path: &Path) -> io::Result<()> {
    let Ok(old) = fs::metadata(path) else { return Ok(()) };
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only the superuser may change owners; otherwise the file belongs to the writer.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(Permissions::from_mode(old.mode() & 0o777))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Reason why no file can be created at a path.
enum Missing {
    Folder(PathBuf),
    Io(io::Error),
}

impl Missing {
    fn into_error(self, path: &Path) -> FileError {
        let path = path.display().to_string();
        match self {
            Self::Folder(folder) => {
                FileError::NoFolder { path, folder: folder.display().to_string() }
            }
            Self::Io(source) => FileError::Io { path, source },
        }
    }
}

/// Path of the file to create for `path`, after following dangling links.
fn new_path(path: &Path) -> Result<PathBuf, Missing> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let folder = folder_of(&path).to_owned();
        let Some(name) = path.file_name().map(OsString::from) else {
            return Err(Missing::Folder(folder));
        };
        let folder = match fs::canonicalize(&folder) {
            Ok(found) if found.is_dir() => found,
            _ => return Err(Missing::Folder(folder)),
        };
        path = folder.join(name);
        match fs::read_link(&path) {
            // `join` with an absolute target replaces the folder.
            Ok(target) => path = folder.join(target),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            // Not a link: a file was created since the check.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(path),
            Err(error) => return Err(Missing::Io(error)),
        }
    }
    Err(Missing::Io(Errno::LOOP.into()))
}

#[cfg(test)]
mod tests;
