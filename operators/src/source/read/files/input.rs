//! Input files of a source, opened one after the other.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::mem;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use encoding_rs::{Encoding, UTF_8};
use trommel_engine::memory::MemoryFull;
use trommel_engine::operator::{Counters, NamedInputs, Output, Outputs, Progress, SourceFlow};

#[cfg(test)]
use super::compression::Compression;
use super::paths::Files;
use super::ranged::{FileRange, Truncated};
use super::raw::Pause;
#[cfg(test)]
use super::raw::Raw;
use super::stream::{Pull, Stream};
use crate::shared::files::{FileId, Patience};
use crate::shared::rejected::{NAMED_MAX, OnError, PORT, Rejected, RowPlace};
use crate::source::read::error::ReadError;
use crate::source::read::text::encoding::{
    Decoding, Invalid, Malformed, Transcoder, replaced, text_of,
};

/// Remaining files, the open one, and counts so far.
pub(crate) struct Inputs {
    left: std::vec::IntoIter<UnreadFile>,
    open: Option<Stream>,
    /// Name of the open file, for messages.
    path: Arc<str>,
    bytes_closed: u64,
    bytes_total: Option<u64>,
    files: u64,
    unfinished_bytes: u64,
    on_error: OnError,
    refused: Refused,
    /// Rows to be sent to the output `rejected`.
    rejected: Rejected,
    /// Whether another part collects and reports the refused rows.
    is_silent: bool,
    decoding: Decoding,
    /// Converts the open file if the file cannot be cut into lines before the conversion.
    transcoder: Option<Transcoder>,
    /// True if files hold text, so that compression can be recognised by their first bytes.
    is_text: bool,
    is_stopped: bool,
    /// Decides how long to wait for the writer of the open pipe.
    patience: Patience,
    /// The files that the run writes.
    outputs: Outputs,
    /// The messages of all readers of the stage, if several readers share the files.
    told: Option<Arc<Told>>,
    /// The piece of the input that is read.
    piece: u64,
    /// The range that is read, if the lines before the range have not been counted.
    uncounted: Option<FileRange>,
}

/// The messages of readers that share files: the readers together name as many rows and files as
/// one reader.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Whether a row that is left out was named.
    row: AtomicBool,
    /// Number of files that were left out.
    files: AtomicUsize,
    left_out: FirstNames,
    rejected: FirstNames,
}

/// The places of the first names, each the piece of the input and a number in the piece.
#[derive(Debug, Default)]
struct FirstNames(Mutex<BTreeSet<NamePlace>>);

type NamePlace = (u64, usize);

impl FirstNames {
    fn places(&self) -> MutexGuard<'_, BTreeSet<NamePlace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, place: NamePlace) {
        self.places().insert(place);
    }

    /// Whether this is one of the first [`NAMED_MAX`] names.
    fn has(&self, place: NamePlace) -> bool {
        self.places().iter().take(NAMED_MAX).any(|first| *first == place)
    }
}

/// The first rows or files that a reader names, each with its error and its place.
#[derive(Debug, Default)]
struct Names(Vec<(Arc<str>, NamePlace)>);

impl Names {
    /// Names a row or a file of this piece, unless the reader has named [`NAMED_MAX`] before.
    fn add(&mut self, error: impl Into<Arc<str>>, piece: u64, all: Option<&FirstNames>) {
        if self.0.len() < NAMED_MAX {
            let place = (piece, self.0.len());
            self.0.push((error.into(), place));
            if let Some(all) = all {
                all.add(place);
            }
        }
    }

    /// The names, as far as they are among the first of all readers.
    fn first<'a>(&'a self, all: Option<&'a FirstNames>) -> impl Iterator<Item = Arc<str>> + 'a {
        let is_first = move |place| all.is_none_or(|all| all.has(place));
        let named = self.0.iter().filter(move |(_, place)| is_first(*place));
        named.map(|(name, _)| Arc::clone(name))
    }
}

/// Numbers and names of refused rows and files.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// Number of rows that were left out, and the error of the first such row.
    skipped: u64,
    skipped_first: Option<Arc<str>>,
    /// Number of lines in which wrong bytes were replaced.
    replaced: u64,
    files_skipped: u64,
    /// The first files that were left out.
    left_out: Names,
    /// Number of rows that were sent to the output `rejected`, and the first such rows.
    rejected: u64,
    rejected_first: Names,
}

/// A file that has not been read; tests add streams of their own.
pub(crate) enum UnreadFile {
    Place(super::paths::Place),
    /// A range of a file, which is read from this byte on.
    Range(FileRange, u64),
    #[cfg(test)]
    Stream(Arc<str>, Stream),
}

impl UnreadFile {
    /// The place of a whole file.
    pub(crate) fn into_place(self) -> Option<super::paths::Place> {
        match self {
            Self::Place(place) => Some(place),
            _ => None,
        }
    }
}

/// A line of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Number in its file, from 1.
    pub(crate) number: u64,
    /// First byte of the line in the file. If the file is converted before lines are cut, the place
    /// counts bytes of UTF-8.
    pub(crate) offset: u64,
    /// The bytes of the line without the line end.
    pub(crate) bytes: &'a [u8],
}

/// A row that cannot be used, as the output `rejected` shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BadRow<'a> {
    /// Line, from 1; `None` in files without lines.
    pub(crate) line: Option<u64>,
    /// First byte of the row, after decompression; `None` if the place is no longer known.
    pub(crate) offset: Option<u64>,
    /// The bytes of the row; empty for a line that was too long to be kept.
    pub(crate) bytes: &'a [u8],
}

impl<'a> From<Line<'a>> for BadRow<'a> {
    fn from(Line { number, offset, bytes }: Line<'a>) -> Self {
        Self { line: Some(number), offset: Some(offset), bytes }
    }
}

impl BadRow<'static> {
    /// A line or a record whose bytes are gone.
    pub(crate) fn gone(line: u64) -> Self {
        Self { line: Some(line), offset: None, bytes: b"" }
    }
}

/// Outcome of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Got {
    /// Number of bytes read, at least 1.
    Bytes(usize),
    /// No data at present: wait for [`Inputs::descriptor`].
    Nothing,
    /// No data yet, but another read may return data at once.
    Again,
    /// End of the open file, which is still open.
    FileEnd,
    /// The rest of the open file cannot be used; the file is still open.
    Broken,
    /// The source is stopped, and the open file gives no more bytes; the file is still open.
    Stopped,
}

/// Answer of [`Inputs::open_next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    /// A file is open.
    Yes,
    /// The next file was left out; another may follow.
    Skipped,
    /// No file is left.
    NoMore,
}

impl Inputs {
    pub(crate) fn new(files: Files, on_error: OnError, is_text: bool) -> Self {
        let entries: Vec<_> = files.places.into_iter().map(UnreadFile::Place).collect();
        Self { is_text, ..Self::of_entries(entries, files.bytes, on_error) }
    }

    fn of_entries(entries: Vec<UnreadFile>, bytes_total: Option<u64>, on_error: OnError) -> Self {
        Self {
            left: entries.into_iter(),
            open: None,
            path: "".into(),
            bytes_closed: 0,
            bytes_total,
            files: 0,
            unfinished_bytes: 0,
            on_error,
            refused: Refused::default(),
            rejected: Rejected::default(),
            is_silent: false,
            decoding: Decoding::usual(Invalid::of(on_error)),
            transcoder: None,
            is_text: true,
            is_stopped: false,
            patience: Patience::default(),
            outputs: Outputs::default(),
            told: None,
            piece: 0,
            uncounted: None,
        }
    }

    /// Inputs of one of several readers, which gets its files by and by.
    pub(crate) fn sharing(self, told: Arc<Told>, bytes_total: Option<u64>) -> Self {
        Self { told: Some(told), bytes_total, ..self }
    }

    /// Gives a reader that has read all files the files of a piece of the input.
    pub(crate) fn add_files(&mut self, piece: u64, files: Vec<UnreadFile>) {
        self.piece = piece;
        self.left = files.into_iter();
        self.uncounted = None;
    }

    /// Says that the lines of the range are numbered from the beginning of the range, since nobody
    /// has counted the lines before the range.
    pub(crate) fn number_from(&mut self, range: FileRange) {
        self.uncounted = Some(range);
    }

    /// The error with the number that its line has in the file.
    pub(crate) fn placed(&self, mut error: ReadError) -> ReadError {
        let Some(range) = &self.uncounted else { return error };
        let Some(line) = error.line_mut() else { return error };
        match Stream::newlines_before(range) {
            Ok(before) => {
                *line += before;
                error
            }
            Err(source) => ReadError::Read { path: self.path(), source },
        }
    }

    /// Inputs of readers that do not block.
    #[cfg(test)]
    pub(crate) fn of_readers(
        readers: impl IntoIterator<Item = (&'static str, Box<dyn std::io::Read + Send>)>,
        on_error: OnError,
    ) -> Self {
        let entries = readers.into_iter().map(|(path, reader)| {
            let named = Compression::of_name(path.as_ref());
            UnreadFile::Stream(path.into(), Stream::new(Raw::of_reader(reader), named, true))
        });
        Self::of_entries(entries.collect(), None, on_error)
    }

    /// Inputs without files, for a source that opens files itself.
    pub(crate) fn none(on_error: OnError) -> Self {
        Self::of_entries(Vec::new(), None, on_error)
    }

    /// Reads text in this encoding.
    pub(crate) fn decoding(self, decoding: Decoding) -> Self {
        Self { decoding, ..self }
    }

    /// Leaves out files that this run writes.
    pub(crate) fn leaving_out(self, outputs: Outputs) -> Self {
        Self { outputs, ..self }
    }

    /// Whether this file is an output of the run.
    pub(crate) fn is_output(&self, id: &FileId) -> bool {
        self.outputs.contains(&id.key())
    }

    /// Opens the next file if none is open.
    pub(crate) fn open_next(&mut self) -> Result<Opened, ReadError> {
        if self.open.is_some() {
            return Ok(Opened::Yes);
        }
        if self.is_stopped {
            return Ok(Opened::NoMore);
        }
        let Some(entry) = self.left.next() else {
            if self.told.is_none() {
                self.say_how_many_were_left_out();
            }
            return Ok(Opened::NoMore);
        };
        // The reader of the first range counts the file.
        let mut files = 1;
        let (path, stream) = match entry {
            UnreadFile::Range(range, at) => {
                files = u64::from(range.begin == 0);
                let path = range.file.path();
                match Stream::of_range(range, at) {
                    Ok(stream) => (path, stream),
                    Err(source) => {
                        self.leave_out(ReadError::Open { path, source })?;
                        return Ok(Opened::Skipped);
                    }
                }
            }
            UnreadFile::Place(place) => {
                let path = place.name();
                match Stream::open(&place, self.is_text) {
                    Ok(stream) if stream.id().is_some_and(|id| self.is_output(&id)) => {
                        self.leave_out_always(&ReadError::Output { path });
                        return Ok(Opened::Skipped);
                    }
                    Ok(stream) => (path, stream),
                    Err(source) => {
                        self.leave_out(ReadError::Open { path, source })?;
                        return Ok(Opened::Skipped);
                    }
                }
            }
            #[cfg(test)]
            UnreadFile::Stream(path, stream) => (path, stream),
        };
        self.files += files;
        (self.path, self.open) = (path, Some(stream));
        self.patience = Patience::default();
        let is_converted = self.is_text && !self.decoding.keeps_line_ends();
        self.transcoder = is_converted.then(|| Transcoder::new(self.decoding.encoding));
        Ok(Opened::Yes)
    }

    /// Waits for the open file. If a named pipe has sent nothing for a second, the user gets a
    /// message.
    pub(crate) fn await_data(&mut self) -> SourceFlow {
        let mut limit = Duration::MAX;
        if self.open.as_ref().is_some_and(Stream::is_silent_pipe) {
            let path = &self.path;
            let tell = || {
                tracing::warn!("{path} is a pipe that has sent nothing yet: waiting for its writer")
            };
            limit = self.patience.wait(Instant::now(), tell).unwrap_or(limit);
        }
        SourceFlow::AwaitReadable(limit)
    }

    /// Reads available bytes of the open file into `target`; a file that is converted gives UTF-8.
    pub(crate) fn read(&mut self, target: &mut [u8]) -> Result<Got, ReadError> {
        let Some(mut transcoder) = self.transcoder.take() else { return self.read_raw(target) };
        let got = self.read_text(&mut transcoder, target);
        self.transcoder = Some(transcoder);
        got
    }

    fn read_text(
        &mut self,
        transcoder: &mut Transcoder,
        target: &mut [u8],
    ) -> Result<Got, ReadError> {
        let text = transcoder.take(target);
        if text > 0 {
            return Ok(Got::Bytes(text));
        }
        if transcoder.has_ended() {
            return Ok(Got::FileEnd);
        }
        let bytes = match self.read_raw(transcoder.free())? {
            Got::Bytes(bytes) => bytes,
            Got::FileEnd => 0,
            other => return Ok(other),
        };
        match transcoder.add(bytes, self.decoding.invalid) {
            Ok(replaced) => self.refused.replaced += replaced,
            Err(Malformed) => return self.break_off(transcoder.encoding()),
        }
        match transcoder.take(target) {
            0 => Ok(Got::Again),
            text => Ok(Got::Bytes(text)),
        }
    }

    /// Begins to convert the open file, whose bytes show this encoding. `bytes` were read from the
    /// file before.
    pub(crate) fn transcode(
        &mut self,
        encoding: &'static Encoding,
        bytes: &[u8],
    ) -> Result<Got, ReadError> {
        let mut transcoder = Transcoder::new(encoding);
        match transcoder.add_bytes(bytes, self.decoding.invalid) {
            Ok(replaced) => self.refused.replaced += replaced,
            Err(Malformed) => return self.break_off(encoding),
        }
        self.transcoder = Some(transcoder);
        Ok(Got::Again)
    }

    /// Leaves out the rest of the open file, because bytes of it are no text.
    fn break_off(&mut self, encoding: &'static Encoding) -> Result<Got, ReadError> {
        let (path, encoding) = (self.path(), encoding.name());
        self.leave_out(ReadError::Malformed { path, encoding })?;
        Ok(Got::Broken)
    }

    /// Encoding of the lines of the open file.
    pub(crate) fn line_encoding(&self) -> &'static Encoding {
        if self.transcoder.is_some() { UTF_8 } else { self.decoding.encoding }
    }

    /// The bytes of a line as text; `None` if the bytes are no text and the line is left out.
    pub(crate) fn text<'a>(&mut self, line: Line<'a>) -> Result<Option<Cow<'a, str>>, ReadError> {
        let encoding = self.line_encoding();
        match text_of(line.bytes, encoding) {
            Ok(text) => Ok(Some(text)),
            Err(offset) => {
                let (number, encoding) = (line.number, encoding.name());
                let is_kept = self.refuse_bytes(&line.into(), |path| ReadError::NotText {
                    path,
                    line: number,
                    offset,
                    encoding,
                })?;
                Ok(is_kept.then(|| self.replaced(line.bytes).into()))
            }
        }
    }

    /// The bytes of a line or a field as text, in which wrong bytes are replaced.
    pub(crate) fn replaced(&self, bytes: &[u8]) -> String {
        replaced(bytes, self.line_encoding())
    }

    /// Whether wrong bytes are replaced.
    pub(crate) fn replaces(&self) -> bool {
        self.decoding.invalid == Invalid::Replace
    }

    /// Whether bad rows go to the output `rejected`.
    pub(crate) fn rejects(&self) -> bool {
        self.on_error == OnError::Reject
    }

    /// Counts a row with replacements.
    pub(crate) fn count_replaced(&mut self) {
        self.refused.replaced += 1;
    }

    /// Counts a line with bytes that are no text. Returns true if the bytes are replaced, false if
    /// the line is left out, or fails with `error`.
    pub(crate) fn refuse_bytes(
        &mut self,
        row: &BadRow<'_>,
        error: impl FnOnce(Arc<str>) -> ReadError,
    ) -> Result<bool, ReadError> {
        match self.decoding.invalid {
            Invalid::Fail => Err(error(self.path())),
            Invalid::Skip => {
                self.set_aside(row, error);
                Ok(false)
            }
            Invalid::Replace => {
                self.refused.replaced += 1;
                Ok(true)
            }
        }
    }

    /// The error of a line for which there is no memory.
    pub(crate) fn no_memory(&self, line: u64, source: MemoryFull) -> ReadError {
        ReadError::Memory { path: self.path(), line, source }
    }

    fn read_raw(&mut self, target: &mut [u8]) -> Result<Got, ReadError> {
        let open = self.open.as_mut().expect("a file is open");
        let error = match open.pull(target) {
            Ok(Pull::Bytes(bytes)) => return Ok(Got::Bytes(bytes)),
            Ok(Pull::Pause(Pause::Empty)) => return Ok(Got::Nothing),
            Ok(Pull::Pause(Pause::Spent)) => return Ok(Got::Again),
            Ok(Pull::Pause(Pause::Stopped)) => return Ok(Got::Stopped),
            // A regular file that ends before its size at opening was truncated by another
            // process.
            Ok(Pull::End) => match open.truncated() {
                Ok(None) => return Ok(Got::FileEnd),
                Ok(Some(Truncated { is_told: true, .. })) if self.on_error.goes_on() => {
                    return Ok(Got::Broken);
                }
                Ok(Some(Truncated { bytes, read, .. })) => {
                    ReadError::Cut { path: Arc::clone(&self.path), bytes, read }
                }
                Err(source) => ReadError::Read { path: Arc::clone(&self.path), source },
            },
            Err(source) => ReadError::Read { path: Arc::clone(&self.path), source },
        };
        self.leave_out(error)?;
        Ok(Got::Broken)
    }

    /// The descriptor to wait for after [`Got::Nothing`].
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.open.as_ref().and_then(Stream::descriptor)
    }

    /// Stops taking bytes from all files. A caller can still read the bytes that were taken from
    /// the open file.
    pub(crate) fn stop(&mut self) {
        if !mem::replace(&mut self.is_stopped, true) && self.told.is_none() {
            self.say_how_many_were_left_out();
        }
        if let Some(open) = &mut self.open {
            open.stop();
        }
    }

    /// Whether a file is open.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether the open file is a range that ends before the end of its file, and was read
    /// completely.
    pub(crate) fn is_range_complete(&self) -> bool {
        self.open.as_ref().is_some_and(Stream::is_range_complete)
    }

    /// Whether the source was stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Closes the open file.
    pub(crate) fn close(&mut self) {
        self.bytes_closed += self.open.take().map_or(0, |open| open.bytes());
        self.transcoder = None;
    }

    /// Closes the open file of a stopped source; `unfinished_bytes` bytes of an incomplete item
    /// are dropped and counted.
    pub(crate) fn close_stopped(&mut self, unfinished_bytes: usize) {
        self.count_unfinished(unfinished_bytes as u64);
        self.close();
    }

    /// Leaves out or rejects an unusable row of the open file, or fails with `error`.
    pub(crate) fn refuse(
        &mut self,
        row: &BadRow<'_>,
        error: impl FnOnce(Arc<str>) -> ReadError,
    ) -> Result<(), ReadError> {
        if self.on_error.goes_on() {
            self.set_aside(row, error);
            return Ok(());
        }
        Err(error(self.path()))
    }

    /// Refuses a line of more than `bytes_max` bytes, which are no longer available.
    pub(crate) fn refuse_long(&mut self, line: u64, bytes_max: usize) -> Result<(), ReadError> {
        let error = |path| ReadError::LineTooLong { path, line, bytes_max };
        self.refuse(&BadRow::gone(line), error)
    }

    /// Rejects a row, or counts a row that is left out. A message names the first such row.
    fn set_aside(&mut self, row: &BadRow<'_>, error: impl FnOnce(Arc<str>) -> ReadError) {
        if self.rejects() {
            return self.reject(row, &error(self.path()));
        }
        self.refused.skipped += 1;
        let is_first = match &self.told {
            None => self.refused.skipped == 1,
            Some(told) => !told.row.swap(true, Ordering::Relaxed),
        };
        if is_first {
            let error = self.placed(error(self.path())).to_string();
            self.tell_first_skipped(error.into());
        }
    }

    fn tell_first_skipped(&mut self, error: Arc<str>) {
        if !self.is_silent {
            tracing::warn!("left out: {error}; further ones are only counted");
        }
        self.refused.skipped_first = Some(error);
    }

    fn reject(&mut self, row: &BadRow<'_>, error: &ReadError) {
        self.refused.rejected += 1;
        let error_text = error.to_string();
        let path = self.path();
        // The output `rejected` has columns for the place, so the reason does not repeat the place.
        let place = row.line.map_or(format!("{path}: "), |line| format!("{path}:{line}: "));
        let reason = error_text.strip_prefix(&place).unwrap_or(&error_text);
        let place = RowPlace { path: &path, line: row.line, offset: row.offset };
        self.rejected.add(Some(place), error.column(), reason, row.bytes);
        let all = self.told.as_ref().map(|told| &told.rejected);
        self.refused.rejected_first.add(error_text, self.piece, all);
    }

    /// Rows of the largest batch that waits for an output: `rows` of the output of rows, or the
    /// rejected rows.
    pub(crate) fn rows_waiting(&self, rows: usize) -> usize {
        rows.max(self.rejected.rows())
    }

    /// Bytes of the largest batch that waits for an output.
    pub(crate) fn bytes_waiting(&self, bytes: usize) -> usize {
        bytes.max(self.rejected.bytes())
    }

    /// Sends the rejected rows.
    pub(crate) fn send_rejected(&mut self, out: &mut Output) {
        if let Some(rejected) = self.take_rejected() {
            out.send_to(PORT, rejected);
        }
    }

    /// Counts a file that is left out, whole or in part, and names the file with its `error`; or
    /// fails with `error`.
    pub(crate) fn leave_out(&mut self, error: ReadError) -> Result<(), ReadError> {
        if !self.on_error.goes_on() {
            return Err(error);
        }
        self.leave_out_always(&error);
        Ok(())
    }

    /// Counts a file that is left out whatever the action for errors is, and names the file with
    /// its `error`.
    pub(crate) fn leave_out_always(&mut self, error: &ReadError) {
        self.refused.files_skipped += 1;
        self.name_left_out(error.to_string().into());
        if self.rejects() {
            self.rejected.add(None, None, &error.to_string(), b"");
        }
    }

    fn name_left_out(&mut self, error: Arc<str>) {
        let left_out = &mut self.refused.left_out;
        let named = match &self.told {
            None => left_out.0.len(),
            Some(told) => told.files.fetch_add(1, Ordering::Relaxed),
        };
        if named < NAMED_MAX && !self.is_silent {
            tracing::warn!("left out: {error}");
        }
        left_out.add(error, self.piece, self.told.as_ref().map(|told| &told.left_out));
    }

    /// Leaves the reports of refused rows to another part.
    pub(crate) fn silent(self) -> Self {
        Self { is_silent: true, ..self }
    }

    /// Takes the counts of refused rows and files, which another part reports, and the rejected
    /// rows.
    pub(crate) fn take_refused(&mut self) -> (Refused, Option<RecordBatch>) {
        (mem::take(&mut self.refused), self.take_rejected())
    }

    /// Takes the rejected rows, if there are any.
    pub(crate) fn take_rejected(&mut self) -> Option<RecordBatch> {
        (self.rejected.rows() > 0).then(|| self.rejected.take())
    }

    /// Adds the counts of refused rows and files of another part, and reports these rows and files.
    pub(crate) fn add_refused(&mut self, refused: &Refused) {
        let own = &mut self.refused;
        let is_first = own.skipped == 0;
        own.skipped += refused.skipped;
        own.replaced += refused.replaced;
        own.files_skipped += refused.files_skipped;
        own.rejected += refused.rejected;
        for (error, _) in &refused.rejected_first.0 {
            own.rejected_first.add(Arc::clone(error), self.piece, None);
        }
        if let Some(error) = refused.skipped_first.as_ref().filter(|_| is_first) {
            self.tell_first_skipped(Arc::clone(error));
        }
        refused.left_out.0.iter().for_each(|(error, _)| self.name_left_out(Arc::clone(error)));
    }

    /// Reports the number of files that were left out and have not been named.
    pub(crate) fn say_how_many_were_left_out(&self) {
        let more = match &self.told {
            None => self.refused.files_skipped - self.refused.left_out.0.len() as u64,
            Some(told) => told.files.load(Ordering::Relaxed).saturating_sub(NAMED_MAX) as u64,
        };
        if more > 0 {
            tracing::warn!("left out: {more} more files");
        }
    }

    /// Path of the open file, for messages.
    pub(crate) fn path(&self) -> Arc<str> {
        Arc::clone(&self.path)
    }

    /// Sets the path for messages and the encoding of lines, for lines that another part has read.
    pub(crate) fn set_file(&mut self, path: Arc<str>, encoding: &'static Encoding) {
        (self.path, self.decoding.encoding) = (path, encoding);
    }

    /// Sets the path for messages, for a source that opens files itself.
    pub(crate) fn set_path(&mut self, path: Arc<str>) {
        self.path = path;
    }

    /// Counts a file opened by the source itself.
    pub(crate) fn count_file(&mut self) {
        self.files += 1;
    }

    /// Counts `bytes` of an incomplete item.
    pub(crate) fn count_unfinished(&mut self, bytes: u64) {
        self.unfinished_bytes += bytes;
    }

    pub(crate) fn progress(&self) -> Progress {
        let open = self.open.as_ref().map_or(0, |open| open.bytes());
        Progress { bytes: self.bytes_closed + open, bytes_total: self.bytes_total }
    }

    pub(crate) fn named(&self) -> NamedInputs {
        let Refused { left_out, rejected_first, .. } = &self.refused;
        let told = self.told.as_deref();
        let left_out = left_out.first(told.map(|told| &told.left_out));
        let rejected = rejected_first.first(told.map(|told| &told.rejected));
        let left_out = left_out.chain(rejected).collect();
        NamedInputs { left_out, positions: Vec::new() }
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut counters = vec![
            ("files", self.files),
            ("skipped", self.refused.skipped),
            ("replaced", self.refused.replaced),
            ("files_skipped", self.refused.files_skipped),
            ("unfinished_bytes", self.unfinished_bytes),
        ];
        if self.rejects() {
            counters.push(("rejected", self.refused.rejected));
        }
        counters
    }
}
