//! The sources that `read` makes of files.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use trommel_engine::error::BindError;
use trommel_engine::operator::{BindContext, Fragment, Load, Outputs};

use super::ahead::{Ahead, Ids, Needs};
use super::head::{Cut, Texts};
use super::queue::{Cutting, Pieces};
use super::reader::{LineReader, RowReader, TableReader};
use super::source::PieceSource;
use super::{BYTES_MIN, PIECE_BYTES, PIECE_FILES_MAX, TABLE_BYTES_MIN, TABLE_PIECE_BYTES};
use crate::shared::rejected::OnError;
use crate::source::read::csv::dialect::Dialect;
use crate::source::read::divided::Divided;
use crate::source::read::files::compression::Compression;
use crate::source::read::files::input::Inputs;
use crate::source::read::files::paths::{Files, Place};
use crate::source::read::fixed::source::{RowFormat, RowSource};
use crate::source::read::tables::source::{TableSource, Tables};
use crate::source::read::text::encoding::Decoding;
use crate::source::read::text::lines::LineBuffer;
use crate::source::read::text::source::LineSource;

/// How the copies of a source read files.
#[derive(Clone)]
pub(in super::super) struct Reading {
    pub(in super::super) on_error: OnError,
    pub(in super::super) decoding: Decoding,
    /// Maximum rows of a batch.
    pub(in super::super) batch: usize,
    cut: Cut,
    needs: Needs,
    piece_bytes: u64,
}

impl Reading {
    /// Files that are not cut.
    pub(in super::super) fn whole(on_error: OnError, decoding: Decoding, batch: usize) -> Self {
        let (cut, needs, piece_bytes) = (Cut::Nowhere, Needs::nothing(), PIECE_BYTES);
        Self { on_error, decoding, batch, cut, needs, piece_bytes }
    }

    /// Files that are cut before lines. `guesses` says whether encodings without a mark are
    /// recognised.
    pub(in super::super) fn lines(self, line_bytes_max: usize, guesses: bool) -> Self {
        if !self.decoding.keeps_line_ends() {
            return self;
        }
        // The output `rejected` has the numbers of lines.
        let needs = Needs { lines: self.on_error == OnError::Reject, ..Needs::nothing() };
        Self { cut: Cut::Lines(Texts { line_bytes_max, guesses }), needs, ..self }
    }

    /// Lines whose rows have the numbers of the lines.
    pub(in super::super) fn numbered(mut self) -> Self {
        self.needs.lines = true;
        self
    }

    /// Lines whose rows have ids.
    pub(in super::super) fn with_line_ids(mut self) -> Self {
        self.needs.ids = Ids::Lines;
        self
    }

    /// Records of CSV that have ids, in place of lines.
    pub(in super::super) fn records_with_ids(mut self, dialect: Dialect) -> Self {
        self.needs.ids = Ids::Records;
        self.records(dialect)
    }

    /// Records of CSV in place of lines.
    pub(in super::super) fn records(mut self, dialect: Dialect) -> Self {
        if let Cut::Lines(texts) = self.cut {
            self.cut = Cut::Records(texts, dialect.clone());
            self.needs.quotes = Some(dialect);
        }
        self
    }

    /// Files that are cut before rows of this number of bytes.
    pub(in super::super) fn rows(self, width: usize) -> Self {
        Self { cut: Cut::Rows(width), ..self }
    }

    /// Files that are cut before rows of arrays of NumPy, which have this number of coordinates.
    pub(in super::super) fn arrays(self, dims: u32) -> Self {
        Self { cut: Cut::Arrays(dims), ..self }
    }

    /// Tables that are cut before blocks of rows.
    pub(in super::super) fn tables(self, tables: Tables) -> Self {
        let needs = Needs { memory: true, ..Needs::nothing() };
        Self { cut: Cut::Tables(tables), needs, piece_bytes: TABLE_PIECE_BYTES, ..self }
    }

    /// Rows of a fixed width that have ids.
    pub(in super::super) fn with_row_ids(mut self) -> Self {
        self.needs.ids = Ids::Rows;
        self
    }

    #[cfg(test)]
    pub(super) fn piece_bytes(self, piece_bytes: u64) -> Self {
        Self { piece_bytes, ..self }
    }

    fn is_text(&self) -> bool {
        !matches!(self.cut, Cut::Rows(_) | Cut::Arrays(_) | Cut::Tables(_))
    }

    /// The maximum number of copies that have work for tables with about this number of `blocks`.
    pub(in super::super) fn copies_of_blocks(&self, files: &Files, blocks: usize) -> usize {
        let bytes = files.bytes.filter(|&bytes| bytes >= TABLE_BYTES_MIN);
        let pieces = bytes.map_or(1, |bytes| bytes.div_ceil(self.piece_bytes));
        blocks.min(usize::try_from(pieces).unwrap_or(usize::MAX)).max(1)
    }

    /// The maximum number of copies that have work; `None` if `files` are pipes, or large files
    /// that only one reader can read.
    pub(in super::super) fn copies(&self, files: &Files) -> Option<usize> {
        let bytes = files.bytes?;
        if bytes < BYTES_MIN {
            return Some(1);
        }
        let count = files.places.len();
        let compressed = files.places.iter().filter(|place| is_compressed(place)).count();
        let is_whole = matches!(self.cut, Cut::Nowhere);
        // The ids after a file that is not cut are known when the file has been read.
        if self.needs.ids != Ids::None && (is_whole || compressed > 0) {
            return None;
        }
        if let [place] = &files.places[..]
            && !self.is_cut(place)
        {
            return None;
        }
        let are_packed = compressed == count && !self.is_cut(&files.places[0]);
        let pieces = match is_whole || are_packed {
            true => count,
            false => usize::try_from(bytes.div_ceil(self.piece_bytes)).unwrap_or(usize::MAX),
        };
        Some(pieces.max(count.div_ceil(PIECE_FILES_MAX)))
    }

    /// Whether a file is cut.
    fn is_cut(&self, place: &Place) -> bool {
        self.cutting(Outputs::default()).open(place).is_some()
    }

    fn cutting(&self, outputs: Outputs) -> Cutting {
        // One reader leaves out all lines after a damaged place, and readers of later ranges cannot
        // know of the damage.
        let cuts_packed = self.needs.are_none() && !self.on_error.goes_on();
        Cutting { cut: self.cut.clone(), cuts_packed, piece_bytes: self.piece_bytes, outputs }
    }

    fn inputs(&self, context: &BindContext) -> Inputs {
        let inputs = Inputs::new(Files::default(), self.on_error, self.is_text());
        inputs.decoding(self.decoding).leaving_out(context.outputs.clone())
    }

    /// About the number of bytes of the rows of files.
    fn row_bytes(&self, files: &Files) -> Option<u64> {
        let are_compressed =
            matches!(self.cut, Cut::Tables(_)) || files.places.iter().any(is_compressed);
        let ratio = if are_compressed { BYTES_MIN / TABLE_BYTES_MIN } else { 1 };
        files.bytes.map(|bytes| bytes.saturating_mul(ratio))
    }

    /// A source of lines, of which there can be `most` copies.
    pub(in super::super) fn source_of_lines<F: Divided + 'static>(
        self,
        (files, most): (Files, usize),
        context: &BindContext,
        format: F,
        buffer: impl Fn() -> LineBuffer + Send + 'static,
    ) -> Result<Fragment, BindError> {
        let (schema, bytes) = (SchemaRef::clone(format.schema()), self.row_bytes(&files));
        let mut copy = self.copies_of_lines(files, context.clone(), format, buffer);
        let source = Fragment::divided_source(Load::Heavy, most, move || Ok(copy()), schema)?;
        Ok(source.with_input_bytes(bytes))
    }

    /// Makes copies of a source of lines.
    pub(super) fn copies_of_lines<F: Divided>(
        self,
        files: Files,
        context: BindContext,
        format: F,
        buffer: impl Fn() -> LineBuffer,
    ) -> impl FnMut() -> PieceSource<LineReader<F>> {
        let pieces = self.pieces(files, &context);
        move || {
            let lines = buffer();
            let ahead = self.ahead(lines.line_bytes_max());
            let inputs = self.inputs(&context).sharing(Arc::clone(&pieces.told), pieces.add_copy());
            let unheard = Inputs::none(OnError::Skip).decoding(self.decoding);
            let format = format.another(&context.memory);
            let source = LineSource::new(inputs, format, self.batch, lines);
            let reader = LineReader::new(source, unheard, self.needs.clone());
            PieceSource::new(Arc::clone(&pieces), reader, ahead)
        }
    }

    /// A source of rows of a fixed width, of which there can be `most` copies.
    pub(in super::super) fn source_of_rows<F: RowFormat + 'static>(
        self,
        (files, most): (Files, usize),
        context: &BindContext,
        new: impl Fn() -> F + Send + 'static,
    ) -> Result<Fragment, BindError> {
        let (schema, bytes) = (SchemaRef::clone(new().schema()), self.row_bytes(&files));
        let mut copy = self.copies_of_rows(files, context.clone(), new);
        let source = Fragment::divided_source(Load::Heavy, most, move || Ok(copy()), schema)?;
        Ok(source.with_input_bytes(bytes))
    }

    /// Makes copies of a source of rows of a fixed width.
    pub(super) fn copies_of_rows<F: RowFormat>(
        self,
        files: Files,
        context: BindContext,
        new: impl Fn() -> F,
    ) -> impl FnMut() -> PieceSource<RowReader<F>> {
        let pieces = self.pieces(files, &context);
        move || {
            let inputs = self.inputs(&context).sharing(Arc::clone(&pieces.told), pieces.add_copy());
            let reader = RowReader(RowSource::new(inputs, new(), self.batch));
            PieceSource::new(Arc::clone(&pieces), reader, self.ahead(0))
        }
    }

    /// A source of tables, of which there can be `most` copies.
    pub(in super::super) fn source_of_tables(
        self,
        (files, most): (Files, usize),
        context: &BindContext,
        tables: Tables,
    ) -> Result<Fragment, BindError> {
        let (schema, bytes) = (SchemaRef::clone(&tables.columns.read), self.row_bytes(&files));
        let mut copy = self.copies_of_tables(files, context.clone(), tables);
        let source = Fragment::divided_source(Load::Heavy, most, move || Ok(copy()), schema)?;
        Ok(source.with_input_bytes(bytes))
    }

    /// Makes copies of a source of tables.
    pub(super) fn copies_of_tables(
        self,
        files: Files,
        context: BindContext,
        tables: Tables,
    ) -> impl FnMut() -> PieceSource<TableReader> {
        let pieces = self.pieces(files, &context);
        move || {
            let inputs = self.inputs(&context).sharing(Arc::clone(&pieces.told), pieces.add_copy());
            let reader = TableReader(TableSource::new(inputs, tables.clone()));
            PieceSource::new(Arc::clone(&pieces), reader, self.ahead(0))
        }
    }

    fn pieces(&self, files: Files, context: &BindContext) -> Arc<Pieces> {
        Arc::new(Pieces::new(files, self.cutting(context.outputs.clone())))
    }

    fn ahead(&self, line_bytes_max: usize) -> Option<Ahead> {
        (!self.needs.are_none()).then(|| Ahead::new(self.needs.clone(), line_bytes_max))
    }
}

/// Whether the name of a file says that it is compressed.
fn is_compressed(place: &Place) -> bool {
    match place {
        Place::Stdin => false,
        Place::File(path) => Compression::of_name(path) != Compression::None,
    }
}
