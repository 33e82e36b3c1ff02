//! Identity of a file, independent of its names, and the claims of inputs.

use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use trommel_engine::operator::{Access, Claim};

use crate::shared::files::{folder_of, new_path};

/// Name of standard input in messages.
const STDIN: &str = "standard input";
/// Major number of memory devices, such as `/dev/null` and `/dev/zero`, which anybody may read.
const MEMORY_DEVICES: u32 = 1;

/// Device and inode of a file, and its time of creation if the file system records the time, since
/// inodes are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
    born: Option<SystemTime>,
}

impl FileId {
    /// Identity of the file that `metadata` describes.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let born = metadata.created().ok();
        Self { device: metadata.dev(), inode: metadata.ino(), born }
    }

    /// Identity of standard input; `None` if standard input is closed.
    pub(crate) fn of_stdin() -> Option<Self> {
        Some(Self::of(&stdin_metadata()?))
    }

    /// The key of claims to the file.
    pub(crate) fn key(&self) -> Vec<u8> {
        let born = self.born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let born = born.unwrap_or_default().as_nanos();
        format!("file {} {} {born}", self.device, self.inode).into_bytes()
    }
}

/// Name of a file for messages and rows: its path, with `\\xNN` for each byte that is no text, so
/// that different files have different names.
pub(crate) fn name_of(path: &Path) -> String {
    let mut name = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        name.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(name, "\\x{byte:02x}");
        }
    }
    name
}

fn stdin_metadata() -> Option<Metadata> {
    let stdin = rustix::stdio::stdin().try_clone_to_owned().ok()?;
    File::from(stdin).metadata().ok()
}

/// Key of claims to the file at `path`, which may not exist yet.
pub(crate) fn key_of_path(path: &Path) -> Vec<u8> {
    match (fs::metadata(path), fs::metadata(folder_of(path))) {
        (Ok(found), _) => FileId::of(&found).key(),
        (Err(_), Ok(folder)) => {
            let mut key = FileId::of(&folder).key();
            key.push(b'/');
            key.extend(path.file_name().unwrap_or_default().as_bytes());
            key
        }
        // The folder has vanished. A later use of the path reports that.
        (Err(_), Err(_)) => path.as_os_str().as_bytes().to_vec(),
    }
}

/// Claims of a stage, or of the program, that reads the file `path`, which `parameter` names. Here
/// `-` is a file of that name. Several stages can read a regular file, but not a pipe, a socket or
/// a terminal. A file that does not exist yet is claimed by its name.
///
/// # Examples
/// ```
/// use trommel_operators::files::{Destination, input_claims};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("rows.csv");
/// std::fs::write(&path, "a,b\n")?;
/// let output = Destination::file(&path)?.claim("path").expect("a file has a claim");
/// assert!(input_claims(&path, "paths").iter().all(|input| input.excludes(&output)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn input_claims(path: &Path, parameter: &'static str) -> Vec<Claim> {
    let name = name_of(path);
    match fs::metadata(path) {
        Ok(found) => claim_of(&found, name, parameter).into_iter().collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = new_path(path).unwrap_or_else(|_| path.to_owned());
            vec![Claim::new(key_of_path(&path), name, parameter).with(Access::Reads)]
        }
        Err(_) => Vec::new(),
    }
}

/// Claims of a stage, or of the program, that reads standard input.
#[must_use]
pub fn stdin_claims(parameter: &'static str) -> Vec<Claim> {
    let found = stdin_metadata();
    let file = found.and_then(|found| claim_of(&found, STDIN.to_owned(), parameter));
    // All readers share the position in the file, so no other stage can read the file.
    let whole = Claim::new(STDIN.into(), STDIN, parameter).with(Access::Consumes);
    file.into_iter().chain([whole]).collect()
}

fn claim_of(found: &Metadata, name: String, parameter: &'static str) -> Option<Claim> {
    let (kind, key) = (found.file_type(), FileId::of(found).key());
    let consumed = |prefix: &str| {
        let key = [prefix.as_bytes(), &key].concat();
        Some((key, Access::Consumes))
    };
    let (key, access) = if kind.is_file() || kind.is_block_device() {
        Some((key, Access::Reads))
    } else if kind.is_fifo() {
        consumed("")
    } else if kind.is_socket() {
        // A socket has two directions, and one socket may be standard input and standard output.
        consumed("input ")
    } else if kind.is_char_device() && rustix::fs::major(found.rdev()) != MEMORY_DEVICES {
        consumed("input ")
    } else {
        None
    }?;
    Some(Claim::new(key, name, parameter).with(access))
}
