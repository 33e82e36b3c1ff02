//! File that grows while the stream runs, and is rotated when its size or its age reaches a limit.
//!
//! ```text
//! rows.jsonl   ── large or old enough ──►   rows.20261122T053312.123Z.jsonl, synced; new rows.jsonl
//! ```
//!
//! The [archive](super::archive) then has the full files.
//!
//! Written rows stay, however the run ends, and the next run appends to the same file. If the last
//! line of a file has no end, because the machine failed, the next run ends the line first, so that
//! the following rows are whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use trommel_engine::operator::Counters;

use super::archive::{Archive, into_io};
use crate::shared::files::{Destination, FileError, sync_folder, write_all};

/// Limits of one file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    /// Maximum bytes of a file with more than one row.
    pub(crate) bytes: Option<u64>,
    /// Files end at whole multiples of this period since 1970.
    pub(crate) period: Option<Duration>,
    /// Time after these multiples at which the files end.
    pub(crate) delay: Duration,
}

/// File that grows. The first row opens the file.
pub(crate) struct Log {
    destination: Destination,
    path: PathBuf,
    limits: Limits,
    /// Bytes at the beginning of every file.
    header: Vec<u8>,
    open: Option<Open>,
    archive: Archive,
    has_archive_begun: bool,
    rotated: u64,
    reopened: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    len: u64,
    /// Time at which the file reaches its maximum age.
    until: Option<Instant>,
}

impl Log {
    /// A log that appends rows to the file of `destination`.
    ///
    /// # Errors
    /// If the destination is not a file, or the file does not begin with `header`.
    pub(crate) fn new(
        destination: Destination,
        limits: Limits,
        header: Vec<u8>,
        archive: impl FnOnce(&Path) -> Archive,
    ) -> Result<Self, LogError> {
        let path = destination.as_file().ok_or(LogError::NoFile)?.to_owned();
        if !header.is_empty() && path.exists() {
            let mut begin = vec![0; header.len()];
            let file = File::open(&path).map_err(|error| destination.error(error))?;
            let len = file.metadata().map_err(|error| destination.error(error))?.len();
            if len > 0 && (file.read_exact_at(&mut begin, 0).is_err() || begin != header) {
                let path = destination.name().to_owned();
                let header = String::from_utf8_lossy(header.trim_ascii_end()).into_owned();
                return Err(LogError::Header { path, header });
            }
        }
        let archive = archive(&path);
        Ok(Self {
            destination,
            path,
            limits,
            header,
            open: None,
            archive,
            has_archive_begun: false,
            rotated: 0,
            reopened: 0,
        })
    }

    pub(crate) fn name(&self) -> &str {
        self.destination.name()
    }

    pub(crate) fn bytes_max(&self) -> Option<u64> {
        self.limits.bytes
    }

    /// Full files, and their compression.
    pub(crate) fn archive_mut(&mut self) -> &mut Archive {
        &mut self.archive
    }

    /// Time at which the file reaches its maximum age, or a full file is compressed further.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.until().into_iter().chain(self.archive.wake_at()).min()
    }

    /// Counters for the report: files that were rotated, growing files that another program moved
    /// or removed, and full files.
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = vec![("files_rotated", self.rotated), ("files_reopened", self.reopened)];
        counters.extend(self.archive.counters());
        counters
    }

    /// Opens the file if it is not open, and writes the header to an empty file. Returns the length
    /// of the file in bytes.
    pub(crate) fn begin(&mut self) -> Result<u64, FileError> {
        if self.open.is_none() {
            let open = self.open().map_err(|error| self.destination.error(error))?;
            self.open = Some(open);
        }
        Ok(self.open.as_ref().map_or(0, |open| open.len))
    }

    /// True if a file of `len` bytes has no rows.
    pub(crate) fn is_fresh(&self, len: u64) -> bool {
        len <= self.header.len() as u64
    }

    /// Appends encoded rows: all rows or no row. If another program has moved or removed the file,
    /// the rows go into a new file under the same name.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        if self.open.as_ref().is_some_and(|open| !has_path(&open.file, &self.path)) {
            tracing::warn!(
                "{} was moved or removed; the next rows go into a new file",
                self.destination.name()
            );
            self.reopened += 1;
            self.open = None;
        }
        self.begin()?;
        let Some(open) = &mut self.open else { return Ok(()) };
        open.append(bytes).map_err(|error| self.destination.error(error))
    }

    /// Opens the file again by its name, if the name now leads to another file.
    pub(crate) fn reopen(&mut self) -> Result<(), FileError> {
        if self.open.as_ref().is_none_or(|open| has_path(&open.file, &self.path)) {
            return Ok(());
        }
        self.reopened += 1;
        self.open = None;
        self.begin()?;
        Ok(())
    }

    /// Time at which the open file reaches its maximum age.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.open.as_ref().and_then(|open| open.until)
    }

    /// Writes the file and its folder to the disk.
    pub(crate) fn sync(&self) -> Result<(), FileError> {
        let Some(open) = &self.open else { return Ok(()) };
        let synced = open.file.sync_all().and_then(|()| sync_folder(&self.path));
        synced.map_err(|error| self.destination.error(error))
    }

    /// Renames the full file; the next row begins a new file. A file without rows stays for another
    /// period.
    pub(crate) fn rotate(&mut self) -> Result<(), FileError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.len <= self.header.len() as u64 {
            open.until = self.limits.until();
            return Ok(());
        }
        // The file is synced before the rename, since a rotated name promises whole rows on the
        // disk.
        let is_there = has_path(&open.file, &self.path);
        self.sync()?;
        self.open = None;
        // If another program has renamed the file, the name may belong to a file of that program.
        if is_there {
            self.archive.add().map_err(|error| self.destination.error(error))?;
        }
        self.rotated += 1;
        Ok(())
    }

    fn open(&mut self) -> io::Result<Open> {
        if !self.has_archive_begun {
            self.archive.begin()?;
            self.has_archive_begun = true;
        }
        loop {
            let file = self.destination.append().map_err(into_io)?;
            let metadata = file.metadata()?;
            let mut len = metadata.len();
            if len > 0 && self.limits.is_old(metadata.modified()?) {
                // An earlier run wrote the file.
                drop(file);
                self.archive.add()?;
                self.rotated += 1;
                continue;
            }
            let begin: &[u8] = if len == 0 {
                &self.header
            } else if ends_a_line(&file, len)? {
                &[]
            } else {
                b"\n"
            };
            write_all(&file, begin)?;
            len += begin.len() as u64;
            return Ok(Open { file, len, until: self.limits.until() });
        }
    }
}

impl Open {
    /// Appends all of `bytes`. After an error, the part that was written is removed, such as half a
    /// line on a full disk.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let mut written = 0;
        while written < bytes.len() {
            match (&self.file).write(&bytes[written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // If another program appends, too, the end of the file may be bytes of that
                    // program.
                    if self.file.metadata()?.len() == before + written as u64 {
                        self.file.set_len(before)?;
                    }
                    return Err(error);
                }
            }
        }
        self.len += bytes.len() as u64;
        Ok(())
    }
}

impl Limits {
    /// End of the current period.
    fn until(&self) -> Option<Instant> {
        let period = self.period?.as_nanos();
        // Periods are counted from 1970 and not from the first row, so that the files of all runs
        // end together.
        let left = period - self.since_border(SystemTime::now()) % period;
        Instant::now().checked_add(Duration::from_nanos(u64::try_from(left).ok()?))
    }

    /// True if a file last written at `written` belongs to an earlier period.
    fn is_old(&self, written: SystemTime) -> bool {
        self.period.is_some_and(|period| {
            let index = |time| self.since_border(time) / period.as_nanos();
            index(written) < index(SystemTime::now())
        })
    }

    /// Nanoseconds from the border of 1970 to a time.
    fn since_border(&self, time: SystemTime) -> u128 {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        since.saturating_sub(self.delay).as_nanos()
    }
}

/// True if `path` still leads to `file`.
fn has_path(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(found)) => (ours.dev(), ours.ino()) == (found.dev(), found.ino()),
        _ => false,
    }
}

fn ends_a_line(file: &File, len: u64) -> io::Result<bool> {
    let mut last = [0];
    file.read_exact_at(&mut last, len - 1)?;
    Ok(last == *b"\n")
}

/// Reason why rows cannot be appended to a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error("it is not a file; pipes and devices get every row at once anyway")]
    NoFile,
    #[error("{path} does not begin with `{header}`, the header of these columns")]
    Header { path: String, header: String },
    #[error(transparent)]
    File(#[from] FileError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_its_delay_after_the_border() {
        let hour = Duration::from_secs(3600);
        let limits = |delay| Limits {
            period: Some(hour),
            delay: Duration::from_millis(delay),
            ..Limits::default()
        };
        let file =
            |delay, at: Duration| limits(delay).since_border(UNIX_EPOCH + at) / hour.as_nanos();
        let border = hour * 400_000;
        let just_after = border + Duration::from_millis(5);
        assert_eq!(
            file(0, just_after),
            400_000,
            "the rows of the last window are in the next file"
        );
        assert_eq!(file(2_000, just_after), 399_999);
        assert_eq!(file(2_000, border + Duration::from_millis(2_000)), 400_000);
    }
}
