//! The test of a tile by signatures.

use super::call::{Signatures, Tile, Tiles};
use super::survivors::Survivors;
use super::{STRIP, SURVIVORS_MAX};
use crate::postings::{Kernel, Registers};

/// Sets of a strip.
const LANES: usize = STRIP as usize;

/// Lanes that are counted at once: a register of 512 bits.
const GROUP: usize = 8;

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

    /// The compiler makes registers of groups of lanes: their number is known.
    #[inline(always)]
    fn blocks<R: Registers>(self, _: R) -> u32 {
        match self.signatures.words() {
            1 => self.by_strips(
                #[inline(always)]
                |sift, strip| sift.by_groups::<1>(strip),
            ),
            2 => self.by_strips(
                #[inline(always)]
                |sift, strip| sift.by_groups::<2>(strip),
            ),
            4 => self.by_strips(
                #[inline(always)]
                |sift, strip| sift.by_groups::<4>(strip),
            ),
            _ => self.by_strips(
                #[inline(always)]
                |sift, strip| sift.by_groups::<8>(strip),
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
    fn by_groups<const WORDS: usize>(&mut self, strip: &Strip) {
        let signatures = self.signatures;
        let (lanes, _) = signatures.bits().as_chunks::<LANES>();
        let (strips, _) = lanes.as_chunks::<WORDS>();
        let candidates = &strips[strip.number as usize];
        for probe in self.tile.probe_begin..self.tile.probe_end {
            let own = &strips[probe as usize / LANES];
            let mut signature = [0; WORDS];
            for word in 0..WORDS {
                signature[word] = own[word][probe as usize % LANES];
            }
            for group in (0..LANES).step_by(GROUP) {
                let bounds = strip.bounds[group..].first_chunk().expect("full groups");
                let passed = passes(signature, candidates, group, bounds);
                if passed.iter().any(|passes| *passes) {
                    for lane in (0..GROUP).filter(|lane| passed[*lane]) {
                        self.survives(strip, probe, group + lane);
                    }
                }
            }
        }
    }
}

/// Which of eight lanes differ in few enough bits.
#[inline(always)]
fn passes<const WORDS: usize>(
    signature: [u64; WORDS],
    candidates: &[[u64; LANES]; WORDS],
    group: usize,
    bounds: &[u64; GROUP],
) -> [bool; GROUP] {
    let mut distances = [0; GROUP];
    for word in 0..WORDS {
        let lanes: &[u64; GROUP] = candidates[word][group..].first_chunk().expect("full groups");
        for lane in 0..GROUP {
            distances[lane] += u64::from((lanes[lane] ^ signature[word]).count_ones());
        }
    }
    let mut passes = [false; GROUP];
    for lane in 0..GROUP {
        passes[lane] = distances[lane] < bounds[lane];
    }
    passes
}
