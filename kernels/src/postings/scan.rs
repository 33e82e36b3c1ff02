//! The test of a list, or a part of it.

use super::BLOCK;
use super::call::Window;
use super::registers::{Registers, distance};

/// Postings that are tested before those that passed are looked up by set.
pub(super) const PART: usize = 1024;

/// What a probe is looking for in a list.
#[derive(Clone, Copy)]
pub(super) struct Sought<'a, const WORDS: usize> {
    pub(super) window: Window<'a>,
    /// The greatest rank at this position of the probe.
    pub(super) rank_max: u32,
    pub(super) signature: [u64; WORDS],
}

/// The postings of a list; behind `end` there are [`BLOCK`] more of any kind.
#[derive(Clone, Copy)]
pub(super) struct Postings<'a, const WORDS: usize> {
    pub(super) sets: &'a [u32],
    pub(super) places: &'a [u32],
    pub(super) signatures: [&'a [u64]; WORDS],
}

/// The postings that passed.
pub(super) struct Passed {
    pub(super) sets: [u32; PART + BLOCK],
    pub(super) places: [u32; PART + BLOCK],
    pub(super) len: usize,
}

/// How a list is tested.
pub(super) trait Scan: Copy {
    /// Tests at most [`PART`] postings from `begin` on and writes down those that pass; returns
    /// where it stopped: at `end`, or because all that follow are too large, or for lack of room.
    fn scan<const WORDS: usize>(
        self,
        postings: Postings<'_, WORDS>,
        begin: usize,
        end: usize,
        sought: Sought<'_, WORDS>,
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
    fn scan<const WORDS: usize>(
        self,
        postings: Postings<'_, WORDS>,
        begin: usize,
        end: usize,
        sought: Sought<'_, WORDS>,
        passed: &mut Passed,
    ) -> Stop {
        let part_end = end.min(begin + PART);
        passed.len = 0;
        for at in begin..part_end {
            let place = postings.places[at];
            let (rank, position) = (place >> 16, place & 0xffff);
            if rank > sought.rank_max {
                return Stop { at, is_end: true };
            }
            if position > sought.window.position_max[rank as usize] {
                continue;
            }
            let signature = postings.signatures.map(|words| words[at]);
            if distance(signature, sought.signature) > sought.window.distance_max[rank as usize] {
                continue;
            }
            passed.sets[passed.len] = postings.sets[at];
            passed.places[passed.len] = place;
            passed.len += 1;
        }
        Stop { at: part_end, is_end: part_end == end }
    }
}

/// Sixteen postings at a time.
#[derive(Clone, Copy)]
pub(super) struct Blocks<R>(pub(super) R);

#[inline(always)]
fn block<T>(values: &[T], at: usize) -> &[T; BLOCK] {
    values[at..].first_chunk().expect("there is room behind the last posting")
}

impl<R: Registers> Scan for Blocks<R> {
    #[inline(always)]
    fn scan<const WORDS: usize>(
        self,
        postings: Postings<'_, WORDS>,
        begin: usize,
        end: usize,
        sought: Sought<'_, WORDS>,
        passed: &mut Passed,
    ) -> Stop {
        let part_end = end.min(begin + PART);
        let mut at = begin;
        let mut len = 0;
        while at < part_end {
            let places = block(postings.places, at);
            if places[0] >> 16 > sought.rank_max {
                passed.len = len;
                return Stop { at, is_end: true };
            }
            let valid = BLOCK.min(part_end - at);
            // The loosest bounds are those of the greatest size.
            let rank = (places[valid - 1] >> 16).min(sought.rank_max) as usize;
            let position_max = sought.window.position_max[rank].min(0xffff);
            let mut selected = self.0.near(places, position_max) & (u32::MAX >> (32 - valid));
            if WORDS > 0 && selected != 0 {
                let signatures = postings.signatures.map(|words| block(words, at));
                let distance_max = sought.window.distance_max[rank];
                selected = self.0.similar(selected, signatures, sought.signature, distance_max);
            }
            if selected != 0 {
                let sets = passed.sets[len..].first_chunk_mut().expect("room for a part");
                self.0.select(block(postings.sets, at), selected, sets);
                let to = passed.places[len..].first_chunk_mut().expect("room for a part");
                self.0.select(places, selected, to);
                len += selected.count_ones() as usize;
            }
            at += BLOCK;
        }
        passed.len = len;
        Stop { at: part_end, is_end: part_end == end }
    }
}
