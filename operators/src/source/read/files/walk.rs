//! Walk over folders by a pattern such as `logs/**/*.gz`.
//!
//! A pattern is a list of steps, the parts between its slashes. A step is a name, a pattern of
//! names, or `**` for any number of folders. The walk has a queue of visits; a visit is a folder
//! with the next step. Each folder is visited once per step. Folders are identified by device and
//! inode, so circles of links end, and no folder is listed more often than the pattern has steps.
//! Folders are visited before links to folders, so that a file is reported under its own path if
//! the path matches.

use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern, PatternError};

use super::braces::{expanded, has_wildcards, wrong};
use crate::shared::files::FileId;
use crate::source::read::error::ReadError;

/// As in a shell, wildcards do not match hidden files, which keeps `**` out of folders such as
/// `.git`.
const MATCH: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// A pattern of paths.
#[derive(Debug)]
pub(crate) struct Walk {
    /// Start of the walk: the root or, as the empty path, the current folder.
    start: PathBuf,
    /// The steps of each alternative.
    alternatives: Vec<Vec<PatternStep>>,
}

#[derive(Debug)]
enum PatternStep {
    /// One name without wildcards. The walk looks up the name and does not list the folder.
    Name(OsString),
    /// Names that match.
    Names(Pattern),
    /// `**`.
    Folders,
}

/// Folder, and the index of the step to match its entries with.
struct Visit {
    folder: PathBuf,
    step: usize,
}

/// Called with a matching file, or with an inaccessible folder or link and the error.
type Found<'a> = dyn FnMut(PathBuf, Option<io::Error>) -> Result<(), ReadError> + 'a;

impl Walk {
    /// Parses `pattern`; an error gives the position in the pattern.
    pub(crate) fn new(pattern: &Path) -> Result<Self, ReadError> {
        let start = if pattern.has_root() { "/" } else { "" };
        let alternatives: Result<_, _> = match pattern.to_str() {
            Some(text) => expanded(text)?.iter().map(|text| steps(Path::new(text))).collect(),
            // A pattern that is not text has no alternatives.
            None => [steps(pattern)].into_iter().collect(),
        };
        Ok(Self { start: PathBuf::from(start), alternatives: alternatives? })
    }

    /// Calls `found` for every matching file; folders do not count as files. A file that matches
    /// several alternatives may be reported several times.
    pub(crate) fn for_each(&self, found: &mut Found<'_>) -> Result<(), ReadError> {
        self.alternatives.iter().try_for_each(|steps| self.visit_all(steps, found))
    }

    fn visit_all(&self, steps: &[PatternStep], found: &mut Found<'_>) -> Result<(), ReadError> {
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
            // A folder that a link reaches again, with the same step, has the same matches.
            if seen.insert((FileId::of(&metadata), visit.step)) {
                expand(steps, &visit, &mut waiting, found)?;
            }
        }
        Ok(())
    }
}

/// The steps of a pattern without alternatives.
fn steps(pattern: &Path) -> Result<Vec<PatternStep>, ReadError> {
    let whole = pattern.to_string_lossy();
    let wrong_at = |error: PatternError| wrong(&whole, error.to_string());
    // The whole pattern is checked first, so that an error gives the position in the pattern.
    Pattern::new(&whole).map_err(wrong_at)?;
    let mut steps = Vec::new();
    let bytes = pattern.as_os_str().as_bytes();
    for name in bytes.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
        match name {
            b"**" if matches!(steps.last(), Some(PatternStep::Folders)) => {}
            b"**" => steps.push(PatternStep::Folders),
            _ if has_wildcards(name) => {
                let name = String::from_utf8_lossy(name);
                steps.push(PatternStep::Names(Pattern::new(&name).map_err(wrong_at)?));
            }
            _ => steps.push(PatternStep::Name(OsStr::from_bytes(name).to_owned())),
        }
    }
    if bytes.ends_with(b"/") {
        // A pattern with this end matches only folders, hence no file.
        steps.push(PatternStep::Folders);
    }
    Ok(steps)
}

/// Matches the entries of a folder with one step.
fn expand(
    steps: &[PatternStep],
    visit: &Visit,
    waiting: &mut VecDeque<Visit>,
    found: &mut Found<'_>,
) -> Result<(), ReadError> {
    let next = visit.step + 1;
    match steps.get(visit.step) {
        None => Ok(()),
        Some(PatternStep::Name(name)) => {
            let path = visit.folder.join(name);
            match fs::symlink_metadata(&path) {
                Ok(_) => reach(steps, path, next, waiting, found),
                Err(error) if is_absence(&error) => Ok(()),
                Err(error) => found(path, Some(error)),
            }
        }
        Some(PatternStep::Names(pattern)) => list(visit, found, &mut |path, name, found| {
            if pattern.matches_with(name, MATCH) {
                reach(steps, path, next, waiting, found)?;
            }
            Ok(())
        }),
        Some(PatternStep::Folders) => {
            // `**` also stands for no folder at all.
            waiting.push_front(Visit { folder: visit.folder.clone(), step: next });
            list(visit, found, &mut |path, name, _| {
                if !name.starts_with('.') && path.is_dir() {
                    enqueue(Visit { folder: path, step: visit.step }, waiting);
                }
                Ok(())
            })
        }
    }
}

/// Handles `path`, which matches all steps before `step`.
fn reach(
    steps: &[PatternStep],
    path: PathBuf,
    step: usize,
    waiting: &mut VecDeque<Visit>,
    found: &mut Found<'_>,
) -> Result<(), ReadError> {
    let is_last = step == steps.len();
    match (path.is_dir(), is_last) {
        (true, false) => enqueue(Visit { folder: path, step }, waiting),
        (false, true) => found(path, None)?,
        _ => {}
    }
    Ok(())
}

/// Calls `each` for the entries of a folder. Bytes of a name that are not UTF-8 count as one
/// replacement character.
fn list(
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

/// Queues a visit: folders at the front, links to folders at the back.
fn enqueue(visit: Visit, waiting: &mut VecDeque<Visit>) {
    if visit.folder.is_symlink() {
        waiting.push_back(visit);
    } else {
        waiting.push_front(visit);
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns `.` for the empty path, which stands for the current folder.
fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}
