//! The test of a tile by signatures.

use super::call::Tiles;
use super::levels::{DistanceTest, GROUP};
use super::signed::Signatures;
use super::survivors::Survivors;
use super::tile::{STRIP, Tile};
use crate::simd::{RunOn, Scalar};

/// Number of survivors of a tile after which their overlaps are found.
pub(super) const SURVIVORS_MAX: usize = 1 << 12;

/// Sets of a strip.
const LANES: usize = STRIP as usize;

/// Adds the survivors of a tile, strip by strip until there are [`SURVIVORS_MAX`]; the answer is
/// the candidate after the last strip.
pub(super) struct TestTile<'a> {
    pub(super) signatures: &'a Signatures,
    pub(super) tiles: Tiles<'a>,
    pub(super) tile: Tile,
    pub(super) survivors: &'a mut Survivors,
}

impl RunOn<Scalar, u32> for TestTile<'_> {
    #[inline(always)]
    fn run_on(self, _: Scalar) -> u32 {
        self.by_strips(|call, strip| call.one_by_one(strip))
    }
}

impl<L: DistanceTest> RunOn<L, u32> for TestTile<'_> {
    /// The number of words is a constant of each loop, so that registers hold a signature.
    #[inline(always)]
    fn run_on(self, level: L) -> u32 {
        match self.signatures.words() {
            1 => self.by_strips(
                #[inline(always)]
                |call, strip| call.by_groups::<L, 1>(level, strip),
            ),
            2 => self.by_strips(
                #[inline(always)]
                |call, strip| call.by_groups::<L, 2>(level, strip),
            ),
            4 => self.by_strips(
                #[inline(always)]
                |call, strip| call.by_groups::<L, 4>(level, strip),
            ),
            _ => self.by_strips(
                #[inline(always)]
                |call, strip| call.by_groups::<L, 8>(level, strip),
            ),
        }
    }
}

/// The bounds of a strip.
struct Strip {
    number: u32,
    /// The required overlap of each lane.
    required: [u32; LANES],
    /// For each lane: signatures that differ in fewer bits pass; 0 where no pair can pass.
    bounds: [u64; LANES],
}

impl TestTile<'_> {
    /// Goes through the strips until there are enough survivors.
    #[inline(always)]
    fn by_strips(mut self, test: impl Fn(&mut Self, &Strip)) -> u32 {
        let Tile { candidate_begin, candidate_end, .. } = self.tile;
        for number in candidate_begin / STRIP..candidate_end.div_ceil(STRIP) {
            let strip = self.strip(number);
            // Without a bound, no size of the strip can be similar to the size of the probes.
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
            // The last strip may reach past the greatest number.
            let Some(candidate) = first.checked_add(lane) else { break };
            if !(tile.candidate_begin..tile.candidate_end).contains(&candidate) {
                continue;
            }
            // All probes have one size, so the bound of a lane is the same for each probe.
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

    /// Adds a pair whose signatures pass, unless the pair is done already.
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

    /// Tests all lanes of the strip against each probe.
    #[inline(always)]
    fn by_groups<L: DistanceTest, const WORDS: usize>(&mut self, level: L, strip: &Strip) {
        let signatures = self.signatures;
        let (lanes, _) = signatures.bits().as_chunks::<LANES>();
        let (strips, _) = lanes.as_chunks::<WORDS>();
        let candidates = &strips[strip.number as usize];
        for probe in self.tile.probe_begin..self.tile.probe_end {
            let own = &strips[probe as usize / LANES];
            let signature: [u64; WORDS] =
                std::array::from_fn(|word| own[word][probe as usize % LANES]);
            // All 32 lanes are tested before the first branch on an answer.
            let mut passed = 0;
            for group in (0..LANES).step_by(GROUP) {
                let of_word = |word: usize| -> &[u64; GROUP] {
                    candidates[word][group..].first_chunk().expect("full groups")
                };
                let bounds = strip.bounds[group..].first_chunk().expect("full groups");
                let fewer = level.fewer(signature, std::array::from_fn(of_word), bounds);
                passed |= fewer << group;
            }
            while passed != 0 {
                self.survives(strip, probe, passed.trailing_zeros() as usize);
                // Clears the lowest bit.
                passed &= passed - 1;
            }
        }
    }
}
