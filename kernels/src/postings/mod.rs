//! The filter of a set-similarity join: finds, in lists of postings, the sets that may be
//! similar.
//!
//! A list holds the sets that have one token in their prefix, in their order, by size. All lists
//! lie in a flat array, one after another:
//!
//! ```text
//! ends        | 2 | 2 | 5 | ..                      by token
//! postings    | place set before | place set before | ..
//!               place: rank of the size . position of the token; before: the token before it
//! ```
//!
//! [`scan_lists`] takes list after list, and joins each list to itself: a set of the list probes
//! the earlier sets. First the function transposes the needed fields of the list into blocks of
//! sixteen postings, which stay in the nearest cache; then it tests sixteen postings at a time,
//! without a branch that depends on the outcome:
//!
//! * *Length*: a probe tests from the first set that is large enough to the last set that can be
//!   small enough, judged by the position in the probe (Mann, Augsten, *PEL: Position-Enhanced
//!   Length Filter for Set Similarity Joins*, 2014).
//! * *Position*: enough tokens must be left in the set after the match (Xiao et al., WWW 2008, §4).
//! * *Signature*: bit `h` of a set's signature is the parity of its tokens that are hashed to `h`
//!   ([`sign`](crate::sets::sign)). Two signatures differ in at most as many bits as tokens are in
//!   one set only; that number is the sum of the sizes less twice the overlap.
//! * *Previous token*: if both sets have it, the pair is a hit of its list too, and so no hit of
//!   this list.
//!
//! Sizes ascend within a list, so the bounds of the last of sixteen postings are the loosest, and
//! the block is tested by these bounds. Two tests of hits remain: [`Hits::write_matches`] tests
//! each hit by its own bounds, and [`retain_first`](crate::overlap::retain_first) tests whether
//! this is the first list that has both sets.
//!
//! The loop goes list by list, and not set by set over the tokens of a set, so that postings are
//! read in their order in memory.
//!
//! | file | contents |
//! |---|---|
//! | `lists`, `limits` | the arguments of a call: postings and bounds |
//! | `hits`, `progress` | the answer of a call, and the state between two calls |
//! | `scan` | the loop over lists, the same for all levels |
//! | `block_list` | a list in blocks of sixteen |
//! | `levels` | the test of a block, as a trait, with the reference; `avx2`, `avx512` |

mod block_list;
mod hits;
mod levels;
mod limits;
mod lists;
mod progress;
mod scan;
#[cfg(test)]
mod tests;

pub use self::hits::{Hits, ProbeHits};
pub use self::levels::BLOCK;
pub use self::limits::{Limits, PairLimit, RANKS_MAX, Row};
pub use self::lists::{Lists, NO_TOKEN, POSITION_MAX, Posting, SIDE_BIT};
pub use self::progress::Progress;

use self::scan::ScanLists;
use crate::Isa;
use crate::simd::{Popcount, dispatch};

/// Joins the probes of `progress` to their lists, and writes the pairs that pass; stops between
/// two postings when there are `hits_max` hits or more. Returns whether there is more.
///
/// In pseudo-code: `for list { for probe of the list { for set before it { if it passes the tests
/// { hits.push(probe, set) } } } }`. A pair that fails the test by its own bounds may still be a
/// hit, and a pair may be in several lists.
///
/// Several cores can share lists, each with a `progress` of its own and with other probes.
///
/// # Shapes
///
/// See [`Lists`]; `limits`: for the sizes that postings name; `hits`: overwritten; `progress`: made
/// for lists of this length and signatures of as many words; its probes are postings.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::postings::{
///     Hits, Limits, Lists, NO_TOKEN, PairLimit, Posting, Progress, Row, scan_lists,
/// };
///
/// // Sets 0 and 1, both of the one size that there is, begin with the same token.
/// let posting = |set| Posting { place: 0, set, before: NO_TOKEN };
/// let postings = [posting(0), posting(1)];
/// let (words, signatures) = (0, &[][..]);
/// let lists =
///     Lists { ends: &[2], postings: &postings, words, signatures, is_two_sided: false };
/// let row = Row { size: 3, is_probe: true, index_prefix: 2, ..Row::default() };
/// let limit = PairLimit { required: 2, position_max: 1, distance_max: 0 };
/// let limits = Limits::new(vec![row], vec![limit], vec![0, 0]);
///
/// let (mut progress, mut hits) = (Progress::new(2, words, false), Hits::default());
/// progress.go_to(0..2);
/// let has_more = scan_lists(Isa::Scalar, lists, &limits, &mut progress, &mut hits, 100);
/// assert!(!has_more);
/// assert_eq!((hits.probes[0].probe, hits.sets[0]), (1, 0));
/// ```
///
/// # Cost
///
/// A posting costs a prefetched look-up of its signature for each `progress` that has a probe at or
/// after the posting in its list. Each block of sixteen postings with which a probe is compared
/// reads 192 B, and 128 B more for each word of a signature: with AVX-512 and one word five loads,
/// five comparisons, two population counts and two compressed stores.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above.
pub fn scan_lists(
    isa: Isa,
    lists: Lists<'_>,
    limits: &Limits,
    progress: &mut Progress,
    hits: &mut Hits,
    hits_max: usize,
) -> bool {
    lists.check();
    dispatch::<Popcount, _>(isa, ScanLists { lists, limits, progress, hits, hits_max })
}
