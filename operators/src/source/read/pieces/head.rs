//! The look at the first bytes of a file: whether and how the file is cut into ranges.

use std::fs::File;
use std::io;
use std::sync::Arc;

use memchr::memchr;

use crate::source::read::csv::dialect::Dialect;
use crate::source::read::divided::{QuotedRecords, RecordEnds as _};
use crate::source::read::files::compression::{Compression, START_BYTES};
use crate::source::read::files::parts::Parts;
use crate::source::read::files::ranged::{RangedFile, read_all};
use crate::source::read::files::stream::Stream;
use crate::source::read::fixed::npy::{NpyHeader, bytes_wanted};
use crate::source::read::tables::source::Tables;
use crate::source::read::text::encoding::{Start, start_of};
use crate::source::read::text::lines::FIRST_LINE_BYTES;

/// Bytes of the first look, which suffice for most files.
const LOOK_BYTES: usize = 4 << 10;
/// Maximum bytes of a first record of CSV, and of a header. Longer ones are rare, so such a file is
/// one piece.
const HEAD_BYTES_MAX: usize = FIRST_LINE_BYTES + 16;

/// The way in which a file is cut into ranges.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// First bytes of the file, which the reader of each range needs.
    pub(super) head: Vec<u8>,
    /// A border between two ranges lies at a multiple of `width` bytes after the byte `first`.
    pub(super) first: u64,
    pub(super) width: u64,
}

impl Form {
    /// A file that is cut before lines, after a mark of this number of bytes and after the head.
    /// The first range has the head, so its reader is the one that reports faults of the head.
    fn of_lines(head: Vec<u8>, mark: usize) -> Self {
        Self { first: (mark + head.len()) as u64, head, width: 1 }
    }
}

/// The places at which a file may be cut.
#[derive(Debug, Clone)]
pub(super) enum Cut {
    /// Each file is read as a whole.
    Nowhere,
    /// Before a line.
    Lines(Texts),
    /// Before a record of CSV.
    Records(Texts, Dialect),
    /// Before a row of this number of bytes.
    Rows(usize),
    /// Before a row of an array of NumPy, whose rows have this number of coordinates.
    Arrays(u32),
    /// Before a block of rows of a table.
    Tables(Tables),
}

impl Cut {
    /// Whether a reader completes the last line of its range.
    pub(super) fn has_lines(&self) -> bool {
        matches!(self, Self::Lines(_) | Self::Records(..))
    }
}

/// The limits of texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Texts {
    pub(super) line_bytes_max: usize,
    /// Whether encodings without a mark are recognised.
    pub(super) guesses: bool,
}

/// The form of a file that is cut into ranges; `None` if the file is one piece, or no range of
/// bytes.
pub(super) fn form_of(file: &File, cut: &Cut) -> io::Result<Option<Form>> {
    match cut {
        Cut::Nowhere | Cut::Tables(_) => Ok(None),
        Cut::Rows(width) => Ok(Some(Form { head: Vec::new(), first: 0, width: *width as u64 })),
        Cut::Arrays(dims) => array(file, *dims),
        Cut::Lines(texts) => text(file, |bytes| lines(bytes, *texts)),
        Cut::Records(texts, dialect) => text(file, |bytes| records(bytes, *texts, dialect)),
    }
}

/// The compression of a file whose lines can be cut at parts of the file; `None` if the file is one
/// piece.
pub(super) fn packing_of(
    file: &Arc<RangedFile>,
    named: Compression,
    cut: &Cut,
) -> io::Result<Option<Compression>> {
    let Cut::Lines(texts) = cut else { return Ok(None) };
    let found = Compression::of_start(&first_bytes(file.file(), START_BYTES)?);
    let is_meant = |found: &Compression| {
        let can_be_cut = matches!(found, Compression::Gzip | Compression::Zstd);
        can_be_cut && (named == *found || named == Compression::None)
    };
    let Some(found) = found.filter(is_meant) else { return Ok(None) };
    if Parts::new(found).next(file.file(), 1)?.is_none() {
        return Ok(None);
    }
    let unpacked = |bytes| Stream::first_bytes(file, found, bytes);
    let form = look_at(unpacked, |bytes| lines(bytes, *texts))?;
    Ok(form.map(|_| found))
}

/// What the first bytes of a text show.
enum Shown {
    Form(Form),
    /// The file is one piece.
    One,
    /// Further bytes decide.
    More,
}

fn text(file: &File, look: impl Fn(&[u8]) -> Shown) -> io::Result<Option<Form>> {
    look_at(|bytes| first_bytes(file, bytes), look)
}

/// Looks at the first bytes, of which `first` reads as many as are asked for.
fn look_at(
    first: impl Fn(usize) -> io::Result<Vec<u8>>,
    look: impl Fn(&[u8]) -> Shown,
) -> io::Result<Option<Form>> {
    for bytes in [LOOK_BYTES, HEAD_BYTES_MAX] {
        match look(&first(bytes)?) {
            Shown::Form(form) => return Ok(Some(form)),
            Shown::One => return Ok(None),
            Shown::More => {}
        }
    }
    Ok(None)
}

fn first_bytes(file: &File, bytes: usize) -> io::Result<Vec<u8>> {
    let mut head = vec![0; bytes];
    let filled = read_all(file, &mut head, 0)?;
    head.truncate(filled);
    Ok(head)
}

/// Whether a file is text whose lines end with newlines.
fn lines(bytes: &[u8], texts: Texts) -> Shown {
    if Compression::of_start(bytes) != Some(Compression::None) {
        return Shown::One;
    }
    let Start::Text(mark) = start_of(bytes, texts.guesses) else { return Shown::One };
    let limit = texts.line_bytes_max.min(FIRST_LINE_BYTES);
    let line = &bytes[mark..];
    let first = &line[..line.len().min(limit + 1)];
    if memchr(b'\n', first).is_some() {
        return Shown::Form(Form::of_lines(Vec::new(), mark));
    }
    // As in a file that is read as a whole, the same number of bytes decides about carriage
    // returns.
    match (first.len() > limit, memchr(b'\r', first)) {
        (false, _) => Shown::More,
        (true, Some(at)) if at < limit => Shown::One,
        (true, _) => Shown::Form(Form::of_lines(Vec::new(), mark)),
    }
}

/// As [`lines`], with the lines up to the end of the first record as the head.
fn records(bytes: &[u8], texts: Texts, dialect: &Dialect) -> Shown {
    let shown = lines(bytes, texts);
    let (Shown::Form(_), Start::Text(mark)) = (&shown, start_of(bytes, texts.guesses)) else {
        return shown;
    };
    let mut ends = QuotedRecords::new(dialect.clone());
    let mut end = mark;
    while let Some(newline) = memchr(b'\n', &bytes[end..]) {
        let line = &bytes[end..end + newline];
        ends.is_at(line.strip_suffix(b"\r").unwrap_or(line));
        end += newline + 1;
        if end - mark > texts.line_bytes_max {
            return Shown::One;
        }
        if !ends.is_before_head() {
            return Shown::Form(Form::of_lines(bytes[mark..end].to_vec(), mark));
        }
    }
    Shown::More
}

/// The form of an array of vectors of `dims` coordinates.
fn array(file: &File, dims: u32) -> io::Result<Option<Form>> {
    let mut head = Vec::new();
    while let wanted @ 1.. = bytes_wanted(&head) {
        let bytes = head.len() + wanted;
        head = first_bytes(file, bytes)?;
        if head.len() < bytes {
            return Ok(None);
        }
    }
    let header = NpyHeader::parse(&head).ok().filter(|header| header.dims == u64::from(dims));
    let width = |header: NpyHeader| header.dims * header.number.bytes() as u64;
    Ok(header.map(|header| Form { width: width(header), first: head.len() as u64, head }))
}
