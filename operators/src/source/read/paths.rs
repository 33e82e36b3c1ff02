//! From patterns to the list of files that are read.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use glob::MatchOptions;

use super::error::ReadError;

/// The path that stands for standard input.
const STDIN: &str = "-";

/// As in a shell, wildcards do not match hidden files, which keeps `**` out of version control
/// folders.
const MATCH: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

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

/// Files to read, in order, each once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Files {
    pub(super) places: Vec<Place>,
    /// Size of all files together; `None` when one of them is a pipe or the like.
    pub(super) bytes: Option<u64>,
}

/// Finds the files that `patterns` name; `None` if there are no patterns.
pub(super) fn resolve(patterns: &[String]) -> Result<Option<Files>, ReadError> {
    let mut seen = HashSet::new();
    let mut files = Files { places: Vec::new(), bytes: Some(0) };
    for pattern in patterns {
        for (place, bytes) in resolve_pattern(pattern)? {
            if seen.insert(place.clone()) {
                files.places.push(place);
                files.bytes = files.bytes.zip(bytes).map(|(sum, bytes)| sum + bytes);
            }
        }
    }
    Ok((!files.places.is_empty()).then_some(files))
}

fn resolve_pattern(pattern: &str) -> Result<Vec<(Place, Option<u64>)>, ReadError> {
    if pattern == STDIN {
        return Ok(vec![(Place::Stdin, None)]);
    }
    // A file may have brackets or stars in its name: what exists is no pattern.
    if !pattern.contains(['*', '?', '[']) || Path::new(pattern).exists() {
        let path = PathBuf::from(pattern);
        let bytes = file_bytes(&path)?;
        return Ok(vec![(Place::File(path), bytes)]);
    }
    let matches = glob::glob_with(pattern, MATCH)
        .map_err(|source| ReadError::Pattern { pattern: pattern.to_owned(), source })?;
    let mut files = Vec::new();
    for found in matches {
        let path = found.map_err(|error| {
            let path = error.path().display().to_string().into();
            ReadError::Open { path, source: error.into() }
        })?;
        if !path.is_dir() {
            let bytes = file_bytes(&path)?;
            files.push((Place::File(path), bytes));
        }
    }
    if files.is_empty() {
        return Err(ReadError::NoMatch { pattern: pattern.to_owned() });
    }
    files.sort_by(|(a, _), (b, _)| place_path(a).cmp(&place_path(b)));
    Ok(files)
}

fn place_path(place: &Place) -> Option<&Path> {
    match place {
        Place::Stdin => None,
        Place::File(path) => Some(path),
    }
}

/// The size of a file; `None` for what has none, such as a pipe.
fn file_bytes(path: &Path) -> Result<Option<u64>, ReadError> {
    let name = || path.display().to_string().into();
    let metadata =
        fs::metadata(path).map_err(|source: io::Error| ReadError::Open { path: name(), source })?;
    if metadata.is_dir() {
        return Err(ReadError::Directory { path: name() });
    }
    Ok(metadata.is_file().then_some(metadata.len()))
}
