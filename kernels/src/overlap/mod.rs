//! The overlap of candidate pairs of token sets: the number of tokens that both sets have. The
//! count of a pair ends as soon as it cannot reach the required overlap.
//!
//! Verification is the last step of a set-similarity join. A filter hands its candidates over in
//! chunks, and a chunk is verified by any level of the processor or by a device:
//!
//! ```text
//!   probe sets       | 3 8 9 | 1 4 | 2 3 5 8 |           flat: tokens and offsets
//!   candidate sets   | 3 8 | 5 8 9 | 3 5 8 | .. |        flat; the same ones in a self-join
//!   entries          (probe 0: 0..2) (probe 2: 2..3)     which probe has which candidates
//!   candidates       |  0   1  |  2  |                   set numbers
//!   required         |  2   2  |  3  |                   a pair
//!   ───────────────────────────────────
//!   overlaps         |  2   2  |  3  |                   or `REJECTED`
//! ```
//!
//! An [`Entry`] names its probe and its range of candidates, so that a chunk may begin and end at
//! any candidate: the further candidates of a probe are another entry.
//!
//! Source: Mann, Augsten, Bouros, *An Empirical Evaluation of Set Similarity Join Techniques*,
//! PVLDB 9(9), 2016, §3 (verification that stops early), and for chunks Bellas, Gounaris,
//! *Speeding-up the Verification Phase of Set Similarity Joins in the GPGPU paradigm*, 2018,
//! §3.3. Departures from the latter paper: entries name both ends of their range, a pair has its
//! own required overlap, and the answer is the overlap rather than a flag.
//!
//! | file | contents |
//! |---|---|
//! | `chunk`, `pairs` | the arguments of a call, and their checks |
//! | `levels` | the overlap of one pair, as a trait, and the code of each level: |
//! | `levels/scalar` | the reference: a merge, token by token |
//! | `levels/blocks` | a merge of blocks of tokens, written once for all levels |
//! | `levels/diagonals` | tokens at positions that differ by the same number, compared together |
//! | `levels/broadcast`, `levels/vp2intersect` | the intersection of two blocks, on the registers of any level and by an instruction made for it |
//! | `verify` | the loop over the pairs of a chunk |
//! | `first` | the filter for matches that are the first of their pair |

mod chunk;
mod first;
mod levels;
mod pairs;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use self::chunk::pair_number;
pub use self::chunk::{Chunk, ChunkStore, Cursor, Entry, Start};
pub use self::levels::REJECTED;
pub use self::pairs::Pairs;

use self::first::RetainFirst;
use self::verify::{CountPairs, Verify, WriteOverlaps};
use crate::Isa;
use crate::sets::Sets;
use crate::simd::{Vp2Intersect, dispatch};

/// Finds the overlap of each pair, or [`REJECTED`] where it is below the required overlap.
///
/// In pseudo-code: `o = |probe ∩ candidate|; overlaps[pair] = if o >= required[pair] { o } else {
/// REJECTED }`.
///
/// # Shapes
///
/// `pairs`: see [`Pairs`]; `overlaps`: `u32`, as many as candidates.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::overlap::{Chunk, Entry, Pairs, REJECTED, verify};
/// use trommel_kernels::sets::Sets;
///
/// // {3, 8, 9}, {3, 8} and {5, 8, 9}: the first with the other two, at least 2 common tokens.
/// let sets = Sets::new(&[0, 3, 5, 8], &[3, 8, 9, 3, 8, 5, 8, 9]);
/// let entries = [Entry { probe: 0, begin: 0, end: 2 }];
/// let chunk = Chunk { entries: &entries, candidates: &[1, 2], required: &[2, 3], starts: &[] };
/// let mut overlaps = [0; 2];
/// verify(Isa::Scalar, Pairs { probes: sets, candidates: sets, chunk }, &mut overlaps);
/// assert_eq!(overlaps, [2, REJECTED]);
/// ```
///
/// # Cost
///
/// A pair takes at most |probe| + |candidate| steps. Each step compares blocks of tokens: 16 of the
/// candidate and 8 of the probe with AVX-512, 8 and 8 with AVX2, 4 and 4 with 128 bits; a step
/// costs a comparison for each token of the probe's block. With VP2INTERSECT a step costs one
/// instruction for 16 and 16 tokens. If few tokens can be in one set only, a pair takes a step for
/// each block of the probe; sets of up to four registers take a comparison of each register for
/// each such token. A pair ends when the remaining tokens cannot give the required overlap. A pair
/// reads at most 4 (|probe| + |candidate|) B, and 8 B of the chunk (20 with starts); it writes 4 B.
///
/// # Panics
///
/// If `isa` is not available or a shape is not as above. Checked once per call.
pub fn verify(isa: Isa, pairs: Pairs<'_>, overlaps: &mut [u32]) {
    pairs.check_shapes();
    let (len, room) = (pairs.chunk.candidates.len(), overlaps.len());
    assert!(len == room, "{len} candidates need as many overlaps, not {room}");
    dispatch::<Vp2Intersect, _>(isa, Verify { pairs, sink: WriteOverlaps { overlaps } });
}

/// Counts the pairs whose overlap is at least the required overlap.
///
/// # Shapes
///
/// As for [`verify`].
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::overlap::{Chunk, Entry, Pairs, count};
/// use trommel_kernels::sets::Sets;
///
/// let sets = Sets::new(&[0, 3, 5], &[3, 8, 9, 3, 8]);
/// let entries = [Entry { probe: 0, begin: 0, end: 2 }];
/// let chunk = Chunk { entries: &entries, candidates: &[0, 1], required: &[3, 3], starts: &[] };
/// let pairs = Pairs { probes: sets, candidates: sets, chunk };
/// assert_eq!(count(Isa::Scalar, pairs), 1);
/// ```
///
/// # Cost
///
/// As [`verify`], but a pair also ends when it has reached the required overlap.
///
/// # Panics
///
/// As for [`verify`].
#[must_use]
pub fn count(isa: Isa, pairs: Pairs<'_>) -> u64 {
    pairs.check_shapes();
    dispatch::<Vp2Intersect, _>(isa, Verify { pairs, sink: CountPairs { count: 0 } }).count
}

/// Keeps the pairs whose sets have no common token before the token of the match, in their order.
///
/// # Shapes
///
/// `matches`: as [`Chunk`] says, of existing sets; each pair starts right after a token that both
/// sets have.
///
/// # Cost
///
/// One or two steps for a pair if the candidate fits a register and the match is in the first two
/// blocks of the probe; otherwise as [`verify`] for the tokens before the match.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above. The call does not check that a common
/// token precedes each start.
pub fn retain_first(isa: Isa, sets: Sets<'_>, matches: &mut ChunkStore) {
    dispatch::<Vp2Intersect, _>(isa, RetainFirst { sets, matches });
}
