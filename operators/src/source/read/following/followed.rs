//! A file that is followed: its position, and the marks that show whether the file was rewritten.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use super::descriptors::Slot;
use crate::shared::files::FileId;
use crate::source::read::text::lines::Place;

/// Bytes at the beginning of a file, and before its position, that are compared.
const COMPARED_BYTES: u64 = 256;
/// Age of a change after which no other change can have the same time stamp: some ticks of a
/// kernel.
const SETTLED: Duration = Duration::from_millis(50);
/// Bytes at the end of a file in which its last line is searched.
const LAST_LINE_BYTES: u64 = 1 << 16;

/// A file that is followed, and the knowledge of the format about the file.
pub(crate) struct Followed<S> {
    pub(crate) id: FileId,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// The descriptor that the file uses.
    pub(crate) _slot: Slot,
    /// Whether a pattern found the file, and no entry of `paths` names it.
    pub(crate) is_matched: bool,
    /// Offset of the first unread line, in bytes.
    pub(crate) position: u64,
    /// Line number and state at `position`.
    pub(crate) place: Place,
    /// Offset up to which bytes have been read, including an incomplete line.
    pub(crate) seen: u64,
    /// Whether the last search found the file.
    pub(crate) is_found: bool,
    /// Time when the file was last found or last grew.
    pub(crate) active: Instant,
    /// Time when the file last grew.
    pub(crate) grew: Instant,
    /// The last record is incomplete unless the file has stopped growing.
    pub(crate) is_open: bool,
    pub(crate) state: S,
    marks: Marks,
}

/// State of a file at the last look.
#[derive(Debug, Default)]
struct Marks {
    /// Times of the last change of content and of attributes.
    changed: (i64, i64, i64, i64),
    /// Whether the times are so old that no later change can have the same times.
    is_settled: bool,
    /// The first bytes of the file, up to the position.
    head: Vec<u8>,
    /// The last bytes before the position.
    tail: Vec<u8>,
}

impl<S: Default> Followed<S> {
    /// A file that is read from its beginning.
    pub(crate) fn new(
        (id, path, file): (FileId, PathBuf, File),
        slot: Slot,
        is_matched: bool,
        now: Instant,
    ) -> Self {
        Self {
            id,
            path,
            file,
            _slot: slot,
            is_matched,
            position: 0,
            place: Place::default(),
            seen: 0,
            is_found: true,
            active: now,
            grew: now,
            is_open: false,
            state: S::default(),
            marks: Marks::default(),
        }
    }

    /// Passes over all lines that exist now.
    pub(crate) fn skip_to_end(&mut self) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        let begin = size.saturating_sub(LAST_LINE_BYTES);
        let mut last = vec![0; usize::try_from(size - begin).unwrap_or(0)];
        self.file.read_exact_at(&mut last, begin)?;
        let newline = last.iter().rposition(|&byte| byte == b'\n');
        if size > 0 {
            // Without a newline in the last bytes, the position lies within a long line, whose rest
            // is dropped later.
            self.position = match newline {
                Some(newline) => begin + newline as u64 + 1,
                None if begin > 0 => size,
                None => 0,
            };
            self.place = Place::after_lines(self.position, newline.is_none() && begin > 0);
        }
        self.seen = self.position;
        self.mark();
        Ok(())
    }

    /// Whether the content was replaced: the file has become shorter; or the file was written, and
    /// its first bytes or the bytes before the position have changed.
    pub(crate) fn is_rewritten(&mut self, metadata: &Metadata) -> bool {
        if metadata.len() < self.seen {
            return true;
        }
        let changed =
            (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec());
        if self.marks.is_settled && changed == self.marks.changed {
            return false;
        }
        let age =
            metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        self.marks.is_settled = age.is_some_and(|age| age >= SETTLED);
        self.marks.changed = changed;
        let is_same = |bytes: &[u8], offset: u64| {
            let mut found = vec![0; bytes.len()];
            self.file.read_exact_at(&mut found, offset).is_ok() && found == bytes
        };
        let Marks { head, tail, .. } = &self.marks;
        !is_same(head, 0) || !is_same(tail, self.position - tail.len() as u64)
    }

    /// Begins again with the new content.
    pub(crate) fn restart(&mut self) {
        (self.position, self.seen, self.place) = (0, 0, Place::default());
        // The new content has a header of its own.
        (self.state, self.is_open) = (S::default(), false);
        self.mark();
    }

    /// Keeps the bytes around the position, which show later whether the file was rewritten.
    pub(crate) fn mark(&mut self) {
        let bytes = self.position.min(COMPARED_BYTES);
        let read = |offset: u64| {
            let mut bytes = vec![0; usize::try_from(bytes).unwrap_or(0)];
            let read = self.file.read_exact_at(&mut bytes, offset);
            read.map_or_else(|_| Vec::new(), |()| bytes)
        };
        let is_whole = self.marks.head.len() as u64 == bytes && bytes > 0;
        let head = if is_whole { None } else { Some(read(0)) };
        self.marks.tail = read(self.position - bytes);
        if let Some(head) = head {
            self.marks.head = head;
        }
    }
}
