//! Instruction sets: which code runs on which level, and the registers over which loops are
//! written.
//!
//! A primitive writes its loop once, over a trait of its own for registers, and implements that
//! trait for the levels. A level is a type: [`Scalar`], [`Portable`], `Avx2`, `Avx512`, and
//! `Avx512` with an extension. A value of it is the proof that the processor has the
//! instructions, because only [`dispatch`] makes one, and only inside a function that is compiled
//! with them. So all methods that take such a value are safe:
//!
//! ```text
//!  dispatch(isa, call) ──► asks the processor ──► #[target_feature] enter ──► call.run_on(Avx2)
//!                                                                               loop over a trait,
//!                                                                               #[inline(always)]
//! ```
//!
//! Every function from `run_on` down to the intrinsics is `#[inline(always)]`: it becomes code of
//! the function that `dispatch` enters, and so is compiled with its instructions.
//!
//! The idea is from the crate `memchr`: a loop over a trait of vectors, with a wrapper for each
//! instruction set.
//!
//! | file | contents |
//! |---|---|
//! | `call` | calls with their arguments, and the code of a call for a level |
//! | `x86` | the levels of x86-64 with their features |
//! | `dispatch` | the way from a level's name to its code |
//! | `lanes` | a register of lanes, as a trait |
//! | `portable`, `avx2`, `avx512` | the trait for each level; loads, stores, population counts |
//! | `prefetch` | fetches memory into the cache before it is needed |

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod call;
mod dispatch;
mod lanes;
mod portable;
mod prefetch;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
pub(crate) use self::call::Extension;
pub(crate) use self::call::{Base, Popcount, Portable, RunOn, Scalar, Vp2Intersect};
pub(crate) use self::dispatch::dispatch;
pub use self::lanes::Key;
pub(crate) use self::lanes::{Lanes, MaskOf, Simd, WEIGHT_END, WEIGHTS_MAX, bits_of};
pub use self::prefetch::prefetch;
pub(crate) use self::prefetch::prefetch_at;
#[cfg(target_arch = "x86_64")]
pub(crate) use self::x86::{Avx2, Avx512, Level, avx2, avx512};
