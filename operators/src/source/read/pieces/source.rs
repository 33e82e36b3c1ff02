//! A copy of a source, which takes pieces and reads them.
//!
//! ```text
//!                              all before are counted,
//!          take, count ahead        memory is reserved           all rows are sent
//! Free ───────────────────► Counted ─────────────────────► Reading ───────────────► Free
//!                                                             │ error
//!                                                             └──────► Failed: the error is reported
//!                                                                      when all before have ended
//! ```

use std::mem;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use trommel_engine::operator::{
    Counters, NamedInputs, OperatorError, Output, Progress, Source, SourceFlow,
};

use super::PAUSE;
use super::ahead::Ahead;
use super::order::{Before, Count};
use super::queue::{Content, Piece, Pieces};
use super::reader::PieceReader;
use crate::source::read::error::ReadError;

/// Reads pieces of an input that several copies share.
pub(super) struct PieceSource<R> {
    pieces: Arc<Pieces>,
    reader: R,
    /// Counts ranges, if rows depend on earlier pieces.
    ahead: Option<Ahead>,
    work: Work,
    is_stopped: bool,
    has_ended: bool,
}

/// What a copy is doing.
#[derive(Default)]
enum Work {
    #[default]
    Free,
    /// The piece has been counted as far as possible, and what precedes the piece may be unknown.
    Counted(Piece, Count),
    Reading(Reading),
    /// Reading failed, and earlier pieces have not ended.
    Failed(u64, OperatorError),
}

/// A piece that is read.
#[derive(Clone, Copy)]
struct Reading {
    piece: u64,
    count: Count,
    before: Before,
}

impl<R: PieceReader> PieceSource<R> {
    pub(super) fn new(pieces: Arc<Pieces>, reader: R, ahead: Option<Ahead>) -> Self {
        let (work, is_stopped, has_ended) = (Work::Free, false, false);
        Self { pieces, reader, ahead, work, is_stopped, has_ended }
    }

    /// Goes on with the piece in hand, or with the next one.
    fn advance(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        loop {
            match mem::take(&mut self.work) {
                Work::Free => {
                    let Some(piece) = self.take() else {
                        self.end_copy();
                        return Ok(SourceFlow::Finished);
                    };
                    out.begin_piece(piece.number);
                    match self.count(&piece) {
                        Ok(count) => self.work = Work::Counted(piece, count),
                        Err(error) => self.leave_out(piece.number, error),
                    }
                }
                Work::Counted(piece, _) if self.is_stopped => self.pieces.order.end(piece.number),
                Work::Counted(piece, count) => {
                    if !self.begin(piece, count) {
                        return Ok(SourceFlow::Idle(PAUSE));
                    }
                }
                Work::Reading(reading) => return self.read(reading, out),
                Work::Failed(piece, error) => {
                    if self.pieces.order.is_first(piece) {
                        return Err(error);
                    }
                    self.work = Work::Failed(piece, error);
                    return Ok(SourceFlow::Idle(PAUSE));
                }
            }
        }
    }

    fn take(&self) -> Option<Piece> {
        if self.is_stopped { None } else { self.pieces.take() }
    }

    /// Counts a piece ahead and publishes the counts.
    fn count(&mut self, piece: &Piece) -> Result<Count, ReadError> {
        let Some(ahead) = &mut self.ahead else { return Ok(Count::default()) };
        let mut count = ahead.count(&piece.content)?;
        if ahead.counts_records() && self.reader.is_left_out(&piece.content) {
            count.ids = Some(0);
        }
        self.pieces.order.publish(piece.number, count);
        Ok(count)
    }

    /// Begins to read a piece. Returns false if what precedes the piece is unknown, or if there is
    /// no memory for the piece.
    fn begin(&mut self, mut piece: Piece, count: Count) -> bool {
        let number = piece.number;
        let before = match self.ahead {
            Some(_) => self.pieces.order.before(number),
            None => Some(Before::default()),
        };
        let Some(before) = before.filter(|_| self.reserve(&mut piece)) else {
            self.work = Work::Counted(piece, count);
            return false;
        };
        match self.begin_after(piece, before, count) {
            Ok(reading) => self.work = Work::Reading(reading),
            Err(error) => self.leave_out(number, error),
        }
        true
    }

    /// Reserves memory for a piece. Returns false if there is none and earlier pieces will give
    /// memory back.
    fn reserve(&mut self, piece: &mut Piece) -> bool {
        if !self.ahead.as_ref().is_some_and(Ahead::needs_memory) {
            return true;
        }
        let order = &self.pieces.order;
        let has_memory = self.reader.reserve(&mut piece.content, order.is_first(piece.number));
        if has_memory {
            order.publish(piece.number, Count::nothing());
        }
        has_memory
    }

    /// Begins to read a piece after what precedes the piece.
    fn begin_after(
        &mut self,
        piece: Piece,
        before: Before,
        mut count: Count,
    ) -> Result<Reading, ReadError> {
        let (number, mut scan) = (piece.number, None);
        if let (true, Some(ahead), Content::Range(range)) =
            (before.is_quoted, &mut self.ahead, &piece.content)
        {
            let found = ahead.scan(range, true)?;
            count.is_quoted[1] = Some(found.is_quoted);
            let is_left_out = ahead.counts_records() && self.reader.is_left_out(&piece.content);
            // The reader of the last range of a file counts the ids.
            if !count.is_file_end && !is_left_out {
                count.ids = ahead.ids_of(&found);
            }
            self.pieces.order.publish(number, count);
            scan = Some(found);
        }
        self.reader.begin(piece, before, scan)?;
        Ok(Reading { piece: number, count, before })
    }

    /// Leaves out a piece that cannot be read, or fails with `error`.
    fn leave_out(&mut self, piece: u64, error: ReadError) {
        match self.reader.inputs().leave_out(error) {
            Ok(()) => {
                // Later pieces wait for the counts of a piece without rows, too.
                self.pieces.order.publish(piece, Count::nothing());
                self.pieces.order.end(piece);
            }
            Err(error) => self.work = Work::Failed(piece, error.into()),
        }
    }

    fn read(&mut self, reading: Reading, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.reader.set_first(self.pieces.order.is_first(reading.piece));
        let source = self.reader.source_mut();
        let flow = if self.is_stopped { source.stop(out) } else { source.next(out) };
        match flow {
            Ok(SourceFlow::Finished) => {
                self.end_piece(reading);
                Ok(SourceFlow::HaveOutput)
            }
            Ok(flow) => {
                self.work = Work::Reading(reading);
                Ok(flow)
            }
            Err(error) => {
                self.work = Work::Failed(reading.piece, error);
                self.advance(out)
            }
        }
    }

    /// Publishes the counts that only the reader knows, and ends the piece.
    fn end_piece(&mut self, Reading { piece, mut count, before }: Reading) {
        if self.ahead.is_some() {
            count.ids.get_or_insert(self.reader.ids() - before.ids);
            self.pieces.order.publish(piece, count);
        }
        self.reader.shrink();
        self.pieces.order.end(piece);
    }

    fn end_copy(&mut self) {
        if !mem::replace(&mut self.has_ended, true) && self.pieces.end_copy() {
            self.reader.inputs().say_how_many_were_left_out();
        }
    }
}

impl<R: PieceReader> Source for PieceSource<R> {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.advance(out)
    }

    fn stop(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.is_stopped = true;
        self.advance(out)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.reader.source().descriptor()
    }

    fn progress(&self) -> Progress {
        self.reader.source().progress()
    }

    fn counters(&self) -> Counters {
        self.reader.source().counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.reader.source().named_inputs()
    }
}
