//! The levels of x86-64, each with its list of features.

#![expect(unsafe_code, reason = "functions with target features are entered here, after the check")]

use std::fmt;
use std::marker::PhantomData;

use super::call::{Base, Popcount, RunOn, Vp2Intersect};

/// A level that not every processor has. A value is the proof that this processor has the level:
/// only [`Self::enter`] makes one.
pub(crate) trait Level: Copy {
    /// Whether the processor has the level. A process asks once.
    fn is_available() -> bool;

    /// Runs a call on the level; returns the call as an error if the processor lacks the level.
    fn enter<A, C: RunOn<Self, A>>(call: C) -> Result<A, C>;
}

/// 256-bit vectors: AVX2 with BMI1, BMI2, LZCNT and POPCNT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// 512-bit vectors: the level AVX2 with AVX-512 F, BW, DQ and VL, and the extension `E`.
pub(crate) struct Avx512<E = Base>(PhantomData<E>);

impl<E> Clone for Avx512<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Avx512<E> {}

impl<E> fmt::Debug for Avx512<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Avx512")
    }
}

impl<E> Avx512<E> {
    /// The level AVX2, whose features this level has.
    #[inline(always)]
    pub(crate) fn avx2(self) -> Avx2 {
        Avx2(())
    }
}

/// Makes a [`Level`] of a type and its features. Features are named only here, so the processor is
/// asked for the same features with which the function is compiled.
macro_rules! level {
    ($level:ty = $proof:expr; avx512 $($more:tt)*) => {
        level!($level = $proof; avx2 "avx512f" "avx512bw" "avx512dq" "avx512vl" $($more)*);
    };
    ($level:ty = $proof:expr; avx2 $($more:tt)*) => {
        level!($level = $proof; "avx2" "bmi1" "bmi2" "lzcnt" "popcnt" $($more)*);
    };
    ($level:ty = $proof:expr; $($feature:tt)+) => {
        impl Level for $level {
            fn is_available() -> bool {
                $(is_x86_feature_detected!($feature))&&+
            }

            fn enter<A, C: RunOn<Self, A>>(call: C) -> Result<A, C> {
                $(#[target_feature(enable = $feature)])+
                fn run<A, C: RunOn<$level, A>>(call: C) -> A {
                    call.run_on($proof)
                }
                if !Self::is_available() {
                    return Err(call);
                }
                // SAFETY: the processor has all of the features, as just asked.
                Ok(unsafe { run(call) })
            }
        }
    };
}

level!(Avx2 = Avx2(()); avx2);
level!(Avx512<Base> = Avx512(PhantomData); avx512);
level!(Avx512<Popcount> = Avx512(PhantomData); avx512 "avx512vpopcntdq");
level!(Avx512<Vp2Intersect> = Avx512(PhantomData); avx512 "avx512vp2intersect");

/// Calls intrinsics of AVX2 by the proof that the processor has them.
macro_rules! avx2 {
    ($proof:expr, $call:expr) => {{
        let _: $crate::simd::Avx2 = $proof;
        // SAFETY: an `Avx2` exists only where `Level::enter` has entered a function that is
        // compiled with its features.
        unsafe { $call }
    }};
}
pub(crate) use avx2;

/// Calls intrinsics of AVX-512 by the proof that the processor has them.
macro_rules! avx512 {
    ($proof:expr, $call:expr) => {{
        let _: $crate::simd::Avx512<_> = $proof;
        // SAFETY: an `Avx512` exists only where `Level::enter` has entered a function that is
        // compiled with its features.
        unsafe { $call }
    }};
}
pub(crate) use avx512;
