//! The pieces that nobody has taken.

use std::fs::{self, File};
use std::iter::Peekable;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec;

use trommel_engine::operator::Outputs;

use super::head::{Cut, Form, form_of, packing_of};
use super::order::Order;
use super::{PACKED_RATIO, PIECE_FILES_MAX};
use crate::shared::files::FileId;
use crate::source::read::files::compression::Compression;
use crate::source::read::files::input::{Told, UnreadFile};
use crate::source::read::files::parts::{Border, Parts};
use crate::source::read::files::paths::{Files, Place};
use crate::source::read::files::ranged::{FileRange, PackedRange, RangedFile};
use crate::source::read::files::raw;
use crate::source::read::tables::source::{CutTable, OpenPiece};

/// A piece of the input.
pub(super) struct Piece {
    pub(super) number: u64,
    pub(super) content: Content,
}

/// The bytes of a piece.
pub(super) enum Content {
    Files(Vec<UnreadFile>),
    Range(FileRange),
    Table(OpenPiece),
}

/// The input of all copies of a source.
pub(super) struct Pieces {
    queue: Mutex<Queue>,
    pub(super) order: Order,
    /// The messages of all copies.
    pub(super) told: Arc<Told>,
    /// Number of copies, and number of copies that have not ended.
    copies: AtomicUsize,
    running: AtomicUsize,
    /// Bytes of all files.
    bytes: Option<u64>,
}

struct Queue {
    places: Peekable<vec::IntoIter<Place>>,
    cutting: Cutting,
    open: Option<OpenFile>,
    next: u64,
}

/// How files are cut.
pub(super) struct Cutting {
    pub(super) cut: Cut,
    /// Whether compressed files are cut, too.
    pub(super) cuts_packed: bool,
    pub(super) piece_bytes: u64,
    /// The files that the run writes.
    pub(super) outputs: Outputs,
}

/// A file that is cut.
pub(super) enum OpenFile {
    Ranged {
        file: Arc<RangedFile>,
        /// First byte of the next range.
        begin: u64,
    },
    Packed {
        file: Arc<RangedFile>,
        compression: Compression,
        parts: Parts,
        /// Beginning of the next range.
        begin: Border,
    },
    Table(CutTable),
}

impl Pieces {
    pub(super) fn new(files: Files, cutting: Cutting) -> Self {
        let places = files.places.into_iter().peekable();
        Self {
            queue: Mutex::new(Queue { places, cutting, open: None, next: 0 }),
            order: Order::default(),
            told: Arc::default(),
            copies: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            bytes: files.bytes,
        }
    }

    /// Counts another copy. Returns the bytes of all files.
    pub(super) fn add_copy(&self) -> Option<u64> {
        self.running.fetch_add(1, Ordering::Relaxed);
        self.copies.fetch_add(1, Ordering::Relaxed);
        self.bytes
    }

    /// Whether several copies share the input. An only copy reads all files as one piece.
    pub(super) fn are_shared(&self) -> bool {
        self.copies.load(Ordering::Relaxed) > 1
    }

    /// Counts a copy that has ended. Returns true if no other copy is left.
    pub(super) fn end_copy(&self) -> bool {
        self.running.fetch_sub(1, Ordering::Relaxed) == 1
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A call that panics has taken its piece already.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next piece.
    pub(super) fn take(&self) -> Option<Piece> {
        let mut queue = self.queue();
        let content = if self.are_shared() { queue.next_content()? } else { queue.rest()? };
        let number = queue.next;
        queue.next += 1;
        Some(Piece { number, content })
    }
}

impl Queue {
    /// All files that are left, as one piece.
    fn rest(&mut self) -> Option<Content> {
        let files: Vec<_> = self.places.by_ref().map(UnreadFile::Place).collect();
        (!files.is_empty()).then_some(Content::Files(files))
    }

    fn next_content(&mut self) -> Option<Content> {
        loop {
            let Some(open) = self.open.take() else {
                let place = self.places.next()?;
                self.open = self.cutting.open(&place);
                if self.open.is_none() {
                    return Some(Content::Files(self.files_from(place)));
                }
                continue;
            };
            let (content, rest) = self.cutting.next(open);
            self.open = rest;
            if content.is_some() {
                return content;
            }
        }
    }

    /// A file, and files after it that are small enough for the same piece.
    fn files_from(&mut self, first: Place) -> Vec<UnreadFile> {
        let piece_bytes = self.cutting.piece_bytes;
        let mut bytes = bytes_of(&first).unwrap_or(piece_bytes);
        let mut files = vec![UnreadFile::Place(first)];
        while files.len() < PIECE_FILES_MAX
            && let Some(next) = self.places.peek()
            && let Some(more) = bytes_of(next)
            && bytes + more <= piece_bytes
        {
            bytes += more;
            files.extend(self.places.next().map(UnreadFile::Place));
        }
        files
    }
}

impl Cutting {
    /// Opens a file that has several pieces. A file that cannot be opened is a piece, whose reader
    /// reports the reason.
    pub(super) fn open(&self, place: &Place) -> Option<OpenFile> {
        let Place::File(path) = place else { return None };
        if bytes_of(place)? <= self.piece_bytes {
            return None;
        }
        if let Cut::Tables(tables) = &self.cut {
            return tables.open_cut(place, &self.outputs).map(OpenFile::Table);
        }
        let file: File = raw::open(path).ok()?;
        let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
        if self.outputs.contains(&FileId::of(&metadata).key()) {
            return None;
        }
        let named = Compression::of_name(path);
        let form = form_of(&file, &self.cut).ok()?.filter(|_| named == Compression::None);
        let file = RangedFile::new(place.name(), file, metadata.len());
        if let Some(Form { head, first, width }) = form {
            let file = Arc::new(file.with_form(head, (first, width)));
            return Some(OpenFile::Ranged { file, begin: 0 });
        }
        let file = Arc::new(file);
        let packing = || packing_of(&file, named, &self.cut).ok()?;
        let compression = self.cuts_packed.then(packing)??;
        let (parts, begin) = (Parts::new(compression), Border::default());
        Some(OpenFile::Packed { file, compression, parts, begin })
    }

    /// The next piece of a file, and the rest of the file.
    fn next(&self, open: OpenFile) -> (Option<Content>, Option<OpenFile>) {
        match open {
            OpenFile::Ranged { file, begin } => {
                let (first, width) = (file.first(), file.width());
                let rows = (begin.max(first) - first + self.piece_bytes).div_ceil(width);
                let end = Some(first + rows * width).filter(|&end| end < file.bytes());
                let rest = end.map(|begin| OpenFile::Ranged { begin, file: Arc::clone(&file) });
                let has_lines = self.cut.has_lines();
                let range = FileRange { file, begin, end, has_lines, packed: None };
                (Some(Content::Range(range)), rest)
            }
            OpenFile::Packed { file, compression, mut parts, begin } => {
                // If the next border cannot be read, the reader of the rest reports the reason.
                let bytes = self.piece_bytes.saturating_mul(PACKED_RATIO);
                let end = parts.next(file.file(), bytes).ok().flatten();
                let packed =
                    PackedRange { compression, begin: begin.plain, end: end.map(|end| end.plain) };
                let range = FileRange {
                    file: Arc::clone(&file),
                    begin: begin.packed,
                    end: end.map(|end| end.packed),
                    has_lines: true,
                    packed: Some(packed),
                };
                let rest = end.map(|begin| OpenFile::Packed { file, compression, parts, begin });
                (Some(Content::Range(range)), rest)
            }
            OpenFile::Table(mut table) => {
                let Cut::Tables(tables) = &self.cut else { unreachable!("tables are cut") };
                match table.next(tables, self.piece_bytes) {
                    Some(piece) => (Some(Content::Table(piece)), Some(OpenFile::Table(table))),
                    None => (None, None),
                }
            }
        }
    }
}

/// Bytes of a regular file.
fn bytes_of(place: &Place) -> Option<u64> {
    let Place::File(path) = place else { return None };
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(metadata.len())
}
