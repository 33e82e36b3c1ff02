//! The filter of a set-similarity join: finds, in lists of postings, the sets that may be similar.
//!
//! A list holds the sets that have one token in their prefix, in their order, by size. All lists
//! lie in a flat array, one after the other:
//!
//! ```text
//! ends        | 2 | 2 | 5 | ..                      by token
//! postings    | place set before | place set before | ..
//!               place: rank of the size . position of the token; before: the token before it
//! ```
//!
//! [`sift`] takes list after list, and joins each to itself: a set of the list meets those before
//! it. First it copies what is needed of the list into blocks of sixteen, which stay in the nearest
//! cache; then it tests them sixteen at a time, without a branch that depends on the outcome:
//!
//! * *Length*: from the first set that is large enough to the last one that may still be small
//!   enough, as far as the position in the probe tells (Mann, Augsten, *PEL: Position-Enhanced
//!   Length Filter for Set Similarity Joins*, 2014).
//! * *Position*: enough tokens must be left in the set behind the match (Xiao et al., WWW 2008,
//!   §4).
//! * *Signature*: bit `h` of a set's signature is the parity of its tokens that are hashed to `h`.
//!   Two signatures differ in at most as many bits as tokens are in one set only, which is the sum
//!   of the sizes less twice the overlap.
//! * *Token before*: if both sets have it, they meet in its list too, so not here.
//!
//! Sizes ascend within a list, so the bounds of the last of sixteen postings are the loosest, and
//! the test of the block is by those. What passes has to be tested by its own bounds, which
//! [`Met::write_matches`] does, and whether this is the first list in which the two sets meet
//! ([`retain_first`](crate::overlap::retain_first)).
//!
//! List after list, instead of set after set with its tokens, means that postings are read in the
//! order in which they lie in memory, rather than each list from elsewhere.
//!
//! | file | what it holds |
//! |---|---|
//! | `call` | what a call is given, and its checks |
//! | `lists` | the loop over lists, the same for all levels |
//! | `sign` | signatures |
//! | `registers` | what a block of sixteen can do, as a trait; the reference |
//! | `portable`, `avx2`, `avx512` | the trait for each instruction set |

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod call;
mod lists;
mod portable;
mod registers;
mod sign;
#[cfg(test)]
mod tests;

pub use self::call::{
    Limits, Lists, Meeting, Met, NO_TOKEN, PairLimit, Posting, Progress, Row, SIDE_BIT,
};

use self::lists::Sift;
use self::registers::{Kernel, OneByOne};
use self::sign::{SignSets, sign_words};
use crate::Isa;

/// Postings of a block.
pub const BLOCK: usize = 16;

/// The greatest position that a posting knows; greater ones are taken for it.
pub const POSITION_MAX: u32 = 0xffff;

/// The most sizes of different rank.
pub const RANKS_MAX: usize = 1 << 16;

/// Joins each list to itself, from where `progress` is, and writes down who meets whom; stops
/// between two postings when there are `met_max` meetings or more. Returns whether there is more.
///
/// In pseudo-code: `for list { for probe of the list { for set before it { if it passes the tests
/// { met.push(probe, set) } } } }`. A pair that fails the test by its own bounds may be written
/// down, and one may be in several lists.
///
/// # Shapes
///
/// See [`Lists`]; `limits`: of the sizes that postings name; `met`: overwritten; `progress`: made
/// for lists that are as long, and signatures of as many words.
///
/// # Cost
///
/// A posting costs a look-up of its signature, asked for ahead, and a block of sixteen that it is
/// compared with reads 192 B, and 128 B more for each word of a signature: with AVX-512 and one
/// word five loads, five comparisons, two population counts and two compressed stores.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above.
pub fn sift(
    isa: Isa,
    lists: Lists<'_>,
    limits: &Limits,
    progress: &mut Progress,
    met: &mut Met,
    met_max: usize,
) -> bool {
    lists.check();
    dispatch(isa, Sift { lists, limits, progress, met, met_max })
}

/// Writes the signatures of sets, one after the other, each as [`sign`] does.
///
/// # Shapes
///
/// Set `i` is `tokens[offsets[i]..offsets[i + 1]]`; `signatures`: `words` for each, overwritten.
///
/// # Cost
///
/// Reads 4 B a token; with vectors, about six instructions for eight tokens and a word.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above.
pub fn sign_sets(isa: Isa, offsets: &[u32], tokens: &[u32], words: usize, signatures: &mut [u64]) {
    assert!(matches!(words, 1 | 2 | 4 | 8), "signatures have 1, 2, 4 or 8 words, not {words}");
    let (sets, len) = (offsets.len().saturating_sub(1), signatures.len());
    assert!(len == words * sets, "{sets} sets need {words} words each, not {len}");
    dispatch(isa, SignSets { offsets, tokens, words, signatures });
}

/// Writes the signature of a set: bit `h` is the parity of the tokens with the hash `h`.
///
/// The signature of fewer words is the exclusive or of the words of the longer one.
///
/// # Shapes
///
/// `tokens`: any; `signature`: 1, 2, 4 or 8 words, overwritten.
///
/// # Cost
///
/// A multiplication and a store for each token.
///
/// # Panics
///
/// If the number of words is another one.
#[inline]
pub fn sign(tokens: &[u32], signature: &mut [u64]) {
    match signature.len() {
        1 => sign_words::<1>(tokens, signature),
        2 => sign_words::<2>(tokens, signature),
        4 => sign_words::<4>(tokens, signature),
        8 => sign_words::<8>(tokens, signature),
        words => panic!("signatures have 1, 2, 4 or 8 words, not {words}"),
    }
}

/// Runs a kernel on one level.
#[cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "a function with target features is entered here, after the check"
    )
)]
fn dispatch<T: Kernel>(isa: Isa, kernel: T) -> T::Output {
    assert!(isa.is_available(), "this machine lacks the instruction-set level {isa}");
    match isa {
        Isa::Scalar => kernel.run(OneByOne),
        Isa::Portable => portable::run(kernel),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has the features of the level, as asserted above.
        Isa::Avx2 => unsafe { avx2::run(kernel) },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if crate::bits::has_popcount() => {
            // SAFETY: the processor has the features of the level, as asserted above, and the
            // population count, as just asked.
            unsafe { avx512::run_with_popcount(kernel) }
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has the features of the level, as asserted above.
        Isa::Avx512 => unsafe { avx512::run(kernel) },
        #[cfg(not(target_arch = "x86_64"))]
        Isa::Avx2 | Isa::Avx512 => unreachable!("x86-64 levels are not available elsewhere"),
    }
}
