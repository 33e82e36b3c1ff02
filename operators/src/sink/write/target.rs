//! Where encoded rows go.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::WriteError;

/// Standard output, a file that gets its name when it is complete, or a pipe or device.
pub(super) struct Target {
    name: String,
    kind: Kind,
    /// Opened by the first write, so that checking a pipeline creates no file.
    open: Option<File>,
}

enum Kind {
    Stdout,
    /// A pipe or a device: written to where it is.
    Special(PathBuf),
    File {
        path: PathBuf,
        part: PathBuf,
    },
}

impl Target {
    pub(super) fn stdout() -> Self {
        Self { name: "standard output".to_owned(), kind: Kind::Stdout, open: None }
    }

    pub(super) fn file(path: &Path) -> Result<Self, WriteError> {
        let name = path.display().to_string();
        let kind = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(WriteError::Directory { path: name }),
            Ok(metadata) if !metadata.is_file() => Kind::Special(path.to_owned()),
            // Through links, so that a link stays one.
            Ok(_) => match fs::canonicalize(path) {
                Ok(path) => Kind::of_file(path),
                Err(source) => return Err(WriteError::Io { path: name, source }),
            },
            Err(_) => {
                let folder = match path.parent() {
                    Some(folder) if folder != Path::new("") => folder,
                    _ => Path::new("."),
                };
                if path.file_name().is_none() || !folder.is_dir() {
                    let folder = folder.display().to_string();
                    return Err(WriteError::NoFolder { path: name, folder });
                }
                Kind::of_file(path.to_owned())
            }
        };
        Ok(Self { name, kind, open: None })
    }

    /// How messages name it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether somebody may be reading along.
    pub(super) fn is_live(&self) -> bool {
        !matches!(self.kind, Kind::File { .. })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.open().and_then(|file| file.write_all(bytes)).map_err(|source| self.error(source))
    }

    /// Gives the file its name.
    pub(super) fn complete(&mut self) -> Result<(), WriteError> {
        // A stream without rows makes an empty file.
        self.write(&[])?;
        if let Kind::File { path, part } = &self.kind {
            fs::rename(part, path).map_err(|source| self.error(source))?;
        }
        self.open = None;
        Ok(())
    }

    fn open(&mut self) -> io::Result<&mut File> {
        let file = match self.open.take() {
            Some(file) => file,
            None => match &self.kind {
                Kind::Stdout => File::from(rustix::stdio::stdout().try_clone_to_owned()?),
                Kind::Special(path) => File::options().write(true).open(path)?,
                Kind::File { part, .. } => File::create(part)?,
            },
        };
        Ok(self.open.insert(file))
    }

    fn error(&self, source: io::Error) -> WriteError {
        WriteError::Io { path: self.name.clone(), source }
    }
}

impl Kind {
    fn of_file(path: PathBuf) -> Self {
        let mut part = OsString::from(path.as_os_str());
        part.push(".part");
        Self::File { path, part: part.into() }
    }
}

impl Drop for Target {
    /// A file that was begun and not completed is removed.
    fn drop(&mut self) {
        if let (Kind::File { part, .. }, Some(_)) = (&self.kind, &self.open) {
            // Nobody is left to tell when this fails, and the final name is untouched either way.
            let _ = fs::remove_file(part);
        }
    }
}
