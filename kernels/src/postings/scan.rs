//! The test of a list, or a part of it.

use super::call::{Met, Posting, Window};
use super::registers::{Limits, Registers};
use super::{BLOCK, LINE, POSITION_MAX};
use crate::prefetch::prefetch;

/// Postings that are tested before those that passed are looked up by set.
pub(super) const PART: usize = 1024;

/// How many postings ahead more of them are asked for.
const AHEAD: usize = 2 * BLOCK;

/// What a probe is looking for in a list.
#[derive(Clone, Copy)]
pub(super) struct Sought<'a> {
    pub(super) window: Window<'a>,
    /// The greatest rank at this position of the probe.
    pub(super) rank_max: u32,
    pub(super) signature: u64,
}

/// The postings that passed.
pub(super) struct Passed {
    pub(super) met: [Met; PART + BLOCK],
    pub(super) len: usize,
}

/// How a list is tested.
pub(super) trait Scan: Copy {
    /// Tests at most [`PART`] postings from `begin` on and writes down those that pass; returns
    /// where it stopped: at `end`, or because all that follow are too large, or for lack of room.
    fn scan(
        self,
        postings: &[Posting],
        begin: usize,
        end: usize,
        sought: Sought<'_>,
        passed: &mut Passed,
    ) -> Stop;
}

/// Where a scan stopped.
#[derive(Clone, Copy)]
pub(super) struct Stop {
    pub(super) at: usize,
    /// Whether nothing behind it can pass.
    pub(super) is_end: bool,
}

/// One posting at a time: the reference.
#[derive(Clone, Copy)]
pub(super) struct Scalar;

impl Scan for Scalar {
    #[inline(always)]
    fn scan(
        self,
        postings: &[Posting],
        begin: usize,
        end: usize,
        sought: Sought<'_>,
        passed: &mut Passed,
    ) -> Stop {
        let part_end = end.min(begin + PART);
        passed.len = 0;
        for (at, posting) in (begin..part_end).zip(&postings[begin..part_end]) {
            let Posting { place, set, signature } = *posting;
            let (rank, position) = (place >> 16, place & 0xffff);
            if rank > sought.rank_max {
                return Stop { at, is_end: true };
            }
            if position > sought.window.position_max[rank as usize] {
                continue;
            }
            let distance = (signature ^ sought.signature).count_ones();
            if distance > sought.window.distance_max[rank as usize] {
                continue;
            }
            passed.met[passed.len] = Met { place, set };
            passed.len += 1;
        }
        Stop { at: part_end, is_end: part_end == end }
    }
}

/// Sixteen postings at a time.
#[derive(Clone, Copy)]
pub(super) struct Blocks<R>(pub(super) R);

impl<R: Registers> Scan for Blocks<R> {
    #[inline(always)]
    fn scan(
        self,
        postings: &[Posting],
        begin: usize,
        end: usize,
        sought: Sought<'_>,
        passed: &mut Passed,
    ) -> Stop {
        let part_end = end.min(begin + PART);
        let mut at = begin;
        let mut len = 0;
        while at < part_end {
            let block: &[Posting; BLOCK] =
                postings[at..].first_chunk().expect("there is room behind the last posting");
            if block[0].place >> 16 > sought.rank_max {
                passed.len = len;
                return Stop { at, is_end: true };
            }
            if at + AHEAD < end {
                for line in 0..BLOCK / LINE {
                    prefetch(postings, at + AHEAD + line * LINE);
                }
            }
            let valid = BLOCK.min(part_end - at);
            // The loosest bounds are those of the greatest size.
            let rank = (block[valid - 1].place >> 16).min(sought.rank_max) as usize;
            let limits = Limits {
                position_max: sought.window.position_max[rank].min(POSITION_MAX),
                signature: sought.signature,
                distance_max: sought.window.distance_max[rank],
            };
            let to = passed.met[len..].first_chunk_mut().expect("room for a part");
            len += self.0.test(block, valid, limits, to);
            at += BLOCK;
        }
        passed.len = len;
        Stop { at: part_end, is_end: part_end == end }
    }
}
