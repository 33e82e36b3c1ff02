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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Counts may be published in any order, and some of them in two steps.
        #[test]
        fn what_precedes_a_piece_is_the_sum_of_earlier_pieces(
            counts in prop::collection::vec((0_u64..9, 0_u64..9, any::<[bool; 2]>(), any::<bool>()), 1..12),
            turns in prop::collection::vec(any::<prop::sample::Index>(), 100),
        ) {
            let mut expected = vec![Before::default()];
            for &(newlines, ids, is_quoted, is_file_end) in &counts {
                let before = expected.last().unwrap();
                let all = before.ids + ids;
                expected.push(match is_file_end {
                    true => Before { newlines: 0, ids: all, is_quoted: false },
                    false => Before {
                        newlines: before.newlines + newlines,
                        ids: all,
                        is_quoted: is_quoted[usize::from(before.is_quoted)],
                    },
                });
            }
            let order = Order::default();
            let mut steps = vec![0; counts.len()];
            let all = 0..counts.len();
            for index in turns.iter().map(|turn| turn.index(counts.len())).chain(all.clone()).chain(all) {
                let (newlines, ids, is_quoted, is_file_end) = counts[index];
                let later = (steps[index] > 0).then_some(is_quoted[1]);
                let is_quoted = [Some(is_quoted[0]), later];
                let (newlines, ids) = (Some(newlines), Some(ids));
                order.publish(index as u64, Count { newlines, ids, is_quoted, is_file_end });
                steps[index] += 1;
                for (piece, expected) in expected[..counts.len()].iter().enumerate() {
                    let found = order.before(piece as u64);
                    prop_assert!(found.is_none_or(|found| found == *expected));
                }
            }
            for (piece, expected) in expected.iter().enumerate() {
                prop_assert_eq!(order.before(piece as u64), Some(*expected));
            }
            for piece in (0..counts.len() as u64).rev() {
                prop_assert_eq!(order.is_first(piece), piece == 0);
                order.end(piece);
            }
            prop_assert!(order.is_first(counts.len() as u64));
        }
    }
}
