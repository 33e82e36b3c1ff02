//! Resolution of paths and patterns to the list of input files.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trommel_engine::operator::{Access, Claim};

use super::braces::has_wildcards;
use super::walk::Walk;
use crate::shared::files::{FileId, input_claims, name_of, stdin_claims};
use crate::shared::rejected::OnError;
use crate::source::read::error::ReadError;

/// Path that stands for standard input.
pub(crate) const STDIN: &str = "-";

/// The parameter that names the files.
pub(crate) const PATHS: &str = "paths";

/// Maximum files of one source; each costs its path and about 100 bytes.
const FILES_MAX: usize = 1 << 24;

/// Origin of an input.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Stdin,
    File(PathBuf),
}

impl Place {
    /// Name for messages.
    pub(crate) fn name(&self) -> Arc<str> {
        match self {
            Self::Stdin => "standard input".into(),
            Self::File(path) => name(path),
        }
    }
}

/// Input files in order, each once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) places: Vec<Place>,
    /// Total size of all files in bytes; `None` if an input is a pipe or a device.
    pub(crate) bytes: Option<u64>,
    /// Claims to the files that were named, and to inputs that can be read only once.
    pub(crate) claims: Vec<Claim>,
}

/// Finds the files that `patterns` name; `None` if there are no patterns. With [`OnError::Skip`]
/// and [`OnError::Reject`] an inaccessible file stays in the list: the attempt to open the file
/// reports the reason.
pub(crate) fn resolve(
    patterns: &[PathBuf],
    on_error: OnError,
) -> Result<Option<Files>, Vec<ReadError>> {
    let mut finding = Finding {
        files: Files { bytes: Some(0), ..Files::default() },
        seen: HashSet::new(),
        skips: on_error.goes_on(),
    };
    let found = patterns.iter().map(|pattern| finding.add_named(pattern));
    let errors: Vec<ReadError> = found.filter_map(Result::err).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok((!finding.files.places.is_empty()).then_some(finding.files))
}

/// True if `path` is a pattern. File names may contain brackets and stars, so an existing path is
/// not a pattern.
pub(crate) fn is_pattern(path: &Path) -> bool {
    has_wildcards(path.as_os_str().as_bytes()) && fs::symlink_metadata(path).is_err()
}

struct Finding {
    files: Files,
    /// Files in the list, and inaccessible paths.
    seen: HashSet<Seen>,
    skips: bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Seen {
    File(FileId),
    Unknown(Place),
}

impl Finding {
    /// Adds the files that a name or a pattern stands for.
    fn add_named(&mut self, pattern: &Path) -> Result<(), ReadError> {
        if pattern == Path::new(STDIN) {
            self.add_stdin();
            Ok(())
        } else if is_pattern(pattern) {
            self.add_matches(pattern, &Walk::new(pattern)?)
        } else {
            self.files.claims.extend(input_claims(pattern, PATHS));
            self.add(pattern.to_owned())
        }
    }

    fn add_stdin(&mut self) {
        self.files.claims.extend(stdin_claims(PATHS));
        let seen = FileId::of_stdin().map_or(Seen::Unknown(Place::Stdin), Seen::File);
        if self.seen.insert(seen) {
            self.files.places.push(Place::Stdin);
            self.files.bytes = None;
        }
    }

    fn add_matches(&mut self, pattern: &Path, walk: &Walk) -> Result<(), ReadError> {
        let mut found: Vec<(PathBuf, bool)> = Vec::new();
        let skips = self.skips;
        walk.for_each(&mut |path, error| {
            if found.len() >= FILES_MAX {
                let pattern = name_of(pattern);
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
            return Err(ReadError::NoMatch { pattern: name_of(pattern) });
        }
        // `read_dir` has no order, so the paths are sorted to make a run repeatable.
        found.sort();
        for (path, is_file) in found {
            if is_file {
                // A regular file that is also an output is left out when its turn comes.
                let claims = input_claims(&path, PATHS).into_iter();
                self.files.claims.extend(claims.filter(|claim| claim.access != Access::Reads));
                self.add(path)?;
            } else {
                self.add_unknown(path);
            }
        }
        Ok(())
    }

    /// Adds a path whose metadata cannot be read.
    fn add_unknown(&mut self, path: PathBuf) {
        let place = Place::File(path);
        if self.seen.insert(Seen::Unknown(place.clone())) {
            self.files.places.push(place);
        }
    }

    /// Adds a file unless the list already has the file, under this or another name.
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

/// Name of a file for messages and rows.
pub(crate) fn name(path: &Path) -> Arc<str> {
    name_of(path).into()
}
