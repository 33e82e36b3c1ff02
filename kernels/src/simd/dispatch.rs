//! The way from the name of a level to its code.

#[cfg(target_arch = "x86_64")]
use super::call::Base;
use super::call::{Portable, RunOn, Scalar};
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512, Level};
use crate::isa::Isa;

/// Runs a call on one level; only this function turns a level into code. On [`Isa::Avx512`] the
/// call runs with the extension `E` if the processor has it.
///
/// # Panics
///
/// If this machine lacks the level.
pub(crate) fn dispatch<E, A>(isa: Isa, call: impl RunOnAll<E, A>) -> A {
    match isa {
        Isa::Scalar => call.run_on(Scalar),
        Isa::Portable => call.run_on(Portable),
        Isa::Avx2 | Isa::Avx512 => call.run_on_x86(isa),
    }
}

/// A call that has code for all levels of the architecture, and for AVX-512 with the extension
/// `E`.
pub(crate) trait RunOnAll<E, A>: RunOn<Scalar, A> + RunOn<Portable, A> {
    /// Runs the call on a level of x86-64.
    fn run_on_x86(self, isa: Isa) -> A;
}

#[cfg(target_arch = "x86_64")]
impl<E, A, C> RunOnAll<E, A> for C
where
    C: RunOn<Scalar, A> + RunOn<Portable, A> + RunOn<Avx2, A>,
    C: RunOn<Avx512<Base>, A> + RunOn<Avx512<E>, A>,
    Avx512<E>: Level,
{
    fn run_on_x86(self, isa: Isa) -> A {
        // Each `enter` asks the processor itself, so no other level can answer.
        let entered = match isa {
            Isa::Avx512 => Avx512::<E>::enter(self).or_else(Avx512::<Base>::enter),
            _ => Avx2::enter(self),
        };
        entered.unwrap_or_else(|_| lacks(isa))
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl<E, A, C: RunOn<Scalar, A> + RunOn<Portable, A>> RunOnAll<E, A> for C {
    fn run_on_x86(self, isa: Isa) -> A {
        lacks(isa)
    }
}

#[cold]
fn lacks(isa: Isa) -> ! {
    panic!("this machine lacks the instruction-set level {isa}")
}

#[cfg(test)]
mod tests {
    use super::super::call::{Base, Popcount, Vp2Intersect};
    use super::*;

    /// A call that answers with the level on which it runs.
    struct Level;

    impl RunOn<Scalar, Isa> for Level {
        fn run_on(self, _: Scalar) -> Isa {
            Isa::Scalar
        }
    }

    impl RunOn<Portable, Isa> for Level {
        fn run_on(self, _: Portable) -> Isa {
            Isa::Portable
        }
    }

    #[test]
    fn a_call_runs_on_its_level_with_and_without_extensions() {
        for isa in Isa::available() {
            assert_eq!(dispatch::<Base, _>(isa, Level), isa);
            assert_eq!(dispatch::<Popcount, _>(isa, Level), isa);
            assert_eq!(dispatch::<Vp2Intersect, _>(isa, Level), isa);
        }
    }

    #[test]
    fn a_level_that_is_missing_is_refused() {
        for isa in Isa::ALL.into_iter().filter(|isa| !isa.is_available()) {
            let refused = std::panic::catch_unwind(|| dispatch::<Base, _>(isa, Level));
            assert!(refused.is_err(), "{isa}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    mod x86 {
        use super::super::super::x86;
        use super::*;

        impl RunOn<Avx2, Isa> for Level {
            fn run_on(self, _: Avx2) -> Isa {
                Isa::Avx2
            }
        }

        impl<E> RunOn<Avx512<E>, Isa> for Level {
            fn run_on(self, _: Avx512<E>) -> Isa {
                Isa::Avx512
            }
        }

        /// An extension that no processor has.
        struct Absent;

        impl x86::Level for Avx512<Absent> {
            fn is_available() -> bool {
                false
            }

            fn enter<A, C: RunOn<Self, A>>(call: C) -> Result<A, C> {
                Err(call)
            }
        }

        #[test]
        fn without_its_extension_a_call_runs_on_the_level_alone() {
            for isa in Isa::available() {
                assert_eq!(dispatch::<Absent, _>(isa, Level), isa);
            }
        }
    }
}
