//! Takers of the lines of documents that a query finds: of their number, or of their ids.
//!
//! A closure would not be compiled with the instructions of a level, so these are types.

use super::blocks::Blocks;
use super::lines::{LINE, Lines};

/// A taker of lines.
pub(super) trait TakeLine<L: Lines> {
    /// Takes the bits of the line with this number.
    fn take(&mut self, level: L, number: usize, line: L::Line);
}

/// The number of bits of lines.
pub(super) struct Counted<L: Lines>(L::Line);

impl<L: Lines> Counted<L> {
    #[inline(always)]
    pub(super) fn new(level: L) -> Self {
        Self(level.line(&[0; LINE]))
    }

    #[inline(always)]
    pub(super) fn total(self, level: L) -> u32 {
        level.total(self.0)
    }
}

impl<L: Lines> TakeLine<L> for Counted<L> {
    #[inline(always)]
    fn take(&mut self, level: L, _: usize, line: L::Line) {
        self.0 = level.add_bits(self.0, line);
    }
}

/// The documents of lines, appended to a list.
pub(super) struct Found<'a> {
    /// Documents of a line, and room for a word. They are not written into `found` at once, where
    /// all the room had to be cleared first.
    ids: [u32; LINE * 32 + 32],
    found: &'a mut Vec<u32>,
}

impl<'a> Found<'a> {
    #[inline(always)]
    pub(super) fn new(found: &'a mut Vec<u32>) -> Self {
        Self { ids: [0; LINE * 32 + 32], found }
    }
}

impl<L: Blocks> TakeLine<L> for Found<'_> {
    #[inline(always)]
    fn take(&mut self, level: L, number: usize, line: L::Line) {
        let mut base = u32::try_from(number * LINE * 32).expect("a line of documents");
        let mut len = 0;
        for word in level.words(line) {
            let free = self.ids[len..].first_chunk_mut().expect("there is room for a word");
            level.ids_of(base, word, free);
            len += word.count_ones() as usize;
            base = base.wrapping_add(32);
        }
        self.found.extend_from_slice(&self.ids[..len]);
    }
}
