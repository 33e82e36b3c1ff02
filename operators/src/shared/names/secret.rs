//! Seeds of hashes, unknown to everybody who chooses the input.
//!
//! A hash table is fast as long as its keys do not collide, and keys that collide under a known
//! hash function are easy to find. Every table of items therefore has its own hash function, which
//! is drawn at random when the table is made.

use std::hash::{BuildHasher, RandomState};

use trommel_kernels::sieve::{CodeHash, split_mix};

/// A seed from the random numbers of the operating system.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one(0_u8)
}

/// A seed and the hashes that follow from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret(u64);

impl Secret {
    pub(crate) fn random() -> Self {
        Self(random_seed())
    }

    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn seed(self) -> u64 {
        self.0
    }

    /// The hash of codes.
    pub(crate) fn code_hash(self) -> CodeHash {
        CodeHash::from_seed(split_mix(self.0, 1))
    }

    /// The seed of the codes of items, independent of the hash of codes.
    pub(crate) fn item_seed(self) -> u64 {
        split_mix(self.0, 2)
    }
}

/// Does not show the seed, which must not reach a log.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}
