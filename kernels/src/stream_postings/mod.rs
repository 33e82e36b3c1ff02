//! The filter of a set-similarity join of a stream: finds, in lists of postings in the order of
//! arrival, the sets that may be similar to a probe.
//!
//! Sets of a stream arrive in any order of size, so a list cannot be sorted by size, as the lists
//! of [`postings`](crate::postings) are. A posting therefore holds all the data of its tests:
//!
//! * *Length*: the set must be neither too small nor too large.
//! * *Signature*: bit `h` is the parity of the set's tokens that are hashed to `h`
//!   ([`sign`](crate::sets::sign)). Two signatures differ in at most as many bits as tokens are in
//!   one set only.
//!
//! Almost no posting passes, so the processor predicts the branch, and a posting costs a load, a
//! population count and two comparisons; AVX-512 tests eight postings at a time. Lists are
//! scattered in memory, so a call takes many look-ups and prefetches the next lists.
//!
//! | file | contents |
//! |---|---|
//! | `postings` | the arguments and the answer of a call |
//! | `probe` | the loop over look-ups, the same for all levels |
//! | `block` | the test of eight postings, as a trait; the reference |
//! | `x86` | the trait for the levels of x86-64 |

mod block;
mod postings;
mod probe;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use self::postings::{Hit, LookUp, PLACE_MAX, Posting};

use self::probe::ProbeLists;
use crate::Isa;
use crate::simd::{Popcount, dispatch};

/// Does look-up after look-up, and adds the postings that pass to `hits`; stops between two
/// look-ups when there are `hits_max` hits or more. Returns the number of finished look-ups.
///
/// In pseudo-code: `for look_up { for posting of its list { if size_min <= size <= size_max and
/// popcount(signature ^ that of the probe) <= distance_max { hits.push(look_up, posting) } } }`.
///
/// # Shapes
///
/// `look_ups`: look-ups of ranges of `postings`; `hits`: new hits are appended, in the order of
/// look-ups and postings.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::stream_postings::{Hit, LookUp, Posting, probe_lists};
///
/// let posting = |size, signature| Posting { set: 0, size, position: 0, signature };
/// let postings = [posting(3, 0b0111), posting(9, 0b0111), posting(4, 0b1000)];
/// let (size_min, size_max) = (3, 5);
/// let look_up =
///     LookUp { begin: 0, len: 3, signature: 0b0011, distance_max: 1, size_min, size_max };
/// let mut hits = Vec::new();
/// assert_eq!(probe_lists(Isa::Scalar, &postings, &[look_up], &mut hits, 100), 1);
/// assert_eq!(hits, [Hit { look_up: 0, posting: 0 }]);
/// ```
///
/// # Cost
///
/// Reads 16 B for each posting; a test takes about a nanosecond where the processor counts bits.
///
/// # Panics
///
/// If `isa` is not available, a list is not within the postings, or there are 2^32 postings or
/// look-ups.
pub fn probe_lists(
    isa: Isa,
    postings: &[Posting],
    look_ups: &[LookUp],
    hits: &mut Vec<Hit>,
    hits_max: usize,
) -> usize {
    for (name, len) in [("postings", postings.len()), ("look-ups", look_ups.len())] {
        assert!(u32::try_from(len).is_ok(), "{len} {name} are more than 32 bits can number");
    }
    dispatch::<Popcount, _>(isa, ProbeLists { postings, look_ups, hits, hits_max })
}
