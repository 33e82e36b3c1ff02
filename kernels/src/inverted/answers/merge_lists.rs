//! The merge of two lists of similar lengths, block by block.

use super::probe::pad;
use super::sink::Sink;
use crate::inverted::levels::{BLOCK, Blocks};

/// Gives the ids of `left` that are in `right` to `sink`. Both ascend strictly.
///
/// A block of one list is compared with a block of the other. Then the block with the smaller last
/// id gives way to the next block of its list; both do if their last ids are equal. The choice has
/// no branch. Any two blocks meet at most once, so no id is found twice.
#[inline(always)]
pub(super) fn merge<L: Blocks>(level: L, left: &[u32], right: &[u32], sink: &mut impl Sink) {
    let (left_blocks, left_rest) = left.as_chunks::<BLOCK>();
    let (right_blocks, right_rest) = right.as_chunks::<BLOCK>();
    let (mut at, mut right_at) = (0, 0);
    while let (Some(block), Some(other)) = (left_blocks.get(at), right_blocks.get(right_at)) {
        sink.take(level, block, level.common(block, other));
        let (last, other_last) = (block[BLOCK - 1], other[BLOCK - 1]);
        at += usize::from(last <= other_last);
        right_at += usize::from(other_last <= last);
    }
    // At most one list has blocks left; the rest of the other list meets these blocks.
    if right_at == right_blocks.len() {
        let rest = right_rest;
        finish_right(level, &left_blocks[at..], left_rest, rest, sink);
    } else {
        finish_left(level, left_rest, &right_blocks[right_at..], right_rest, sink);
    }
}

/// Compares the blocks of `left` and its rest with the rest of `right`, which is less than a block.
#[inline(always)]
fn finish_right<L: Blocks>(
    level: L,
    left: &[[u32; BLOCK]],
    left_rest: &[u32],
    right: &[u32],
    sink: &mut impl Sink,
) {
    let Some(&last) = right.last() else { return };
    let (other, _) = pad(right);
    for block in left {
        sink.take(level, block, level.common(block, &other));
        if block[BLOCK - 1] >= last {
            return;
        }
    }
    if !left_rest.is_empty() {
        let (block, valid) = pad(left_rest);
        sink.take(level, &block, level.common(&block, &other) & valid);
    }
}

/// Compares the rest of `left`, which is less than a block, with the blocks of `right` and its
/// rest.
#[inline(always)]
fn finish_left<L: Blocks>(
    level: L,
    left: &[u32],
    right: &[[u32; BLOCK]],
    right_rest: &[u32],
    sink: &mut impl Sink,
) {
    let Some(&last) = left.last() else { return };
    let (block, valid) = pad(left);
    for other in right {
        sink.take(level, &block, level.common(&block, other) & valid);
        if other[BLOCK - 1] >= last {
            return;
        }
    }
    if !right_rest.is_empty() {
        let (other, _) = pad(right_rest);
        sink.take(level, &block, level.common(&block, &other) & valid);
    }
}
