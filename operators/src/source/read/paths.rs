//! From patterns to the list of files that are read.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::OnError;
use super::error::ReadError;
use super::walk::Walk;

/// The path that stands for standard input.
pub(super) const STDIN: &str = "-";

/// Files of one source. Each costs its path and some 100 bytes.
const FILES_MAX: usize = 1 << 24;

/// Where a file comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Stdin,
    File(PathBuf),
}

impl Place {
    /// How messages name it.
    pub(super) fn name(&self) -> Arc<str> {
        match self {
            Self::Stdin => "standard input".into(),
            Self::File(path) => path.display().to_string().into(),
        }
    }
}

/// What a file is, however it is named: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Files to read, in order, each once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    pub(super) places: Vec<Place>,
    /// Size of all files together; `None` when one of them is a pipe or the like.
    pub(super) bytes: Option<u64>,
}

/// Finds the files that `patterns` name; `None` if there are no patterns. With [`OnError::Skip`] a
/// file that cannot be looked at stays in the list: opening it says why.
pub(super) fn resolve(patterns: &[String], on_error: OnError) -> Result<Option<Files>, ReadError> {
    let mut finding = Finding {
        files: Files { places: Vec::new(), bytes: Some(0) },
        seen: HashSet::new(),
        skips: on_error == OnError::Skip,
    };
    for pattern in patterns {
        if pattern == STDIN {
            finding.add_stdin();
        } else if is_pattern(pattern) {
            let walk = Walk::new(pattern)
                .map_err(|source| ReadError::Pattern { pattern: pattern.clone(), source })?;
            finding.add_matches(pattern, &walk)?;
        } else {
            finding.add(PathBuf::from(pattern))?;
        }
    }
    Ok((!finding.files.places.is_empty()).then_some(finding.files))
}

/// Whether wildcards count: a file may have brackets or stars in its name, so a path that exists is
/// no pattern.
pub(super) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '[']) && fs::symlink_metadata(path).is_err()
}

struct Finding {
    files: Files,
    /// Files that are in the list, and paths that could not be looked at.
    seen: HashSet<Seen>,
    skips: bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Seen {
    File(FileId),
    Unknown(Place),
}

impl Finding {
    fn add_stdin(&mut self) {
        let id = rustix::fs::fstat(rustix::stdio::stdin());
        let seen = match id {
            Ok(stat) => Seen::File(FileId { device: stat.st_dev, inode: stat.st_ino }),
            Err(_) => Seen::Unknown(Place::Stdin),
        };
        if self.seen.insert(seen) {
            self.files.places.push(Place::Stdin);
            self.files.bytes = None;
        }
    }

    fn add_matches(&mut self, pattern: &str, walk: &Walk) -> Result<(), ReadError> {
        let mut found: Vec<(PathBuf, bool)> = Vec::new();
        let skips = self.skips;
        walk.for_each(&mut |path, error| {
            if found.len() >= FILES_MAX {
                let pattern = pattern.to_owned();
                return Err(ReadError::TooManyFiles { pattern, files_max: FILES_MAX });
            }
            match error {
                Some(source) if !skips => {
                    return Err(ReadError::Open { path: name(&path), source });
                }
                error => found.push((path, error.is_none())),
            }
            Ok(())
        })?;
        if found.is_empty() {
            return Err(ReadError::NoMatch { pattern: pattern.to_owned() });
        }
        found.sort();
        for (path, is_file) in found {
            if is_file {
                self.add(path)?;
            } else {
                self.add_unknown(path);
            }
        }
        Ok(())
    }

    /// Adds what cannot be looked at.
    fn add_unknown(&mut self, path: PathBuf) {
        let place = Place::File(path);
        if self.seen.insert(Seen::Unknown(place.clone())) {
            self.files.places.push(place);
        }
    }

    /// Adds a file unless it is there already, by whatever name.
    fn add(&mut self, path: PathBuf) -> Result<(), ReadError> {
        let metadata = match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(ReadError::Directory { path: name(&path) });
            }
            Ok(metadata) => metadata,
            Err(_) if self.skips => {
                self.add_unknown(path);
                return Ok(());
            }
            Err(source) => return Err(ReadError::Open { path: name(&path), source }),
        };
        if self.seen.insert(Seen::File(FileId::of(&metadata))) {
            self.files.places.push(Place::File(path));
            let bytes = metadata.is_file().then_some(metadata.len());
            self.files.bytes = self.files.bytes.zip(bytes).map(|(sum, bytes)| sum + bytes);
        }
        Ok(())
    }
}

fn name(path: &Path) -> Arc<str> {
    path.display().to_string().into()
}
