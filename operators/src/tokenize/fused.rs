//! The operator whose rows need no numbers, and that of a stage with one thread: cuts a piece, and
//! makes its rows while the piece is in the cache.

use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, NamedInputs, Operator, OperatorError, Output};

use super::cut::{Cut, RowMaker, TextPart, TextParts};
use crate::shared::rejected::PORT;
use crate::shared::tokens::TextPosition;

pub(super) struct Fused<C, R> {
    parts: TextParts,
    cut: C,
    rows: R,
    /// The part in progress, and the position of its next piece.
    pending: Option<(TextPart, TextPosition)>,
}

impl<C: Cut, R: RowMaker<Piece = C::Piece>> Fused<C, R> {
    pub(super) fn new(parts: TextParts, cut: C, rows: R) -> Self {
        Self { parts, cut, rows, pending: None }
    }
}

impl<C: Cut, R: RowMaker<Piece = C::Piece>> Operator for Fused<C, R> {
    fn is_copied(&mut self) {
        self.parts.are_of_a_copy();
    }

    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.parts.take(input.into_records())?;
        self.parts.take_rejected().into_iter().for_each(|rows| out.send_to(PORT, rows));
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let (part, from) = match self.pending.take() {
            Some(pending) => pending,
            None => match self.parts.next()? {
                Some(part) => (part, TextPosition::default()),
                None => return Ok(Flow::NeedInput),
            },
        };
        let (piece, next) = self.cut.cut(&part, from);
        self.rows.send(&piece, &part, from.row..next.row, out)?;
        if next.row < part.records.num_rows() {
            self.pending = Some((part, next));
        }
        Ok(Flow::HaveOutput)
    }

    fn counters(&self) -> Counters {
        let mut counters = self.rows.counters();
        counters.extend(self.parts.bad().counters());
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.parts.bad().named()
    }
}
