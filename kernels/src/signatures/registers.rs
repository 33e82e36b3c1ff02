//! What eight lanes of a strip can do, as a trait; and the choice of a level.
//!
//! As in `filter::lanes`, a value of a [`Registers`] type is the proof that the processor has its
//! instructions.

#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::Isa;

/// Lanes that are tested at once.
pub(super) const GROUP: usize = 8;

/// A set of instructions.
pub(super) trait Registers: Copy {
    /// Which lanes, as bits, differ from the signature in fewer bits than their bounds: word `w` of
    /// lane `l` is `lanes[w][l]`.
    fn fewer<const WORDS: usize>(
        self,
        signature: [u64; WORDS],
        lanes: [&[u64; GROUP]; WORDS],
        bounds: &[u64; GROUP],
    ) -> u32;
}

/// A call with its arguments, to be run on some level.
pub(super) trait Kernel {
    /// What the call returns.
    type Output;
    /// The reference.
    fn scalar(self) -> Self::Output;
    /// The loop over groups of lanes; `#[inline(always)]`, so that it is compiled for the level
    /// that calls it.
    fn groups<R: Registers>(self, registers: R) -> Self::Output;
}

/// The instruction set that needs no proof: a default x86-64 build has a population count neither
/// of vectors nor of words.
#[derive(Clone, Copy)]
struct Portable;

impl Registers for Portable {
    #[inline(always)]
    fn fewer<const WORDS: usize>(
        self,
        signature: [u64; WORDS],
        lanes: [&[u64; GROUP]; WORDS],
        bounds: &[u64; GROUP],
    ) -> u32 {
        let mut distances = [0; GROUP];
        for word in 0..WORDS {
            for lane in 0..GROUP {
                distances[lane] += u64::from((lanes[word][lane] ^ signature[word]).count_ones());
            }
        }
        let mut fewer = 0;
        for lane in 0..GROUP {
            fewer |= u32::from(distances[lane] < bounds[lane]) << lane;
        }
        fewer
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
pub(super) fn dispatch<T: Kernel>(isa: Isa, kernel: T) -> T::Output {
    assert!(isa.is_available(), "this machine lacks the instruction-set level {isa}");
    match isa {
        Isa::Scalar => kernel.scalar(),
        Isa::Portable => kernel.groups(Portable),
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
