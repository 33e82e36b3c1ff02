//! Ids searched in a list: by its bits, by its directory, or by galloping.

use super::sink::Sink;
use crate::inverted::levels::{BLOCK, Blocks};
use crate::inverted::segment::{Buckets, List, low};
use crate::simd::prefetch;

/// Number of blocks of ids between the fetch of a word of a bitmap and its use.
const AHEAD: usize = 2;

/// Gives the ids that are in `list` to `sink`.
#[inline(always)]
pub(super) fn probe<L: Blocks>(level: L, ids: &[u32], list: List<'_>, sink: &mut impl Sink) {
    match list {
        List::Plain(list) => gallop(ids, list, sink),
        List::Buckets(list) => probe_buckets(level, ids, list, sink),
        List::Bits(words) => probe_bits(level, ids, words, sink),
    }
}

#[inline(always)]
fn probe_bits<L: Blocks>(level: L, ids: &[u32], words: &[u32], sink: &mut impl Sink) {
    let (blocks, rest) = ids.as_chunks::<BLOCK>();
    for (at, block) in blocks.iter().enumerate() {
        if let Some(later) = blocks.get(at + AHEAD) {
            // Ids ascend, so neighbours are often in the same line: a fetch for every fourth id is
            // enough.
            for id in later.iter().step_by(4) {
                prefetch(words, (id / 32) as usize);
            }
        }
        sink.take(level, block, level.test(block, words));
    }
    match ids.last_chunk() {
        // The last block of ids overlaps the previous block, and only its new lanes count: a copy
        // of the rest would be read before its stores have reached the cache.
        Some(block) if !rest.is_empty() => {
            let new = u32::MAX << (BLOCK - rest.len());
            sink.take(level, block, level.test(block, words) & new);
        }
        _ => {
            for &id in rest {
                let word = words.get((id / 32) as usize).copied().unwrap_or(0);
                sink.take_one(id, word >> (id % 32) & 1 != 0);
            }
        }
    }
}

#[inline(always)]
fn probe_buckets<L: Blocks>(level: L, ids: &[u32], list: Buckets<'_>, sink: &mut impl Sink) {
    let (blocks, rest) = ids.as_chunks::<BLOCK>();
    for (at, block) in blocks.iter().enumerate() {
        if let Some(next) = blocks.get(at + 1) {
            fetch_buckets(next, list);
        }
        let mut hits = 0;
        for (lane, &id) in block.iter().enumerate() {
            hits |= u32::from(is_in_bucket(level, id, list)) << lane;
        }
        sink.take(level, block, hits);
    }
    for &id in rest {
        sink.take_one(id, is_in_bucket(level, id, list));
    }
}

/// Fetches the halves with which ids are compared. The words of the directory are not fetched: the
/// processor reads all words of a block at once (a fetch of these words cost 5 to 10 %).
#[inline(always)]
pub(in crate::inverted) fn fetch_buckets(ids: &[u32], list: Buckets<'_>) {
    for id in ids {
        let bucket = (id >> list.shift) as usize;
        prefetch(list.halves, list.directory.get(bucket).copied().unwrap_or(0) as usize);
    }
}

/// Whether a document of the segment is in a list: a word of the directory and a block.
#[inline(always)]
fn is_in_bucket<L: Blocks>(level: L, id: u32, list: Buckets<'_>) -> bool {
    let bucket = (id >> list.shift) as usize;
    let Some(&[begin, end]) = list.directory.get(bucket..).and_then(|rest| rest.first_chunk())
    else {
        return false;
    };
    let (begin, len) = (begin as usize, end.wrapping_sub(begin) as usize);
    if len > BLOCK {
        return is_in_long_bucket(level, id, list);
    }
    let block = list.halves.get(begin..).and_then(|rest| rest.first_chunk());
    block.is_some_and(|block| level.has(block, len, low(id)))
}

/// As [`is_in_bucket`], for a bucket of more than a block, which lists of text have: a binary
/// search over the last halves of blocks finds the block that could hold the half.
#[inline(always)]
fn is_in_long_bucket<L: Blocks>(level: L, id: u32, list: Buckets<'_>) -> bool {
    let (blocks, rest) = list.bucket(id).as_chunks::<BLOCK>();
    let half = low(id);
    match blocks.get(blocks.partition_point(|block| block[BLOCK - 1] < half)) {
        Some(block) => level.has(block, BLOCK, half),
        None => rest.contains(&half),
    }
}

/// Searches each id from the place of the previous id on, in steps that double.
///
/// Source: Bentley, Yao, *An Almost Optimal Algorithm for Unbounded Searching*, 1976.
#[inline(always)]
fn gallop(ids: &[u32], list: &[u32], sink: &mut impl Sink) {
    let mut rest = list;
    for &id in ids {
        let mut step = 1;
        while rest.get(step).is_some_and(|&other| other < id) {
            step *= 2;
        }
        let end = rest.len().min(step + 1);
        // All ids before half of the step are smaller.
        let begin = (step / 2).min(end);
        let at = begin + rest[begin..end].partition_point(|&other| other < id);
        rest = &rest[at..];
        sink.take_one(id, rest.first() == Some(&id));
    }
}

/// A block of fewer than [`BLOCK`] ids in which the last id is repeated, and the mask of the real
/// ids.
#[inline(always)]
pub(super) fn pad(ids: &[u32]) -> ([u32; BLOCK], u32) {
    let mut block = [ids[ids.len() - 1]; BLOCK];
    block[..ids.len()].copy_from_slice(ids);
    (block, !(u32::MAX << ids.len()))
}
