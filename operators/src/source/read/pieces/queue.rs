//! The pieces that nobody has taken.

use std::fs::{self, File};
use std::iter::Peekable;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec;

use trommel_engine::operator::Outputs;

use super::PIECE_FILES_MAX;
use super::head::{Cut, Form, form_of};
use super::order::Order;
use crate::shared::files::FileId;
use crate::source::read::files::compression::Compression;
use crate::source::read::files::input::{Told, UnreadFile};
use crate::source::read::files::paths::{Files, Place};
use crate::source::read::files::ranged::{FileRange, RangedFile};
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
    cut: Cut,
    piece_bytes: u64,
    /// The files that the run writes.
    outputs: Outputs,
    open: Option<OpenFile>,
    next: u64,
}

/// A file that is cut.
enum OpenFile {
    Ranged {
        file: Arc<RangedFile>,
        /// First byte of the next range.
        begin: u64,
    },
    Table(CutTable),
}

impl Pieces {
    pub(super) fn new(files: Files, cut: Cut, piece_bytes: u64, outputs: Outputs) -> Self {
        let places = files.places.into_iter().peekable();
        Self {
            queue: Mutex::new(Queue { places, cut, piece_bytes, outputs, open: None, next: 0 }),
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
            match self.open.take() {
                None => {
                    let place = self.places.next()?;
                    match self.open_cut(&place) {
                        Some(open) => self.open = Some(open),
                        None => return Some(Content::Files(self.files_from(place))),
                    }
                }
                Some(OpenFile::Ranged { file, begin }) => {
                    return Some(Content::Range(self.next_range(file, begin)));
                }
                Some(OpenFile::Table(mut table)) => {
                    let Cut::Tables(tables) = &self.cut else { unreachable!("tables are cut") };
                    if let Some(piece) = table.next(tables, self.piece_bytes) {
                        self.open = Some(OpenFile::Table(table));
                        return Some(Content::Table(piece));
                    }
                }
            }
        }
    }

    /// The range of a file that begins at this byte.
    fn next_range(&mut self, file: Arc<RangedFile>, begin: u64) -> FileRange {
        let (first, width) = (file.first(), file.width());
        let rows = (begin.max(first) - first + self.piece_bytes).div_ceil(width);
        let end = Some(first + rows * width).filter(|&end| end < file.bytes());
        self.open = end.map(|begin| OpenFile::Ranged { begin, file: Arc::clone(&file) });
        FileRange { file, begin, end, has_lines: self.cut.has_lines() }
    }

    /// Opens a file that has several pieces. A file that cannot be opened is a piece, whose reader
    /// reports the reason.
    fn open_cut(&self, place: &Place) -> Option<OpenFile> {
        if bytes_of(place)? <= self.piece_bytes {
            return None;
        }
        match &self.cut {
            Cut::Tables(tables) => tables.open_cut(place, &self.outputs).map(OpenFile::Table),
            _ => self.open_ranged(place),
        }
    }

    fn open_ranged(&self, place: &Place) -> Option<OpenFile> {
        let Place::File(path) = place else { return None };
        if Compression::of_name(path) != Compression::None {
            return None;
        }
        let file: File = raw::open(path).ok()?;
        let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
        if self.outputs.contains(&FileId::of(&metadata).key()) {
            return None;
        }
        let Form { head, first, width } = form_of(&file, &self.cut).ok()??;
        let file = RangedFile::new(place.name(), file, metadata.len());
        let file = file.with_form(head, (first, width));
        Some(OpenFile::Ranged { file: Arc::new(file), begin: 0 })
    }

    /// A file, and files after it that are small enough for the same piece.
    fn files_from(&mut self, first: Place) -> Vec<UnreadFile> {
        let mut bytes = bytes_of(&first).unwrap_or(self.piece_bytes);
        let mut files = vec![UnreadFile::Place(first)];
        while files.len() < PIECE_FILES_MAX
            && let Some(next) = self.places.peek()
            && let Some(more) = bytes_of(next)
            && bytes + more <= self.piece_bytes
        {
            bytes += more;
            files.extend(self.places.next().map(UnreadFile::Place));
        }
        files
    }
}

/// Bytes of a regular file.
fn bytes_of(place: &Place) -> Option<u64> {
    let Place::File(path) = place else { return None };
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(metadata.len())
}
