//! The files of a source, opened one after the other.

use std::sync::Arc;
use std::time::Duration;

use trommel_engine::operator::{Counters, Progress};

use super::OnError;
use super::error::ReadError;
use super::paths::Files;
#[cfg(test)]
use super::stream::Compression;
use super::stream::Stream;

/// How long a source without anything to send waits for a pipe before it reports that it is idle. A
/// busy writer fills the pipe again within this time, and the read wakes up at once; being idle
/// costs a sleep.
const PATIENCE: Duration = Duration::from_millis(1);
/// How long a source sleeps between two looks at a pipe that has nothing.
pub(super) const IDLE: Duration = Duration::from_millis(2);

/// The files that are still to be read, the open one, and what was met so far.
pub(super) struct Inputs {
    left: std::vec::IntoIter<Entry>,
    open: Option<Open>,
    bytes_closed: u64,
    bytes_total: Option<u64>,
    files: u64,
    skipped: u64,
    skips: bool,
}

/// A file to be read; tests put streams of their own here.
enum Entry {
    Place(super::paths::Place),
    #[cfg(test)]
    Stream(Arc<str>, Stream),
}

struct Open {
    path: Arc<str>,
    stream: Stream,
}

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Got {
    /// This many bytes, at least one.
    Bytes(usize),
    /// Nothing at present.
    Nothing,
    /// The end of the open file; it is still the open one.
    FileEnd,
}

impl Inputs {
    pub(super) fn new(files: Files, on_error: OnError) -> Self {
        let entries: Vec<_> = files.places.into_iter().map(Entry::Place).collect();
        Self::of_entries(entries, files.bytes, on_error)
    }

    fn of_entries(entries: Vec<Entry>, bytes_total: Option<u64>, on_error: OnError) -> Self {
        Self {
            left: entries.into_iter(),
            open: None,
            bytes_closed: 0,
            bytes_total,
            files: 0,
            skipped: 0,
            skips: on_error == OnError::Skip,
        }
    }

    /// Inputs of readers that do not block.
    #[cfg(test)]
    pub(super) fn of_readers(
        readers: impl IntoIterator<Item = (&'static str, Box<dyn std::io::Read + Send>)>,
        on_error: OnError,
    ) -> Self {
        let entries = readers.into_iter().map(|(path, reader)| {
            let stream = Stream::new(reader, Compression::None).expect("not compressed");
            Entry::Stream(path.into(), stream)
        });
        Self::of_entries(entries.collect(), None, on_error)
    }

    /// Opens the next file if none is open; false when there is none left.
    pub(super) fn open_next(&mut self) -> Result<bool, ReadError> {
        if self.open.is_some() {
            return Ok(true);
        }
        let Some(entry) = self.left.next() else { return Ok(false) };
        let (path, stream) = match entry {
            Entry::Place(place) => {
                let path = place.name();
                match Stream::open(&place) {
                    Ok(stream) => (path, stream),
                    Err(source) => return Err(ReadError::Open { path, source }),
                }
            }
            #[cfg(test)]
            Entry::Stream(path, stream) => (path, stream),
        };
        self.files += 1;
        self.open = Some(Open { path, stream });
        Ok(true)
    }

    /// Reads from the open file, waiting a moment for a pipe unless the caller has something to
    /// send already.
    pub(super) fn read(&mut self, target: &mut [u8], has_output: bool) -> Result<Got, ReadError> {
        let open = self.open.as_mut().expect("a file is open");
        let patience = if has_output { Duration::ZERO } else { PATIENCE };
        let read = match open.stream.is_ready(patience) {
            Ok(true) => open.stream.read(target),
            Ok(false) => return Ok(Got::Nothing),
            Err(error) => Err(error),
        };
        match read {
            Ok(0) => Ok(Got::FileEnd),
            Ok(bytes) => Ok(Got::Bytes(bytes)),
            Err(source) => Err(ReadError::Read { path: Arc::clone(&open.path), source }),
        }
    }

    /// Closes the open file.
    pub(super) fn close(&mut self) {
        self.bytes_closed += self.open.take().map_or(0, |open| open.stream.bytes());
    }

    /// Leaves out what `error` says about the open file and counts it, or fails.
    pub(super) fn refuse(
        &mut self,
        error: impl FnOnce(Arc<str>) -> ReadError,
    ) -> Result<(), ReadError> {
        if self.skips {
            self.skipped += 1;
            return Ok(());
        }
        Err(error(self.path()))
    }

    /// The path of the open file, for messages.
    pub(super) fn path(&self) -> Arc<str> {
        self.open.as_ref().map_or_else(|| "".into(), |open| Arc::clone(&open.path))
    }

    pub(super) fn progress(&self) -> Progress {
        let open = self.open.as_ref().map_or(0, |open| open.stream.bytes());
        Progress { bytes: self.bytes_closed + open, bytes_total: self.bytes_total }
    }

    pub(super) fn counters(&self) -> Counters {
        vec![("files", self.files), ("skipped", self.skipped)]
    }
}
