//! The parts of batches, and the two steps from a part to rows.

use std::collections::VecDeque;
use std::ops::Range;

use arrow_array::{RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use trommel_engine::operator::{Counters, OperatorError, Output};

use super::TokenizeError;
use super::input::TextInput;
use crate::shared::rejected::BadRows;
use crate::shared::tokens::TextPosition;

/// Some rows of a batch.
pub(super) struct TextPart {
    pub(super) records: RecordBatch,
    /// The texts to cut.
    pub(super) texts: StringArray,
    /// The id of the first text, if the texts have ids.
    pub(super) first_id: u32,
}

impl TextPart {
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
pub(super) struct TextParts {
    texts: TextInput,
    /// Maximum bytes of the texts of a part, unless one text has more.
    bytes_max: usize,
    /// The id of the next text, if the texts have ids.
    next_id: Option<u64>,
    bad: BadRows,
    /// The rest of the last batch, if there is a rest.
    pending: Option<PendingBatch>,
}

/// A batch that is cut into parts.
struct PendingBatch {
    records: RecordBatch,
    texts: StringArray,
    /// The next row.
    begin: usize,
    /// The rows from `begin` on that cannot be used.
    unusable: VecDeque<usize>,
}

impl TextParts {
    /// Parts of up to `bytes_max` bytes of `texts`, or of one text.
    pub(super) fn new(texts: TextInput, bad: BadRows, bytes_max: usize) -> Self {
        Self { texts, bytes_max, next_id: None, bad, pending: None }
    }

    /// Gives each text an id.
    pub(super) fn numbered(self) -> Self {
        Self { next_id: Some(0), ..self }
    }

    /// Takes a batch. The caller has taken all parts of the batch before.
    ///
    /// # Errors
    /// If an expression has no value for a row, and such a row ends the run.
    pub(super) fn take(&mut self, records: RecordBatch) -> Result<(), OperatorError> {
        let mut faults = self.bad.faults();
        let texts = self.texts.of(&records, &mut faults)?;
        self.bad.settle(0, &records, &faults)?;
        let unusable = faults.rows().collect();
        self.pending = Some(PendingBatch { records, texts, begin: 0, unusable });
        Ok(())
    }

    /// The rows that could not be used.
    pub(super) fn bad(&self) -> &BadRows {
        &self.bad
    }

    /// As [`BadRows::are_of_a_copy`].
    pub(super) fn are_of_a_copy(&mut self) {
        self.bad.are_of_a_copy();
    }

    /// As [`BadRows::take_rejected`].
    pub(super) fn take_rejected(&mut self) -> Option<RecordBatch> {
        self.bad.take_rejected()
    }

    /// The next part; `None` until another batch comes.
    ///
    /// # Errors
    /// If there are more texts than ids.
    pub(super) fn next(&mut self) -> Result<Option<TextPart>, TokenizeError> {
        let Some(mut pending) = self.pending.take() else { return Ok(None) };
        while pending.unusable.front() == Some(&pending.begin) {
            pending.unusable.pop_front();
            pending.begin += 1;
            // A row that is left out keeps its position: no other row gets it as an id.
            self.next_id.iter_mut().for_each(|id| *id += 1);
        }
        let PendingBatch { records, texts: all, begin, unusable } = &pending;
        let rest = records.num_rows() - begin;
        // A part ends before a row that cannot be used, so that its texts have consecutive ids.
        let whole = unusable.front().map_or(rest, |row| row - begin);
        let texts = all.slice(*begin, whole);
        let ends = texts.value_offsets();
        let bytes = |end: &i32| usize::try_from(end - ends[0]).expect("ends ascend");
        let fitting = ends[1..].partition_point(|end| bytes(end) <= self.bytes_max);
        let rows = fitting.max(1).min(whole);
        if rows == 0 {
            return Ok(None);
        }
        let first_id = match &mut self.next_id {
            None => 0,
            Some(next) => {
                let first = u32::try_from(*next).map_err(|_| TokenizeError::TooManyTexts)?;
                *next += rows as u64;
                // The last text of the part must have an id, too.
                u32::try_from(*next - 1).map_err(|_| TokenizeError::TooManyTexts)?;
                first
            }
        };
        let records = records.slice(*begin, rows);
        let part = TextPart { records, texts: texts.slice(0, rows), first_id };
        if rows < rest {
            pending.begin += rows;
            self.pending = Some(pending);
        }
        Ok(Some(part))
    }
}

/// The tokens of some rows of a part.
pub(super) trait Piece: Send + 'static {
    /// Approximate bytes of memory.
    fn bytes(&self) -> usize;
}

/// Cuts texts into tokens. A piece depends only on its part and its position there.
pub(super) trait Cut: Send + 'static {
    /// Type of the pieces.
    type Piece: Piece;

    /// Cuts a part from a position on, up to about a batch of rows. Returns the position at which
    /// to continue; a row past the last one if nothing is left.
    fn cut(&mut self, part: &TextPart, from: TextPosition) -> (Self::Piece, TextPosition);
}

/// Makes rows of pieces, in the order of the input.
pub(super) trait RowMaker: Send + 'static {
    /// Type of the pieces.
    type Piece: Piece;

    /// Sends the rows of a piece. The piece has the tokens of `rows` of the part.
    ///
    /// # Errors
    /// Any error ends the run.
    fn send(
        &mut self,
        piece: &Self::Piece,
        part: &TextPart,
        rows: Range<usize>,
        out: &mut Output,
    ) -> Result<(), OperatorError>;

    /// Counters for the report.
    fn counters(&self) -> Counters {
        Counters::new()
    }
}

/// A piece that is already a batch, or the reason why there is no batch.
pub(super) struct BatchPiece {
    pub(super) records: Result<RecordBatch, TokenizeError>,
    /// Bytes of memory that the batch takes.
    pub(super) bytes: usize,
}

impl Piece for BatchPiece {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Sends pieces that are already batches.
pub(super) struct SendBatches;

impl RowMaker for SendBatches {
    type Piece = BatchPiece;

    fn send(
        &mut self,
        piece: &BatchPiece,
        _: &TextPart,
        _: Range<usize>,
        out: &mut Output,
    ) -> Result<(), OperatorError> {
        out.send(piece.records.clone()?);
        Ok(())
    }
}
