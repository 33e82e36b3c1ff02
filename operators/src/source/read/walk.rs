//! Walking folders by a pattern such as `logs/**/*.gz`.
//!
//! A pattern is a list of steps, one between two slashes: a name, a pattern of names, or `**` for
//! any number of folders. The walk carries pairs of a folder and the step that comes next. Each
//! pair is taken up once, by the device and inode of the folder, so links that form circles end and
//! no folder is listed more often than there are steps. Folders come before links to folders, so
//! that a file goes by its own path where it has one.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern, PatternError};

use super::error::ReadError;
use super::paths::FileId;

/// As in a shell, wildcards do not match hidden files, which keeps `**` out of version control
/// folders.
const MATCH: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// A pattern of paths.
#[derive(Debug)]
pub(super) struct Walk {
    /// Where it begins: the root or the current folder.
    start: PathBuf,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Name(String),
    Names(Pattern),
    Folders,
}

/// A folder, and the step that its entries are held against.
struct Visit {
    folder: PathBuf,
    step: usize,
}

/// Takes a file that matches, or a folder or a link that cannot be followed and why.
type Found<'a> = dyn FnMut(PathBuf, Option<io::Error>) -> Result<(), ReadError> + 'a;

impl Walk {
    pub(super) fn new(pattern: &str) -> Result<Self, PatternError> {
        // The whole pattern, so that an error names the position in it.
        Pattern::new(pattern)?;
        let mut steps = Vec::new();
        for name in pattern.split('/').filter(|name| !name.is_empty()) {
            match name {
                "**" if matches!(steps.last(), Some(Step::Folders)) => {}
                "**" => steps.push(Step::Folders),
                _ if name.contains(['*', '?', '[']) => steps.push(Step::Names(Pattern::new(name)?)),
                _ => steps.push(Step::Name(name.to_owned())),
            }
        }
        if pattern.ends_with('/') {
            // Folders only, so no file.
            steps.push(Step::Folders);
        }
        let start = if pattern.starts_with('/') { "/" } else { "" };
        Ok(Self { start: PathBuf::from(start), steps })
    }

    /// Calls `found` for every file that matches; folders are no files.
    pub(super) fn for_each(&self, found: &mut Found<'_>) -> Result<(), ReadError> {
        let mut seen: HashSet<(FileId, usize)> = HashSet::new();
        let mut waiting = VecDeque::from([Visit { folder: self.start.clone(), step: 0 }]);
        while let Some(visit) = waiting.pop_front() {
            let metadata = match fs::metadata(or_here(&visit.folder)) {
                Ok(metadata) => metadata,
                Err(error) => {
                    found(visit.folder, Some(error))?;
                    continue;
                }
            };
            if seen.insert((FileId::of(&metadata), visit.step)) {
                self.take_up(&visit, &mut waiting, found)?;
            }
        }
        Ok(())
    }

    /// Takes one step from a folder.
    fn take_up(
        &self,
        visit: &Visit,
        waiting: &mut VecDeque<Visit>,
        found: &mut Found<'_>,
    ) -> Result<(), ReadError> {
        let next = visit.step + 1;
        match self.steps.get(visit.step) {
            None => Ok(()),
            Some(Step::Name(name)) => {
                let path = visit.folder.join(name);
                match fs::symlink_metadata(&path) {
                    Ok(_) => self.reach(path, next, waiting, found),
                    Err(error) if is_absence(&error) => Ok(()),
                    Err(error) => found(path, Some(error)),
                }
            }
            Some(Step::Names(pattern)) => self.list(visit, found, &mut |path, name, found| {
                if pattern.matches_with(name, MATCH) {
                    self.reach(path, next, waiting, found)?;
                }
                Ok(())
            }),
            Some(Step::Folders) => {
                waiting.push_front(Visit { folder: visit.folder.clone(), step: next });
                self.list(visit, found, &mut |path, name, _| {
                    if !name.starts_with('.') && path.is_dir() {
                        go(Visit { folder: path, step: visit.step }, waiting);
                    }
                    Ok(())
                })
            }
        }
    }

    /// The steps up to `step` lead to `path`.
    fn reach(
        &self,
        path: PathBuf,
        step: usize,
        waiting: &mut VecDeque<Visit>,
        found: &mut Found<'_>,
    ) -> Result<(), ReadError> {
        let is_last = step == self.steps.len();
        match (path.is_dir(), is_last) {
            (true, false) => go(Visit { folder: path, step }, waiting),
            (false, true) => found(path, None)?,
            _ => {}
        }
        Ok(())
    }

    /// Calls `each` for the entries of a folder; bytes of a name that are no text look like a
    /// character.
    fn list(
        &self,
        visit: &Visit,
        found: &mut Found<'_>,
        each: &mut dyn FnMut(PathBuf, &str, &mut Found<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let entries = match fs::read_dir(or_here(&visit.folder)) {
            Ok(entries) => entries,
            Err(error) => return found(visit.folder.clone(), Some(error)),
        };
        for entry in entries {
            match entry {
                Ok(entry) => {
                    let name = entry.file_name();
                    each(visit.folder.join(&name), &name.to_string_lossy(), found)?;
                }
                Err(error) => return found(visit.folder.clone(), Some(error)),
            }
        }
        Ok(())
    }
}

/// Folders before links to folders.
fn go(visit: Visit, waiting: &mut VecDeque<Visit>) {
    if visit.folder.is_symlink() {
        waiting.push_back(visit);
    } else {
        waiting.push_front(visit);
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The empty path is the current folder.
fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}
