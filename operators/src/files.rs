//! Files that are written: by sinks, for states and for reports.
//!
//! ```text
//! path ──► Destination ──► replace() ──► NewFile under a temporary name ──► commit() gives it its name
//!          links resolved,  └──► append() ──► OutputFile, the file itself
//!          kind known
//! ```
//!
//! A file that is replaced is written beside its place, under a name that nobody else has and that
//! cannot be foreseen, and renamed when it is whole and on the disk. So its name stands for the old
//! bytes or for all of the new ones, whatever happens, also when two processes write it. A link
//! stays a link: its target is replaced. An existing file keeps its mode, and its owner where the
//! system allows that; a new one gets the mode that any new file gets.
//!
//! Pipes and devices are written to where they are, and never replaced. Where a pipe or a terminal
//! is non-blocking, a write waits until there is room. Sockets and folders are refused.

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

/// Links that are followed one after the other, as in Linux.
const LINKS_MAX: usize = 40;
/// Bytes of a file's name that its temporary name begins with: with the rest, below the 255 that
/// file systems allow.
const PREFIX_BYTES: usize = 200;
/// The mode of a new file before the process's mask is applied.
const NEW_MODE: u32 = 0o666;
/// The mode of a temporary file while it is to replace another one, whose mode it then gets.
const PRIVATE_MODE: u32 = 0o600;

/// Why a file cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system refused to open, write or rename the file.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the operating system says.
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
    /// The folder that the file would be in does not exist.
    #[error("cannot write {path}: there is no folder {folder}")]
    NoFolder {
        /// The file.
        path: String,
        /// Its folder.
        folder: String,
    },
}

/// Where something is written: a file that exists or could be made, a pipe or device, or standard
/// output. Nothing is opened or made before it is written to.
#[derive(Debug, Clone)]
pub struct Destination {
    name: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Stdout,
    /// A pipe or a device: written to where it is.
    Special(PathBuf),
    /// The path without links.
    File(PathBuf),
}

impl Destination {
    /// Standard output.
    #[must_use]
    pub fn stdout() -> Self {
        Self { name: "standard output".to_owned(), kind: Kind::Stdout }
    }

    /// A path whose file is written as a whole. Checks what can be known without writing.
    ///
    /// # Errors
    /// If it is a folder or a socket, its folder does not exist, or the process may not make files
    /// there.
    pub fn file(path: &Path) -> Result<Self, FileError> {
        let destination = Self::resolve(path)?;
        if let Kind::File(path) = &destination.kind {
            destination.check_access(folder_of(path), Access::WRITE_OK | Access::EXEC_OK)?;
        }
        Ok(destination)
    }

    /// A path whose file is written to behind its end. Checks what can be known without writing.
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

    /// How messages name it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file without links; `None` for a pipe, a device or standard output.
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

    /// The claim to it, by device and inode, or by those of the folder for a file that does not
    /// exist; `None` for a device that any number may write to, such as `/dev/null`.
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
                // Its folder has just gone; writing will say so.
                (Err(_), Err(_)) => path.as_os_str().as_bytes().to_vec(),
            },
        };
        Some(Claim::new(key, self.name.clone(), parameter))
    }

    /// Makes sure that [`Self::replace`] would work now, by making a temporary file and removing
    /// it.
    ///
    /// # Errors
    /// As [`Self::replace`].
    pub fn probe(&self) -> Result<(), FileError> {
        match &self.kind {
            Kind::File(path) => temporary(path).map(drop).map_err(|error| self.error(error)),
            Kind::Stdout | Kind::Special(_) => Ok(()),
        }
    }

    /// Begins what shall take the place of the file, for a stream of rows: a pipe waits for its
    /// reader.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn replace(&self) -> Result<NewFile, FileError> {
        self.open(OFlags::empty())
    }

    /// As [`Self::replace`], for what is written at the end of a run: a pipe that nobody reads is
    /// an error, because nothing would end the wait for a reader.
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

    /// Opens the file, which is made if it does not exist, to write behind its end.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub(crate) fn append(&self) -> Result<File, FileError> {
        let path = match &self.kind {
            Kind::File(path) | Kind::Special(path) => path,
            Kind::Stdout => unreachable!("only files are appended to"),
        };
        // Read, too: what its last line is decides on what comes next.
        let file = File::options().read(true).append(true).create(true).open(path);
        file.map_err(|error| self.error(error))
    }

    pub(crate) fn error(&self, source: io::Error) -> FileError {
        FileError::Io { path: self.name.clone(), source }
    }
}

/// Something that is written to take the place of a file, or to a pipe or device. It is not there,
/// and removed when it is dropped, before [`Self::commit`].
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

    /// Gives the file its name, when its bytes are on the disk.
    ///
    /// # Errors
    /// If that fails; what was there before is still there, unless only the last step failed, which
    /// writes the folder to the disk.
    pub fn commit(self) -> Result<(), FileError> {
        let Self { destination, staged } = self;
        let Staged::Temporary { file, path } = staged else { return Ok(()) };
        let committed = adopt(file.as_file(), &path)
            .and_then(|()| file.as_file().sync_all())
            .and_then(|()| file.persist(&path).map_err(|error| error.error))
            .and_then(|_| sync_folder(&path));
        committed.map_err(|error| destination.error(error))
    }
}

/// Writes all bytes, also where the file is non-blocking: then it waits for room.
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

/// Writes down on the disk which files the folder of `path` has.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    match File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
        // A file system that cannot do this for folders says so in this way.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

/// Opens a pipe or a device. What was a pipe or a device and is a file now is not cut.
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

/// A new file beside `path`, under a name of its own.
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

/// Gives `file` the owner and the mode of the file that it will replace, if there is one.
fn adopt(file: &File, path: &Path) -> io::Result<()> {
    let Ok(old) = fs::metadata(path) else { return Ok(()) };
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only the superuser may give files away; anybody else's file is the writer's then.
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

/// Why a path cannot become a file.
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

/// The file that a path without a file stands for, behind all links.
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
            // An absolute one takes the place of the folder, too.
            Ok(target) => path = folder.join(target),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            // No link: it has come into being since it was looked for.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(path),
            Err(error) => return Err(Missing::Io(error)),
        }
    }
    Err(Missing::Io(Errno::LOOP.into()))
}

#[cfg(test)]
mod tests;
