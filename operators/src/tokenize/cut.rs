//! Parts of batches, and the two steps from a part to rows.

use std::ops::Range;

use arrow_array::{RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use trommel_engine::operator::{Counters, OperatorError, Output};

use super::TokenizeError;
use super::input::TextInput;
use crate::tokens::Place;

/// Some rows of a batch.
pub(super) struct Part {
    pub(super) records: RecordBatch,
    /// The column to cut.
    pub(super) texts: StringArray,
    /// The id of the first text, if texts have ids.
    pub(super) first_id: u32,
}

impl Part {
    /// The id of the text in this row.
    pub(super) fn id(&self, row: usize) -> u32 {
        let row = u32::try_from(row).expect("ids of the part are below 2^32");
        self.first_id + row
    }

    /// Appends the columns of these indices to `sets`, the sets of `rows`.
    pub(super) fn carry_to(
        &self,
        sets: &RecordBatch,
        rows: Range<usize>,
        columns: &[usize],
        schema: &SchemaRef,
    ) -> RecordBatch {
        let carried = columns.iter().map(|&index| self.records.column(index));
        let carried = carried.map(|column| column.slice(rows.start, rows.len()));
        let columns = sets.columns().iter().cloned().chain(carried).collect();
        RecordBatch::try_new(SchemaRef::clone(schema), columns).expect("the columns of the schema")
    }
}

/// Cuts batches into parts.
pub(super) struct Parts {
    texts: TextInput,
    /// Bytes of the texts of a part, unless one text has more.
    bytes_max: usize,
    /// The id of the next text, if texts have ids.
    next_id: Option<u64>,
    /// The last batch, its texts, and its next row.
    pending: Option<(RecordBatch, StringArray, usize)>,
}

impl Parts {
    /// Parts of up to `bytes_max` bytes of `texts`, or of one text.
    pub(super) fn new(texts: TextInput, bytes_max: usize) -> Self {
        Self { texts, bytes_max, next_id: None, pending: None }
    }

    /// Gives each text an id.
    pub(super) fn numbered(self) -> Self {
        Self { next_id: Some(0), ..self }
    }

    /// Takes a batch; all parts of the one before have been taken.
    ///
    /// # Errors
    /// If an expression has no value for a row.
    pub(super) fn take(&mut self, records: RecordBatch) -> Result<(), OperatorError> {
        let texts = self.texts.of(&records)?;
        self.pending = Some((records, texts, 0));
        Ok(())
    }

    /// The next part; none until another batch comes.
    ///
    /// # Errors
    /// If there are more texts than ids.
    pub(super) fn next(&mut self) -> Result<Option<Part>, TokenizeError> {
        let Some((records, all, begin)) = self.pending.take() else { return Ok(None) };
        let rest = records.num_rows() - begin;
        let texts = all.slice(begin, rest);
        let ends = texts.value_offsets();
        let bytes = |end: &i32| usize::try_from(end - ends[0]).expect("ends ascend");
        let rows = ends[1..].partition_point(|end| bytes(end) <= self.bytes_max).max(1).min(rest);
        if rows == 0 {
            return Ok(None);
        }
        let first_id = match &mut self.next_id {
            None => 0,
            Some(next) => {
                let first = u32::try_from(*next).map_err(|_| TokenizeError::TooManyTexts)?;
                *next += rows as u64;
                // All of its texts have ids.
                u32::try_from(*next - 1).map_err(|_| TokenizeError::TooManyTexts)?;
                first
            }
        };
        let part =
            Part { records: records.slice(begin, rows), texts: texts.slice(0, rows), first_id };
        if rows < rest {
            self.pending = Some((records, all, begin + rows));
        }
        Ok(Some(part))
    }
}

/// The tokens of some rows of a part.
pub(super) trait Piece: Send + 'static {
    /// Bytes of memory, about.
    fn bytes(&self) -> usize;
}

/// Cuts texts into tokens. A piece depends on its part and its place only.
pub(super) trait Cut: Send + 'static {
    /// Type of the pieces.
    type Piece: Piece;

    /// Cuts a part from a place on, up to about a batch of rows. Returns the place at which to
    /// continue; a row past the last one if nothing is left.
    fn cut(&mut self, part: &Part, from: Place) -> (Self::Piece, Place);
}

/// Makes rows of pieces, in the order of the input.
pub(super) trait Rows: Send + 'static {
    /// Type of the pieces.
    type Piece: Piece;

    /// Sends the rows of a piece, which is that of these rows of the part.
    ///
    /// # Errors
    /// Any error ends the run.
    fn send(
        &mut self,
        piece: &Self::Piece,
        part: &Part,
        rows: Range<usize>,
        out: &mut Output,
    ) -> Result<(), OperatorError>;

    /// Counters for the report.
    fn counters(&self) -> Counters {
        Counters::new()
    }
}

/// A piece that is a batch already, or the reason why there is none.
pub(super) struct Batch {
    pub(super) records: Result<RecordBatch, TokenizeError>,
    /// Bytes of what has been made for it.
    pub(super) bytes: usize,
}

impl Piece for Batch {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Sends batches as they are.
pub(super) struct Whole;

impl Rows for Whole {
    type Piece = Batch;

    fn send(
        &mut self,
        piece: &Batch,
        _: &Part,
        _: Range<usize>,
        out: &mut Output,
    ) -> Result<(), OperatorError> {
        out.send(piece.records.clone()?);
        Ok(())
    }
}
