//! The test of a tile by signatures.

use super::call::{Signatures, Tile, Tiles};
use super::registers::{GROUP, Kernel, Registers};
use super::survivors::Survivors;
use super::{STRIP, SURVIVORS_MAX};

/// Sets of a strip.
const LANES: usize = STRIP as usize;

/// A call, to be run on some level.
pub(super) struct Sift<'a> {
    pub(super) signatures: &'a Signatures,
    pub(super) tiles: Tiles<'a>,
    pub(super) tile: Tile,
    pub(super) survivors: &'a mut Survivors,
}

impl Kernel for Sift<'_> {
    type Output = u32;

    fn scalar(self) -> u32 {
        self.by_strips(|sift, strip| sift.one_by_one(strip))
    }

    #[inline(always)]
    fn groups<R: Registers>(self, registers: R) -> u32 {
        match self.signatures.words() {
            1 => self.by_strips(
                #[inline(always)]
                |sift, strip| sift.by_groups::<R, 1>(registers, strip),
            ),
            2 => self.by_strips(
                #[inline(always)]
                |sift, strip| sift.by_groups::<R, 2>(registers, strip),
            ),
            4 => self.by_strips(
                #[inline(always)]
                |sift, strip| sift.by_groups::<R, 4>(registers, strip),
            ),
            _ => self.by_strips(
                #[inline(always)]
                |sift, strip| sift.by_groups::<R, 8>(registers, strip),
            ),
        }
    }
}

/// What a strip is tested by.
struct Strip {
    number: u32,
    /// By lane: what the overlap of a pair has to be.
    required: [u32; LANES],
    /// By lane: signatures that differ in fewer bits pass; 0 where no pair can.
    bounds: [u64; LANES],
}

impl Sift<'_> {
    /// Goes through the strips until there are enough survivors.
    #[inline(always)]
    fn by_strips(mut self, test: impl Fn(&mut Self, &Strip)) -> u32 {
        let Tile { candidate_begin, candidate_end, .. } = self.tile;
        for number in candidate_begin / STRIP..candidate_end.div_ceil(STRIP) {
            let strip = self.strip(number);
            if strip.bounds != [0; LANES] {
                test(&mut self, &strip);
            }
            if self.survivors.len() >= SURVIVORS_MAX {
                return (number + 1).saturating_mul(STRIP);
            }
        }
        candidate_end
    }

    fn strip(&self, number: u32) -> Strip {
        let Self { tiles, tile, .. } = *self;
        let (mut required, mut bounds) = ([u32::MAX; LANES], [0; LANES]);
        let offsets = tiles.sets.offsets();
        let size = |set: u32| offsets[set as usize + 1] - offsets[set as usize];
        let probe = size(tile.probe_begin);
        let first = number * STRIP;
        for lane in 0..STRIP {
            // A strip may end behind the greatest number.
            let Some(candidate) = first.checked_add(lane) else { break };
            if !(tile.candidate_begin..tile.candidate_end).contains(&candidate) {
                continue;
            }
            let needed = tiles.required(tile, candidate);
            let candidate = size(candidate);
            if needed <= probe.min(candidate) {
                let only_in_one = u64::from(probe) + u64::from(candidate) - 2 * u64::from(needed);
                required[lane as usize] = needed;
                bounds[lane as usize] = only_in_one + 1;
            }
        }
        Strip { number, required, bounds }
    }

    /// Adds a pair whose signatures pass, if it is one that the tile still has.
    #[inline(always)]
    fn survives(&mut self, strip: &Strip, probe: u32, lane: usize) {
        let candidate = strip.number * STRIP + u32::try_from(lane).expect("below 32");
        let is_done = probe == self.tile.probe_begin && candidate < self.tile.resume;
        if candidate < probe && !is_done {
            self.survivors.push(probe, candidate, strip.required[lane]);
        }
    }

    /// The reference.
    fn one_by_one(&mut self, strip: &Strip) {
        let (bits, words) = (self.signatures.bits(), self.signatures.words());
        let at = |set: usize, word: usize| (set / LANES * words + word) * LANES + set % LANES;
        for probe in self.tile.probe_begin..self.tile.probe_end {
            for lane in 0..LANES {
                let candidate = strip.number as usize * LANES + lane;
                let word = |word| bits[at(probe as usize, word)] ^ bits[at(candidate, word)];
                let distance: u32 = (0..words).map(|index| word(index).count_ones()).sum();
                if u64::from(distance) < strip.bounds[lane] {
                    self.survives(strip, probe, lane);
                }
            }
        }
    }

    /// All lanes of the strip against each probe.
    #[inline(always)]
    fn by_groups<R: Registers, const WORDS: usize>(&mut self, registers: R, strip: &Strip) {
        let signatures = self.signatures;
        let (lanes, _) = signatures.bits().as_chunks::<LANES>();
        let (strips, _) = lanes.as_chunks::<WORDS>();
        let candidates = &strips[strip.number as usize];
        for probe in self.tile.probe_begin..self.tile.probe_end {
            let own = &strips[probe as usize / LANES];
            let signature: [u64; WORDS] =
                std::array::from_fn(|word| own[word][probe as usize % LANES]);
            let mut passed = 0;
            for group in (0..LANES).step_by(GROUP) {
                let of_word = |word: usize| -> &[u64; GROUP] {
                    candidates[word][group..].first_chunk().expect("full groups")
                };
                let bounds = strip.bounds[group..].first_chunk().expect("full groups");
                let fewer = registers.fewer(signature, std::array::from_fn(of_word), bounds);
                passed |= fewer << group;
            }
            while passed != 0 {
                self.survives(strip, probe, passed.trailing_zeros() as usize);
                passed &= passed - 1;
            }
        }
    }
}
