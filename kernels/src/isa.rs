//! Instruction-set levels: all levels, the levels of this machine, and the level that a process
//! uses.

use std::env;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512, Base, Level};

/// The environment variable that forces a level: `scalar`, `portable`, `avx2` or `avx512`.
pub const ISA_VARIABLE: &str = "TROMMEL_ISA";

/// A level of instructions on which a primitive can run; higher levels are faster, and all levels
/// return the same bits.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
///
/// assert_eq!("portable".parse(), Ok(Isa::Portable));
/// assert!(Isa::available().any(|isa| isa == Isa::Scalar));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// One element at a time, in plain Rust: the reference of every primitive.
    Scalar,
    /// 128-bit vectors that every target has or emulates (crate `wide`).
    Portable,
    /// 256-bit vectors of x86-64: AVX2 with BMI1, BMI2, LZCNT and POPCNT.
    Avx2,
    /// 512-bit vectors of x86-64: the AVX2 level with AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl Isa {
    /// All levels, slowest first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Portable, Self::Avx2, Self::Avx512];

    /// Whether this machine can run the level. The processor is asked once per process.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar | Self::Portable => true,
            Self::Avx2 => has_avx2(),
            Self::Avx512 => has_avx512(),
        }
    }

    /// The levels of this machine, slowest first.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_available())
    }

    /// The level that this process uses: the level that [`ISA_VARIABLE`] names, or else the best
    /// level of the machine.
    ///
    /// The variable is read at the first call; later calls return the same answer.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::Isa;
    ///
    /// let isa = Isa::selected()?;
    /// assert!(isa.is_available());
    /// # Ok::<(), trommel_kernels::IsaError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`IsaError`] when the variable names no level, or a level that this machine lacks. There is
    /// no silent fall-back: a forced level either runs or is refused.
    pub fn selected() -> Result<Self, IsaError> {
        static SELECTED: OnceLock<Result<Isa, IsaError>> = OnceLock::new();
        SELECTED
            .get_or_init(|| {
                let forced = env::var_os(ISA_VARIABLE);
                Self::select(forced.map(|value| value.to_string_lossy().into_owned()).as_deref())
            })
            .clone()
    }

    fn select(forced: Option<&str>) -> Result<Self, IsaError> {
        match forced {
            None => Ok(Self::available().next_back().unwrap_or(Self::Scalar)),
            Some(name) => {
                let isa: Self = name.parse()?;
                if isa.is_available() { Ok(isa) } else { Err(IsaError::Unavailable { isa }) }
            }
        }
    }

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Isa {
    type Err = IsaError;

    fn from_str(name: &str) -> Result<Self, IsaError> {
        Self::ALL
            .into_iter()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| IsaError::Unknown { name: name.to_owned() })
    }
}

/// The reason why no level could be selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IsaError {
    /// The name is none of the four levels.
    #[error("unknown instruction-set level {name:?}; allowed are {}", names(Isa::ALL))]
    Unknown {
        /// The given name.
        name: String,
    },
    /// The level exists, but not on this machine.
    #[error(
        "this machine lacks the instruction-set level {isa}; it has {}",
        names(Isa::available())
    )]
    Unavailable {
        /// The forced level.
        isa: Isa,
    },
}

fn names(levels: impl IntoIterator<Item = Isa>) -> String {
    levels.into_iter().map(Isa::name).collect::<Vec<_>>().join(", ")
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    Avx2::is_available()
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    Avx512::<Base>::is_available()
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for isa in Isa::ALL {
            assert_eq!(isa.to_string().parse(), Ok(isa));
        }
    }

    #[test]
    fn the_best_available_level_is_the_default() {
        assert_eq!(Isa::select(None).ok(), Isa::available().max());
    }

    #[test]
    fn a_forced_level_is_used_or_refused() {
        for isa in Isa::ALL {
            let selected = Isa::select(Some(isa.name()));
            if isa.is_available() {
                assert_eq!(selected, Ok(isa));
            } else {
                assert_eq!(selected, Err(IsaError::Unavailable { isa }));
            }
        }
    }

    #[test]
    fn errors_say_what_is_allowed() {
        let unknown = Isa::select(Some("AVX9")).unwrap_err().to_string();
        assert_eq!(
            unknown,
            "unknown instruction-set level \"AVX9\"; allowed are scalar, portable, avx2, avx512"
        );
        let lacking = IsaError::Unavailable { isa: Isa::Avx512 }.to_string();
        assert!(
            lacking.starts_with("this machine lacks the instruction-set level avx512; it has ")
        );
    }
}
