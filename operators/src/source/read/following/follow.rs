//! Source of files that grow: lines are read as they are written, through rotation and
//! truncation.
//!
//! ```text
//! look, once a second ──► files that match and are new ──► followed files
//! turn: a file that has grown ──► whole lines from its position on ──► rows
//! ```
//!
//! A file is identified by device and inode, and stays open. A renamed file is read until no
//! pattern matches it and its size has not changed for some minutes; its last line then counts even
//! without a line end. The file that replaces it is a new file. A file is read again from its
//! beginning if it has become shorter, or if its first bytes or the bytes before its position have
//! changed. Zeros before the first line are skipped: a writer that continues at its old place in an
//! emptied file leaves such zeros.
//!
//! The position of a file is the beginning of its first incomplete line. Bytes after it are read
//! again when the file has grown, so that one buffer serves all files.
//!
//! Files are polled every 100 ms, since not every file system has notifications of changes. If a
//! folder of followed files has changed, the search for new files begins at once.
//!
//! Limits: lines that are truncated away between two polls are lost, and so are files that exist
//! for a shorter time. If a file is emptied between two polls and outgrows its old size, the new
//! content is only recognised by the first 256 bytes and the 256 bytes before the old position.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use trommel_engine::operator::{
    Claim, Counters, NamedInputs, OperatorError, Output, Progress, Source, SourceFlow,
};

use super::descriptors::Slot;
use super::followed::Followed;
use super::growing::Growing;
use crate::shared::files::{FileId, input_claims};
use crate::shared::parameters::BATCH_BYTES;
use crate::source::read::error::ReadError;
use crate::source::read::files::compression::Compression;
use crate::source::read::files::input::Inputs;
use crate::source::read::files::paths::{PATHS, is_pattern, name};
use crate::source::read::files::walk::Walk;
use crate::source::read::text::lines::{Added, LineBuffer, Place, STEPS_MAX};

/// Maximum folders whose changes are looked at.
const FOLDERS_MAX: usize = 256;
/// A search for files takes at most one part in `LOOK_SHARE` of the time.
const LOOK_SHARE: u32 = 10;
/// Maximum blocks read from a file before the next file has its turn.
const TURN_BLOCKS_MAX: usize = 16;

/// Intervals of polling.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Between two polls of files that have not grown.
    pub(crate) poll: Duration,
    /// Between two searches for new files.
    pub(crate) look: Duration,
    /// Time without growth after which a file that no pattern matches any more is closed.
    pub(crate) quiet: Duration,
    /// Time without growth after which a record of several lines is complete.
    pub(crate) complete: Duration,
}

pub(crate) const TIMES: Times = Times {
    poll: Duration::from_millis(100),
    look: Duration::from_secs(1),
    quiet: Duration::from_secs(300),
    complete: Duration::from_secs(1),
};

/// Parsed entry of `paths`: a path or a pattern.
#[derive(Debug)]
pub(crate) enum Named {
    Path(PathBuf),
    Pattern(Walk),
}

impl Named {
    /// Claims to the file of a path. A pattern makes no claims, since an output that matches the
    /// pattern is left out.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        match self {
            Self::Path(path) => input_claims(path, PATHS),
            Self::Pattern(_) => Vec::new(),
        }
    }
}

/// Parses `paths`. With `must_fit` the files that exist are checked; missing files may come later.
pub(crate) fn named(paths: &[PathBuf], must_fit: bool) -> Result<Vec<Named>, Vec<ReadError>> {
    let named = paths.iter().map(|path| {
        if is_pattern(path) {
            return Walk::new(path).map(Named::Pattern);
        }
        match check(path) {
            Err(error) if must_fit && error.kind() != io::ErrorKind::NotFound => {
                Err(ReadError::Open { path: name(path), source: error })
            }
            _ => Ok(Named::Path(path.clone())),
        }
    });
    let (named, errors): (Vec<_>, Vec<_>) = named.partition(Result::is_ok);
    let errors: Vec<ReadError> = errors.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(named.into_iter().flatten().collect()) } else { Err(errors) }
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

/// Whether a file has content although its size is 0 before and after the content is read. The
/// system makes the content of such a file for each reader.
fn has_no_size(file: &File) -> io::Result<bool> {
    let is_empty = || Ok::<_, io::Error>(file.metadata()?.len() == 0);
    Ok(is_empty()? && file.read_at(&mut [0], 0)? > 0 && is_empty()?)
}

/// A file that is left out. The file is not open, so another file may reuse its inode.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Refused {
    /// Empty for an output, which stays an output under another name.
    path: PathBuf,
    /// `None` if the metadata of the file cannot be read.
    id: Option<FileId>,
}

/// A path that a search has found.
struct FoundPath {
    path: PathBuf,
    /// Whether a pattern found the path, and no entry of `paths` names it.
    is_matched: bool,
}

/// Time of the last change of a folder, in which a name was added or removed.
fn changed_at(folder: &Path) -> Option<SystemTime> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::metadata(folder).and_then(|metadata| metadata.modified()).ok()
}

/// Whether a file was not opened because the limit of open files is reached.
fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::QuotaExceeded
}

/// Reading of one file until another file has its turn.
#[derive(Debug, Clone, Copy)]
struct Turn {
    index: usize,
    /// Offset of the next read, in bytes.
    offset: u64,
    blocks: usize,
    /// The file is closed after this turn.
    is_last: bool,
    /// The last record is complete unless the file has grown.
    is_completing: bool,
}

/// Follows files; a batch may hold lines of several files.
pub(crate) struct FollowSource<F: Growing> {
    inputs: Inputs,
    named: Vec<Named>,
    files: Vec<Followed<F::File>>,
    /// Index of each followed file, by its identity. The files are open, so an identity is not
    /// reused.
    known: HashMap<FileId, usize>,
    /// Files that the last search found and left out; true for a file that may be tried again.
    refused: HashMap<Refused, bool>,
    /// Folders of the files, and the times of their last changes.
    folders: BTreeMap<PathBuf, Option<SystemTime>>,
    /// Whether files of the first search are read from their end.
    begins_at_end: bool,
    /// Index at which the search for a grown file continues.
    next: usize,
    turn: Option<Turn>,
    lines: LineBuffer,
    format: F,
    batch: usize,
    times: Times,
    /// Begin and end of the last search.
    looked: Option<(Instant, Instant)>,
    /// Time of the last look at the folders.
    folders_looked: Instant,
    bytes: u64,
    closed: u64,
    truncated: u64,
}

impl<F: Growing> FollowSource<F> {
    pub(crate) fn new(
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
            known: HashMap::new(),
            refused: HashMap::new(),
            folders: BTreeMap::new(),
            begins_at_end: false,
            next: 0,
            turn: None,
            lines,
            format,
            batch,
            times: TIMES,
            looked: None,
            folders_looked: Instant::now(),
            bytes: 0,
            closed: 0,
            truncated: 0,
        }
    }

    /// Reads files that exist at the start from their end.
    pub(crate) fn beginning_at_end(self) -> Self {
        Self { begins_at_end: true, ..self }
    }

    pub(crate) fn times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }

    fn is_full(&self) -> bool {
        let (rows, bytes) = (self.format.rows(), self.format.bytes());
        self.inputs.rows_waiting(rows) >= self.batch
            || self.inputs.bytes_waiting(bytes) >= BATCH_BYTES
    }

    fn send(&mut self, out: &mut Output) {
        if self.format.rows() > 0 {
            out.send(self.format.take());
        }
        self.inputs.send_rejected(out);
    }

    fn append_run(&mut self) -> Result<(), ReadError> {
        let lines_max = self.batch - self.inputs.rows_waiting(self.format.rows());
        let bytes_max = BATCH_BYTES - self.inputs.bytes_waiting(self.format.bytes());
        self.format.append(&self.lines.run(lines_max, bytes_max), &mut self.inputs)
    }

    /// Whether to search for new files now: regularly, and when a folder has changed.
    fn is_due(&mut self, now: Instant) -> bool {
        let Some((begin, end)) = self.looked else { return true };
        let idle = now.saturating_duration_since(end);
        if now.saturating_duration_since(begin) >= self.times.look {
            return true;
        }
        let has_rested = idle >= (end - begin) * LOOK_SHARE;
        if !has_rested || now.saturating_duration_since(self.folders_looked) < self.times.poll {
            return false;
        }
        self.folders_looked = now;
        self.folders.iter().any(|(folder, changed)| changed_at(folder) != *changed)
    }

    /// Searches for new files if that is due.
    fn look(&mut self, now: Instant) -> Result<(), ReadError> {
        if !self.is_due(now) {
            return Ok(());
        }
        // The times are read before the search, so that a change during the search causes another
        // search.
        self.folders.iter_mut().for_each(|(folder, changed)| *changed = changed_at(folder));
        let is_first = self.looked.is_none();
        self.files.iter_mut().for_each(|file| file.is_found = false);
        let mut found = self.search()?;
        found.sort_by(|a, b| a.path.cmp(&b.path).then(a.is_matched.cmp(&b.is_matched)));
        let refused = std::mem::take(&mut self.refused);
        found.into_iter().try_for_each(|found| self.meet(found, &refused, now))?;
        if is_first && self.begins_at_end {
            (0..self.files.len()).try_for_each(|index| self.skip_to_end(index))?;
        }
        self.looked = Some((now, Instant::now()));
        Ok(())
    }

    /// Passes over the lines of a file that exist now, after its header.
    fn skip_to_end(&mut self, index: usize) -> Result<(), ReadError> {
        self.format.resume(F::File::default());
        let file = &mut self.files[index];
        let path = name(&file.path);
        let failed = |source| ReadError::Read { path: Arc::clone(&path), source };
        if self.format.needs_head() {
            self.inputs.set_path(Arc::clone(&path));
            self.lines.resume(Place::default());
            let free = self.lines.free().map_err(|full| self.inputs.no_memory(1, full))?;
            let read = file.file.read_at(free, 0).map_err(failed)?;
            self.lines.add(read);
            while self.format.needs_head() && self.lines.has_lines() {
                self.format.append(&self.lines.run(1, BATCH_BYTES), &mut self.inputs)?;
            }
            self.lines.abandon();
        }
        // A file whose header is incomplete is read from its beginning.
        let is_begun = !self.format.needs_head();
        file.state = self.format.pause();
        if is_begun { file.skip_to_end().map_err(failed) } else { Ok(()) }
    }

    fn search(&mut self) -> Result<Vec<FoundPath>, ReadError> {
        let mut found = Vec::new();
        for named in &self.named {
            match named {
                Named::Path(path) => {
                    found.push(FoundPath { path: path.clone(), is_matched: false });
                }
                // Folders may vanish at any time, so errors of folders are ignored.
                Named::Pattern(walk) => walk.for_each(&mut |path, error| {
                    if error.is_none() {
                        found.push(FoundPath { path, is_matched: true });
                    }
                    Ok(())
                })?,
            }
        }
        for FoundPath { path, .. } in &found {
            if let Some(folder) = path.parent()
                && self.folders.len() < FOLDERS_MAX
                && !self.folders.contains_key(folder)
            {
                self.folders.insert(folder.to_owned(), changed_at(folder));
            }
        }
        Ok(found)
    }

    /// Follows the file that was found, unless the file is known or the last search `refused` it.
    fn meet(
        &mut self,
        FoundPath { path, is_matched }: FoundPath,
        refused: &HashMap<Refused, bool>,
        now: Instant,
    ) -> Result<(), ReadError> {
        let id = match fs::metadata(&path) {
            Ok(metadata) => Ok(FileId::of(&metadata)),
            // The file has vanished or does not exist yet, or the path is a dangling link.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => Err(error),
        };
        if let Some(&index) = id.as_ref().ok().and_then(|id| self.known.get(id)) {
            let file = &mut self.files[index];
            (file.is_found, file.active, file.is_matched) =
                (true, now, file.is_matched && is_matched);
            return Ok(());
        }
        if let Ok(id) = &id
            && self.inputs.is_output(id)
        {
            let seen = Refused { path: PathBuf::new(), id: Some(*id) };
            if !refused.contains_key(&seen) && !self.refused.contains_key(&seen) {
                self.inputs.leave_out_always(&ReadError::Output { path: name(&path) });
            }
            self.refused.insert(seen, false);
            return Ok(());
        }
        let seen = Refused { path, id: id.as_ref().ok().copied() };
        let before = refused.get(&seen).copied();
        if before == Some(false) {
            self.refused.insert(seen, false);
            return Ok(());
        }
        let opened = id.and_then(|_| self.open(&seen.path));
        match opened {
            Ok((id, file, slot)) => {
                self.inputs.count_file();
                self.known.insert(id, self.files.len());
                let named = (id, seen.path, file);
                self.files.push(Followed::new(named, slot, is_matched, now));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => {
                // A later attempt may succeed, for example after the mode of the file has changed.
                let is_passing = source.raw_os_error().is_some() || is_full(&source);
                let error = ReadError::Open { path: name(&seen.path), source };
                self.refused.insert(seen, is_passing);
                if before.is_some() { Ok(()) } else { self.leave_out(error, is_matched) }
            }
        }
    }

    /// Opens a file that can be followed.
    fn open(&self, path: &Path) -> io::Result<(FileId, File, Slot)> {
        check(path)?;
        let slot = Slot::take().ok_or_else(|| {
            let files = self.files.len();
            let said = format!("{files} files are followed already, and no more may be open");
            io::Error::new(io::ErrorKind::QuotaExceeded, said)
        })?;
        let file = File::open(path)?;
        let id = FileId::of(&file.metadata()?);
        if has_no_size(&file)? {
            let said = "the system makes its content anew for each reading, as of files of /proc: it \
                        does not grow and cannot be followed";
            return Err(io::Error::other(said));
        }
        Ok((id, file, slot))
    }

    /// Leaves out a file. A file that only a pattern found never ends the run.
    fn leave_out(&mut self, error: ReadError, is_matched: bool) -> Result<(), ReadError> {
        if is_matched {
            self.inputs.leave_out_always(&error);
            return Ok(());
        }
        self.inputs.leave_out(error)
    }

    /// Begins the turn of the next file with unread bytes; false if there is none.
    fn begin_turn(&mut self, now: Instant) -> Result<bool, ReadError> {
        // Round robin, so that a file that always grows does not starve other files.
        for step in 0..self.files.len() {
            let index = (self.next + step) % self.files.len();
            let file = &mut self.files[index];
            let metadata = match file.file.metadata() {
                Ok(metadata) => metadata,
                Err(source) => {
                    self.give_up(index, |path| ReadError::Read { path, source })?;
                    return Ok(true);
                }
            };
            let size = metadata.len();
            // The file has new content.
            if file.is_rewritten(&metadata) {
                self.truncated += 1;
                file.restart();
            }
            let is_last = !file.is_found
                && size == file.seen
                && now.duration_since(file.active) >= self.times.quiet;
            let has_grown = size > file.seen;
            let is_completing =
                file.is_open && now.duration_since(file.grew) >= self.times.complete;
            if has_grown || is_last || is_completing {
                if has_grown {
                    (file.active, file.grew) = (now, now);
                }
                self.inputs.set_path(name(&file.path));
                self.lines.resume(file.place);
                self.format.resume(std::mem::take(&mut file.state));
                let offset = file.position;
                self.turn = Some(Turn { index, offset, blocks: 0, is_last, is_completing });
                self.next = index + 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads one block of the file whose turn it is.
    fn read_block(&mut self, turn: Turn) -> Result<(), ReadError> {
        let file = &self.files[turn.index];
        // At least one record is finished first, so that a record that is longer than a turn ends,
        // too.
        if turn.blocks >= TURN_BLOCKS_MAX && self.place(self.lines.place()).0 != file.place {
            return self.end_turn(turn);
        }
        let line = self.lines.place().line;
        let free = self.lines.free();
        let free = free.map_err(|source| self.inputs.no_memory(line, source))?;
        let read = match file.file.read_at(free, turn.offset) {
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
                self.format.refuse_long(&mut self.inputs, line, bytes_max)
            }
            Added::Wide(wide) => self.give_up(turn.index, |path| wide.error(path)),
        }
    }

    /// Place of the first incomplete record, and the bytes of the whole lines of that record.
    /// `line` is the place of the first incomplete line.
    fn place(&self, line: Place) -> (Place, u64) {
        match self.format.incomplete() {
            Some((number, offset)) => line.back_to(number, offset),
            None => (line, 0),
        }
    }

    /// Ends the turn: stores the position after the last whole record.
    fn end_turn(&mut self, turn: Turn) -> Result<(), ReadError> {
        self.turn = None;
        if turn.is_last {
            // The rest turned out to have whole lines, which end with carriage returns. These lines
            // are taken before the file ends.
            if self.lines.end() {
                self.turn = Some(turn);
                return Ok(());
            }
            if let Some(run) = self.lines.last_run() {
                self.format.append(&run, &mut self.inputs)?;
            }
            if turn.offset > 0 {
                self.format.end_file(&mut self.inputs)?;
            }
            self.format.pause();
            let file = self.remove(turn.index);
            self.bytes += turn.offset - file.position;
            self.closed += 1;
            return Ok(());
        }
        // The next turn of the file reads the incomplete line again, since another file uses the
        // buffer meanwhile.
        let (line, partial) = (self.lines.place(), self.lines.abandon() as u64);
        let has_grown = turn.offset > self.files[turn.index].seen;
        if turn.is_completing && !has_grown && partial == 0 {
            self.format.complete(&mut self.inputs)?;
        }
        let (place, record) = self.place(line);
        let is_open = self.format.incomplete().is_some();
        let file = &mut self.files[turn.index];
        file.is_open = F::COMPLETES && is_open && partial == 0;
        file.state = self.format.pause();
        let position = turn.offset - partial - record;
        self.bytes += position - file.position;
        (file.position, file.seen, file.place) = (position, turn.offset, place);
        file.mark();
        Ok(())
    }

    /// Stops following a file because of this error, or ends the run.
    fn give_up(
        &mut self,
        index: usize,
        error: impl FnOnce(Arc<str>) -> ReadError,
    ) -> Result<(), ReadError> {
        self.turn = None;
        self.lines.abandon();
        self.format.pause();
        let file = self.remove(index);
        let name = name(&file.path);
        self.refused.insert(Refused { path: file.path, id: Some(file.id) }, false);
        self.leave_out(error(name), file.is_matched)
    }

    fn remove(&mut self, index: usize) -> Followed<F::File> {
        self.next = 0;
        let file = self.files.remove(index);
        self.known.remove(&file.id);
        for (index, file) in self.files.iter().enumerate().skip(index) {
            self.known.insert(file.id, index);
        }
        file
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

impl<F: Growing> Source for FollowSource<F> {
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
                    if self.inputs.rows_waiting(self.format.rows()) == 0 {
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
