//! All pairs of sets, tile by tile: signatures drop most pairs, and the overlap of the remaining
//! pairs is found.
//!
//! Where lists of postings are long and sets short, a comparison of the signatures of *all* pairs
//! whose sizes fit costs less than a pass over the lists: no look-up is needed, and only the number
//! of survivors depends on the data. A tile is a block of probes of one size and a range of
//! candidates:
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
//! signatures differ in at most as many bits as tokens are in one of the sets only: the sum of
//! the sizes less twice the overlap. A pair survives if its signatures differ in no more bits than
//! the signatures of a pair with the required overlap may.
//!
//! **Bounded answers.** The room for matches is fixed. A strip that finds no more room becomes a
//! tile of its own that begins at the match which did not fit ([`Tile::resume`]), and the caller
//! asks again with the unfinished tiles: the answer is exact even with room for one match, and no
//! call needs an estimate. The order of matches is unspecified.
//!
//! Source: ours; parity signatures after the bitmap filter of Sandes, Teodoro, Melo, *Bitmap
//! Filter: Speeding up Exact Set Similarity Joins with Bitwise Operations*, Information Systems 88,
//! 2020. The list of unfinished tiles replaces an estimate of the number of results.
//!
//! | file | contents |
//! |---|---|
//! | `tile`, `runs`, `signed`, `call` | the arguments of a call, and their checks |
//! | `answer` | the answers of a call |
//! | `test_tile` | the test of a tile: the reference, and the test by strips |
//! | `survivors` | pairs on their way to [`overlap`](crate::overlap) |
//! | `levels` | the test of eight lanes of a strip, as a trait; `avx2`, `avx512` |

mod answer;
mod call;
mod levels;
mod runs;
mod signed;
mod survivors;
mod test_tile;
#[cfg(test)]
mod tests;
mod tile;

pub use self::answer::{Counted, Joined};
pub use self::call::{Match, Tiles};
pub use self::runs::Runs;
pub use self::signed::{Signatures, WORDS};
pub use self::survivors::Survivors;
pub use self::tile::{PROBES_MAX, STRIP, Tile};

use self::test_tile::{SURVIVORS_MAX, TestTile};
use crate::Isa;
use crate::simd::{Popcount, dispatch};

/// The width that leaves few survivors for each match: about four bits for each token of a set of
/// the mean size.
#[must_use]
pub const fn words_for_mean_size(tokens: usize) -> usize {
    let words = tokens.div_ceil(16).next_power_of_two();
    if words > 8 { 8 } else { words }
}

/// Finds the matches of tiles, at most `matches_max`; the remaining tiles are unfinished.
///
/// In pseudo-code: `for tile { for candidate { for probe > candidate { if distance(signatures) <=
/// |probe| + |candidate| - 2 required && overlap >= required { matches.push() } } } }`.
///
/// # Shapes
///
/// See [`Tiles`]; `answer` is overwritten.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sets::Sets;
/// use trommel_kernels::signatures::{Joined, Match, Runs, Signatures, Tile, Tiles, join};
///
/// // {3, 8, 9}, {3, 8, 9} and {4, 5, 6}; a pair requires 2 common tokens.
/// let sets = Sets::new(&[0, 3, 6, 9], &[3, 8, 9, 3, 8, 9, 4, 5, 6]);
/// let runs = Runs::new(sets, [3]);
/// let all_pairs = Tile { probe_end: 3, candidate_end: 3, ..Tile::default() };
/// let tiles = Tiles { sets, runs: &runs, tiles: &[all_pairs], required: &[2] };
///
/// let mut joined = Joined::default();
/// join(Isa::Scalar, &Signatures::new(Isa::Scalar, sets, 1), tiles, 10, &mut joined);
/// assert_eq!(joined.matches, [Match { probe: 1, candidate: 0, overlap: 3 }]);
/// assert!(joined.unfinished.is_empty());
/// ```
///
/// # Cost
///
/// With AVX-512, eight pairs of a tile cost a load, an exclusive or and a population count for each
/// word of the signature; a survivor costs as much as in
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
    assert!(matches_max > 0, "room for {matches_max} matches; at least 1 is needed");
    tiles.check(signatures);
    answer.clear();
    let mut survivors = Survivors::default();
    for (index, &tile) in tiles.tiles.iter().enumerate() {
        let mut part = tile;
        while part.candidate_begin < part.candidate_end {
            survivors.clear();
            let next = test_tile(isa, signatures, tiles, part, &mut survivors);
            survivors.verify(isa, tiles.sets);
            let room = matches_max - answer.matches.len();
            let (settled, stop) = survivors.take(room, &mut answer.matches);
            answer.survivors += settled as u64;
            if let Some((probe, candidate)) = stop {
                answer.unfinished.extend(part.rest_from(probe, candidate));
                answer.unfinished.extend_from_slice(&tiles.tiles[index + 1..]);
                return;
            }
            part = part.after(next);
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
            let next = test_tile(isa, signatures, tiles, part, &mut survivors);
            counted.survivors += survivors.len() as u64;
            counted.matches += survivors.count(isa, tiles.sets);
            part = part.after(next);
        }
    }
    counted
}

/// Finds the survivors of tiles, without their overlaps, and stops after a strip when there are
/// about four thousand survivors; the remaining tiles are unfinished.
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
pub fn test_tiles(
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
        let next = test_tile(isa, signatures, tiles, tile, survivors);
        if survivors.len() >= SURVIVORS_MAX {
            let left = Some(tile.after(next)).filter(|left| left.strips() > 0);
            unfinished.extend(left);
            unfinished.extend_from_slice(&tiles.tiles[index + 1..]);
            return;
        }
    }
}

/// Adds the survivors of a tile, strip by strip until there are [`SURVIVORS_MAX`]; returns the
/// candidate after the last strip.
fn test_tile(
    isa: Isa,
    signatures: &Signatures,
    tiles: Tiles<'_>,
    tile: Tile,
    survivors: &mut Survivors,
) -> u32 {
    dispatch::<Popcount, _>(isa, TestTile { signatures, tiles, tile, survivors })
}
