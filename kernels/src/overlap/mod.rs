//! The overlap of candidate pairs of token sets: how many tokens both have, given up as soon as it
//! cannot reach what the pair needs.
//!
//! Verification is the last step of a set-similarity join. Whoever finds candidates hands them over
//! in chunks, and a chunk is verified by any level of the processor or by a device:
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
//! any candidate: the rest of a probe's candidates is just another entry.
//!
//! Source: Mann, Augsten, Bouros, *An Empirical Evaluation of Set Similarity Join Techniques*,
//! PVLDB 9(9), 2016, §3 (verification that stops early), and for chunks Bellas, Gounaris,
//! *Speeding-up the Verification Phase of Set Similarity Joins in the GPGPU paradigm*, 2018, §3.3.
//! Departures from the latter: entries name both ends of their range, a pair brings its own
//! required overlap, and the answer is the overlap rather than a flag.
//!
//! | file | what it holds |
//! |---|---|
//! | `scalar` | the reference: a merge, one token a step |
//! | `blocks` | a merge of blocks of tokens, written once for all registers |
//! | `broadcast`, `vp2intersect` | how blocks meet, on the registers of `filter::lanes` and by an instruction made for it |
//! | `first` | whether two sets have a common token before one that is known |
//! | `pairs` | what a call is given, and its checks |

mod blocks;
mod broadcast;
mod first;
mod pairs;
mod scalar;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vp2intersect;

pub(crate) use self::pairs::pair_number;
pub use self::pairs::{Chunk, ChunkStore, Cursor, Entry, Pairs, Start};

use self::blocks::Blocks;
use self::broadcast::Broadcast;
use self::first::RetainFirst;
use self::pairs::{Pair, Sink};
use self::scalar::Scalar;
use crate::Isa;
use crate::filter;
use crate::filter::lanes::{Kernel, Simd};
use crate::sets::Sets;

/// How many pairs ahead the tokens of candidates are asked for.
const AHEAD: usize = 8;

/// What [`verify`] answers for a pair whose overlap is below what it requires.
pub const REJECTED: u32 = u32::MAX;

/// Finds the overlap of each pair, or [`REJECTED`] where it is below the required one.
///
/// In pseudo-code: `o = |probe ∩ candidate|; overlaps[pair] = if o >= required[pair] { o } else {
/// REJECTED }`.
///
/// # Shapes
///
/// `pairs`: see [`Pairs`]; `overlaps`: `u32`, as many as candidates.
///
/// # Cost
///
/// At most |probe| + |candidate| steps a pair, each over a block of tokens: 16 of the candidate and
/// 8 of the probe with AVX-512, 8 and 8 with AVX2, 4 and 4 with 128 bits; a step costs a comparison
/// a token of the probe's block. With VP2INTERSECT a step costs one instruction for 16 and 16. If
/// few tokens can be in one set only, a step for each block of the probe. A pair ends when the
/// tokens left cannot bring the required overlap. Reads 4 (|probe| + |candidate|) B a pair at most,
/// and 8 B of the chunk, 12 more with starts; writes 4 B.
///
/// # Panics
///
/// If `isa` is not available or a shape is not as above. Checked once per call.
pub fn verify(isa: Isa, pairs: Pairs<'_>, overlaps: &mut [u32]) {
    pairs.check_shapes();
    let (len, room) = (pairs.chunk.candidates.len(), overlaps.len());
    assert!(len == room, "{len} candidates need as many overlaps, not {room}");
    dispatch(isa, Call { pairs, sink: WriteOverlaps { overlaps } });
}

/// Counts the pairs whose overlap is at least the required one.
///
/// # Shapes
///
/// As for [`verify`].
///
/// # Cost
///
/// As [`verify`], but a pair ends also when it has reached what it requires.
///
/// # Panics
///
/// As for [`verify`].
#[must_use]
pub fn count(isa: Isa, pairs: Pairs<'_>) -> u64 {
    pairs.check_shapes();
    dispatch(isa, Call { pairs, sink: CountPairs { count: 0 } }).count
}

/// Keeps those pairs whose sets have no common token before the one at which they match, in their
/// order.
///
/// # Shapes
///
/// `matches`: as [`Chunk`] says, of sets that there are; each starts behind a token that both have.
///
/// # Cost
///
/// A step or two a pair if the candidate fits a register and the match is in the first two blocks
/// of the probe; else as [`verify`] for the tokens before the match.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above; that a start is behind a common token is
/// not checked.
pub fn retain_first(isa: Isa, sets: Sets<'_>, matches: &mut ChunkStore) {
    dispatch(isa, RetainFirst { sets, matches });
}

/// Writes every answer.
struct WriteOverlaps<'a> {
    overlaps: &'a mut [u32],
}

impl Sink for WriteOverlaps<'_> {
    const NEEDS_OVERLAP: bool = true;

    #[inline(always)]
    fn take(&mut self, pair: usize, overlap: u32) {
        self.overlaps[pair] = overlap;
    }
}

/// Counts the pairs that are not rejected.
struct CountPairs {
    count: u64,
}

impl Sink for CountPairs {
    const NEEDS_OVERLAP: bool = false;

    #[inline(always)]
    fn take(&mut self, _: usize, overlap: u32) {
        self.count += u64::from(overlap != REJECTED);
    }
}

/// How one pair is answered.
trait Intersect: Copy {
    /// The overlap of a pair, or [`REJECTED`]. Unless `EXACT`, an overlap may be given as soon as
    /// it is large enough.
    fn overlap<const EXACT: bool>(self, pair: Pair<'_>) -> u32;

    /// Whether a token of the candidate, all of which are less than the probe's at `probe_at`, is
    /// before that in the probe.
    fn is_met_before(self, pair: Pair<'_>, probe_at: usize) -> bool;
}

/// Arguments, to be run on some level.
trait Verification {
    /// What the call returns.
    type Output;
    /// The loop over pairs; `#[inline(always)]`, so that it is compiled for the level that calls
    /// it.
    fn run(self, intersect: impl Intersect) -> Self::Output;
}

/// A call on the registers of a level.
struct OnLanes<T>(T);

impl<T: Verification> Kernel for OnLanes<T> {
    type Output = T::Output;

    fn scalar(self) -> T::Output {
        self.0.run(Scalar)
    }

    #[inline(always)]
    fn vector<S: Simd>(self, simd: S) -> T::Output {
        self.0.run(Blocks(Broadcast(simd)))
    }
}

/// Runs a call on one level, by the instruction made for it if the level and the processor have it.
fn dispatch<T: Verification>(isa: Isa, call: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 && vp2intersect::is_available() {
        return vp2intersect::run(call);
    }
    filter::dispatch(isa, OnLanes(call))
}

/// The arguments of [`verify`] and [`count`].
struct Call<'a, K> {
    pairs: Pairs<'a>,
    sink: K,
}

impl<K: Sink> Verification for Call<'_, K> {
    type Output = K;

    #[inline(always)]
    fn run(self, intersect: impl Intersect) -> K {
        answer(intersect, self)
    }
}

#[inline(always)]
fn answer<K: Sink>(intersect: impl Intersect, call: Call<'_, K>) -> K {
    let Call { pairs, mut sink } = call;
    for entry in pairs.chunk.entries {
        for index in entry.begin as usize..entry.end as usize {
            pairs.ask_for(index + AHEAD);
            let pair = pairs.pair(entry.probe, index);
            let overlap = if K::NEEDS_OVERLAP {
                intersect.overlap::<true>(pair)
            } else {
                intersect.overlap::<false>(pair)
            };
            sink.take(index, overlap);
        }
    }
    sink
}
