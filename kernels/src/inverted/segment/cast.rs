//! Views of the same memory as bytes, halves and words of little-endian machines.

#![expect(unsafe_code, reason = "a slice of integers is another view of the same bytes")]

use crate::memory::Plain;

/// Words of a cache line.
pub(in crate::inverted) const LINE: usize = 16;

/// A cache line of a segment; makes the parts of a vector of lines aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(in crate::inverted) struct Line([u32; LINE]);

// SAFETY: an array of numbers whose size is its alignment, so it has no padding.
unsafe impl Plain for Line {}

/// The words of `bytes`; `None` if the bytes are not aligned to words or are no whole number of
/// words.
#[inline]
pub(in crate::inverted) fn words(bytes: &[u8]) -> Option<&[u32]> {
    // SAFETY: every four bytes are a word.
    let (before, words, after) = unsafe { bytes.align_to() };
    (before.is_empty() && after.is_empty()).then_some(words)
}

/// The halves of `words`, the low half of a word first.
#[inline]
pub(super) fn halves(words: &[u32]) -> &[u16] {
    // SAFETY: every two bytes are a half. Words are aligned to halves, so nothing is left over.
    let (_, halves, _) = unsafe { words.align_to() };
    halves
}

/// The halves of `words`, the low half of a word first.
pub(in crate::inverted) fn halves_mut(words: &mut [u32]) -> &mut [u16] {
    // SAFETY: every two bytes are a half, and every half is two bytes of a word. Words are aligned
    // to halves, so nothing is left over.
    let (_, halves, _) = unsafe { words.align_to_mut() };
    halves
}

/// The bytes of `lines`.
pub(in crate::inverted) fn bytes(lines: &[Line]) -> &[u8] {
    // SAFETY: a line is an array of words without padding, and bytes need no alignment, so nothing
    // is left over.
    let (_, bytes, _) = unsafe { lines.align_to() };
    bytes
}

/// The bytes of `lines`.
pub(in crate::inverted) fn bytes_mut(lines: &mut [Line]) -> &mut [u8] {
    // SAFETY: a line is an array of words without padding, every byte is valid, and bytes need no
    // alignment, so nothing is left over.
    let (_, bytes, _) = unsafe { lines.align_to_mut() };
    bytes
}

/// The words of `lines`.
pub(in crate::inverted) fn words_mut(lines: &mut [Line]) -> &mut [u32] {
    // SAFETY: a line is an array of words without padding, and every word is valid, so nothing is
    // left over.
    let (_, words, _) = unsafe { lines.align_to_mut() };
    words
}
