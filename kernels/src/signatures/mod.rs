//! All pairs of sets, tile by tile: signatures drop most of them, and the overlap of the others is
//! found.
//!
//! Where lists of postings are long and sets short, comparing the signatures of *all* pairs whose
//! sizes fit costs less than going through the lists: nothing is looked up, and nothing depends on
//! the data but what survives. A tile is a block of probes of one size and a range of candidates:
//!
//! ```text
//!                  candidates, by size; strips of 32
//!              | ..  s0  s1 .. s31 | s32 ..      | ..
//!   probes  p0 |      x   .     .  |  .          |      one probe against a strip: 32 distances,
//!   of one  p1 |      .   .     x  |  .          |      one bound for each lane; x survives and
//!   size    p2 |      .   .     .  |  x          |      its tokens are compared
//! ```
//!
//! Bit `h` of a set's signature is the parity of its tokens that are hashed to `h`, so two
//! signatures differ in at most as many bits as tokens are in one of the sets only: the sum of the
//! sizes less twice the overlap. A pair survives if they differ in no more bits than a pair may
//! that has the required overlap.
//!
//! **Bounded answers.** There is room for so many matches. A strip that finds no more room becomes
//! a tile of its own that begins at the match which did not fit ([`Tile::resume`]), and whoever
//! asked asks again with what is unfinished: exact with room for one match, and no estimate
//! anywhere. The order of the matches is that of no promise.
//!
//! Source: ours; parity signatures after the bitmap filter of Sandes, Teodoro, Melo, *Bitmap
//! Filter: Speeding up Exact Set Similarity Joins with Bitwise Operations*, Information Systems 88,
//! 2020. The list of what is unfinished takes the place of an estimate of the number of results.
//!
//! | file | what it holds |
//! |---|---|
//! | `call` | what a call is given, and its checks |
//! | `sift` | the test of a tile: the reference, and the one by strips |
//! | `survivors` | pairs on their way to [`overlap`](crate::overlap) |
//! | `registers` | what eight lanes of a strip can do, as a trait |
//! | `avx2`, `avx512` | the trait for each instruction set |

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod call;
mod registers;
mod sift;
mod survivors;
#[cfg(test)]
mod tests;

pub use self::call::{Match, Runs, Signatures, Tile, Tiles};
pub use self::survivors::Survivors;

use self::registers::dispatch;
use self::sift::Sift;
use crate::Isa;

/// Sets of a strip.
pub const STRIP: u32 = 32;

/// The most probes of a tile.
pub const PROBES_MAX: u32 = 128;

/// The widths of signatures, in words of 64 bits.
pub const WORDS: [usize; 4] = [1, 2, 4, 8];

/// Survivors of a tile, after which their overlaps are found.
const SURVIVORS_MAX: usize = 1 << 12;

/// The width that leaves few survivors for each match: about four bits for each token of a set of
/// the mean size.
#[must_use]
pub const fn words_for_mean_size(tokens: usize) -> usize {
    let words = tokens.div_ceil(16).next_power_of_two();
    if words > 8 { 8 } else { words }
}

/// What tiles are answered with. Its room is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// The pairs with the overlap that they require.
    pub matches: Vec<Match>,
    /// What is left to be done, because there was no room for more matches.
    pub unfinished: Vec<Tile>,
    /// Pairs that the signatures have let through, of what is done.
    pub survivors: u64,
}

impl Joined {
    /// Drops everything and keeps the room.
    pub fn clear(&mut self) {
        self.matches.clear();
        self.unfinished.clear();
        self.survivors = 0;
    }

    /// What it counts.
    #[must_use]
    pub fn counted(&self) -> Counted {
        Counted { matches: self.matches.len() as u64, survivors: self.survivors }
    }
}

/// How many pairs of tiles have the overlap that they require.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// As many.
    pub matches: u64,
    /// Pairs that the signatures have let through.
    pub survivors: u64,
}

/// Finds the matches of tiles, at most `matches_max`; what does not fit is left unfinished.
///
/// In pseudo-code: `for tile { for candidate { for probe > candidate { if distance(signatures) <=
/// |probe| + |candidate| - 2 required && overlap >= required { matches.push() } } } }`.
///
/// # Shapes
///
/// See [`Tiles`]; `answer` is overwritten.
///
/// # Cost
///
/// For each eight pairs of a tile a load, an exclusive or and a population count of each word of
/// the signature, with AVX-512; for each survivor as
/// [`overlap::verify`](crate::overlap::verify).
///
/// # Panics
///
/// If `isa` is not available, `matches_max` is 0, or a shape is not as above. Checked once per
/// call.
pub fn join(
    isa: Isa,
    signatures: &Signatures,
    tiles: Tiles<'_>,
    matches_max: usize,
    answer: &mut Joined,
) {
    assert!(matches_max > 0, "room for no match");
    tiles.check(signatures);
    answer.clear();
    let mut survivors = Survivors::default();
    for (index, &tile) in tiles.tiles.iter().enumerate() {
        let mut part = tile;
        while part.candidate_begin < part.candidate_end {
            survivors.clear();
            let next = sift_part(isa, signatures, tiles, part, &mut survivors);
            survivors.verify(isa, tiles.sets);
            let room = matches_max - answer.matches.len();
            let (settled, stop) = survivors.take(room, &mut answer.matches);
            answer.survivors += settled as u64;
            if let Some((probe, candidate)) = stop {
                answer.unfinished.extend(part.from(probe, candidate));
                answer.unfinished.extend_from_slice(&tiles.tiles[index + 1..]);
                return;
            }
            part = part.behind(next);
        }
    }
}

/// Counts the matches of tiles.
///
/// # Shapes
///
/// As for [`join`].
///
/// # Cost
///
/// As for [`join`], with [`overlap::count`](crate::overlap::count).
///
/// # Panics
///
/// As for [`join`].
#[must_use]
pub fn count(isa: Isa, signatures: &Signatures, tiles: Tiles<'_>) -> Counted {
    tiles.check(signatures);
    let mut counted = Counted::default();
    let mut survivors = Survivors::default();
    for &tile in tiles.tiles {
        let mut part = tile;
        while part.candidate_begin < part.candidate_end {
            survivors.clear();
            let next = sift_part(isa, signatures, tiles, part, &mut survivors);
            counted.survivors += survivors.len() as u64;
            counted.matches += survivors.count(isa, tiles.sets);
            part = part.behind(next);
        }
    }
    counted
}

/// Finds the survivors of tiles, without their overlaps, and stops behind a strip when there are
/// about four thousand; what is not tested is left unfinished.
///
/// # Shapes
///
/// As for [`join`]; `survivors` and `unfinished` are overwritten.
///
/// # Cost
///
/// As for [`join`], without the overlaps.
///
/// # Panics
///
/// As for [`join`].
pub fn sift(
    isa: Isa,
    signatures: &Signatures,
    tiles: Tiles<'_>,
    survivors: &mut Survivors,
    unfinished: &mut Vec<Tile>,
) {
    tiles.check(signatures);
    survivors.clear();
    unfinished.clear();
    for (index, &tile) in tiles.tiles.iter().enumerate() {
        let next = sift_part(isa, signatures, tiles, tile, survivors);
        if survivors.len() >= SURVIVORS_MAX {
            let left = Some(tile.behind(next)).filter(|left| left.strips() > 0);
            unfinished.extend(left);
            unfinished.extend_from_slice(&tiles.tiles[index + 1..]);
            return;
        }
    }
}

/// Adds the survivors of a tile, strip by strip until there are [`SURVIVORS_MAX`]; returns the
/// candidate behind the last strip.
fn sift_part(
    isa: Isa,
    signatures: &Signatures,
    tiles: Tiles<'_>,
    tile: Tile,
    survivors: &mut Survivors,
) -> u32 {
    dispatch(isa, Sift { signatures, tiles, tile, survivors })
}
