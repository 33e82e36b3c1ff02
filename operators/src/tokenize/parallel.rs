//! The operator of a stage with several threads whose rows have numbers: the first part numbers the
//! texts, copies of the second part cut them, and the third part makes the rows in the order of the
//! texts.

use std::mem;
use std::ops::Range;

use arrow_schema::SchemaRef;
use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{
    Body, Counters, Division, Flow, Fragment, Load, NamedInputs, Operator, OperatorError, Output,
    Part,
};

use super::cut::{Cut, Piece, RowMaker, TextPart, TextParts};
use crate::shared::rejected::PORT;
use crate::shared::tokens::TextPosition;

/// Approximate maximum bytes of the pieces of a part that wait for their rows. The rest of a part
/// with larger pieces, such as those of long q-grams, is cut where the rows are made, one piece at
/// a time.
const PIECES_BYTES: usize = 1 << 22;

/// An operator with cutters that `cut` makes.
pub(super) fn operator<C: Cut>(
    parts: TextParts,
    mut cut: impl FnMut() -> C + Send + 'static,
    rows: impl RowMaker<Piece = C::Piece>,
    outputs: Vec<SchemaRef>,
) -> Fragment {
    let part = |name: &'static str, load, body| Part { name: name.into(), load, body };
    let rows = MakeRows { cut: cut(), rows, pending: None };
    let parts = vec![
        part("texts", Load::Light, Body::Operator(Box::new(SendParts(parts)))),
        part("cut", Load::Heavy, Body::Operator(Box::new(CutPart(cut())))),
        part("rows", Load::Moderate, Body::Operator(Box::new(rows))),
    ];
    let copy = move || Ok(Body::Operator(Box::new(CutPart(cut()))));
    Fragment::new(parts, outputs).divided(Division::Anywhere, 1, usize::MAX, copy)
}

/// A part and its first pieces, each with the position at which the next piece begins.
struct CutPieces<P> {
    part: TextPart,
    pieces: Vec<(P, TextPosition)>,
}

/// Bytes of the texts of a part.
fn text_bytes(part: &TextPart) -> usize {
    let ends = part.texts.value_offsets();
    usize::try_from(ends[ends.len() - 1] - ends[0]).expect("ends ascend")
}

/// Sends the parts of batches.
struct SendParts(TextParts);

impl Operator for SendParts {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.0.take(input.into_records())?;
        self.0.take_rejected().into_iter().for_each(|rows| out.send_to(PORT, rows));
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(part) = self.0.next()? else { return Ok(Flow::NeedInput) };
        let (rows, bytes) = (part.records.num_rows(), text_bytes(&part));
        out.send_chunk(Chunk::new(part, rows, bytes));
        Ok(Flow::HaveOutput)
    }

    fn counters(&self) -> Counters {
        self.0.bad().counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.0.bad().named()
    }
}

/// Cuts a part, until its pieces take [`PIECES_BYTES`].
struct CutPart<C>(C);

impl<C: Cut> Operator for CutPart<C> {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let part = input.into_value::<TextPart>();
        let rows = part.records.num_rows();
        let (mut from, mut bytes, mut pieces) = (TextPosition::default(), 0, Vec::new());
        while from.row < rows && bytes < PIECES_BYTES {
            let (piece, next) = self.0.cut(&part, from);
            bytes += piece.bytes();
            pieces.push((piece, next));
            from = next;
        }
        let bytes = bytes + text_bytes(&part);
        out.send_chunk(Chunk::new(CutPieces { part, pieces }, rows, bytes));
        Ok(Flow::NeedInput)
    }
}

/// Makes rows of pieces, and cuts the rest of a part whose pieces took too many bytes.
struct MakeRows<C: Cut, R> {
    cut: C,
    rows: R,
    pending: Option<PendingPart<C::Piece>>,
}

/// The part in hand.
struct PendingPart<P> {
    part: TextPart,
    /// The pieces that have not been sent, in reverse order.
    pieces: Vec<(P, TextPosition)>,
    /// The position at which the next piece begins.
    at: TextPosition,
}

impl<C: Cut, R: RowMaker<Piece = C::Piece>> Operator for MakeRows<C, R> {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let CutPieces { part, mut pieces } = input.into_value::<CutPieces<C::Piece>>();
        pieces.reverse();
        self.pending = Some(PendingPart { part, pieces, at: TextPosition::default() });
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(PendingPart { part, mut pieces, mut at }) = self.pending.take() else {
            return Ok(Flow::NeedInput);
        };
        if at.row >= part.records.num_rows() {
            return Ok(Flow::NeedInput);
        }
        let (piece, next) = pieces.pop().unwrap_or_else(|| self.cut.cut(&part, at));
        let from = mem::replace(&mut at, next);
        self.rows.send(&piece, &part, Range { start: from.row, end: next.row }, out)?;
        self.pending = Some(PendingPart { part, pieces, at });
        Ok(Flow::HaveOutput)
    }

    fn counters(&self) -> Counters {
        self.rows.counters()
    }
}
