//! Blocks without vectors. A default x86-64 build has a population count neither of vectors nor of
//! words, and nothing of 128 bits makes up for that; so this level is the reference.

use super::registers::{Kernel, OneByOne};

/// Runs a kernel.
pub(super) fn run<T: Kernel>(kernel: T) -> T::Output {
    kernel.run(OneByOne)
}
