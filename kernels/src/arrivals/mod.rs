//! The filter of a set-similarity join of a stream: finds, in lists of postings in the order of
//! arrival, the sets that may be similar to one.
//!
//! Sets of a stream come in any size, so a list cannot be in the order of sizes, as those of
//! [`postings`](crate::postings) are, and a posting brings along what it is tested by:
//!
//! * *Length*: its set must be neither too small nor too large.
//! * *Signature*: bit `h` is the parity of the set's tokens that are hashed to `h`. Two signatures
//!   differ in at most as many bits as tokens are in one set only.
//!
//! Almost no posting passes, so the branch is foretold, and a posting costs a load, a population
//! count and two comparisons, with AVX-512 for eight of them at a time. Each list lies elsewhere:
//! so a call has many look-ups, and asks for the next lists ahead.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod` | the loop, and the reference |
//! | `avx512` | blocks of eight |

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(test)]
mod tests;

use crate::Isa;
use crate::filter::dispatch;
use crate::filter::lanes::{Kernel, Simd};
use crate::prefetch::prefetch;

/// How many look-ups ahead a list is asked for.
const AHEAD: usize = 8;

/// Postings that are tested together.
const POSTINGS_PER_BLOCK: u32 = 8;

/// The same as a length.
const BLOCK: usize = POSTINGS_PER_BLOCK as usize;

/// The greatest size, and the greatest position, that a posting knows; greater ones are taken for
/// it.
pub const PLACE_MAX: u16 = u16::MAX;

/// A set that has a token in its prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Posting {
    /// The number of the set.
    pub set: u32,
    /// How many tokens it has, at most [`PLACE_MAX`].
    pub size: u16,
    /// How many of them are before the token, at most [`PLACE_MAX`].
    pub position: u16,
    /// Its signature.
    pub signature: u64,
}

/// A list, and what is looked for in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookUp {
    /// The first posting of the list.
    pub begin: u32,
    /// How many there are.
    pub len: u32,
    /// The signature of the probe.
    pub signature: u64,
    /// In how many bits theirs may differ from it.
    pub distance_max: u32,
    /// The least size.
    pub size_min: u16,
    /// The greatest size, not below the least one.
    pub size_max: u16,
}

/// A posting that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The index of the look-up.
    pub look_up: u32,
    /// The index of the posting.
    pub posting: u32,
}

/// Does look-up after look-up, and adds the postings that pass to `hits`; stops between two of them
/// when there are `hits_max` or more. Returns how many look-ups are done.
///
/// In pseudo-code: `for look_up { for posting of its list { if size_min <= size <= size_max and
/// popcount(signature ^ that of the probe) <= distance_max { hits.push(look_up, posting) } } }`.
///
/// # Shapes
///
/// `look_ups`: of ranges of `postings`; `hits`: appended to, in the order of look-ups and postings.
///
/// # Cost
///
/// Reads 16 B a posting, of which a test takes about a nanosecond where the processor counts bits.
///
/// # Panics
///
/// If `isa` is not available, a list is not within the postings, or there are 2^32 of either.
pub fn sift(
    isa: Isa,
    postings: &[Posting],
    look_ups: &[LookUp],
    hits: &mut Vec<Hit>,
    hits_max: usize,
) -> usize {
    for (what, len) in [("postings", postings.len()), ("look-ups", look_ups.len())] {
        assert!(u32::try_from(len).is_ok(), "{len} {what} are more than 32 bits can number");
    }
    let sift = Sift { postings, look_ups, hits, hits_max };
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if isa.is_available() && crate::bits::has_popcount() => run_on_avx512(sift),
        _ => dispatch(isa, sift),
    }
}

/// Runs the loop on a processor that has AVX-512 and its population count, as just asked.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "a function with target features is entered here, after the check")]
fn run_on_avx512(sift: Sift<'_>) -> usize {
    assert!(Isa::Avx512.is_available() && crate::bits::has_popcount());
    // SAFETY: the processor has the features, as asserted above.
    unsafe { avx512::run(sift) }
}

/// The arguments of [`sift`].
struct Sift<'a> {
    postings: &'a [Posting],
    look_ups: &'a [LookUp],
    hits: &'a mut Vec<Hit>,
    hits_max: usize,
}

/// Tests postings in blocks.
trait Blocks: Copy {
    /// The postings that pass, as bits.
    fn passed(self, block: &[Posting; BLOCK], look_up: &LookUp) -> u32;
}

/// One posting at a time: the reference, and the level without vectors.
#[derive(Clone, Copy)]
struct OneByOne;

impl Blocks for OneByOne {
    #[inline(always)]
    fn passed(self, block: &[Posting; BLOCK], look_up: &LookUp) -> u32 {
        let passed = |bits: u32, (bit, posting): (usize, &Posting)| {
            bits | u32::from(look_up.passes(posting)) << bit
        };
        block.iter().enumerate().fold(0, passed)
    }
}

impl LookUp {
    #[inline(always)]
    fn passes(&self, posting: &Posting) -> bool {
        let distance = (posting.signature ^ self.signature).count_ones();
        let above = posting.size.wrapping_sub(self.size_min);
        (distance <= self.distance_max) & (above <= self.size_max - self.size_min)
    }
}

impl Kernel for Sift<'_> {
    type Output = usize;

    fn scalar(self) -> usize {
        self.run(OneByOne)
    }

    /// The code of the reference, compiled for the level: most of them can count bits.
    #[inline(always)]
    fn vector<S: Simd>(self, _: S) -> usize {
        self.run(OneByOne)
    }
}

impl Sift<'_> {
    #[inline(always)]
    fn run(self, blocks: impl Blocks) -> usize {
        let Self { postings, look_ups, hits, hits_max } = self;
        for (number, look_up) in (0_u32..).zip(look_ups) {
            if hits.len() >= hits_max {
                return number as usize;
            }
            if let Some(ahead) = look_ups.get(number as usize + AHEAD) {
                prefetch(postings, ahead.begin as usize);
            }
            debug_assert!(look_up.size_min <= look_up.size_max, "{look_up:?} has no sizes");
            let list = &postings[look_up.begin as usize..][..look_up.len as usize];
            let (full, rest) = list.as_chunks::<BLOCK>();
            let mut index = look_up.begin;
            for block in full {
                let mut passed = blocks.passed(block, look_up);
                while passed != 0 {
                    let posting = index + passed.trailing_zeros();
                    hits.push(Hit { look_up: number, posting });
                    passed &= passed - 1;
                }
                index += POSTINGS_PER_BLOCK;
            }
            for posting in rest {
                if look_up.passes(posting) {
                    hits.push(Hit { look_up: number, posting: index });
                }
                index += 1;
            }
        }
        look_ups.len()
    }
}
