//! Answers from lines: their documents are counted or written.
//!
//! A closure would not be compiled with the instructions of a level, so the sinks are types.

use crate::inverted::levels::{Blocks, LINE, Lines};

/// Takes the lines of documents that a query finds.
pub(super) trait LineSink<L: Lines> {
    /// Takes the bits of the line with this number.
    fn take(&mut self, level: L, number: usize, line: L::Line);
}

/// The number of bits of lines.
pub(super) struct LineCount<L: Lines>(L::Line);

impl<L: Lines> LineCount<L> {
    #[inline(always)]
    pub(in crate::inverted) fn new(level: L) -> Self {
        Self(level.line(&[0; LINE]))
    }

    #[inline(always)]
    pub(super) fn total(self, level: L) -> u32 {
        level.total(self.0)
    }
}

impl<L: Lines> LineSink<L> for LineCount<L> {
    #[inline(always)]
    fn take(&mut self, level: L, _: usize, line: L::Line) {
        self.0 = level.add_bits(self.0, line);
    }
}

/// Number of lines whose documents are held before they are appended.
const HELD: usize = 4;

/// The documents of lines, appended to a list.
pub(super) struct LineIds<'a> {
    /// Documents of [`HELD`] lines, and room for a word. The documents are not written into `found`
    /// directly, since its room would have to be cleared first.
    ids: [u32; HELD * LINE * 32 + 32],
    len: usize,
    found: &'a mut Vec<u32>,
}

impl<'a> LineIds<'a> {
    #[inline(always)]
    pub(in crate::inverted) fn new(found: &'a mut Vec<u32>) -> Self {
        Self { ids: [0; HELD * LINE * 32 + 32], len: 0, found }
    }

    /// Appends the documents that are held.
    #[inline(always)]
    pub(super) fn append(&mut self) {
        self.found.extend_from_slice(&self.ids[..self.len]);
        self.len = 0;
    }
}

impl<L: Blocks> LineSink<L> for LineIds<'_> {
    #[inline(always)]
    fn take(&mut self, level: L, number: usize, line: L::Line) {
        if self.len > (HELD - 1) * LINE * 32 {
            self.append();
        }
        let mut base = u32::try_from(number * LINE * 32).expect("a line of documents");
        for word in level.words(line) {
            let free = self.ids[self.len..].first_chunk_mut().expect("there is room for a word");
            level.ids_of(base, word, free);
            self.len += word.count_ones() as usize;
            base = base.wrapping_add(32);
        }
    }
}
