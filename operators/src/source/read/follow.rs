//! Source of files that grow: lines are read as they are written, through rotation and
//! truncation.
//!
//! ```text
//! look, once a second ──► files that match and are new ──► followed files
//! turn: a file that has grown ──► whole lines from its position on ──► rows
//! ```
//!
//! Files are identified by device and inode and stay open. A renamed file is read on until no
//! pattern matches it and it has been quiet for some seconds; then its last line counts even
//! without a line end. The file that replaces it is a new file. A file that has become shorter is
//! read again from its beginning.
//!
//! The position of a file is the beginning of its first incomplete line. Bytes after it are read
//! again when the file has grown, so that one buffer serves all files.
//!
//! Files are polled every 100 ms instead of by notifications of the system, which not every file
//! system has.
//!
//! Limits: lines that are truncated away between two polls are lost, and a file that was emptied
//! and has outgrown its old size between two polls is taken for the old one.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use trommel_engine::operator::{
    Claim, Counters, NamedInputs, OperatorError, Output, Progress, Source, SourceFlow,
};

use super::compression::Compression;
use super::error::ReadError;
use super::input::Inputs;
use super::lines::{Added, LineBuffer, LineFormat, Place, STEPS_MAX};
use super::paths::{PATHS, is_pattern};
use super::walk::Walk;
use crate::files::{FileId, input_claims};
use crate::parameters::BATCH_BYTES;

/// Maximum files followed at once; each is open.
const FILES_MAX: usize = 512;
/// Maximum blocks read from a file before the next file has its turn.
const TURN_BLOCKS_MAX: usize = 16;

/// Intervals of polling.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Between two polls of files that have not grown.
    pub(super) poll: Duration,
    /// Between two searches for new files.
    pub(super) look: Duration,
    /// Quiet time after which a file that no pattern matches any more is closed.
    pub(super) quiet: Duration,
}

pub(super) const TIMES: Times = Times {
    poll: Duration::from_millis(100),
    look: Duration::from_secs(1),
    quiet: Duration::from_secs(5),
};

/// Parsed entry of `paths`: a path or a pattern.
#[derive(Debug)]
pub(super) enum Named {
    Path(PathBuf),
    Pattern(Walk),
}

impl Named {
    /// Claims to the file of a path. A file of a pattern that is an output is left out.
    pub(super) fn claims(&self) -> Vec<Claim> {
        match self {
            Self::Path(path) => input_claims(path, PATHS),
            Self::Pattern(_) => Vec::new(),
        }
    }
}

/// Parses and checks `paths`. A pattern need not match anything yet; a path must be a file if
/// `must_exist`.
pub(super) fn named(paths: &[String], must_exist: bool) -> Result<Vec<Named>, ReadError> {
    let named = paths.iter().map(|path| {
        if is_pattern(path) {
            let walk = Walk::new(path);
            let wrong = |source| ReadError::Pattern { pattern: path.clone(), source };
            return walk.map(Named::Pattern).map_err(wrong);
        }
        let path = PathBuf::from(path);
        match check(&path) {
            Err(error) if must_exist || error.kind() != io::ErrorKind::NotFound => {
                Err(ReadError::Open { path: name(&path), source: error })
            }
            _ => Ok(Named::Path(path)),
        }
    });
    named.collect()
}

/// Identity of the file if it can be followed.
fn check(path: &Path) -> io::Result<FileId> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("`follow` supports regular files only"));
    }
    if Compression::of_name(path) != Compression::None {
        return Err(io::Error::other("`follow` does not support compressed files"));
    }
    Ok(FileId::of(&metadata))
}

fn name(path: &Path) -> Arc<str> {
    path.display().to_string().into()
}

/// A file that is followed.
struct Followed {
    id: FileId,
    path: PathBuf,
    file: File,
    /// Offset of the first unread line, in bytes.
    position: u64,
    /// Line number and state at `position`.
    place: Place,
    /// Offset up to which bytes have been read, including an incomplete line.
    seen: u64,
    /// True if the last search found it.
    is_found: bool,
    /// Time when it was last found or last grew.
    active: Instant,
}

/// A file that is left out. It is not open, so its inode may be reused by another file.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Refused {
    path: PathBuf,
    id: FileId,
    /// Creation time, where the file system records it.
    born: Option<SystemTime>,
}

/// Turn of one file.
#[derive(Debug, Clone, Copy)]
struct Turn {
    index: usize,
    /// Offset of the next read, in bytes.
    offset: u64,
    blocks: usize,
    /// The file is closed after this turn.
    is_last: bool,
}

/// Follows files; a batch may hold lines of several files.
pub(super) struct FollowSource<F> {
    inputs: Inputs,
    named: Vec<Named>,
    files: Vec<Followed>,
    /// Identities of the followed files. They are open, so no other file can have them.
    known: HashSet<FileId>,
    /// Files that the last search found and that are left out.
    refused: HashSet<Refused>,
    /// Index at which the search for a grown file continues.
    next: usize,
    turn: Option<Turn>,
    lines: LineBuffer,
    format: F,
    batch: usize,
    times: Times,
    looked: Option<Instant>,
    bytes: u64,
    closed: u64,
    truncated: u64,
}

impl<F: LineFormat> FollowSource<F> {
    pub(super) fn new(
        inputs: Inputs,
        named: Vec<Named>,
        format: F,
        batch: usize,
        lines: LineBuffer,
    ) -> Self {
        Self {
            inputs,
            named,
            files: Vec::new(),
            known: HashSet::new(),
            refused: HashSet::new(),
            next: 0,
            turn: None,
            lines,
            format,
            batch,
            times: TIMES,
            looked: None,
            bytes: 0,
            closed: 0,
            truncated: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }

    fn is_full(&self) -> bool {
        self.format.rows() >= self.batch || self.format.bytes() >= BATCH_BYTES
    }

    fn send(&mut self, out: &mut Output) {
        if self.format.rows() > 0 {
            out.send(self.format.take());
        }
    }

    fn append_run(&mut self) -> Result<(), ReadError> {
        let lines_max = self.batch - self.format.rows();
        let bytes_max = BATCH_BYTES - self.format.bytes();
        self.format.append(&self.lines.run(lines_max, bytes_max), &mut self.inputs)
    }

    /// Searches for new files if the last search is old enough.
    fn look(&mut self, now: Instant) -> Result<(), ReadError> {
        if self.looked.is_some_and(|looked| now.duration_since(looked) < self.times.look) {
            return Ok(());
        }
        self.looked = Some(now);
        self.files.iter_mut().for_each(|file| file.is_found = false);
        let mut paths = Vec::new();
        for named in &self.named {
            match named {
                Named::Path(path) => paths.push(path.clone()),
                // Folders may vanish at any time; their files are not new.
                Named::Pattern(walk) => walk.for_each(&mut |path, error| {
                    if error.is_none() {
                        paths.push(path);
                    }
                    Ok(())
                })?,
            }
        }
        paths.sort();
        let refused = std::mem::take(&mut self.refused);
        paths.into_iter().try_for_each(|path| self.meet(path, &refused, now))
    }

    /// Follows the file at `path` unless it is known or was `refused` by the last search.
    fn meet(
        &mut self,
        path: PathBuf,
        refused: &HashSet<Refused>,
        now: Instant,
    ) -> Result<(), ReadError> {
        let Ok(metadata) = fs::metadata(&path) else {
            // The file has vanished, or it is a dangling link.
            return Ok(());
        };
        let id = FileId::of(&metadata);
        let seen = Refused { path, id, born: metadata.created().ok() };
        if refused.contains(&seen) {
            self.refused.insert(seen);
            return Ok(());
        }
        let path = &seen.path;
        let opened = match check(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Ok(id) if self.known.contains(&id) => {
                if let Some(file) = self.files.iter_mut().find(|file| file.id == id) {
                    (file.is_found, file.active) = (true, now);
                }
                return Ok(());
            }
            Ok(id) if self.inputs.is_output(&id) => {
                self.inputs.leave_out_always(&ReadError::Output { path: name(path) });
                self.refused.insert(seen);
                return Ok(());
            }
            Ok(_) if self.files.len() >= FILES_MAX => {
                Err(io::Error::other(format!("{FILES_MAX} files are followed already")))
            }
            Ok(_) => File::open(path).and_then(|file| Ok((FileId::of(&file.metadata()?), file))),
            Err(error) => Err(error),
        };
        match opened {
            Ok((id, file)) => {
                self.known.insert(id);
                self.inputs.count_file();
                self.files.push(Followed {
                    id,
                    path: path.clone(),
                    file,
                    position: 0,
                    place: Place::default(),
                    seen: 0,
                    is_found: true,
                    active: now,
                });
                Ok(())
            }
            Err(source) => {
                let error = ReadError::Open { path: name(path), source };
                self.refused.insert(seen);
                self.inputs.leave_out(error)
            }
        }
    }

    /// Begins the turn of the next file with unread bytes; false if there is none.
    fn begin_turn(&mut self, now: Instant) -> Result<bool, ReadError> {
        // Round robin: a file that always grows does not starve the others.
        for step in 0..self.files.len() {
            let index = (self.next + step) % self.files.len();
            let file = &mut self.files[index];
            let size = match file.file.metadata() {
                Ok(metadata) => metadata.len(),
                Err(source) => {
                    self.give_up(index, |path| ReadError::Read { path, source })?;
                    return Ok(true);
                }
            };
            // Truncated: the content is new.
            if size < file.seen {
                self.truncated += 1;
                (file.position, file.seen, file.place) = (0, 0, Place::default());
            }
            let is_last = !file.is_found
                && size == file.seen
                && now.duration_since(file.active) >= self.times.quiet;
            if size > file.seen || is_last {
                if !is_last {
                    file.active = now;
                }
                self.inputs.set_path(name(&file.path));
                self.lines.resume(file.place);
                self.turn = Some(Turn { index, offset: file.position, blocks: 0, is_last });
                self.next = index + 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads one block of the file whose turn it is.
    fn read_block(&mut self, turn: Turn) -> Result<(), ReadError> {
        let file = &self.files[turn.index];
        // Only after at least one whole line, so that a line longer than a turn is finished.
        if turn.blocks >= TURN_BLOCKS_MAX && self.lines.place() != file.place {
            return self.end_turn(turn);
        }
        let read = match file.file.read_at(self.lines.free(), turn.offset) {
            Ok(0) => return self.end_turn(turn),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(source) => {
                return self.give_up(turn.index, |path| ReadError::Read { path, source });
            }
        };
        let (offset, blocks) = (turn.offset + read as u64, turn.blocks + 1);
        self.turn = Some(Turn { offset, blocks, ..turn });
        match self.lines.add(read) {
            Added::Bytes => Ok(()),
            Added::TooLong(line) => {
                let bytes_max = self.lines.line_bytes_max();
                self.inputs.refuse(|path| ReadError::LineTooLong { path, line, bytes_max })?;
                self.format.pass_over(&mut self.inputs, line)
            }
            Added::Utf16 => self.give_up(turn.index, |path| ReadError::Utf16 { path }),
        }
    }

    /// Ends the turn: stores the position after the last whole line.
    fn end_turn(&mut self, turn: Turn) -> Result<(), ReadError> {
        self.turn = None;
        if turn.is_last {
            if let Some(run) = self.lines.last_run() {
                self.format.append(&run, &mut self.inputs)?;
            }
            let file = self.remove(turn.index);
            self.known.remove(&file.id);
            self.bytes += turn.offset - file.position;
            self.closed += 1;
            if self.files.len() + 1 == FILES_MAX {
                // A file refused for lack of room may be followed now.
                self.refused.clear();
            }
            return Ok(());
        }
        let place = self.lines.place();
        // The incomplete line is read again with the next turn, since the buffer now serves
        // another file.
        let partial = self.lines.abandon() as u64;
        let file = &mut self.files[turn.index];
        let position = turn.offset - partial;
        self.bytes += position - file.position;
        (file.position, file.seen, file.place) = (position, turn.offset, place);
        Ok(())
    }

    /// Stops following a file with this error, or fails.
    fn give_up(
        &mut self,
        index: usize,
        error: impl FnOnce(Arc<str>) -> ReadError,
    ) -> Result<(), ReadError> {
        self.turn = None;
        self.lines.abandon();
        let file = self.remove(index);
        self.known.remove(&file.id);
        let name = name(&file.path);
        let born = file.file.metadata().and_then(|metadata| metadata.created()).ok();
        self.refused.insert(Refused { path: file.path, id: file.id, born });
        self.inputs.leave_out(error(name))
    }

    fn remove(&mut self, index: usize) -> Followed {
        self.next = 0;
        self.files.remove(index)
    }

    /// Ends the turn and logs the position of each file.
    fn conclude(&mut self) -> Result<(), ReadError> {
        if let Some(turn) = self.turn {
            self.end_turn(Turn { is_last: false, ..turn })?;
        }
        for file in &self.files {
            let (position, line) = (file.position, file.place.line);
            tracing::info!(
                "{} was followed up to byte {position}, line {line}",
                file.path.display()
            );
            self.inputs.count_unfinished(file.seen - position);
        }
        self.inputs.stop();
        Ok(())
    }
}

impl<F: LineFormat> Source for FollowSource<F> {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        let now = Instant::now();
        for _ in 0..STEPS_MAX {
            if self.is_full() {
                break;
            }
            if self.lines.has_lines() {
                self.append_run()?;
            } else if let Some(turn) = self.turn {
                self.read_block(turn)?;
            } else {
                self.look(now)?;
                if !self.begin_turn(now)? {
                    if self.format.rows() == 0 {
                        return Ok(SourceFlow::Idle(self.times.poll));
                    }
                    break;
                }
            }
        }
        self.send(out);
        Ok(SourceFlow::HaveOutput)
    }

    fn stop(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        for _ in 0..STEPS_MAX {
            if self.is_full() {
                break;
            }
            if !self.lines.has_lines() {
                self.conclude()?;
                self.send(out);
                return Ok(SourceFlow::Finished);
            }
            self.append_run()?;
        }
        self.send(out);
        Ok(SourceFlow::HaveOutput)
    }

    fn progress(&self) -> Progress {
        Progress { bytes: self.bytes, bytes_total: None }
    }

    fn named_inputs(&self) -> NamedInputs {
        let positions = self.files.iter().map(|file| (name(&file.path), file.position)).collect();
        NamedInputs { positions, ..self.inputs.named() }
    }

    fn counters(&self) -> Counters {
        let mut counters = self.inputs.counters();
        counters.extend([
            ("files_followed", self.files.len() as u64),
            ("files_closed", self.closed),
            ("files_truncated", self.truncated),
        ]);
        counters
    }
}
