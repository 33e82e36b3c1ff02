//! Snapshots in files.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// No snapshot of a summary is larger, unless its strings are.
const FILE_BYTES_MAX: u64 = 8 << 30;

/// Why a snapshot cannot be read from a file or written to one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotFileError {
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What happened.
        source: io::Error,
    },
    /// The file is larger than any snapshot.
    #[error("{path} has more than {FILE_BYTES_MAX} bytes; no snapshot has")]
    TooLarge {
        /// The file.
        path: String,
    },
    /// The folder that is to hold the file does not exist, or the path is a folder itself.
    #[error("{path} cannot become a file: {folder} is not a folder, or the path is one")]
    NoFolder {
        /// The file.
        path: String,
        /// The folder.
        folder: String,
    },
}

fn failed(path: &Path) -> impl Fn(io::Error) -> SnapshotFileError {
    move |source| SnapshotFileError::Io { path: path.display().to_string(), source }
}

/// All bytes of a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, SnapshotFileError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed(path))?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed(path))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(SnapshotFileError::TooLarge { path: path.display().to_string() });
    }
    Ok(bytes)
}

/// A file that snapshots are written to, each in place of the last one.
#[derive(Debug)]
pub(super) struct SnapshotFile {
    path: PathBuf,
    folder: PathBuf,
}

impl SnapshotFile {
    /// Checks that the file could be written; nothing is.
    pub(super) fn new(path: &Path) -> Result<Self, SnapshotFileError> {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() || path.is_dir() || path.file_name().is_none() {
            let (path, folder) = (path.display().to_string(), folder.display().to_string());
            return Err(SnapshotFileError::NoFolder { path, folder });
        }
        Ok(Self { path: path.to_owned(), folder: folder.to_owned() })
    }

    /// Writes the file as a whole: whatever happens, its name stands for the old bytes or the new
    /// ones.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), SnapshotFileError> {
        let mut part = OsString::from(self.path.as_os_str());
        part.push(".part");
        let part = PathBuf::from(part);
        let written = File::create(&part).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        if let Err(source) = written {
            // The first error is the one to tell, and the name is untouched either way.
            let _ = fs::remove_file(&part);
            return Err(failed(&part)(source));
        }
        fs::rename(&part, &self.path).map_err(failed(&self.path))?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed(&self.folder))
    }
}
