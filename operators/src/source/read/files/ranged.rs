//! Ranges of a regular file, which several readers share.
//!
//! Each reader has a position of its own, so the readers share the descriptor.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memchr_iter;

use super::compression::Compression;

/// Bytes of one read that looks for line ends.
const LOOK_BYTES: usize = 64 << 10;

/// Bytes of one read after the end of a compressed range.
const READ_ON_BYTES: usize = 16 << 10;

/// Reads bytes from the position `at` on; fewer than `target` has at the end of the file.
pub(crate) fn read_all(file: &File, target: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < target.len() {
        match file.read_at(&mut target[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// An open regular file.
pub(crate) struct RangedFile {
    path: Arc<str>,
    file: File,
    /// Size of the file when it was opened.
    bytes: u64,
    /// The first bytes of the file, which say how the rest is read; empty if the format needs none.
    head: Vec<u8>,
    /// First byte of the first row, and bytes of a row; 0 and 1 in a text.
    rows: (u64, u64),
    /// Whether a reader has reported that the file was truncated.
    is_cut_told: AtomicBool,
}

impl RangedFile {
    pub(crate) fn new(path: Arc<str>, file: File, bytes: u64) -> Self {
        let is_cut_told = AtomicBool::new(false);
        Self { path, file, bytes, head: Vec::new(), rows: (0, 1), is_cut_told }
    }

    /// Sets the first bytes, the first byte of the first row, and the bytes of a row.
    pub(crate) fn with_form(self, head: Vec<u8>, rows: (u64, u64)) -> Self {
        Self { head, rows, ..self }
    }

    /// Name for messages.
    pub(crate) fn path(&self) -> Arc<str> {
        Arc::clone(&self.path)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// First byte of the first row.
    pub(crate) fn first(&self) -> u64 {
        self.rows.0
    }

    /// Bytes of a row.
    pub(crate) fn width(&self) -> u64 {
        self.rows.1
    }

    /// Reads some bytes from the position `at` on; 0 at the end of the file.
    pub(crate) fn read_at(&self, target: &mut [u8], at: u64) -> io::Result<usize> {
        loop {
            match self.file.read_at(target, at) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Whether byte `at`, which is not the first byte of the file, lies within a line: the byte
    /// before is no newline.
    pub(crate) fn is_within_line(&self, at: u64) -> io::Result<bool> {
        let mut before = [0];
        Ok(self.read_at(&mut before, at - 1)? == 1 && before != [b'\n'])
    }

    /// Number of newlines in a range, or in the bytes of the range that the file still has.
    pub(crate) fn newlines(&self, range: Range<u64>) -> io::Result<u64> {
        let (mut at, mut newlines, mut bytes) = (range.start, 0, vec![0; LOOK_BYTES]);
        while at < range.end {
            let left = usize::try_from(range.end - at).unwrap_or(usize::MAX);
            let len = bytes.len().min(left);
            let read = self.read_at(&mut bytes[..len], at)?;
            if read == 0 {
                break;
            }
            newlines += memchr_iter(b'\n', &bytes[..read]).count() as u64;
            at += read as u64;
        }
        Ok(newlines)
    }
}

/// A range of a file: the lines or rows that begin in the range.
#[derive(Clone)]
pub(crate) struct FileRange {
    pub(crate) file: Arc<RangedFile>,
    pub(crate) begin: u64,
    /// First byte after the range; `None` for the last range, which ends where the file ends.
    pub(crate) end: Option<u64>,
    /// Whether a reader may read bytes after the range, to complete the last line of the range.
    pub(crate) has_lines: bool,
    /// How the range is compressed, if it is a range of a compressed file.
    pub(crate) packed: Option<PackedRange>,
}

/// A range of whole parts of a compressed file, as its place without compression. A line belongs to
/// the range in which its line end before lies, so that no reader needs bytes before its range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedRange {
    pub(crate) compression: Compression,
    pub(crate) begin: u64,
    /// First byte after the range; `None` for the last range.
    pub(crate) end: Option<u64>,
}

/// A file that another process truncated while it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Truncated {
    /// Size of the file when it was opened.
    pub(crate) bytes: u64,
    /// Bytes that were read.
    pub(crate) read: u64,
    /// Whether another reader has reported this before.
    pub(crate) is_told: bool,
}

/// Reads a range.
pub(crate) struct RangeReader {
    range: FileRange,
    at: u64,
}

impl RangeReader {
    pub(crate) fn new(range: FileRange) -> Self {
        Self { at: range.begin, range }
    }

    pub(crate) fn file(&self) -> &File {
        self.range.file.file()
    }

    pub(crate) fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let mut len = target.len();
        let FileRange { end, has_lines, packed, .. } = &self.range;
        if let Some(end) = end.filter(|_| !has_lines || packed.is_some()) {
            let left = usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX);
            // A decoder reads ahead, and a line that ends after the range is mostly short.
            let left = if *has_lines && left == 0 { READ_ON_BYTES } else { left };
            len = len.min(left);
        }
        let read = self.range.file.read_at(&mut target[..len], self.at)?;
        self.at += read as u64;
        Ok(read)
    }

    /// Bytes of the range that were read. The bytes after the range belong to other ranges.
    pub(crate) fn bytes(&self) -> u64 {
        self.range.end.map_or(self.at, |end| end.min(self.at)) - self.range.begin
    }

    /// Continues after the first bytes of the range, which belong to an earlier range.
    pub(crate) fn skip_to(&mut self, at: u64) {
        self.at = at;
    }

    /// Whether the range ends before the end of its file, and was read completely.
    pub(crate) fn is_complete(&self) -> bool {
        self.range.end.is_some_and(|end| self.at >= end)
    }

    /// The truncation of the file, if the last read found the end of the file too early.
    pub(crate) fn truncated(&self) -> io::Result<Option<Truncated>> {
        let file = &self.range.file;
        let is_early = self.at < file.bytes && (self.range.has_lines || !self.is_complete());
        // Files of some file systems, such as sysfs, are shorter than their metadata says.
        if !is_early || file.file.metadata()?.len() >= file.bytes {
            return Ok(None);
        }
        let is_told = file.is_cut_told.swap(true, Ordering::Relaxed);
        Ok(Some(Truncated { bytes: file.bytes, read: self.at, is_told }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn newlines_of_a_range_are_those_of_its_bytes() {
        let mut file = tempfile::tempfile().unwrap();
        let text: Vec<u8> =
            (0..300_000_u32).map(|i| if i % 7 < 2 { b'\n' } else { b'x' }).collect();
        file.write_all(&text).unwrap();
        let ranged = RangedFile::new("f".into(), file, text.len() as u64);
        for (begin, end) in
            [(0, 300_000), (5, 6), (7, 8), (1, 131_073), (100, 100), (299_999, 900_000)]
        {
            let bytes = &text[begin..end.min(text.len())];
            let expected = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            assert_eq!(ranged.newlines(begin as u64..end as u64).unwrap(), expected);
            if begin > 0 {
                assert_eq!(ranged.is_within_line(begin as u64).unwrap(), text[begin - 1] != b'\n');
            }
        }
    }
}
