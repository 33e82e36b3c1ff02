//! The readers of pieces: of lines, of rows of a fixed width, and of tables.

use trommel_engine::operator::Source;
use trommel_kernels::text::{PLACES_SLACK, places_of};

use super::ahead::{Ids, Needs, Scan};
use super::order::Before;
use super::queue::{Content, Piece};
use crate::source::read::divided::Divided;
use crate::source::read::error::ReadError;
use crate::source::read::files::input::{Inputs, UnreadFile};
use crate::source::read::files::ranged::{FileRange, RangedFile};
use crate::source::read::fixed::source::{RowFormat, RowSource};
use crate::source::read::tables::source::TableSource;
use crate::source::read::text::lines::{Place, Run};
use crate::source::read::text::source::LineSource;

/// Reads one piece after the other.
pub(super) trait PieceReader: Send {
    fn source(&self) -> &dyn Source;
    fn source_mut(&mut self) -> &mut dyn Source;
    /// Reserves memory for a piece. Returns false if there is none, and pieces before this one,
    /// which is not the first one, will give memory back.
    fn reserve(&mut self, _content: &mut Content, _is_first: bool) -> bool {
        true
    }
    /// Whether no records of a range have ids, since the first record of the file cannot be used.
    fn is_left_out(&mut self, _content: &Content) -> bool {
        false
    }
    /// Begins a piece. `scan` has the records of a range before which a quote is open.
    fn begin(&mut self, piece: Piece, before: Before, scan: Option<Scan>) -> Result<(), ReadError>;
    /// Says whether all earlier pieces have ended.
    fn set_first(&mut self, is_first: bool);
    /// Gives the memory of long lines back at the end of a piece.
    fn shrink(&mut self) {}
    /// Number of lines or rows with ids so far, those before the piece included.
    fn ids(&self) -> u64;
    fn inputs(&mut self) -> &mut Inputs;
}

/// Reads lines.
pub(super) struct LineReader<F> {
    source: LineSource<F>,
    /// Takes the refusals in the first record of a file, which the reader of the first range
    /// reports.
    unheard: Inputs,
    /// What the rows take from earlier pieces.
    needs: Needs,
}

impl<F: Divided> LineReader<F> {
    pub(super) fn new(source: LineSource<F>, unheard: Inputs, needs: Needs) -> Self {
        Self { source, unheard: unheard.silent(), needs }
    }

    /// Whether lines are numbered from the beginning of their file.
    fn counts_lines(&self) -> bool {
        self.needs.lines || self.needs.ids == Ids::Lines
    }

    /// Lets the format read the first record of a file.
    fn take_head(&mut self, file: &RangedFile) {
        let (isa, line_bytes_max) = self.source.limits();
        let bytes = file.head();
        let mut ends = vec![0; bytes.len() + PLACES_SLACK];
        let lines = places_of(isa, b'\n', bytes, &mut ends);
        let (ends, ends_by_return) = (&ends[..lines], false);
        let run =
            Run { isa, bytes, ends, first_line: 1, offset: 0, line_bytes_max, ends_by_return };
        self.unheard.set_file(file.path(), self.unheard.line_encoding());
        let format = self.source.format_mut();
        // The reader of the first range reports a fault of the record.
        drop(format.append(&run, &mut self.unheard));
        if format.rows() > 0 {
            format.take();
        }
        self.unheard.take_refused();
    }

    fn begin_range(
        &mut self,
        (piece, range): (u64, &FileRange),
        before: Before,
        scan: Option<Scan>,
    ) -> Result<(), ReadError> {
        let file = &range.file;
        self.source.format_mut().abandon();
        if range.begin > 0 && self.needs.quotes.is_some() {
            self.take_head(file);
        }
        // The lines of a file that is left out belong to no record.
        let scan = scan.filter(|_| !self.source.format().is_left_out());
        let failed = |source| ReadError::Read { path: file.path(), source };
        let place = match scan.map(|scan| scan.first) {
            None if range.begin == 0 => Place::default(),
            None if let Some(packed) = range.packed => Place::after_lines(packed.begin, true),
            None => {
                let is_within = file.is_within_line(range.begin).map_err(failed)?;
                Place::after_lines(range.begin, is_within)
            }
            Some(Some((offset, newlines))) => {
                Place::after_lines(offset, false).numbered(newlines + 1)
            }
            // No record begins in the range.
            Some(None) => Place::after_lines(range.end.unwrap_or(file.bytes()), false),
        };
        let newlines = if self.counts_lines() { before.newlines } else { 0 };
        // The line that began before the range has an id, too.
        let is_counted = self.needs.ids == Ids::Lines && place.is_dropping();
        let ids = before.ids + u64::from(is_counted);
        let (at, until) = match range.packed {
            None => (place.offset(), range.end),
            Some(packed) => (range.begin, packed.end.map(|end| end + 1)),
        };
        let unread = UnreadFile::Range(range.clone(), at);
        let place = place.numbered(place.line + newlines);
        self.source.begin((piece, vec![unread]), place, until);
        self.source.format_mut().begin_block(ids);
        if range.begin > 0 && !self.counts_lines() {
            self.source.inputs_mut().number_from(range.clone());
        }
        Ok(())
    }
}

impl<F: Divided> PieceReader for LineReader<F> {
    fn source(&self) -> &dyn Source {
        &self.source
    }

    fn source_mut(&mut self) -> &mut dyn Source {
        &mut self.source
    }

    fn is_left_out(&mut self, content: &Content) -> bool {
        let Content::Range(range) = content else { return false };
        self.source.format_mut().abandon();
        self.take_head(&range.file);
        self.source.format().is_left_out()
    }

    fn begin(&mut self, piece: Piece, before: Before, scan: Option<Scan>) -> Result<(), ReadError> {
        let Piece { number, content } = piece;
        match content {
            Content::Range(range) => self.begin_range((number, &range), before, scan),
            Content::Files(files) => {
                self.source.format_mut().abandon();
                self.source.begin((number, files), Place::default(), None);
                self.source.format_mut().begin_block(before.ids);
                Ok(())
            }
            Content::Table(_) => unreachable!("tables have no lines"),
        }
    }

    fn set_first(&mut self, is_first: bool) {
        self.source.let_grow(is_first);
    }

    fn shrink(&mut self) {
        self.source.shrink();
    }

    fn ids(&self) -> u64 {
        self.source.format().lines_so_far()
    }

    fn inputs(&mut self) -> &mut Inputs {
        self.source.inputs_mut()
    }
}

/// Reads rows of a fixed width.
pub(super) struct RowReader<F>(pub(super) RowSource<F>);

impl<F: RowFormat> PieceReader for RowReader<F> {
    fn source(&self) -> &dyn Source {
        &self.0
    }

    fn source_mut(&mut self) -> &mut dyn Source {
        &mut self.0
    }

    fn begin(&mut self, piece: Piece, before: Before, _: Option<Scan>) -> Result<(), ReadError> {
        let Piece { number, content } = piece;
        match content {
            Content::Range(range) if range.begin > 0 => {
                self.0.begin_range((number, range), before.ids)?;
            }
            Content::Range(range) => {
                self.0.begin_files((number, vec![UnreadFile::Range(range, 0)]), before.ids);
            }
            Content::Files(files) => self.0.begin_files((number, files), before.ids),
            Content::Table(_) => unreachable!("tables have no rows of a fixed width"),
        }
        Ok(())
    }

    fn set_first(&mut self, _: bool) {}

    fn ids(&self) -> u64 {
        self.0.format().rows_so_far()
    }

    fn inputs(&mut self) -> &mut Inputs {
        self.0.inputs_mut()
    }
}

/// Reads tables.
pub(super) struct TableReader(pub(super) TableSource);

impl PieceReader for TableReader {
    fn source(&self) -> &dyn Source {
        &self.0
    }

    fn source_mut(&mut self) -> &mut dyn Source {
        &mut self.0
    }

    fn reserve(&mut self, content: &mut Content, is_first: bool) -> bool {
        match content {
            Content::Table(piece) => piece.reserve(!is_first),
            // Memory is reserved when a file has been opened.
            _ => true,
        }
    }

    fn begin(&mut self, piece: Piece, _: Before, _: Option<Scan>) -> Result<(), ReadError> {
        let Piece { number, content } = piece;
        match content {
            Content::Table(table) => self.0.begin_piece(number, table),
            Content::Files(files) => {
                let places = files.into_iter().filter_map(UnreadFile::into_place);
                self.0.begin_files(number, places.collect());
            }
            Content::Range(_) => unreachable!("tables are not cut into ranges"),
        }
        Ok(())
    }

    fn set_first(&mut self, is_first: bool) {
        self.0.set_first(is_first);
    }

    fn ids(&self) -> u64 {
        0
    }

    fn inputs(&mut self) -> &mut Inputs {
        self.0.inputs_mut()
    }
}
