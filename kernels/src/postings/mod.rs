//! The filter of a set-similarity join: finds, in lists of postings, the sets that may be similar
//! to a probe.
//!
//! A list holds the sets that have one token in their prefix. All lists lie in flat arrays; the
//! caller counts before, so each has its room:
//!
//! ```text
//! lists       | begin end | begin end | ..              by token
//! postings    | 2.0 set 64 bits | 2.1 set 64 bits | ..  rank of the size . position of the token
//! ```
//!
//! [`sift`] takes the sets of one size as probes, one after the other: looks up the tokens of the
//! probe's prefix, writes down the candidates that pass three tests, each once, and adds the probe
//! to the lists of its own prefix. Sixteen postings are tested at a time, and only those that pass
//! touch anything that is looked up by set:
//!
//! * *Length*: a list is read from the first set that is large enough to the last one that may
//!   still be small enough, as far as the position in the probe tells (Mann, Augsten, *PEL:
//!   Position-Enhanced Length Filter for Set Similarity Joins*, 2014).
//! * *Position*: enough tokens must be left in the set behind the match (Xiao et al., WWW 2008,
//!   §4).
//! * *Signature*: bit `h` of a set's signature is the parity of its tokens that are hashed to `h`.
//!   Two signatures differ in at most as many bits as tokens are in one set only, which is the sum
//!   of the sizes less twice the overlap.
//!
//! [`refine`] tests candidates by signatures of more bits, which are looked up by set.
//!
//! Sizes ascend within a list, so the bounds of the last of sixteen postings are the loosest, and
//! the test of the block is by those. What passes is tested by its own bounds.
//!
//! | file | what it holds |
//! |---|---|
//! | `call` | what a call is given, and its checks |
//! | `probe` | the loop over probes, the same for all levels |
//! | `scan` | the test of a list: the reference, and the one by blocks |
//! | `refine` | the test by signatures of more bits |
//! | `registers` | what a block of sixteen can do, as a trait |
//! | `portable`, `avx2`, `avx512` | the trait for each instruction set |

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod call;
mod portable;
mod probe;
mod refine;
mod registers;
mod scan;
#[cfg(test)]
mod tests;

pub use self::call::{Candidate, Index, List, Posting, Probes, Sifted, Window};

use self::probe::Sift;
use self::refine::Refine;
use self::registers::Kernel;
use crate::Isa;

/// Postings of a block, and the room that arrays of postings need behind the last one.
pub const BLOCK: usize = 16;

/// Postings of a cache line.
const LINE: usize = 64 / size_of::<Posting>();

/// The greatest position that a posting knows; greater ones are taken for it.
pub const POSITION_MAX: u32 = 0xffff;

/// The most sizes of different rank.
pub const RANKS_MAX: usize = 1 << 16;

/// Finds the candidates of the probes, and adds the probes to the index; stops before the next
/// probe when there are `candidates_max` or more.
///
/// In pseudo-code: `for probe { for token of its prefix { for posting of the token's list { if it
/// passes the tests and is new { candidates.push(it) } } } for token of its prefix {
/// list.push(probe) } }`.
///
/// # Shapes
///
/// See [`Probes`], [`Window`] and [`Index`]; `candidates`: overwritten from the front, and made
/// longer where the candidates of a probe need it; what is behind [`Sifted::candidates`] is of no
/// meaning.
///
/// # Cost
///
/// Sixteen postings are 256 B: with AVX-512 four loads, four shuffles, and for each eight two
/// comparisons and a population count. A posting that passes costs a look-up by set. Short lists
/// cost what it takes to get them: a line each for the list and its postings, asked for ahead.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above. Checked once per call.
pub fn sift<'a>(
    isa: Isa,
    probes: Probes<'a>,
    window: Window<'a>,
    index: &mut Index<'_>,
    candidates: &mut Vec<Candidate>,
    candidates_max: usize,
) -> Sifted {
    probes.check();
    window.check(&probes);
    index.check(&probes);
    dispatch(isa, Sift { probes, window, index, candidates, candidates_max })
}

/// Keeps the candidates whose signatures differ in few enough bits, in their order; returns how
/// many those are.
///
/// # Shapes
///
/// `signatures`: `words` words a set, set after set; `distance_max`: as in [`Window`]; candidates
/// name sets that have signatures, and ranks below the length of `distance_max`.
///
/// # Cost
///
/// Reads 8 `words` B for a candidate, from anywhere, and the same for its probe; what comes next is
/// prefetched.
///
/// # Panics
///
/// If `isa` is not available, `words` is not 2, 4 or 8, or a candidate is not as above.
#[must_use]
pub fn refine(
    isa: Isa,
    words: usize,
    signatures: &[u64],
    distance_max: &[u32],
    candidates: &mut [Candidate],
) -> usize {
    assert!(matches!(words, 2 | 4 | 8), "signatures have 2, 4 or 8 words, not {words}");
    dispatch(isa, Refine { words, signatures, distance_max, candidates })
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

#[inline(always)]
fn sign_words<const WORDS: usize>(tokens: &[u32], signature: &mut [u64]) {
    let mut words = [0_u64; WORDS];
    for token in tokens {
        let hash = token.wrapping_mul(0x9E37_79B1) >> 23;
        words[(hash >> 6) as usize % WORDS] ^= 1 << (hash & 63);
    }
    signature.copy_from_slice(&words);
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
        Isa::Scalar => kernel.scalar(),
        Isa::Portable => portable::run(kernel),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has the features of the level, as asserted above.
        Isa::Avx2 => unsafe { avx2::run(kernel) },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if avx512::has_popcount() => {
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
