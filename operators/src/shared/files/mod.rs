//! Output files: of sinks, of states and of reports.
//!
//! ```text
//! path ──► Destination ──► replace() ──► NewFile without a name ──► commit() renames it
//!          links resolved,  └──► append() ──► File, the file itself
//!          kind known
//! ```
//!
//! A replacement is written in the folder of the file, and renamed when it is complete and on the
//! disk. The name therefore always leads to all of the old bytes or to all of the new bytes, even
//! if two processes write the file. A link stays a link, and its target is replaced. An existing
//! file keeps its mode and, if the system allows it, its owner; a new file gets the usual mode.
//! Some files cannot be replaced by a rename, because a container mounts the file or because its
//! folder takes no new files. Such a file is written when the replacement is complete: the old
//! bytes stay until then.
//!
//! Pipes, devices and open descriptors, such as `/dev/stdout`, are written directly and never
//! replaced; a descriptor of a regular file is written at its own position. Sockets in the file
//! system and folders are refused.

mod descriptor;
mod direct;
mod identity;
mod new_file;
mod patience;
mod printable;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::{Access, CWD, Mode, OFlags, access, openat};
use rustix::io::Errno;
use thiserror::Error;
use trommel_engine::operator::{Claim, Outputs};
use trommel_kernels::stdio::{Stdio, was_closed};

use descriptor::Descriptor;
use direct::{Direct, has_room};
use identity::key_of_path;
pub(crate) use identity::{FileId, name_of};
pub use identity::{input_claims, stdin_claims};
pub use new_file::NewFile;
pub(crate) use new_file::{ParkedFile, make_folders_of};
use new_file::{Replacement, Staged};
pub(crate) use patience::Patience;
pub use printable::{is_unprintable, printable, printable_lines};

/// Maximum links followed in a row, as in Linux.
const LINKS_MAX: usize = 40;
/// Time between two looks for the reader of a pipe.
pub(crate) const READER_LOOK: Duration = Duration::from_millis(50);

/// Called before standard output is opened.
static BEFORE_STDOUT: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

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
    /// The path is empty.
    #[error("the path is empty: name a file, or `-` for standard output")]
    NoName,
    /// The path is no regular file, although only a regular file can be written here.
    #[error("cannot write {path}: it is no file; the files of values can be files only")]
    NoFile {
        /// The path.
        path: String,
    },
    /// The folder of the file does not exist.
    #[error("cannot write {path}: there is no folder {folder}")]
    NoFolder {
        /// The file.
        path: String,
        /// The folder of the file.
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
    /// The outputs of the run, which include each file that is made.
    outputs: Outputs,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Open descriptor, which is written at its position.
    Descriptor(Descriptor),
    /// Pipe or device, written directly.
    Special(PathBuf),
    /// File, by its path without links.
    File(PathBuf),
}

impl Destination {
    /// Standard output.
    #[must_use]
    pub fn stdout() -> Self {
        let (name, kind) = ("standard output".to_owned(), Kind::Descriptor(Descriptor::STDOUT));
        Self { name, kind, outputs: Outputs::default() }
    }

    /// Destination of a file that is written as a whole. The path is checked as far as possible
    /// without writing.
    ///
    /// # Errors
    /// If `path` is a folder or a socket, its folder does not exist, or the process may neither
    /// create files there nor write the file.
    pub fn file(path: &Path) -> Result<Self, FileError> {
        let destination = Self::resolve(path)?;
        if let Kind::File(path) = &destination.kind {
            let in_folder = destination.check_folder(path);
            if in_folder.is_err() && path.exists() {
                destination.check_access(path, Access::WRITE_OK)?;
            } else {
                in_folder?;
            }
        }
        Ok(destination)
    }

    /// Destination of a file that is written as a whole, whose folder may be missing, for
    /// [`Self::replace_with_folders`].
    ///
    /// # Errors
    /// If `path` is no file, or the process may not create files there.
    pub(crate) fn file_with_folders(path: &Path) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let destination = if folder_of(path).is_dir() {
            Self::resolve(path)?
        } else {
            Self { name, kind: Kind::File(path.to_owned()), outputs: Outputs::default() }
        };
        let Kind::File(path) = &destination.kind else {
            return Err(FileError::NoFile { path: destination.name });
        };
        let folder = existing_folder_of(path).map_err(|error| destination.error(error))?;
        destination.check_access(folder, Access::WRITE_OK | Access::EXEC_OK)?;
        Ok(destination)
    }

    /// Checks that files can be created next to this file.
    ///
    /// # Errors
    /// If the process may not create files there.
    pub(crate) fn check_siblings(&self) -> Result<(), FileError> {
        self.as_file().map_or(Ok(()), |path| self.check_folder(path))
    }

    fn check_folder(&self, path: &Path) -> Result<(), FileError> {
        self.check_access(folder_of(path), Access::WRITE_OK | Access::EXEC_OK)
    }

    /// Destination of a file to append to. The path is checked as far as possible without writing.
    ///
    /// # Errors
    /// As [`Self::file`], and if the process may not read and write the file.
    pub(crate) fn log(path: &Path) -> Result<Self, FileError> {
        let destination = Self::resolve(path)?;
        match &destination.kind {
            Kind::File(path) if path.exists() => {
                destination.check_access(path, Access::READ_OK | Access::WRITE_OK)?;
            }
            Kind::File(path) => destination.check_folder(path)?,
            Kind::Descriptor(_) | Kind::Special(_) => {}
        }
        Ok(destination)
    }

    fn resolve(path: &Path) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let refused = |source| FileError::Io { path: name.clone(), source };
        if path.as_os_str().is_empty() {
            return Err(FileError::NoName);
        }
        if let Some(descriptor) = Descriptor::of_path(path) {
            descriptor.duplicate().map_err(refused)?;
            let kind = Kind::Descriptor(descriptor);
            return Ok(Self { name, kind, outputs: Outputs::default() });
        }
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
        let destination = Self { name, kind, outputs: Outputs::default() };
        if let Kind::Special(path) = &destination.kind {
            destination.check_access(path, Access::WRITE_OK)?;
        }
        Ok(destination)
    }

    /// Registers the files as outputs of this run, so that no source of the run follows them.
    pub(crate) fn within(self, outputs: Outputs) -> Self {
        Self { outputs, ..self }
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
            Kind::Descriptor(_) | Kind::Special(_) => None,
        }
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(&self.kind, Kind::Descriptor(own) if *own == Descriptor::STDOUT)
    }

    /// Claim to this destination for a stage, named by `parameter`. The claim is by device and
    /// inode; if the file does not exist, by the folder and the name. `None` for a device that
    /// several stages may write, such as `/dev/null`.
    #[must_use]
    pub fn claim(&self, parameter: &'static str) -> Option<Claim> {
        let key = match &self.kind {
            Kind::Descriptor(descriptor) => {
                let found = descriptor.duplicate().and_then(|file| file.metadata()).ok();
                let found = found.filter(|found| !found.file_type().is_char_device());
                match found {
                    Some(found) => FileId::of(&found).key(),
                    None => format!("{descriptor:?}").into_bytes(),
                }
            }
            Kind::Special(path) => {
                let found = fs::metadata(path).ok()?;
                if found.file_type().is_char_device() {
                    return None;
                }
                FileId::of(&found).key()
            }
            Kind::File(path) => key_of_path(path),
        };
        Some(Claim::new(key, self.name.clone(), parameter))
    }

    /// Checks that [`Self::replace`] would now succeed, by creating and removing a temporary file.
    ///
    /// # Errors
    /// As [`Self::replace`].
    pub fn probe(&self) -> Result<(), FileError> {
        match &self.kind {
            Kind::File(path) => {
                let made = Replacement::new(path, folder_of(path));
                made.map(drop).map_err(|error| self.error(error))
            }
            Kind::Descriptor(_) | Kind::Special(_) => Ok(()),
        }
    }

    /// Opens a replacement of the file, for a stream of rows; `None` for a pipe that has no reader
    /// yet. The caller asks again after [`READER_LOOK`].
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub(crate) fn try_replace(&self) -> Result<Option<NewFile>, FileError> {
        let staged = match &self.kind {
            Kind::File(path) => self.staged(path, folder_of(path)),
            Kind::Special(path) => match open_special(path) {
                Err(Errno::NXIO) => return Ok(None),
                opened => opened.map_err(Into::into).map(Staged::Direct),
            },
            Kind::Descriptor(descriptor) => {
                if let Some(act) = BEFORE_STDOUT.get().filter(|_| self.is_stdout()) {
                    act();
                }
                descriptor.duplicate().and_then(Direct::of_shared).map(Staged::Direct)
            }
        };
        let staged = staged.map_err(|error| self.error(error))?;
        Ok(Some(NewFile::new(self.clone(), staged)))
    }

    /// Opens a replacement of the file, whose folder is made when the file gets its name. Until
    /// then the file is in the nearest existing folder.
    ///
    /// # Errors
    /// If the file cannot be opened, or the destination is no file.
    pub(crate) fn replace_with_folders(&self) -> Result<NewFile, FileError> {
        let Some(path) = self.as_file() else {
            return Err(FileError::NoFile { path: self.name.clone() });
        };
        let staged = existing_folder_of(path).and_then(|folder| self.staged(path, folder));
        let staged = staged.map_err(|error| self.error(error))?;
        Ok(NewFile::new(self.clone(), staged))
    }

    fn staged(&self, path: &Path, folder: &Path) -> io::Result<Staged> {
        self.outputs.make(|| {
            let new = Replacement::new(path, folder)?;
            let key = FileId::of(&new.metadata()?).key();
            Ok((Staged::Replacement(new), key))
        })
    }

    /// Opens a replacement of the file. A pipe without a reader is an error, since this call does
    /// not wait for a reader.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn replace(&self) -> Result<NewFile, FileError> {
        let without_reader =
            || io::Error::new(io::ErrorKind::NotConnected, "no process reads this pipe");
        self.try_replace()?.ok_or_else(|| self.error(without_reader()))
    }

    /// Opens the file for appending; creates it if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub(crate) fn append(&self) -> Result<File, FileError> {
        let path = match &self.kind {
            Kind::File(path) | Kind::Special(path) => path,
            Kind::Descriptor(_) => unreachable!("only files are appended to"),
        };
        // The file is also opened for reading, since the caller checks how the last line ends.
        let file = self.outputs.make(|| {
            let file = File::options().read(true).append(true).create(true).open(path)?;
            let key = FileId::of(&file.metadata()?).key();
            Ok((file, key))
        });
        file.map_err(|error| self.error(error))
    }

    pub(crate) fn error(&self, source: io::Error) -> FileError {
        FileError::Io { path: self.name.clone(), source }
    }
}

/// Writes all bytes. If the file is non-blocking, the call waits for room.
pub(crate) fn write_all(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                has_room(file, None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Calls `act` on the thread of a stage just before the stage opens standard output, for example to
/// remove a progress line from a terminal that both write to. Only the first call in a process
/// counts.
pub fn before_stdout(act: impl Fn() + Send + Sync + 'static) {
    let _first_stays = BEFORE_STDOUT.set(Box::new(act));
}

/// Writes all of `bytes` to standard output, which may be non-blocking.
///
/// # Errors
/// If the operating system refuses some of the bytes, or standard output was closed when the
/// process started.
pub fn write_stdout(bytes: &[u8]) -> Result<(), FileError> {
    Destination::stdout().replace()?.write(bytes)
}

/// Width of the terminal that is standard output; `None` if standard output is no terminal.
#[must_use]
pub fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|&width| width > 0)
}

/// Checks that standard input was open when the process started.
///
/// # Errors
/// If standard input was closed.
pub(crate) fn check_stdin() -> io::Result<()> {
    if was_closed(Stdio::Input) {
        return Err(io::Error::new(io::ErrorKind::NotConnected, "standard input is closed"));
    }
    Ok(())
}

/// Syncs the folder of `path`, so that a rename in it survives a crash.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
        // File systems that cannot sync folders return this error.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

/// Opens a pipe or a device without truncating, since the path may have become a regular file.
fn open_special(path: &Path) -> rustix::io::Result<Direct> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    openat(CWD, path, flags, Mode::empty()).map(Direct::of_own)
}

/// The folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// The nearest folder around a file that exists.
///
/// # Errors
/// If the path leads through a file that is no folder.
pub(crate) fn existing_folder_of(path: &Path) -> io::Result<&Path> {
    let mut folder = folder_of(path);
    loop {
        match fs::metadata(folder) {
            Ok(found) if found.is_dir() => return Ok(folder),
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder = folder_of(folder),
            Err(error) => return Err(error),
        }
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
            // The path is not a link: another program has created a file after the check.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(path),
            Err(error) => return Err(Missing::Io(error)),
        }
    }
    Err(Missing::Io(Errno::LOOP.into()))
}
