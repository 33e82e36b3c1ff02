//! What precedes a piece: counts of all earlier pieces, and whether they have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What precedes a piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Before {
    /// Number of newlines in the file before the piece.
    pub(super) newlines: u64,
    /// Number of lines or rows in all files before the piece, in a format whose rows have ids.
    pub(super) ids: u64,
    /// Whether a quote is open at the beginning of the first line that begins in the piece.
    pub(super) is_quoted: bool,
}

/// What a piece adds; `None` until a count is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) newlines: Option<u64>,
    pub(super) ids: Option<u64>,
    /// Whether a quote is open at the beginning of the first line after the piece, if no quote is
    /// open before the piece, and if one is open.
    pub(super) is_quoted: [Option<bool>; 2],
    /// Whether the file ends with the piece.
    pub(super) is_file_end: bool,
}

impl Count {
    /// A piece that adds nothing.
    pub(super) fn nothing() -> Self {
        let is_quoted = [Some(false); 2];
        Self { newlines: Some(0), ids: Some(0), is_quoted, is_file_end: false }
    }

    /// What precedes the next piece; `None` if a count is missing.
    fn after(&self, before: Before) -> Option<Before> {
        let ids = before.ids + self.ids?;
        if self.is_file_end {
            return Some(Before { ids, ..Before::default() });
        }
        let is_quoted = self.is_quoted[usize::from(before.is_quoted)]?;
        Some(Before { newlines: before.newlines + self.newlines?, ids, is_quoted })
    }
}

/// The counts and the ends of pieces, in their order.
#[derive(Default)]
pub(super) struct Order(Mutex<Pieces>);

#[derive(Default)]
struct Pieces {
    /// The first piece whose successor is not known, and what precedes the piece.
    next: u64,
    before: Before,
    /// Counts of this piece and of later pieces.
    counts: BTreeMap<u64, Count>,
    /// What precedes earlier pieces that have not ended.
    known: BTreeMap<u64, Before>,
    /// The first piece that has not ended, and later pieces that have ended.
    first: u64,
    ended: BTreeSet<u64>,
}

impl Order {
    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        // No call panics while it holds the lock in an inconsistent state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What precedes this piece; `None` if an earlier piece has not been counted.
    pub(super) fn before(&self, piece: u64) -> Option<Before> {
        let pieces = self.pieces();
        if piece == pieces.next { Some(pieces.before) } else { pieces.known.get(&piece).copied() }
    }

    /// Publishes counts of a piece that has not ended. Counts that were published before stay.
    pub(super) fn publish(&self, piece: u64, count: Count) {
        self.pieces().publish(piece, count);
    }

    /// Ends a piece.
    pub(super) fn end(&self, piece: u64) {
        let mut pieces = self.pieces();
        pieces.known.remove(&piece);
        pieces.ended.insert(piece);
        while let first = pieces.first
            && pieces.ended.remove(&first)
        {
            pieces.first += 1;
        }
    }

    /// Whether all earlier pieces have ended.
    pub(super) fn is_first(&self, piece: u64) -> bool {
        self.pieces().first >= piece
    }
}

impl Pieces {
    fn publish(&mut self, piece: u64, count: Count) {
        // The next piece may have begun with the counts that are known.
        if piece < self.next {
            return;
        }
        self.counts.insert(piece, count);
        while let Some(count) = self.counts.get(&self.next)
            && let Some(after) = count.after(self.before)
        {
            let (piece, before) = (self.next, self.before);
            self.counts.remove(&piece);
            if piece >= self.first && !self.ended.contains(&piece) {
                self.known.insert(piece, before);
            }
            (self.next, self.before) = (piece + 1, after);
        }
    }
}
